"""S5 on virtual time: every row of the table, who is asked before a deletion, and how often; to the last request."""

import pytest

from tests.model.check import UPSTREAM_UID
from tests.model.plane import GROUP
from tests.model.scene import copy, original, scene, synced
from tests.model.world import World

FINALIZER = "example.com/wait"
SOURCES = pytest.mark.parametrize("source", ["cloud", "robot"])


def sides(world: World, source: str):
    """Upstream, downstream."""
    return (world.cloud, world.robot) if source == "cloud" else (world.robot, world.cloud)


def deletions(world: World, side: str = "") -> list[tuple[str, dict]]:
    """The name and the options of each deletion that was asked for."""
    found = world.journal.asked(side, verb="delete", kind="goals")
    return [(request.call.path.rpartition("/")[2], request.call.body) for request in found]


@SOURCES
@pytest.mark.parametrize("down", [False, True], ids=["seen", "while the agent was down"])
def test_S5_1_what_upstream_deleted_is_deleted_once_by_its_uid_and_in_the_background(source: str, down: bool) -> None:
    with scene(goals={"source": source}) as world:
        upstream, downstream = sides(world, source)
        upstream.create("a", spec={"x": 1})
        world.start()
        world.settle()
        uid = downstream.objects()["a"]["metadata"]["uid"]
        if down:
            world.stop()
        upstream.delete("a")
        if down:
            world.start()
        world.settle()
        assert downstream.objects() == {}
        assert deletions(world, str(upstream.side)) == []
        ((name, options),) = deletions(world)
        assert (name, options["propagationPolicy"]) == ("a", "Background")
        assert options["preconditions"] == {"uid": uid}


@SOURCES
def test_S5_a_terminating_upstream_gets_the_final_status_and_its_copy_is_deleted_once_and_never_made_anew(
    source: str,
) -> None:
    with scene(goals={"source": source}) as world:
        upstream, downstream = sides(world, source)
        upstream.create("a", spec={"x": 1}, finalizers=[FINALIZER])
        world.start()
        world.settle()
        downstream.finalize("a", FINALIZER)
        upstream.delete("a")
        world.pass_time(600.0)
        assert [name for name, _ in deletions(world)] == ["a"], "asked once, and then waited for"
        downstream.set_status("a", {"phase": "CLEANED_UP"})
        world.settle()
        assert upstream.objects()["a"]["status"] == {"phase": "CLEANED_UP"}
        downstream.finalize("a")
        world.settle()
        upstream.label("a", still="here")
        world.settle()
        assert downstream.objects() == {}
        upstream.finalize("a")
        world.settle()
        assert upstream.objects() == {}


def test_S5_a_terminating_upstream_that_was_never_copied_is_not_copied() -> None:
    with scene() as world:
        world.cloud.create("a", spec={"x": 1}, finalizers=[FINALIZER])
        world.cloud.delete("a")
        world.start()
        world.pass_time(600.0)
        assert (world.robot.objects(), world.journal.asked(verb="create", kind="goals")) == ({}, [])


def test_S5_1_a_copy_that_a_finalizer_keeps_delays_no_other_and_is_asked_for_once() -> None:
    with synced() as world:
        world.cloud.create("b", spec={"x": 1})
        world.settle()
        world.robot.finalize("a", FINALIZER)
        world.cloud.delete("a")
        world.cloud.set("b", spec={"x": 2})
        world.pass_time(3600.0)
        assert copy(world, "b")["spec"] == {"x": 2}
        assert [name for name, _ in deletions(world)] == ["a"]
        world.robot.finalize("a")
        world.settle()
        assert set(world.robot.objects()) == {"b"}


@SOURCES
def test_S5_2_a_copy_that_is_deleted_comes_back_with_its_status_and_upstreams_is_not_touched(source: str) -> None:
    with scene(goals={"source": source}) as world:
        upstream, downstream = sides(world, source)
        upstream.create("a", spec={"x": 1})
        world.start()
        world.settle()
        downstream.set_status("a", {"phase": "RUNNING"})
        world.settle()
        before = len(world.writes)
        downstream.delete("a")
        world.settle()
        assert downstream.objects()["a"]["status"] == {"phase": "RUNNING"}
        assert {write.side for write in world.writes[before:]} == {downstream.side}


