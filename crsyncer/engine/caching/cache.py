"""The observations of one kind on both sides, and the record of each pair. Memory holds digests, disk the bodies."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import chain, count
from typing import Any, TypeVar

from crsyncer.agent_ports import Store
from crsyncer.core.content.object_content import key_of, touched
from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.model import (
    Cursor,
    FinalizerRow,
    Found,
    Freshness,
    Gap,
    Json,
    Key,
    Loaded,
    Observation,
    Pending,
    Record,
    Side,
    Stamp,
    Tombstone,
    View,
)
from crsyncer.core.pair.decide import has_no_copy
from crsyncer.core.pair.project import bears_mark, is_shared, status_with, view_of, without_values
from crsyncer.core.watching.restore_detection import DISTRUSTED
from crsyncer.core.watching.revisions import Revisions
from crsyncer.core.watching.watch import newer
from crsyncer.engine.caching.copies import Copies
from crsyncer.engine.caching.creates import Creates, unanswered_creates
from crsyncer.engine.caching.related_ports import Originals
from crsyncer.engine.pairs.generations import of_another_copy, went_back, with_generation

Row = TypeVar("Row", FinalizerRow, Pending, Record, Tombstone)


class Cache:
    """Views, records, outbox rows and tombstones of one kind. Whatever outlives the agent goes to the store at once."""

    def __init__(self, policy: KindPolicy, *, store: Store, loaded: Loaded, clock: Callable[[], float]) -> None:
        self.policy = policy
        self.views, self.revisions = loaded.views, {side: Revisions() for side in Side}
        self.records = loaded.records
        self.with_own_status = {key for key, record in self.records.items() if record.own is not None}
        """The pairs of which this robot has, or may have, an object of its own with the status (F10.3)."""
        self.pending = loaded.pending
        self.tombstones = loaded.tombstones
        self.finalizers = loaded.finalizers
        self.cursors = loaded.cursors
        self.departed: set[Key] = set()
        """Copies that were reported as deleted since their last write: an answer that is still to come is older."""
        self.creates = Creates(self._not_created, unanswered_creates(self.records, self.views[policy.downstream]))
        self._freshness: dict[tuple[Side, str], Freshness] = {}
        self._store = store
        self._resource = policy.resource
        self._clock = clock
        self._former: dict[Key, str] = {}
        """The version of each copy that was known when downstream was restored, until the copy is seen again."""
        self._shown = {key for side, key in loaded.seen if side is policy.upstream}
        """Upstream's sensitive objects that were seen since the agent's start: others are known by digests only."""
        self.uncounted: Callable[[], bool] = lambda: False
        """Whether copies may be there that no list has shown: what an edit leaves behind is not counted yet (C1.7)."""
        self.elsewhere: Mapping[Key, bool] = {}
        """Pairs whose copies may be where an edited projection left them; whether their last statuses were read."""
        self.wanted: Originals | None = None
        """Which of upstream's objects are wanted; None: all of them."""
        self.on_seen: Callable[[Side, Key, Json | None], None] | None = None
        """Called when an object is new, has changed or (None) is gone, where others are related to it (C5)."""
        self.on_freshness: Callable[[], None] = lambda: None
        """Called when the observations of a side are fresher or less fresh, where others are related to its objects."""
        self.awaited_names: dict[Key, set[Key]] = {}
        """By names of other objects downstream, the pairs that wait for them: each is told when the name is free."""
        self.on_free_name: Callable[[Key], None] = lambda _: None
        self._seqs = count(max((row.seq for row in self.pending.values()), default=0) + 1)
        self._copies: Copies | None = None
        """Whose copies downstream's objects are; None: of the object of their name."""
        if policy.shape.marks is not None or any(view.called for view in self.views[policy.downstream].values()):
            self._copies = Copies(self.policy, views=self.views, cursors=self.cursors, store=self._store)

    # Names

    def name_on(self, side: Side, key: Key) -> Key:
        """What the object of a pair is called on a side: a copy that is still to be made, as it will be.

        Raises Conflict where it has no place there, Never where the templates make no valid name.
        """
        if side is self.policy.upstream:
            return self.policy.key_on(side, key)
        copy = self.views[side].get(key, Gap.ABSENT)
        if copy is Gap.ABSENT and (chosen := self.record(key).called) is not None:
            return chosen
        return self.policy.copy_name(key, copy)

    def identify(self, side: Side, raw: Json, *, leaving: bool) -> Key | None:
        """The key of an object that is shown, or (`leaving`) gone; None: it belongs to no pair, or not yet."""
        copies = self._copies_of(side, raw)
        if leaving and side is self.policy.downstream:
            for key in self.awaited_names.pop(key_of(raw), ()):
                self.on_free_name(key)
        return self.policy.key_of(side, key_of(raw)) if copies is None else copies.identify(raw, leaving=leaving)

    def key_of(self, side: Side, raw: Json) -> Key | None:
        """The key of an object of which at least the metadata are shown; None: it belongs to no pair, or not yet."""
        copies = self._copies_of(side, raw)
        return self.policy.key_of(side, key_of(raw)) if copies is None else copies.key_of(raw)

    def is_stranger(self, side: Side, raw: Json) -> bool:
        """Whether an object of which at least the metadata are shown belongs to no pair, and is known as that."""
        copies = self._copies_of(side, raw)
        return copies is not None and copies.is_stranger(raw)

    def waiting(self) -> list[Json]:
        """The objects of downstream that belong to no pair yet (C2.2, C2.6)."""
        waiting = () if self._copies is None else self._copies.waiting.values()
        return [each.raw for each in waiting if each.raw is not None]

    def duplicates(self) -> dict[Key, Key]:
        """Originals that have another copy, which is not touched (C2.6), and what that is called."""
        return {} if self._copies is None else self._copies.duplicates()

    def has_left(self, key: Key, uid: str) -> bool:
        """Whether an object was the copy until it left our sight."""
        return self._copies is not None and self._copies.left.get(key) == uid

    def _copies_of(self, side: Side, raw: Json) -> Copies | None:
        if side is self.policy.upstream:
            return None
        if self._copies is None and bears_mark(raw):
            # The kind had a policy once: its copies stay what they are.
            self._copies = Copies(self.policy, views=self.views, cursors=self.cursors, store=self._store)
        return self._copies

    # Observations

    def observe(self, side: Side, key: Key) -> Observation:
        """The observation of a name on a side."""
        found: Found = self.views[side].get(key) or (Gap.ABSENT if self._is_absent(side, key) else Gap.UNSEEN)
        tombstone = self.tombstones.get(key) if side is self.policy.upstream else None
        deleted = None if tombstone is None else tombstone.upstream_uid
        return Observation(found, self.freshness(side, key.namespace), deleted)

    def has_no_copy(self, key: Key) -> bool:
        """Whether a pair has no copy for certain, nor one where an edited projection left it (C6.3)."""
        return key not in self.elsewhere and has_no_copy(self.observe(self.policy.downstream, key), self.policy)

    def _is_absent(self, side: Side, key: Key) -> bool:
        """Whether an unknown object is absent. A resumed watch proves that unless something says it may be there."""
        freshness = self.freshness(side, key.namespace)
        if side is self.policy.downstream:
            is_answered = freshness is Freshness.CONFIRMED or key not in self.creates.unlisted
            is_counted = self.elsewhere.get(key, True) and not self.uncounted()
            is_decided = self._copies is None or self._copies.are_decided()
            return freshness is not Freshness.STORED and is_answered and is_counted and is_decided
        if self.wanted is not None and self.wanted.is_unsure(key):
            return False
        if freshness is Freshness.CONFIRMED or key in self.tombstones:
            return True
        down = self.policy.downstream
        known = key in self.views[down] or key in self.pending or key in self.finalizers
        return freshness is Freshness.RESUMED and not known and self._is_absent(down, key)

    def freshness(self, side: Side, namespace: str) -> Freshness:
        """How fresh the observations of a namespace are on a side: of objects, and of absences."""
        return self._freshness.get((side, ""), self._freshness.get((side, namespace), Freshness.STORED))

    def set_freshness(self, side: Side, namespace: str, freshness: Freshness) -> None:
        """A list, a resumed watch or a lost connection has changed how fresh the observations are."""
        self._freshness[side, namespace] = freshness
        if side is self.policy.downstream and freshness is Freshness.RESUMED:
            self.creates.unlisted = unanswered_creates(self.records, self.views[side])
        self.on_freshness()
        if self._copies is None or side is self.policy.upstream:
            return
        if freshness is Freshness.STORED:
            self._copies.list_begins()
        elif freshness is Freshness.CONFIRMED:
            self._copies.list_ends(self.policy.key_on(side, Key(namespace, "")).namespace)

    def _not_created(self, key: Key) -> None:
        """A copy may have not been made after all: whoever waits for the end of it need not any more (C6.3)."""
        if self.on_seen is not None and key not in self.views[self.policy.downstream]:
            self.on_seen(self.policy.downstream, key, None)

    def record(self, key: Key) -> Record:
        """The record of a pair."""
        return self.records.get(key) or Record()

    def record_of(self, key: Key, upstream_uid: str) -> Record:
        """The record of a pair as long as upstream is this very object; an empty record otherwise."""
        record = self.record(key)
        return record if record.upstream_uid == upstream_uid else Record(upstream_uid=upstream_uid, own=record.own)

    def remember(self, key: Key, record: Record | None) -> None:
        """Replace the record of a pair; None: forget it."""
        if _replaced(self.records, key, record):
            self._store.put_record(self._resource, key, record)
            has_own = record is not None and record.own is not None
            (self.with_own_status.add if has_own else self.with_own_status.discard)(key)

    def known_keys(self) -> set[Key]:
        """Every key of which anything is known: objects, rows and tombstones, and creates that had no answer."""
        others = (self.pending, self.tombstones, self.finalizers, self.with_own_status, self.creates)
        return {*chain(*self.views.values(), *others)}

    def saw(self, side: Side, key: Key, raw: Json) -> bool:
        """An event, a list or a write's answer shows an object; False when a newer version is known."""
        stamped = None if self._copies is None else self._copies.with_known_stamp(side, key, raw)
        raw = without_values(stamped or raw, self.policy, side)
        view = view_of(raw, self.policy, side, key=key, views=self.views)
        view = view if stamped is None else replace(view, unmarked=True)
        known = self.views[side].get(key)
        if known is not None and newer(known.resource_version, view.resource_version):
            return False
        if self.policy.sensitive and side is self.policy.upstream:
            self._shown.add(key)
        if known == view:
            return False
        self.views[side][key] = view
        self.revisions[side].saw(key, view.resource_version)
        self._store.put_copy(side, self._resource, key, view, raw)
        if self._copies is not None:
            self._copies.saw(side, view.uid, key, former=known)
        if side is self.policy.upstream:
            if known is not None and known.uid != view.uid:
                self._original_gone(key, known)
            self._upstream_seen(key, view)
        else:
            self.creates.shown(key)
            former = self._former.pop(key, "")
            if known is not None and went_back(view, known, former=former):
                self._another_copy(key, older=view.stamp)
            elif known is not None and known.uid != view.uid:
                self._another_copy(key)
            elif known is not None and known.stamp is not None and view.stamp is None:
                self.remember(key, self.record_of(key, known.stamp.upstream_uid))  # its status is still of that (S4.1)
            self.note_generation(key, view)
        if self.on_seen is not None:
            self.on_seen(side, key, raw)
        return True

    def lost(self, side: Side, key: Key) -> None:
        """An object is gone from a side, for certain."""
        view = self.views[side].pop(key, None)
        if view is not None and self._copies is not None:
            self._copies.lost(side, view.uid)
        self._store.drop_copy(side, self._resource, key)
        if side is self.policy.upstream:
            self._shown.discard(key)
            if view is not None:
                self._original_gone(key, view)
                self.add_tombstone(key, Tombstone(view.uid, self._clock()))
        else:
            self.departed.add(key)
            self._another_copy(key)
        if self.on_seen is not None:
            self.on_seen(side, key, None)

    def forget(self, side: Side, key: Key) -> None:
        """Know nothing of an object any more; that it is gone is not known."""
        if self.views[side].pop(key, None) is not None:
            self._store.drop_copy(side, self._resource, key)

    def _original_gone(self, key: Key, view: View) -> None:
        """Upstream's object is gone or replaced: how its copy is to be deleted is remembered (C6.5)."""
        record = self.record(key)
        if record.upstream_uid == view.uid or (view.propagation and not record.upstream_uid):
            self.remember(key, replace(record, upstream_uid=view.uid, propagation=view.propagation))

    def _another_copy(self, key: Key, *, older: Stamp | None = None) -> None:
        """The copy was deleted, replaced or went back in time: its stamp is `older` then."""
        if (record := self.records.get(key)) is not None:
            self.remember(key, of_another_copy(record, older=older, is_pending=key in self.pending))

    def add_tombstone(self, key: Key, tombstone: Tombstone | None) -> None:
        """Record upstream's deletion; None: it has been carried out."""
        if _replaced(self.tombstones, key, tombstone):
            self._store.put_tombstone(self._resource, key, tombstone)

    def tidy(self, key: Key) -> None:
        """Forget a pair that is absent on both sides; what is held for a human stays: its copy may come back (S8.4)."""
        if key in self.creates or any(self.observe(side, key).found is not Gap.ABSENT for side in Side):
            return
        row, upstream = self.pending.get(key), self.observe(self.policy.upstream, key)
        if row is not None and (row.reselected or upstream.of(row.upstream_uid) is Gap.UNSEEN):
            return
        self.departed.discard(key)
        if not (key in self.tombstones and self.tombstones[key].held):
            self.add_tombstone(key, None)
        self.set_pending(key, None)
        own = self.record(key).own
        self.remember(key, None if own is None else Record(own=own))  # the object has to be deleted first

    def set_pending(self, key: Key, row: Pending | None) -> None:
        """Set or remove the outbox row of an object."""
        if _replaced(self.pending, key, row):
            self._store.put_pending(self._resource, key, row)

    def set_finalizer(self, key: Key, row: FinalizerRow | None) -> None:
        """Set or remove the outbox row of an object's finalizer."""
        if _replaced(self.finalizers, key, row):
            self._store.put_finalizer(self._resource, key, row)

    def mark_finalized(self, key: Key, uid: str, *, finalized: bool) -> None:
        """Our patch has put the finalizer on an upstream object, or removed it: it is not sent twice."""
        views = self.views[self.policy.upstream]
        if (view := views.get(key)) is not None and view.uid == uid:
            views[key] = replace(view, finalized=finalized)

    def next_seq(self) -> int:
        """A number that no earlier row of the outbox has."""
        return next(self._seqs)

    def set_cursor(self, side: Side, namespace: str, cursor: Cursor | None) -> None:
        """Move a cursor behind everything that was seen before."""
        if cursor is None:
            self.cursors.pop((side, namespace), None)
        else:
            self.cursors[side, namespace] = cursor
        self._store.put_cursor(side, self._resource, namespace, cursor)

    async def status_written(self, key: Key, *, metadata: Json, value: Any) -> None:
        """Upstream has acknowledged a status, with these metadata: show it at once, its echo may take a while.

        The body changes with it: a copy that is made again meanwhile starts with the status in it (S4.4). Where the
        object may have other changes, or neighbours of the subtree, which are still to come, it stays in its old
        version: a digest would find the new one known, and the changes would not be fetched (S9.4).
        """
        side = self.policy.upstream
        body = await self._store.body(side, self._resource, key)
        view = self.views[side].get(key)
        version = str(metadata.get("resourceVersion") or "")
        if view is None or not newer(version, view.resource_version):
            return
        if body is not None and body["metadata"]["resourceVersion"] == view.resource_version:
            if self.policy.subtree is None and not touched(body["metadata"], metadata):
                body["metadata"]["resourceVersion"] = version
                self.revisions[side].saw(key, version)
            body["status"] = status_with(body, self.policy, value)
            if body["status"] is None:
                del body["status"]
            view = view_of(body, self.policy, side, key=key, views=self.views)
            self._store.put_copy(side, self._resource, key, view, body)
        # The watch may show much later that it is shared (F10.3).
        self.views[side][key] = replace(view, shared=view.shared or is_shared({"metadata": metadata}, self.policy))

    def is_behind(self, key: Key) -> bool:
        """Whether upstream has acknowledged a status that the known version of the object does not have."""
        record, view = self.record(key), self.views[self.policy.upstream].get(key)
        is_same = view is not None and view.uid == record.upstream_uid
        return view is not None and is_same and newer(record.acknowledged_version, view.resource_version)

    async def body(self, side: Side, key: Key) -> Json | None:
        """The object as a side showed it last; None where that is not known."""
        return await self._store.body(side, self._resource, key)

    def is_unknown(self, key: Key) -> bool:
        """Whether upstream's object is known by its digest only (C5.6)."""
        return self.policy.sensitive and key not in self._shown

    def distrust(self, side: Side) -> None:
        """The side may have been restored: any version that it shows from now on counts as newer (S8.3)."""
        if side is self.policy.upstream:
            for key, record in self.records.items():
                self.remember(key, replace(record, acknowledged_version=""))
        self.revisions[side].rewound()
        for key, view in self.views[side].items():
            if side is self.policy.downstream and view.resource_version != DISTRUSTED:
                self._former[key] = view.resource_version
            self.views[side][key] = replace(view, resource_version=DISTRUSTED)

    def _upstream_seen(self, key: Key, view: View) -> None:
        self.add_tombstone(key, None)
        record = self.record(key)
        if record.acknowledged_version == view.resource_version and record.upstream_uid == view.uid:
            # The echo of our own write shows the status as upstream's schema changed it (S4.9).
            self.remember(key, replace(record, upstream_status=view.status))

    def note_generation(self, key: Key, view: View) -> None:
        """Remember which upstream generation this downstream generation has the content of (S4.7)."""
        upstream = self.views[self.policy.upstream].get(key)
        if self.policy.map_generation and upstream is not None:
            record = self.record_of(key, upstream.uid)
            new = with_generation(record, upstream, view, self.policy)
            if new is not record:
                self.remember(key, new)


def _replaced(rows: dict[Key, Row], key: Key, row: Row | None) -> bool:
    """Set a row, or (None) remove it; whether that changes anything."""
    if row == rows.get(key):
        return False
    if row is None:
        del rows[key]
    else:
        rows[key] = row
    return True
