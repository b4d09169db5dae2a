"""S2 on virtual time: which objects are synced, how they are asked for, and which are never touched."""

import math
import re

import pytest

from crsyncer.core.content.annotations import OURS, ROBOT_LABEL
from crsyncer.core.model import Side
from crsyncer.core.requests.calls import Call
from crsyncer.ports import Reply
from tests.model.simulation.life import ROBOT
from tests.model.simulation.scene import SOURCES, copy, original, restart, roles, row, scene
from tests.model.simulation.weather import Rule
from tests.model.simulation.world import World

MINE, OTHER = {ROBOT_LABEL: ROBOT}, {ROBOT_LABEL: "robot-2"}
SELECTOR = f"{ROBOT_LABEL}={ROBOT}"
BOTH = pytest.mark.parametrize("source", SOURCES)


def foreign(call: Call) -> bool:
    """Whether a gateway for robots refuses a request: all but a selected list or watch, and statuses of objects."""
    if re.fullmatch(r"/apis/[^/]+/v1/goals", call.path):
        query = dict(call.query)
        return query.get("labelSelector") != SELECTOR or "fieldSelector" in query
    return re.fullmatch(r"/apis/[^/]+/v1/namespaces/default/goals/[^/]+/status", call.path) is None


def taken(world: World) -> list[tuple[str, int]]:
    """What is held, and of how many objects."""
    return [(hold["reason"], hold["objects"]) for hold in world.status()["holds"]]


@BOTH
def test_S2_1_unfiltered_is_every_object_whatever_its_label_and_nothing_is_selected(source: str) -> None:
    with scene(goals={"source": source}) as world:
        up, down = roles(world, source)
        for name, labels in (("plain", {}), ("mine", MINE), ("other", OTHER)):
            up.create(name, spec={"x": 1}, labels=labels)
        world.begin()
        restart(world)
        found = {name: obj["metadata"].get("labels") or {} for name, obj in down.objects().items()}
        assert found == {"plain": {}, "mine": MINE, "other": OTHER}
        upstream = world.journal.asked(str(up.side), kind="goals")
        assert [r for r in upstream if "labelSelector" in r.query and r.query.get("limit") != "1"] == []


@BOTH
def test_S2_1_filtered_lists_and_watches_carry_the_one_selector_on_both_sides_and_nothing_is_got_by_name(
    source: str,
) -> None:
    with scene(goals={"source": source, "filtered": "true"}) as world:
        up, down = roles(world, source)
        world.begin("a", source=source, labels=MINE)
        world.report("a", {"done": True}, source=source)
        with world.down():
            up.set("a", spec={"x": 2})
        world.settle()
        world.cut("cloud", seconds=60)
        world.mend("cloud")
        world.pass_time(7 * 3600)  # an audit is among it
        assert (down.objects()["a"]["spec"], up.objects()["a"]["status"]) == ({"x": 2}, {"done": True})
        for side in Side:
            asked = [r for verb in ("list", "watch") for r in world.journal.asked(side, verb=verb, kind="goals")]
            assert {r.verb for r in asked} == {"list", "watch"}
            assert {(r.query.get("labelSelector"), r.query.get("fieldSelector")) for r in asked} == {(SELECTOR, None)}
        assert world.journal.asked("cloud", verb="get", kind="goals") == []


@pytest.mark.parametrize("status", [400, 403, 404])
def test_S2_1_a_gateway_that_refuses_all_but_that_one_form_is_enough(status: int) -> None:
    with scene(goals={"filtered": "true"}) as world:
        refused = Reply(status, {}, "not for robots")
        world.weather[Side.CLOUD].add(Rule(foreign, refused, math.inf))
        world.begin("a", labels=MINE)
        for number in (1, 2):
            world.cloud.set("a", spec={"x": number})
            world.report("a", {"n": number})
            assert (copy(world)["spec"], original(world)["status"]) == ({"x": number}, {"n": number})
        world.remove("a")
        assert (world.robot.objects(), world.status()["health"]) == ({}, "healthy")
        begun = world.clock.now
        world.stop()
        world.begin("b", labels=MINE)
        assert set(world.robot.objects()) == {"b"}
        lists = world.journal.asked("cloud", verb="list", kind="goals", since=begun)
        assert {r.query.get("limit") for r in lists if r.status == 200} <= {"1"}, "the watch is resumed"


@BOTH
def test_S2_2_an_object_that_loses_or_changes_its_label_is_deleted_downstream_and_comes_back_with_it(
    source: str,
) -> None:
    with scene(goals={"source": source, "filtered": "true"}) as world:
        up, down = roles(world, source)
        world.begin("stays", "loses", "changes", "meanwhile", source=source, labels=MINE)
        up.label("loses", robot=None)
        up.label("changes", robot="robot-2")
        world.settle()
        assert set(down.objects()) == {"stays", "meanwhile"}
        with world.down():
            up.label("meanwhile", robot="robot-2")
        world.settle()
        assert set(down.objects()) == {"stays"}
        silent = world.clock.now
        world.edit("changes", spec={"x": 2}, source=source, seconds=600)
        assert world.journal.asked(verb="write", kind="goals", since=silent) == []
        up.label("changes", robot=ROBOT)
        world.settle()
        assert down.objects()["changes"]["spec"] == {"x": 2}
        assert set(up.objects()) == {"stays", "loses", "changes", "meanwhile"}


