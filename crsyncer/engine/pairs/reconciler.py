"""Works on one object at a time: observes, decides, and has the decision written."""

import asyncio
import logging
from collections.abc import Callable, Set
from contextlib import nullcontext
from typing import assert_never

from crsyncer.core.holds.hold_list import DELETION_HOLDS, ENDED_BY_WRITES
from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.model import Gap, Json, Key
from crsyncer.core.pair.actions import (
    NAME_TAKEN,
    REVERTS,
    Agreed,
    CountAsSent,
    Create,
    Delete,
    Hold,
    HoldReason,
    Plan,
    SendStatus,
    StatusAction,
    Until,
    Update,
    Wait,
    duplicate,
)
from crsyncer.core.pair.decide import decide
from crsyncer.core.pair.revert_limit import RevertLimit
from crsyncer.core.reports.facts import Action, Fact, fact_of_write, hold_rule
from crsyncer.core.watching.queue import Priority
from crsyncer.engine.caching.cache import Cache
from crsyncer.engine.caching.related_ports import RelatedCopies
from crsyncer.engine.context import EngineContext
from crsyncer.engine.pairs.finalizers import Finalizers
from crsyncer.engine.pairs.hold_driver import HoldDriver
from crsyncer.engine.pairs.outbox import Outbox
from crsyncer.engine.pairs.outcomes import CONTENT, FINALIZER, STATUS, VERIFY, Outcomes
from crsyncer.engine.pairs.writer import Write, Writer
from crsyncer.errors import Conflict, NameTaken, Never, SyncError
from crsyncer.runtime.dispatcher import Job

log = logging.getLogger(__name__)

_RELATED_FIRST = Wait(Until.RELATED_GONE)
_VERBS = {Create: "create", Update: "update", Delete: "delete"}


