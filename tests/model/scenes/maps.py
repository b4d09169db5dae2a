"""Worlds whose agent has a namespace map."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from crsyncer.core.kinds.namespaces import Namespaces
from crsyncer.core.model import Side
from tests.model.simulation.life import AgentSettings
from tests.model.simulation.world import World

HOME = Namespaces(("robot-r1",), ("default",))
HOUR = 3600.0


@contextmanager
def mapped(namespaces: Namespaces = HOME, **kind: Any) -> Iterator[World]:
    """A world whose agent has a map; one kind. Verbs about no namespace are about the first of the map."""
    with World(kinds={"goals": kind}, settings=AgentSettings(namespaces=namespaces)) as world:
        yield world
        assert world.troubles == []


def remap(world: World, namespaces: Namespaces) -> None:
    """The agent is started again with another map."""
    world.stop()
    world.settings = replace(world.settings, namespaces=namespaces)
    for side in Side:
        for name in namespaces.on(side):
            world.planes[side].make_namespace(name)
    world.start()
    world.pass_time(60)
