"""Keeps the newest status of each object, on disk too, until upstream acknowledges it, and sends it (S4, S6.3).

A write is guarded by uid and acknowledged by seq. While upstream is away the rows only wait: the reconciler queues them
when it is back.
"""

from dataclasses import replace
from typing import Any

from crsyncer.core.content.object_content import digest, map_generation, note_observed
from crsyncer.core.content.shape import MutationFailed, bare
from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.model import ANY_STATUS, Freshness, Json, Key, Pending, Proof, Side, View
from crsyncer.core.pair.actions import Agreed, CountAsSent, SendStatus
from crsyncer.core.pair.decide_delivery import Delivery, decide_delivery
from crsyncer.core.pair.own_status import is_obsolete, receiver
from crsyncer.core.pair.project import status_value, value_to_send
from crsyncer.core.reports.facts import Action, Fact
from crsyncer.core.requests.answers import lasting, shown
from crsyncer.core.watching.queue import Priority
from crsyncer.core.watching.restore_detection import DISTRUSTED
from crsyncer.engine.caching.cache import Cache
from crsyncer.engine.context import EngineContext
from crsyncer.engine.pairs.own_statuses import OwnStatuses, is_refusal
from crsyncer.engine.pairs.status_writer import StatusWriter
from crsyncer.errors import Conflict, Never, NotAllowed, NotServed, SyncError, Unsure
from crsyncer.ports import Reply
from crsyncer.runtime.connection import Connection

_SUSPECT_SECONDS = 60.0
"""A status that upstream's schema prunes is no reason to negotiate again every time."""
_UNANSWERED = 4
"""How many statuses whose writes were not answered are remembered of an object."""
_PERIODIC_AFTER = 3
"""An object whose unsent status was replaced so often reports periodically; it can wait for others (S7.2)."""


