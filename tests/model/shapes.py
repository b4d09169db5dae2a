"""What a SyncPolicy asks for, in the made-up world."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from typing import Any
from unittest.mock import patch

from crsyncer.adapters.expressions import Expressions
from crsyncer.core.kind_policy import KindPolicy, read_policy
from crsyncer.core.model import Json
from crsyncer.core.mutate import shape_of
from crsyncer.core.shape import AS_RECEIVED, Shape
from crsyncer.core.sync_policy import read_sync_policy
from crsyncer.engine import kinds
from tests.core.sync_policies import MINIMAL, edited
from tests.model.scene import scene
from tests.model.world import World

_SHAPES: dict[str, Shape] = {}
_EDITS = count()


def _read(crd: Json, robot: str, **more: Any) -> KindPolicy | None:
    policy = read_policy(crd, robot, **more)
    return None if policy is None else replace(policy, shape=_SHAPES.get(policy.plural, AS_RECEIVED))


@contextmanager
def read_with_shapes() -> Iterator[None]:
    """A CRD that is read inside has the shape of its policy."""
    with patch.object(kinds, "read_policy", _read):
        yield
    _SHAPES.clear()


@contextmanager
def shaped(*, source: str = "cloud", seed: int = 0, down: Any = (), up: Any = (), **kind: Any) -> Iterator[World]:
    """A world with one kind and a policy for it."""
    conflict = kind.pop("conflict", "upstream")
    with read_with_shapes(), scene(seed, goals={"source": source, **kind}) as world:
        apply_policy(world, down=down, up=up, conflict=conflict)
        yield world


def apply_policy(world: World, *, down: Any = (), up: Any = (), conflict: str = "upstream") -> None:
    """Create or replace the policy of goals."""
    spec = edited(MINIMAL, "spec", "mutations", value={"down": [*down], "up": [*up]})
    policy = read_sync_policy(edited(spec, "spec", "conflict", value=conflict))
    _SHAPES["goals"] = shape_of(
        policy.mutations, keep_local=bool(policy.keep_local), robot=world.settings.robot, expressions=Expressions()
    )
    world.robot.annotate_kind({"edit": str(next(_EDITS))})


def drop_policy(world: World) -> None:
    """Delete the policy of goals."""
    _SHAPES.clear()
    world.robot.annotate_kind({"edit": str(next(_EDITS))})
