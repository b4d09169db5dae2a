"""Scenes in the made-up world, and what there is to be seen in them."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from crsyncer.core.model import Json
from tests.model.check import Checker, specs
from tests.model.plane import Plane
from tests.model.world import World

SOURCES = ("cloud", "robot")
"""Where specs come from."""


@contextmanager
def scene(seed: int = 0, **kinds: Mapping[str, Any]) -> Iterator[World]:
    """A world in which nothing may happen that must never happen, whatever else a test asserts."""
    with World(seed, kinds=kinds or None) as made:
        checker = Checker(made, specs(made.kinds))
        yield made
        wrong = checker.violations + made.troubles
        assert wrong == [], "\n".join(map(str, wrong))


@contextmanager
def synced(seed: int = 0) -> Iterator[World]:
    """One unfiltered kind, spec from the cloud; the agent runs, and has made the copy of a."""
    with scene(seed) as made:
        made.start()
        made.cloud.create("a", spec={"x": 1})
        made.settle()
        yield made


def copy(world: World, name: str = "a") -> Json:
    """The robot's object."""
    return world.robot.objects()[name]


def original(world: World, name: str = "a") -> Json:
    """The cloud's object."""
    return world.cloud.objects()[name]


def changes(world: World) -> list[str]:
    """What the agent has changed so far."""
    return [str(write) for write in world.writes if write.before != write.after]


def restart(world: World, *, kill: bool = False) -> None:
    """The agent is stopped, or killed, and started."""
    if kill:
        world.crash()
    else:
        world.stop()
    world.start()
    world.settle()


def settle(*worlds: World, seconds: float = 600.0) -> None:
    """Let the agents of worlds that share a cloud go on until none has anything left to do; raises AssertionError."""
    deadline = worlds[0].clock.now + seconds
    done = -1
    while done != (done := sum(len(world.writes) for world in worlds)):
        assert worlds[0].clock.now < deadline, f"not settled within {seconds} s"
        for world in worlds:
            world.settle(seconds=seconds)


def roles(world: World, source: str) -> tuple[Plane, Plane]:
    """Upstream and downstream."""
    return (world.cloud, world.robot) if source == "cloud" else (world.robot, world.cloud)


def row(world: World, plural: str = "goals") -> dict[str, Any] | None:
    """A kind's row in `status`; None when it has none."""
    return next((k for k in world.status()["kinds"] if k["resource"].startswith(f"{plural}.")), None)


def state(world: World, plural: str = "goals") -> str:
    """What `status` calls a kind's state; "" where it has no row."""
    found = row(world, plural)
    return "" if found is None else str(found["state"])
