"""What the robots' agents report: who is online, and which writes each robot has applied (F9)."""

import asyncio
from collections.abc import Callable

from crsyncer.core.model import Json, Key
from crsyncer.fleet.controllers.state import FleetState
from crsyncer.fleet.domain.fleet_calls import SYNC_STATES
from crsyncer.fleet.domain.rollout.reports import Reports
from crsyncer.fleet.domain.shown.fleet_facts import FleetReports
from crsyncer.fleet.domain.transport.keys import ROOT, at
from crsyncer.fleet.domain.values import Verdict

_LONGEST_SECONDS = 5.0


class RobotReports:
    """The RobotSyncStates. `changed(robot)` is called when a robot's report, or its age, says something else."""

    def __init__(self, state: FleetState, *, changed: Callable[[str], None]) -> None:
        self._state = state
        self._changed = changed
        place = state.settings.robots_namespace
        self._reports = {shard: Reports(robots_namespace=place) for shard in (ROOT, *state.shards)}
        self.robots = FleetReports(self._reports, state.fleet.index.shard_of, state.clock_of)
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
