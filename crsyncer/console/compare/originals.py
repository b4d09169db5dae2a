"""Reads from lists of the primaries which originals they refer to, for commands that run without the agent (C5)."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from crsyncer.console.compare.lister import objects
from crsyncer.core.content.marks import UPSTREAM_CLUSTER, UPSTREAM_NAME, UPSTREAM_NAMESPACE
from crsyncer.core.content.object_content import key_of
from crsyncer.core.content.template import Names
from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.kinds.related_entry import RelatedEntry
from crsyncer.core.model import Json, Key, Side
from crsyncer.core.pair import object_calls
from crsyncer.core.pair.project import objection
from crsyncer.core.related.relate import RelatedFailed, Selection, is_primary, references_of, too_many
from crsyncer.engine.kinds.negotiation import Disagreement, negotiate
from crsyncer.errors import SyncError
from crsyncer.ports import Send
from crsyncer.runtime.event_loop import all_of


@dataclass(slots=True)
class Originals:
    """The originals of one kind that primaries refer to."""

    keys: set[Key] = field(default_factory=set)
    selections: dict[Selection, set[Key]] = field(default_factory=dict)
    """By selection, the originals that it has matched."""
    failure: str = ""
    """Why it cannot be told what a primary refers to; empty: it can of all."""

    def wants(self, raw: Json) -> bool:
        """Whether an object is an original that a primary refers to."""
        metadata, key = raw["metadata"], key_of(raw)
        if UPSTREAM_CLUSTER in (metadata.get("annotations") or {}):
            return False  # it is a copy itself (C5.4)
        for selection, matched in self.selections.items():
            if selection.matches(key, metadata.get("labels") or {}):
                matched.add(key)
        return key in self.keys or any(key in matched for matched in self.selections.values())

    def may_name(self, key: Key, labels: Mapping[str, str]) -> bool:
        """Whether a primary refers to an original that may be gone, by its name or as its copy is labelled."""
        return key in self.keys or any(selection.matches(key, labels) for selection in self.selections)

    def objection(self) -> str:
        """Why not all of them can be told, once every object has been looked at; empty: they can."""
        return self.failure or next(filter(None, (too_many(len(each)) for each in self.selections.values())), "")


async def read_originals(
    policy: KindPolicy, senders: Mapping[Side, Send], *, kinds: Mapping[str, KindPolicy]
) -> Originals:
    """What the primaries of a related kind refer to; `kinds` are all that are synced, by name. Raises SyncError."""
    found = Originals()
    await all_of(
        _read_entry(entry, kinds[entry.primary], senders, found, namespaced=policy.namespaced)
        for entry in policy.related
    )
    return found


async def _read_entry(
    entry: RelatedEntry,
    primary: KindPolicy,
    senders: Mapping[Side, Send],
    found: Originals,
    *,
    namespaced: bool,
) -> None:
    agreed = await negotiate(primary, senders[Side.CLOUD])
    if isinstance(agreed, Disagreement):
        raise SyncError(f"the objects of {entry.primary} that it goes with are not known: {agreed.message}")
    side = entry.related.origin
    for namespace in agreed.places:
        collection = object_calls.collection(agreed, side, namespace)
        async for raw in objects(senders[side], collection):
            agreed.endpoint(side).complete(raw)
            if not objection(raw, agreed, side, namespace=collection.namespace) and is_primary(raw, agreed, side):
                _refer(entry, agreed, raw, found, namespaced=namespaced)


def _refer(entry: RelatedEntry, primary: KindPolicy, raw: Json, found: Originals, *, namespaced: bool) -> None:
    own = key_of(raw)
    marks = (raw["metadata"].get("annotations") or {}) if entry.related.origin is primary.downstream else {}
    upstream = (marks.get(UPSTREAM_NAMESPACE, ""), marks[UPSTREAM_NAME]) if UPSTREAM_NAME in marks else None
    names = Names(own.namespace, own.name, primary.robot, primary.shape.identity, upstream)
    try:
        references = references_of(raw, entry, names, namespaced=namespaced)
    except RelatedFailed as error:
        found.failure = f"what {own} of {entry.primary} refers to cannot be told: {error}"
        return
    found.keys |= references.keys
    if references.selection is not None:
        found.selections.setdefault(references.selection, set())
