"""How many objects a page of a list asks for, after what came before."""

from hypothesis import example, given
from hypothesis import strategies as st

from crsyncer.core.watching.pages import FIRST, PageLimit
from tests.core.builders import many

MIB = 1024 * 1024
pages = st.tuples(st.integers(0, 1000), st.integers(0, 64 * MIB), st.floats(0, 600))


@many
@given(st.lists(st.one_of(pages, st.none()), max_size=20))
@example([(1, 64 * MIB, 600.0)])
@example([None] * 10)
def test_S9_4_a_page_always_asks_for_one_object_at_least_and_never_for_more_than_five_hundred(events):
    limit = PageLimit()
    for event in events:
        before = limit.limit
        if event is None:
            assert limit.halve() == (before > 1)
            assert limit.limit == max(1, before // 2)
        else:
            limit.arrived(*event)
            assert limit.limit <= 2 * before
        assert 1 <= limit.limit <= 500


def settled(weight: int, *, bytes_per_second: float) -> int:
    """The limit after some pages of objects of this weight, on a line of this width."""
    limit = PageLimit()
    for _ in range(20):
        size = limit.limit * weight
        limit.arrived(limit.limit, size, size / bytes_per_second)
    return limit.limit


def test_S9_4_on_a_wide_line_pages_become_as_large_as_a_mebibyte_and_no_larger():
    assert settled(2_200, bytes_per_second=100 * MIB) == 476
    assert settled(100_000, bytes_per_second=100 * MIB) == 10
    assert settled(1_500_000, bytes_per_second=100 * MIB) == 1
    assert settled(100, bytes_per_second=100 * MIB) == 500


def test_S9_4_on_a_thin_line_pages_take_half_a_minute_where_they_are_still_worth_compressing():
    assert settled(2_200, bytes_per_second=8_000) == 109
    assert settled(2_200, bytes_per_second=2_000) == 74
    assert settled(500_000, bytes_per_second=2_000) == 1


def test_an_empty_page_teaches_nothing():
    limit = PageLimit()
    limit.arrived(0, 300, 60.0)
    assert limit.limit == FIRST
