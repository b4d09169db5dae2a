"""Reads from the primaries which originals they refer to (C5). What follows is in `wanted_originals.py`."""

import logging
from collections.abc import Callable, Collection
from functools import partial

from crsyncer.core.content.object_content import key_of
from crsyncer.core.content.template import Names
from crsyncer.core.holds.agent_list_reason import AgentListReason
from crsyncer.core.kinds.related_entry import RelatedEntry
from crsyncer.core.model import EntryId, Freshness, Json, Key, Side, Source
from crsyncer.core.pair.actions import HoldReason
from crsyncer.core.related.relate import (
    NeverRelated,
    References,
    RelatedFailed,
    is_synced,
    references_of,
    related_entries,
    related_failed,
)
from crsyncer.core.reports.facts import HOLD_RULES, Action, Fact
from crsyncer.engine.context import EngineContext
from crsyncer.engine.kinds.kind import Kind
from crsyncer.engine.related.related_first import RelatedFirst
from crsyncer.engine.related.wanted_originals import WantedOriginals

log = logging.getLogger(__name__)


class RelatedObjects:
    """Which originals all primaries refer to, by the kind of the originals."""

    def __init__(self, context: EngineContext, *, is_misconfigured: Callable[[str], bool]) -> None:
        self._context = context
        self._is_misconfigured = is_misconfigured
        self._wanted_by_kind: dict[str, WantedOriginals] = {}
        self._primaries: dict[str, Kind] = {}
        """The kinds of primaries that run, or have run last."""
        self._first: dict[str, RelatedFirst] = {}
        """For each of them that runs, what goes before the copies of primaries."""
        self._unread: dict[EntryId, object] = {}
        """By entry, the latest reading of its known primaries, until that ends: not all are known. It ends in another
        one, where the kind of the primaries is stopped meanwhile."""
        self._misread: set[str] = set()
        """The kinds of originals that primaries were read for as if those had another scope."""
        self._unshown: dict[str, dict[Source, References]] = {}
        """By kind, primaries that refer to less by their bodies than they did, and to what by these. They refer to both
        until a list shows them, for nothing is deleted on old knowledge alone (S7.1), and until the copy of a former
        primary of the name is gone, which needs what that one referred to (C5.4)."""
        self._failures: dict[tuple[str, Key], dict[tuple[EntryId, bool], str]] = {}
        """By kind and primary, what is wrong about an entry: with the primary, or (True) with the originals."""

    async def attach(self, kind: Kind) -> None:
        """A kind is about to run: it may have primaries, or be one of related objects."""
        if kind.policy.related:
            await self._attach_originals(kind)
        entries = related_entries(kind.policy)
        self._forget_failures(kind.policy.resource, {entry.id for entry in entries})
        if not entries:
            return
        for entry in entries:
            wanted = await self._loaded(entry.resource)
            if kind.policy.sensitive:
                wanted.table.confidential.add(entry.id)
        self._primaries[kind.policy.resource] = kind
        kind.reconciler.related_first = self._first[kind.policy.resource] = RelatedFirst(
            kind, wanted=self._wanted, pair_gone=partial(self._pair_gone, kind)
        )
        self._unshown[kind.policy.resource] = {}
        kind.cache.on_seen = partial(self._seen, kind)
        kind.cache.on_freshness = partial(self._freshness_changed, kind)
        await self._read_primaries(kind, entries)

    async def _attach_originals(self, kind: Kind) -> None:
        wanted = await self._loaded(kind.policy.resource)
        resource = kind.policy.resource
        if wanted.namespaced != kind.policy.namespaced:
            self._misread.add(resource)
        wanted.namespaced = kind.policy.namespaced
        await wanted.attach(kind)
        running = [primary for name, primary in self._primaries.items() if name in self._first]
        for primary in running if resource in self._misread else ():
            await self._read_primaries(
                primary, [entry for entry in related_entries(primary.policy) if entry.resource == resource]
            )
        self._misread.discard(resource)

    async def _read_primaries(self, kind: Kind, entries: Collection[RelatedEntry]) -> None:
        """Read what the known primaries of a kind refer to by these entries."""
        reading = object()
        self._unread |= {entry.id: reading for entry in entries}
        for side in {entry.related.origin for entry in entries}:
            ours = [entry for entry in entries if entry.related.origin is side]
            known = list(kind.cache.views[side])
            for key in known:
                body = await kind.cache.body(side, key)
                for entry in ours:
                    if body is not None:
                        if is_synced(body, kind.policy, side):
                            self._refer(kind, entry, key, body, stored=True)
                    else:  # it is damaged, or a Secret, of which no value is stored
                        self._wanted(entry.resource).table.put_unknown((entry.id, key), unreadable=False)
        for entry in entries:
            shown_or_gone = {*kind.cache.views[entry.related.origin], *kind.cache.tombstones}
            self._wanted(entry.resource).table.doubt(entry, known=shown_or_gone)
        self._unread = {id_: latest for id_, latest in self._unread.items() if latest is not reading}
        self._show_primaries(kind)
        self._sweep()

    def wanted(self, resource: str) -> WantedOriginals | None:
        """What is wanted of a kind of related objects; None: nothing ever was."""
        return self._wanted_by_kind.get(resource)

    def detach(self, kind: Kind) -> None:
        """A kind does not run any more."""
        self._first.pop(kind.policy.resource, None)
        for wanted in self._wanted_by_kind.values():
            wanted.detach(kind)

    def _forget_failures(self, resource: str, ids: set[EntryId]) -> None:
        """Nothing is wrong any more about entries that are gone."""
        for key in [key for kind, key in self._failures if kind == resource]:
            failures = self._failures.pop((resource, key))
            kept = {place: text for place, text in failures.items() if place[0] in ids}
            if kept:
                self._failures[resource, key] = kept
            self._show(resource, key, kept.values())

    def _freshness_changed(self, kind: Kind) -> None:
        """Pairs of primaries may turn out to be gone, or all primaries may be known."""
        first = self._first.get(kind.policy.resource)
        known = kind.cache.known_keys() if first is not None else ()
        for key in {*first.sources()} if first is not None else ():
            if key not in known:
                kind.reconciler.enqueue(key)  # the pair may be gone
        self._show_primaries(kind)
        self._sweep()

    def _show_primaries(self, kind: Kind, only: Key | None = None) -> None:
        """Those that a list shows refer to nothing else any more; for those that may be gone, ask for one."""
        first = self._first.get(kind.policy.resource)
        if first is None or self._primaries[kind.policy.resource] is not kind:
            return  # the kind has stopped: what is stored of its primaries is read anew when it runs again
        entries = {entry.id: entry for entry in related_entries(kind.policy)}
        unshown = self._unshown[kind.policy.resource]
        for source in list(unshown) if only is None else [(id_, only) for id_ in entries if (id_, only) in unshown]:
            references, entry, key = unshown[source], entries[source[0]], source[1]
            side = entry.related.origin
            freshness = kind.cache.freshness(side, key.namespace)
            if freshness is Freshness.RESUMED:
                kind.informer_set.request_list(side, AgentListReason.RELATED)
            elif freshness is Freshness.CONFIRMED and not first.needs_former(entry, key):
                del unshown[source]
                if key in kind.cache.views[side] and not first.is_over(entry, key):
                    self._wanted(entry.resource).refer(entry, key, references)

    def _sweep(self) -> None:
        for wanted in self._wanted_by_kind.values():
            wanted.sweep()

    async def _loaded(self, resource: str) -> WantedOriginals:
        """What is wanted of a kind, with what the store has of it."""
        known = resource in self._wanted_by_kind
        wanted = self._wanted(resource)
        if not known:
            await wanted.table.load()
        return wanted

    def _wanted(self, resource: str) -> WantedOriginals:
        if resource not in self._wanted_by_kind:
            self._wanted_by_kind[resource] = WantedOriginals(
                self._context,
                resource,
                is_known=self._is_known,
                is_misconfigured=self._is_misconfigured,
                report=self._failed,
                copies_changed=self._copies_changed,
            )
        return self._wanted_by_kind[resource]

    def _copies_changed(self, resource: str, key: Key | None) -> None:
        for first in self._first.values():
            first.related_copies_changed(resource, key)

    def _is_known(self, entry: RelatedEntry) -> bool:
        """Whether all primaries of an entry have been seen, on this connection or before."""
        kind = self._primaries.get(entry.primary)
        if kind is None or entry.id in self._unread or entry not in related_entries(kind.policy):
            return False
        return all(each.state.cursor() is not None for each in kind.on(entry.related.origin))

    def _seen(self, kind: Kind, side: Side, key: Key, raw: Json | None) -> None:
        """A primary is new, has changed, or (None) is gone."""
        first = self._first.get(kind.policy.resource)
        if first is None:
            return  # the kind has stopped, and its tasks have not ended yet: it is read anew when it runs again
        for entry in related_entries(kind.policy):
            if entry.related.origin is side and raw is not None and is_synced(raw, kind.policy, side):
                self._refer(kind, entry, key, raw)
        first.seen(key)
        if side is kind.policy.downstream and self._unshown[kind.policy.resource]:
            self._show_primaries(kind, key)  # the copy of a former one may be gone

    def _refer(self, kind: Kind, entry: RelatedEntry, key: Key, raw: Json, *, stored: bool = False) -> None:
        """A primary is shown, or (`stored`) was once: what it refers to.

        Of one that a list is to show, a watch that was resumed may show an older version first.
        """
        unshown = self._unshown[kind.policy.resource]
        is_confirmed = kind.cache.freshness(entry.related.origin, key.namespace) is Freshness.CONFIRMED
        may_be_old = (unshown.pop((entry.id, key), None) is not None or stored) and not is_confirmed
        wanted, first = self._wanted(entry.resource), self._first[kind.policy.resource]
        if first.is_over(entry, key) or first.is_final(entry, key):
            return
        is_enough = not may_be_old and not first.needs_former(entry, key)
        own, identity = key_of(raw), kind.policy.shape.identity
        names = Names(own.namespace, own.name, kind.policy.robot, identity, (key.namespace, key.name))
        try:
            references = references_of(raw, entry, names, namespaced=wanted.namespaced)
        except RelatedFailed as error:  # what it referred to before stays
            self._report(kind, entry, key, str(error))
            if not isinstance(error, NeverRelated):
                wanted.table.put_unknown((entry.id, key), unreadable=True)
            return
        self._report(kind, entry, key, "")
        if not first.refers(entry, key, references):
            return
        if is_enough or references.cover(wanted.table.recorded(entry, key)):
            wanted.refer(entry, key, references)
        else:
            unshown[entry.id, key] = references
            wanted.refer_besides(entry, key, references)

    def _pair_gone(self, kind: Kind, key: Key) -> None:
        """A primary is gone, and its copy: nothing is wrong about it any more."""
        for entry in related_entries(kind.policy):
            self._report(kind, entry, key, "")

    def _failed(self, source: Source, failure: str) -> None:
        """Something is wrong about the originals of a primary, or (empty) nothing is any more."""
        for kind in self._primaries.values():
            for entry in related_entries(kind.policy):
                if entry.id == source[0]:
                    text = failure and f"related object {entry.related.id}: {failure}"
                    self._report(kind, entry, source[1], text, of_originals=True)

    def _report(self, kind: Kind, entry: RelatedEntry, key: Key, failure: str, *, of_originals: bool = False) -> None:
        resource = kind.policy.resource
        before = self._failures.pop((resource, key), {})
        failures = {place: text for place, text in {**before, (entry.id, of_originals): failure}.items() if text}
        if failures:
            self._failures[resource, key] = failures
        if self._show(resource, key, failures.values()):
            hold = related_failed("; ".join(failures.values()))
            rule, text = HOLD_RULES[hold.reason], f"{hold.reason}: {hold.message}"
            self._context.recorder.record(Fact(kind.policy.upstream, resource, key, Action.HELD, rule, text))

    def _show(self, resource: str, key: Key, failures: Collection[str]) -> bool:
        """Show what is wrong about a primary; whether nothing was before."""
        context = self._context
        if not failures:
            context.holds.clear(resource, key, reason=HoldReason.RELATED_FAILED)
            return False
        _, new = context.holds.add(resource, key, related_failed("; ".join(failures)), now=context.clock())
        context.report_changed()
        return new
