"""Policies with steps or local fields, in the made-up world."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from crsyncer.core.model import Json
from tests.model.scenes.policies import apply_policy, delete_policy, serve_policies
from tests.model.simulation.scene import scene
from tests.model.simulation.world import World


@contextmanager
def shaped(
    *,
    source: str = "cloud",
    seed: int = 0,
    down: Sequence[Json] = (),
    up: Sequence[Json] = (),
    conflict: str = "upstream",
    **kind: Any,
) -> Iterator[World]:
    """A world with one kind, goals, and a policy for it; `kind` are keywords of `bed.crd`."""
    with scene(seed, goals={"source": source, **kind}) as world:
        serve_policies(world.robot)
        reshape(world, down=down, up=up, conflict=conflict)
        yield world


def reshape(world: World, *, down: Sequence[Json] = (), up: Sequence[Json] = (), conflict: str = "upstream") -> None:
    """Create or replace the policy of goals."""
    apply_policy(world.robot, mutations={"down": [*down], "up": [*up]}, conflict=conflict)


def unshape(world: World) -> None:
    """Delete the policy of goals."""
    delete_policy(world.robot)


def setting(value: Any, path: str = "/spec/mode") -> Json:
    """A step."""
    return {"path": path, "set": {"value": value}}


def at_most(maximum: int) -> Json:
    """A schema in which spec.x and status.n have a limit."""
    limited = {"type": "integer", "maximum": maximum}
    parts = {"spec": {"x": limited}, "status": {"n": limited}}
    properties = {name: {"type": "object", "properties": inner} for name, inner in parts.items()}
    return {"type": "object", "properties": properties}
