"""One kind in sync: its two reflected sides, its worker, and what happens when one of its objects changes."""

import asyncio
import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace

from crsyncer.core.actions import HoldReason
from crsyncer.core.decide import decide
from crsyncer.core.model import Gap, Json, Key, Loaded, Side
from crsyncer.core.policy import Policy
from crsyncer.core.project import stamp_of, status_value
from crsyncer.core.queue import Priority
from crsyncer.core.watch import EventType
from crsyncer.loop.audit import Auditor
from crsyncer.loop.brake import DeletionBrake
from crsyncer.loop.custody import MANUAL, Custody
from crsyncer.loop.dispatch import Job
from crsyncer.loop.listings import Listings
from crsyncer.loop.mirror import Mirror
from crsyncer.loop.reflector import Reflector, Rewind
from crsyncer.loop.restore import Restore
from crsyncer.loop.sink import Coverage
from crsyncer.loop.vanishing import Vanishing
from crsyncer.loop.worker import CHECK, CONTENT, Surroundings, Worker

log = logging.getLogger(__name__)

_HEARING_SECONDS = 0.25


class Pair:
    """Keeps the objects of one kind in agreement. `run` reflects both sides; the dispatchers call its worker."""

    def __init__(self, policy: Policy, *, namespaces: Sequence[str], around: Surroundings, loaded: Loaded) -> None:
        self.policy = policy
        if any(cursor.selector != policy.projection for cursor in loaded.cursors.values()):
            # Another robot name, subtree or direction: what is stored would be taken for absences, or other statuses.
            around.store.forget_kind(policy.resource, keep_outbox=False)
            loaded = Loaded()
        self.mirror = Mirror(policy, store=around.store, loaded=loaded, clock=around.clock)
        places = namespaces if namespaces and policy.namespaced else [""]
        self.mirror.confine(places)
        self._around = around
        self._up = around.links[policy.upstream]
        self._down = around.links[policy.downstream]
        self._custody = Custody(self.mirror, store=around.store, holds=around.holds, clock=around.clock)
        self._listings = Listings(self.mirror)
        self._vanishing = Vanishing(
            self._up, mirror=self.mirror, custody=self._custody, listings=self._listings, store=around.store
        )
        self._brake = DeletionBrake(
            self._up,
            resource=policy.resource,
            definition=self._vanishing.definition,
            custody=self._custody,
            copies=lambda: len(self.mirror.views[policy.downstream]),
            relisted=lambda: self.relist("verify", policy.upstream),
            present=self._present,
            noticed=around.noticed,
        )
        self.worker = Worker(
            policy,
            mirror=self.mirror,
            around=around,
            brake=self._brake,
            custody=self._custody,
            settled=self._settled,
        )
        self._restore = Restore(
            self.worker, mirror=self.mirror, custody=self._custody, listings=self._listings, holds=around.holds
        )
        self._auditor = Auditor(
            self.worker, mirror=self.mirror, listings=self._listings, interval=around.audit_interval
        )
        self.reflectors = self._listings.reflectors
        self.reflectors += [
            Reflector(
                around.links[side],
                fence=around.fences[side],
                policy=policy,
                namespace=namespace,
                mirror=self.mirror,
                observer=around.observer,
                watch_timeout=around.watch_timeout,
                changed=self._changed,
                overheard=self._overheard,
                covered=self._covered,
                went_back=self._went_back,
                phase_changed=self._phase_changed,
            )
            for side in Side
            for namespace in places
        ]
        for side in Side:
            if any(r.cursor() is None for r in self.on(side)):
                self._restore.mistrust(side)

    @property
    def kind_missing(self) -> bool:
        """Whether upstream has stopped serving the kind, or is about to (S5.5)."""
        return self._brake.kind_missing or self._custody.vanished

    def on(self, side: Side) -> list[Reflector]:
        """The reflectors of one side."""
        return self._listings.on(side)

    async def run(self) -> None:
        """Reflect both sides, forever."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._brake.run())
            tasks.create_task(self._vanishing.definition.run())
            for reflector in self.reflectors:
                tasks.create_task(reflector.listwatch.run())
            tasks.create_task(self._auditor.run())

    def revive(self) -> None:
        """The CRD has changed, or a human asks: what was refused is tried again at once."""
        self.worker.refused.clear()
        for key in self.mirror.known_keys():
            self.worker.look(key)

    def hold_all(self) -> None:
        """A human holds back every deletion."""
        self._custody.engage(MANUAL)
        self._around.noticed()

    def release(self, reason: HoldReason, keys: set[Key]) -> None:
        """A human lets go on what is held for a reason."""
        self._custody.release(reason, keys)
        for key in keys:
            self.worker.look(key)
        self._around.noticed()

    def retry(self, key: Key) -> None:
        """A human asks: what was refused of an object is tried again at once."""
        self.worker.refused.pop(key, None)
        self.worker.outbox.revive(key)
        self.worker.look(key)

    async def relist(self, reason: str, *sides: Side) -> None:
        """Return after a fresh, consistent list of these sides; raises as `ListWatch.fresh_list` does."""
        await self._listings.fresh(reason, *sides)

    def resend(self) -> None:
        """The cloud is spoken to in another way than before: what it has of our statuses is an open question (S4.6)."""
        for key, record in list(self.mirror.records.items()):
            self.mirror.remember(key, replace(record, sent=""))
            self.worker.look(key)

    def verify(self) -> None:
        """Compare every object, upstream's statuses too (S4.8)."""
        self._auditor.verify()

    def vanished(self) -> None:
        """The kind that upstream serves now is not the one that it served before."""
        self._vanishing.begin()

    # What the reflectors report

    def _changed(self, side: Side, key: Key, event_type: EventType, raw: Json | None) -> None:
        job = Job(self.policy.resource, CONTENT, key)
        gone = event_type is EventType.DELETED
        if side is self.policy.downstream:
            plan = self.worker.plan(key)
            if plan.status is not None and raw is not None:
                # In the same transaction as the copy and the cursor: nothing can come between (S6.1).
                self.worker.take(key, plan.status, status_value(raw, self.policy))
        else:
            copy = self.mirror.views[self.policy.downstream].get(key)
            stamp = None if copy is None else copy.stamp
            if raw is not None and stamp is not None and stamp.upstream_uid != raw["metadata"]["uid"]:
                self._vanishing.definition.doubt()  # its successor may have come with the kind's
            self.worker.arrived.setdefault(job, asyncio.get_running_loop().time())
            if key in self.mirror.pending:
                # What was refused before may be taken now (S10).
                self.worker.queue_status(key, self.worker.outbox.priority(key))
        if gone:
            self.mirror.lost(side, key)
            self._custody.forget(key)
            if side is Side.CLOUD:
                self._around.twins.forget(self.policy.resource, key)
        self._around.dispatchers[self.policy.downstream].add(
            job, Priority.DELETION if gone else self.worker.priority(key)
        )
        if gone and side is self.policy.upstream and not self._down.up.is_set():
            # The copy is out of reach: ask now whether it may be deleted, the cloud may be gone when it is back.
            self._around.dispatchers[self.policy.upstream].add(job._replace(half=CHECK), Priority.DELETION)

    def _overheard(self, side: Side, key: Key, raw: Json, live: bool) -> None:
        """Who else writes what is this robot's alone has its identity, too. (Every robot writes an unfiltered kind.)"""
        policy, around = self.policy, self._around
        stamp = stamp_of(raw)
        signed = policy.upstream is Side.ROBOT and stamp is not None and stamp.robot == policy.robot
        if side is not Side.CLOUD or not (signed or (policy.upstream is Side.CLOUD and policy.filtered)):
            return
        known, met = live and key in self.mirror.views[side], around.links[side].met
        if around.twins.saw(policy.resource, key, raw, known=known, met=met, now=around.clock()):
            log.warning("another agent acts as %s: it wrote %s %s", policy.robot, policy.resource, key)
            around.noticed()

    def _covered(self, side: Side, namespace: str) -> None:
        if side is self.policy.downstream:
            self._vanishing.check()
            self._confirm_outbox()
            if self._listings.complete(side):
                self.worker.refused.clear()  # a change of the CRD has it listed anew, and may change what it takes
        else:
            if self._listings.complete(side):
                self._vanishing.definition.doubt()
            if self._up.up.is_set():
                # What has happened meanwhile arrives now, oldest first: hear it out, for deletions go first (S7.2).
                self._around.dispatchers[self.policy.downstream].pause(_HEARING_SECONDS)
        self._vanishing.covered(side)
        self._restore.covered(side)
        everywhere = self._listings.complete(side)
        for key in self.mirror.known_keys() if everywhere else self._affected(side, namespace):
            self.worker.look(key)
        self._restore.end()

    def _affected(self, side: Side, namespace: str) -> Iterator[Key]:
        """What there may be something else to do about, or to say of, since a side is covered otherwise there.

        Where nothing is heard any more, an object that was seen is known as before, and one that was absent is unseen.
        A copy is made again without waiting for its last status to go first (S5.2).
        """
        lost = self.mirror.coverage(side, namespace) is Coverage.NONE
        for key in self.mirror.known_keys():
            as_before = lost and key in self.mirror.views[side] and key not in self.mirror.pending
            if namespace in ("", key.namespace) and not as_before:
                yield key

    def _confirm_outbox(self) -> None:
        """What waited when the agent stopped is sent when every copy has been seen: the store may be an older one."""
        downstream = self.policy.downstream
        if self._listings.complete(downstream):
            self.worker.outbox.confirm()
        elif self.worker.outbox.doubtful and Coverage.NONE not in self._listings.coverages(downstream):
            self._listings.want(downstream, "outbox")

    def _went_back(self, side: Side, how: Rewind) -> None:
        self._restore.begin(side, how)
        if side is self.policy.upstream:
            self._vanishing.definition.forget()  # now that what the side lost is held for another reason

    def _phase_changed(self) -> None:
        self._vanishing.check()
        self._around.noticed()

    def _present(self, key: Key) -> bool:
        view = self.mirror.views[self.policy.upstream].get(key)
        return view is not None and not view.terminating

    def _settled(self, key: Key) -> None:
        """A copy without upstream looks like an orphan, but a resumed watch is no proof: one list, for all of them."""
        self._restore.settled(key)
        down = self.mirror.views[self.policy.downstream].get(key)
        if down is None or self.mirror.sight(self.policy.upstream, key) is not Gap.UNSEEN:
            return
        resumed = self.mirror.coverage(self.policy.upstream, key.namespace) is Coverage.RESUMED
        gone = decide(Gap.ABSENT, down, self.policy, self.mirror.record(key))
        if resumed and gone.content is not None:
            self._listings.want(self.policy.upstream, "orphan")
