"""S5 on virtual time: every row of the table, who is asked before a deletion, and how often; to the last request."""

import math

import pytest

from crsyncer.core.model import Side
from crsyncer.ports import Reply
from tests.model.simulation.answers import GARBAGE
from tests.model.simulation.judge import UPSTREAM_UID
from tests.model.simulation.plane import GROUP
from tests.model.simulation.scene import SOURCES, copy, original, restart, roles, scene, synced
from tests.model.simulation.world import World

FINALIZER = "example.com/wait"
BOTH = pytest.mark.parametrize("source", SOURCES)


def deletions(world: World, side: str = "") -> list[tuple[str, dict]]:
    """The name and the options of each deletion that was asked for."""
    found = world.journal.asked(side, verb="delete", kind="goals")
    return [(request.call.path.rpartition("/")[2], request.call.body) for request in found]


@BOTH
@pytest.mark.parametrize("down", [False, True], ids=["seen", "while the agent was down"])
def test_S5_1_what_upstream_deleted_is_deleted_once_by_its_uid_and_in_the_background(source: str, down: bool) -> None:
    with scene(goals={"source": source}) as world:
        upstream, downstream = roles(world, source)
        world.begin("a", source=source)
        uid = downstream.objects()["a"]["metadata"]["uid"]
        with world.down(down):
            upstream.delete("a")
        world.settle()
        assert downstream.objects() == {}
        assert deletions(world, str(upstream.side)) == []
        ((name, options),) = deletions(world)
        assert (name, options["propagationPolicy"]) == ("a", "Background")
        assert options["preconditions"] == {"uid": uid}


@BOTH
def test_S5_a_terminating_upstream_gets_the_final_status_and_its_copy_is_deleted_once_and_never_made_anew(
    source: str,
) -> None:
    with scene(goals={"source": source}) as world:
        upstream, downstream = roles(world, source)
        world.begin("a", source=source, finalizers=[FINALIZER])
        downstream.finalize("a", FINALIZER)
        world.remove("a", source=source, seconds=600.0)
        assert [name for name, _ in deletions(world)] == ["a"], "asked once, and then waited for"
        world.report("a", {"phase": "CLEANED_UP"}, source=source)
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
        world.begin(seconds=20.0)
        assert (world.robot.objects(), world.journal.asked(verb="create", kind="goals")) == ({}, [])


def test_S5_1_a_copy_that_a_finalizer_keeps_delays_no_other_and_is_asked_for_once() -> None:
    with synced() as world:
        world.add("b")
        world.robot.finalize("a", FINALIZER)
        world.cloud.delete("a")
        world.edit("b", spec={"x": 2}, seconds=3600.0)
        assert copy(world, "b")["spec"] == {"x": 2}
        assert [name for name, _ in deletions(world)] == ["a"]
        world.robot.finalize("a")
        world.settle()
        assert set(world.robot.objects()) == {"b"}


@BOTH
@pytest.mark.parametrize("finalizer", [False, True])
def test_S5_4_the_old_copys_status_never_shows_on_its_successor(source: str, finalizer: bool) -> None:
    with scene(goals={"source": source}) as world:
        upstream, downstream = roles(world, source)
        world.begin("a", source=source)
        world.report("a", {"phase": "OLD"}, source=source)
        if finalizer:
            downstream.finalize("a", FINALIZER)
        world.cut(str(upstream.side))
        upstream.delete("a")
        made = upstream.create("a", spec={"x": 2})
        world.report("a", {"phase": "OLDER"}, source=source, seconds=30.0)
        world.heal(str(upstream.side), seconds=60.0)
        if finalizer:
            world.report("a", {"phase": "OLDEST"}, source=source, seconds=60.0)
            downstream.finalize("a")
        world.settle()
        assert downstream.objects()["a"]["spec"] == {"x": 2}
        world.report("a", {"phase": "NEW"}, source=source)
        shown = [(w.after or {}).get("status") for w in world.writes if w.verb == "status" and w.side is upstream.side]
        assert [status for status in shown if status and status != {"phase": "OLD"}] == [{"phase": "NEW"}]
        assert upstream.objects()["a"]["metadata"]["uid"] == made["metadata"]["uid"]


