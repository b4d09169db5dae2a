"""The state of a robot in a placement, and what a placement's status shows of all of them (F6.3, F6.4)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from crsyncer.core.model import Json
from crsyncer.core.reports.text import count
from crsyncer.fleet.domain.rollout.reports import Report
from crsyncer.fleet.domain.values import Hold, Placement, Reason, RobotState

MOST_ERRORS = 20
MOST_HOLDS = 20
_MESSAGE = 256
_CONDITION_MESSAGE = 1024


@dataclass(frozen=True, slots=True)
class RobotTally:
    """What the controller counts for one robot of one placement."""

    replicas: int
    due: int
    """Replicas that are missing or have another stamp (F6.4)."""
    errors: int
    """Replicas with an error."""
    terminating: int
    """Due replicas that are there and terminate."""
    stamp: str
    """The digest of the stamps that all its replicas shall have."""
    acked: bool
    """The robot has applied all that was written for it (F9.6)."""
    report: Report
    ready: bool | None
    """Whether `readyWhen` holds now; None: there is no `readyWhen`."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Of the Robot."""
    message: str = ""
    """Why it is Blocked."""
    away: bool = False
    """Its shard cannot be seen: it is not known what the robot has, and it is not begun."""
    unheard: bool = False
    """Nobody knows yet whether it reports: it counts where it would be begun online."""
    is_unproven: bool = False
    """It has replicas, and has not acked them: they were never Ready (F6.4)."""


class Begun(StrEnum):
    """Whether the content of now was begun, and how."""

    NO = "no"
    ONLINE = "online"
    SILENT = "silent"
    """It was not online then."""


def robot_state(
    tally: RobotTally,
    *,
    begun: Begun,
    ready_when: bool | None,
    was_ready: bool,
    failed: bool,
    deferred: bool,
    has_rollout: bool,
) -> RobotState:
    """The first of these that applies (F6.4).

    state     when
    Ready     it has no replicas; or nothing is due or has an error, all are acked (an unreported robot that was not
              begun online: there is a readyWhen), and readyWhen, if any, holds, the robot not offline unless its
              Decision says Ready already
    Failed    it was in flight for too long
    InFlight  it was begun online; or it is online, and nothing is due or has an error
    Blocked   a replica has an error
    Deferred  a replica is due, and the robot is offline and left for later, or that replica is terminating there
    Waiting   a replica is due, and the robot was not begun
    Stamped   else: it is offline or unreported, or was so when it was begun

    `ready_when`: whether it has held for `minReadySeconds`; None: there is none. `was_ready`: the Decision says Ready
    for the stamp of now. `failed`: F8.3. `deferred`: the robot is left for later (F8.4).
    """
    settled, stamped = not tally.due and not tally.errors, begun is Begun.SILENT
    offline, online = tally.report is Report.OFFLINE, tally.report is Report.ONLINE
    holds = has_applied(tally, begun) and ready_when is not False
    if not tally.replicas or (settled and holds and (was_ready or not offline)):
        return RobotState.READY
    if failed:
        return RobotState.FAILED
    if begun is Begun.ONLINE or (online and settled):
        return RobotState.IN_FLIGHT
    if tally.errors:
        return RobotState.BLOCKED
    if has_rollout and tally.due and offline and tally.terminating >= (tally.due if stamped else 1):
        return RobotState.DEFERRED
    if tally.due and not stamped:
        return RobotState.DEFERRED if offline and deferred else RobotState.WAITING
    return RobotState.STAMPED


def has_applied(tally: RobotTally, begun: Begun) -> bool:
    """Whether a robot has acked all, or need not, since it is unreported and there is a `readyWhen`.

    A robot that was begun online must ack, also if its report is gone: its status may be that of the old content.
    """
    may_lack_report = tally.ready is not None and begun is not Begun.ONLINE
    return tally.acked or (tally.report is Report.UNREPORTED and may_lack_report)


@dataclass(frozen=True, slots=True, order=True)
class Fault:
    """One thing that is wrong with a robot or replica: an item of `errors`, in this order."""

    robot: str
    source: str
    reason: Reason
    message: str


class Gate(StrEnum):
    """Why none of the robots that wait is begun: a reason of `RolledOut` (F8)."""

    PAUSED = "Paused"
    NO_REPORTS = "NoReports"
    TOO_MANY_FAILURES = "TooManyFailures"
    WAITING_FOR_GROUP = "WaitingForGroup"


_GATES = {
    Gate.PAUSED: "the rollout is paused",
    Gate.NO_REPORTS: "the RobotSyncStates are not listed, or many vanished",
    Gate.TOO_MANY_FAILURES: "more robots than maxFailures have failed",
    Gate.WAITING_FOR_GROUP: "an earlier group has a robot InFlight, or none that is Ready",
}


