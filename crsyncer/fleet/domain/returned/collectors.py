"""StatusCollectors: how they are read and compiled, and what one makes of a row (F7.2 to F7.4)."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from crsyncer.core.content.fields import Fields, Text, fields_at, wrong
from crsyncer.core.content.mutation import Bound, ExpressionError, Expressions, Program
from crsyncer.core.model import Json
from crsyncer.errors import ConfigError, SyncError
from crsyncer.fleet.domain.returned.cells import Cell, Number, cell_of, cut, text_cell
from crsyncer.fleet.domain.returned.variables import FIXED, VARIABLES

MOST_RESULT = 1 << 18
"""Characters and items of one result: more is an error before it uses up memory."""
MOST_COLLECTOR_ERRORS = 20
_MOST_ERROR_BYTES = 256
_EXPRESSION = Text(2048, 1)
_NAME = Text(63)
_COLLECTOR = ("filter", "select", "groupBy", "combinedFields", "limit")
_MOST_LIMIT, _LIMIT = 500, 20


class Aggregate(StrEnum):
    """How a combined field is computed."""

    COUNT = "COUNT"
    SUM = "SUM"
    AVG = "AVG"
    MIN = "MIN"
    MAX = "MAX"


@dataclass(frozen=True, slots=True)
class Collector:
    """A StatusCollector that can be used. Without `fields`, each row is shown by itself."""

    name: str
    columns: tuple[str, ...]
    filter: Program | None
    cells: tuple[Program, ...]
    """The columns of `select`, or of `groupBy`."""
    aggregates: tuple[Aggregate, ...] = ()
    subjects: tuple[Program | None, ...] = ()
    """What each of the aggregates is of; None: COUNT."""
    limit: int = _LIMIT
    uses: frozenset[str] = frozenset()
    """The variables that it depends on."""

    @property
    def evaluates(self) -> bool:
        """Whether it has an expression at all: a lone COUNT has none."""
        return bool(self.filter is not None or self.cells or any(self.subjects))

    @property
    def combines(self) -> bool:
        """Whether rows are combined."""
        return bool(self.aggregates)


class Row(NamedTuple):
    """What a collector took from one replica."""

    cells: tuple[Cell, ...]
    numbers: tuple[Number, ...] = ()
    """The subjects of the aggregates, 1 for COUNT."""


class RowError(str):
    """Why a row is left out."""

    __slots__ = ()


RowResult = Row | RowError | None
"""None: the filter leaves the row out."""


def collector_of(raw: Json, expressions: Callable[[], Expressions]) -> tuple[Collector | None, tuple[str, ...]]:
    """The StatusCollector in an object, and a line for each thing that is wrong; None: it cannot be used."""
    errors: list[str] = []
    found: Collector | None = None
    try:
        found = _Reader(raw["metadata"]["name"], expressions(), errors).collector(
            fields_at("spec", raw.get("spec"), _COLLECTOR)
        )
    except ConfigError as error:
        errors.append(error_text(error))
    lines = tuple(dict.fromkeys(cut(line, _MOST_ERROR_BYTES) for line in errors))
    return (None if lines else found), lines[:MOST_COLLECTOR_ERRORS]


def error_text(error: SyncError) -> str:
    """An error in one line, with its hint."""
    return f"{error}; {error.hint}" if error.hint else str(error)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads one StatusCollector, and goes on where an expression is wrong."""

    name: str
    expressions: Expressions
    errors: list[str]

    def collector(self, spec: Fields) -> Collector:
        if ("select" in spec) == ("combinedFields" in spec):
            raise ConfigError(f"{spec.place} needs exactly one of select and combinedFields")
        if "groupBy" in spec and "combinedFields" not in spec:
            raise ConfigError(f"{spec.at('groupBy')} needs {spec.at('combinedFields')}")
        limit = spec.content.get("limit", _LIMIT)
        if not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= _MOST_LIMIT:
            raise wrong(spec.at("limit"), limit, f"1 to {_MOST_LIMIT}")
        filter_ = self._program(spec, "filter") if "filter" in spec else None
        columns, cells = self._columns(spec, "select", 20) if "select" in spec else self._columns(spec, "groupBy", 5)
        items = [fields_at(*item, ("name", "type", "subject")) for item in spec.items("combinedFields", 20)]
        aggregates = tuple(each.choice("type", {one.value: one for one in Aggregate}) for each in items)
        subjects = tuple(self._subject(*each) for each in zip(items, aggregates, strict=True))
        return Collector(
            name=self.name,
            columns=(*columns, *(each.text("name", _NAME) for each in items)),
            filter=filter_,
            cells=cells,
            aggregates=aggregates,
            subjects=subjects,
            limit=limit,
            uses=frozenset(
                name for each in (filter_, *cells, *subjects) if each is not None for name in each.uses(FIXED)
            ),
        )

    def _columns(self, spec: Fields, name: str, most: int) -> tuple[tuple[str, ...], tuple[Program, ...]]:
        items = [fields_at(*item, ("name", "def")) for item in spec.items(name, most)]
        programs = [self._program(each, "def") for each in items]
        return tuple(each.text("name", _NAME) for each in items), tuple(each for each in programs if each is not None)

    def _subject(self, item: Fields, aggregate: Aggregate) -> Program | None:
        if (aggregate is Aggregate.COUNT) == ("subject" in item):
            raise ConfigError(f"{item.place}: COUNT has no subject, the other types need one")
        return None if aggregate is Aggregate.COUNT else self._program(item, "subject")

    def _program(self, fields: Fields, name: str) -> Program | None:
        """An expression; None: it does not compile, and the error is told."""
        text = fields.text(name, _EXPRESSION)
        try:
            return self.expressions.program(text, VARIABLES)
        except (ExpressionError, ConfigError) as error:
            self.errors.append(f"{fields.at(name)}: {error_text(error)}")
            return None


def evaluate(collector: Collector, bound: Bound) -> RowResult:
    """What a collector takes from one replica. An error in a cell of `select` is shown there (F7.2)."""
    try:
        if collector.filter is not None and not _holds(collector.filter, bound):
            return None
        cells = tuple(_cell(each, bound, shows_errors=not collector.combines) for each in collector.cells)
        return Row(cells, tuple(1 if each is None else _number(each, bound) for each in collector.subjects))
    except (ExpressionError, ValueError) as error:
        return row_error(error)


def row_error(error: Exception) -> RowError:
    """Why a row is left out, in a line."""
    return RowError(cut(str(error), _MOST_ERROR_BYTES))


def _holds(program: Program, bound: Bound) -> bool:
    found = program.result(bound, most=MOST_RESULT)
    if isinstance(found, bool):
        return found
    raise ValueError(f"the filter is a {type(found).__name__}, and no boolean")


def _cell(program: Program, bound: Bound, *, shows_errors: bool) -> Cell:
    try:
        return cell_of(program.result(bound, most=MOST_RESULT), cuts=shows_errors)
    except (ExpressionError, ValueError) as error:
        if not shows_errors:
            raise
        return text_cell(str(error))


def _number(program: Program, bound: Bound) -> Number:
    found = program.result(bound, most=MOST_RESULT)
    if isinstance(found, int | float) and not isinstance(found, bool):
        return found
    raise ValueError(f"the subject is a {type(found).__name__}, and no number")
