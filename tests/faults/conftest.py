"""The bed of the system tests, for faults that no rule is about."""

from tests.system.conftest import bed, make_bed

__all__ = ["bed", "make_bed"]
