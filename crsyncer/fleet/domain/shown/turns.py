"""When a rollout lets each replica be written: now, when its robot's turn comes, or when the robot is back (F8)."""

from collections.abc import Iterable

from crsyncer.core.reports.robot_report import applied_digest
from crsyncer.fleet.domain.fleet import Fleet
from crsyncer.fleet.domain.replica_plan import Removal, is_due
from crsyncer.fleet.domain.rollout.decisions import Decided, Decision
from crsyncer.fleet.domain.rollout.reports import OfPlacement
from crsyncer.fleet.domain.rollout.robot_progress import looked_at, may_write, restored
from crsyncer.fleet.domain.rollout.robot_states import RobotTally
from crsyncer.fleet.domain.seats import Seats, seat_of
from crsyncer.fleet.domain.shown.fleet_reasons import errors_of, items
from crsyncer.fleet.domain.transport.keys import shard_unit
from crsyncer.fleet.domain.values import Placement, Reason, ReplicaKey, RobotState

NOW, IN_TURN, DEFERRED, BLOCKED = "now", "inTurn", "deferred", "blocked"
"""BLOCKED: the robot is not begun while a replica of it has an error."""
_ANSWERS = (Reason.REFUSED, Reason.CONTESTED)
"""What a write has met. All else is known without one."""


class Turns:
    """The turn of each replica, by the Decisions and reports that are stored. Each robot is looked at once."""

    def __init__(self, fleet: Fleet, *, decisions: Iterable[Decision], reports: OfPlacement, now: float) -> None:
        self._fleet = fleet
        self._reports = reports
        self._now = now
        self._decided: dict[tuple[str, str], Decided] = {}
        """By the placement's uid, and robot."""
        for each in sorted(decisions, key=lambda decision: decision.number, reverse=True):
            self._decided |= {(each.placement_uid, robot): decided for robot, decided in each.robots.items()}
        self._turns: dict[tuple[str, str], str] = {}

    def decided(self, placement: Placement, robot: str) -> Decided | None:
        """What the Decisions say of a robot."""
        return self._decided.get((placement.uid, robot))

    def acked(self, placement: Placement, robot: str) -> bool | None:
        """Whether a robot has applied all that was written for it (F9.6); None: it reports nothing of the placement."""
        rows = [self._fleet.rows[key] for key in self._fleet.rows_by_robot.get(robot, ())]
        mine = (row for row in rows if row.marks.placement == placement.uid and not row.terminating)
        written = [(row.uid, row.marks.number) for row in mine]
        _, applied = self._reports(robot, placement.uid)
        return None if applied is None else applied == applied_digest(written)

    def of(self, key: ReplicaKey) -> str:
        """The turn of a replica: only what is due waits, and removals from a robot that has replicas due (F8.1)."""
        wanted, row = self._fleet.wanted(key), self._fleet.rows.get(key)
        if wanted is not None:
            return self._turn(wanted.placement, key.robot) if is_due(wanted, row) else NOW
        placement = None if row is None else self._fleet.index.placement(row.marks.placement)
        return NOW if placement is None else self._turn(placement, key.robot)

    def _turn(self, placement: Placement, robot: str) -> str:
        """The turn of a robot; one without due replicas waits for nothing."""
        if placement.rollout is None or robot not in self._fleet.index.robots_of(placement.text):
            return NOW
        place = (placement.uid, robot)
        if place not in self._turns:
            self._turns[place] = self._look(placement, robot)
        return self._turns[place]

    def refusal(self, key: ReplicaKey) -> tuple[str, str] | None:
        """Reason and message where the server has refused just what is due; None: it was not asked, or took it.

        A Decision that says Blocked has the stamp of what could not be written; the status names the first errors. Of a
        copy, each robot of its shard says that.
        """
        wanted = self._fleet.wanted(key)
        if wanted is None or (robot := self._robot(key, wanted.placement)) is None:
            return None
        decided = self.decided(wanted.placement, robot)
        if decided is None or decided.state is not RobotState.BLOCKED:
            return None
        if decided.stamp != self._tally(wanted.placement, robot).stamp:
            return None
        status = wanted.placement.status
        answers = [each for each in errors_of(wanted.placement, key.robot, key.shard) if each.get("reason") in _ANSWERS]
        answer = next((each for each in answers if each.get("source") == wanted.source.text), None)
        if answer is not None:
            return str(answer["reason"]), str(answer.get("message") or "")
        more = status.get("errorCount")
        is_cut = isinstance(more, int) and more > len(items(status, "errors"))
        return (str(Reason.REFUSED), decided.message) if is_cut else None

    def _robot(self, key: ReplicaKey, placement: Placement) -> str | None:
        """The robot of a replica; of a copy one on its shard, if there is any."""
        index = self._fleet.index
        on_shard = (each for each in index.robots_of(placement.text) if index.shard_of(each) == key.shard)
        return key.robot or min(on_shard, default=None)

    def _look(self, placement: Placement, robot: str) -> str:
        tally, stored = self._tally(placement, robot), self.decided(placement, robot)
        if not tally.due:
            return NOW
        progress = looked_at(restored(stored, tally, self._now), tally, placement.rollout, self._now)
        if may_write(progress, tally, stored, placement.rollout):
            return NOW
        if tally.errors:
            return BLOCKED
        return DEFERRED if progress.state is RobotState.DEFERRED else IN_TURN

    def _tally(self, placement: Placement, robot: str) -> RobotTally:
        fleet, seats = self._fleet, Seats()
        for key in fleet.index.keys(placement.text, robots=[robot]):
            wanted = fleet.wanted(key)
            if wanted is not None and wanted.placement is placement:
                plan = fleet.decide(key, wanted, removal=Removal.UNKNOWN)
                seats.put(key, seat_of(key, wanted, fleet.rows.get(key), plan, None))
        total = seats.total(placement.text, shard_unit(fleet.index.shard_of(robot)) if placement.shared else robot)
        return RobotTally(
            replicas=total.replicas,
            due=total.due,
            errors=total.errors,
            terminating=total.terminating,
            stamp=total.stamp,
            acked=False,
            report=self._reports(robot, placement.uid)[0],
            ready=None,
        )
