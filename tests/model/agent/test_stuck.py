"""What makes no progress never looks healthy: `status` judges what is pending, `/livez` what stands still."""

import pytest

from crsyncer.core.model import Side
from crsyncer.core.watching.progress import stuck
from crsyncer.engine.reporting.liveness import progress
from crsyncer.ports import Reply
from tests.model.simulation.plane import GROUP
from tests.model.simulation.scene import SOURCES, copy, roles, scene, synced
from tests.model.simulation.weather import Fate
from tests.model.simulation.world import World

BROKEN = Reply(500, {"message": "broken"})


def reasons(world: World) -> dict[str, str]:
    """What `status` says is wrong: messages by code."""
    return {reason["code"]: reason["message"] for reason in world.status()["reasons"]}


def stick(world: World, what: str) -> None:
    """Let something be pending that never ends."""
    match what:
        case "spec":
            world.inject("robot", BROKEN, verb="create", part="/goals", times=10_000)
            world.cloud.create("b", spec={"x": 1})
        case "deletion":
            world.inject("cloud", BROKEN, verb="discover", part=f"/apis/{GROUP}/v1", times=10_000)
            world.cloud.delete("a")
        case "list":
            world.inject("cloud", BROKEN, verb="list", part="/goals", times=10_000)
            world.cloud.restart()


@pytest.mark.parametrize("what", ["spec", "deletion", "list"])
def test_S9_5_what_is_pending_for_minutes_though_both_sides_answer_is_said(world: World, what: str) -> None:
    stick(world, what)
    world.pass_time(300)
    status = world.status()
    assert status["health"] == "degraded", status
    assert status["sides"]["cloud"]["state"] == "connected"
    assert (f"goals.{GROUP}" in reasons(world)["Stuck"], what in reasons(world)["Stuck"]) == (True, True)
    world.mend("cloud")
    world.heal("robot", seconds=120)
    assert (world.status()["health"], reasons(world)) == ("healthy", {})


def test_S9_5_statuses_that_wait_are_said_beside_a_dead_letter(world: World) -> None:
    world.add("b")
    invalid = Reply(422, {"message": "not valid", "reason": "Invalid", "details": {"causes": [{}]}})
    world.inject("cloud", invalid, verb="patch", part="/goals/a", times=10_000)
    world.inject("cloud", BROKEN, verb="patch", part="/goals/b", times=10_000)
    world.robot.set_status("a", {"phase": "DONE"})
    world.report("b", {"phase": "DONE"}, seconds=300)
    assert {"DeadLetters", "Backlog"} == set(reasons(world))
    assert copy(world, "b")["status"] == {"phase": "DONE"}


def test_S9_5_a_held_deletion_and_a_refused_copy_wait_for_somebody_and_are_not_stuck(world: World) -> None:
    world.order("hold", resource="goals")
    world.inject("robot", Reply(422, {"message": "no", "details": {"causes": [{}]}}), verb="create", times=10_000)
    world.cloud.create("b", spec={"x": 1})
    world.remove("a", seconds=600)
    assert set(reasons(world)) == {"Manual", "DeadLetters"}


def test_S5_1_a_deletion_that_a_finalizer_blocks_for_long_is_reported(world: World) -> None:
    world.robot.finalize("a", "lab.example.com/wait")
    world.settle()
    world.remove("a", seconds=500)
    assert (world.status()["health"], copy(world, "a")["metadata"]["finalizers"]) == (
        "healthy",
        ["lab.example.com/wait"],
    )
    world.pass_time(200)
    assert "finalizers" in reasons(world)["Stuck"]
    world.robot.finalize("a")
    world.pass_time(30)
    assert (world.status()["health"], reasons(world)) == ("healthy", {})


@pytest.mark.parametrize(("ahead", "reported"), [(0.0, False), (400.0, True), (-4000.0, False)])
def test_S5_1_how_long_a_finalizer_keeps_a_copy_is_measured_by_the_servers_clock(ahead: float, reported: bool) -> None:
    with scene() as world:
        world.weather[Side.ROBOT].clock_offset = ahead
        world.begin("a", seconds=600)
        world.robot.finalize("a", "lab.example.com/wait")
        world.remove("a", seconds=300)
        assert ("Stuck" in reasons(world)) is reported


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("kill", [False, True], ids=["running", "killed"])
def test_S5_4_a_replaced_copy_that_a_finalizer_keeps_is_reported_and_its_status_does_not_wait(
    source: str, kill: bool
) -> None:
    with scene(goals={"source": source}) as world:
        up, down = roles(world, source)
        world.start()
        up.create("a", spec={"x": 1})
        world.settle()
        down.finalize("a", "lab.example.com/wait")
        up.delete("a")
        world.settle()
        up.create("a", spec={"x": 2})
        world.settle()
        down.set_status("a", {"phase": "FORMER"})
        world.settle()
        if kill:
            world.crash()
            world.start()
        world.pass_time(700)
        assert (set(reasons(world)), world.status()["outbox"]["depth"]) == ({"Stuck"}, 0)
        down.finalize("a")
        world.settle()
        assert (down.objects()["a"]["spec"], reasons(world)) == ({"x": 2}, {})
        assert all("status" not in plane.objects()["a"] for plane in (up, down))


@pytest.mark.parametrize("source", SOURCES)
def test_S5_3_what_is_not_ours_by_the_name_of_what_is_gone_is_no_copy_whose_deletion_is_awaited(source: str) -> None:
    with scene(goals={"source": source, "orphans": "keep"}) as world:
        up, down = roles(world, source)
        world.start()
        world.cut(down.side)
        world.add("b", source=source, seconds=60)
        down.create("b", spec={"x": 2}, finalizers=["lab.example.com/wait"])
        up.delete("b")
        world.heal(down.side, seconds=600)
        assert (down.objects()["b"]["spec"], world.status()["health"], reasons(world)) == ({"x": 2}, "healthy", {})
        down.delete("b")
        world.pass_time(900)
        assert (world.status()["health"], reasons(world)) == ("healthy", {})


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
                    world.report("a", {"phase": f"P{world.clock.now}"}, seconds=HOUR / 4)
                    assert standing_still(world) is None
                world.heal(side)
                assert standing_still(world) is None


def test_S9_5_a_side_that_fails_all_writes_or_answers_none_is_never_said_to_stand_still() -> None:
    for fate in (Fate.LOST, Reply(500, {"message": "storm"}), Reply(429, {}, retry_after=86_400.0)):
        with synced() as world:
            world.inject("cloud", fate, part="/status", times=1e9)
            for _ in range(12):
                world.report("a", {"phase": f"P{world.clock.now}"}, seconds=HOUR / 12)
                assert standing_still(world) is None
            world.heal("cloud")


def test_a_worker_that_waits_for_ever_is_said_to_stand_still() -> None:
    with synced() as world:
        world.disk.commit_seconds = 1000 * HOUR
        world.remove("a", seconds=HOUR)
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
