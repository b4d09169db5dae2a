"""Hazards: short histories, written by hand, in each of which something once went wrong, or easily would."""

from collections.abc import Iterator

import pytest

from crsyncer.core.model import Json, Side
from crsyncer.ports import Reply
from tests.model.world import World

UNAUTHORIZED = Reply(401, {"message": "Unauthorized"})


@pytest.fixture
def world() -> Iterator[World]:
    """One unfiltered kind, spec from the cloud; the agent runs, and has made the copy of a."""
    with World() as made:
        made.start()
        made.cloud.create("a", spec={"x": 1})
        made.settle()
        yield made
        assert made.troubles == []


def copy(world: World, name: str = "a") -> Json:
    """The robot's object."""
    return world.robot.objects()[name]


def original(world: World, name: str = "a") -> Json:
    """The cloud's object."""
    return world.cloud.objects()[name]


def changes(world: World) -> list[str]:
    """What the agent has changed so far."""
    return [str(write) for write in world.writes if write.before != write.after]


def test_S9_2_a_first_watch_that_is_refused_leaves_what_is_absent_known() -> None:
    with World() as world:
        world.inject("robot", UNAUTHORIZED, verb="watch", part="/goals", times=2)
        world.start()
        world.pass_time(30)
        world.cloud.create("a", spec={"x": 1})
        world.settle()
        assert set(world.robot.objects()) == {"a"}


def test_S8_3_a_restore_that_loses_what_no_event_has_told_of_is_noticed(world: World) -> None:
    world.weather[Side.CLOUD].lag = 20.0
    backup = world.cloud.snapshot()
    world.robot.set_status("a", {"phase": "DONE"})
    world.pass_time(1)
    assert original(world)["status"] == {"phase": "DONE"}
    world.cloud.restore(backup)
    world.mend("cloud")
    world.pass_time(30)
    world.settle()
    assert original(world)["status"] == {"phase": "DONE"}


def test_S5_2_a_copy_whose_end_is_heard_of_before_the_answer_that_made_it_is_made_again(world: World) -> None:
    world.cloud.create("b", spec={"x": 1})
    for _ in range(2000):
        world.pass_time(0.001)
        if "b" in world.robot.objects():
            break
    world.robot.delete("b")
    world.settle()
    assert set(world.robot.objects()) == {"a", "b"}
