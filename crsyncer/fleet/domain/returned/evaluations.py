"""What the expressions of placements make of each replica: whether it is ready, and the rows of collectors (F7).

An event of a replica evaluates that replica alone. All else that expressions see may change for many at once: then
replicas are stale, and `evaluate_stale` does some of them at a time, so that a loop need not stand still.

No replica is kept parsed (F3.9). What its expressions made of it is, and its compressed status only where an expression
uses both what a replica says and what changes without it, such as `inventory`: 0.5 KB of a status of 2 KB (m). All
other statuses are read again after an edit of expressions, which is rare, and names the replicas in `Due.read`.
"""

from collections.abc import Callable, Generator, Iterable
from itertools import islice
from typing import Any

from crsyncer.core.content.mutation import Bound, ExpressionError, Expressions
from crsyncer.core.content.object_content import digest
from crsyncer.core.model import Json, Key
from crsyncer.core.reports.text import some
from crsyncer.fleet.domain.change import Change
from crsyncer.fleet.domain.fleet import Fleet
from crsyncer.fleet.domain.names import source_id
from crsyncer.fleet.domain.returned.collectors import RowResult, collector_of
from crsyncer.fleet.domain.returned.combining import Result, combine
from crsyncer.fleet.domain.returned.due import Due
from crsyncer.fleet.domain.returned.placement_outcomes import Outcomes, ReadCollector
from crsyncer.fleet.domain.returned.variables import (
    INVENTORY,
    OBJ,
    PROPAGATION,
    RETURNED,
    VARIABLES,
    Returned,
    inventory,
    packed,
    propagation,
    returned_of,
    source_object,
    unpacked,
)
from crsyncer.fleet.domain.values import Placement, ReplicaKey, SourceKey, Target

LOOKS = 500
"""So often it is looked at what robots return before everything else has its turn: an edit concerns all (F10.3)."""


