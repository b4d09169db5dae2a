"""A placement's progress in tests: robots are told, Decisions are stored, time passes."""

from typing import Any

from crsyncer.core.content.object_content import digest
from crsyncer.core.reports.text import rfc3339
from crsyncer.fleet.domain.rollout.decisions import Decided, Decision
from crsyncer.fleet.domain.rollout.placement_progress import PlacementProgress
from crsyncer.fleet.domain.rollout.reports import Report
from crsyncer.fleet.domain.rollout.robot_states import RobotTally
from crsyncer.fleet.domain.values import Placement, RobotState
from tests.fleet.made import placement

T = 1_790_000_000.0
ONLINE, OFFLINE, UNREPORTED = Report.ONLINE, Report.OFFLINE, Report.UNREPORTED
NEW = {"due": 1, "acked": False, "ready": False}
"""New content is to be written."""
WRITTEN = {"due": 0, "acked": False, "ready": False}
CANARY = {"matchLabels": {"canary": "yes"}}
APPLIED = {"due": 0, "acked": True, "ready": True}


def rollout(**options: Any) -> Placement:
    """A placement whose rollout takes one robot at a time."""
    return placement(rollout={"maxConcurrency": 1, **options}, readyWhen="returned.status.ok")


def decision(robots: dict[str, Decided], number: int = 0) -> Decision:
    return Decision("site", f"all-{number}", "all", "uid-all", number, robots)


class Desk:
    """What the controller does around the progress of a placement, by hand."""

    def __init__(self, by: Placement, *stored: Decision, now: float = T) -> None:
        self.placement, self.now = by, now
        self.written: dict[int, dict[str, Decided]] = {each.number: dict(each.robots) for each in stored}
        self.progress = PlacementProgress(by, stored)
        self._tallies: dict[str, RobotTally] = {}

    def tell(self, *robots: str, **facts: Any) -> None:
        for robot in robots:
            old = self._tallies.get(robot, RobotTally(1, 1, 0, 0, "s1", False, ONLINE, False))
            known = {name: getattr(old, name) for name in old.__slots__}
            self._tallies[robot] = RobotTally(**known | facts)
            self.progress.tell(robot, self._tallies[robot])

    def leave(self, *robots: str) -> None:
        for robot in robots:
            del self._tallies[robot]
            self.progress.tell(robot, None)

    def edit(self, by: Placement) -> None:
        self.placement = by
        self.progress.placement_changed(by)

    def step(self, after: float = 0.0, *, may_begin: bool = True, store: bool = True) -> list[str]:
        """Pass time, step, and store the Decisions; the robots that may be written since."""
        self.now += after
        found = self.progress.step(self.now, may_begin=may_begin)
        return found + self.store() if store else found

    def store(self) -> list[str]:
        found = []
        for number, robots in self.progress.decisions().items():
            if robots:
                self.written[number] = dict(robots)
            else:
                del self.written[number]
            found += self.progress.stored(number, robots or None)
        return found

    def lead_anew(self) -> None:
        """Another leader takes over: it knows the stored Decisions."""
        stored = [decision(robots, number) for number, robots in self.written.items()]
        self.progress = PlacementProgress(self.placement, stored)
        for robot, tally in self._tallies.items():
            self.progress.tell(robot, tally)

    def said(self, robot: str) -> Decided:
        return next(robots[robot] for robots in self.written.values() if robot in robots)

    @property
    def states(self) -> dict[str, RobotState]:
        return dict(sorted(self.progress.states.items()))


def in_order(*robots: str) -> list[str]:
    return sorted(robots, key=lambda robot: digest(["uid-all", robot]))


def said(state: RobotState, stamp: str = "", *, at: float = T) -> Decided:
    return Decided(state, rfc3339(at) or "", stamp)


def begun(desk: Desk, *robots: str) -> None:
    """Begin robots that are online, and write them."""
    desk.tell(*robots, **NEW)
    desk.step()
    desk.tell(*robots, **WRITTEN)
    desk.step()
    assert {desk.states[robot] for robot in robots} == {"InFlight"}
