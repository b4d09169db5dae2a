"""S1.8 on virtual time: a kind that was synced and stops without being asked to is never silent."""

import pytest

from crsyncer.core.content.annotations import DRIFT, OURS, ROBOT_LABEL, SPEC_SOURCE, SYNCER
from crsyncer.core.model import Json
from crsyncer.errors import SyncError
from crsyncer.ports import Reply
from tests.model.scenes.policies import apply_policy, serve_policies
from tests.model.simulation.answers import NO_LISTS
from tests.model.simulation.api_server import CRDS
from tests.model.simulation.life import ROBOT
from tests.model.simulation.plane import GROUP
from tests.model.simulation.scene import SOURCES, define, holds, release, restart, roles, row, scene, state
from tests.model.simulation.world import World
from tests.system.bed import crd

GOALS = f"goals.{GROUP}"


def reasons(world: World, code: str) -> list[Json]:
    """The reasons with a code."""
    return [reason for reason in world.status()["reasons"] if reason["code"] == code]


def synced(world: World, source: str, count: int) -> None:
    """Start the agent, with so many objects on both sides."""
    world.begin(*(f"g{number}" for number in range(count)), source=source)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("how", ["watched", "agent down", "robot cut"])
def test_S1_8_a_crd_that_is_gone_from_the_robot_is_kind_missing_until_it_is_back(source: str, how: str) -> None:
    with scene(goals={"source": source}, tasks={}) as world:
        synced(world, source, 22)
        with world.down(how == "agent down", kill=True):
            if how == "robot cut":
                world.cut("robot", seconds=60)
            world.robot.drop_kind()
        if how == "robot cut":
            world.robot.compact()
            world.mend("robot")
        world.pass_time(60)
        orphans = 22 if source == "robot" else 0
        for _ in range(2):
            assert (state(world), state(world, "tasks")) == ("kind-missing", "syncing")
            assert row(world)["rule"] == "S1.8"
            assert (world.status()["health"], holds(world)) == ("attention", [("KindMissing", orphans)])
            (reason,) = reasons(world, "KindMissing")
            assert GOALS in reason["message"]
            assert "the robot" in reason["message"]
            assert f"crsyncer holds release {world.status()['holds'][0]['id']}" in reason["hint"]
            explained = world.order("explain", resource="goals", name="g1")
            assert (explained["state"], explained["steps"][0]["rule"]) == ("not-synced", "S1.8")
            restart(world, kill=True)
        world.robot.apply(crd(GROUP, source=source))
        upstream, downstream = roles(world, source)
        for number in range(22):
            if f"g{number}" not in upstream.objects():
                upstream.create(f"g{number}", spec={"x": 2})
        world.pass_time(120)
        world.settle()
        assert (world.status()["health"], holds(world), len(downstream.objects())) == ("healthy", [], 22)


@pytest.mark.parametrize("source", SOURCES)
def test_S1_8_a_missing_kind_is_acknowledged_for_good_and_costs_no_copy(source: str) -> None:
    with scene(goals={"source": source}) as world:
        synced(world, source, 3)
        world.robot.drop_kind()
        world.pass_time(60)
        (hold,) = world.status()["holds"]
        shown = world.order("release", id=hold["id"], dryRun=True)
        assert (shown["objects"], shown["names"]) == (0, [])
        assert "nothing is deleted" in shown["message"]
        assert holds(world) != []
        world.order("release", id=hold["id"])
        for _ in range(2):
            assert (world.status()["health"], holds(world), world.status()["kinds"]) == ("healthy", [], [])
            restart(world, kill=True)
            world.pass_time(700)
        assert len(world.cloud.objects()) == 3
        with pytest.raises(SyncError, match="there is no hold"):
            world.order("release", id=hold["id"])
        define(world, "robot", source=source, seconds=60)
        world.robot.drop_kind()
        world.pass_time(60)
        assert state(world) == "kind-missing", "the next one is told again"


@pytest.mark.parametrize("source", SOURCES)
def test_S1_8_an_annotation_that_was_removed_leaves_a_line_while_copies_follow_nothing(source: str) -> None:
    with scene(goals={"source": source}, tasks={}) as world:
        synced(world, source, 5)
        _, downstream = roles(world, source)
        world.robot.annotate_kind({SPEC_SOURCE: None})
        world.pass_time(10)
        for _ in range(2):
            (reason,) = reasons(world, "KindStopped")
            assert reason["level"] == "info"
            where = "on the robot" if source == "cloud" else "in the cloud"
            assert f"5 copies {where} follow nothing" in reason["message"]
            assert world.status()["health"] == "healthy"
            explained = world.order("explain", resource=GOALS, name="g1")
            assert [step["rule"] for step in explained["steps"]][-1] == "S1.8"
            restart(world, kill=True)
        for number in range(4):
            downstream.delete(f"g{number}")
        world.pass_time(700)
        assert "1 copy " in reasons(world, "KindStopped")[0]["message"]
        downstream.delete("g4")
        world.pass_time(700)
        assert (reasons(world, "KindStopped"), world.status()["health"]) == ([], "healthy")


