"""Which originals of one kind primaries refer to, and what follows for that kind (C5).

Which of them selectors match is in `selections.py`, what the store has of that in `references.py`.
"""

import logging
from collections import Counter
from collections.abc import Callable, Set
from dataclasses import replace

from crsyncer.core.content.marks import UPSTREAM_CLUSTER
from crsyncer.core.content.selector import Selector
from crsyncer.core.holds.agent_list_reason import AgentListReason
from crsyncer.core.kinds.related_entry import RelatedEntry
from crsyncer.core.model import EntryId, Json, Key, ReferenceRow, Side, Source, Tombstone
from crsyncer.core.pair.decide import may_delete
from crsyncer.core.pair.object_calls import collection
from crsyncer.core.related.relate import NO_REFERENCES, References, Selection
from crsyncer.core.requests.calls import list_one
from crsyncer.engine.context import EngineContext
from crsyncer.engine.kinds.kind import Kind
from crsyncer.engine.related.missing_originals import MissingOriginals
from crsyncer.engine.related.references import KeptCopies, ReferenceTable, row_of
from crsyncer.engine.related.selections import Selections
from crsyncer.errors import NotServed, SyncError, Throttled
from crsyncer.runtime.list_objects import listed

log = logging.getLogger(__name__)

_SINGLES = 16
"""Originals that are fetched one by one; for more, the collection is listed."""


