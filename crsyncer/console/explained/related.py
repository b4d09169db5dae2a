"""Which objects go with an object, and which it goes with, as a running agent knows them (C5)."""

from collections.abc import Iterator
from dataclasses import replace

from crsyncer.console.explained.explanation import ObjectFacts
from crsyncer.console.screens.report import object_fields
from crsyncer.core.kinds.related_entry import RelatedEntry
from crsyncer.core.model import Json, Key, Side, View
from crsyncer.core.pair.actions import Until, Wait
from crsyncer.core.related.relate import related_entries
from crsyncer.engine.kinds.kind import Kind
from crsyncer.engine.kinds.kinds import Kinds
from crsyncer.engine.related.related_objects import RelatedObjects
from crsyncer.errors import SyncError


def with_related(facts: ObjectFacts, kind: Kind, kinds: Kinds, related_objects: RelatedObjects) -> ObjectFacts:
    """The facts about an object of a kind that runs, with what it is related to."""
    related = tuple(_related(kind, facts.key, kinds, related_objects))
    copy = _copy_name(kind, kind.policy.downstream, facts.key) if kind.policy.related else None
    first, plan = kind.reconciler.related_first, facts.plan
    if first is not None and first.waits(facts.key) and plan.content == Wait(Until.VERIFIED):
        plan = replace(plan, content=Wait(Until.RELATED_GONE))  # it is verified again once they have gone
    return replace(
        facts,
        plan=plan,
        related=related,
        primaries=_primaries(kind, facts.key, related_objects),
        copy=copy,
        lacks_status=kind.reconciler.outcomes.lacks_status,
    )


def _primaries(kind: Kind, key: Key, related_objects: RelatedObjects) -> tuple[Json, ...] | None:
    """The objects that refer to an original; None: they are not all known."""
    wanted = related_objects.wanted(kind.policy.resource)
    if not kind.policy.related or wanted is None:
        return ()
    entries = {entry.id: entry for entry in kind.policy.related}
    found = [(entries[id_], primary) for id_, primary in wanted.primaries(key) if id_ in entries]
    if not found and not wanted.is_complete:
        return None
    return tuple(
        object_fields(entry.primary, primary) | {"policy": entry.policy, "id": entry.related.id}
        for entry, primary in found
    )


def _related(kind: Kind, key: Key, kinds: Kinds, related_objects: RelatedObjects) -> Iterator[Json]:
    """For each entry of a kind's SyncPolicy the originals that one of its objects refers to, and their copies."""
    for entry in related_entries(kind.policy):
        wanted, other = related_objects.wanted(entry.resource), kinds.entries.get(entry.resource)
        running = other.kind if other is not None else None
        originals = sorted(wanted.originals((entry.id, key))) if wanted is not None else []
        yield {
            "id": entry.related.id,
            "resource": entry.resource,
            "origin": entry.related.origin.value,
            "synced": running is not None,
            "statusCopied": _is_status_copied(running, entry),
            "objects": [_row(running, original, entry) for original in originals],
        }


def _is_status_copied(kind: Kind | None, entry: RelatedEntry) -> bool | None:
    """Whether the statuses of originals go to the copies; None: they shall not, or it is not known yet (C5.5)."""
    if kind is None or not entry.related.status:
        return None
    return kind.policy.copies_status and not kind.reconciler.outcomes.lacks_status


def _row(kind: Kind | None, original: Key, entry: RelatedEntry) -> Json:
    row = {"namespace": original.namespace, "name": original.name, "original": "unseen", "copy": None}
    if kind is None:
        return row
    origin = entry.related.origin
    row["original"] = _state(kind, origin, original)
    copy = _copy_name(kind, origin.other, original)
    if copy is None:
        return row
    state = _state(kind, origin.other, original)
    return row | {"copy": {"namespace": copy.namespace, "name": copy.name, "state": state}}


def _copy_name(kind: Kind, side: Side, original: Key) -> Key | None:
    """What the copy is called, or will be; None: nothing needs it, or the templates make no valid name."""
    try:
        return kind.cache.name_on(side, original)
    except SyncError:
        return None


def _state(kind: Kind, side: Side, key: Key) -> str:
    """Whether an object is there: seen, absent or unseen."""
    found = kind.cache.observe(side, key).found
    return "seen" if isinstance(found, View) else found.value
