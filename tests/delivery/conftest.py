"""The bed of the system tests, for what is shown of a running agent."""

from tests.system.conftest import make_bed

__all__ = ["make_bed"]
