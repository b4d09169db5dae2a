"""S7 on virtual time: hours without the link, to the last request and in order."""

import sys
from types import FrameType

import pytest

from crsyncer.core.model import Side
from crsyncer.ports import Reply
from tests.model.simulation.scene import changes, copy, full_lists, original, restart, scene, synced
from tests.model.simulation.world import World

HOUR = 3600.0


def test_S7_1_an_hour_without_the_cloud_since_boot_enforces_what_was_known_and_deletes_nothing() -> None:
    with synced() as world:
        world.report("a", {"phase": "RUNNING"})
        with world.down():
            world.cut("cloud")
            world.cloud.delete("a")
            world.robot.delete("a")
            before = len(world.writes)
        world.pass_time(60.0)
        assert copy(world)["spec"] == {"x": 1}
        assert copy(world)["status"] == {"phase": "RUNNING"}
        world.robot.set("a", spec={"x": 9})
        world.pass_time(2.0)
        assert copy(world)["spec"] == {"x": 1}
        world.pass_time(HOUR)
        assert {str(write.side) for write in world.writes[before:]} == {"robot"}
        assert [write.verb for write in world.writes[before:] if write.verb == "delete"] == []
        world.heal("cloud")
        assert world.robot.objects() == {}


@pytest.mark.fault_07
def test_S7_2_what_changed_on_both_sides_during_a_cut_costs_a_write_each_and_no_list() -> None:
    with scene() as world:
        world.start()
        names = [f"g{number:03}" for number in range(60)]
        world.add(*names)
        world.cut("cloud")
        for changed, reported in zip(names[::2], names[1::2], strict=True):
            world.cloud.set(changed, spec={"x": 2})
            world.robot.set_status(reported, {"phase": "DONE"})
        world.pass_time(600.0)
        before, back = len(world.writes), world.clock.now
        world.heal("cloud")
        assert [copy(world, name)["spec"] for name in names[::2]] == [{"x": 2}] * 30
        assert [original(world, name)["status"] for name in names[1::2]] == [{"phase": "DONE"}] * 30
        assert world.writes[-1].time - back <= 15.0  # at most 8 s until it is asked again, and then all at once
        assert sorted(write.verb for write in world.writes[before:]) == ["status"] * 30 + ["update"] * 30
        assert [full_lists(world, side, back) for side in ("cloud", "robot")] == [[], []]


def probes(world: World, side: str, since: float) -> int:
    """How often a side was asked anything."""
    return len(world.journal.asked(side, since=since))


@pytest.mark.fault_06
def test_S7_3_two_days_with_both_sides_absent_are_one_question_a_minute_and_side() -> None:
    with scene() as world:
        for side in ("cloud", "robot"):
            world.cut(side)
        world.begin(seconds=900.0)  # for so long the longest wait is 8 s
        since = world.clock.now
        world.pass_time(48 * HOUR)
        for side in ("cloud", "robot"):
            assert 48 * 60 * 0.5 <= probes(world, side, since) <= 48 * 60 * 4, "full jitter: half a minute on average"
        assert changes(world) == []
        for side in ("cloud", "robot"):
            world.mend(side)
        world.add("a")
        assert copy(world)["spec"] == {"x": 1}


def test_S7_1_a_copy_whose_last_status_was_to_go_first_is_made_again_when_the_link_is_lost(world: World) -> None:
    world.add("b")
    world.inject("cloud", Reply(429, {"message": "slow down"}, retry_after=600.0), verb="patch")
    world.report("a", {"phase": "DONE"}, seconds=1)
    world.robot.set_status("b", {"phase": "DONE"})
    world.robot.delete("b")
    world.pass_time(5)
    assert set(world.robot.objects()) == {"a"}
    world.cut("cloud", seconds=5)
    assert set(world.robot.objects()) == {"a", "b"}
    world.mend("cloud")
    world.settle(seconds=1200.0)
    assert {name: o["status"] for name, o in world.cloud.objects().items()} == {n: {"phase": "DONE"} for n in "ab"}


def test_S7_1_a_verified_deletion_that_the_robot_refused_at_first_is_carried_out_after_a_crash_without_the_cloud() -> (
    None
):
    for seed in range(20):
        with synced(seed) as world:
            world.inject("robot", Reply(503, {"message": "busy"}), verb="delete", times=1000)
            world.cloud.delete("a")
            while world.weather[Side.ROBOT].rules[0].times == 1000:
                world.pass_time(0.001)
            with world.down(kill=True):
                world.cut("cloud")
                world.mend("robot")
            world.pass_time(120)
            assert set(world.robot.objects()) == set(), seed


