"""One kind in sync: its two observed sides, its reconciler, and what happens when one of its objects changes."""

import asyncio
import logging
from collections.abc import Coroutine, Iterator
from dataclasses import replace
from typing import Any

from crsyncer.core.content.object_content import stamp_of
from crsyncer.core.holds.agent_list_reason import AgentListReason
from crsyncer.core.holds.hold_list import DELETION_HOLDS, MANUAL, RESTORED
from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.model import Freshness, Json, Key, Loaded, Side
from crsyncer.core.pair.actions import HoldReason
from crsyncer.core.pair.decide import may_delete
from crsyncer.core.reports.facts import HOLD_RULES, Action, Fact
from crsyncer.core.reports.text import count
from crsyncer.core.requests.calls import Call, discovery
from crsyncer.core.watching.queue import Priority
from crsyncer.core.watching.watch import EventType, ListReason
from crsyncer.engine.caching.cache import Cache
from crsyncer.engine.caching.confinement import confine, is_remapped
from crsyncer.engine.caching.informer import Informer
from crsyncer.engine.caching.informer_set import InformerSet
from crsyncer.engine.context import EngineContext
from crsyncer.engine.kinds.left_behind import LeftBehind
from crsyncer.engine.pairs.audit import Auditor
from crsyncer.engine.pairs.hold_driver import HoldDriver
from crsyncer.engine.pairs.outcomes import CONTENT, VERIFY
from crsyncer.engine.pairs.reconciler import Reconciler
from crsyncer.ports import Reply
from crsyncer.runtime.collection_state import Rewind
from crsyncer.runtime.dispatcher import Job
from crsyncer.runtime.waits import CATCH_UP_SECONDS

log = logging.getLogger(__name__)

_HELD = tuple(DELETION_HOLDS.values())


