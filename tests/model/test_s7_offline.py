"""S7 on virtual time: hours without the link, to the last request and in order."""

from tests.model.scene import changes, copy, original, scene, synced
from tests.model.world import World

HOUR = 3600.0


def test_S7_1_an_hour_without_the_cloud_since_boot_enforces_what_was_known_and_deletes_nothing() -> None:
    with synced() as world:
        world.robot.set_status("a", {"phase": "RUNNING"})
        world.settle()
        world.stop()
        world.cut("cloud")
        world.cloud.delete("a")
        world.robot.delete("a")
        before = len(world.writes)
        world.start()
        world.pass_time(60.0)
        assert copy(world)["spec"] == {"x": 1}
        assert copy(world)["status"] == {"phase": "RUNNING"}
        world.robot.set("a", spec={"x": 9})
        world.pass_time(2.0)
        assert copy(world)["spec"] == {"x": 1}
        world.pass_time(HOUR)
        assert {str(write.side) for write in world.writes[before:]} == {"robot"}
        assert [write.verb for write in world.writes[before:] if write.verb == "delete"] == []
        world.mend("cloud")
        world.settle()
        assert world.robot.objects() == {}


def test_S7_2_after_an_outage_deletions_come_first_then_specs_then_final_statuses() -> None:
    """One write at a time and side would be in this order; across the two sides each has its own queue."""
    with scene() as world:
        world.start()
        names = [f"g{number:02}" for number in range(60)]
        for name in names:
            world.cloud.create(name, spec={"x": 1})
        world.settle()
        world.cut("cloud")
        doomed, changed, reported = names[:20], names[20:40], names[40:]
        for name in changed:
            world.cloud.set(name, spec={"x": 2})
        for name in doomed:
            world.cloud.delete(name)
        for name in reported:
            world.robot.set_status(name, {"phase": "DONE"})
        world.pass_time(600.0)
        before, back = len(world.writes), world.clock.now
        world.mend("cloud")
        world.settle()
        assert world.writes[-1].time - back <= 15.0  # at most 8 s until it is asked again, and then all at once
        for name in changed:
            assert copy(world, name)["spec"] == {"x": 2}
        for name in reported:
            assert original(world, name)["status"] == {"phase": "DONE"}
        assert set(world.robot.objects()) == {*changed, *reported}
        verbs = [write.verb for write in world.writes[before:]]
        assert sorted(verbs) == ["delete"] * 20 + ["status"] * 20 + ["update"] * 20


def probes(world: World, side: str, since: float) -> int:
    """How often a side was asked anything."""
    return len(world.journal.asked(side, since=since))


def test_S7_3_two_days_with_both_sides_absent_are_one_question_a_minute_and_side() -> None:
    with scene() as world:
        for side in ("cloud", "robot"):
            world.cut(side)
        world.start()
        world.pass_time(900.0)  # for so long the longest wait is 8 s
        since = world.clock.now
        world.pass_time(48 * HOUR)
        for side in ("cloud", "robot"):
            assert 48 * 60 * 0.5 <= probes(world, side, since) <= 48 * 60 * 4, "full jitter: half a minute on average"
        assert changes(world) == []
        for side in ("cloud", "robot"):
            world.mend(side)
        world.cloud.create("a", spec={"x": 1})
        world.settle()
        assert copy(world)["spec"] == {"x": 1}
