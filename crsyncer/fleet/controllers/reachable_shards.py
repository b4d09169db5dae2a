"""Which shards can be seen. Of the others' robots nobody knows what they have: none of them is begun (F1.1, F8.5)."""

from collections.abc import Mapping
from dataclasses import dataclass

from crsyncer.fleet.controllers.alive import REPORTS, Liveness
from crsyncer.fleet.controllers.robot_reports import RobotReports
from crsyncer.fleet.controllers.state import FleetState
from crsyncer.fleet.domain.resolution import lacks_kind, unlisted_at
from crsyncer.fleet.domain.transport.keys import ROOT, at
from crsyncer.fleet.domain.values import Placement


@dataclass(frozen=True, slots=True)
class ReachableShards:
    """Answers for the controllers of placements. `liveness` is by shard."""

    state: FleetState
    reports: RobotReports
    liveness: Mapping[str, Liveness]

    def is_closed(self, robot: str, placement: Placement) -> bool:
        """Whether no replica of a placement can be begun for a robot: its shard is away, or lacks one of the kinds."""
        shard = self.state.fleet.index.shard_of(robot)
        return shard != ROOT and (self.is_away(robot) or lacks_kind(self.state.fleet, shard, placement))

    def is_away(self, robot: str) -> bool:
        """Whether a robot's shard, other than the root, cannot be seen. A shard that nobody knows is another fault."""
        return self._is_shard_away(self.state.fleet.index.shard_of(robot))

    def _is_shard_away(self, shard: str) -> bool:
        if shard == ROOT or shard not in self.state.shards:
            return False
        is_read = self.state.shards[shard].up.is_set() and shard not in self.state.fleet.unread
        return not (is_read and self._are_reports_seen(shard) and not unlisted_at(self.state.fleet, shard))

    def is_heard(self, robot: str) -> bool:
        """Whether it is known if a robot reports; `may_begin` asks that of the root."""
        shard = self.state.fleet.index.shard_of(robot)
        return shard not in self.state.shards or self.reports.are_known(shard)

    def may_begin(self, robots: set[str]) -> bool:
        """Whether any of these robots may be begun, as far as the root goes."""
        is_home = not robots or any(self.state.fleet.index.shard_of(robot) == ROOT for robot in robots)
        return not is_home or self._are_reports_seen(ROOT)

    def are_away(self, placement: Placement) -> bool:
        """Whether some robots of a placement, or copies that its robots share, are on a shard that cannot be seen."""
        if placement.shared:
            return any(map(self._is_shard_away, self.state.shards))
        robots = self.state.fleet.index.robots_of(placement.text)
        return bool(self.state.shards) and any(map(self.is_away, robots))

    def robots_on(self, shard: str, placement: str) -> list[str]:
        """The robots of a placement that are on a shard."""
        index = self.state.fleet.index
        return [robot for robot in index.robots_of(placement) if index.shard_of(robot) == shard]

    def _are_reports_seen(self, shard: str) -> bool:
        """Whether it is known who of a shard's robots reports: before that none is begun (F8.5)."""
        return shard in self.reports.listed and at(shard, REPORTS) not in self.liveness[shard].dead