@pytest.mark.parametrize("answer", NO_LISTS)
def test_S1_8_an_answer_that_is_no_list_does_not_end_the_line(answer: Reply) -> None:
    with scene() as world:
        synced(world, "cloud", 2)
        world.inject("robot", answer, verb="list", part="/goals")
        world.robot.annotate_kind({SPEC_SOURCE: None})
        world.pass_time(10)
        assert "2 copies " in reasons(world, "KindStopped")[0]["message"]


def test_S1_8_annotated_again_the_line_is_gone() -> None:
    with scene() as world:
        synced(world, "cloud", 2)
        world.robot.annotate_kind({SPEC_SOURCE: None})
        world.pass_time(10)
        assert reasons(world, "KindStopped") != []
        world.robot.annotate_kind({SPEC_SOURCE: "cloud"})
        world.settle()
        assert (world.status()["reasons"], state(world)) == ([], "syncing")


def test_S1_8_a_misspelt_annotation_is_told_with_what_was_meant() -> None:
    with scene() as world:
        synced(world, "cloud", 2)
        world.robot.annotate_kind({SPEC_SOURCE: None, SYNCER + "spec-sorce": "cloud"})
        world.pass_time(10)
        for _ in range(2):
            (reason,) = reasons(world, "AnnotationUnknown")
            assert GOALS in reason["message"]
            assert f"did you mean {SPEC_SOURCE}?" in reason["message"]
            assert f"kubectl annotate crd {GOALS} {SYNCER}spec-sorce-" in reason["hint"]
            assert world.status()["health"] == "attention"
            assert [each["code"] for each in world.status()["reasons"]] == ["AnnotationUnknown", "KindStopped"]
            texts = [step["text"] for step in world.order("explain", resource=GOALS, name="g0")["steps"]]
            assert any("spec-sorce" in text for text in texts), texts
            restart(world, kill=True)
        world.robot.annotate_kind({SPEC_SOURCE: "cloud", SYNCER + "spec-sorce": None})
        world.settle()
        assert world.status()["reasons"] == []


def test_S1_8_known_and_foreign_annotations_are_no_misspelt_ones() -> None:
    with scene() as world:
        synced(world, "cloud", 1)
        world.robot.annotate_kind({DRIFT: "keep", "example.com/spec-source": "x", OURS + "upstream-uid": "1"})
        world.pass_time(10)
        assert world.status()["reasons"] == []
        world.robot.annotate_kind({OURS + "spec-source": "cloud"})
        world.pass_time(10)
        (reason,) = reasons(world, "AnnotationUnknown")
        assert f"did you mean {SPEC_SOURCE}?" in reason["message"]
        assert state(world) == "syncing"


POLICIES = pytest.mark.parametrize(
    "spec",
    [
        {"filter": {"byRobotName": True}, "specSource": "cloud"},
        {"filter": {"byRobotName": True}},
        {"specSource": "cloud"},
        {},
    ],
)


@POLICIES
def test_S1_8_a_crd_that_is_gone_is_told_and_acknowledged_also_where_a_policy_names_its_kind(spec: Json) -> None:
    """By the policy alone it would be a kind without a CRD, and what is told of that hides what has happened."""
    with scene(goals={"source": "cloud"}) as world:
        serve_policies(world.robot)
        world.robot.annotate_kind({SPEC_SOURCE: None if "specSource" in spec else "cloud"})
        apply_policy(world.robot, **spec)
        world.cloud.create("a", spec={"x": 1}, labels={ROBOT_LABEL: ROBOT})
        world.start()
        world.settle()
        found = world.robot.server.storage.of(CRDS)["", GOALS]
        world.robot.delete_kind()
        world.robot.sweep()
        world.pass_time(60)
        for _ in range(2):
            rows = [each for each in world.status()["kinds"] if each["resource"] == GOALS]
            assert [(each["state"], each["rule"]) for each in rows] == [("kind-missing", "S1.8")]
            assert (world.status()["health"], holds(world)) == ("attention", [("KindMissing", 0)])
            (reason,) = world.status()["reasons"]
            assert f"crsyncer holds release {world.status()['holds'][0]['id']}" in reason["hint"]
            assert world.order("explain", resource="goals", name="a")["steps"][0]["rule"] == "S1.8"
            restart(world, kill=True)
            world.pass_time(60)
        release(world)
        world.pass_time(60)
        assert (holds(world), state(world)) == ([], "kind-missing" if len(spec) == 2 else "misconfigured")
        world.robot.apply({**found, "metadata": {"name": GOALS, "annotations": found["metadata"].get("annotations")}})
        world.pass_time(60)
        world.settle()
        assert (world.status()["health"], holds(world), set(world.robot.objects())) == ("healthy", [], {"a"})
