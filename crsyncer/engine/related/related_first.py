"""Has related copies deleted before the copy of their primary (C6.3), and not before that may go (C5.4)."""

import asyncio
from collections.abc import Callable, Iterable, Iterator

from crsyncer.core.kinds.related_entry import RelatedEntry
from crsyncer.core.model import Freshness, Gap, Key, Source, View
from crsyncer.core.pair.decide import may_delete
from crsyncer.core.related.relate import NO_REFERENCES, References, related_entries
from crsyncer.engine.kinds.kind import Kind
from crsyncer.engine.related.wanted_originals import WantedOriginals

_LONGEST_SECONDS = 30.0
"""For how long a related copy delays the copy of its primary, unless upstream's object waits for both."""
_REPLACED_SECONDS = 1.0
"""A primary that is deleted and made anew within so long keeps its related copies (C5.4)."""

_SOONEST_SECONDS = 0.5


class RelatedFirst:
    """The primaries of one kind that are about to go, and what they referred to. `wanted(resource)` is of that kind.

    A primary refers to its originals until its own copy is gone, or the deletion of that copy is verified: then it is
    *released*, and what only it needs goes.
    """

    def __init__(
        self, kind: Kind, *, wanted: Callable[[str], WantedOriginals], pair_gone: Callable[[Key], None]
    ) -> None:
        self._kind = kind
        self._pair_gone = pair_gone
        self._policy = kind.policy
        self._cache = kind.cache
        self._entries = {entry.id: entry for entry in related_entries(kind.policy)}
        self._wanted = wanted
        self._released: dict[Source, References] = {}
        """What primaries that are released referred to, until their copies are gone, and the related ones."""
        self._since: dict[Key, float] = {}
        """Since when the copy of a primary waits (event loop time, seconds)."""
        for entry in self._entries.values():
            wanted_of_entry = wanted(entry.resource)
            for source in wanted_of_entry.table.of(entry.id):
                if wanted_of_entry.table.rows[source].released and self._is_going(source[1]):
                    self._released[source] = wanted_of_entry.table.recorded(entry, source[1])
                else:
                    wanted_of_entry.refer_as_before(entry, source[1])
        if kind.is_held:
            self.hold()

    # What primaries do

    def is_over(self, entry: RelatedEntry, key: Key) -> bool:
        """Whether a primary that is about to go refers to nothing any more, and what it referred to is known."""
        if not self._is_going(key):
            return False
        return (entry.id, key) in self._released or (self._has_no_copy(key) and not self._is_unread(entry, key))

    def is_final(self, entry: RelatedEntry, key: Key) -> bool:
        """Whether a primary began to go after it had been read: no edit has it refer to anything else any more (C5.4).

        Its copy does not follow such an edit either, and a related copy that was made for it could stay for good.
        """
        upstream = self._cache.views[self._policy.upstream].get(key)
        if upstream is None or not upstream.terminating:
            return False
        table, source = self._wanted(entry.resource).table, (entry.id, key)
        return (
            source not in table.unknown
            if source in table.rows
            else bool(self._cache.record_of(key, upstream.uid).applied)
        )

    def needs_former(self, entry: RelatedEntry, key: Key) -> bool:
        """Whether the copy of a primary is that of a former one, so that it needs what that one referred to (C5.4).

        Where that was released before its successor came, the related copies go already.
        """
        views, policy = self._cache.views, self._policy
        upstream, copy = views[policy.upstream].get(key), views[policy.downstream].get(key)
        if upstream is None or copy is None or copy.stamp is None or copy.stamp.upstream_uid == upstream.uid:
            return False
        is_read_there = entry.related.origin is policy.upstream  # else it is the copy that says what it needs
        return is_read_there and may_delete(copy, policy) and (entry.id, key) not in self._released

    def refers(self, entry: RelatedEntry, key: Key, references: References) -> bool:
        """A primary was read; whether it refers to these. It is released if its copy was gone before the first read."""
        source, wanted = (entry.id, key), self._wanted(entry.resource)
        ends = self._is_going(key) and self._has_no_copy(key) and self._is_unread(entry, key)
        if ends:
            self._released[source] = references
            wanted.refer_no_more(entry, key, references)
        else:
            self._released.pop(source, None)
        return not ends

    def seen(self, key: Key) -> None:
        """An object of a pair has changed: upstream's may have been made anew, before the copy was gone."""
        if self._is_going(key):
            return
        self._since.pop(key, None)
        for entry in self._entries.values():
            references = self._released.pop((entry.id, key), None)
            if references is not None:
                self._wanted(entry.resource).refer(entry, key, references)

    def hold(self) -> None:
        """Every deletion of primaries is held: those whose copies are still there refer to their originals again."""
        for source, references in list(self._released.items()):
            id_, key = source
            copy = self._cache.views[self._policy.downstream].get(key)
            if copy is not None and not copy.terminating:
                self._released.pop(source)
                self._since.pop(key, None)
                entry = self._entries[id_]
                self._wanted(entry.resource).refer(entry, key, references)

    def name_taken(self, key: Key) -> None:
        """Something else has the name of a primary's copy: if that is gone, what it said that it needs is over."""
        if self._has_no_copy(key) and key not in self._kind.left_behind.originals():
            for entry in self._entries.values():
                if entry.related.origin is self._policy.downstream:
                    self._wanted(entry.resource).forget((entry.id, key))

    def settled(self, key: Key) -> None:
        """Nothing has to be done about a pair: it may be gone."""
        if not self._has_no_copy(key) or not self._is_gone(key):
            return
        self._pair_gone(key)
        self._since.pop(key, None)
        for entry in self._entries.values():
            self._release(entry, key)
            self._forget_if_over(entry, key)

    def sources(self) -> Iterator[Key]:
        """The primaries that refer to something, or did."""
        for entry in self._entries.values():
            yield from (key for _, key in self._wanted(entry.resource).table.of(entry.id))

    # What the copy of a primary and its finalizer wait for

    def remain(self, key: Key) -> bool:
        """Whether there may be related copies that only this primary needs, and that go with it."""
        return any(self._remains(entry, key) for entry in self._entries.values() if not entry.related.keep)

    def delay(self, key: Key) -> bool:
        """Whether the copy of a primary, which is to be deleted, waits for related ones."""
        if not self._is_going(key) or not self.remain(key):
            return False
        if self._is_blocked(key):
            return True
        now = asyncio.get_running_loop().time()
        return now < self._since.get(key, now) + _LONGEST_SECONDS

    def waits(self, key: Key) -> bool:
        """Whether the copy of a primary waits now: its deletion had been verified before."""
        return key in self._since and self.delay(key)

    def release(self, key: Key) -> float | None:
        """The deletion of a primary's copy is verified, and waits for the related ones: have them go.

        In how many seconds to look again, if they do not.
        """
        now = asyncio.get_running_loop().time()
        since = self._since.setdefault(key, now)
        if now < since + _REPLACED_SECONDS:
            return since + _REPLACED_SECONDS - now
        for entry in self._entries.values():
            self._release(entry, key)
        if not self.delay(key):
            return 0.0
        return None if self._is_blocked(key) else max(_SOONEST_SECONDS, since + _LONGEST_SECONDS - now)

    def deleted(self, key: Key) -> None:
        """The copy of a primary is deleted, though perhaps not gone: so this was verified, also where nothing waits."""
        for entry in self._entries.values() if self._is_going(key) else ():
            self._release(entry, key)

    def related_copies_changed(self, resource: str, key: Key | None) -> None:
        """The copy of an original is gone, or (None) more is known of all: look at the primaries that wait."""
        for source, references in list(self._released.items()):
            id_, primary = source
            entry = self._entries[id_]
            if entry.resource != resource or (key is not None and key not in _candidates(references, {key})):
                continue
            if self._remains(entry, primary):
                continue
            if self._cache.freshness(self._policy.downstream, primary.namespace) is not Freshness.STORED:
                self._kind.reconciler.enqueue(primary)  # else it is looked at when downstream is connected

    def _release(self, entry: RelatedEntry, key: Key) -> None:
        source, wanted = (entry.id, key), self._wanted(entry.resource)
        references = wanted.references(source)
        if references != NO_REFERENCES and source not in self._released:
            self._released[source] = references
            wanted.release(source)

    def _forget_if_over(self, entry: RelatedEntry, key: Key) -> None:
        """The pair of a primary is gone: forget what it referred to, once the copies of that are gone, too."""
        source = (entry.id, key)
        if entry.related.keep or not self._remains(entry, key):
            self._released.pop(source, None)
            self._wanted(entry.resource).forget(source)

    def _is_blocked(self, key: Key) -> bool:
        """Whether upstream's object waits for the copies, at most until its grace period is over (C6.4)."""
        upstream = self._cache.views[self._policy.upstream].get(key)
        return self._policy.blocking and upstream is not None and upstream.finalized

    def _is_unread(self, entry: RelatedEntry, key: Key) -> bool:
        """Whether upstream's object waits for copies of which nothing is known, as the store was lost."""
        return self._is_blocked(key) and self._wanted(entry.resource).references((entry.id, key)) == NO_REFERENCES

    def _is_going(self, key: Key) -> bool:
        """Whether upstream's object is gone, or about to go. For one that was made anew the related copies stay."""
        upstream = self._cache.views[self._policy.upstream].get(key)
        return upstream is None or upstream.terminating

    def _has_no_copy(self, key: Key) -> bool:
        return key not in self._cache.creates and self._cache.has_no_copy(key)

    def _is_gone(self, key: Key) -> bool:
        """Whether upstream's object is gone for certain, or about to go."""
        found = self._cache.observe(self._policy.upstream, key).found
        return found is Gap.ABSENT or (isinstance(found, View) and found.terminating)

    def _remains(self, entry: RelatedEntry, key: Key) -> bool:
        source, wanted = (entry.id, key), self._wanted(entry.resource)
        if wanted.references(source) != NO_REFERENCES:
            return True  # it has to be released first
        if source not in self._released:
            return False
        return wanted.kind is None or any(_remaining(self._released[source], wanted, wanted.kind))


def _remaining(references: References, wanted: WantedOriginals, kind: Kind) -> Iterator[bool]:
    """For each copy of what a primary referred to, whether it is to go, and may still be there."""
    downstream, cache = kind.policy.downstream, kind.cache
    if references.selection is not None:
        yield cache.observe(downstream, Key(references.selection.namespace, "")).found is Gap.UNSEEN
    for key in _candidates(references, cache.views[downstream]):
        found = cache.observe(downstream, key).found
        is_none = found is Gap.ABSENT and key not in cache.creates
        is_not_ours = isinstance(found, View) and not may_delete(found, kind.policy)
        is_needed = wanted.keeps_copy(key) or bool(wanted.table.unreadable)  # one that cannot be read may need it
        yield not (is_none or is_not_ours or is_needed)


def _candidates(references: References, copies: Iterable[Key]) -> set[Key]:
    """The originals that a primary referred to.

    What a selection matches is not followed any more: of its namespace, all with copies count.
    """
    selection = references.selection
    selected = () if selection is None else (key for key in copies if key.namespace == selection.namespace)
    return {*references.keys, *selected}
