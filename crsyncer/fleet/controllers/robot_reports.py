"""What the robots' agents report: who is online, and which writes each robot has applied (F9)."""

import asyncio
from collections.abc import Callable

from crsyncer.core.model import Json, Key
from crsyncer.fleet.controllers.state import FleetState
from crsyncer.fleet.domain.fleet_calls import SYNC_STATES
from crsyncer.fleet.domain.rollout.reports import Report, Reports
from crsyncer.fleet.domain.shown.fleet_facts import Reported
from crsyncer.fleet.domain.transport.keys import ROOT, at
from crsyncer.fleet.domain.values import Verdict

_LONGEST_SECONDS = 5.0


class RobotReports:
    """The RobotSyncStates. `changed(robot)` is called when a robot's report, or its age, says something else."""

    def __init__(self, state: FleetState, *, changed: Callable[[str], None]) -> None:
        self._state = state
        self._changed = changed
        self._reports = {
            shard: Reports(robots_namespace=state.settings.robots_namespace) for shard in (ROOT, *state.shards)
        }
        """By shard: only those on the robot's shard count (F9.1)."""
        self._nothing = Reports(robots_namespace=state.settings.robots_namespace)
        self.listed: set[str] = set()
        """The shards of which they are listed."""

    def are_known(self, shard: str = ROOT) -> bool:
        """Whether they are listed, or their kind is not served: before that nobody knows who is silent."""
        kind = self._state.fleet.index.kinds.get(at(shard, SYNC_STATES.resource))
        is_served = shard in self._state.fleet.unread if kind is None else kind.verdict is not Verdict.NOT_SERVED
        return shard in self.listed or not is_served

    def shown(self, raw: Json, shard: str = ROOT) -> None:
        """A RobotSyncState was added or changed."""
        self._tell(self._reports[shard].shown(raw, now=self._state.clock_of(shard)))

    def gone(self, key: Key, shard: str = ROOT) -> None:
        """A RobotSyncState is gone."""
        self._tell(self._reports[shard].gone(key.namespace, key.name, now=self._state.clock_of(shard)))

    def _of(self, robot: str) -> tuple[Reports, float]:
        """The reports of a robot's shard, and the time there; of a shard that nobody knows there are none."""
        shard = self._state.fleet.index.shard_of(robot)
        known = shard if shard in self._reports else ROOT
        return self._reports.get(shard, self._nothing), self._state.clock_of(known)

    def report(self, robot: str) -> Report:
        """What is known of a robot's agent."""
        reports, now = self._of(robot)
        return reports.report(robot, now)

    def is_online(self, robot: str) -> bool:
        """Whether a robot reports (F9.4)."""
        return self.report(robot) is Report.ONLINE

    def of_placement(self, robot: str, placement: str) -> tuple[Report, str | None]:
        """What a robot reports for a placement's uid (F9.6)."""
        reports, now = self._of(robot)
        return reports.of_placement(robot, placement, now)

    def all(self) -> dict[str, Reported]:
        """What is known of the agents of all robots."""
        robots = self._state.fleet.index.robots
        return {name: Reported(self.report(name), self._of(name)[0].last(name)) for name in robots}

    async def run(self) -> None:
        """Notice robots that go offline because time passes, forever."""
        while True:
            waits = [_LONGEST_SECONDS]
            for shard, reports in self._reports.items():
                now = self._state.clock_of(shard)
                self._tell(reports.turned(now))
                if (turn := reports.next_turn()) is not None:
                    waits.append(max(0.1, turn - now))
            await asyncio.sleep(min(waits))

    def _tell(self, robots: set[str]) -> None:
        for robot in robots:
            self._changed(robot)
