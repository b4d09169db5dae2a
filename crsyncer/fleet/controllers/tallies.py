"""Adds up what is known of one robot of a placement: its replicas, its report, and what it returns (F6.4, F9)."""

from collections.abc import Iterator
from dataclasses import dataclass

from crsyncer.core.reports.robot_report import applied_digest
from crsyncer.fleet.controllers.reachable_shards import ReachableShards
from crsyncer.fleet.controllers.state import FleetState
from crsyncer.fleet.controllers.status_return import StatusReturn
from crsyncer.fleet.domain.rollout.reports import Report
from crsyncer.fleet.domain.rollout.robot_states import RobotTally
from crsyncer.fleet.domain.seats import Seats
from crsyncer.fleet.domain.shown.fleet_facts import FleetReports
from crsyncer.fleet.domain.transport.keys import shard_unit
from crsyncer.fleet.domain.transport.shards import unknown_shard
from crsyncer.fleet.domain.values import Placement, Row


@dataclass(frozen=True, slots=True)
class Tallies:
    """Reads what the other controllers know."""

    state: FleetState
    seats: Seats
    reports: FleetReports
    shards: ReachableShards
    returned: StatusReturn

    def rows_of(self, placement: Placement, robot: str) -> Iterator[Row]:
        """The replicas of a robot that bear a placement's uid, terminating ones aside."""
        rows = (self.state.fleet.rows[key] for key in self.state.fleet.rows_by_robot.get(robot, ()))
        return (row for row in rows if row.marks.placement == placement.uid and not row.terminating)

    def tally(self, placement: Placement, robot: str) -> RobotTally:
        """What is counted for a robot now. One that shares the sources counts as unreported (F10.3)."""
        fleet, shard = self.state.fleet, self.state.fleet.index.shard_of(robot)
        unit = shard_unit(shard) if placement.shared else robot
        is_lost = placement.shared and shard not in fleet.shards
        total = self.seats.total(placement.text, unit)
        report, applied = self.reports.of_placement(robot, placement.uid)
        rows = self.rows_of(placement, robot)
        pairs = [] if applied is None else [(row.uid, row.marks.number) for row in rows]
        is_acked = applied is not None and applied == applied_digest(pairs)
        return RobotTally(
            replicas=len(fleet.index.sources_of(placement.text)) if placement.shared else total.replicas,
            due=total.due,
            errors=total.errors + is_lost,
            terminating=total.terminating,
            stamp=total.stamp,
            acked=is_acked,
            report=Report.UNREPORTED if placement.shared else report,
            ready=self.returned.evaluations.ready(placement.text, robot),
            labels=fleet.index.robots[robot].labels,
            message=unknown_shard(shard, fleet.shards) if is_lost else total.message,
            away=self.shards.is_closed(robot, placement),
            unheard=not self.shards.is_heard(robot),
            is_unproven=not is_acked and any(True for _ in self.rows_of(placement, robot)),
        )
