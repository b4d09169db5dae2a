"""Goals that refer to ConfigMaps, for tests of related objects (C5)."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from crsyncer.core.model import Json
from tests.model.plane import Plane
from tests.model.policies import apply_policy, serve_policies
from tests.model.scene import scene
from tests.model.world import World

BOTH = pytest.mark.parametrize("origin", ["cloud", "robot"])
MAPS = {"group": "", "resource": "configmaps"}
EDGE = {"selector": {"matchLabels": {"tier": "edge"}}}


def entry(origin: str = "cloud", **more: Any) -> Json:
    """An entry of spec.related: ConfigMaps that primaries name."""
    return {"id": "maps", "origin": origin, "resource": MAPS, "object": {"reference": "/spec/maps/*"}, **more}


@contextmanager
def related(origin: str = "cloud", *, source: str = "cloud", start: bool = True, **more: Any) -> Iterator[World]:
    """A world with goals that refer to ConfigMaps."""
    with scene(goals={"source": source}) as world:
        serve_policies(world.robot)
        apply_policy(world.robot, related=[entry(origin, **more)])
        if start:
            world.start()
            world.settle()
        yield world


def ends(world: World, origin: str) -> tuple[Plane, Plane]:
    """The side of the originals, and that of the copies."""
    return (world.cloud, world.robot) if origin == "cloud" else (world.robot, world.cloud)
