"""A kind that makes no progress never looks healthy: `status` judges the age of everything that is pending."""

import pytest

from crsyncer.ports import Reply
from tests.model.plane import GROUP
from tests.model.scene import SOURCES, copy, roles, scene
from tests.model.world import World

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
    world.mend("robot")
    world.pass_time(120)
    assert (world.status()["health"], reasons(world)) == ("healthy", {})


def test_S9_5_statuses_that_wait_are_said_beside_a_dead_letter(world: World) -> None:
    world.cloud.create("b", spec={"x": 1})
    world.settle()
    invalid = Reply(422, {"message": "not valid", "reason": "Invalid", "details": {"causes": [{}]}})
    world.inject("cloud", invalid, verb="patch", part="/goals/a", times=10_000)
    world.inject("cloud", BROKEN, verb="patch", part="/goals/b", times=10_000)
    world.robot.set_status("a", {"phase": "DONE"})
    world.robot.set_status("b", {"phase": "DONE"})
    world.pass_time(300)
    assert {"DeadLetters", "Backlog"} == set(reasons(world))
    assert copy(world, "b")["status"] == {"phase": "DONE"}


def test_S9_5_a_held_deletion_and_a_refused_copy_wait_for_somebody_and_are_not_stuck(world: World) -> None:
    assert world.life is not None
    world.clock.run(world.life.commands.answer({"command": "hold", "resource": "goals"}))
    world.inject("robot", Reply(422, {"message": "no", "details": {"causes": [{}]}}), verb="create", times=10_000)
    world.cloud.create("b", spec={"x": 1})
    world.cloud.delete("a")
    world.pass_time(600)
    assert set(reasons(world)) == {"Manual", "DeadLetters"}


def test_S5_1_a_deletion_that_a_finalizer_blocks_for_long_is_reported(world: World) -> None:
    world.robot.finalize("a", "lab.example.com/wait")
    world.settle()
    world.cloud.delete("a")
    world.pass_time(500)
    assert (world.status()["health"], copy(world, "a")["metadata"]["finalizers"]) == (
        "healthy",
        ["lab.example.com/wait"],
    )
    world.pass_time(200)
    assert "finalizers" in reasons(world)["Stuck"]
    world.robot.finalize("a")
    world.pass_time(30)
    assert (world.status()["health"], reasons(world)) == ("healthy", {})


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
        up.create("b", spec={"x": 1})
        world.pass_time(60)
        down.create("b", spec={"x": 2}, finalizers=["lab.example.com/wait"])
        up.delete("b")
        world.mend(down.side)
        world.pass_time(600)
        assert (down.objects()["b"]["spec"], world.status()["health"], reasons(world)) == ({"x": 2}, "healthy", {})
        down.delete("b")
        world.pass_time(900)
        assert (world.status()["health"], reasons(world)) == ("healthy", {})
