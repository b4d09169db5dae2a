"""What of a running engine is said to stand still, and what never is."""

from crsyncer.core.watching.progress import stuck
from crsyncer.engine.reporting.liveness import progress
from crsyncer.ports import Reply
from tests.model.scene import synced
from tests.model.weather import Fate
from tests.model.world import World

HOUR = 3600.0


def standing_still(world: World) -> str | None:
    """What `/livez` would say."""
    assert world.life is not None
    return stuck(progress(world.life.engine), world.clock.now)


def test_S9_1_a_side_that_is_away_is_never_said_to_stand_still() -> None:
    for side in ("cloud", "robot"):
        for away in (World.cut, World.silence):
            with synced() as world:
                world.cloud.set_status("a", {"phase": "RUNNING"})
                away(world, side)
                for _ in range(8):
                    world.robot.set_status("a", {"phase": f"P{world.clock.now}"})
                    world.pass_time(HOUR / 4)
                    assert standing_still(world) is None
                world.mend(side)
                world.settle()
                assert standing_still(world) is None


def test_S9_5_a_side_that_fails_all_writes_or_answers_none_is_never_said_to_stand_still() -> None:
    for fate in (Fate.LOST, Reply(500, {"message": "storm"}), Reply(429, {}, retry_after=86_400.0)):
        with synced() as world:
            world.inject("cloud", fate, part="/status", times=1e9)
            for _ in range(12):
                world.robot.set_status("a", {"phase": f"P{world.clock.now}"})
                world.pass_time(HOUR / 12)
                assert standing_still(world) is None
            world.mend("cloud")
            world.settle()


def test_a_worker_that_waits_for_ever_is_said_to_stand_still() -> None:
    with synced() as world:
        world.disk.commit_seconds = 1000 * HOUR
        world.cloud.delete("a")
        world.pass_time(HOUR)
        trouble = standing_still(world)
        assert trouble is not None
        assert trouble.startswith("the robot's worker at the content of goals.lab.example.com default/a")


def test_S9_3_a_watch_that_outlives_its_deadline_is_said_to_stand_still() -> None:
    with synced() as world:
        assert world.life is not None
        assert [each.allowed for each in progress(world.life.engine) if "watch" in each.name]
        late = world.clock.now + HOUR
        trouble = stuck([each for each in progress(world.life.engine) if "watch" in each.name], late)
        assert trouble is not None
        assert "watch of /apis/" in trouble
