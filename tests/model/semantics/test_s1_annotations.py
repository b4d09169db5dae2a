"""S1.1 to S1.4 and S1.8: the annotations of the robot's CRDs are the configuration, and they are live."""

from typing import Any

import pytest

from crsyncer.core.content.annotations import FILTER, ROBOT_LABEL, SPEC_SOURCE, SUBTREE
from crsyncer.core.model import Side
from crsyncer.core.requests.calls import PARTIAL_LIST
from tests.model.simulation.life import ROBOT, AgentSettings
from tests.model.simulation.plane import GROUP
from tests.model.simulation.scene import SOURCES, copy, define, original, restart, roles, row, scene, state
from tests.model.simulation.world import World
from tests.system.bed import crd

MINE = {ROBOT_LABEL: ROBOT}
TRUE, FALSE = ("1", "t", "T", "TRUE", "true", "True"), ("0", "f", "F", "FALSE", "false", "False")


def annotate(world: World, annotation: str, value: str | None) -> None:
    """Edit an annotation of the robot's CRD; two seconds later the change has its effect (S1.1)."""
    world.robot.annotate_kind({annotation: value})
    world.pass_time(2.0)


def test_S1_1_a_changed_annotation_takes_effect_within_2_s_and_restarts_only_its_kind() -> None:
    with World(kinds={"goals": {}, "tasks": {}}) as world:
        world.begin("a")
        begun = world.clock.now
        annotate(world, FILTER, "true")
        watches = world.journal.asked(verb="watch", kind="goals", since=begun)
        assert {watch.side for watch in watches if "labelSelector" in watch.query} == set(Side)
        assert row(world)["filterByRobotName"] is True
        assert world.journal.asked(kind="tasks", since=begun) == []


def test_S1_1_what_does_not_concern_us_on_a_crd_changes_nothing(world: World) -> None:
    begun = world.clock.now
    annotate(world, "example.com/note", "hello")
    world.pass_time(10)  # less than a side may be silent before it is asked whether it is still there
    assert world.journal.asked(kind="goals", since=begun) == []
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "description": "what a robot shall do"}
    world.robot.apply(crd(GROUP, schema=schema))  # the robot's own server ends its watches
    world.pass_time(15)
    assert world.journal.asked("cloud", kind="goals", since=begun) == []
    world.add("b")
    assert copy(world, "b")["spec"] == {"x": 1}


def test_S1_2_spec_source_says_which_way_and_whether_at_all() -> None:
    with World(kinds={"goals": {"source": None}}) as world:
        world.start()
        world.cloud.create("down", spec={"x": 1})
        for text in (None, ""):
            annotate(world, SPEC_SOURCE, text)
            assert row(world) == {}
        annotate(world, SPEC_SOURCE, "Cloud")
        wrong = row(world)
        assert (wrong["state"], wrong["specSource"]) == ("misconfigured", "Cloud")
        assert '"Cloud"' in wrong["message"]
        world.pass_time(600)
        assert world.journal.asked(kind="goals") == []
        annotate(world, SPEC_SOURCE, "cloud")
        assert (state(world), copy(world, "down")["spec"]) == ("syncing", {"x": 1})


@pytest.mark.parametrize("text", ["yes", "", " true", "tRUE", "on", "2"])
def test_S1_3_any_other_text_closes_the_kind_and_never_opens_it(text: str) -> None:
    with World(kinds={"goals": {"filtered": text}}) as world:
        for name, labels in (("none", {}), ("mine", MINE), ("other", {ROBOT_LABEL: "robot-2"})):
            world.cloud.create(name, labels=labels)
        world.robot.create("local")
        world.begin(seconds=600)
        found = row(world)
        assert found["state"] == "misconfigured"
        assert f'"{text}"' in found["message"]
        assert "filter-by-robot-name" in found["message"]
        assert (world.journal.asked(kind="goals"), set(world.robot.objects())) == ([], {"local"})
        assert world.status()["health"] == "attention"
        annotate(world, FILTER, "true")
        assert set(world.robot.objects()) == {"mine", "local"}


def test_S1_3_a_filter_that_is_misspelt_while_the_kind_runs_stops_it_at_once(world: World) -> None:
    annotate(world, FILTER, "yes")
    begun = world.clock.now
    world.cloud.set("a", spec={"x": 2})
    world.cloud.create("b", spec={"x": 1})
    world.robot.set("a", spec={"x": 3})
    world.pass_time(600)
    assert world.journal.asked(kind="goals", since=begun) == []
    assert (set(world.robot.objects()), copy(world)["spec"]) == ({"a"}, {"x": 3})


def test_S1_3_without_a_robot_name_a_filtered_kind_stays_closed() -> None:
    with World(kinds={"goals": {"filtered": "true"}, "tasks": {}}, settings=AgentSettings("")) as world:
        world.cloud.create("anybody", spec={"x": 1})
        world.cloud.create("empty", labels={ROBOT_LABEL: ""})
        world.cloud.create("t", kind="tasks")
        world.begin(seconds=600)
        assert (state(world), set(world.robot.objects("tasks"))) == ("misconfigured", {"t"})
        assert (world.journal.asked(kind="goals"), world.robot.objects()) == ([], {})
        reasons = world.status()["reasons"]
        assert "--robot-name" in "".join(f"{reason['message']} {reason['hint']}" for reason in reasons)