def counts(states: Mapping[RobotState, int], reports: Mapping[Report, int], *, replicas: int) -> dict[str, int]:
    """`status.counts`, of how many robots there are by state and by report: the last seven add up to `selected`."""
    return {
        "selected": sum(states.values()),
        "replicas": replicas,
        "offline": reports.get(Report.OFFLINE, 0),
        "unreported": reports.get(Report.UNREPORTED, 0),
        **{f"{each[0].lower()}{each[1:]}": states.get(each, 0) for each in _COUNTED},
    }


_COUNTED = (
    RobotState.BLOCKED,
    RobotState.DEFERRED,
    RobotState.WAITING,
    RobotState.FAILED,
    RobotState.READY,
    RobotState.IN_FLIGHT,
    RobotState.STAMPED,
)


@dataclass(frozen=True, slots=True)
class Unresolved:
    """Why `Resolved` is false: NotServed, NotPlaceable, NotAllowed, BadExpression or Unreadable."""

    reason: str
    message: str


def _unused(placement: Placement) -> str:
    """What a placement that can be followed says in vain."""
    is_unused = placement.shared and placement.singleton
    return "mode Shared writes no robot's status to a source: statusReturn has no effect" if is_unused else ""


def _rolled_out(
    placement: Placement, counted: Mapping[str, int], *, gated: bool, gate: Gate | None
) -> tuple[bool, str, str]:
    open_ = {name: counted[name] for name in ("waiting", "inFlight", "failed", "blocked")}
    if any(open_.values()):
        reason, message = _reason(open_, "")
        return (False, reason, message) if gate is None else (False, gate, f"{_GATES[gate]}; {message}")
    if counted["deferred"]:
        return True, "Deferred", f"{_robots_are(counted['deferred'])} left for later"
    if placement.rollout is not None and not gated:
        return True, "Ungated", "no robot reports"
    return True, "RolledOut", ""


def _reason(numbers: Mapping[str, int], good: str) -> tuple[str, str]:
    """The first state that stands against a condition, and how many robots are in each."""
    against = [(name, number) for name, number in numbers.items() if number]
    if not against:
        return good, ""
    name = against[0][0]
    return name[0].upper() + name[1:], ", ".join(f"{_robots_are(number)} {name}" for name, number in against)


def _robots_are(number: int) -> str:
    return f"{count(number, 'robot')} {'is' if number == 1 else 'are'}"


def _condition(kind: str, is_true: bool, reason: str, message: str) -> Json:
    return {"type": kind, "status": str(is_true), "reason": reason, "message": message[:_CONDITION_MESSAGE]}


def _since(old: Any, new: Json, now: str) -> str:
    kept = old is not None and old.get("status") == new["status"]
    return str(old.get("lastTransitionTime") or now) if kept else now


def placement_status(
    placement: Placement,
    counted: Mapping[str, int],
    *,
    faults: Iterable[Fault],
    holds: Sequence[Hold],
    unresolved: Unresolved | None,
    gated: bool,
    now: str,
    gate: Gate | None = None,
    group: int = 0,
    collected: tuple[bool, str, str] | None = None,
    warning: str = "",
    singletons: Sequence[Json] = (),
) -> Json:
    """The status of a placement: at most 20 errors and holds are shown, and all errors are counted.

    `now` is RFC 3339; a condition that stays keeps its time. `gated`: a robot reports, so that a rollout waits for it
    (F8.5). `gate`: why no robot is begun although some wait. `group`: the one that the rollout is at; 0: there is no
    rollout. `collected`: status, reason and message of `Collected`. `warning`: what `Resolved` says where it is true.
    """
    wrong = sorted(faults)
    unwritten = {name: counted[name] for name in ("blocked", "deferred", "waiting")}
    resolved = (unresolved.reason, unresolved.message) if unresolved else ("Resolved", warning or _unused(placement))
    conditions = [
        _condition("Resolved", unresolved is None, *resolved),
        _condition("Stamped", not any(unwritten.values()), *_reason(unwritten, "Stamped")),
        _condition("RolledOut", *_rolled_out(placement, counted, gated=gated, gate=gate)),
        _condition(
            "Held", bool(holds), holds[0].reason if holds else "NothingHeld", "; ".join(each.message for each in holds)
        ),
        *([] if collected is None else [_condition("Collected", *collected)]),
    ]
    stored = placement.status.get("conditions")
    old = {each.get("type"): each for each in stored if isinstance(each, dict)} if isinstance(stored, list) else {}
    for each in conditions:
        each["lastTransitionTime"] = _since(old.get(each["type"]), each, now)
        each["observedGeneration"] = placement.generation
    return {
        "observedGeneration": placement.generation,
        "conditions": conditions,
        "counts": dict(counted),
        **({"group": group} if group else {}),
        "errors": [
            {"robot": each.robot, "source": each.source, "reason": str(each.reason), "message": each.message[:_MESSAGE]}
            for each in wrong[:MOST_ERRORS]
        ],
        "errorCount": len(wrong),
        **({"singletons": singletons} if singletons or placement.status.get("singletons") else {}),
        "holds": [
            {"id": each.id, "reason": each.reason, "objects": len(each.uids), "message": each.message[:_MESSAGE]}
            for each in holds[:MOST_HOLDS]
        ],
    }
