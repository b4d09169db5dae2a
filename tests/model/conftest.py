"""The `world` that hazards happen in."""

from collections.abc import Iterator

import pytest

from tests.model.simulation.scene import synced
from tests.model.simulation.world import World


@pytest.fixture
def world() -> Iterator[World]:
    """As `synced`."""
    with synced() as made:
        yield made
