"""The order in which the robots of one placement are begun: by group, inside a group by digest (F8.1)."""

import heapq
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from crsyncer.core.content.object_content import digest
from crsyncer.fleet.domain.rollout.reports import Report
from crsyncer.fleet.domain.rollout.robot_progress import RobotProgress
from crsyncer.fleet.domain.rollout.robot_states import RobotTally
from crsyncer.fleet.domain.values import Placement, RobotState, Rollout

_OPEN = frozenset({RobotState.WAITING, RobotState.IN_FLIGHT})
_SILENT_STATES = {
    Report.ONLINE: frozenset[RobotState](),
    Report.OFFLINE: frozenset({RobotState.WAITING, RobotState.BLOCKED, RobotState.STAMPED}),
    Report.UNREPORTED: frozenset(RobotState) - {RobotState.IN_FLIGHT, RobotState.FAILED},
}
"""In these states a robot comes after the others. One that was begun online counts where it was begun, whatever its
agent reports: content that kills agents must not open the way to the next group."""


class Rank(NamedTuple):
    """Where a robot stands in the order."""

    group: int
    """From 1 on: the first group that selects it, else one after all of them."""
    digest: str
    robot: str


def rank(placement: Placement, robot: str, labels: Mapping[str, str]) -> Rank:
    """The place of a robot in the order."""
    groups = placement.rollout.groups if placement.rollout is not None else ()
    matching = (number for number, selector in enumerate(groups, start=1) if selector.matches(labels))
    return Rank(next(matching, len(groups) + 1), digest([placement.uid, robot]), robot)


def most_in_flight(rollout: Rollout, online: int) -> int:
    """How many robots may be InFlight; a percentage is of the online selected robots (F8.2)."""
    most = rollout.max_concurrency
    return most if isinstance(most, int) else max(1, online * int(most.removesuffix("%")) // 100)


@dataclass(frozen=True, slots=True)
class Place:
    """How one robot counts."""

    rank: Rank
    group: int
    """The one that it counts in: its own, or the one of those that come after the others."""
    state: RobotState
    reports: bool
    away: bool = False
    """Its shard cannot be seen: it waits, like those after it."""


class RolloutOrder:
    """Counts the robots of each group and finds the next one to begin. Groups are numbered from 1 on.

    The last group is that of the robots that come after the others: unreported ones, and offline ones that are not
    Deferred. Those are begun all at once, and are not counted.
    """

    def __init__(self, rollout: Rollout) -> None:
        self.last = len(rollout.groups) + 2
        self._counts: dict[int, dict[RobotState, int]] = {
            group: dict.fromkeys(RobotState, 0) for group in range(1, self.last + 1)
        }
        self._reporting = dict.fromkeys(self._counts, 0)
        self._places: dict[str, Place] = {}
        self._heaps: dict[int, list[Rank]] = defaultdict(list)
        self._queued: dict[int, set[Rank]] = defaultdict(set)
        """What is in each heap. A robot that waits no more is passed over when it comes up."""

    def place(self, robot_rank: Rank, progress: RobotProgress, tally: RobotTally) -> None:
        """A robot is in another state, reports otherwise, or is new."""
        is_silent = progress.state in _SILENT_STATES[tally.report] and not tally.unheard
        group = self.last if is_silent else robot_rank.group
        reports = tally.report is not Report.UNREPORTED or not is_silent
        place = Place(robot_rank, group, progress.state, reports=reports, away=tally.away)
        if self._places.get(robot_rank.robot) == place:
            return
        self.remove(robot_rank.robot)
        self._places[robot_rank.robot] = place
        self._count(place, 1)
        if place.state is RobotState.WAITING and not tally.away and robot_rank not in self._queued[group]:
            self._queued[group].add(robot_rank)
            heapq.heappush(self._heaps[group], robot_rank)

    def remove(self, robot: str) -> None:
        """A robot is not selected any more."""
        if (place := self._places.pop(robot, None)) is not None:
            self._count(place, -1)

    def _count(self, place: Place, change: int) -> None:
        self._counts[place.group][place.state] += change
        self._reporting[place.group] += change * place.reports

    def next(self) -> Place | None:
        """The robot that may be begun next as far as the groups go; None: none may."""
        for group, counts in self._counts.items():
            if counts[RobotState.WAITING]:
                return self._first(group)
            if not self._is_passed(group):
                return None
        return None

    def _first(self, group: int) -> Place | None:
        """The first of the Waiting robots of a group that has some; None: all of them are away."""
        heap = self._heaps[group]
        while heap:
            place = self._places.get(heap[0].robot)
            is_next = place is not None and place.rank == heap[0] and place.group == group and not place.away
            if is_next and place is not None and place.state is RobotState.WAITING:
                return place
            self._queued[group].discard(heapq.heappop(heap))
        return None

    def _is_passed(self, group: int) -> bool:
        counts = self._counts[group]
        is_open = any(counts[state] for state in _OPEN)
        return not is_open and (bool(counts[RobotState.READY]) or not self._reporting[group])

    def waits_for_group(self) -> bool:
        """Whether all robots that wait, of which there are some, come after a group that is not passed."""
        first = next(group for group in self._counts if not self._is_passed(group))
        return not self._counts[first][RobotState.WAITING]

    def group(self) -> int:
        """The group that the rollout is at: the first one that is not passed, else the last one with robots."""
        with_robots = [group for group, counts in self._counts.items() if any(counts.values())]
        return next((group for group in with_robots if not self._is_passed(group)), max(with_robots, default=1))
