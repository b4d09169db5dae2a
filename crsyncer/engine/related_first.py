"""Has the copies of related objects deleted before the copy of their primary (C6.3).

Imported and made only where the robot has the CRD of SyncPolicies.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator

from crsyncer.core.decide import may_delete
from crsyncer.core.model import Freshness, Gap, Key, View
from crsyncer.core.relate import NOTHING_SAID, References, RelatedEntry, related_entries
from crsyncer.engine.copy_names import Source
from crsyncer.engine.kind import Kind
from crsyncer.engine.wanted_originals import WantedOriginals

_LONGEST_SECONDS = 30.0
"""For how long a related copy delays the copy of its primary, unless upstream's object waits for both."""

_SOONEST_SECONDS = 0.5


class RelatedFirst:
    """The primaries of one kind that are about to go, and what they referred to. `wanted(resource)` is of that kind."""

    def __init__(self, kind: Kind, *, wanted: Callable[[str], WantedOriginals]) -> None:
        self._kind = kind
        self._policy = kind.policy
        self._cache = kind.cache
        self._entries = {entry.id: entry for entry in related_entries(kind.policy)}
        self._wanted = wanted
        self._left: dict[Source, References | None] = {
            (entry.id, key): None for entry in self._entries.values() for key in self._left_before(entry)
        }
        """What primaries that go referred to, until their copies are gone, too: those may be shown once more.

        None: they went before the kind started, and it was not recorded.
        """
        self._since: dict[Key, float] = {}
        """Since when the copy of a primary waits (event loop time, seconds)."""

    def _left_before(self, entry: RelatedEntry) -> Iterator[Key]:
        """The primaries that went before the kind started.

        Where the copy says what a primary refers to, it refers to that until it is known that the copy goes.
        """
        upstream = self._policy.upstream
        for key, tombstone in self._cache.tombstones.items():
            if entry.related.origin is upstream or tombstone.verified:
                yield key
        if entry.related.origin is self._policy.downstream:
            yield from (key for key, view in self._cache.views[upstream].items() if view.terminating)

    # What primaries do

    def left(self, entry: RelatedEntry, key: Key, said: References = NOTHING_SAID) -> None:
        """A primary refers to nothing by an entry any more. `said`: what it referred to, where it shows that still."""
        source, wanted = (entry.id, key), self._wanted(entry.resource)
        before = said if said != NOTHING_SAID else wanted.said(source)
        wanted.refer(source)
        if before != NOTHING_SAID:
            self._left[source] = before

    def stays(self, entry: RelatedEntry, key: Key) -> None:
        """A primary refers to something."""
        self._left.pop((entry.id, key), None)

    def has_left(self, entry: RelatedEntry, key: Key) -> bool:
        """Whether a primary, of which there still is a copy, refers to nothing any more, as it is about to go."""
        return (entry.id, key) in self._left and self._is_going(key)

    def returns(self, entry: RelatedEntry, key: Key) -> bool:
        """Whether the copy that says what a primary refers to is gone, and is made again."""
        return entry.related.origin is self._policy.downstream and not self._is_going(key)

    def upstream_seen(self, entry: RelatedEntry, key: Key) -> None:
        """Upstream's object of a primary is shown, whose copy says what it refers to."""
        source = (entry.id, key)
        if self._is_going(key):
            if key not in self._cache.views[self._policy.downstream]:
                self.left(entry, key)  # the copy is gone already, and is not made again
        elif source in self._left:
            self._wanted(entry.resource).refer(source, self._left.pop(source) or NOTHING_SAID)

    def copy_gone(self, key: Key) -> None:
        """The copy of a primary is gone."""
        self._since.pop(key, None)
        for entry in self._entries.values():
            if not self._remains(entry, key):
                self._left.pop((entry.id, key), None)

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

    def leave(self, key: Key) -> float | None:
        """A primary's copy waits: have the related ones go. In how many seconds to look again, if they do not."""
        for entry in self._entries.values():
            if entry.related.origin is self._policy.downstream and (entry.id, key) not in self._left:
                self.left(entry, key)
        now = asyncio.get_running_loop().time()
        since = self._since.setdefault(key, now)
        if not self.delay(key):
            return 0.0
        return None if self._is_blocked(key) else max(_SOONEST_SECONDS, since + _LONGEST_SECONDS - now)

    def related_copies_changed(self, resource: str, key: Key | None) -> None:
        """The copy of an original is gone, or (None) more is known of all: look at the primaries that wait."""
        for source, said in list(self._left.items()):
            id_, primary = source
            entry = self._entries[id_]
            if entry.resource != resource or (key is not None and key not in _candidates(said, {key})):
                continue
            if self._remains(entry, primary):
                continue
            if primary not in self._cache.views[self._policy.downstream]:
                del self._left[source]
            if self._cache.freshness(self._policy.downstream, primary.namespace) is not Freshness.STORED:
                self._kind.reconciler.enqueue(primary)  # else it is looked at when downstream is connected

    def _is_blocked(self, key: Key) -> bool:
        """Whether upstream's object waits for the copies, at most until its grace period is over (C6.4)."""
        upstream = self._cache.views[self._policy.upstream].get(key)
        return self._policy.blocking and upstream is not None and upstream.finalized

    def _is_going(self, key: Key) -> bool:
        """Whether upstream's object is gone, or about to go. For one that was made anew the related copies stay."""
        upstream = self._cache.views[self._policy.upstream].get(key)
        return upstream is None or upstream.terminating

    def _remains(self, entry: RelatedEntry, key: Key) -> bool:
        source, wanted = (entry.id, key), self._wanted(entry.resource)
        if source in wanted.unclear or wanted.said(source) != NOTHING_SAID:
            return True  # it has to be told first that the primary goes
        if source not in self._left:
            return False
        return wanted.kind is None or any(_remaining(self._left[source], wanted, wanted.kind))


def _remaining(said: References | None, wanted: WantedOriginals, kind: Kind) -> Iterator[bool]:
    """For each copy of what a primary referred to, whether it is to go, and may still be there."""
    downstream, cache = kind.policy.downstream, kind.cache
    if said is not None and said.selection is not None:
        yield cache.observe(downstream, Key(said.selection.namespace, "")).found is Gap.UNSEEN
    for key in _candidates(said, cache.views[downstream]):
        found = cache.observe(downstream, key).found
        is_none = found is Gap.ABSENT and key not in kind.reconciler.creating
        is_not_ours = isinstance(found, View) and not may_delete(found, kind.policy)
        yield not (is_none or is_not_ours or wanted.stays(key))


def _candidates(said: References | None, copies: Iterable[Key]) -> set[Key]:
    """The originals that a primary referred to.

    What a selection matches is not followed any more: of its namespace, all with copies count. Where it is not known
    what it referred to, all do.
    """
    if said is None:
        return set(copies)
    selection = said.selection
    selected = () if selection is None else (key for key in copies if key.namespace == selection.namespace)
    return {*said.keys, *selected}
