"""Keeps one side of a cache true, in one namespace or in all: the sink of a list-watch."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from enum import Enum
from functools import partial

from crsyncer.core import calls, object_calls
from crsyncer.core.model import Cursor, Edition, Freshness, Json, Key, Side, View
from crsyncer.core.pages import PageLimit
from crsyncer.core.policy import Policy
from crsyncer.core.project import key_of, objection
from crsyncer.core.watch import Anchor, EventType, edition_of
from crsyncer.engine.cache import DISTRUSTED, Cache, newer
from crsyncer.errors import Unsure
from crsyncer.ports import Observer
from crsyncer.runtime.connection import Connection
from crsyncer.runtime.listwatch import ListWatch
from crsyncer.runtime.paged_list import Listing
from crsyncer.runtime.resume_check import ResumeCheck

log = logging.getLogger(__name__)

_LATE_SECONDS = 5.0
"""How far a watch may be behind a list."""
_FIRST_VERSION = 2
"""A watch from version 0 would be one from anywhere."""


class Rewind(Enum):
    """Why a side may show less than we know, or older things."""

    REBOOTED = "its machine booted, and may have lost its last writes"
    RESTORED = "it is older than our cursor"
    REBUILT = "it is another cluster, and somebody has accepted it"


class Informer:
    """Delivers one side's objects of a kind into the cache.

    `changed(side, key, type, object)` is called for every object that may need a look (and has to call `Cache.lost`
    after a DELETED), `overheard(side, key, object, live)` before that (`live`: it is an event),
    `freshness_changed(side, namespace)` when that of the observations there has changed, `went_back(side, how)` before
    a cluster is listed that may show less than we know, `phase_changed()` as it says.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        side: Side,
        resume_check: ResumeCheck,
        policy: Policy,
        namespace: str,
        cache: Cache,
        observer: Observer,
        watch_timeout: int,
        changed: Callable[[Side, Key, EventType, Json | None], None],
        overheard: Callable[[Side, Key, Json, bool], None],
        freshness_changed: Callable[[Side, str], None],
        went_back: Callable[[Side, Rewind], None],
        phase_changed: Callable[[], None],
    ) -> None:
        self.side = side
        self.relists = 0
        self.expiries = 0
        """InformerSet because the server has no history any more: it, or the CRD, was started anew or changed."""
        self.resumes = 0
        self._connection = connection
        self._policy = policy
        self.namespace = namespace
        self._cache = cache
        self._observer = observer
        self._changed = changed
        self._overheard = overheard
        self._freshness_changed = freshness_changed
        self._went_back = went_back
        self._phase_changed = phase_changed
        self._path = object_calls.collection(policy, namespace)
        stored = cache.cursors.get((self.side, namespace))
        self._seen = ("", "") if stored is None else (stored.seen_uid, stored.seen_version)
        """uid and resourceVersion of the last event's object; empty: none in this history."""
        self._listed: set[Key] = set()
        self._familiar = self.cursor() is not None
        """Whether what is stored is of this very collection, and so may be what a digest shows."""
        gateway = policy.filtered and self.side is Side.CLOUD
        self.listwatch = ListWatch(
            connection,
            self,
            resume_check=resume_check,
            path=self._path,
            selector=policy.selector,
            page=PageLimit(),
            single=None if gateway else partial(object_calls.single, policy),
            watch_timeout=watch_timeout,
        )

    def cursor(self) -> str | None:
        """The stored cursor, where it is of this cluster, path and selector (S6.2); of whichever boot."""
        cursor = self._cache.cursors.get((self.side, self.namespace))
        if cursor is None or self._cursor(cursor.resource_version) != replace(
            cursor, boot=self._connection.boot, seen_uid=self._seen[0], seen_version=self._seen[1]
        ):
            return None
        return cursor.resource_version

    def newest(self) -> int:
        """The highest resourceVersion of this side's objects."""
        return self._cache.newest(self.side)

    def rebooted(self) -> bool:
        """Whether the cursor is of an earlier boot: then everything has to be shown again (S8.4)."""
        cursor = self._cache.cursors.get((self.side, self.namespace))
        if cursor is None or cursor.boot in ("", self._connection.boot):
            return False
        self._rewind(Rewind.REBOOTED)
        return True

    def moved(self, resource_version: str | None) -> None:
        """Put the cursor behind everything that was delivered."""
        cursor = None if resource_version is None else self._cursor(resource_version)
        self._cache.set_cursor(self.side, self.namespace, cursor)

    def anchor(self) -> Anchor | None:
        """The newest object up to the cursor: what is newer may be our own write to another history."""
        cursor = self.cursor() or ""
        objects = [self._seen, *((view.uid, view.resource_version) for _, view in self._mine())]
        numbered = [(uid, v) for uid, v in objects if v.isdigit() and not newer(v, cursor)]
        uid, newest = max(numbered, key=lambda each: int(each[1]), default=("", "0"))
        if not cursor.isdigit() or int(newest) < _FIRST_VERSION:
            return None
        return Anchor(self._path, self._policy.selector, uid, newest)

    def copies(self) -> int:
        """Whatever was seen of this very collection may be unchanged."""
        return self.known() if self._familiar else 0

    def known(self) -> int:
        """How many objects are known of it."""
        return sum(1 for _ in self._mine()) if self.namespace else len(self._cache.views[self.side])

    async def agrees(self) -> bool:
        """Whether a digest shows just what is known: taken beside the watch, which goes on.

        Raises Unsure when there was no answer, or no list.
        """
        shown: set[Key] = set()
        odd: list[Edition] = []

        def take(raw: Json, _whole: bool, _listed_at: str) -> None:
            edition = edition_of(raw)
            if edition is not None:
                shown.add(edition.key)
                if not self._is_known(edition):
                    odd.append(edition)

        listing = await self.listwatch.paged_list.read(calls.PARTIAL_LIST, take)
        if not isinstance(listing, Listing) or not listing.consistent:
            raise Unsure(f"the {self.side} did not list {self._path} in time")
        version = listing.resource_version
        missing = [key for key, view in self._mine() if key not in shown and not newer(view.resource_version, version)]
        if not odd and not missing:
            return True
        await asyncio.sleep(_LATE_SECONDS)
        known = self._cache.views[self.side]
        return not any(key in known and not newer(known[key].resource_version, version) for key in missing) and all(
            self._is_known(edition) or (edition.key in known and newer(known[edition.key].resource_version, version))
            for edition in odd
        )

    def relisted(self, reason: str) -> None:
        """Count it."""
        log.info("%s %s is listed: %s", self.side, self._policy.resource, reason)
        self.relists += 1
        self.expiries += reason == "expired"
        self._observer.relist(self.side, self._policy.resource, reason)
        self._meet()

    def forget_cursor(self) -> None:
        """The cursor is of a kind that is no more, though another of its name is served."""
        self._meet()
        self._seen = ("", "")
        self.moved(None)

    def rebuilt(self) -> None:
        """A human accepts another cluster: nothing of it is older than what we know, whatever its numbers say."""
        self._rewind(Rewind.REBUILT)

    def _meet(self) -> None:
        known = self._cache.cursors.get((self.side, self.namespace))
        if known is not None and known.identity != self._connection.cluster_identity:
            self.rebuilt()  # it was accepted while the kind was stopped

    def listing(self) -> None:
        """Remember from here on what the list shows."""
        self._listed = set()

    def has(self, edition: Edition, listed_at: str) -> bool:
        """Whether an object is known in just this version; it is there in any case."""
        if edition.key in self._cache.views[self.side]:  # else it is fetched, and may turn out not to be ours
            self._compare(edition, listed_at)
        self._listed.add(edition.key)
        return self._is_known(edition)

    def item(self, raw: Json, listed_at: str) -> None:
        """Items of a list name their kind only on the list itself."""
        raw.setdefault("apiVersion", self._policy.api_version)
        raw.setdefault("kind", self._policy.kind)
        key = self._admit(raw)
        if key is not None:
            self._compare(Edition(key, raw["metadata"]["uid"], raw["metadata"]["resourceVersion"]), listed_at)
            self._listed.add(key)
            self._overheard(self.side, key, raw, False)
            if self._cache.saw(self.side, key, raw):
                self._changed(self.side, key, EventType.ADDED, raw)

    def listed(self, resource_version: str, *, consistent: bool) -> None:
        """What a consistent list does not show is gone, unless we have made it since the list was taken."""
        self._familiar = True
        for key, view in list(self._mine()) if consistent else ():
            if key in self._listed:
                continue
            if newer(view.resource_version, resource_version):
                continue
            self._changed(self.side, key, EventType.DELETED, None)
        self._listed = set()

    def event(self, event_type: EventType, raw: Json) -> None:
        """Show the cache what changed; a deletion's last state first, it may carry the last status."""
        seen = (str(raw["metadata"].get("uid", "")), raw["metadata"]["resourceVersion"])
        if seen == self._seen:
            return  # a duplicate: the cursor is past it, so no replay could repair a crash during a second handling
        self._observer.event(self.side, self._policy.resource, event_type)
        gone = event_type is EventType.DELETED
        self._seen = seen
        key = self._admit(raw, leaving=gone)
        if key is None:
            return
        self._overheard(self.side, key, raw, not gone)
        known = self._cache.views[self.side].get(key)
        if gone and known is not None and known.uid != raw["metadata"]["uid"]:
            return
        if self._cache.saw(self.side, key, raw) or gone:
            self._changed(self.side, key, event_type, raw)

    def resumed(self) -> None:
        """Count it."""
        self.resumes += 1
        self._observer.resume(self.side, self._policy.resource)

    def freshness_changed(self, freshness: Freshness) -> None:
        """Tell the cache, and have everything looked at that this may change."""
        self._cache.set_freshness(self.side, self.namespace, freshness)
        self._freshness_changed(self.side, self.namespace)

    def went_back(self) -> None:
        """A list shows an older state (S8.3)."""
        self._rewind(Rewind.RESTORED)
        self.moved(None)

    def noticed(self) -> None:
        """The phase is part of `status`."""
        self._phase_changed()

    def _mine(self) -> Iterator[tuple[Key, View]]:
        """What is known of this collection."""
        views = self._cache.views[self.side].items()
        return ((key, view) for key, view in views if not self.namespace or key.namespace == self.namespace)

    def _is_known(self, edition: Edition) -> bool:
        view = self._cache.views[self.side].get(edition.key)
        return view is not None and (view.uid, view.resource_version) == (edition.uid, edition.resource_version)

    def _compare(self, shown: Edition, listed_at: str) -> None:
        """Notice a restored cluster by a version that this history cannot have (S8.3).

        A consistent list shows no older version than one that it should know. Nor does it show a version that is not
        newer than the cursor and yet unknown: everything up to the cursor was seen.
        """
        known = self._cache.views[self.side].get(shown.key)
        if known is not None and newer(known.resource_version, shown.resource_version):
            odd = not newer(known.resource_version, listed_at)
        else:
            cursor = self.cursor() or ""
            covered = cursor.isdigit() and not newer(shown.resource_version, cursor)
            odd = covered and not self._is_known(shown) and (known is None or known.resource_version != DISTRUSTED)
        if odd:
            self.went_back()

    def _admit(self, raw: Json, *, leaving: bool = False) -> Key | None:
        """The key of an object that may be touched; None, and a warning, for one that we did not ask for."""
        reason = objection(raw, self._policy, self.namespace, leaving=leaving)
        if reason:
            log.warning("%s %s: an object was ignored: %s", self.side, self._policy.resource, reason)
            return None
        return key_of(raw)

    def _cursor(self, version: str) -> Cursor:
        return Cursor(
            self._connection.cluster_identity or "",
            self._path,
            self._policy.projection,
            version,
            self._connection.boot,
            *self._seen,
        )

    def _rewind(self, how: Rewind) -> None:
        """From now on whatever this side shows is newer than what we know."""
        log.info("%s %s is listed anew: %s", self.side, self._policy.resource, how.value)
        if how is not Rewind.REBOOTED:
            self._seen = ("", "")  # of a history that is no more
        self._cache.distrust(self.side)
        self._went_back(self.side, how)