class WantedOriginals:
    """Which originals of one kind are wanted, and which of them are still to be fetched. The cache asks it."""

    def __init__(
        self,
        context: EngineContext,
        resource: str,
        *,
        is_known: Callable[[RelatedEntry], bool],
        is_misconfigured: Callable[[str], bool],
        report: Callable[[Source, str], None],
        copies_changed: Callable[[str, Key | None], None],
    ) -> None:
        self.kind: Kind | None = None
        self.namespaced = True
        """Whether the originals are in namespaces; assumed as long as their kind is not known."""
        self._is_known = is_known
        self._report = report
        self._copies_changed = copies_changed
        self._context = context
        self._is_misconfigured = is_misconfigured
        self._references: dict[Source, References] = {}
        """What primaries refer to."""
        self._reported: dict[Source, str] = {}
        """The failures that were reported."""
        self._counts: Counter[Key] = Counter()
        """How often primaries name each original."""
        self._selections = Selections(context.store, resource, matched=self._matched, changed=self._selection_changed)
        self._missing = MissingOriginals()
        self._kept = KeptCopies(context.store, resource, is_misconfigured=is_misconfigured)
        self._runs = False
        """Whether the kind of the originals has begun to run: what it has to do before cannot be queued."""
        self.table = ReferenceTable(context.store, resource)
        """What the store has of the references to originals of this kind."""

    # What the cache and the informers ask

    @property
    def is_complete(self) -> bool:
        """Whether all primaries are known: then what none of them refers to is not wanted."""
        if self.kind is None or not self._runs or self.table.unknown:
            return False
        return all(map(self._is_known, self.kind.policy.related))

    def is_unsure(self, key: Key) -> bool:
        """Whether it is not known if an original that the cache lacks is there, and wanted."""
        if key in self._missing or self.wants(key):
            return key in self._missing
        return key in self._kept or not self.is_complete or self._selections.may_match(key)

    def is_copy(self, raw: Json) -> bool:
        """Whether an object is a copy of the other side's: it is no original (C5.4)."""
        if self.kind is None:
            return False
        cluster = (raw["metadata"].get("annotations") or {}).get(UPSTREAM_CLUSTER)
        return bool(cluster) and cluster == self._context.connections[self.kind.policy.downstream].cluster_identity

    def shown(self, key: Key, original: Json, *, known: bool) -> bool:
        """A watch or a list shows an original; whether the cache takes it.

        `known`: the cache has it. If nothing refers to it any more, the cache loses it at once.
        """
        labels = original["metadata"].get("labels") or {}
        self._selections.shown(key, labels)
        if self.wants(key) or (known and (not self.is_complete or self._selections.may_match(key))):
            self._fetched(key)  # an answer that is still to come is older
            if self._selects:
                self._selections.taken(key, labels)
            return True
        if known:
            self._unreferred(key)
        else:
            self._selections.left_out(key)
        return False

    def wants(self, key: Key) -> bool:
        """Whether a primary refers to an original, by name or by a selection; of the latter, none beyond the limit."""
        return bool(self._counts[key]) or self._selections.want(key)

    def gone(self, key: Key) -> None:
        """An original is gone, or is none any more."""
        self._fetched(key)
        self._selections.gone(key)

    def _failed(self, source: Source) -> None:
        """Report what is wrong about the originals of a primary."""
        message = self._missing.message(self.originals(source), confidential=source[0] in self.table.confidential)
        texts = [message, self._selections.failure(self.references(source).selection)]
        failure = "; ".join(filter(None, texts))
        if failure != self._reported.pop(source, ""):
            self._report(source, failure)
        if failure:
            self._reported[source] = failure

    def _failed_for(self, key: Key) -> None:
        for source in [source for source in self._references if key in self.originals(source)]:
            self._failed(source)

    def _failed_for_all(self, selection: Selection) -> None:
        for source in [source for source, references in self._references.items() if references.selection == selection]:
            self._failed(source)

    def _check_name(self, key: Key) -> bool:
        return self.kind is not None and self._missing.check_name(key, self.kind)

    def references(self, source: Source) -> References:
        """What a primary refers to by an entry."""
        return self._references.get(source, NO_REFERENCES)

    def keeps_copy(self, key: Key) -> bool:
        """Whether a copy stays: a primary refers to its original, or the entry is gone for which it was made."""
        return self.wants(key) or key in self._kept

    def originals(self, source: Source) -> set[Key]:
        """The originals that a primary refers to by an entry."""
        references = self.references(source)
        return {*references.keys, *self._selections.originals(references.selection)}

    def primaries(self, key: Key) -> list[Source]:
        """The entries and primaries that refer to an original."""
        return sorted(source for source in self._references if key in self.originals(source))

    # What primaries say

    def refer(self, entry: RelatedEntry, key: Key, references: References) -> None:
        """A primary refers to these originals now. That they are none is recorded where they were others before."""
        source = entry.id, key
        is_row = references != NO_REFERENCES or source in self.table.rows
        self._change(source, row_of(references, entry) if is_row else None, references)

    def refer_no_more(self, entry: RelatedEntry, key: Key, references: References) -> None:
        """A primary that was not read before referred to these: it is released at once, as its copy is gone."""
        self._change((entry.id, key), replace(row_of(references, entry), released=True), NO_REFERENCES)

    def refer_besides(self, entry: RelatedEntry, key: Key, references: References) -> None:
        """A primary that is not shown yet, or not alone, refers to these, too, besides those that the store has."""
        self.refer(entry, key, self.table.recorded(entry, key) | references)

    def refer_as_before(self, entry: RelatedEntry, key: Key) -> None:
        """A primary of which nothing is shown yet, or any more, refers to what the store has."""
        source = (entry.id, key)
        if source not in self._references:
            self._refer(source, self.table.recorded(entry, key))

    def release(self, source: Source) -> None:
        """The copy of a primary is gone, or its deletion is verified: what only it needs goes. `forget` follows."""
        row = self.table.rows.get(source)
        if row is not None and not row.unknown:
            self._change(source, replace(row, released=True), NO_REFERENCES)

    def forget(self, source: Source) -> None:
        """A primary is gone, and its copy, and what only they needed."""
        self._change(source, None, NO_REFERENCES)

    def _change(self, source: Source, row: ReferenceRow | None, references: References) -> None:
        was_unknown = source in self.table.unknown
        self.table.put(source, row)
        self._refer(source, references)
        if was_unknown:
            self.sweep()

    def _refer(self, source: Source, references: References) -> None:
        before = self._references.pop(source, NO_REFERENCES)
        if references.keys or references.selection is not None:
            self._references[source] = references
        self._counts.update(references.keys)
        self._counts.subtract(before.keys)
        for key in references.keys - before.keys:
            self._kept.wanted(key)
            self._check_name(key)
            self._want(key)
        for key in before.keys - references.keys:
            self._unwant(key)
        if references.selection is not None:
            self._selections.add(references.selection)
            self._missing.wake()
        for key in self._selections.remove(before.selection) if before.selection is not None else ():
            self._unwant(key)
        self._failed(source)

    def sweep(self) -> None:
        """All primaries may be known now: act on what none of them refers to."""
        if self.kind is None or not self.is_complete:
            return
        cache, policy = self.kind.cache, self.kind.policy
        for key in {**cache.views[policy.upstream], **cache.views[policy.downstream]}:
            self._unwant(key)
        self._kept.write()

    # What the selections match

    @property
    def _selects(self) -> bool:
        related = self.kind.policy.related if self.kind is not None else ()
        return any(isinstance(entry.related.objects, Selector) for entry in related)

    def _matched(self, selection: Selection, key: Key) -> None:
        self._kept.wanted(key)
        if self._check_name(key):
            self._failed_for_all(selection)

    def _selection_changed(self, selection: Selection, missing: Set[Key]) -> None:
        self._failed_for_all(selection)
        for key in missing:
            self._want(key)

    # The kind of the originals

    async def attach(self, kind: Kind) -> None:
        """The kind of the originals is about to run; its watches begin when this returns."""
        policy = kind.policy
        self.kind, self._runs = kind, False
        kind.cache.wanted = self
        ids = {entry.id for entry in policy.related}
        self._keep_removed(kind, ids)
        self._references = {source: references for source, references in self._references.items() if source[0] in ids}
        self._reported = {source: failure for source, failure in self._reported.items() if source[0] in ids}
        self._counts = Counter(key for references in self._references.values() for key in references.keys)
        self._selections.restart(
            references.selection for references in self._references.values() if references.selection is not None
        )
        self._missing.restart()
        kind.cache.on_seen = self._copy_seen
        kind.cache.on_freshness = lambda: self._copies_changed(policy.resource, None)
        for references in self._references.values():
            for key in references.keys:
                self._kept.wanted(key)
                self._check_name(key)
                self._want(key)
        for source in list(self._references):
            self._failed(source)
        await self._read_labels(kind)

    def _keep_removed(self, kind: Kind, ids: set[EntryId]) -> None:
        """The copies stay of which an entry was removed (C5.4)."""
        copies = {*kind.cache.views[kind.policy.downstream], *kind.cache.creates}
        for source, row in [each for each in self.table.rows.items() if each[0][0] not in ids]:
            if not row.released:
                named = {Key(*each) for each in row.originals}
                selected = self.originals(source) or {key for key in copies if key.namespace == row.selected}
                self._kept.keep(source[0][0], copies if row.unknown else named | selected)
            if not self._is_misconfigured(source[0][0]):
                self.table.put(source, None)
        self._kept.write()

    def detach(self, kind: Kind) -> None:
        """That kind does not run any more."""
        if self.kind is kind:
            self.kind, self._runs = None, False

    def _copy_seen(self, side: Side, key: Key, raw: Json | None) -> None:
        if self.kind is not None and side is self.kind.policy.downstream:
            if self.wants(key) and self._check_name(key):
                self._failed_for(key)
            if raw is None:
                self._copies_changed(self.kind.policy.resource, key)

    def _want(self, key: Key) -> None:
        if self.kind is not None and key not in self.kind.cache.views[self.kind.policy.upstream]:
            self._missing.add(key)

    def _unwant(self, key: Key) -> None:
        if self.wants(key) or self.kind is None:
            return
        del self._counts[key]
        self._missing.forget(key)
        if not self.is_complete or self._selections.may_match(key):
            return  # `sweep` follows when all primaries are known
        self._unreferred(key)

    def _unreferred(self, key: Key) -> None:
        """Nothing refers to an original any more: the cache loses it, as one that is gone unless its copy stays."""
        if self.kind is None:
            return
        cache, policy = self.kind.cache, self.kind.policy
        self._selections.left_out(key)
        if key in self._kept:
            cache.forget(policy.upstream, key)
            cache.add_tombstone(key, None)
            return
        copy, view = cache.views[policy.downstream].get(key), cache.views[policy.upstream].get(key)
        tombstone = cache.tombstones.get(key)
        if copy is not None and tombstone is None and not copy.terminating and may_delete(copy, policy):
            uid = view.uid if view is not None else copy.stamp.upstream_uid if copy.stamp is not None else ""
            released = self.table.is_released(key)  # else primaries stay: no list can prove that the copy shall go
            tombstone = Tombstone(uid, self._context.clock(), verified=released, unreferenced=not released)
        if view is not None:
            self.kind.on(policy.upstream)[0].absent(key)
        if tombstone is not None:
            cache.add_tombstone(key, tombstone)
        self.kind.reconciler.enqueue(key)

    async def fetch(self) -> None:
        """Fetch what is newly wanted, forever."""
        kind = self.kind
        if kind is None:
            return  # it has stopped before it began
        self._runs = True
        self.sweep()
        policy, failures = kind.policy, 0
        connection = self._context.connections[policy.upstream]
        while True:
            await connection.up.wait()
            batch, needs_list = self._missing.due(), self._selections.needs_list
            if not batch and not needs_list:
                await self._missing.until_due(connection.waits)
                continue
            gateway = policy.filtered and policy.upstream is Side.CLOUD  # it accepts no request for one object
            by_name = len(batch) <= _SINGLES and not needs_list and not gateway
            try:
                if by_name:
                    await self._fetch_first(kind, batch[0])
                else:
                    self._selections.list_begins()
                    await kind.informer_set.fresh(AgentListReason.RELATED, policy.upstream)
                    for key in batch:
                        self._found_out(kind, key)
                    self._selections.list_ended()
                    self.sweep()
            except SyncError as error:
                log.info("%s: related objects cannot be fetched yet: %s", policy.resource, error)
                await connection.waits.back_off(failures)
                failures += 1
            else:
                failures = 0

    async def _read_labels(self, kind: Kind) -> None:
        """Learn the labels of the originals that the cache has; whichever it has no body of is to be shown again."""
        side = kind.policy.upstream
        for key in list(kind.cache.views[side]) if self._selects else ():
            body = await kind.cache.body(side, key)
            if body is None:
                self._selections.unreadable()
                kind.cache.forget(side, key)
            elif not self.is_copy(body):
                self.shown(key, body, known=True)

    async def _fetch_first(self, kind: Kind, key: Key) -> None:
        """Fetch one original; if it cannot be read, others are not delayed by that. Raises SyncError."""
        try:
            await self._fetch_one(kind, key)
        except SyncError as error:
            up = self._context.connections[kind.policy.upstream].up.is_set()
            if not up or isinstance(error, NotServed | Throttled):
                raise  # it is the connection, or the kind
            if self._missing.failed(key, f" cannot be read{'' if kind.policy.sensitive else f': {error}'}"):
                self._failed_for(key)

    def _fetched(self, key: Key) -> None:
        if self._missing.discard(key):
            self._failed_for(key)

    async def _fetch_one(self, kind: Kind, key: Key) -> None:
        """Fetch one original from the informer of its namespace. Raises SyncError."""
        policy, upstream = kind.policy, kind.policy.upstream
        for informer in [each for each in kind.on(upstream) if each.namespace in ("", key.namespace)][:1]:
            call = list_one(collection(policy, upstream, informer.namespace), key)
            items = listed(await self._context.connections[upstream].request(call))
            raw = next((each for each in items if informer.identify(each, None) == key), None)
            if raw is not None and key in self._missing:  # else the watch has shown it, or nothing needs it any more
                informer.shown(key, raw, None)
        self._found_out(kind, key)

    def _found_out(self, kind: Kind, key: Key) -> None:
        if key in self._missing:
            self._fetched(key)
            kind.reconciler.enqueue(key)
