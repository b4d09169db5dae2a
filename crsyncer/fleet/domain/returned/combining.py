"""The result of a collector: rows that are sorted, combined and cut (F7.3)."""

import heapq
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import assert_never

from crsyncer.core.content.object_content import json_size
from crsyncer.core.model import Json
from crsyncer.fleet.domain.returned.cells import Cell, Number, cell_of, order, shown
from crsyncer.fleet.domain.returned.collectors import Aggregate, Collector, Row, RowError, RowResult

MOST_ROW_ERRORS = 10
MOST_OBJECT_BYTES = 256 << 10
"""Of a CombinedStatus: in etcd, where each `<` takes six bytes, it has at most 1.53 MB (m)."""
_EMPTY: Mapping[Aggregate, Number] = {
    Aggregate.COUNT: 0,
    Aggregate.SUM: 0,
    Aggregate.AVG: math.nan,
    Aggregate.MIN: math.inf,
    Aggregate.MAX: -math.inf,
}
"""Of no rows."""


@dataclass(frozen=True, slots=True)
class Result:
    """What one collector shows: rows in their order, cut at its limit."""

    collector: Collector
    rows: tuple[tuple[Cell, ...], ...]
    total: int
    errors: tuple[str, ...]


def combine(collector: Collector, found: Iterable[tuple[str, RowResult]]) -> Result:
    """The result of a collector, from what it took from each robot; the order of robots does not count."""
    rows: list[Row] = []
    errors: list[str] = []
    for robot, each in found:
        match each:
            case None:
                pass
            case RowError():
                errors.append(f"{robot}: {each}")
            case _:
                rows.append(each)
    combined = _combined(collector, rows) if collector.combines else [each.cells for each in rows]
    first = heapq.nsmallest(collector.limit, combined, key=lambda cells: [order(cell) for cell in cells])
    return Result(collector, tuple(first), len(combined), tuple(heapq.nsmallest(MOST_ROW_ERRORS, errors)))


def _combined(collector: Collector, rows: Iterable[Row]) -> list[tuple[Cell, ...]]:
    groups: dict[tuple[Cell, ...], list[tuple[Number, ...]]] = defaultdict(list)
    for row in rows:
        groups[row.cells].append(row.numbers)
    if not groups and not collector.cells:
        return [tuple(cell_of(_EMPTY[each]) for each in collector.aggregates)]
    return [
        (*group, *map(cell_of, map(aggregated, collector.aggregates, zip(*numbers, strict=True))))
        for group, numbers in groups.items()
    ]


def aggregated(aggregate: Aggregate, numbers: Sequence[Number]) -> Number:
    """One number for those of a group, the same in whatever order they come. NaN among them makes it NaN."""
    match aggregate:
        case Aggregate.COUNT:
            return len(numbers)
        case Aggregate.SUM:
            return total(numbers)
        case Aggregate.AVG:
            return total(numbers, parts=len(numbers))
        case Aggregate.MIN | Aggregate.MAX:
            if any(math.isnan(each) for each in numbers):
                return math.nan
            # Of equal numbers the integer, as the order of rows is not to show.
            best = min(numbers) if aggregate is Aggregate.MIN else max(numbers)
            return min((each for each in numbers if each == best), key=lambda each: isinstance(each, float))
        case _:
            assert_never(aggregate)


def total(numbers: Sequence[Number], *, parts: int = 1) -> Number:
    """The sum, of floats rounded once, divided by `parts`. Integers alone have an integer, unless they are divided."""
    endless = [each for each in numbers if not math.isfinite(each)]
    if endless:
        return sum(endless)
    if all(isinstance(each, int) for each in numbers):
        return sum(numbers) if parts == 1 else sum(numbers) / parts
    try:
        return math.fsum(numbers) / parts
    except OverflowError:
        return _rounded(sum(map(Fraction, numbers), Fraction()) / parts)


def _rounded(exact: Fraction) -> float:
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def shown_results(results: Sequence[Result], room: int) -> list[Json]:
    """The results as they are in the object. Rows for which there is no room are left out, and that is said.

    One that needs no more than an equal share of the room has all its rows, however much the others would need.
    """
    made = [_shown(each) for each in results]
    rows = [[[shown(cell) for cell in cells] for cells in each.rows] for each in results]
    sizes = [[json_size(row) + 1 for row in each] for each in rows]
    room -= json_size(made)
    smallest = sorted(range(len(made)), key=lambda place: sum(sizes[place]))
    for done, place in enumerate(smallest):
        ends = accumulate(sizes[place])
        fitting = sum(1 for end in ends if end <= room // (len(made) - done))
        made[place] |= {"rows": rows[place][:fitting], "truncated": fitting < results[place].total}
        room -= sum(sizes[place][:fitting])
    return made


def _shown(result: Result) -> Json:
    return {
        "collector": result.collector.name,
        "columns": list(result.collector.columns),
        "rows": [],
        "total": result.total,
        "truncated": False,
        "rowErrors": list(result.errors),
    }
