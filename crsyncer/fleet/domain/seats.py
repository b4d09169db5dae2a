"""What the last look at each replica found, and what that adds up to for each robot of a placement (F6.4)."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from crsyncer.core.content.object_content import digest
from crsyncer.fleet.domain.names import shared
from crsyncer.fleet.domain.replica_plan import is_due
from crsyncer.fleet.domain.rollout.robot_states import Fault
from crsyncer.fleet.domain.values import Blocked, Rendering, ReplicaKey, ReplicaPlan, Row, Strategy, Wanted


class Seat(NamedTuple):
    """One replica that is wanted."""

    placement: str
    """The placement that governs, as NAMESPACE/NAME."""
    stamp: str
    """Of its rendering; where that fails, or it is never written again, the one that it has ("": none)."""
    due: bool = False
    """It is missing or has another stamp."""
    terminating: bool = False
    fault: Fault | None = None
    """What is wrong with it."""


def seat_of(key: ReplicaKey, wanted: Wanted, row: Row | None, plan: ReplicaPlan, fault: Fault | None) -> Seat:
    """What a look has found. `fault`: what stands against the write that is planned."""
    stamp = "" if row is None else row.marks.stamp  # a rendering that fails for a moment is no other content (F8.3)
    if isinstance(wanted.rendering, Rendering) and (row is None or wanted.strategy is not Strategy.CREATE_ONLY):
        stamp = wanted.rendering.stamp
    if isinstance(plan, Blocked):
        message = "" if wanted.kind.sensitive else plan.message
        fault = Fault(key.robot, wanted.source.text, plan.reason, message)
    terminating = row is not None and row.terminating
    seat = Seat(
        wanted.placement.text, stamp, due=is_due(wanted, row) or terminating, terminating=terminating, fault=fault
    )
    return seat if seat.fault is not None else shared(seat)


class Total(NamedTuple):
    """The seats of one robot in one placement."""

    replicas: int
    due: int
    errors: int
    terminating: int
    """Due ones that terminate."""
    stamp: str
    """The digest of all stamps: other content has another one."""
    message: str
    """What is wrong, of the first one."""


class Seats:
    """The replicas that are wanted, by placement and robot; the copies on a shard are as those of one robot."""

    def __init__(self) -> None:
        self._placements: dict[ReplicaKey, str] = {}
        self._seats: dict[tuple[str, str], dict[ReplicaKey, Seat]] = {}
        """By placement and robot."""
        self._stamps: dict[tuple[str, str], str] = {}
        """The digest of all stamps of a placement and robot, from when it was asked for until one of them changes."""
        self._faulty: dict[str, dict[ReplicaKey, Fault]] = defaultdict(dict)
        self.counts: Counter[str] = Counter()
        """By placement: how many replicas are wanted."""
        self.due: set[ReplicaKey] = set()
        self.restamped: set[tuple[str, str]] = set()
        """The placements and robots that shall have other content since somebody took note of it and took it out."""

    def put(self, key: ReplicaKey, seat: Seat | None) -> set[tuple[str, str]]:
        """Take up what a look found; None: the replica is not wanted. The placements and robots that it changes."""
        old, unit = self._placements.get(key), key.unit
        before = None if old is None else self._seats[old, unit][key]
        if before == seat:
            return set()
        has_moved = seat is None or seat.placement != old
        if old is not None:
            self._faulty[old].pop(key, None)
            if has_moved:
                del self._seats[old, unit][key]
                if not self._seats[old, unit]:
                    del self._seats[old, unit]
                self.counts[old] -= 1
        self.due.discard(key)
        changed = {(each.placement, unit) for each in (before, seat) if each is not None}
        if before is None or seat is None or before[:2] != seat[:2]:
            self.restamped |= changed
            for each in changed:
                self._stamps.pop(each, None)
        if seat is None:
            del self._placements[key]
            return changed
        self._placements[key] = seat.placement
        self._seats.setdefault((seat.placement, unit), {})[key] = seat
        self.counts[seat.placement] += has_moved
        if seat.due:
            self.due.add(key)
        if seat.fault is not None:
            self._faulty[seat.placement][key] = seat.fault
        return changed

    def placement(self, key: ReplicaKey) -> str:
        """The placement that a replica is wanted by; "": it is not wanted."""
        return self._placements.get(key, "")

    def total(self, placement: str, robot: str) -> Total:
        """What the seats of one robot in one placement add up to."""
        seats = self._seats.get((placement, robot), {})
        faults = sorted([each.fault.message for each in seats.values() if each.fault is not None])
        due = [each for each in seats.values() if each.due]
        if (stamp := self._stamps.get((placement, robot))) is None:
            stamp = digest(sorted([[*key.identity, each.stamp] for key, each in seats.items()]))
            if seats:
                self._stamps[placement, robot] = stamp
        return Total(
            replicas=len(seats),
            due=len(due),
            errors=len(faults),
            terminating=sum([each.terminating for each in due]),
            stamp=stamp,
            message=faults[0] if faults else "",
        )

    def is_due(self, placement: str, robot: str) -> bool:
        """Whether a replica of a robot in a placement is missing or has another stamp."""
        return any(each.due for each in self._seats.get((placement, robot), {}).values())

    def faults(self, placement: str) -> Iterator[Fault]:
        """What is wrong with the replicas of a placement."""
        yield from self._faulty[placement].values()

    def errors(self) -> int:
        """How many replicas something is wrong with."""
        return sum(map(len, self._faulty.values()))
