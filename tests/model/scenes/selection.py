"""A kind of which an edit of its policy selects less (C1.7)."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from crsyncer.core.model import Json
from tests.model.scenes.policies import with_policy
from tests.model.simulation.scene import SOURCES, roles
from tests.model.simulation.world import World

TIER = {"selector": {"matchLabels": {"tier": "edge"}}}
MINE = {"cloudrobotics.com/robot-name": "robot-1"}
BOTH = pytest.mark.parametrize("source", SOURCES)
EDITS: dict[str, Json] = {"selector": {"filter": TIER}, "byRobotName": {"filter": {"byRobotName": True}}}
FILTERS = pytest.mark.parametrize("edit", EDITS)


@contextmanager
def kind(source: str, *, few: int, selected: int = 2, **spec: Any) -> Iterator[World]:
    """Goals with a policy: `selected` ones that each of EDITS selects as well, and `few` that none does."""
    with with_policy(kinds={"goals": {"source": source}}, **spec) as world:
        up, _ = roles(world, source)
        for number in range(selected):
            up.create(f"on{number}", spec={"x": number}, labels={"tier": "edge", **MINE})
        for number in range(few):
            up.create(f"off{number}", spec={"x": number})
        world.begin()
        yield world
        assert world.troubles == []