class Kind:
    """Keeps the objects of one kind in agreement. `run` owns every task of the kind; the dispatchers call `start`."""

    def __init__(self, policy: KindPolicy, *, context: EngineContext, loaded: Loaded) -> None:
        self.policy = policy
        remapped = is_remapped(policy, loaded, context.store)
        self.cache = Cache(policy, store=context.store, loaded=loaded, clock=context.clock)
        confine(self.cache, now=context.clock())
        self._context = context
        endpoint = policy.endpoint(policy.upstream)
        self._discovery = discovery(endpoint.group, endpoint.version)
        self._upstream = context.connections[policy.upstream]
        self._downstream = context.connections[policy.downstream]
        self._tasks = asyncio.TaskGroup()
        self.informer_set = InformerSet(self.cache, spawn=self.spawn)
        self.hold_driver = HoldDriver(
            cache=self.cache,
            context=context,
            informer_set=self.informer_set,
            kind_is_back=self._reconcile_all,
            kind_is_held=self._hold_related,
        )
        self.reconciler = Reconciler(
            policy,
            cache=self.cache,
            context=context,
            hold_driver=self.hold_driver,
            settled=self._end_restore,
            unlisted=self._unlisted,
        )
        self.left_behind = LeftBehind(
            self.reconciler,
            context=context,
            informer_set=self.informer_set,
            hold_driver=self.hold_driver,
            counted=self._reconcile_all,
            spawn=self.spawn,
        )
        self._rewound_sides: set[Side] = set()
        """Sides that were restored or rebuilt, or have booted, and have not been listed since."""
        self.auditor = Auditor(self.reconciler, informer_set=self.informer_set, interval=context.audit_interval)
        self.informers = self.informer_set.informers
        self.informers += [
            Informer(
                context.connections[side],
                side=side,
                policy=policy,
                namespace=namespace,
                cache=self.cache,
                observer=context.observer,
                recorder=context.recorder,
                watch_timeout=context.watch_timeout,
                changed=self._changed,
                observed=self._observed,
                freshness_changed=self._freshness_changed,
                rewound=self._rewound,
                phase_changed=self._phase_changed,
                unpaired=self.reconciler.hold_duplicates,
            )
            for side in Side
            for namespace in policy.places_on(side)
        ]
        self.left_behind.expect_unknown()
        for side in Side:
            if any(each.state.cursor() is None for each in self.on(side)):
                # The cursor may have been dropped for a restore, before a crash: any version that comes is newer.
                self.cache.distrust(side)
                self._rewound_sides.add(side)
        if remapped:
            with self.hold_driver.event() as machine:
                machine.holds.hold_every(RESTORED, context.clock())
            self._report_fact(Action.HELD, HoldReason.RESTORED, "the namespace map has changed")

    @property
    def kind_missing(self) -> bool:
        """Whether upstream has stopped serving the kind, or is about to (S5.5)."""
        return self.hold_driver.holds.kind_missing

    @property
    def is_held(self) -> bool:
        """Whether every deletion of the kind is held."""
        return self.hold_driver.holds.held_every() is not None

    def on(self, side: Side) -> list[Informer]:
        """The informers of one side."""
        return self.informer_set.on(side)

    async def run(self) -> None:
        """Keep the kind in agreement, forever. Its jobs, lists and questions end with this task."""
        async with self._tasks:
            self.spawn(self.hold_driver.run())
            for informer in self.informers:
                self.spawn(informer.listwatch.run())
            self.spawn(self.auditor.run())
            if self.cache.wanted is not None:
                self.spawn(self.cache.wanted.fetch())

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start a task that ends with the kind. It handles its own errors: one that it raises ends the engine."""
        return self._tasks.create_task(work)

    def start(self, job: Job[Key]) -> asyncio.Task[None]:
        """Begin work on one object; the task ends with the kind."""
        return self.spawn(self.reconciler.reconcile(job))

    async def revive_after(self, seconds: float) -> None:
        """Do `revive` in so many seconds."""
        await asyncio.sleep(seconds)
        self.revive()

    def revive(self) -> None:
        """The CRD has changed, or an operator asks: try what was rejected again at once."""
        self.reconciler.outcomes.revive()
        self._reconcile_all()

    def hold_all(self) -> None:
        """An operator holds every deletion."""
        with self.hold_driver.event() as machine:
            machine.holds.hold_every(MANUAL, self._context.clock())
        self._report_fact(Action.HELD, HoldReason.MANUAL, MANUAL.message)
        self._context.report_changed()

    def release(self, reason: HoldReason, keys: set[Key]) -> None:
        """An operator releases what is held for a reason."""
        self.hold_driver.release(reason, keys)
        self._report_fact(Action.RELEASED, reason, f"an operator released {count(len(keys), 'object')}")
        for key in keys:
            self.reconciler.enqueue(key)
        self.left_behind.wake()
        self._context.report_changed()

    def retry(self, key: Key) -> None:
        """An operator asks: try what was rejected of an object again at once."""
        side = self.policy.downstream if key in self.reconciler.outcomes.rejected else self.policy.upstream
        self._context.recorder.record(Fact(side, self.policy.resource, key, Action.RETRIED, "S10"))
        self.reconciler.outcomes.revive(key)
        self.reconciler.outbox.revive(key)
        self.reconciler.enqueue(key)

    def resend(self) -> None:
        """The version, or where the cloud takes a status, has changed: send every status again (S4.6)."""
        for key, record in list(self.cache.records.items()):
            self.cache.remember(key, replace(record, acknowledged=""))
            self.reconciler.enqueue(key)

    def cloud_answers(self, call: Call, reply: Reply) -> None:
        """A negotiation has asked the cloud this: discovery also shows whether the kind is being deleted (S5.5a)."""
        if self.policy.upstream is Side.CLOUD and call == self._discovery:
            with self.hold_driver.event() as machine:
                machine.discovery_shown(reply.body)

    def negotiated(self, policy: KindPolicy) -> None:
        """A negotiation has agreed on the same version again, as a guess perhaps."""
        self.hold_driver.negotiated(policy)

    def pending_ages(self, now: float) -> dict[str, float]:
        """For how many seconds the oldest spec, status, deletion, finalizer and list has waited; 0: none waits.

        `now` is event loop time, in seconds. What is held or rejected for good waits for an operator, and is not
        counted.
        """
        resource, unix = self.policy.resource, self._context.clock()
        held: set[Key] = set().union(*(group.keys for group in self._context.holds.groups(resource)))
        copies = self.cache.views[self.policy.downstream]
        spec = self._context.dispatchers[self.policy.downstream].oldest(
            resource, but=held | self.reconciler.outcomes.rejected.keys()
        )
        going = {
            key: tombstone.since
            for key, tombstone in self.cache.tombstones.items()
            if key in copies and may_delete(copies[key], self.policy)
        }
        unverified = (key for key in self.hold_driver.holds.unverified() if key in going and key not in held)
        deletions = (going[key] for key in unverified if not copies[key].terminating)
        here = (copy for copy in copies.values() if not copy.unselected)  # of others `left_behind` tells
        finalizing = (copy.deleted_at for copy in here if copy.deleted_at and may_delete(copy, self.policy))
        servers = unix + (self._downstream.cluster.clock_offset or 0.0)  # it is the server that dates deletions
        unreturned = self.reconciler.outbox.unreturned()
        statuses = (row.since for key, row in self.cache.pending.items() if not row.dead and key not in unreturned)
        lists = (since for each in self.informers if (since := each.listwatch.unwatched) is not None)
        return {
            "spec": 0.0 if spec is None else now - spec,
            "status": unix - min(statuses, default=unix),
            "deletion": unix - min(deletions, default=unix),
            "finalizers": servers - min(finalizing, default=servers),
            "list": now - min(lists, default=now),
        }

    # What the informers report

    def _changed(self, side: Side, key: Key, event_type: EventType, raw: Json | None) -> None:
        job = Job(self.policy.resource, CONTENT, key)
        gone = event_type is EventType.DELETED
        copy = self.cache.views[self.policy.downstream].get(key)
        plan = None if copy is None else self.reconciler.plan(key)
        if side is self.policy.downstream:
            if plan is not None and plan.status is not None and raw is not None:
                # In the same transaction as the copy and the cursor: nothing can come between (S6.1).
                self.reconciler.take(key, plan.status, raw)
        else:
            self.reconciler.outcomes.unfinalized.pop(key, None)
            stamp = None if copy is None else copy.stamp
            if raw is not None and stamp is not None and stamp.upstream_uid != raw["metadata"]["uid"]:
                with self.hold_driver.event() as machine:
                    machine.recheck_crd()  # the object's successor may have come with the kind's
            self.reconciler.outcomes.event_arrived(job)
            if key in self.cache.pending:
                # What was rejected before may be accepted now (S10).
                self.reconciler.queue_status(key, self.reconciler.outbox.priority(key))
        if gone:
            self.cache.lost(side, key)
            if side is self.policy.downstream:
                self._decide_waiting()
            self.hold_driver.holds.gone(key)
            if side is Side.CLOUD:
                self._context.other_agents.forget(self.policy.resource, key)
        if gone or plan is None or not self.reconciler.settle(job, plan, status_taken=side is self.policy.downstream):
            priority = Priority.DELETION if gone else self.reconciler.priority(key)
            self._context.dispatchers[self.policy.downstream].add(job, priority)
        self.reconciler.consider_finalizer(key)
        if gone and side is self.policy.upstream and not self._downstream.up.is_set():
            # Downstream is offline: verify the deletion now, upstream may be offline when downstream is back.
            self._context.dispatchers[self.policy.upstream].add(job._replace(work=VERIFY), Priority.DELETION)

    def _observed(self, side: Side, key: Key, raw: Json, live: bool) -> None:
        """Notice an agent with the same identity: it writes objects that only this robot writes.

        Unfiltered kinds are not judged, because every robot writes their status.
        """
        policy, context = self.policy, self._context
        if side is not Side.CLOUD:
            return
        if policy.upstream is Side.CLOUD:
            ours, known = policy.filtered, key in self.cache.views[side]
        else:
            # Only an agent of this name signs a copy with it, a new copy included.
            ours = known = (stamp := stamp_of(raw)) is not None and stamp.robot == policy.robot
        if not ours:
            return
        known, since = live and known, context.connections[side].first_connected_at
        if context.other_agents.saw(policy.resource, key, raw, known=known, since=since, now=context.clock()):
            log.warning("another agent acts as %s: it wrote %s %s", policy.robot, policy.resource, key)
            context.report_changed()

    def _freshness_changed(self, side: Side, namespace: str) -> None:
        self.hold_driver.freshness_changed(side)
        if side is self.policy.upstream:
            self._decide_waiting()
        if side is self.policy.downstream:
            self._check_copies()
            if self.informer_set.is_complete(side):
                # A change of the CRD causes a list, and may change what the server accepts.
                self.reconciler.outcomes.server_has_changed()
        if self._context.connections[side].up.is_set():
            # The events of the outage arrive now, oldest first. Wait for them: deletions go first (S7.2), and a status
            # that was sent before a crash must not follow the newer one that was sent after it (S4.1).
            self._context.dispatchers[side.other].pause(CATCH_UP_SECONDS)
        everywhere = self.informer_set.is_complete(side)
        if side in self._rewound_sides:
            # The side may have lost changes: compare every copy.
            self.reconciler.to_audit |= set(self.cache.views[self.policy.downstream])
            self._rewound_sides -= {side} if everywhere else set()
        for key in self.cache.known_keys() if everywhere else self._affected(side, namespace):
            self.reconciler.enqueue(key)
        if all(map(self.informer_set.is_complete, Side)):  # nobody works on a key any more that was selected before
            known = self.cache.known_keys() | self.hold_driver.holds.elsewhere
            self._context.holds.keep_only(self.policy.resource, known)
        self.left_behind.wake()
        self._end_restore()

    def _decide_waiting(self) -> None:
        """More may be known of objects that belonged to no pair: whose copy they are (C2.2)."""
        for informer in self.on(self.policy.downstream)[:1]:
            informer.decide_waiting()

    def _affected(self, side: Side, namespace: str) -> Iterator[Key]:
        """The keys whose plan may change when the freshness of a side's namespace changes.

        A lost connection changes no plan of an object that is cached on that side and has no outbox row. It may change
        that of a missing copy, which is then created without waiting until its last status has gone up (S5.2).
        """
        lost = self.cache.freshness(side, namespace) is Freshness.STORED
        for key in self.cache.known_keys():
            as_before = lost and key in self.cache.views[side] and key not in self.cache.pending
            if namespace in ("", key.namespace) and not as_before:
                yield key

    def _check_copies(self) -> None:
        """List the copies if a resumed watch is not enough: statuses from the store wait, or a create has no answer."""
        downstream, outbox = self.policy.downstream, self.reconciler.outbox
        reason = AgentListReason.OUTBOX if outbox.has_unchecked else AgentListReason.UNANSWERED
        is_list_needed = self.cache.creates.unlisted or outbox.has_unchecked
        if self.informer_set.is_complete(downstream):
            outbox.copies_listed()
        elif is_list_needed and Freshness.STORED not in self.informer_set.freshnesses(downstream):
            self.informer_set.request_list(downstream, reason)

    def _rewound(self, side: Side, how: Rewind) -> None:
        """A side was restored or rebuilt, or has booted, which is no restore (S8.3, S5.5c).

        Deletions that a restored upstream would cause are held. A restored downstream is only reconciled; it may have
        copies again that an edit has left behind, as one has that lost its last writes.
        """
        self._rewound_sides.add(side)
        upstream, restored = side is self.policy.upstream, how is not Rewind.REBOOTED
        if not upstream:
            self.left_behind.count_again() if restored else self.left_behind.look_again()
        with self.hold_driver.event() as machine:
            if how is Rewind.REBUILT or (restored and upstream):
                machine.holds.hold_every(RESTORED, self._context.clock())
                self._report_fact(Action.HELD, HoldReason.RESTORED, RESTORED.message)
            if upstream:
                self.reconciler.outbox.distrust(restored=restored)
            if upstream and restored:
                machine.forget_crd()  # the hold of the restore covers deletions that another CRD would cause

    def _end_restore(self, settled: Key | None = None) -> None:
        """End the hold of a restore once it blocks no deletion, that of `settled` aside.

        A complete list shows which objects the restore lost. If no copy would be deleted for that, the hold ends:
        whatever is deleted later is deleted on purpose.
        """
        creating = any(self.cache.creates)
        if not self.hold_driver.machine.restore_is_over(settled=settled, creating=creating):
            return
        unlisted = [side for side in Side if not self.informer_set.is_complete(side)]
        for side in unlisted:  # a crash may have lost the record of a copy that the restore would delete
            self.informer_set.request_list(side, ListReason.RESTORED)
        copies = self.cache.views[self.policy.downstream]
        if not unlisted and not any(self.reconciler.plan(key).content in _HELD for key in copies):
            self._report_fact(
                Action.RELEASED, HoldReason.RESTORED, f"the {self.policy.upstream}'s restore deletes no copy"
            )
            self.hold_driver.release(HoldReason.RESTORED, ())

    def _report_fact(self, action: Action, reason: HoldReason, message: str) -> None:
        """Report what becomes of the kind's deletions."""
        policy, text = self.policy, f"{reason}: {message}"
        self._context.recorder.record(Fact(policy.downstream, policy.resource, None, action, HOLD_RULES[reason], text))

    def _reconcile_all(self) -> None:
        for key in self.cache.known_keys():
            self.reconciler.enqueue(key)
        self._context.report_changed()

    def _hold_related(self) -> None:
        if self.reconciler.related_first is not None:
            self.reconciler.related_first.hold()

    def _phase_changed(self) -> None:
        self.hold_driver.phase_changed()
        self._context.report_changed()

    def _unlisted(self, key: Key) -> None:
        """The copy's object may be gone or newer, and a resumed watch does not tell: list once for all such copies."""
        self._end_restore(settled=key)
        if self.cache.freshness(self.policy.upstream, key.namespace) is Freshness.RESUMED:
            self.informer_set.request_list(self.policy.upstream, AgentListReason.ORPHAN)
