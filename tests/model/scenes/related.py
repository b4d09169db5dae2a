"""Goals that refer to ConfigMaps, for tests of related objects (C5)."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from crsyncer.adapters.expressions import Expressions
from crsyncer.console.compare import lister
from crsyncer.console.compare.cluster_diff import compare
from crsyncer.core.model import Json, Side
from tests.model.scenes.config_maps import put_map
from tests.model.scenes.policies import apply_policy, senders, serve_policies
from tests.model.simulation.plane import GROUP, Plane
from tests.model.simulation.scene import scene
from tests.model.simulation.world import World
from tests.system.bed import crd

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


def refer(world: World, here: Plane, *names: str) -> None:
    """One side has ConfigMaps of these names, and a goal refers to them all."""
    for name in names:
        put_map(here, name, x="1")
    world.add("g", spec={"maps": [*names]})


def part_entry(origin: str = "cloud", **more: Any) -> Json:
    """An entry of spec.related: parts that primaries name, with their statuses."""
    return entry(origin, **{"resource": {"group": GROUP, "resource": "parts"}, "status": True, **more})


def parts_crd(**more: Any) -> Json:
    """The CRD of parts, which are not synced by themselves."""
    return crd(GROUP, plural="parts", source=None, **more)


@contextmanager
def parts(
    origin: str = "cloud", *, there: bool = True, here: bool = True, start: bool = True, **more: Any
) -> Iterator[World]:
    """A world with goals that refer to parts, which have a CRD and a status; `here`, `there`: with the subresource."""
    with scene(goals={"source": "cloud"}) as world:
        serve_policies(world.robot)
        for plane, status in zip(ends(world, origin), (here, there), strict=True):
            plane.apply(parts_crd(status=status))
        apply_policy(world.robot, related=[part_entry(origin, **more)])
        if start:
            world.start()
            world.settle()
        yield world


def ends(world: World, origin: str) -> tuple[Plane, Plane]:
    """The side of the originals, and that of the copies."""
    return (world.cloud, world.robot) if origin == "cloud" else (world.robot, world.cloud)


def explained(world: World, resource: str, name: str) -> Json:
    """What `explain` says of an object."""
    return world.order("explain", resource=resource, name=name)


def said(found: Json, rule: str) -> list[tuple[bool | None, str]]:
    """The steps that cite a rule."""
    return [(step["ok"], step["text"]) for step in found["steps"] if step["rule"] == rule]


def diff(world: World, resource: str) -> Json:
    """The row of a kind in what `diff` prints."""
    send = senders(world)
    found = asyncio.run(lister.configuration(send[Side.ROBOT], Expressions)).kinds("robot-1")
    return asyncio.run(compare(found[resource], send, kinds=found))
