"""Many robots that reported and do not any more: none is begun, for they are not silent ones (F8.5).

Without this, a deletion of the RobotSyncStates, as with their CRD, would have all robots written at once: those that
never reported are begun without limits. An agent whose report is refused asks again hourly (F9.2).
"""

from crsyncer.core.holds.deletion_rate import is_mass
from crsyncer.fleet.domain.rollout.reports import Report

_DOUBT_SECONDS = 2 * 3600.0
_SHARE = 0.2
"""As with losses (F5.2)."""


class VanishedReports:
    """The robots of one placement whose report vanished, as far as one leader has seen it."""

    def __init__(self) -> None:
        self._reporting: set[str] = set()
        self._vanished: dict[str, float] = {}
        """When each one's report vanished, in Unix seconds; the latest last."""

    def look(self, robot: str, report: Report, now: float) -> None:
        """A robot reports now, or it does not."""
        if report is not Report.UNREPORTED:
            self._reporting.add(robot)
            self._vanished.pop(robot, None)
        elif robot in self._reporting:
            self._reporting.discard(robot)
            self._vanished[robot] = now

    def forget(self, robot: str) -> None:
        """A robot is not selected any more."""
        self._reporting.discard(robot)
        self._vanished.pop(robot, None)

    def doubted_until(self, now: float, *, selected: int) -> float | None:
        """Until when no robot is begun, unless reports come back; None: not too many vanished."""
        while self._vanished and (first := next(iter(self._vanished.items())))[1] <= now - _DOUBT_SECONDS:
            del self._vanished[first[0]]
        if not is_mass(len(self._vanished), selected, share=_SHARE):
            return None
        return next(iter(self._vanished.values())) + _DOUBT_SECONDS
