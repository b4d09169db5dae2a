"""How long the agent waits before it asks again, and what ends a wait (S9.1, S10)."""

import pytest

from crsyncer.core.model import Side
from crsyncer.core.requests.calls import Call
from crsyncer.ports import Reply
from tests.model.simulation.scene import copy, original, synced
from tests.model.simulation.weather import Fate, Rule
from tests.model.simulation.world import World

A_DAY = 86_400.0
BUSY = Reply(503, {"message": "go away"}, retry_after=A_DAY)
_LONGEST = 300.0 + 60.0
"""The longest wait of a Retry-After, and what there is to do afterwards."""


def note(world: World, asked: list[float]) -> None:
    """Write down when the robot is asked to create something."""

    def matches(call: Call) -> bool:
        if call.verb == "create":
            asked.append(world.clock.now)
        return False

    world.weather[Side.ROBOT].add(Rule(matches, Fate.LOST, 1, standing=True))


def test_S9_1_a_portal_that_asks_for_a_day_is_given_five_minutes() -> None:
    for seed in range(4):
        with synced(seed) as world:
            world.inject("cloud", BUSY, times=10**6)
            world.cloud.restart()
            world.pass_time(30)
            assert world.status()["sides"]["cloud"]["state"] == "offline"
            world.mend("cloud")
            world.edit("a", spec={"x": 2}, seconds=_LONGEST)
            assert copy(world)["spec"] == {"x": 2}


@pytest.mark.parametrize("status", [429, 503])
def test_S9_1_a_write_that_is_put_off_for_a_day_is_made_after_five_minutes(world: World, status: int) -> None:
    world.inject("cloud", Reply(status, {"message": "slow down"}, retry_after=A_DAY), verb="patch")
    world.report("a", {"phase": "DONE"}, seconds=200)
    assert "status" not in original(world)
    world.pass_time(_LONGEST - 200)
    assert original(world)["status"] == {"phase": "DONE"}


def test_S9_1_a_list_that_is_put_off_for_a_day_is_made_after_five_minutes(world: World) -> None:
    world.inject("cloud", Reply(429, {"message": "storage is (re)initializing"}, retry_after=A_DAY), part="/goals")
    world.cloud.restart()
    world.edit("a", spec={"x": 2}, seconds=_LONGEST)
    assert copy(world)["spec"] == {"x": 2}


def test_S9_1_whether_a_kind_is_alive_is_asked_again_after_five_minutes(world: World) -> None:
    world.inject("cloud", Reply(429, {"message": "busy"}, retry_after=A_DAY), verb="discover")
    world.remove("a", seconds=_LONGEST)
    assert set(world.robot.objects()) == set()


@pytest.mark.parametrize("given", ["resync", "retry"])
def test_S9_1_a_command_ends_the_wait_for_a_server_that_asked_for_patience(world: World, given: str) -> None:
    world.inject("cloud", BUSY, times=10**6)
    world.cloud.restart()
    world.pass_time(20)
    world.mend("cloud")
    world.edit("a", spec={"x": 2}, seconds=20)
    assert copy(world)["spec"] == {"x": 1}
    world.order(given)
    world.pass_time(10)
    assert copy(world)["spec"] == {"x": 2}


def test_S9_1_a_command_ends_the_wait_of_a_status_that_the_cloud_has_put_off(world: World) -> None:
    world.inject("cloud", Reply(429, {"message": "slow down"}, retry_after=A_DAY), verb="patch")
    world.report("a", {"phase": "DONE"}, seconds=20)
    assert "status" not in original(world)
    world.order("retry")
    world.pass_time(2)
    assert original(world)["status"] == {"phase": "DONE"}


def test_S9_1_a_command_that_comes_while_the_cloud_is_probed_is_not_lost(world: World) -> None:
    world.inject("cloud", BUSY, times=10**6)
    world.cloud.restart()
    world.pass_time(20)
    world.mend("cloud")
    world.inject("cloud", Fate.LOST, times=1)
    world.order("resync")  # the probe that it causes is lost, and waited for
    world.pass_time(10)
    world.order("resync")
    world.pass_time(12)
    assert world.status()["sides"]["cloud"]["state"] == "connected"


@pytest.mark.parametrize("status", [401, 403])
def test_S10_a_write_that_is_not_allowed_is_tried_at_most_six_times_in_its_first_minute(status: int) -> None:
    for seed in range(6):
        with synced(seed) as world:
            asked: list[float] = []
            note(world, asked)
            world.inject("robot", Reply(status, {"message": "no"}), verb="create", times=10**6)
            world.add("b", seconds=120)
            assert 2 <= len([time for time in asked if time < asked[0] + 60]) <= 6
