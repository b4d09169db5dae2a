"""Delivers one side's objects of a kind into the cache, in one namespace or in all.

Namespaces and keys are upstream's, as everywhere; only the collection that is asked for has the side's own names.
"""

from collections.abc import Callable, Iterator, Mapping

from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.model import Cursor, Freshness, Json, Key, Side, View
from crsyncer.core.pair import object_calls
from crsyncer.core.pair.project import objection
from crsyncer.core.reports.facts import Action, Fact
from crsyncer.core.watching.pages import PageLimit
from crsyncer.core.watching.revisions import Revisions
from crsyncer.core.watching.watch import EventType
from crsyncer.engine.caching.cache import Cache
from crsyncer.engine.reporting.recorder import Recorder
from crsyncer.ports import Observer
from crsyncer.runtime.collection_state import CollectionState, Rewind
from crsyncer.runtime.connection import Connection
from crsyncer.runtime.listwatch import ListWatch, Phase


class Informer:
    """A list-watch and its handler.

    `changed(side, key, type, object)` is called for every object that may need a look (and has to call `Cache.lost`
    after a DELETED), `observed(side, key, object, live)` before that (`live`: it is an event),
    `freshness_changed(side, namespace)` when the observations there are fresher or less fresh, `rewound(side, how)`
    before a cluster is listed that may show less than is known, `phase_changed()` when the list-watch has another
    phase, `unpaired()` when another object may belong to no pair.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        side: Side,
        policy: KindPolicy,
        namespace: str,
        cache: Cache,
        observer: Observer,
        recorder: Recorder,
        watch_timeout: int,
        changed: Callable[[Side, Key, EventType, Json | None], None],
        observed: Callable[[Side, Key, Json, bool], None],
        freshness_changed: Callable[[Side, str], None],
        rewound: Callable[[Side, Rewind], None],
        phase_changed: Callable[[], None],
        unpaired: Callable[[], None],
    ) -> None:
        self.side = side
        self.namespace = namespace
        self._phase_changed = phase_changed
        self._policy = policy
        self._cache = cache
        self._recorder = recorder
        self._changed = changed
        self._observed = observed
        self._freshness_changed = freshness_changed
        self._rewound = rewound
        self._unpaired = unpaired
        self.state = CollectionState(
            connection,
            object_calls.collection(policy, side, namespace),
            handler=self,
            fingerprint=policy.fingerprint.text,
            name=policy.resource,
            observer=observer,
            selective=bool(policy.related) and side is policy.upstream,
        )
        self.listwatch = ListWatch(
            self.state,
            page=PageLimit(),
            by_name=not (policy.filtered and side is Side.CLOUD),  # a gateway accepts no further selector
            watch_timeout=watch_timeout,
        )

    @property
    def cursor(self) -> Cursor | None:
        """Up to where the events of this side and namespace are in the store."""
        return self._cache.cursors.get((self.side, self.namespace))

    @cursor.setter
    def cursor(self, cursor: Cursor | None) -> None:
        self._cache.set_cursor(self.side, self.namespace, cursor)

    @property
    def was_listed(self) -> bool:
        """Whether the server has listed the collection in this version, at least in part."""
        return self.cursor is not None and self.cursor.path == self.state.collection.path

    @property
    def objects(self) -> Mapping[Key, View]:
        """The objects of this side."""
        return self._cache.views[self.side]

    @property
    def revisions(self) -> Revisions:
        """The highest version of this side's objects."""
        return self._cache.revisions[self.side]

    def members(self) -> Iterator[tuple[Key, View]]:
        """Those of this namespace that the selector matches."""
        for key, view in self.objects.items():
            if self.namespace in ("", key.namespace) and not view.unselected:
                yield key, view

    def is_member(self, key: Key) -> bool:
        """Whether an object of this side is of this namespace, and the selector matches it."""
        return self.namespace in ("", key.namespace) and not self.objects[key].unselected

    def key_of(self, raw: Json) -> Key | None:
        """The key of the pair that an object of this side belongs to; only its metadata may be shown."""
        return self._cache.key_of(self.side, raw)

    def is_stranger(self, raw: Json) -> bool:
        """Whether an object of this side belongs to no pair, and is known as that."""
        return self._cache.is_stranger(self.side, raw)

    def identify(self, raw: Json, event_type: EventType | None) -> Key | None:
        """The key of an object that may be touched; None, and it is reported, for one that we did not ask for."""
        if event_type is None:
            self._policy.endpoint(self.side).complete(raw)
        asked, gone = self.state.collection.namespace, event_type is EventType.DELETED
        reason = objection(raw, self._policy, self.side, namespace=asked, leaving=gone)
        if reason:
            text = f"an object was ignored: {reason}"
            self._recorder.record(Fact(self.side, self._policy.resource, None, Action.REFUSED, "S2", text))
            return None
        key = self._cache.identify(self.side, raw, leaving=gone)
        self._unpaired()
        return key

    def decide_waiting(self) -> None:
        """Have the objects of this side delivered that belonged to no pair before, and do now (C2.2, C2.6)."""
        for raw in self._cache.waiting():
            key = self._cache.identify(self.side, raw, leaving=False)
            if key is not None:
                self.shown(key, raw, None)

    def shown(self, key: Key, raw: Json, event_type: EventType | None) -> None:
        """Show the cache what changed; a deletion's last state first, it may carry the last status."""
        gone = event_type is EventType.DELETED
        self._observed(self.side, key, raw, event_type is not None and not gone)
        known = self.objects.get(key)
        if not self._tell_wanted(key, raw, gone=gone):
            return
        if gone and known is not None and known.uid != raw["metadata"]["uid"]:
            return
        if self._cache.saw(self.side, key, raw) or gone:
            self._changed(self.side, key, event_type or EventType.ADDED, raw)

    def _tell_wanted(self, key: Key, raw: Json, *, gone: bool) -> bool:
        """Tell `Cache.wanted` of an original (C5); whether the cache takes what is shown."""
        wanted = self._cache.wanted if self.side is self._policy.upstream else None
        if wanted is None:
            return True
        known = key in self.objects
        if gone:
            wanted.gone(key)
            return known
        if wanted.is_copy(raw):
            if known:
                self.absent(key)
            return False
        return wanted.shown(key, raw, known=known)

    def absent(self, key: Key) -> None:
        """Handle it as deleted; its last state is not known."""
        if self._cache.wanted is not None and self.side is self._policy.upstream:
            self._cache.wanted.gone(key)
        self._changed(self.side, key, EventType.DELETED, None)

    def phase_changed(self) -> None:
        """Report why the collection cannot be listed, and have the kind look at it (S1.6)."""
        phase, message = self.listwatch.phase, self.listwatch.message
        if phase in (Phase.MISSING, Phase.FORBIDDEN):
            self._recorder.record(Fact(self.side, self._policy.resource, None, Action.REFUSED, "S1.6", message))
        self._phase_changed()

    def freshness_changed(self, freshness: Freshness) -> None:
        """Note it in the cache, and have everything looked at that this may change."""
        self._cache.set_freshness(self.side, self.namespace, freshness)
        self._unpaired()
        self._freshness_changed(self.side, self.namespace)

    def rewound(self, how: Rewind) -> None:
        """From now on every version that this side shows counts as newer."""
        self._cache.distrust(self.side)
        self._rewound(self.side, how)