@SOURCES
@pytest.mark.parametrize("finalizer", [False, True])
def test_S5_4_the_old_copys_status_never_shows_on_its_successor(source: str, finalizer: bool) -> None:
    with scene(goals={"source": source}) as world:
        upstream, downstream = sides(world, source)
        upstream.create("a", spec={"x": 1})
        world.start()
        world.settle()
        downstream.set_status("a", {"phase": "OLD"})
        world.settle()
        if finalizer:
            downstream.finalize("a", FINALIZER)
        world.cut(str(upstream.side))
        upstream.delete("a")
        made = upstream.create("a", spec={"x": 2})
        downstream.set_status("a", {"phase": "OLDER"})
        world.pass_time(30.0)
        world.mend(str(upstream.side))
        world.pass_time(60.0)
        if finalizer:
            downstream.set_status("a", {"phase": "OLDEST"})
            world.pass_time(60.0)
            downstream.finalize("a")
        world.settle()
        assert downstream.objects()["a"]["spec"] == {"x": 2}
        downstream.set_status("a", {"phase": "NEW"})
        world.settle()
        shown = [(w.after or {}).get("status") for w in world.writes if w.verb == "status" and w.side is upstream.side]
        assert [status for status in shown if status and status != {"phase": "OLD"}] == [{"phase": "NEW"}]
        assert upstream.objects()["a"]["metadata"]["uid"] == made["metadata"]["uid"]


def test_S5_4_a_copy_that_bears_no_stamp_is_adopted_in_place_with_its_status() -> None:
    with scene() as world:
        made = world.cloud.create("a", spec={"x": 1})
        old = world.robot.create("a", spec={"x": 0})
        world.robot.set_status("a", {"phase": "RUNNING"})
        world.start()
        world.settle()
        found = copy(world)
        assert found["metadata"]["uid"] == old["metadata"]["uid"]
        assert found["metadata"]["annotations"][UPSTREAM_UID] == made["metadata"]["uid"]
        assert (found["spec"], original(world)["status"]) == ({"x": 1}, {"phase": "RUNNING"})
        assert deletions(world) == []


@pytest.mark.parametrize("orphans", ["delete", "keep"])
@pytest.mark.parametrize("running", [True, False], ids=["running", "started later"])
def test_S5_3_an_object_made_by_hand_on_the_robot_goes_or_stays_as_annotated(orphans: str, running: bool) -> None:
    with scene(goals={"orphans": orphans}) as world:
        if running:
            world.start()
            world.settle()
        world.robot.create("by-hand", spec={"x": 1})
        if not running:
            world.start()
        world.settle()
        world.pass_time(600.0)
        assert set(world.robot.objects()) == (set() if orphans == "delete" else {"by-hand"})


@pytest.mark.parametrize("count", [30, 215])
@pytest.mark.parametrize("how", ["at once", "one by one", "while the agent is down", "while the link is cut"])
def test_S5_5b_a_mass_deletion_that_somebody_means_is_carried_out_whole_and_holds_nothing(count: int, how: str) -> None:
    with scene() as world:
        world.start()
        names = [f"g{number:03}" for number in range(count)]
        for name in names:
            world.cloud.create(name, spec={"x": 1})
        world.settle()
        if how == "while the agent is down":
            world.stop()
        if how == "while the link is cut":
            world.cut("cloud")
        for name in names:
            world.cloud.delete(name)
            if how == "one by one":
                world.pass_time(0.3)
                assert world.status()["holds"] == []
        if how == "while the agent is down":
            world.start()
        world.mend("cloud")
        world.pass_time(120.0)
        assert world.robot.objects() == {}
        assert (world.status()["holds"], world.status()["health"]) == ([], "healthy")
        asked = world.journal.asked("cloud", part=f"/apis/{GROUP}/v1")
        discovery = [request for request in asked if request.call.path == f"/apis/{GROUP}/v1"]
        assert 1 <= len(discovery) <= 2 + (count if how == "one by one" else count // 3), "a batch is asked for"