@pytest.mark.parametrize("source", SOURCES)
def test_S1_3_C1_7_closing_a_kind_to_others_deletes_the_copies_and_nothing_of_theirs(source: str) -> None:
    with World(kinds={"goals": {"source": source}}) as world:
        up, down = roles(world, source)
        world.start()
        up.create("mine", labels=MINE)
        up.create("plain")
        world.settle()
        world.weather[down.side].latency = 5.0  # upstream is listed long before downstream
        world.robot.annotate_kind({FILTER: "true"})
        up.create("later", labels=MINE)
        world.pass_time(120)
        assert set(down.objects()) == {"mine", "later"}
        assert set(up.objects()) == {"mine", "plain", "later"}
        world.weather[down.side].latency = 0.0
        world.robot.annotate_kind({FILTER: "false"})
        world.remove("plain", source=source, seconds=60)
        assert set(up.objects()) == set(down.objects()) == {"mine", "later"}


@pytest.mark.parametrize("text", ["", "robot.state", ".", "robot."])
def test_S1_4_a_subtree_that_is_no_single_key_is_refused(text: str) -> None:
    with World(kinds={"goals": {"subtree": text}}) as world:
        world.begin("a", seconds=600)
        wrong = row(world)
        assert (wrong["state"], wrong["statusSubtree"]) == ("misconfigured", text)
        assert "status-subtree" in wrong["message"]
        assert world.journal.asked(kind="goals") == []


def test_S1_4_a_subtree_that_is_annotated_later_or_taken_away_takes_effect(world: World) -> None:
    annotate(world, SUBTREE, "robot")
    world.report("a", {"robot": {"at": "dock"}, "local": 1})
    assert original(world)["status"] == {"robot": {"at": "dock"}}
    annotate(world, SUBTREE, None)
    world.settle()
    assert original(world)["status"] == {"robot": {"at": "dock"}, "local": 1}


def test_S1_8_an_annotation_taken_away_leaves_copies_and_given_back_catches_up(world: World) -> None:
    world.add("deleted", "changed")
    annotate(world, SPEC_SOURCE, None)
    begun = world.clock.now
    world.cloud.delete("deleted")
    world.cloud.set("changed", spec={"x": 2})
    world.add("new", spec={"x": 3}, seconds=3600)
    assert world.journal.asked("cloud", kind="goals", since=begun) == []
    counted = world.journal.asked("robot", kind="goals", since=begun)
    assert {request.call.accept for request in counted} == {PARTIAL_LIST}, "the copies that are left are counted"
    assert len(counted) <= 7
    assert {name: obj["spec"]["x"] for name, obj in world.robot.objects().items()} == {
        "a": 1,
        "deleted": 1,
        "changed": 1,
    }
    annotate(world, SPEC_SOURCE, "cloud")
    world.settle()
    found = {name: obj["spec"]["x"] for name, obj in world.robot.objects().items()}
    assert found == {"a": 1, "changed": 2, "new": 3}


def test_S1_8_a_crd_deleted_on_the_robot_stops_its_kind_and_comes_back_with_everything(world: World) -> None:
    world.robot.delete_kind()
    world.pass_time(2)
    while not world.robot.sweep():
        world.pass_time(1)
    world.pass_time(600)
    assert (row(world)["rule"], set(world.cloud.objects())) == ("S1.8", {"a"})
    assert world.journal.asked("cloud", verb="write") == []
    define(world, "robot")
    assert copy(world)["spec"] == {"x": 1}
    assert set(world.cloud.objects()) == {"a"}


DONE = {"phase": "DONE"}


@pytest.mark.parametrize(("before", "after"), [(None, "true"), ("true", None)])
@pytest.mark.parametrize("final", [False, True])
def test_S6_3_a_status_that_waits_survives_another_filter(before: str | None, after: str | None, final: bool) -> None:
    with scene(goals={"filtered": before}) as world:
        world.begin("a", labels={ROBOT_LABEL: ROBOT})
        world.cut("cloud")
        world.report("a", DONE, seconds=5)
        if final:
            world.stop()
            world.robot.delete("a")
        world.robot.apply(crd(GROUP, filtered=after))
        if final:
            world.start()
        world.pass_time(30)
        world.heal("cloud", seconds=60)
        assert original(world)["status"] == DONE


@pytest.mark.parametrize("wrong", [{"filtered": "yes"}, {"versions": ("v2",)}], ids=["misconfigured", "no version"])
def test_S6_3_a_status_that_waits_is_shown_also_while_its_kind_is_not_synced(wrong: dict[str, Any]) -> None:
    with scene() as world:
        world.begin("a")
        world.cut("cloud")
        world.report("a", DONE, seconds=5)
        define(world, "robot", **wrong, seconds=10)
        for kill in (False, True):
            if kill:
                restart(world, kill=True, seconds=10)
            status = world.status()
            assert (status["outbox"]["depth"], status["kinds"][0]["pending"]["status"]) == (1, 1)
            assert [row["name"] for row in world.order("pending")["pending"]] == ["a"]
            world.heal("cloud", seconds=60)
        assert "status" not in original(world)
        define(world, "robot")
        assert (original(world)["status"], world.order("pending")["pending"]) == (DONE, [])


def test_S1_1_a_selection_that_is_put_back_while_the_cloud_is_away_costs_no_copy() -> None:
    """What was stored under the first selection is forgotten with the second: nothing resumes from its cursors."""
    with scene() as world:
        world.begin("a", labels={ROBOT_LABEL: ROBOT})
        before = copy(world)["metadata"]["uid"]
        world.cut("cloud")
        world.cut("robot")
        with world.down():
            world.robot.apply(crd(GROUP, filtered="true"))
            world.mend("robot")
        world.pass_time(10)
        define(world, "robot", seconds=10)
        world.heal("cloud", seconds=60)
        assert (copy(world)["metadata"]["uid"], world.status()["kinds"][0]["resumes"]["cloud"]) == (before, 0)
