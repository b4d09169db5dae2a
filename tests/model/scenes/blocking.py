"""Blocking deletion in the made-up world (C6)."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from crsyncer.core.content.annotations import OURS
from crsyncer.core.model import Json
from crsyncer.core.requests.calls import JSON_PATCH
from tests.model.scenes.policies import apply_policy, serve_policies
from tests.model.simulation.journal import Request
from tests.model.simulation.plane import Plane
from tests.model.simulation.scene import scene
from tests.model.simulation.world import World

MINE = OURS + "robot-robot-1"
"""The finalizer of the world's robot."""
LOCAL = "example.com/wait"
"""A finalizer of somebody else."""


@contextmanager
def blocking(*, source: str = "cloud", grace: str = "1h", seed: int = 0, **kind: Any) -> Iterator[World]:
    """A world with one kind, goals, whose upstream objects wait for their copies; `kind` are keywords of `bed.crd`."""
    with scene(seed, goals={"source": source, **kind}) as world:
        serve_policies(world.robot)
        block(world, grace=grace)
        yield world


def block(world: World, *, mode: str = "blocking", grace: str = "1h", **spec: Any) -> None:
    """Create or replace the policy of goals."""
    apply_policy(world.robot, deletion={"mode": mode, "gracePeriod": grace}, **spec)


def finalizers(plane: Plane, name: str = "a") -> list[str]:
    """The finalizers of an object."""
    found: Json = plane.objects()[name]["metadata"]
    return list(found.get("finalizers") or [])


def patches(world: World, *, op: str = "") -> list[Request]:
    """The patches of finalizers, or those with an operation."""
    sent = [each for each in world.journal.asked(verb="patch") if each.call.content_type == JSON_PATCH]
    return [
        each
        for each in sent
        if any(o["path"].startswith("/metadata/finalizers") and op in ("", o["op"]) for o in each.call.body)
    ]


def finalizer_rows(world: World) -> list[Json]:
    """What `pending list` shows of finalizers."""
    return [row for row in world.order("pending")["pending"] if row["what"] == "finalizer"]


def codes(world: World) -> dict[str, str]:
    """The reasons that `status` gives, with their messages."""
    return {reason["code"]: reason["message"] for reason in world.status()["reasons"]}
