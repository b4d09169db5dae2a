"""The bed of the system tests, for what is shown of a running agent; packages and images that are built once."""

from pathlib import Path

import pytest

from tests.delivery.built import built_deb, built_image
from tests.system.conftest import make_bed

__all__ = ["make_bed"]


@pytest.fixture(scope="session")
def deb() -> Path:
    """The agent's package of this commit; built where nobody has."""
    return built_deb()


@pytest.fixture(scope="session")
def image(deb: Path) -> str:
    """The agent's image of that package, and beside it the door's; built where nobody has."""
    return built_image(deb)
