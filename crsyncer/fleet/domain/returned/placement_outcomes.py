"""The expressions of one placement, and what they made of its replicas: values without an event (F7)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from crsyncer.core.content.mutation import Bound, ExpressionError, Expressions, Program
from crsyncer.errors import ConfigError
from crsyncer.fleet.domain.returned.collectors import (
    MOST_RESULT,
    Collector,
    RowResult,
    error_text,
    evaluate,
    row_error,
)
from crsyncer.fleet.domain.returned.variables import FIXED, INVENTORY, OBJ, PROPAGATION, RETURNED, VARIABLES
from crsyncer.fleet.domain.values import Placement, ReplicaKey, SourceKey

_REPLICAS = frozenset({RETURNED, PROPAGATION})
_OTHERS = frozenset({OBJ, INVENTORY, PROPAGATION})
ReadCollector = tuple[Collector | None, tuple[str, ...]]
"""A StatusCollector that was read (None: it cannot be used), and its errors."""


class Outcome(NamedTuple):
    """What was made of one replica for one placement."""

    ready: bool
    rows: tuple[RowResult, ...]
    """By collector; (): not known since the collectors were edited."""


@dataclass(slots=True)
class Outcomes:
    """The expressions of one placement, and the outcomes that are known."""

    uid: str
    ready_when: str = ""
    names: tuple[str, ...] = ()
    """The collectors."""
    program: Program | None = None
    problem: str = ""
    """Why `readyWhen` cannot be used; empty: it can, or there is none."""
    collectors: tuple[Collector | None, ...] = ()
    """None: it is missing, or cannot be used."""
    uses: frozenset[str] = frozenset()
    """The variables that an expression depends on, but for what is fixed in them."""
    selected: Mapping[SourceKey, object] = field(default_factory=dict)
    """The index's own sources of the placement, which it changes in place."""
    sources: frozenset[str] = frozenset()
    """Their SOURCEIDs when they were looked at last."""
    known: dict[ReplicaKey, Outcome] = field(default_factory=dict)

    @property
    def reads(self) -> bool:
        """Whether outcomes depend on what a replica says."""
        return bool(self.uses & _REPLICAS)

    @property
    def keeps(self) -> bool:
        """Whether what a replica says is needed again without an event of the replica."""
        return self.reads and bool(self.uses & _OTHERS)

    def take_up(self, placement: Placement, expressions: Callable[[], Expressions]) -> tuple[bool, bool]:
        """Take up the expressions of a placement. Whether `readyWhen` and whether the collectors were edited."""
        ready, rows = self.ready_when != placement.ready_when, self.names != placement.collectors
        self.ready_when, self.names = placement.ready_when, placement.collectors
        if ready:
            self.program, self.problem = None, ""
            try:
                self.program = expressions().program(self.ready_when, VARIABLES) if self.ready_when else None
            except (ExpressionError, ConfigError) as error:
                self.problem = f"spec.readyWhen: {error_text(error)}"
        return ready, rows

    def collect(self, collectors: Mapping[str, ReadCollector]) -> None:
        """Take up the collectors that there are."""
        self.collectors = tuple(collectors.get(name, (None, ()))[0] for name in self.names)
        found = [each.uses for each in self.collectors if each is not None]
        if self.program is not None:
            found.append(self.program.uses(FIXED))
        self.uses = frozenset().union(*found)

    def forget(self, *, ready: bool, rows: bool) -> None:
        """Forget what edited expressions made; what the others made is known."""
        for key, outcome in self.known.items():
            self.known[key] = Outcome(outcome.ready and not ready, () if rows else outcome.rows)

    def evaluate(self, bind: Callable[[], Bound]) -> Outcome:
        """What the expressions make of a replica. `bind` raises ExpressionError where its status is not fit for it."""
        try:
            bound = bind() if self._evaluates else Bound(None)
        except ExpressionError as error:
            return Outcome(False, tuple(row_error(error) if each else None for each in self.collectors))
        rows = tuple(evaluate(each, bound) if each else None for each in self.collectors)
        return Outcome(self.program is not None and _is_true(self.program, bound), rows)

    @property
    def _evaluates(self) -> bool:
        return self.program is not None or any(each.evaluates for each in self.collectors if each is not None)


def _is_true(program: Program, bound: Bound) -> bool:
    """Whether `readyWhen` holds: an error, or another value than a boolean, means that it does not (F7.2)."""
    try:
        return program.result(bound, most=MOST_RESULT) is True
    except ExpressionError:
        return False
