"""Puts this robot's finalizer on upstream objects of one kind, and removes it again (C6).

A row of the outbox names each object that has the finalizer, or may have it. It is on disk before the finalizer is
upstream, and goes when the finalizer has gone: so none is forgotten, whatever becomes of agent, object and policy.
"""

from collections.abc import Callable
from dataclasses import replace

from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.model import FinalizerRow, Gap, Json, Key
from crsyncer.core.pair import object_calls
from crsyncer.core.pair.decide_finalizer import (
    AddFinalizer,
    FinalizerAction,
    ForgetFinalizer,
    GraceUntil,
    RemoveFinalizer,
    decide_finalizer,
)
from crsyncer.core.pair.finalizer_calls import KeptObject, add_finalizer, remove_finalizer
from crsyncer.core.reports.facts import Action, Fact
from crsyncer.core.requests.calls import Call
from crsyncer.engine.caching.cache import Cache
from crsyncer.engine.context import EngineContext
from crsyncer.engine.pairs.unseen_finalizers import ask, place_of, remember, remove_unseen
from crsyncer.errors import Conflict, Never, NotAllowed, SyncError

_SOONEST_SECONDS = 0.5


class Finalizers:
    """The finalizers of one kind.

    `refused_for(key)`: for how many seconds not to add it, refused for good; 0: none. `related_remain(key)`: there may
    be related copies that only this object needs (C6.3). `forgotten(key)`: no row says any more that upstream's object
    may be there, so that its pair may be gone.
    """

    def __init__(
        self,
        policy: KindPolicy,
        *,
        cache: Cache,
        context: EngineContext,
        refused_for: Callable[[Key], float],
        related_remain: Callable[[Key], bool],
        forgotten: Callable[[Key], None],
    ) -> None:
        self._policy = policy
        self._cache = cache
        self._context = context
        self._connection = context.connections[policy.upstream]
        self._refused_for = refused_for
        self._related_remain = related_remain
        self._row_gone = forgotten

    def consider(self, key: Key) -> FinalizerAction | None:
        """What has to be done now; the row that says so is in the outbox."""
        view, row = self._cache.views[self._policy.upstream].get(key), self._cache.finalizers.get(key)
        if view is not None and view.finalized and (row is None or row.removed or row.upstream_uid != view.uid):
            row = self._row(key, view.uid)
            self._cache.set_finalizer(key, row)
        if row is None and (uid := self._forgotten(key)):
            row = replace(self._row(key, uid), since=self._context.clock())
            self._cache.set_finalizer(key, row)
        if row is not None and row.overdue and not row.removed and self._cache.has_no_copy(key):
            row = replace(row, overdue=False)
            self._cache.set_finalizer(key, row)
            self._context.report_changed()
        action = self.plan(key)
        match action:
            case ForgetFinalizer():
                self._forget(key)
                return None
            case RemoveFinalizer(overdue=overdue) if row is not None:
                since = row.since or self._context.clock()
                self._cache.set_finalizer(key, replace(row, since=since, overdue=row.overdue or overdue))
            case _ if row is not None and row.since and not isinstance(action, RemoveFinalizer):
                self._cache.set_finalizer(key, replace(row, since=0.0, attempts=0, error=""))
        if row is not None and row.overdue != self._cache.finalizers[key].overdue:
            self._context.report_changed()
        return action

    def plan(self, key: Key) -> FinalizerAction | None:
        """The decision about an object's finalizer, now."""
        up, down = self._policy.upstream, self._policy.downstream
        return decide_finalizer(
            self._cache.observe(up, key),
            self._cache.observe(down, key),
            self._policy,
            self._cache.finalizers.get(key),
            pending=self._cache.pending.get(key),
            creating=key in self._cache.creates or key in self._cache.elsewhere,
            related=self._related_remain(key),
            refused=self._refused_for(key) > 0,
            now=self._now(),
        )

    def wait(self, key: Key) -> float | None:
        """In how many seconds to act; None: nothing has to be done.

        Waits are jittered, by up to a fifth: so the last ones for a grace period are short.
        """
        match self.consider(key):
            case None:
                return self._refused_for(key) or None
            case GraceUntil(time=over):
                return max(_SOONEST_SECONDS, (over - self._now()) * 0.8)
            case _:
                return 0.0

    async def act(self, key: Key) -> bool:
        """Do what has to be done; whether a request was made. Raises SyncError."""
        match self.consider(key):
            case AddFinalizer() as action:
                await self._add(key, action)
            case RemoveFinalizer():
                await self._remove(key)
            case _:
                return False
        return True

    async def _add(self, key: Key, action: AddFinalizer) -> None:
        former = self._cache.finalizers.get(key)
        self._cache.set_finalizer(key, self._row(key, action.uid))
        may_be_there = False
        try:
            call = await self._addition(key, action)
            may_be_there = True
            await ask(self._connection, call, sensitive=self._policy.sensitive)
        except NotAllowed as error:
            if error.status != 403:
                raise
            raise Never(str(error)) from None  # for good, until something changes (C6.2)
        except Conflict:
            may_be_there = False
            raise
        finally:
            if not may_be_there and former is None:  # it need not be looked for on an object out of sight
                self._forget(key)
        self._cache.mark_finalized(key, action.uid, finalized=True)
        self._record(key, Action.FINALIZED, "C6.1")

    async def _addition(self, key: Key, action: AddFinalizer) -> Call:
        """The request, once its row is on disk. Raises Conflict where upstream has changed since."""
        policy = self._policy
        await self._context.store.durable()
        body = await self._cache.body(policy.upstream, key)
        if body is None or body["metadata"]["resourceVersion"] != action.resource_version or self.plan(key) != action:
            raise Conflict("upstream has changed since")
        objects = object_calls.collection(policy, policy.upstream, key.namespace)
        return add_finalizer(objects, key, body["metadata"], policy.finalizer)

    async def _remove(self, key: Key) -> None:
        row, sensitive = self._cache.finalizers[key], self._policy.sensitive
        try:
            metadata = await self._metadata(key, row)
            if metadata is None:
                await remove_unseen(key, row, self._context, sensitive=sensitive)
            else:  # the patch fails where the list has changed since
                kept = KeptObject(key, row.upstream_uid, tuple(metadata["finalizers"]), None)
                objects = object_calls.collection(self._policy, self._policy.upstream, "")
                call = remove_finalizer(objects, kept, row.name)
                await ask(self._connection, call, sensitive=sensitive, expected=(404,))
        except SyncError as error:
            now = self._cache.finalizers.get(key)
            if now is not None:
                self._cache.set_finalizer(key, replace(now, attempts=now.attempts + 1, error=str(error)))
            # Whatever the answer, it is tried again: an object must not wait forever (C6.3).
            raise SyncError(str(error)) if isinstance(error, Never) else error from None
        self._removed(key, row)

    async def _metadata(self, key: Key, row: FinalizerRow) -> Json | None:
        """The metadata of the object that a row is about; None where it is out of sight, or does not show it yet."""
        body = await self._cache.body(self._policy.upstream, key)
        if body is None or key not in self._cache.views[self._policy.upstream]:
            return None
        metadata: Json = body["metadata"]
        shown = metadata["uid"] == row.upstream_uid and row.name in (metadata.get("finalizers") or ())
        return metadata if shown else None

    def _removed(self, key: Key, row: FinalizerRow) -> None:
        self._cache.mark_finalized(key, row.upstream_uid, finalized=False)
        now = self._cache.finalizers.get(key)
        if now is None or now.upstream_uid != row.upstream_uid:
            return
        overdue = now.overdue and not self._cache.has_no_copy(key)
        keep = overdue or bool(self._forgotten(key))
        kept = replace(now, since=0.0, removed=True, attempts=0, error="") if keep else None
        self._cache.set_finalizer(key, kept)
        self._record(key, Action.UNFINALIZED, "C6.4" if overdue else "C6.3")
        self._context.report_changed()

    def _forgotten(self, key: Key) -> str:
        """The uid of the object out of sight whose copy a lost store does not know; "": there is none.

        It may have the finalizer: what the store would know of it is lost, and nothing shows the object (C6.3).
        """
        copy = self._cache.views[self._policy.downstream].get(key)
        if not self._policy.blocking or copy is None or copy.stamp is None:
            return ""
        uid = copy.stamp.upstream_uid
        known = bool(self._cache.record_of(key, uid).applied)  # a status that waits makes a record, too
        absent = self._cache.observe(self._policy.upstream, key).found is Gap.ABSENT
        return uid if absent and not known else ""

    def _forget(self, key: Key) -> None:
        self._cache.set_finalizer(key, None)
        if key not in self._cache.views[self._policy.upstream]:  # else what failed would be tried again at once (S10)
            self._row_gone(key)
        self._context.report_changed()

    def _row(self, key: Key, uid: str) -> FinalizerRow:
        """The row of an object that has the finalizer, or is about to; a former copy may still be overdue."""
        former = self._cache.finalizers.get(key)
        if former is not None and former.upstream_uid == uid and not former.removed:
            return former
        late = former is not None and former.overdue
        remember(self._policy.resource, self._context.store)
        side, place = self._policy.upstream.value, place_of(self._policy, self._policy.upstream)
        return FinalizerRow(uid, self._policy.finalizer, side, overdue=late, place=place)

    def _record(self, key: Key, action: Action, rule: str) -> None:
        self._context.recorder.record(Fact(self._policy.upstream, self._policy.resource, key, action, rule))

    def _now(self) -> float:
        """The time of upstream's server, as far as it is known."""
        return self._context.clock() + (self._connection.cluster.clock_offset or 0.0)