def test_S4_1_a_copy_that_has_lost_its_marks_is_adopted_and_its_status_stays_with_the_former_object() -> None:
    with synced() as world:
        world.report("a", {"phase": "OLD"})
        world.weather[Side.CLOUD].latency = world.weather[Side.ROBOT].latency = 0.5
        world.robot.annotate("a", {UPSTREAM_UID: None})
        world.cloud.delete("a")
        world.add("a", spec={"x": 2})
        world.pass_time(24 * 3600.0)
        assert copy(world)["metadata"]["annotations"][UPSTREAM_UID] == original(world)["metadata"]["uid"]
        assert (copy(world)["spec"], copy(world)["status"]) == ({"x": 2}, {"phase": "OLD"})
        assert (deletions(world), "status" in original(world)) == ([], False)
        restart(world)
        world.report("a", {"phase": "NEW"})
        assert original(world)["status"] == {"phase": "NEW"}


@pytest.mark.parametrize("orphans", ["delete", "keep"])
@pytest.mark.parametrize("running", [True, False], ids=["running", "started later"])
def test_S5_3_an_object_made_by_hand_on_the_robot_goes_or_stays_as_annotated(orphans: str, running: bool) -> None:
    with scene(goals={"orphans": orphans}) as world:
        if running:
            world.begin()
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
        world.add(*names)
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
        world.heal("cloud", seconds=120.0)
        assert world.robot.objects() == {}
        assert (world.status()["holds"], world.status()["health"]) == ([], "healthy")
        asked = world.journal.asked("cloud", part=f"/apis/{GROUP}/v1")
        discovery = [request for request in asked if request.call.path == f"/apis/{GROUP}/v1"]
        assert 1 <= len(discovery) <= 2 + (count if how == "one by one" else count // 3), "a batch is asked for"


@pytest.mark.parametrize("everything", [False, True], ids=["the kind", "everything"])
@pytest.mark.parametrize(
    "reply", [GARBAGE, Reply(200, {}), Reply(200, {"items": []}), Reply(302, {})], ids=["html", "{}", "no list", "302"]
)
def test_S5_a_200_that_is_no_list_deletes_nothing(reply: Reply, everything: bool) -> None:
    with synced() as world:
        if everything:
            world.inject("cloud", reply, times=math.inf)
        else:
            world.inject("cloud", reply, part="/goals", times=math.inf)
        world.cut("cloud", seconds=5)
        world.connect("cloud")
        world.pass_time(600)
        assert set(world.robot.objects()) == {"a"}
        assert world.status()["health"] != "healthy"
        world.mend("cloud")
        world.edit("a", spec={"x": 2})
        assert (copy(world)["spec"], world.status()["holds"]) == ({"x": 2}, [])


def test_S5_2_the_last_unsent_status_goes_up_before_the_copy_comes_back() -> None:
    for seed in range(6):
        with synced(seed) as world:
            world.weather[Side.CLOUD].latency = 2.0
            before = len(world.writes)
            world.robot.set_status("a", {"phase": "LAST_WORDS"})
            world.robot.delete("a")
            world.settle()
            assert [write.verb for write in world.writes[before:]] == ["status", "create", "status"], (
                "the third is seed"
            )
            assert copy(world)["status"] == original(world)["status"] == {"phase": "LAST_WORDS"}


def test_S5_2_S4_4_a_copy_deleted_in_an_outage_comes_back_with_the_status_that_is_still_owed(world: World) -> None:
    world.cut("cloud")
    world.report("a", {"phase": "DONE"}, seconds=30)
    old = copy(world)["metadata"]["uid"]
    world.robot.delete("a")
    world.pass_time(30)
    assert (copy(world)["metadata"]["uid"] != old, copy(world)["status"]) == (True, {"phase": "DONE"})
    since = world.clock.now
    world.heal("cloud")
    assert original(world)["status"] == {"phase": "DONE"}
    assert len(world.journal.asked("cloud", verb="status", since=since)) == 1


@pytest.mark.fault_25
@pytest.mark.parametrize("how", ["running", "stopped", "killed"])
def test_S5_4_what_an_outage_left_in_the_outbox_is_not_for_the_successor(world: World, how: str) -> None:
    world.cut("cloud")
    world.report("a", {"phase": "OLD"}, seconds=30)
    world.cloud.delete("a")
    world.cloud.create("a", spec={"x": 2})
    if how != "running":
        (world.stop if how == "stopped" else world.crash)()
        world.start()
    world.heal("cloud")
    assert (copy(world)["spec"], "status" in copy(world), "status" in original(world)) == ({"x": 2}, False, False)
    assert world.status()["outbox"]["depth"] == 0


@BOTH
@pytest.mark.parametrize("finalizers", [[], [FINALIZER]], ids=["gone", "terminating"])
def test_S5_4_a_status_whose_object_had_a_successor_that_went_too_does_not_wait_for_ever(
    source: str, finalizers: list[str]
) -> None:
    with scene(goals={"source": source}) as world:
        upstream, downstream = roles(world, source)
        world.begin("a", source=source)
        world.cut(str(upstream.side))
        world.report("a", {"phase": "OLD"}, source=source, seconds=30)
        with world.down(kill=True):
            downstream.delete("a")
            upstream.delete("a")
            upstream.create("a", spec={"x": 2}, finalizers=finalizers)
            upstream.delete("a")
        world.heal(str(upstream.side), seconds=60)
        assert downstream.objects() == {}
        assert (world.status()["outbox"]["depth"], world.status()["health"]) == (0, "healthy")
        assert "status" not in upstream.objects().get("a", {})


def test_S5_3_orphans_keep_deletes_only_copies_that_carry_our_annotation_also_without_the_database() -> None:
    with scene(goals={"orphans": "keep"}) as world:
        world.start()
        for name in "ab":
            world.cloud.create(name, spec={"x": 1})
        world.robot.create("by-hand", spec={"x": 1})
        world.settle()
        world.remove("a")
        with world.down():
            world.lose_database()
            world.cloud.delete("b")
        world.pass_time(600)
        assert set(world.robot.objects()) == {"by-hand"}


@BOTH
@pytest.mark.parametrize("crashes", [False, True], ids=["lives", "killed"])
def test_S5_1_a_copy_is_deleted_only_with_its_last_status_recorded(source: str, crashes: bool) -> None:
    with scene(goals={"source": source}) as world:
        upstream, downstream = roles(world, source)
        world.begin("a", source=source, finalizers=[FINALIZER])
        world.weather[downstream.side].latency = 1.0
        world.remove("a", source=source, seconds=0.5)
        assert [request.status for request in world.journal.asked(downstream.side, verb="delete")] == [None]
        world.report("a", {"phase": "LAST"}, source=source, seconds=1.0)
        if crashes:
            world.crash()  # before it is shown anything of the deletion, whose event nobody can be shown again
            downstream.compact()
            world.start()
        world.settle()
        assert (downstream.objects(), upstream.objects()["a"]["status"]) == ({}, {"phase": "LAST"})


@BOTH
def test_S5_1_a_copy_whose_status_changes_all_the_time_is_deleted_all_the_same(source: str) -> None:
    with scene(goals={"source": source}) as world:
        upstream, downstream = roles(world, source)
        world.begin("a", source=source, finalizers=[FINALIZER])
        world.weather[downstream.side].latency = 0.3
        upstream.delete("a")
        begun, number = world.clock.now, 0
        while "a" in downstream.objects() and world.clock.now - begun < 60:
            number += 1
            world.report("a", {"n": number}, source=source, seconds=0.05)
        asked = world.journal.asked(downstream.side, verb="delete")
        assert (world.clock.now - begun < 15, len(asked) <= 6) == (True, True), (world.clock.now - begun, len(asked))
        world.settle()
        assert upstream.objects()["a"]["status"] == {"n": number}