class Outbox:
    """The statuses of one kind that upstream has not acknowledged."""

    def __init__(self, connection: Connection, *, policy: KindPolicy, cache: Cache, context: EngineContext) -> None:
        store, clock = context.store, context.clock
        self._writer = StatusWriter(connection, policy=policy, store=store)
        self._place = context.status_place
        cloud = context.connections[Side.CLOUD]
        self._own = OwnStatuses(cloud, policy=policy, cache=cache, store=store, clock=clock, place=self._place)
        self._policy = policy
        self._cache = cache
        self._clock = clock
        self._recorder = context.recorder
        for key, row in cache.pending.items():  # its write may have been under way when the agent ended
            cache.pending[key] = replace(row, unanswered=row.unanswered or row.digest)
        self._proofs = dict.fromkeys(cache.pending, Proof.UNCHECKED)
        """The proofs of rows from the store that are not SHOWN to be the newest: upstream may have newer statuses."""
        self._sending: dict[Key, str] = {}
        """Digests of the values that are being sent."""
        self.suspicions = 0
        """How often there was a reason to negotiate again; counted once a minute at most."""
        self._suspected_at = 0.0

    def take(self, key: Key, action: SendStatus, copy: Json) -> Priority | None:
        """Put a copy's status in; its priority, or None when this very value is waiting already."""
        row = self._cache.pending.get(key)
        if row is not None and (row.upstream_uid, row.digest) == (action.upstream_uid, action.digest):
            return None
        merged = row if row is not None and row.upstream_uid == action.upstream_uid else None
        upstream = self._upstream(key)
        known = upstream is not None and upstream.uid == action.upstream_uid
        raw = self._policy.shape.up is not None and bool(action.digest)
        value = bare(copy) if raw else status_value(copy, self._policy) if action.digest else None
        row = Pending(
            seq=self._cache.next_seq(),
            upstream_uid=action.upstream_uid,
            digest=action.digest,
            value=value,
            since=merged.since if merged else self._clock(),
            merged=merged.merged + 1 if merged else 0,
            attempts=merged.attempts if merged and not merged.dead else 0,
            unanswered=self._sending.get(key, merged.unanswered) if merged else "",
            follows=merged.follows if merged else upstream.status if upstream is not None and known else "",
            raw=raw,
        )
        self._cache.set_pending(key, row)
        if self._cache.freshness(self._policy.downstream, key.namespace) is Freshness.STORED:
            self._proofs[key] = Proof.UNCHECKED  # the copy is from the store, and upstream may have had a newer status
        else:
            self._proofs.pop(key, None)
        record = self._cache.record_of(key, action.upstream_uid)
        # An older status that has landed late is answered once: somebody else may write the same.
        answered = {"" if upstream is None else upstream.status}
        answered |= {ANY_STATUS} if action.digest == record.acknowledged else set()
        unanswered = tuple(each for each in record.unanswered if each not in answered)
        self._cache.remember(key, replace(record, had_status=True, unanswered=unanswered))
        return self.priority(key)

    def agree(self, key: Key, action: Agreed) -> None:
        """Upstream has the status already (S4.9)."""
        row = self._cache.pending.get(key)
        if row is not None and row.upstream_uid == action.upstream_uid:
            self._cache.set_pending(key, None)
        record = self._cache.record_of(key, action.upstream_uid)
        self._cache.remember(
            key,
            replace(
                record,
                acknowledged=action.digest,
                upstream_status=action.digest,
                had_status=bool(action.digest),
                seed=record.seed and not action.digest,
                seeding="",
                returned=self.is_shared(key, action.upstream_uid),
            ),
        )

    def count_as_sent(self, key: Key, action: CountAsSent) -> None:
        """Upstream's object has nothing to do with this status; the next one that the copy gets is its own (S4.1)."""
        record = self._cache.record_of(key, action.upstream_uid)
        shared = self.is_shared(key, action.upstream_uid)
        record = replace(record, acknowledged=action.digest, upstream_status=action.upstream_status, returned=shared)
        self._cache.remember(key, record)

    def is_shared(self, key: Key, upstream_uid: str) -> bool:
        """Whether the statuses of this upstream object go to an object of the robot's own (F10.3)."""
        upstream = self._cache.views[self._policy.upstream].get(key)
        return upstream is not None and upstream.uid == upstream_uid and upstream.shared

    def unreturned(self) -> set[Key]:
        """The statuses that wait because no objects of the robot's own are taken."""
        refused = self._cache.pending.items() if self._place.refusal else ()
        return {key for key, row in refused if self.is_shared(key, row.upstream_uid)}

    def _upstream(self, key: Key) -> View | None:
        """Upstream's object, as whichever object takes the statuses shows it."""
        view = self._cache.views[self._policy.upstream].get(key)
        return None if view is None else receiver(view, self._cache.record_of(key, view.uid))[0]

    def proof(self, key: Key) -> Proof:
        """The proof that a row is the newest status. An unchecked one is not sent, nor is a copy made with it."""
        return self._proofs.get(key, Proof.SHOWN)

    @property
    def has_unchecked(self) -> bool:
        """Whether a row waits until every copy has been seen."""
        return any(proof is Proof.UNCHECKED and key in self._cache.pending for key, proof in self._proofs.items())

    def copies_listed(self) -> None:
        """Every copy has been seen: a row whose copy still shows it is the newest there is."""
        for key in [key for key, proof in self._proofs.items() if proof is Proof.UNCHECKED]:
            copy, row = self._cache.views[self._policy.downstream].get(key), self._cache.pending.get(key)
            if row is not None and (copy is None or copy.status != row.digest):
                self._proofs[key] = Proof.MISSING
            else:
                del self._proofs[key]

    def priority(self, key: Key) -> Priority:
        """Final statuses before periodic ones (S7.2)."""
        row = self._cache.pending[key]
        copy = self._cache.views[self._policy.downstream].get(key)
        final = copy is None or copy.terminating or row.merged <= _PERIODIC_AFTER
        return Priority.FINAL_STATUS if final else Priority.PERIODIC_STATUS

    def lacks_list(self, key: Key) -> bool:
        """Whether a row waits for a list of upstream: a resumed watch does not tell what became of its object."""
        row = self._cache.pending.get(key)
        return row is not None and self._delivery(key, row, row.digest) is Delivery.LIST

    async def send(self, key: Key, failures: int) -> bool:
        """Send one row if necessary; whether a request was made. Raises SyncError, and then the row stays."""
        row = self._cache.pending.get(key)
        if row is None:
            return False
        upstream = self._cache.views[self._policy.upstream].get(key)
        if self._maps and upstream is not None and upstream.uid == row.upstream_uid:
            record = self._cache.record_of(key, upstream.uid)
            observed = note_observed(self._shaped(key, row), record.generations)
            self._cache.remember(key, replace(record, generations=observed))
        try:
            value = self._value(key, row)
        except Never:
            if self._delivery(key, row, row.digest) is not Delivery.NO_OBJECT:
                raise
            value = row.value  # nobody takes it any more
        wire = row.digest if value is row.value else _wire(value)
        match delivery := self._delivery(key, row, wire):
            case Delivery.KEEP | Delivery.LIST:
                return False
            case Delivery.ACKNOWLEDGE:
                returned = self.is_shared(key, row.upstream_uid)
                self._acknowledge(key, row, wire=wire, resource_version="", returned=returned)
                return False
            case Delivery.NO_OBJECT | Delivery.OVERTAKEN as reason:
                self._give_up(key, reason)
                return False
            case Delivery.NO_PLACE as reason:
                raise Never(reason)
        reply = None
        self._sending[key] = wire
        try:
            if delivery is Delivery.RETURN:
                await self._own.write(key, row.upstream_uid, value, status=wire)
            else:
                exact = self.proof(key) is Proof.MISSING
                reply = await self._writer.write(key, row.upstream_uid, value, upstream=upstream, exact=exact)
        except Conflict as error:
            if upstream is None:  # it was out of sight, and may be gone
                if isinstance(error, NotServed):
                    raise
                self._give_up(key, Delivery.NO_OBJECT)
                return True
            unchanged = True
            if delivery is Delivery.SEND:
                self._suspect()
                listed = upstream.resource_version != DISTRUSTED  # until then another version is no surprise
                unchanged = listed and self._cache.views[self._policy.upstream].get(key) == upstream
            raise lasting(error, tries=failures + 1, unchanged=unchanged) from None
        except Unsure:
            self._note_unanswered(key, row.upstream_uid, wire)
            raise
        finally:
            del self._sending[key]
        version = "" if reply is None else await self._written(key, row.upstream_uid, upstream, reply, value)
        self._acknowledge(key, row, wire=wire, resource_version=version, returned=reply is None)
        if upstream is None:
            self._cache.tidy(key)
        return True

    def _give_up(self, key: Key, reason: Delivery) -> None:
        """Nobody takes the row any more."""
        self._recorder.record(Fact(self._policy.upstream, self._policy.resource, key, Action.GIVEN_UP, "S4.1", reason))
        self._cache.set_pending(key, None)
        self._cache.tidy(key)

    async def _written(self, key: Key, uid: str, upstream: View | None, reply: Reply, value: Any) -> str:
        """Upstream's object has the status; its version. Raises SyncError."""
        metadata = shown(reply.body, uid)
        version = str(metadata.get("resourceVersion") or "")
        if upstream is not None and version == upstream.resource_version:
            self._suspect()  # it changed nothing: pruned by upstream's schema, or put where none is taken (S4.6)
        await self._cache.status_written(key, metadata=metadata, value=value)
        if self.is_shared(key, uid):
            raise Conflict("upstream's object was marked as shared meanwhile")
        return version

    def _note_unanswered(self, key: Key, upstream_uid: str, wire: str) -> None:
        """Upstream may have received this value: if it shows it, nobody else has written a newer status (S4.1)."""
        record = self._cache.record_of(key, upstream_uid)
        self._cache.remember(key, replace(record, unanswered=_with(record.unanswered, wire)))
        row = self._cache.pending.get(key)
        if row is not None and row.upstream_uid == upstream_uid:
            self._cache.set_pending(key, replace(row, unanswered=wire))

    def has_obsolete_object(self, key: Key) -> bool:
        """Whether the robot has an object of its own in which no status belongs any more."""
        own = self._cache.record(key).own
        if own is None:
            return False
        observe, policy = self._cache.observe, self._policy
        return is_obsolete(own, observe(policy.upstream, key), observe(policy.downstream, key), self._place.namespace)

    async def remove_obsolete_object(self, key: Key) -> bool:
        """Delete the robot's own object if no status belongs in it any more; whether it was. Raises SyncError."""
        own = self._cache.record(key).own
        if own is None or not self.has_obsolete_object(key):
            return False
        await self._own.remove(key, own)
        self._cache.tidy(key)
        return True

    async def look(self) -> None:
        """See whether the robot's own objects are as they were written (S4.8), where that is allowed.

        Raises SyncError.
        """
        if self._place.namespace is None or not self._own.may_be_there:
            return
        try:
            await self._own.look(self._place.namespace)
        except (NotServed, NotAllowed) as error:
            if not is_refusal(error):
                raise

    def distrust(self, *, restored: bool) -> None:
        """Upstream may have lost what the robot's own objects have shown (S8.3).

        `restored`: it was, so that a status that it shows is older than one that waits.
        """
        for key, row in list(self._cache.pending.items()) if restored else ():
            self._cache.set_pending(key, replace(row, follows=ANY_STATUS))
        for key in self._cache.with_own_status:
            record = self._cache.record(key)
            if record.own is not None and record.returned:
                own = record.own._replace(status="")
                self._cache.remember(key, replace(record, own=own, acknowledged="", upstream_status=""))

    def _delivery(self, key: Key, row: Pending, wire: str) -> Delivery:
        """The decision about a row, now."""
        return decide_delivery(
            row,
            self._cache.observe(self._policy.upstream, key),
            self._cache.observe(self._policy.downstream, key),
            self._policy,
            self._cache.record(key),
            value=wire,
            proof=self.proof(key),
        )

    @property
    def _maps(self) -> bool:
        return self._policy.map_generation and self._policy.subtree is None

    def _value(self, key: Key, row: Pending) -> Any:
        """The value for upstream, with the generations of downstream as far as they are known by now (S4.7)."""
        value = self._shaped(key, row)
        return (
            value if not self._maps else map_generation(value, self._cache.record_of(key, row.upstream_uid).generations)
        )

    def _shaped(self, key: Key, row: Pending) -> Any:
        try:
            return value_to_send(row, self._policy, key)
        except MutationFailed as error:
            raise Never(str(error)) from None  # while there is a copy, it is held for that as well (C4.4)

    def mark_dead(self, key: Key, error: SyncError) -> None:
        """The row was rejected for good: a dead letter, until something changes (S10)."""
        row = self._cache.pending.get(key)
        if row is not None:
            self._cache.set_pending(key, replace(row, attempts=row.attempts + 1, error=str(error), dead=True))

    def revive(self, key: Key) -> None:
        """An operator retries a dead letter: it is sent like any other row."""
        row = self._cache.pending.get(key)
        if row is not None:
            self._cache.set_pending(key, replace(row, dead=False))

    def drop(self, key: Key) -> None:
        """An operator drops a row: upstream's status counts as agreed, until downstream's changes."""
        row = self._cache.pending[key]
        self._recorder.record(Fact(self._policy.upstream, self._policy.resource, key, Action.DROPPED, "S10", row.error))
        self.agree(key, Agreed(row.upstream_uid, row.digest))
        upstream = self._upstream(key)
        if upstream is not None:
            self._cache.remember(key, replace(self._cache.record(key), upstream_status=upstream.status))

    def tried(self, key: Key, error: SyncError) -> None:
        """The row has to be sent again."""
        row = self._cache.pending.get(key)
        if row is not None:
            self._cache.set_pending(key, replace(row, attempts=row.attempts + 1, error=str(error)))

    def _suspect(self) -> None:
        now = self._clock()
        if now - self._suspected_at > _SUSPECT_SECONDS:
            self.suspicions += 1
            self._suspected_at = now

    def _acknowledge(self, key: Key, row: Pending, *, wire: str, resource_version: str, returned: bool) -> None:
        """Upstream, or (`returned`) the robot's own object there, has the row's value.

        A newer row stays (S6.3), and so does one whose value has changed since. The record goes first: a crash between
        them leaves a row that knows what may still be on its way to upstream.
        """
        record = self._cache.record_of(key, row.upstream_uid)
        upstream = self._cache.views[self._policy.upstream].get(key)
        echoed = upstream is not None and upstream.resource_version == resource_version
        copy = self._cache.views[self._policy.downstream].get(key)  # maybe another than the one that had this status
        self._cache.remember(
            key,
            replace(
                record,
                acknowledged=row.digest,
                acknowledged_version=resource_version,
                upstream_status=upstream.status if upstream is not None and echoed else wire,
                had_status=copy is not None and bool(copy.status),
                seed=record.seed and (copy is None or not copy.has_status),  # None: the new one may be on its way
                returned=returned,
                # Whoever was sending an earlier value may have been stopped before the answer came (S10).
                unanswered=_with(record.unanswered, "" if row.unanswered == wire else row.unanswered),
            ),
        )
        now = self._cache.pending.get(key)
        current = not self._maps or wire == _wire(self._value(key, row))
        if now is not None and now.seq == row.seq and current:
            self._cache.set_pending(key, None)
        elif now is not None:
            unanswered = "" if now.unanswered == wire else now.unanswered
            since = min(now.since, self._clock())
            self._cache.set_pending(key, replace(now, since=since, merged=0, unanswered=unanswered))


def _with(unanswered: tuple[str, ...], wire: str) -> tuple[str, ...]:
    """The statuses whose writes were not answered, with another; empty: there is none."""
    others = tuple(each for each in unanswered if each != wire)
    return (wire, *others)[:_UNANSWERED] if wire else unanswered


def _wire(value: Any) -> str:
    """The digest of the value for upstream; empty for a removal."""
    return "" if value is None else digest(value)
