"""S3.5 on virtual time: upstream's content is enforced, what admission made of it is not fought, a fight is slow."""

from itertools import pairwise

import pytest

from crsyncer.core.model import Json, Side
from tests.model.simulation.plane import GROUP
from tests.model.simulation.scene import SOURCES, copy, original, restart, rival, roles, row, scene
from tests.model.simulation.world import World
from tests.system.bed import crd

BOTH = pytest.mark.parametrize("source", SOURCES)
ANY: Json = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
DEFAULTS: Json = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {"x": {"type": "integer"}, "speed": {"type": "string", "default": "slow"}},
        },
        "status": ANY,
    },
}


def reverts(world: World, since: float = 0.0) -> list[float]:
    """When a was updated by the agent."""
    return [request.sent for request in world.journal.asked(verb="update", part="/goals/a", since=since)]


@BOTH
@pytest.mark.fault_28
def test_S3_5_a_downstream_change_is_reverted_within_2_s_with_one_update_and_touches_nothing_else(source: str) -> None:
    with scene(goals={"source": source}) as world:
        _, down = roles(world, source)
        world.begin("a", source=source, spec={"x": 1, "y": {"z": 1}}, labels={"zone": "b"})
        down.set_status("a", {"n": 1})
        down.finalize("a", "example.com/wait")
        down.label("a", theirs="1")
        world.settle()
        for change in ({"spec": {"x": 9}, "more": {"added": 1}}, {"spec": {"x": 1, "y": {"z": 1}, "w": 1}}):
            begun = world.clock.now
            down.set("a", **change)
            world.pass_time(2)
            found = down.objects()["a"]
            assert (found["spec"], found["status"], "more" in found) == ({"x": 1, "y": {"z": 1}}, {"n": 1}, False)
            assert (found["metadata"]["labels"], len(reverts(world, begun))) == ({"zone": "b", "theirs": "1"}, 1)
            assert found["metadata"]["finalizers"] == ["example.com/wait"]
        down.label("a", zone=None)
        world.pass_time(2)
        assert down.objects()["a"]["metadata"]["labels"] == {"zone": "b", "theirs": "1"}


def test_S3_5_our_annotations_on_a_copy_are_restored_on_the_same_object(world: World) -> None:
    before = copy(world)["metadata"]
    world.robot.annotate("a", dict.fromkeys(before["annotations"]))
    world.pass_time(2)
    after = copy(world)["metadata"]
    assert (after["annotations"], after["uid"]) == (before["annotations"], before["uid"])


@BOTH
def test_S3_5_drift_keep_leaves_it_until_the_next_upstream_change(source: str) -> None:
    with scene(goals={"source": source, "drift": "keep"}) as world:
        up, down = roles(world, source)
        world.begin("a", source=source, labels={"zone": "b"})
        down.set("a", spec={"x": 2})
        down.label("a", zone="c")
        world.pass_time(600)
        restart(world)
        world.report("a", {"n": 1}, source=source)
        assert reverts(world) == []
        assert (down.objects()["a"]["spec"], up.objects()["a"]["status"]) == ({"x": 2}, {"n": 1})
        world.edit("a", spec={"x": 1, "y": 1}, source=source)
        assert down.objects()["a"]["spec"] == {"x": 1, "y": 1}
        assert down.objects()["a"]["metadata"]["labels"] == {"zone": "b"}


@BOTH
def test_S3_5_what_downstreams_schema_adds_and_prunes_is_not_fought_and_its_loss_is_drift(source: str) -> None:
    with scene(goals={"source": source}) as world:
        _, down = roles(world, source)
        down.apply(crd(GROUP, source=source, schema=DEFAULTS))
        world.begin("a", source=source, spec={"x": 1, "unknown": 1}, seconds=600)
        restart(world)
        assert (down.objects()["a"]["spec"], reverts(world)) == ({"x": 1, "speed": "slow"}, [])
        down.set("a", spec={"x": 1, "speed": "fast"})
        world.settle()
        assert (down.objects()["a"]["spec"], len(reverts(world))) == ({"x": 1, "speed": "slow"}, 1)
        world.edit("a", spec={"x": 2, "speed": "fast"}, source=source, seconds=600)
        assert (down.objects()["a"]["spec"], len(reverts(world))) == ({"x": 2, "speed": "fast"}, 2)


@BOTH
@pytest.mark.fault_28
def test_S3_5_a_fight_is_five_reverts_and_then_one_a_minute_named_by_what_differs(source: str) -> None:
    with scene(goals={"source": source}) as world:
        _, down = roles(world, source)
        world.begin("a", "b", source=source, spec={"x": 1, "deep": {"speed": 1}})
        begun = world.clock.now
        with rival(world, down, seconds=1.0, spec={"x": 1, "deep": {"speed": 2}}):
            world.pass_time(59)
            assert len(reverts(world, begun)) == 5
            status = world.status()
            assert [(h["reason"], h["objects"]) for h in status["holds"]] == [("Contested", 1)]
            assert status["health"] == "attention"
            (reason,) = (r for r in status["reasons"] if r["code"] == "Contested")
            assert "spec.deep.speed" in f"{reason['message']} {row(world)['message']}"
            down.set("b", spec={"x": 7})
            world.pass_time(2)
            assert down.objects()["b"]["spec"] == {"x": 1, "deep": {"speed": 1}}
            world.pass_time(600)
        slow = reverts(world, begun)[4:]
        assert len(slow) >= 10
        assert all(later - earlier >= 59 for earlier, later in pairwise(slow))
        world.pass_time(180)
        assert (down.objects()["a"]["spec"]["deep"], world.status()["holds"]) == ({"speed": 1}, [])
        assert world.status()["health"] == "healthy"


@pytest.mark.parametrize(
    ("paths", "named"),
    [
        (["a" * 99, "b" * 99], f"spec.{'a' * 99}, ..."),
        (["a" * 300], f"spec.{'a' * 195}"),
        (list("abcdef"), "spec.a, spec.b, spec.c, spec.d, spec.e, ..."),
    ],
)
def test_S3_5_of_what_a_fight_is_about_whole_names_are_shown(world: World, paths: list[str], named: str) -> None:
    world.edit("a", spec=dict.fromkeys(paths, 1))
    with rival(world, world.robot, seconds=1.0, spec=dict.fromkeys(paths, 2)):
        world.pass_time(30)
        assert f"in default/a: {named}; reverted" in world.status()["holds"][0]["message"]


def test_S3_5_a_change_upstream_does_not_wait_for_a_fight_to_end(world: World) -> None:
    with rival(world, world.robot, seconds=1.0, spec={"x": 2}):
        world.pass_time(30)
        assert world.status()["holds"][0]["reason"] == "Contested"
    world.edit("a", spec={"x": 3}, seconds=2)
    assert (copy(world)["spec"], world.status()["holds"]) == ({"x": 3}, [])


@pytest.mark.parametrize("lag", [0.0, 0.5])
def test_S3_5_a_rival_that_is_faster_than_our_answer_does_not_pass_for_admission(world: World, lag: float) -> None:
    world.weather[Side.ROBOT].lag = lag
    with rival(world, world.robot, seconds=0.0, times=4, spec={"x": 2}):
        world.settle()
    assert copy(world)["spec"] == original(world)["spec"] == {"x": 1}
