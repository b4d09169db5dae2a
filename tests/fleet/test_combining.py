"""What a collector shows of the rows that it took (F7.3)."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crsyncer.adapters.expressions import Expressions
from crsyncer.core.content.object_content import json_size
from crsyncer.fleet.domain.returned.cells import cell_of, shown
from crsyncer.fleet.domain.returned.collectors import Aggregate, Collector, Row, RowError, RowResult, collector_of
from crsyncer.fleet.domain.returned.combining import MOST_OBJECT_BYTES, aggregated, combine, shown_results


def collector(**spec: Any) -> Collector:
    found, errors = collector_of({"metadata": {"name": "c"}, "spec": spec}, Expressions)
    assert errors == ()
    assert found is not None
    return found


def select(*, limit: int = 20) -> Collector:
    return collector(select=[{"name": "a", "def": "'a'"}], limit=limit)


ALL = [
    {"name": "count", "type": "COUNT"},
    *({"name": name.lower(), "type": name, "subject": "1"} for name in ("SUM", "AVG", "MIN", "MAX")),
]


def rows(*values: Any) -> list[tuple[str, RowResult]]:
    return [(f"r{number:03}", Row((cell_of(value),))) for number, value in enumerate(values)]


def subjects(*values: Any, group: tuple[str, ...] = ()) -> list[tuple[str, RowResult]]:
    cells = tuple(map(cell_of, group))
    return [(f"r{number:03}", Row(cells, (1, value, value, value, value))) for number, value in enumerate(values)]


def values(document: Any) -> list[list[Any]]:
    return [[cell.get("value") for cell in row] for row in document["rows"]]


def document(of: Collector, found: Any, *, room: int = MOST_OBJECT_BYTES) -> Any:
    return shown_results([combine(of, found)], room)[0]


def test_F7_3_rows_are_sorted_and_cut_at_the_limit_and_that_is_said():
    found = document(select(limit=3), rows(5, "b", 10, "a", 9))
    assert values(found) == [["5"], ["9"], ["10"]]
    assert (found["total"], found["truncated"], found["rowErrors"]) == (5, True, [])
    whole = document(select(limit=5), rows(5, "b", 10, "a", 9))
    assert (values(whole), whole["truncated"]) == ([["5"], ["9"], ["10"], ["a"], ["b"]], False)


def test_F7_2_rows_with_an_error_are_left_out_and_ten_are_listed_by_robot():
    bad = [(f"r{number:02}", RowError("no such key")) for number in reversed(range(30))]
    found = document(select(), [*bad, *rows("a"), ("r99", None)])
    assert (values(found), found["total"], found["truncated"]) == ([["a"]], 1, False)
    assert found["rowErrors"] == [f"r{number:02}: no such key" for number in range(10)]


def test_F7_3_without_rows_and_groups_there_is_one_row():
    combined = collector(combinedFields=ALL)
    assert values(document(combined, [])) == [["0", "0", "NaN", "+Inf", "-Inf"]]
    assert values(document(combined, [("r1", None), ("r2", RowError("x"))])) == [["0", "0", "NaN", "+Inf", "-Inf"]]
    grouped = collector(combinedFields=ALL, groupBy=[{"name": "g", "def": "'x'"}])
    assert values(document(grouped, [])) == []
    assert document(grouped, [])["columns"] == ["g", "count", "sum", "avg", "min", "max"]


def test_F7_3_rows_are_combined_by_group():
    grouped = collector(combinedFields=ALL, groupBy=[{"name": "g", "def": "'x'"}])
    found = document(grouped, [*subjects(1, 2, 6, group=("b",)), *subjects(2.5, group=("a",))])
    assert values(found) == [["a", "1", "2.5", "2.5", "2.5", "2.5"], ["b", "3", "9", "3", "1", "6"]]
    assert found["total"] == 2


@pytest.mark.parametrize(
    ("numbers", "found"),
    [
        ([2**63 - 1, 2**63 - 1, 5], ["3", "18446744073709551619", "6.148914691236517e+18", "5", "9223372036854775807"]),
        ([0.1] * 10, ["10", "1", "0.1", "0.1", "0.1"]),
        ([1e308, 1e308], ["2", "+Inf", "1e+308", "1e+308", "1e+308"]),
        ([-1e308, -1e308, -1e308], ["3", "-Inf", "-1e+308", "-1e+308", "-1e+308"]),
        ([1.0, math.nan], ["2", "NaN", "NaN", "NaN", "NaN"]),
        ([math.inf, 1], ["2", "+Inf", "+Inf", "1", "+Inf"]),
        ([math.inf, -math.inf], ["2", "NaN", "NaN", "-Inf", "+Inf"]),
        ([1, 1.0, 2.5], ["3", "4.5", "1.5", "1", "2.5"]),
    ],
)
def test_F7_3_aggregates_are_exact_where_they_can_be(numbers, found):
    assert values(document(collector(combinedFields=ALL), subjects(*numbers))) == [found]


NUMBERS = st.integers(-(2**63), 2**64 - 1) | st.floats()


@given(st.lists(NUMBERS, min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_F7_3_aggregates_do_not_depend_on_the_order_of_robots(numbers, random):
    mixed = list(numbers)
    random.shuffle(mixed)
    for each in Aggregate:
        assert shown(cell_of(aggregated(each, numbers))) == shown(cell_of(aggregated(each, mixed)))


CELLS = st.one_of(st.none(), st.booleans(), NUMBERS, st.text(max_size=8), st.lists(st.integers(0, 9), max_size=3))


@given(st.lists(CELLS, max_size=12), st.integers(1, 5), st.randoms(use_true_random=False))
def test_F7_3_what_is_shown_does_not_depend_on_the_order_of_robots(cells, limit, random):
    found = rows(*cells)
    before = document(select(limit=limit), found)
    random.shuffle(found)
    assert document(select(limit=limit), found) == before
    assert len(before["rows"]) == min(limit, len(cells))


def test_F7_3_an_object_that_would_be_too_large_is_cut_and_says_so():
    wide = collector(select=[{"name": f"c{number}", "def": "'a'"} for number in range(20)], limit=500)
    cells = tuple(cell_of("<" * 1024) for _ in range(20))
    big = combine(wide, [(f"r{number}", Row(cells)) for number in range(400)])
    small = combine(select(), rows("a"))
    made = shown_results([small, big, small], MOST_OBJECT_BYTES)
    assert [each["truncated"] for each in made] == [False, True, False]
    assert [each["total"] for each in made] == [1, 400, 1]
    assert MOST_OBJECT_BYTES - 25_000 < json_size(made) <= MOST_OBJECT_BYTES
    assert len(json.dumps(made).replace("<", "\\u003c")) < 1.53e6


@given(st.lists(st.integers(0, 30), max_size=3), st.integers(300, 2000))
def test_F7_3_an_object_never_has_more_bytes_than_there_is_room_for(sizes, room):
    made = shown_results([combine(select(), rows(*["x" * 40] * size)) for size in sizes], room)
    assert json_size(made) <= max(room, json_size(shown_results([combine(select(), [])] * len(sizes), 0)) + 50)
    assert all(each["truncated"] is (len(each["rows"]) < each["total"]) for each in made)
    needed = [json_size(each["rows"]) for each in made]
    whole = shown_results([combine(select(), rows(*["x" * 40] * size)) for size in sizes], MOST_OBJECT_BYTES)
    share = (room - json_size(shown_results([combine(select(), [])] * len(sizes), 0))) // max(1, len(sizes)) - 50
    assert all(
        found == json_size(each["rows"])
        for found, each in zip(needed, whole, strict=True)
        if json_size(each["rows"]) <= share
    )
