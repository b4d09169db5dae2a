"""The document of `crsyncer fleet release`, schema `crsyncer.fleet-release/v1`: what each hold keeps, and where."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from crsyncer.core.content.object_content import digest
from crsyncer.core.model import Json
from crsyncer.fleet.domain.fleet import Fleet
from crsyncer.fleet.domain.losses import Losses
from crsyncer.fleet.domain.rollout.decisions import Decision
from crsyncer.fleet.domain.shown.fleet_reasons import items
from crsyncer.fleet.domain.values import Placement, ReplicaKey

SCHEMA = "crsyncer.fleet-release/v1"
_MOST_ROBOTS = 200
"""Of more robots not each is tried."""


@dataclass(frozen=True, slots=True)
class HeldHere:
    """One hold, and the object that is annotated to release it."""

    id: str
    reason: str
    message: str
    objects: int
    namespace: str
    placement: str
    uid: str
    """The placement's."""
    decision: str = ""
    """The Decision that is annotated; empty: the placement is."""
    names: tuple[str, ...] | None = None
    """The replicas, as RESOURCE/NAMESPACE/NAME; None: not known."""


def shown_holds(placements: Iterable[Placement]) -> list[HeldHere]:
    """The holds that the statuses of placements show."""
    return [
        HeldHere(
            id=str(each.get("id")),
            reason=str(each.get("reason") or ""),
            message=str(each.get("message") or ""),
            objects=int(each.get("objects") or 0),
            namespace=placement.namespace,
            placement=placement.name,
            uid=placement.uid,
        )
        for placement in sorted(placements, key=lambda each: each.text)
        for each in items(placement.status, "holds")
    ]


def orphans(decisions: Iterable[Decision], placements: Iterable[Placement]) -> dict[str, Decision]:
    """By the uid of each placement that is gone: the first Decision that remembers it (F5.2)."""
    known, found = {each.uid for each in placements}, dict[str, Decision]()
    for each in sorted(decisions, key=lambda each: (each.namespace, each.name)):
        if each.placement_uid not in known:
            found.setdefault(each.placement_uid, each)
    return found


def orphan_holds(losses: Losses, gone: dict[str, Decision]) -> list[HeldHere]:
    """The holds of placements that are gone: nothing shows them but the Decisions that are left."""
    return [
        HeldHere(
            id=hold.id,
            reason=hold.reason,
            message=hold.message,
            objects=len(hold.uids),
            namespace=decision.namespace,
            placement=decision.placement,
            uid=uid,
            decision=decision.name,
        )
        for uid, decision in gone.items()
        for hold in losses.holds().get(uid, ())
    ]


def with_names(held: HeldHere, fleet: Fleet, losses: Losses) -> HeldHere:
    """The same with the replicas that it keeps: those of which the uids make its id (F5.2)."""
    rows = fleet.rows
    for keys in _candidates(held, fleet, losses):
        if digest(sorted(rows[key].uid for key in keys)) == held.id:
            places = [filter(None, (key.resource, rows[key].namespace, rows[key].name)) for key in keys]
            return replace(held, names=tuple(sorted("/".join(each) for each in places)))
    return held


def _candidates(held: HeldHere, fleet: Fleet, losses: Losses) -> Iterator[list[ReplicaKey]]:
    """Replicas of a placement that may be what a hold keeps: as this look finds them, then by what was lost."""
    by_uid = {row.uid: key for key, row in fleet.rows.items() if row.marks.placement == held.uid}
    for hold in losses.holds().get(held.uid, ()):
        yield [by_uid[uid] for uid in hold.uids]
    lost = [key for key in by_uid.values() if not fleet.rows[key].terminating and fleet.index.governor(key) is None]
    yield lost
    index = fleet.index
    yield [key for key in lost if key.robot not in index.robots]
    yield [key for key in lost if index.is_selected(key.source_id)]
    for resource in sorted({key.resource for key in lost}):
        yield [key for key in lost if key.resource == resource and not index.is_selected(key.source_id)]
        yield [key for key in lost if key.resource == resource]
    # The last Robot of all is held for another reason than those before it.
    robots = sorted({key.robot for key in lost})
    for robot in robots if len(robots) <= _MOST_ROBOTS else ():
        yield [key for key in lost if key.robot == robot]
        yield [key for key in lost if key.robot != robot]


def release_document(holds: Iterable[HeldHere], *, released: bool) -> Json:
    """The holds as they were found; `released`: their release was asked for."""
    return {
        "schema": SCHEMA,
        "released": released,
        "holds": [
            {
                "id": each.id,
                "reason": each.reason,
                "message": each.message,
                "objects": each.objects,
                "namespace": each.namespace,
                "placement": each.placement,
                "decision": each.decision or None,
                "names": None if each.names is None else [*each.names],
            }
            for each in holds
        ],
    }
