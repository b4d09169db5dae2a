"""What the controller would write, name by name: `crsyncer fleet plan` (F11, section 12).

It asks the same functions as the controller, of a fleet in which the planned events have happened.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import assert_never

from crsyncer.core.model import Json
from crsyncer.fleet.domain.fleet import Fleet
from crsyncer.fleet.domain.losses import ROBOT_SECONDS, Losses, needed
from crsyncer.fleet.domain.replica_plan import Removal, name_taken
from crsyncer.fleet.domain.shown.turns import BLOCKED, Turns
from crsyncer.fleet.domain.values import (
    Blocked,
    Create,
    Delete,
    Nothing,
    Patch,
    Reason,
    ReplicaKey,
    ReplicaPlan,
    Wait,
)

SCHEMA = "crsyncer.fleet-plan/v1"
Place = tuple[str, str, str]
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
    for name in needed(key) - fleet.dead:
        losses.served(name, is_served=True, now=later)
    removal = losses.removal(key, later)
    is_held = removal is Removal.HELD
    plan = fleet.decide(key, fleet.wanted(key), removal=losses.manner(key) if is_held else removal)
    return Planned(plan, is_held=is_held)


def plan(fleet: Fleet, losses: Losses, keys: Iterable[ReplicaKey], *, now: float, turns: Turns) -> Json:
    """The document of all writes to these replicas, sorted by kind, namespace and name.

    Of replicas that are to have one name, the first is made, and the others are blocked.
    """
    writes: list[Json] = []
    blocked: list[Json] = []
    taken = {(key.kind, row.namespace, row.name) for key, row in fleet.rows.items()}  # no other can be there (F3.7)
    found = [(key, planned(fleet, losses, key, now=now)) for key in sorted(keys)]
    for key, each in found:
        if isinstance(each.plan, Delete) and not each.is_held:
            taken.discard(_place(fleet, key))
    for key, each in found:
        what = each.plan
        if isinstance(what, Create):
            what = _created(fleet, key, what, taken)
        if isinstance(what, (Create, Patch)) and (refusal := turns.refusal(key)) is not None:
            what = Blocked(Reason(refusal[0]), refusal[1])
        if isinstance(what, (Nothing, Wait)):
            continue
        source, placement, namespace, name = _names(fleet, key)
        match what:
            case Create():
                wanted = fleet.wanted(key)
                verb = "update" if wanted is not None and fleet.is_handed_over(wanted) else "create"
            case Patch():
                verb = "update"
            case Delete():
                verb = "delete"
            case Blocked(reason, message):
                blocked.append(
                    {"robot": key.robot or None, "source": source, "reason": str(reason), "message": message}
                )
                continue
            case _:
                assert_never(what)
        when = "held" if each.is_held else turns.of(key)
        if when == BLOCKED:
            continue  # the robot's errors are listed
        writes.append(
            {
                "verb": verb,
                "resource": key.resource,
                "shard": key.shard,
                "namespace": namespace,
                "name": name,
                "robot": key.robot or None,
                "source": source,
                "placement": placement,
                "when": when,
            }
        )
    counted = Counter(each["verb"] for each in writes)
    return {
        "schema": SCHEMA,
        "writes": sorted(writes, key=lambda each: (each["resource"], each["namespace"], each["name"])),
        "counts": {verb: counted[verb] for verb in _VERBS},
        "blocked": sorted(blocked, key=lambda each: (each["robot"] or "", each["source"])),
    }


def _names(fleet: Fleet, key: ReplicaKey) -> tuple[str, str | None, str, str]:
    """Source, placement, namespace and name of a replica; the placement is None where it is gone."""
    wanted = fleet.wanted(key)
    if wanted is not None:
        return wanted.source.text, wanted.placement.text, wanted.namespace, wanted.name
    row = fleet.rows[key]
    placement = fleet.index.placement(row.marks.placement)
    return row.marks.source, None if placement is None else placement.text, row.namespace, row.name


def _place(fleet: Fleet, key: ReplicaKey) -> Place:
    return (key.kind, *_names(fleet, key)[2:])


def _created(fleet: Fleet, key: ReplicaKey, create: Create, taken: set[Place]) -> Create | Blocked:
    """What becomes of a replica that is to be made, by the places that are taken; it takes its own."""
    wanted, place = fleet.wanted(key), _place(fleet, key)
    if wanted is not None and place in taken:
        return name_taken(wanted)
    taken.add(place)
    return create
