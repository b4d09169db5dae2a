"""How far one robot is with what a placement writes for it, from one look to the next (F6.4, F8.2 to F8.5)."""

import math
from dataclasses import dataclass, replace

from crsyncer.core.reports.text import count, rfc3339, unix
from crsyncer.fleet.domain.rollout.decisions import Decided
from crsyncer.fleet.domain.rollout.reports import Report
from crsyncer.fleet.domain.rollout.robot_states import Begun, RobotTally, has_applied, robot_state
from crsyncer.fleet.domain.values import RobotState, Rollout

WRITTEN = frozenset({RobotState.IN_FLIGHT, RobotState.STAMPED, RobotState.FAILED})
"""The states in which a robot that was begun is written to its end."""


@dataclass(frozen=True, slots=True)
class RobotProgress:
    """What is remembered of one robot. Times are Unix seconds."""

    state: RobotState
    since: float
    stamp: str
    """Of the content that the rest is about."""
    begun: Begun = Begun.NO
    failed: bool = False
    unproven: str = ""
    """The stamp of what was begun last and never Ready; "": what the robot has was Ready, or it has nothing."""
    steady_since: float | None = None
    """Since when all is written, acked and as `readyWhen` asks, and the robot not offline; None once it is Ready."""
    message: str = ""
    """Why it is Blocked."""


def restored(stored: Decided | None, tally: RobotTally, now: float) -> RobotProgress:
    """What a new leader knows of a robot: what its Decision says (F8.4).

    Without one it is new; what it has and has not acked was never Ready, and a robot that this took offline would
    otherwise be left for later for ever.

    A robot that is InFlight or Failed with a stamp counts as begun online. The stamp is missing where the content was
    Ready before; then it is taken to be that of now unless a replica is due.
    """
    if stored is None:
        unproven = tally.stamp if tally.is_unproven else ""
        return RobotProgress(RobotState.WAITING, math.floor(now), tally.stamp, unproven=unproven)
    found = RobotProgress(stored.state, _since(stored.since, now), tally.stamp, unproven=stored.stamp)
    match stored.state:
        case RobotState.READY:
            return replace(found, stamp=stored.stamp, unproven="")
        case RobotState.IN_FLIGHT | RobotState.FAILED:
            is_failed = stored.state is RobotState.FAILED
            if not stored.stamp:
                return replace(found, stamp="" if tally.due else tally.stamp, failed=is_failed)
            return replace(found, stamp=stored.stamp, begun=Begun.ONLINE, failed=is_failed)
        case RobotState.BLOCKED if stored.stamp:
            return replace(found, stamp=stored.stamp, message=stored.message)
        case RobotState.STAMPED if stored.stamp:
            return replace(found, stamp=stored.stamp, begun=Begun.SILENT)
    return found


def _since(text: str, now: float) -> float:
    """The time in a Decision; one that is not sound, or in the future, is now."""
    try:
        return max(0.0, min(unix(text), math.floor(now)))
    except (ValueError, OverflowError):
        return math.floor(now)


def looked_at(old: RobotProgress, tally: RobotTally, rollout: Rollout | None, now: float) -> RobotProgress:
    """The progress of a robot as it is now. New content ends what was begun, and a failure."""
    is_new = old.stamp != tally.stamp
    was_ready = old.state is RobotState.READY and not is_new
    is_failed = False
    if rollout is not None and not is_new:
        is_over = old.state is RobotState.IN_FLIGHT and now >= old.since + rollout.progress_deadline_seconds
        is_failed = old.failed or is_over
    begun = Begun.NO if is_new or rollout is None else old.begun
    steady_since = None
    if _is_steady(tally, begun):
        steady_since = now if old.steady_since is None or is_new else old.steady_since
    state = robot_state(
        tally,
        begun=begun,
        ready_when=tally.ready if was_ready or tally.ready is None else _has_held(steady_since, rollout, now),
        was_ready=was_ready,
        failed=is_failed,
        deferred=rollout is not None and not rollout.stamp_offline and not old.unproven,
        has_rollout=rollout is not None,
    )
    is_untried = state is RobotState.WAITING and old.state is RobotState.BLOCKED and rollout is None and not is_new
    if is_untried:
        state = RobotState.BLOCKED  # what the server refused, and is asked for again, is as it was until it answers
    is_same = state is old.state and not (is_new and state is RobotState.IN_FLIGHT)
    unproven = old.unproven
    if state is RobotState.READY:
        unproven = ""
    elif (unproven and not tally.due) or (rollout is None and tally.due):
        unproven = tally.stamp  # it is there, or it is written at once
    return RobotProgress(
        state=state,
        since=old.since if is_same else math.floor(now),
        stamp=tally.stamp,
        begun=begun if state in WRITTEN else Begun.NO,
        failed=state is RobotState.FAILED,
        unproven=unproven,
        steady_since=None if state is RobotState.READY else steady_since,
        message=old.message if is_untried else tally.message,
    )


def _is_steady(tally: RobotTally, begun: Begun) -> bool:
    """Whether all is written, acked and as `readyWhen` asks, and the robot not offline."""
    if tally.due or tally.errors or tally.report is Report.OFFLINE or tally.ready is False:
        return False
    return has_applied(tally, begun)


def _has_held(since: float | None, rollout: Rollout | None, now: float) -> bool:
    return since is not None and now >= since + (rollout.min_ready_seconds if rollout is not None else 0.0)


def next_look(progress: RobotProgress, rollout: Rollout | None) -> float | None:
    """When time alone changes the state of a robot; None: it does not."""
    if rollout is None:
        return None
    times = []
    if progress.state is RobotState.IN_FLIGHT:
        times.append(progress.since + rollout.progress_deadline_seconds)
    if progress.steady_since is not None:
        times.append(progress.steady_since + rollout.min_ready_seconds)
    return min(times, default=None)


def begin(old: RobotProgress, tally: RobotTally, now: float) -> RobotProgress:
    """Begin a robot: InFlight if it is online, else Stamped (F8.2)."""
    is_online = tally.report is Report.ONLINE
    return replace(
        old,
        state=RobotState.IN_FLIGHT if is_online else RobotState.STAMPED,
        since=math.floor(now),
        begun=Begun.ONLINE if is_online else Begun.SILENT,
        unproven=tally.stamp,
    )


def may_write(progress: RobotProgress, tally: RobotTally, stored: Decided | None, rollout: Rollout | None) -> bool:
    """Whether the replicas of a robot that are due may be written now: its stored Decision must say so (F6.3, F8.2).

    A robot that has failed is written to its end as well: else it would never be Ready.
    """
    if stored is None or rollout is None:
        return stored is not None
    if progress.state is RobotState.FAILED and stored.state is RobotState.FAILED:
        return stored.stamp == progress.unproven
    return progress.begun is not Begun.NO and stored.state in WRITTEN and stored.stamp == tally.stamp


def decided(progress: RobotProgress, tally: RobotTally) -> Decided:
    """What a Decision says of a robot."""
    return Decided(
        state=progress.state,
        since=rfc3339(progress.since) or "",
        stamp=progress.stamp if progress.state is RobotState.READY else progress.unproven,
        message=_failure(tally) if progress.state is RobotState.FAILED else progress.message,
    )


def _failure(tally: RobotTally) -> str:
    """What a robot that has failed lacks."""
    if tally.errors or tally.due:
        return tally.message or f"{count(tally.due, 'replica')} could not be written"
    return "readyWhen does not hold" if tally.acked else "the robot has not applied all that was written"