@pytest.mark.fault_27
def test_S2_2_an_object_given_to_another_robot_and_back_is_gone_silent_and_there_again() -> None:
    with scene(goals={"filtered": "true"}) as world:
        world.begin("a", labels=MINE)
        world.report("a", {"phase": "MINE"})
        since = world.clock.now
        world.cloud.label("a", robot="robot-2")
        world.settle()
        world.cloud.set_status("a", {"phase": "THEIRS"})
        world.pass_time(600)
        assert (world.robot.objects(), world.journal.asked("cloud", verb="status", since=since)) == ({}, [])
        world.cloud.label("a", robot="robot-1")
        world.settle()
        # It starts with what the other robot has reported, as after a change of hardware (S4.4).
        assert world.robot.objects()["a"]["status"] == {"phase": "THEIRS"}
        world.report("a", {"phase": "MINE AGAIN"})
        assert world.cloud.objects()["a"]["status"] == {"phase": "MINE AGAIN"}


def test_S2_3_local_objects_of_a_filtered_kind_are_never_touched() -> None:
    with scene(goals={"filtered": "true"}) as world:
        world.robot.create("plain", spec={"local": True})
        world.robot.create("other", spec={"local": True}, labels=OTHER)
        world.start()
        world.robot.create("later", spec={"local": True})
        before = {name: dict(obj) for name, obj in world.robot.objects().items()}
        world.cloud.create("mine", labels=MINE)
        world.settle()
        world.remove("mine", seconds=24 * 3600)
        restart(world)
        assert world.robot.objects() == before


def test_S2_3_a_local_object_of_the_same_name_is_held_as_taken_until_it_is_gone_and_delays_nobody() -> None:
    with scene(goals={"filtered": "true"}) as world:
        world.start()
        local = world.robot.create("a", spec={"local": True})
        world.add(*"ab", labels=MINE, seconds=5)
        assert (taken(world), set(world.robot.objects())) == ([("NameTaken", 1)], {"a", "b"})
        world.edit("a", spec={"x": 2}, seconds=3600)
        assert world.robot.get("a") == {k: v for k, v in local.items() if k not in ("apiVersion", "kind")}
        status = world.status()
        assert (status["health"], [r["code"] for r in status["reasons"]]) == ("attention", ["NameTaken"])
        assert status["holds"][0]["hint"]
        world.robot.delete("a")  # no event shows that: the label selects it no more than before
        world.pass_time(300)
        assert (copy(world)["spec"], taken(world)) == ({"x": 2}, [])


def test_S2_3_a_taken_name_is_tried_with_a_back_off_and_at_once_when_the_pair_changes() -> None:
    with scene(goals={"filtered": "true"}) as world:
        names = [f"a{number}" for number in range(100)]
        world.start()
        for name in names:
            world.robot.create(name, spec={"local": True})
            world.cloud.create(name, spec={"x": 1}, labels=MINE)
        world.pass_time(600)
        tried = world.journal.asked("robot", verb="create", kind="goals")
        assert taken(world) == [("NameTaken", 100)]
        assert 500 <= len(tried) <= 700, "each name: at once, and after 15 s, 30 s, ..., 5 min, twice that by jitter"
        world.robot.delete("a7")
        world.edit("a7", spec={"x": 2}, seconds=2)
        assert copy(world, "a7")["spec"] == {"x": 2}


@pytest.mark.parametrize("label", [None, "robot-2"], ids=["stripped", "changed"])
def test_S2_3_a_copy_whose_label_is_taken_away_gets_it_back_with_its_content_and_stays_the_same_object(
    label: str | None,
) -> None:
    with scene(goals={"filtered": "true"}) as world:
        world.begin("a", labels=MINE)
        uid = copy(world)["metadata"]["uid"]
        world.report("a", {"phase": "RUNNING"})
        world.robot.label("a", robot=label)
        world.robot.set("a", spec={"x": 7})
        world.settle()
        found = copy(world)
        assert (found["metadata"]["labels"], found["metadata"]["uid"]) == (MINE, uid)
        assert (found["spec"], found["status"]) == ({"x": 1}, {"phase": "RUNNING"})
        world.report("a", {"phase": "DONE"})
        assert (original(world)["status"], taken(world)) == ({"phase": "DONE"}, [])
        assert world.journal.asked(verb="delete") == []


@pytest.mark.parametrize("database", ["kept", "lost"])
def test_S2_3_a_copy_without_its_label_makes_way_for_an_upstream_object_that_was_created_anew(database: str) -> None:
    with scene(goals={"filtered": "true"}) as world:
        world.begin("a", labels=MINE)
        old = copy(world)["metadata"]["uid"]
        world.report("a", {"phase": "OLD"})
        with world.down():
            world.robot.label("a", robot=None)
            world.cloud.delete("a")
            world.cloud.create("a", spec={"x": 2}, labels=MINE)
            if database == "lost":
                world.lose_database()
            begun = world.clock.now
        world.settle()
        found = copy(world)
        assert (found["spec"], found["metadata"]["labels"], "status" in found) == ({"x": 2}, MINE, False)
        assert found["metadata"]["uid"] != old
        assert found["metadata"]["annotations"][OURS + "upstream-uid"] == original(world)["metadata"]["uid"]
        assert world.journal.asked("cloud", verb="status", since=begun) == []


def test_S2_3_in_the_cloud_a_taken_name_is_reported_and_never_read_nor_touched() -> None:
    with scene(goals={"filtered": "true", "source": "robot"}) as world:
        world.start()
        theirs = world.cloud.create("a", spec={"theirs": True}, labels=OTHER)
        world.add(*"ab", source="robot", labels=MINE, seconds=3600)
        assert (taken(world), set(world.cloud.objects())) == ([("NameTaken", 1)], {"a", "b"})
        assert original(world) == {k: v for k, v in theirs.items() if k not in ("apiVersion", "kind")}
        assert world.journal.asked("cloud", verb="get", kind="goals") == []
        assert row(world)["held"] == 1