class Evaluations:
    """The outcomes of all expressions, kept up to date event by event. No I/O and no clock.

    The fleet takes up each event first. `is_acked` tells whether a robot has applied what a placement (NAMESPACE/NAME)
    has written for it, and `is_online` whether it reports.
    """

    def __init__(
        self,
        fleet: Fleet,
        *,
        expressions: Callable[[], Expressions],
        is_acked: Callable[[str, str], bool],
        is_online: Callable[[str], bool],
    ) -> None:
        self.unread: set[ReplicaKey] = set()
        """Replicas that have to be read again, until they are shown or gone."""
        self._fleet = fleet
        self._expressions = expressions
        self._is_acked = is_acked
        self._is_online = is_online
        self._collectors: dict[str, ReadCollector] = {}
        self._outcomes: dict[str, Outcomes] = {}
        """By placement that has expressions."""
        self._stale: dict[tuple[str, ReplicaKey], None] = {}
        """Placement and replica: to be evaluated, in this order."""
        self._returned: dict[ReplicaKey, None] = {}
        """What robots return of sources that they share, to be looked at before anything is evaluated."""
        self._kept: dict[ReplicaKey, bytes] = {}
        self._objects: dict[SourceKey, tuple[object, str, Json]] = {}
        """By source that expressions use: what it was made of, its digest, and itself."""

    # What was found

    @property
    def is_stale(self) -> bool:
        """Whether there is something for `evaluate_stale` to do."""
        return bool(self._stale or self._returned)

    def ready(self, text: str, robot: str) -> bool | None:
        """Whether `readyWhen` holds for all replicas of a robot now; None: the placement has none."""
        found = self._outcomes.get(text)
        if found is None or not found.ready_when:
            return None
        keys = self._fleet.index.returned(text, [robot])
        return all((outcome := found.known.get(key)) is not None and outcome.ready for key in keys)

    def is_evaluating(self, text: str) -> bool:
        """Whether replicas that are there were not evaluated yet, so that `ready` does not say what is so."""
        found = self._outcomes.get(text)
        if found is None or not found.ready_when:
            return False
        unread = (each.text for key in self.unread for each in self._fleet.index.selecting(key))
        return bool(self._returned) or any(other == text for other, _ in self._stale) or text in unread

    def problem(self, text: str) -> str:
        """Why a placement is `Resolved=False` with `BadExpression`; empty: it is not."""
        found = self._outcomes.get(text)
        return "" if found is None else found.problem

    def collected(self, text: str) -> tuple[bool, str, str] | None:
        """Status, reason and message of the condition `Collected`; None: the placement has no collectors (F7.4)."""
        found = self._outcomes.get(text)
        if found is None or not found.names:
            return None
        missing = [name for name in found.names if name not in self._collectors]
        read = [(name, *self._collectors[name]) for name in found.names if name not in missing]
        wrong = [f"StatusCollector {name}: {errors[0]}" for name, collector, errors in read if collector is None]
        if not (missing or wrong):
            return True, "Collected", ""
        absent = [f"there is no StatusCollector {some(missing)}"] if missing else []
        message = some([*absent, *wrong], 3, separator="; ")
        return False, "CollectorMissing" if missing else "BadExpression", message

    def results(self, text: str, source: SourceKey, *, most: int) -> Generator[None, None, list[Result] | None]:
        """The results of all collectors that can be used, in their order, found in parts, of so many robots each.

        None: a replica is not evaluated or seen, or the collectors were edited between two parts.
        """
        found, index = self._outcomes[text], self._fleet.index
        collectors, robots = found.collectors, list(index.robots_of(text))
        outcomes: list[tuple[str, tuple[RowResult, ...]]] = []
        for begin in range(0, len(robots), most):
            if begin:
                yield
            if self._outcomes.get(text) is not found or found.collectors is not collectors:
                return None
            for key in index.returned(text, robots[begin : begin + most], source=source):
                outcome = found.known.get(key)
                if outcome is not None and len(outcome.rows) == len(found.names):
                    outcomes.append((key.robot, outcome.rows))
                elif self._is_there(key) or self._is_unseen(key):
                    return None
        return [
            combine(collector, [(robot, rows[place]) for robot, rows in outcomes])
            for place, collector in enumerate(collectors)
            if collector is not None
        ]

    def combined(self) -> set[Key]:
        """All CombinedStatuses that there are to be."""
        return {key for text, found in self._outcomes.items() for key in _objects(text, found, found.sources)}

    # Collectors

    def collector_shown(self, raw: Json) -> Due:
        """A StatusCollector was added or changed."""
        name = raw["metadata"]["name"]
        self._collectors[name] = collector_of(raw, self._expressions)
        return self._edited(name)

    def collector_gone(self, name: str) -> Due:
        """A StatusCollector was deleted."""
        del self._collectors[name]
        return self._edited(name)

    def collector_errors(self, name: str) -> tuple[str, ...]:
        """`status.errors` of a StatusCollector."""
        return self._collectors[name][1]

    def _edited(self, name: str) -> Due:
        due = Due()
        for text, found in self._outcomes.items():
            if name in found.names:
                due.add(self._compile(text, found, ready=False, rows=True))
        return due

    # Events

    def changed(self, change: Change) -> Due:
        """Placements, sources, Robots or replicas came, changed or went: the fleet has taken it up."""
        due = Due()
        for text in change.placements:
            due.add(self._define(text))
        for key in change.keys if self._outcomes else ():
            due.add(self._select(key))
        if self._outcomes:
            self._returned.update(dict.fromkeys(change.returned))
        for identity in {key.source_id for key in change.keys | change.returned}:
            if (source := self._fleet.index.source_of(identity)) is not None:
                self._look_at(source)
        return due

    def robot_changed(self, robot: str) -> None:
        """Labels, annotations, properties or the report of a robot changed."""
        for text, found in self._outcomes.items():
            if INVENTORY in found.uses:
                self._mark(text, found, self._fleet.rows_by_robot.get(robot, ()))
                self._mark(text, found, self._fleet.statuses.of(robot))

    def acked_changed(self, text: str, robot: str) -> None:
        """Whether a robot has applied what a placement has written for it changed."""
        found = self._outcomes.get(text)
        if found is not None and PROPAGATION in found.uses:
            self._mark(text, found, self._fleet.rows_by_robot.get(robot, ()))

    def replica_shown(self, key: ReplicaKey, raw: Json) -> Due:
        """A replica as it is now, its row being in the fleet. Only what concerns it is evaluated."""
        self.unread.discard(key)
        due, returned, keeps = Due(), None, False
        for placement, found in self._concerned(key):
            if found.reads:
                returned = returned or returned_of(raw)
                keeps |= found.keeps
            elif key in found.known and (placement.text, key) not in self._stale:
                continue
            due.add(self._evaluate(placement, found, key, returned or Returned()))
        if returned is not None and keeps:
            self._kept[key] = packed(returned)
        else:
            self._kept.pop(key, None)
        return due

    def evaluate_stale(self, most: int) -> Due:
        """Evaluate so many replicas that are stale, the oldest first. Before that `LOOKS` at what robots return."""
        due = Due()
        for key in list(islice(self._returned, LOOKS)):
            del self._returned[key]
            due.add(self._select(key, again=True))
        for text, key in list(islice(self._stale, 0 if self._returned else most)):
            found, kept, shared = self._outcomes[text], self._kept.get(key), self._fleet.statuses.returned(key)
            if found.reads and kept is None and shared is None:
                del self._stale[text, key]
                self.unread.add(key)
                due.read.add(key)
            else:
                returned = shared or (Returned() if kept is None else unpacked(kept))
                due.add(self._evaluate(self._fleet.index.placements[text], found, key, returned))
        return due

    def _concerned(self, key: ReplicaKey) -> list[tuple[Placement, Outcomes]]:
        selecting = self._fleet.index.selecting(key) if self._outcomes and self._is_there(key) else ()
        return [(each, self._outcomes[each.text]) for each in selecting if each.text in self._outcomes]

    def _is_there(self, key: ReplicaKey) -> bool:
        """Whether there is a replica, or a status that a robot has returned of an object that it shares."""
        is_own = bool(key.robot) and key in self._fleet.rows
        return is_own or self._fleet.statuses.has(key)

    def _is_unseen(self, key: ReplicaKey) -> bool:
        if key.target is Target.SHARED:
            return self._fleet.statuses.are_unseen(key.shard)
        return self._fleet.is_unseen(key)

    def _mark(self, text: str, found: Outcomes, keys: Iterable[ReplicaKey]) -> None:
        self._stale.update(((text, key), None) for key in keys if key in found.known)

    # What expressions a placement has, and for which replicas

    def _define(self, text: str) -> Due:
        """Take up the expressions and the sources of a placement as they are now."""
        placement, found, due = self._fleet.index.placements.get(text), self._outcomes.get(text), Due()
        has_any = placement is not None and bool(placement.ready_when or placement.collectors)
        if found is not None and (placement is None or not has_any or placement.uid != found.uid):
            del self._outcomes[text]
            self._stale = {pair: None for pair in self._stale if pair[0] != text}
            for key in found.known:
                due.ready.add((text, key.robot))
                self._forget(key)
            due.combined.update(_objects(text, found, found.sources))
            found = None
        if placement is None or not has_any:
            return due
        if found is None:
            found = self._outcomes[text] = Outcomes(placement.uid)
        due.combined.update(_objects(text, found, found.sources if found.names != placement.collectors else ()))
        ready, rows = found.take_up(placement, self._expressions)
        if ready or rows:
            due.add(self._compile(text, found, ready=ready, rows=rows))
        selected = self._fleet.index.sources_of(text)
        if selected is not found.selected or len(selected) != len(found.sources):  # one source comes or goes at a time
            found.selected, sources = selected, frozenset(map(source_id, selected))
            due.combined.update(_objects(text, found, sources ^ found.sources))
            found.sources = sources
        return due

    def _compile(self, text: str, found: Outcomes, *, ready: bool, rows: bool) -> Due:
        """Take up edited expressions: every replica of the placement is stale."""
        found.collect(self._collectors)
        found.forget(ready=ready, rows=rows)
        due, index = Due(), self._fleet.index
        keys = index.returned(text, index.robots_of(text))
        self._stale.update(((text, key), None) for key in keys if self._is_there(key))
        if ready:
            due.ready.update((text, robot) for robot in index.robots_of(text))
        if rows:
            due.combined.update(_objects(text, found, map(source_id, index.sources_of(text))))
        return due

    def _select(self, key: ReplicaKey, *, again: bool = False) -> Due:
        """Take up which placements select a replica now. `again`: it has changed as well."""
        due, concerned = Due(), {placement.text for placement, _ in self._concerned(key)}
        for text, found in self._outcomes.items():
            if text in concerned:
                if again or key not in found.known:
                    self._stale[text, key] = None
                continue
            self._stale.pop((text, key), None)
            if found.known.pop(key, None) is not None:
                due.ready.add((text, key.robot))
                due.combined.update(_objects(text, found, [key.source_id]))
                self._forget(key)
        return due

    def _forget(self, key: ReplicaKey) -> None:
        """Drop what is kept of a replica for which nobody has an outcome any more."""
        if not any(key in each.known for each in self._outcomes.values()):
            self._kept.pop(key, None)
            self.unread.discard(key)

    def _look_at(self, source: SourceKey) -> None:
        """What expressions of a source's replicas are stale because the source itself changed."""
        index = self._fleet.index
        users = [(text, self._outcomes[text]) for text in index.placements_of(source) if text in self._outcomes]
        users = [(text, found) for text, found in users if OBJ in found.uses]
        old = self._objects.get(source)
        if not users:
            self._objects.pop(source, None)
        elif old is not None and self._object(source, index.placements[users[0][0]])[1] != old[1]:
            for text, found in users:
                self._mark(text, found, index.returned(text, index.robots_of(text), source=source))

    def _object(self, key: SourceKey, placement: Placement) -> tuple[object, str, Json]:
        """A source as expressions see it, with its digest."""
        index = self._fleet.index
        made_of: object = placement.templates if key.placement else index.sources[key]
        known = self._objects.get(key)
        if known is None or known[0] is not made_of:
            body = source_object(index.source(key, placement), index.kinds[key.resource])
            known = self._objects[key] = (made_of, digest(body), body)
        return known

    # One replica

    def _evaluate(self, placement: Placement, found: Outcomes, key: ReplicaKey, returned: Returned) -> Due:
        text, old = placement.text, found.known.get(key)
        self._stale.pop((text, key), None)
        new = found.known[key] = found.evaluate(lambda: self._bound(placement, found, key, returned))
        due = Due()
        if found.ready_when and (old is None or old.ready is not new.ready):
            due.ready.add((text, key.robot))
        if old is None or old.rows != new.rows:
            due.combined.update(_objects(text, found, [key.source_id]))
        return due

    def _bound(self, placement: Placement, found: Outcomes, key: ReplicaKey, returned: Returned) -> Bound:
        """The variables of a row; of those that nobody uses, nothing is made. Raises ExpressionError."""
        if returned.problem:
            raise ExpressionError(returned.problem)
        values: dict[str, Any] = {name: {} for name in VARIABLES} | {INVENTORY: {"name": key.robot}}
        source, robot = self._fleet.index.source_of(key.source_id), self._fleet.index.robots[key.robot]
        if OBJ in found.uses and source is not None:
            values[OBJ] = self._object(source, placement)[2]
        if RETURNED in found.uses:
            values[RETURNED] = {"status": returned.status}
        if INVENTORY in found.uses:
            online = self._is_online(key.robot)
            values[INVENTORY] = inventory(robot, self._fleet.properties_of(robot), online=online)
        if PROPAGATION in found.uses:
            values[PROPAGATION] = propagation(returned, acked=self._is_acked(placement.text, key.robot))
        return self._expressions().bind(values, VARIABLES)


def _objects(text: str, found: Outcomes, identities: Iterable[str]) -> list[Key]:
    """The CombinedStatuses of a placement and these sources (their SOURCEIDs)."""
    namespace = text.partition("/")[0]
    return [Key(namespace, f"{each}.{found.uid}") for each in identities] if found.names else []