class Reconciler:
    """Works on the objects of one kind; its jobs are handed out by the dispatchers.

    `hold_driver` keeps deletions back; `settled(key)` is called for every pair that agrees or
    cannot be judged, `unlisted(key)` for every pair that cannot be judged without a list of upstream.
    """

    def __init__(
        self,
        policy: KindPolicy,
        *,
        cache: Cache,
        context: EngineContext,
        hold_driver: HoldDriver,
        settled: Callable[[Key], None],
        unlisted: Callable[[Key], None],
    ) -> None:
        self.policy = policy
        self.cache = cache
        self.stopped = False
        """Whether nothing is to be written for the kind any more, although its tasks may not have ended yet (S1.8)."""
        self._duplicates: dict[Key, Key] = {}
        """Originals that have another copy, and what that is called."""
        self.to_audit: set[Key] = set()
        """Copies that are to be compared with upstream whatever their records are (S4.8)."""
        self._context = context
        cache.on_free_name = self.enqueue
        self._upstream = context.connections[policy.upstream]
        self.outbox = Outbox(self._upstream, policy=policy, cache=cache, context=context)
        self.outcomes = Outcomes(cache=cache, outbox=self.outbox, context=context)
        self.writer = Writer(
            context.connections[policy.downstream],
            policy=policy,
            cache=cache,
            store=context.store,
            still_planned=self._still_planned,
        )
        self._revert_limit = RevertLimit()
        self._hold_driver = hold_driver
        self._settled = settled
        self._unlisted = unlisted
        self._finalizers = Finalizers(
            policy,
            cache=cache,
            context=context,
            refused_for=self.outcomes.refinalize_in,
            related_remain=lambda key: self.related_first is not None and self.related_first.remain(key),
            forgotten=self.enqueue,
        )
        self.related_first: RelatedCopies | None = None
        """What goes before the copies of primaries; None: nothing is related to them."""
        self._work = {
            CONTENT: self._content,
            STATUS: self._status,
            VERIFY: self._verify_ahead,
            FINALIZER: self._finalizer,
        }

    # The queue

    def enqueue(self, key: Key, priority: Priority | None = None) -> None:
        """Have content and status of a pair reconciled."""
        job = Job(self.policy.resource, CONTENT, key)
        self.outcomes.dispatcher(job).add(job, self.priority(key) if priority is None else priority)
        # A status is queued by its priority at reconnect (S7.2); a key keeps the best priority that it ever had.
        if key in self.cache.pending and self._upstream.up.is_set():
            self.queue_status(key, self.outbox.priority(key))
        self.consider_finalizer(key)

    def priority(self, key: Key) -> Priority:
        """Deletions, then changes, then new objects (S7.2)."""
        if key in self.cache.tombstones:
            return Priority.DELETION
        return Priority.SPEC if key in self.cache.views[self.policy.downstream] else Priority.CREATION

    def queue_status(self, key: Key, priority: Priority) -> None:
        self._context.dispatchers[self.policy.upstream].add(Job(self.policy.resource, STATUS, key), priority)

    # Reconciling

    async def reconcile(self, job: Job[Key]) -> None:
        """Work on one pair."""
        try:
            verb = await self._work[job.work](job)
        except NameTaken:
            self._hold(job.key, NAME_TAKEN)
            self.outcomes.name_taken(job)
            self.consider_finalizer(job.key)
        except SyncError as error:
            self.outcomes.failed(job, error)
        except MemoryError:
            raise  # it is the process that has none left
        except Exception:
            # A bug that one object triggers must not stop the others: log its traceback, and retry later.
            log.exception("%s %s: the %s could not be reconciled", self.policy.resource, job.key, job.work)
            self.outcomes.dispatcher(job).back_off(job)
            return
        else:
            self.outcomes.done(job, verb)
            if verb is not None and (job.work == STATUS or verb != "delete"):
                self._queue_again(job)
            if job.work != FINALIZER:
                self.consider_finalizer(job.key)
        finally:
            self._hold_driver.holds.orphans.discard(job.key)
        if job.work == STATUS and self.cache.observe(self.policy.downstream, job.key).found is Gap.ABSENT:
            # A vanished copy may have been waiting for its last status to go first (S5.2).
            self._context.dispatchers[self.policy.downstream].add(job._replace(work=CONTENT), Priority.SPEC)

    def _queue_again(self, job: Job[Key]) -> None:
        """A write may be followed by another: a create by its status, a status by a newer one."""
        if job.work in (CONTENT, FINALIZER):  # the copy may be made now (C6.1)
            content = job._replace(work=CONTENT)
            self.outcomes.dispatcher(content).add(content, Priority.SPEC)
        elif job.key in self.cache.pending:
            self.queue_status(job.key, self.outbox.priority(job.key))
        else:
            self.outcomes.dispatcher(job).withdraw(job)  # the echo of the write has queued it, before the answer came

    def plan(self, key: Key) -> Plan:
        """Decide what has to be done for an object now."""
        up, down = self.policy.upstream, self.policy.downstream
        return decide(
            self.cache.observe(up, key),
            self.cache.observe(down, key),
            self.policy,
            self.cache.record(key),
            pending=self.cache.pending.get(key),
            proof=self.outbox.proof(key),
            reachable=self._upstream.up.is_set(),
            behind=self.cache.is_behind(key),
            rejected=self.outcomes.rejected_content(key),
            audit=key in self.to_audit,
            kept=self._hold_driver.holds.keeps(key),
            unknown=self.cache.is_unknown(key),
            lacks_status=self.outcomes.lacks_status,
            contested=self._revert_limit.wait(key, asyncio.get_running_loop().time()) > 0,
            restless=self.outcomes.is_restless(key),
            after=_RELATED_FIRST if self.related_first is not None and self.related_first.delay(key) else None,
        )

    async def _content(self, job: Job[Key]) -> str | None:
        """Bring the copy in line; the verb of the write that was made, None when there was no need."""
        key = job.key
        latest = self.cache.creates.until(key)
        plan = await self._status_taken(key)
        self.to_audit.discard(key)
        if plan.content == Wait(Until.VERIFIED):
            await self._hold_driver.verify(key)
            plan = await self._status_taken(key)
        action = plan.content
        match action:
            case None:
                self._agrees(key, plan.status)
            case Wait(until=until):
                await self._wait(job, until)
            case Hold():
                self._unhold(key, plan.status, DELETION_HOLDS.keys() | {action.reason})
                self._hold(key, action)
            case _:
                return await self._write(job, action, plan.status)
        if latest is not None:
            self.outcomes.dispatcher(job).at(job, latest)
        return None

    def settle(self, job: Job[Key], plan: Plan, *, status_taken: bool) -> bool:
        """Do a content job at once where there is nothing to do; whether it is done. Else it has to be queued."""
        begins = not self.stopped and self.outcomes.dispatcher(job).begins_at_once(job)
        if not begins or plan.content is not None or not (plan.status is None or status_taken):
            return False
        self.to_audit.discard(job.key)
        self._agrees(job.key, plan.status)
        self.outcomes.done(job, None)
        return True

    def _agrees(self, key: Key, status: StatusAction | None) -> None:
        """The content of a pair agrees, or cannot be judged."""
        self.outcomes.rejected.pop(key, None)
        self.cache.tidy(key)
        if self.related_first is not None:
            self.related_first.settled(key)
        self._settled(key)
        self._unhold(key, status)

    async def _write(self, job: Job[Key], action: Write, status: StatusAction | None) -> str | None:
        key = job.key
        self._unhold(key, status, ENDED_BY_WRITES)
        try:
            with self.cache.creates.under_way(key) if isinstance(action, Create) else nullcontext():
                await self.writer.write(key, action)
        except Never:
            self._unhold(key, status)
            raise
        if isinstance(action, Delete) and self.related_first is not None:
            self.related_first.deleted(key)
        if isinstance(action, Update) and action.why in REVERTS:
            self._revert_limit.reverted(key, asyncio.get_running_loop().time())
        side, resource = self.policy.downstream, self.policy.resource
        self._context.recorder.record(fact_of_write(action, side=side, resource=resource, key=key))
        self._unhold(key, status)
        return _VERBS.get(type(action), "status")

    def _still_planned(self, key: Key, write: Write) -> None:
        """Raise Conflict when a write is not to be made any more (`Writer`); it is decided, or held, anew then."""
        if self.stopped or self.plan(key).content != write:
            raise Conflict("the plan has changed meanwhile")

    async def _verify_ahead(self, job: Job[Key]) -> None:
        """Have a deletion verified whose copy cannot be reached now."""
        # A copy whose create was not answered is not known, but may exist.
        there = self.cache.observe(self.policy.downstream, job.key).found is not Gap.ABSENT
        if job.key in self.cache.tombstones and there:
            await self._hold_driver.verify(job.key)
            if (hold := self._hold_driver.holds.held(job.key)) is not None:
                self._hold(job.key, hold)

    async def _wait(self, job: Job[Key], until: Until) -> None:
        """Start whatever the content waits for."""
        match until:
            case Until.UPSTREAM_LISTED:
                self._unlisted(job.key)
            case Until.STATUS_SENT:
                self.queue_status(job.key, Priority.FINAL_STATUS)
            case Until.STATUS_SHOWN:
                raise Conflict("upstream does not show yet the status that it acknowledged")
            case Until.RETRY:
                self.outcomes.dispatcher(job).later(job, self.outcomes.retry_in(job.key))
            case Until.REVERTIBLE:
                wait = self._revert_limit.wait(job.key, asyncio.get_running_loop().time())
                self.outcomes.dispatcher(job).later(job, wait)
                self._hold(job.key, await self.writer.contested(job.key))
            case Until.FINALIZED:
                self.consider_finalizer(job.key)
            case Until.RELATED_GONE:
                seconds = self.related_first.release(job.key) if self.related_first is not None else None
                if seconds is not None:
                    self.outcomes.dispatcher(job).later(job, seconds)
            case Until.VERIFIED:
                raise Conflict("the deletion was verified, and the plan has changed meanwhile")
            case Until.COPIES_LISTED | Until.COUNTED:
                pass  # every key is queued then
            case _:
                assert_never(until)

    # Status

    def take(self, key: Key, action: StatusAction, copy: Json) -> None:
        match action:
            case SendStatus():
                priority = self.outbox.take(key, action, copy)
                if priority is not None:
                    self.outcomes.event_arrived(Job(self.policy.resource, STATUS, key))
                    if self._upstream.up.is_set():  # else `enqueue` does so when the connection is back (S7.2)
                        self.queue_status(key, priority)
                if action.hold is not None:
                    self._hold(key, action.hold)
            case Agreed():
                self.outbox.agree(key, action)
            case CountAsSent():
                self.outbox.count_as_sent(key, action)
            case Hold():
                self._hold(key, action)

    async def _status_taken(self, key: Key) -> Plan:
        """The plan, whose status is taken although its event was handled before: the value is in the store."""
        plan = self.plan(key)
        copy = None
        if isinstance(plan.status, SendStatus) and plan.status.digest:
            copy = await self._context.store.body(self.policy.downstream, self.policy.resource, key)
            view = self.cache.views[self.policy.downstream].get(key)
            if copy is None or view is None or view.status != plan.status.digest:
                return plan
        if plan.status is not None:
            self.take(key, plan.status, copy or {})
        return plan

    async def _status(self, job: Job[Key]) -> str | None:
        if self.outbox.lacks_list(job.key):
            self._unlisted(job.key)
        suspicions = self.outbox.suspicions
        try:
            sent = await self.outbox.send(job.key, self.outcomes.dispatcher(job).failures(job))
        finally:
            if self.outbox.suspicions > suspicions:
                self._context.report_changed()
        if sent:
            fact = Fact(self.policy.upstream, self.policy.resource, job.key, Action.SENT, "S4.1")
            self._context.recorder.record(fact)
        removed = await self.outbox.remove_obsolete_object(job.key)
        if removed:
            self.enqueue(job.key)  # the status may go to upstream's object again
        return "status" if sent or removed else None

    # Finalizers

    def consider_finalizer(self, key: Key) -> None:
        """Have our finalizer put on upstream's object, or removed (C6), and an obsolete RobotObjectStatus (F10.3)."""
        if self._upstream.up.is_set() and self.outbox.has_obsolete_object(key):
            self.queue_status(key, Priority.FINAL_STATUS)
        upstream = self.cache.views[self.policy.upstream].get(key)
        finalized = upstream is not None and upstream.finalized
        if not (self.policy.blocking or finalized or key in self.cache.finalizers):
            return
        job = Job(self.policy.resource, FINALIZER, key)
        wait = self._finalizers.wait(key)
        if wait is not None and self._upstream.up.is_set():  # else `enqueue` does so when the connection is back
            dispatcher = self.outcomes.dispatcher(job)
            if wait:
                dispatcher.later(job, wait)
            else:
                dispatcher.add(job, Priority.CREATION)

    async def _finalizer(self, job: Job[Key]) -> str | None:
        if not await self._finalizers.act(job.key):
            self.consider_finalizer(job.key)  # a grace period may go on
            return None
        return FINALIZER

    # Holds

    def _hold(self, key: Key, hold: Hold) -> None:
        with self._hold_driver.event() as machine:
            new = machine.holds.hold(key, hold, self._context.clock())
        if hold.reason is HoldReason.NAME_TAKEN and self.related_first is not None:
            self.related_first.name_taken(key)
        if new:
            side = self.policy.upstream if hold.reason is HoldReason.ODD_STATUS else self.policy.downstream
            message = f"{hold.reason}: {hold.message}"
            rule = hold_rule(hold.reason, by_policy=self.policy.sync_policy is not None)
            self._context.recorder.record(Fact(side, self.policy.resource, key, Action.HELD, rule, message))
            self._context.report_changed()

    def _unhold(self, key: Key, status: StatusAction | None, kept: Set[HoldReason] = frozenset()) -> None:
        """End the holds of an object but those of its status, and `kept`."""
        waits = status.hold if isinstance(status, SendStatus) else status
        also = {waits.reason} if isinstance(waits, Hold) else set()
        also |= {HoldReason.DUPLICATE} if key in self._duplicates else set()
        self._hold_driver.holds.unhold(key, kept=kept | also)

    def hold_duplicates(self) -> None:
        """Hold the pairs whose originals have another copy, and those only (C2.6)."""
        found = self.cache.duplicates()
        if found == self._duplicates:
            return
        for key in self._duplicates.keys() - found.keys():
            self._context.holds.clear(self.policy.resource, key, reason=HoldReason.DUPLICATE)
        self._duplicates = found
        for key, name in found.items():
            self._hold(key, duplicate(name))
        self._context.report_changed()
