"""Carries statuses upstream: the newest of each object, guarded by uid, acknowledged by seq (S4, S6.3)."""

import logging
from collections.abc import Callable
from dataclasses import replace
from http import HTTPStatus
from typing import Any

from crsyncer.core import calls
from crsyncer.core.actions import Agreed, SendStatus
from crsyncer.core.answers import REFUSALS_BEFORE_DEAD, judge, shown
from crsyncer.core.model import Gap, Key, Pending, Proof, View
from crsyncer.core.policy import Policy
from crsyncer.core.project import digest, map_generation, note_observed
from crsyncer.core.queue import Priority
from crsyncer.engine.cache import Cache
from crsyncer.errors import Never, NotAllowed, Refused, SyncError
from crsyncer.ports import Reply, Store
from crsyncer.runtime.connection import Connection

log = logging.getLogger(__name__)

_SUSPECT_SECONDS = 60.0
"""What upstream's schema prunes is no reason to ask again with every status."""
_PERIODIC_AFTER = 3
"""An object whose unsent status was replaced so often reports periodically; it can wait for others (S7.2)."""


class Outbox:
    """The statuses of one kind that upstream has not acknowledged. `clock` is Unix time in seconds."""

    def __init__(
        self, connection: Connection, *, policy: Policy, cache: Cache, store: Store, clock: Callable[[], float]
    ) -> None:
        self._connection = connection
        self._policy = policy
        self._cache = cache
        self._store = store
        self._clock = clock
        self._unproven = dict.fromkeys(cache.pending, Proof.UNCHECKED)
        """Rows of the store that nothing has shown to be the newest: upstream may have newer statuses."""
        self._patch_refused = f"put-status:{policy.resource}"
        self._puts = bool(store.get_meta(self._patch_refused))
        """Whether the next status is written by PUT instead of PATCH."""
        self._refused_both = False
        self.suspicions = 0
        """How often there was reason to ask upstream anew where it takes statuses; counted once in a while only."""
        self._suspected_at = 0.0

    def take(self, key: Key, action: SendStatus, value: Any) -> Priority | None:
        """Put a status in; its priority, or None when this very value is waiting already."""
        row = self._cache.pending.get(key)
        if row is not None and (row.upstream_uid, row.digest) == (action.upstream_uid, action.digest):
            return None
        merged = row if row is not None and row.upstream_uid == action.upstream_uid else None
        row = Pending(
            seq=self._cache.next_seq(),
            upstream_uid=action.upstream_uid,
            digest=action.digest,
            value=value if action.digest else None,
            since=merged.since if merged else self._clock(),
            merged=merged.merged + 1 if merged else 0,
            attempts=merged.attempts if merged and not merged.dead else 0,
        )
        self._cache.set_pending(key, row)
        self._unproven.pop(key, None)
        record = self._cache.record_of(key, action.upstream_uid)
        self._cache.remember(key, replace(record, had_status=True))
        return self.priority(key)

    def agree(self, key: Key, action: Agreed) -> None:
        """Upstream has the status already (S4.9)."""
        self._cache.set_pending(key, None)
        record = self._cache.record_of(key, action.upstream_uid)
        self._cache.remember(
            key,
            replace(
                record,
                sent=action.digest,
                accepted=action.digest,
                had_status=bool(action.digest),
                seed=record.seed and not action.digest,
            ),
        )

    def proof(self, key: Key) -> Proof:
        """What shows that a row is the newest status. An unchecked one is not sent, nor is a copy made with it."""
        return self._unproven.get(key, Proof.SHOWN)

    @property
    def unchecked(self) -> bool:
        """Whether a row waits until every copy has been seen."""
        return any(proof is Proof.UNCHECKED and key in self._cache.pending for key, proof in self._unproven.items())

    def check(self) -> None:
        """Every copy has been seen: a row whose copy still shows it is the newest there is."""
        for key in [key for key, proof in self._unproven.items() if proof is Proof.UNCHECKED]:
            copy, row = self._cache.views[self._policy.downstream].get(key), self._cache.pending.get(key)
            if row is not None and (copy is None or copy.status != row.digest):
                self._unproven[key] = Proof.MISSING
            else:
                del self._unproven[key]

    def _overtaken(self, key: Key, upstream: View) -> bool:
        """Whether upstream has had a newer status since a row without a copy was made, as far as anybody can tell.

        It is not older than what upstream had acknowledged by then. What else upstream has came later, from us with
        a later state of this store, or from somebody. Where it is not known any more what was acknowledged, the row
        was saved from a broken database, and is as new as that.
        """
        record = self._cache.record(key)
        known = record.upstream_uid == upstream.uid
        return self.proof(key) is Proof.MISSING and known and upstream.status not in ("", record.accepted)

    def priority(self, key: Key) -> Priority:
        """Final statuses before periodic ones (S7.2)."""
        row = self._cache.pending[key]
        copy = self._cache.views[self._policy.downstream].get(key)
        final = copy is None or copy.terminating or row.merged <= _PERIODIC_AFTER
        return Priority.FINAL_STATUS if final else Priority.PERIODIC_STATUS

    async def send(self, key: Key, failures: int) -> bool:
        """Send one row if there is a need; whether a request was made. Raises SyncError, the row stays then."""
        row = self._cache.pending.get(key)
        if row is None:
            return False
        upstream = self._cache.observe(self._policy.upstream, key).of(row.upstream_uid)
        # A row that was saved from a broken database, without its copy, may be older than what upstream has.
        unseen = Gap.UNSEEN in (upstream, self._cache.observe(self._policy.downstream, key).found)
        if unseen or self.proof(key) is Proof.UNCHECKED:
            return False
        if not isinstance(upstream, View):
            log.info("status of %s dropped: its upstream object is gone", key)
            self._cache.set_pending(key, None)
            return False
        if self._maps:
            record = self._cache.record_of(key, upstream.uid)
            self._cache.remember(key, replace(record, generations=note_observed(row.value, record.generations)))
        value = self._value(key, row)
        wire = _wire(value)
        overtaken = row.merged and row.attempts  # what was tried before may yet land: only an answer counts
        if upstream.status == wire and not overtaken:
            self._acknowledge(key, row, wire=wire, resource_version="")
            return False
        if self._overtaken(key, upstream):
            log.warning("status of %s given up: %s had another after it", key, self._policy.upstream)
            self._cache.set_pending(key, None)
            return False
        if self._policy.subtree is not None and upstream.odd_status:
            raise Never("upstream's status is not an object, so there is no place for the subtree")
        try:
            reply = await self._write(key, upstream, value)
        except Refused as error:
            self._suspect()
            if failures + 1 >= REFUSALS_BEFORE_DEAD and self._cache.views[self._policy.upstream].get(key) == upstream:
                raise Never(f"upstream keeps refusing the status: {error}") from None
            raise
        metadata = shown(reply.body, upstream.uid)
        version = str(metadata.get("resourceVersion") or "")
        if version == upstream.resource_version:
            self._suspect()  # it changed nothing: pruned by upstream's schema, or put where none is taken (S4.6)
        await self._cache.status_written(key, metadata=metadata, value=value)
        self._acknowledge(key, row, wire=wire, resource_version=version)
        return True

    @property
    def _maps(self) -> bool:
        return self._policy.map_generation and self._policy.subtree is None

    def _value(self, key: Key, row: Pending) -> Any:
        """What upstream is told, as far as downstream's generations are known by now (S4.7)."""
        if not self._maps:
            return row.value
        return map_generation(row.value, self._cache.record_of(key, row.upstream_uid).generations)

    def mark_dead(self, key: Key, error: SyncError) -> None:
        """The row was refused for good: a dead letter, until something changes (S10)."""
        row = self._cache.pending.get(key)
        if row is not None:
            self._cache.set_pending(key, replace(row, attempts=row.attempts + 1, error=str(error), dead=True))

    def revive(self, key: Key) -> None:
        """A human asks: a dead letter is sent like any other again."""
        row = self._cache.pending.get(key)
        if row is not None:
            self._cache.set_pending(key, replace(row, dead=False))

    def drop(self, key: Key) -> None:
        """A human gives a row up: what upstream has counts as agreed, until downstream's status changes."""
        row = self._cache.pending[key]
        self.agree(key, Agreed(row.upstream_uid, row.digest))
        upstream = self._cache.views[self._policy.upstream].get(key)
        if upstream is not None:
            self._cache.remember(key, replace(self._cache.record(key), accepted=upstream.status))

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

    async def _write(self, key: Key, upstream: View, value: Any) -> Reply:
        if not self._puts:
            exact = self.proof(key) is Proof.MISSING  # upstream may be at another version than we have heard of yet
            call = calls.patch_status(self._policy, key, upstream.uid, value, upstream=upstream, exact=exact)
            try:
                reply = await self._ask(call)
            except NotAllowed as error:
                if error.status != HTTPStatus.FORBIDDEN:
                    raise
                self._puts = True  # existing roles grant only `update` (S4.2)
                if self._refused_both:
                    raise
            else:
                self._remember_puts(False)
                return reply
        body = await self._store.body(self._policy.upstream, self._policy.resource, key)
        if body is None:
            raise Refused("upstream's object is not in the store yet")
        if self._policy.status_endpoint[self._policy.upstream] and self._policy.subtree is None:
            # Only the status travels, so the newest version that is known will do. Elsewhere the body's own version
            # must guard what travels along with it: an older body never goes out under a newer version.
            body = {**body, "metadata": {**body["metadata"], "resourceVersion": upstream.resource_version}}
        try:
            reply = await self._ask(calls.put_status(self._policy, key, upstream.uid, value, upstream=body))
        except NotAllowed as error:
            if error.status == HTTPStatus.FORBIDDEN:
                self._puts, self._refused_both = False, True  # from now on a try is one request, of either kind in turn
            raise
        self._remember_puts(True)
        return reply

    def _remember_puts(self, puts: bool) -> None:
        """Remember for the kind how upstream takes a status."""
        self._refused_both = False
        if bool(self._store.get_meta(self._patch_refused)) != puts:
            self._store.put_meta(self._patch_refused, puts)

    async def _ask(self, call: calls.Call) -> Reply:
        reply = await self._connection.request(call)
        patch = call.method == "PATCH"
        error = judge(reply.status, reply.body, text=reply.text, retry_after=reply.retry_after, patch=patch)
        if error is not None:
            raise error
        return reply

    def _acknowledge(self, key: Key, row: Pending, *, wire: str, resource_version: str) -> None:
        """Upstream has the row's value. A newer row that came meanwhile stays (S6.3), and one to be told otherwise."""
        now = self._cache.pending.get(key)
        told = not self._maps or wire == _wire(self._value(key, row))
        if now is not None and now.seq == row.seq and told:
            self._cache.set_pending(key, None)
        elif now is not None:
            self._cache.set_pending(key, replace(now, since=min(now.since, self._clock()), merged=0))
        record = self._cache.record_of(key, row.upstream_uid)
        upstream = self._cache.views[self._policy.upstream].get(key)
        echoed = upstream is not None and upstream.resource_version == resource_version
        copy = self._cache.views[self._policy.downstream].get(key)  # maybe another than the one that had this status
        self._cache.remember(
            key,
            replace(
                record,
                sent=row.digest,
                sent_version=resource_version,
                accepted=upstream.status if upstream is not None and echoed else wire,
                had_status=copy is not None and bool(copy.status),
                seed=record.seed and (copy is None or not copy.has_status),  # None: the new one may be on its way
            ),
        )


def _wire(value: Any) -> str:
    """The digest of what upstream is told; empty where that is nothing."""
    return "" if value is None else digest(value)
