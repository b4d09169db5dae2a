"""Random histories of the controller, and a kill at every message: nothing is lost, nothing is done twice."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.fleet_model.controlling import control
from tests.fleet_model.fleet_world import FleetWorld

_ROOT = Path(__file__).parents[2]


def histories(program: str = "tests.fleet_model", *, to: int) -> None:
    """Run these many. In a process of their own, for the order of sets is part of a history."""
    command = [sys.executable, "-m", program, "--to", str(to), "--stop"]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_random_histories_of_a_fleet_do_nothing_that_must_never_happen() -> None:
    histories(to=30)


def test_F10_3_random_histories_of_shared_sources_do_nothing_that_must_never_happen() -> None:
    histories("tests.fleet_model.sharing_machine", to=10)


@pytest.mark.nightly
def test_five_thousand_random_histories_of_a_fleet_do_nothing_that_must_never_happen() -> None:
    histories(to=5000)
    histories("tests.fleet_model.sharing_machine", to=2000)


def _killed_after(messages: int) -> list[str]:
    """Every leader is killed so many messages after it began to lead, until all is done; what was written of goals."""
    with FleetWorld(control, messages) as world:
        world.robots("r1", "r2", "r3")
        world.source("dock")
        world.source("lift")
        world.place("p")
        _lead_and_die(world, messages)
        world.start("a")
        world.agree()
        world.cloud.set("dock", spec={"x": 2})
        world.cloud.delete("lift")
        world.pass_time(1)
        world.kill()
        _lead_and_die(world, messages)
        world.start("a")
        world.agree()
        assert world.specs() == {f"robot-{robot}/dock": {"x": 2} for robot in ("r1", "r2", "r3")}
        return [f"{each.verb} {each.namespace}/{each.name}" for each in world.written(resource="goals")]


def _lead_and_die(world: FleetWorld, messages: int) -> None:
    for _ in range(3):
        world.start("a")
        while not world.leaders:
            world.pass_time(0.5)
        world.kill_after(messages)
        world.pass_time(10)
        world.kill()


@pytest.mark.parametrize("first", range(20, 220, 20))
def test_F3_3_F6_3_a_leader_that_is_killed_at_any_message_loses_nothing_and_does_nothing_twice(first: int) -> None:
    places = [f"robot-{robot}" for robot in ("r1", "r2", "r3")]
    creations = [f"create {place}/{name}" for place in places for name in ("dock", "lift")]
    edits = [f"{what} {place}/{name}" for place in places for what, name in (("patch", "dock"), ("delete", "lift"))]
    for messages in range(first, first + 20, 3):
        assert sorted(_killed_after(messages)) == sorted(creations + edits), messages