def test_S7_3_work_for_deletions_that_wait_for_the_cloud_grows_with_their_number_and_not_its_square() -> None:
    def calls_of(count: int) -> int:
        """How many of the agent's functions are called in five minutes while so many deletions wait."""
        calls = 0

        def count_call(frame: FrameType, event: str, _: object) -> None:
            nonlocal calls
            calls += event == "call" and frame.f_globals.get("__name__", "").startswith("crsyncer.")

        with synced() as world:
            world.add(*(f"g{number}" for number in range(count)))
            world.inject("cloud", Reply(503, {}), verb="discover", times=10_000)
            for number in range(count):
                world.cloud.delete(f"g{number}")
            world.pass_time(5)
            world.cut("cloud", seconds=5)
            sys.setprofile(count_call)
            try:
                world.pass_time(300)
            finally:
                sys.setprofile(None)
            assert len(world.robot.objects()) == count + 1
        return calls

    assert calls_of(160) < 4.5 * calls_of(40)


@pytest.mark.parametrize("seed", range(3))
def test_S7_2_what_happened_in_an_outage_is_heard_out_and_its_deletions_go_first(seed: int) -> None:
    """They come last, for events come oldest first; without patience as many updates as go at a time went before."""
    with scene(seed) as world:
        world.start()
        names = [f"g{number:02}" for number in range(60)]
        world.add(*names)
        world.cut("cloud", seconds=5)
        before = len(world.writes)
        for name in names[20:40]:
            world.cloud.set(name, spec={"x": 2})
        for name in names[:20]:
            world.cloud.delete(name)
        world.heal("cloud")
        verbs = [write.verb for write in world.writes[before:]]
        assert verbs[:5] == ["delete"] * 5
        assert sorted(verbs) == ["delete"] * 20 + ["update"] * 20


def test_S5_5a_a_few_deletions_are_not_listed_for_though_one_is_done_while_the_kind_is_asked_for() -> None:
    for wait in range(1, 40):
        with synced(wait) as world:
            world.add("b")
            listed = world.status()["kinds"][0]["relists"]
            world.remove("a", seconds=wait / 50)
            world.remove("b")
            assert world.robot.objects() == {}
            assert world.status()["kinds"][0]["relists"] == listed, wait


def test_S5_4_a_copy_that_is_newer_than_the_store_is_said_to_wait_for_a_list_of_the_cloud() -> None:
    with scene() as world:
        world.begin("a")
        with world.down():
            older = world.disk.copied()
        world.edit("a", spec={"x": 2})
        with world.down(kill=True):
            world.put_back(older)
            world.cut("cloud")
        world.pass_time(60)
        assert copy(world)["spec"] == {"x": 2}
        steps = world.order("explain", resource="goals", name="a")["steps"]
        assert [step["rule"] for step in steps if "which of the two is newer" in step["text"]] == ["S5.4"]
        assert "S3.5" not in [step["rule"] for step in steps]
        world.heal("cloud")
        assert copy(world)["spec"] == {"x": 2}


@pytest.mark.parametrize("reported", [False, True], ids=["", "reported"])
@pytest.mark.parametrize("overtaken_by", [-1, 40], ids=["behind", "passed"])
@pytest.mark.parametrize("running", [False, True], ids=["booted", "running"])
def test_S7_1_S8_4_content_that_the_robots_cluster_lost_is_applied_again_without_the_cloud(
    running: bool, overtaken_by: int, reported: bool
) -> None:
    """Nor does it matter that a controller has written to the copy since: its generation tells."""
    for seed in range(4):
        with scene(seed) as world:
            world.begin("a", "b")
            backup = world.robot.snapshot()
            world.edit("a", spec={"x": 2})
            world.edit("a", spec={"x": 3})
            world.cut("cloud", seconds=5)
            if running:
                world.cut("robot", seconds=5)
            with world.down(not running, kill=True):
                world.robot.restore(backup, overtaken_by=overtaken_by)
                world.boots += not running
                if reported:
                    world.robot.set_status("a", {"phase": "BOOTED"})
            world.mend("robot")
            world.pass_time(60)
            assert copy(world)["spec"] == {"x": 3}
            restart(world, kill=True, seconds=20)
            assert copy(world)["spec"] == {"x": 3}
            world.heal("cloud")
            assert (copy(world)["spec"], original(world).get("status")) == (
                {"x": 3},
                {"phase": "BOOTED"} if reported else None,
            )


def test_S7_1_S8_4_labels_that_the_robots_cluster_lost_are_applied_again_without_the_cloud() -> None:
    """They have no generation: the version tells, also to an agent that is killed before it has listed the copy."""
    for steps in range(0, 60, 3):
        with scene(steps) as world:
            world.begin("a")
            backup = world.robot.snapshot()
            world.cloud.label("a", level="2")
            world.settle()
            world.cut("cloud", seconds=5)
            with world.down(kill=True):
                world.robot.restore(backup, overtaken_by=40)
                world.boots += 1
            world.crash_after(steps)
            world.pass_time(5)
            world.crash()
            world.start()
            world.pass_time(60)
            assert copy(world)["metadata"]["labels"] == {"level": "2"}, steps
