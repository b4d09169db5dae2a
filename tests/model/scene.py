"""Scenes in the made-up world, and what there is to be seen in them."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from crsyncer.core.model import Json
from tests.model.check import Checker, specs
from tests.model.world import World


@contextmanager
def scene(seed: int = 0, **kinds: Mapping[str, Any]) -> Iterator[World]:
    """A world in which nothing may happen that must never happen, whatever else a test asserts."""
    with World(seed, kinds=kinds or None) as made:
        checker = Checker(made, specs(made.kinds))
        yield made
        assert checker.violations + made.troubles == []


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
