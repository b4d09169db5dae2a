"""What the robots' agents report: who is online, and which writes each robot has applied (F9)."""

import asyncio
from collections.abc import Callable

from crsyncer.core.model import Json, Key
from crsyncer.fleet.controllers.state import FleetState
from crsyncer.fleet.domain.fleet_calls import SYNC_STATES
from crsyncer.fleet.domain.rollout.reports import Report, Reports
from crsyncer.fleet.domain.shown.fleet_facts import Reported
from crsyncer.fleet.domain.values import Verdict

_LONGEST_SECONDS = 5.0


class RobotReports:
    """The RobotSyncStates. `changed(robot)` is called when a robot's report, or its age, says something else."""

    def __init__(self, state: FleetState, *, changed: Callable[[str], None]) -> None:
        self._state = state
        self._changed = changed
        self._reports = Reports(robots_namespace=state.settings.robots_namespace)
        self.are_listed = False

    @property
    def are_known(self) -> bool:
        """Whether they are listed, or their kind is not served: before that nobody knows who is silent."""
        kind = self._state.fleet.index.kinds.get(SYNC_STATES.resource)
        return self.are_listed or kind is None or kind.verdict is Verdict.NOT_SERVED

    def shown(self, raw: Json) -> None:
        """A RobotSyncState was added or changed."""
        self._tell(self._reports.shown(raw, now=self._state.clock()))

    def gone(self, key: Key) -> None:
        """A RobotSyncState is gone."""
        self._tell(self._reports.gone(key.namespace, key.name, now=self._state.clock()))

    def report(self, robot: str) -> Report:
        """What is known of a robot's agent."""
        return self._reports.report(robot, self._state.clock())

    def is_online(self, robot: str) -> bool:
        """Whether a robot reports (F9.4)."""
        return self.report(robot) is Report.ONLINE

    def of_placement(self, robot: str, placement: str) -> tuple[Report, str | None]:
        """What a robot reports for a placement's uid: a full report that lacks it says nothing (F9.6)."""
        is_known = self._reports.knows_placement(robot, placement)
        return self.report(robot) if is_known else Report.UNREPORTED, self._reports.applied(robot, placement)

    def all(self) -> dict[str, Reported]:
        """What is known of the agents of all robots."""
        robots = self._state.fleet.index.robots
        return {name: Reported(self.report(name), self._reports.last(name)) for name in robots}

    async def run(self) -> None:
        """Notice robots that go offline because time passes, forever."""
        while True:
            now = self._state.clock()
            self._tell(self._reports.turned(now))
            turn = self._reports.next_turn()
            await asyncio.sleep(_LONGEST_SECONDS if turn is None else min(_LONGEST_SECONDS, max(0.1, turn - now)))

    def _tell(self, robots: set[str]) -> None:
        for robot in robots:
            self._changed(robot)
