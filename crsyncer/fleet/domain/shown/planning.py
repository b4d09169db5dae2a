"""What the controller would write, name by name: `crsyncer fleet plan` (F11, section 12).

It asks the same functions as the controller, of a fleet in which the planned events have happened.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import assert_never

from crsyncer.core.model import Json
from crsyncer.fleet.domain.change import Input
from crsyncer.fleet.domain.fleet import Fleet
from crsyncer.fleet.domain.losses import ROBOT_SECONDS, Losses
from crsyncer.fleet.domain.replica_plan import Removal, is_due
from crsyncer.fleet.domain.rollout.reports import Report
from crsyncer.fleet.domain.values import (
    Blocked,
    Create,
    Delete,
    Nothing,
    Patch,
    Placement,
    ReplicaKey,
    ReplicaPlan,
    Row,
    Wait,
)

SCHEMA = "crsyncer.fleet-plan/v1"
_VERBS = ("create", "update", "delete")


@dataclass(frozen=True, slots=True)
class Planned:
    """What is done about one replica once its time has come. `is_held`: only after a release."""

    plan: ReplicaPlan
    is_held: bool = False


def planned(fleet: Fleet, losses: Losses, key: ReplicaKey, *, now: float) -> Planned:
    """What becomes of a replica if nothing else happens.

    The losses are those of the plan alone: they are told that every kind is seen to be served later.
    """
    later = now + ROBOT_SECONDS
    for name in {Input.ROBOTS, Input.PLACEMENTS, key.resource} - fleet.dead:
        losses.served(name, is_served=True, now=later)
    removal = losses.removal(key, later)
    if removal is Removal.HELD:
        return Planned(fleet.decide(key, removal=losses.manner(key)), is_held=True)
    return Planned(fleet.decide(key, removal=removal))


def turn(fleet: Fleet, key: ReplicaKey, report: Report = Report.UNREPORTED) -> str:
    """When a rollout lets a replica be written or removed: now, inTurn or deferred (F8.1, F8.4).

    Only replicas that are due wait for their robot's turn, and removals from a robot that has such ones.
    """
    wanted, row = fleet.wanted(key), fleet.rows.get(key)
    placement = wanted.placement if wanted is not None else _marked(fleet, row)
    if placement is None or placement.rollout is None:
        return "now"
    if not (is_due(wanted, row) if wanted is not None else _has_due(fleet, placement, key.robot)):
        return "now"
    return "deferred" if report is Report.OFFLINE and not placement.rollout.stamp_offline else "inTurn"


def _marked(fleet: Fleet, row: Row | None) -> Placement | None:
    """The placement whose mark a replica bears."""
    return None if row is None else fleet.index.placement(row.marks.placement)


def _has_due(fleet: Fleet, placement: Placement, robot: str) -> bool:
    """Whether a placement has replicas due on a robot that it selects."""
    if robot not in fleet.index.robots_of(placement.text):
        return False
    return any(
        wanted.placement is placement and is_due(wanted, fleet.rows.get(key))
        for key in fleet.index.keys(placement.text, robots=[robot])
        if (wanted := fleet.wanted(key)) is not None
    )


def plan(
    fleet: Fleet,
    losses: Losses,
    keys: Iterable[ReplicaKey],
    *,
    now: float,
    reports: Mapping[str, Report] | None = None,
) -> Json:
    """The document of all writes to these replicas, sorted by kind, namespace and name.

    `reports`: what is known of robots' agents; of the others nothing is.
    """
    writes: list[Json] = []
    blocked: list[Json] = []
    for key in keys:
        found = planned(fleet, losses, key, now=now)
        when = "held" if found.is_held else turn(fleet, key, (reports or {}).get(key.robot, Report.UNREPORTED))
        match found.plan:
            case Nothing() | Wait():
                continue
            case Create():
                wanted = fleet.wanted(key)
                verb = "update" if wanted is not None and fleet.is_handed_over(wanted) else "create"
            case Patch():
                verb = "update"
            case Delete():
                verb = "delete"
            case Blocked(reason, message):
                source, _, _, _ = _names(fleet, key)
                blocked.append({"robot": key.robot, "source": source, "reason": str(reason), "message": message})
                continue
            case _:
                assert_never(found.plan)
        source, placement, namespace, name = _names(fleet, key)
        writes.append(
            {"verb": verb, "resource": key.resource, "namespace": namespace, "name": name, "robot": key.robot}
            | {"source": source, "placement": placement, "when": when}
        )
    counted = Counter(each["verb"] for each in writes)
    return {
        "schema": SCHEMA,
        "writes": sorted(writes, key=lambda each: (each["resource"], each["namespace"], each["name"])),
        "counts": {verb: counted[verb] for verb in _VERBS},
        "blocked": sorted(blocked, key=lambda each: (each["robot"], each["source"])),
    }


def _names(fleet: Fleet, key: ReplicaKey) -> tuple[str, str | None, str, str]:
    """Source, placement, namespace and name of a replica; the placement is None where it is gone."""
    wanted = fleet.wanted(key)
    if wanted is not None:
        return wanted.source.text, wanted.placement.text, wanted.namespace, wanted.name
    row = fleet.rows[key]
    placement = _marked(fleet, row)
    return row.marks.source, None if placement is None else placement.text, row.namespace, row.name
