"""Worlds whose copies have names of their own."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from crsyncer.core.content.annotations import OURS
from crsyncer.core.kinds.namespaces import Namespaces
from crsyncer.core.model import Json
from tests.model.scenes.policies import apply_policy, serve_policies
from tests.model.simulation.life import AgentSettings
from tests.model.simulation.plane import Plane
from tests.model.simulation.scene import SOURCES
from tests.model.simulation.world import World

BOTH = pytest.mark.parametrize("source", SOURCES)
PREFIXED: Json = {"name": "{robot}-{name}"}
ELSEWHERE: Json = {"namespace": "copies", "name": "{namespace}-{name}"}
UID = f"{OURS}upstream-uid"
KEYS = [f"{OURS}upstream-{what}" for what in ("cluster", "namespace", "name")]


@contextmanager
def named(
    naming: Mapping[str, str] = PREFIXED, *, namespaces: Namespaces | None = None, **kind: Any
) -> Iterator[World]:
    """A world with one kind, goals, whose copies have names of their own; `kind` are keywords of `bed.crd`."""
    settings = AgentSettings() if namespaces is None else AgentSettings(namespaces=namespaces)
    with World(kinds={"goals": kind}, settings=settings) as world:
        serve_policies(world.robot)
        rename(world, naming)
        yield world
        assert world.troubles == []


def rename(world: World, naming: Mapping[str, str] | None) -> None:
    """Copies that are made from now on are called so."""
    spec: dict[str, Any] = {} if naming is None else {"naming": dict(naming)}
    apply_policy(world.robot, **spec)


def written(world: World) -> list[str]:
    """What the agent has written of goals so far: verb and name."""
    made = [write for write in world.writes if write.resource.startswith("goals.") and write.status < 300]
    return [f"{write.verb} {write.name}" for write in made]


def uid(plane: Plane, name: str, namespace: str = "") -> str:
    """An object's uid."""
    return str(plane.objects(namespace=namespace)[name]["metadata"]["uid"])
