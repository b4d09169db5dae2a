"""The progress of one placement: robots are begun in order, within the limits of its rollout (F6.3, F6.4, F8)."""

import heapq
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from sys import maxsize

from crsyncer.fleet.domain.rollout.decision_book import DecisionBook
from crsyncer.fleet.domain.rollout.decisions import Decided, Decision
from crsyncer.fleet.domain.rollout.reports import Report
from crsyncer.fleet.domain.rollout.robot_progress import (
    RobotProgress,
    begin,
    decided,
    looked_at,
    may_write,
    next_look,
    restored,
)
from crsyncer.fleet.domain.rollout.robot_states import Begun, Gate, RobotTally, counts
from crsyncer.fleet.domain.rollout.rollout_order import Rank, RolloutOrder, most_in_flight, rank
from crsyncer.fleet.domain.rollout.vanished_reports import VanishedReports
from crsyncer.fleet.domain.values import Placement, RobotState, Rollout


@dataclass(slots=True)
class _Member:
    tally: RobotTally
    rank: Rank | None = None
    """None: it is not found yet, or the groups are others now."""
    progress: RobotProgress | None = None
    """None: it was not looked at yet."""
    wake: float | None = None
    """When it is looked at again."""


class PlacementProgress:
    """Tell it what changed of each robot, then have it make a step; it costs in proportion to what changed.

    A step may be made in parts, `most` robots at a time, so that a loop need not stand still; it is over once nothing
    `is_behind`. What changes between two parts may be told there.

    Tell all robots that a change concerns before a step that may begin robots: else a robot of a later group whose new
    content is known already is begun before the canaries, whose content is not. Before the first step tell all selected
    robots; those that the stored Decisions name and that are not told are not selected any more.

    Times are Unix seconds by the clock of the API server. What is returned to be written is in the order of the
    rollout.
    """

    def __init__(self, placement: Placement, stored: Iterable[Decision], *, taken: Collection[int] = ()) -> None:
        self._placement = placement
        self._order = RolloutOrder(placement.rollout) if placement.rollout is not None else None
        self._book = DecisionBook(stored, taken=taken)
        self._members: dict[str, _Member] = {}
        self._dirty: dict[str, None] = {}
        """The robots to look at in the next step."""
        self._left: set[str] = set()
        """Robots that are not selected any more and have replicas."""
        self._wakes: list[tuple[float, str]] = []
        """A heap; an entry that is not the robot's own time is passed over."""
        self._started = self._may_begin = False
        self.is_behind = False
        """Whether the step goes on: there are more robots to look at, or to begin."""
        self._writable: set[str] = set()
        self._awaited: dict[int, set[str]] = defaultdict(set)
        """By N: the robots of which a replica is written once that Decision is stored."""
        self._reports: Counter[Report] = Counter()
        self._states: Counter[RobotState] = Counter()
        self._vanished = VanishedReports()
        self._doubted_until: float | None = None

    @property
    def states(self) -> dict[str, RobotState]:
        """The state of each robot after the last step."""
        return {robot: each.progress.state for robot, each in self._members.items() if each.progress is not None}

    # What changed.

    def placement_changed(self, placement: Placement) -> None:
        """The placement was edited. Robots of which the replicas change are told as well."""
        is_same = placement.rollout == self._placement.rollout
        self._placement = placement
        if not is_same:
            self._order = RolloutOrder(placement.rollout) if placement.rollout is not None else None
            for member in self._members.values():
                member.rank = None
            self._dirty.update(dict.fromkeys(self._members))

    def tell(self, robot: str, tally: RobotTally | None, *, is_left: bool = False) -> None:
        """What is counted for a robot now; None: it is not selected any more.

        `is_left`: replicas are left there, which may be held; so its Decision goes on to name it, and when the robot is
        back, it is what it was.
        """
        member = self._members.get(robot)
        if member is not None and member.tally == tally:
            return
        if member is not None:
            self._count(member.tally, -1)
        (self._left.add if is_left else self._left.discard)(robot)
        if tally is None:
            self._forget(robot)
            return
        if member is None:
            self._members[robot] = _Member(tally)
        else:
            if member.tally.labels != tally.labels:
                member.rank = None
            member.tally = tally
        self._count(tally, 1)
        self._dirty[robot] = None

    def stored(self, number: int, robots: Mapping[str, Decided] | None) -> list[str]:
        """A Decision was written or seen, or (None) is gone. The robots that may be written since."""
        return self._released(self._book.store(number, robots))

    def taken(self, taken: Collection[int]) -> None:
        """These N are those of Decisions of another uid now: our robots in them move to others."""
        self._book.take(taken)
        self._awaited.clear()
        self._released(self._members)

    def _count(self, tally: RobotTally, change: int) -> None:
        self._reports[tally.report] += change

    def _forget(self, robot: str) -> None:
        if (member := self._members.pop(robot, None)) is not None:
            self._dirty.pop(robot, None)
            self._vanished.forget(robot)
            if member.progress is not None:
                self._states[member.progress.state] -= 1
            if self._order is not None:
                self._order.remove(robot)
            if robot in self._book.robots:
                self._awaited[self._book.number(robot)].discard(robot)
            self._writable.discard(robot)
        if robot in self._book.robots and robot not in self._left:
            self._book.drop(robot)

    # A step.

    def step(self, now: float, *, may_begin: bool | None, most: int = maxsize) -> list[str]:
        """Look at the robots that changed or whose time has come, then begin those that may be begun; `most` of each.

        `may_begin`: all that changed was told, and RobotSyncStates are listed and alive (F8.5); None: there is more to
        be told first. None is begun before all were looked at. The robots that may be written since are returned.
        """
        if not self._started:
            self._started = True
            for robot in self._book.robots - self._members.keys() - self._left:
                self._book.drop(robot)
        while self._wakes and self._wakes[0][0] <= now:
            self._dirty[heapq.heappop(self._wakes)[1]] = None
        part = list(islice(self._dirty, most))
        changed = [robot for robot in part if robot in self._members]
        for robot in part:
            del self._dirty[robot]
        for robot in changed:
            member = self._members[robot]
            self._vanished.look(robot, member.tally.report, now)
            old = member.progress or restored(self._book.stored(robot), member.tally, now)
            self._put(robot, member, looked_at(old, member.tally, self._placement.rollout, now))
        begun: list[str] = []
        if not self._dirty and may_begin is not None:
            self._doubted_until = self._vanished.doubted_until(now, selected=len(self._members))
            self._may_begin = may_begin and self._doubted_until is None
            begun = self._begin(now, most)
        self.is_behind = bool(self._dirty) or len(begun) == most
        return self._released([*changed, *begun])

    def next_step(self) -> float | None:
        """When time alone changes something; None: nothing does."""
        while self._wakes:
            time, robot = self._wakes[0]
            member = self._members.get(robot)
            if member is not None and member.wake == time:
                break
            heapq.heappop(self._wakes)
        times = [time for time, _ in self._wakes[:1]]
        return min(times if self._doubted_until is None else [*times, self._doubted_until], default=None)

    def _begin(self, now: float, count: int) -> list[str]:
        """Begin so many robots in order, as far as the limits allow (F8.1, F8.2)."""
        rollout, order = self._placement.rollout, self._order
        if rollout is None or order is None or not self._may_begin or rollout.paused or self._has_failed(rollout):
            return []
        begun: list[str] = []
        most = most_in_flight(rollout, self._reports[Report.ONLINE])
        while len(begun) < count and (place := order.next()) is not None:
            if place.group != order.last and self._states[RobotState.IN_FLIGHT] >= most:
                break
            robot = place.rank.robot
            member = self._members[robot]
            assert member.progress is not None  # noqa: S101 it is in the order, so it was looked at
            self._put(robot, member, begin(member.progress, member.tally, now))
            begun.append(robot)
        return begun

    def _has_failed(self, rollout: Rollout) -> bool:
        return self._states[RobotState.FAILED] > rollout.max_failures

    def _put(self, robot: str, member: _Member, progress: RobotProgress) -> None:
        rollout = self._placement.rollout
        if member.progress is not None:
            self._states[member.progress.state] -= 1
        self._states[progress.state] += 1
        member.progress = progress
        if self._order is not None:
            self._order.place(self._rank(robot, member), progress, member.tally)
        self._book.put(robot, decided(progress, member.tally))
        wake = next_look(progress, rollout)
        if wake is not None and wake != member.wake:
            heapq.heappush(self._wakes, (wake, robot))
        member.wake = wake

    def _rank(self, robot: str, member: _Member) -> Rank:
        if member.rank is None:
            member.rank = rank(self._placement, robot, member.tally.labels)
        return member.rank

    def _released(self, robots: Iterable[str]) -> list[str]:
        """Of these robots, those that may be written now and could not before."""
        found = []
        for robot in robots:
            member = self._members.get(robot)
            if member is None or member.progress is None:
                continue
            awaited = self._awaited[self._book.number(robot)]
            if self.may_write(robot):
                awaited.discard(robot)
                if robot not in self._writable:
                    self._writable.add(robot)
                    found.append(self._rank(robot, member))
                continue
            self._writable.discard(robot)
            if member.tally.due and (self._placement.rollout is None or member.progress.begun is not Begun.NO):
                awaited.add(robot)
            else:
                awaited.discard(robot)
        return [each.robot for each in sorted(found)]

    # What follows.

    def may_write(self, robot: str) -> bool:
        """Whether the due replicas of a robot may be written now."""
        member = self._members.get(robot)
        if member is None or member.progress is None:
            return False
        return may_write(member.progress, member.tally, self._book.stored(robot), self._placement.rollout)

    def decisions(self) -> dict[int, Mapping[str, Decided]]:
        """The Decisions that are to be written, by N; one without robots is to be deleted."""
        return {number: dict(self._book.wanted.get(number, {})) for number in self._book.unstored()}

    def urgent(self) -> set[int]:
        """The N of the Decisions that something is written after: they do not wait for the 5 s (F6.3)."""
        return {number for number, robots in self._awaited.items() if robots}

    def is_untried(self) -> bool:
        """Whether a robot is Blocked by what an earlier try has met, and the new one has no answer yet."""
        blocked = self._states[RobotState.BLOCKED]
        return bool(blocked) and any(
            each.progress is not None and each.progress.state is RobotState.BLOCKED and not each.tally.errors
            for each in self._members.values()
        )

    def counts(self, *, replicas: int) -> dict[str, int]:
        """The counts of the placement's status."""
        return counts(self._states, self._reports, replicas=replicas)

    def gated(self) -> bool:
        """Whether a robot reports, so that a rollout waits for it (F8.5)."""
        return bool(self._reports[Report.ONLINE] or self._reports[Report.OFFLINE])

    def gate(self) -> Gate | None:
        """Why none of the robots that wait is begun, other than that it is not their turn."""
        rollout = self._placement.rollout
        if rollout is None or self._order is None or not self._states[RobotState.WAITING]:
            return None
        if rollout.paused:
            return Gate.PAUSED
        if not self._may_begin:
            return Gate.NO_REPORTS
        if self._has_failed(rollout):
            return Gate.TOO_MANY_FAILURES
        return Gate.WAITING_FOR_GROUP if self._order.waits_for_group() else None

    @property
    def group(self) -> int:
        """The group of the rollout that is under way, from 1 on; 0: there is no rollout."""
        return 0 if self._order is None else self._order.group()
