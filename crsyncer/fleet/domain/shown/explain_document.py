"""The document of `crsyncer fleet explain`, schema `crsyncer.fleet-explain/v1`: why each replica is as it is."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import assert_never

from crsyncer.core.model import Json, Key
from crsyncer.fleet.domain.fleet import Fleet
from crsyncer.fleet.domain.losses import Losses
from crsyncer.fleet.domain.names import source_id
from crsyncer.fleet.domain.read_objects import unreadable
from crsyncer.fleet.domain.replica_plan import is_due
from crsyncer.fleet.domain.shared.source_marks import UNWRITTEN, decide_mark
from crsyncer.fleet.domain.shown.fleet_reasons import errors_of, items
from crsyncer.fleet.domain.shown.planning import planned
from crsyncer.fleet.domain.shown.turns import Turns
from crsyncer.fleet.domain.transport.keys import ROOT
from crsyncer.fleet.domain.values import (
    Blocked,
    Create,
    Delete,
    Nothing,
    Patch,
    Placement,
    Reason,
    Rendering,
    ReplicaKey,
    Row,
    SourceKey,
    Target,
    Verdict,
    Wait,
    Wanted,
)

SCHEMA = "crsyncer.fleet-explain/v1"
_RULES = {
    str(reason): rule
    for reason, rule in {
        Reason.NAME_TAKEN: "F3.7",
        Reason.TOO_LARGE: "F3.8",
        Reason.RENDER_FAILED: "F4.4",
        Reason.REFUSED: "F3.3",
        Reason.CONTESTED: "F3.5",
        Reason.UNKNOWN_SHARD: "F10.2",
        Reason.OTHER_SHARD: "F10.2",
    }.items()
}
_TURNS = {
    "now": "a controller writes it at once",
    "inTurn": "its robot waits for its turn in the rollout",
    "deferred": "its robot is offline, and is written when it is back",
    "blocked": "another replica of its robot has an error, and the rollout begins the robot once that is gone",
}


@dataclass(frozen=True, slots=True)
class _Why:
    verdict: str
    reason: str
    rule: str
    message: str


def fleet_explain(fleet: Fleet, losses: Losses, placement: Placement, robot: str, *, turns: Turns, now: float) -> Json:
    """Why each replica of a placement for a robot is as it is, by what is stored.

    The losses are those of this document alone, as of a plan.
    """
    selected = robot in fleet.index.robots_of(placement.text)
    keys = set(fleet.index.keys(placement.text, robots=[robot])) if selected else set()
    owner, shard = "" if placement.shared else robot, fleet.index.shard_of(robot)
    rows = fleet.rows_by_robot.get(owner, ())
    keys |= {key for key in rows if fleet.rows[key].marks.placement == placement.uid}
    if placement.shared:
        keys = {key for key in keys if key.shard == shard}
    errors = {each.get("source"): each for each in errors_of(placement, owner, shard)}
    acked, decided = turns.acked(placement, robot), turns.decided(placement, robot)
    found = [_replica(fleet, key, _why(fleet, losses, key, turns, now=now, errors=errors), acked) for key in keys]
    if placement.shared and selected and shard == ROOT:
        found += [_shared_source(fleet, source) for source in fleet.index.sources_of(placement.text)]
    return {
        "schema": SCHEMA,
        "placement": {"namespace": placement.namespace, "name": placement.name, "uid": placement.uid},
        "robot": robot,
        "robotKnown": robot in fleet.index.robots,
        "selected": selected,
        "state": None if decided is None else str(decided.state),
        "replicas": sorted(found, key=lambda each: (each["resource"], each["source"], each["name"])),
    }


def _replica(fleet: Fleet, key: ReplicaKey, why: _Why, acked: bool | None) -> Json:
    wanted, row = fleet.wanted(key), fleet.rows.get(key)
    made = wanted.rendering if wanted is not None else None
    place = wanted or row
    assert place is not None  # noqa: S101 what is neither wanted nor there has no key
    return _item(
        key,
        why,
        source=wanted.source.text if wanted is not None else fleet.rows[key].marks.source,
        place=Key(place.namespace, place.name),
        uid=None if row is None else row.uid,
        governor=None if wanted is None else wanted.placement,
        stamp=made.stamp if isinstance(made, Rendering) else None,
        written=None if row is None else row.marks.stamp,
        acked=None if row is None else acked,
    )


def _shared_source(fleet: Fleet, key: SourceKey) -> Json:
    """What is said of a source that the robots of the root have themselves (F10.3): only its mark is written."""
    governor = fleet.index.shared_governor(key)
    match plan := decide_mark(fleet, key):
        case Nothing():
            why = ("current", "Shared", "the robots of the root have the source itself, and it is marked as shared")
        case Patch() if governor is not None and (error := _refused_mark(governor, key)) is not None:
            why = ("blocked", str(error.get("reason")), str(error["message"]))
        case Patch():
            why = ("due", "NotMarked", "a controller marks it as shared at once: until then it takes robots' statuses")
        case Wait(reason):
            why = ("blocked", "NotMarked", reason)
        case _:
            assert_never(plan)
    verdict, reason, message = why
    return _item(
        ReplicaKey(key.resource, source_id(key), "", Target.SHARED),
        _Why(verdict, reason, "F10.3", message),
        source=key.text,
        place=Key(key.namespace, key.name),
        uid=fleet.index.sources[key].uid,
        governor=governor,
    )


def _refused_mark(placement: Placement, key: SourceKey) -> Json | None:
    """The error of a placement that says that the server refuses the mark of a source; None: it has none."""
    found = (each for each in items(placement.status, "errors") if each.get("source") == key.text)
    return next((each for each in found if str(each.get("message")).startswith(UNWRITTEN)), None)


def _item(
    key: ReplicaKey,
    why: _Why,
    *,
    source: str,
    place: Key,
    uid: str | None,
    governor: Placement | None,
    stamp: str | None = None,
    written: str | None = None,
    acked: bool | None = None,
) -> Json:
    return {
        "resource": key.resource,
        "shard": key.shard,
        "source": source,
        "sourceId": key.source_id,
        "namespace": place.namespace,
        "name": place.name,
        "uid": uid,
        "governedBy": None if governor is None else governor.text,
        "stamp": stamp,
        "written": written,
        "acked": acked,
        "verdict": why.verdict,
        "reason": why.reason,
        "rule": why.rule,
        "message": why.message,
    }


def _why(
    fleet: Fleet,
    losses: Losses,
    key: ReplicaKey,
    turns: Turns,
    *,
    now: float,
    errors: Mapping[object, Json],
) -> _Why:
    wanted, row = fleet.wanted(key), fleet.rows.get(key)
    found = planned(fleet, losses, key, now=now)
    if row is not None and found.is_held:
        hold = _hold(losses, row)
        return _Why("held", str(losses.held(key)), "F5.2", f"nobody wants it, and its removal is held: {hold}")
    if wanted is None or isinstance(found.plan, Delete):
        assert row is not None  # noqa: S101 what is neither wanted nor there has no key
        return _unwanted(fleet, key, row, found.plan)
    when = turns.of(key)
    error = errors.get(wanted.source.text)
    match found.plan:
        case Blocked(reason, message):
            return _Why("blocked", str(reason), _RULES[str(reason)], message)
        case Wait(reason):
            return _waiting(fleet, wanted, row, reason)
        case Nothing():
            message = "it contains what it must, and no one changed it"
            return _Why("current", "Current", "F3.4", message)
        case Create() | Patch() if error is not None:
            reason = str(error.get("reason"))
            return _Why("blocked", reason, _RULES.get(reason, "F6.4"), str(error.get("message") or ""))
        case Create():
            verdict = "deferred" if when == "deferred" else "missing"
            return _Why(verdict, "NotWritten", "F6.4", f"it is not there: {_TURNS[when]}")
        case Patch():
            return _changed(wanted, row, when)
        case _:
            assert_never(found.plan)


def _hold(losses: Losses, row: Row) -> str:
    """The words and the id of the hold that keeps a replica."""
    held = [hold for hold in losses.holds().get(row.marks.placement, ()) if row.uid in hold.uids]
    return next((f"{hold.message}; crsyncer fleet release {hold.id} shows it" for hold in held), "")


def _waiting(fleet: Fleet, wanted: Wanted, row: Row | None, reason: str) -> _Why:
    if wanted.placement.problem:
        code = unreadable(wanted.placement)
        return _Why("blocked", code, _RULES.get(code, "F2.1"), reason)
    if wanted.kind.shard in fleet.unread:
        message = f"shard {wanted.kind.shard} was not read: nobody knows here if the replica is there"
        return _Why("blocked", "NotRead", "F1.1", message)
    if wanted.kind.verdict is not Verdict.PLACEABLE:
        return _Why("blocked", str(wanted.kind.verdict), "F2.3", reason)
    if fleet.obstacle(wanted):
        return _Why("blocked", "KindNotServed", "F4.2", reason)
    if row is not None and row.terminating:
        return _Why("deferred", "Terminating", "F6.4", "it is being deleted, and is made again when it is gone")
    return _Why("blocked", "NotListed", "F1.1", reason)


def _changed(wanted: Wanted, row: Row | None, when: str) -> _Why:
    if is_due(wanted, row):
        verdict = "deferred" if when == "deferred" else "due"
        return _Why(verdict, "OtherStamp", "F3.4", f"its source, placement or robot has changed: {_TURNS[when]}")
    if row is not None and row.marks.placement != wanted.placement.uid:
        return _Why(
            "due", "OtherPlacement", "F2.4", f"{wanted.placement.text} governs it now: its marks change at once"
        )
    return _Why("due", "Drifted", "F3.5", "somebody changed it: it is written again")


def _unwanted(fleet: Fleet, key: ReplicaKey, row: Row, plan: object) -> _Why:
    index = fleet.index
    if fleet.is_foreign(key):
        message = (
            f"the Robot's label names shard {index.shard_of(key.robot)}: what is on shard {key.shard} is left as it is"
        )
        return _Why("blocked", str(Reason.OTHER_SHARD), "F10.2", f"{message}; crsyncer door split moves robots")
    why = (
        ("RobotGone", f"there is no Robot {key.robot}")
        if key.robot and key.robot not in index.robots
        else ("NotSelected", "no placement selects its source for this robot")
    )
    if row.terminating:
        return _Why("due", why[0], "F5.1", f"{why[1]}: it is being deleted")
    match plan:
        case Delete():
            return _Why("due", why[0], "F5.1", f"{why[1]}: it is deleted")
        case Patch():
            return _Why("due", why[0], "F5.4", f"{why[1]}: our label and annotation are removed from it")
    return _Why(
        "blocked", why[0], "F5.2", f"{why[1]}, but that is not certain: its kind or placement cannot be followed"
    )
