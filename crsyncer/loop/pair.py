"""One kind in sync: its two reflected sides, its worker, and what happens when one of its objects changes."""

import asyncio
import logging
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

from crsyncer.core.actions import Delete, HoldReason
from crsyncer.core.decide import decide
from crsyncer.core.model import Gap, Json, Key, Loaded, Side
from crsyncer.core.policy import Policy
from crsyncer.core.project import stamp_of, status_value
from crsyncer.core.queue import Priority
from crsyncer.core.watch import EventType
from crsyncer.errors import SyncError
from crsyncer.loop.brake import DeletionBrake
from crsyncer.loop.custody import KIND_MISSING, MANUAL, RESTORED, Custody
from crsyncer.loop.definition import Definition
from crsyncer.loop.dispatch import Job
from crsyncer.loop.listwatch import Phase
from crsyncer.loop.mirror import Mirror
from crsyncer.loop.reflector import Reflector, Rewind
from crsyncer.loop.sink import Coverage
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
        self._around = around
        self._up = around.links[policy.upstream]
        self._down = around.links[policy.downstream]
        self._custody = Custody(self.mirror, store=around.store, holds=around.holds, clock=around.clock)
        self._definition = Definition(self._up, policy=policy, store=around.store, replaced=self._replaced)
        self._brake = DeletionBrake(
            self._up,
            resource=policy.resource,
            definition=self._definition,
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
        self._rewound: set[Side] = set()
        """Sides that were found older, or other, than they were, and have not been listed since (S8.3)."""
        self._restore_open = False
        """Whether the end of a restore waits for copies that are being made."""
        self._lists: dict[Side, asyncio.Task[None]] = {}
        self.reflectors = [
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
            for namespace in (namespaces if namespaces and policy.namespaced else [""])
        ]
        for side in Side:
            if any(r.cursor() is None for r in self.on(side)):
                # A restore may have cost the cursor, and a crash the list after it: whatever comes is newer (S8.3).
                self.mirror.distrust(side)
                self._rewound.add(side)

    @property
    def kind_missing(self) -> bool:
        """Whether upstream has stopped serving the kind, or is about to (S5.5)."""
        return self._brake.kind_missing or self._custody.vanished

    def on(self, side: Side) -> list[Reflector]:
        """The reflectors of one side."""
        return [r for r in self.reflectors if r.side is side]

    async def run(self) -> None:
        """Reflect both sides, forever."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._brake.run())
            tasks.create_task(self._definition.run())
            for reflector in self.reflectors:
                tasks.create_task(reflector.listwatch.run())
            tasks.create_task(self._keep_audited())

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
        await asyncio.gather(*(r.listwatch.fresh_list(reason) for r in self.reflectors if r.side in sides))

    def resend(self) -> None:
        """The cloud is spoken to in another way than before: what it has of our statuses is an open question (S4.6)."""
        for key, record in list(self.mirror.records.items()):
            self.mirror.remember(key, replace(record, sent=""))
            self.worker.look(key)

    def verify(self, priority: Priority | None = None) -> None:
        """Compare every object, upstream's statuses too (S4.8)."""
        self.worker.unverified |= set(self.mirror.views[self.policy.downstream])
        for key in self.mirror.known_keys():
            self.worker.look(key, priority)

    async def audit(self) -> None:
        """Compare what is known with what both sides have, and then the sides, after everything else there is to do.

        Live changes do not notice: a digest is taken beside the watch, and a list only where that shows something
        else. Raises SyncError when a side did not answer.
        """
        for reflector in self.reflectors:
            if reflector.listwatch.phase is Phase.WATCHING and not await reflector.agrees():
                log.warning("%s %s is not what the watch has shown", reflector.side, self.policy.resource)
                await reflector.listwatch.fresh_list("audit")
        self.verify(Priority.AUDIT)

    async def _keep_audited(self) -> None:
        """Audit at times that differ from kind to kind and robot to robot, forever."""
        while True:
            await asyncio.sleep(self._around.audit_interval * random.uniform(0.5, 1.5))  # noqa: S311
            try:
                await self.audit()
            except SyncError as error:
                log.info("%s: not audited this time: %s", self.policy.resource, error)

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
            if (
                raw is not None
                and copy is not None
                and copy.stamp
                and copy.stamp.upstream_uid != raw["metadata"]["uid"]
            ):
                self._definition.doubt()  # its successor may have come with the kind's
            self.worker.arrived.setdefault(job, asyncio.get_running_loop().time())
            if key in self.mirror.pending:
                self.worker.queue_status(
                    key, self.worker.outbox.priority(key)
                )  # what was refused before may be taken now (S10)
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

    def _covered(self, side: Side) -> None:
        coverages = {self.mirror.coverage(side, r.namespace) for r in self.on(side)}
        complete = coverages == {Coverage.COMPLETE}
        if side is self.policy.downstream:
            self._hold_if_vanished()
            self._confirm_outbox(coverages)
            if complete:
                self.worker.refused.clear()  # a change of the CRD has it listed anew, and may change what it takes
        elif self._custody.vanished:
            if complete:
                self._reappear()
            elif Coverage.NONE not in coverages:
                # It may be another kind of the same name: its refusal of the cursor follows inside a 200 (measured).
                self._list(self.policy.upstream, "vanished")
        if side is self.policy.upstream and complete:
            self._definition.doubt()
        if side is self.policy.upstream and self._up.up.is_set():
            # What has happened meanwhile arrives now, oldest first: hear it out, for deletions go first (S7.2).
            self._around.dispatchers[self.policy.downstream].pause(_HEARING_SECONDS)
        if side in self._rewound:
            self.worker.unverified |= set(self.mirror.views[self.policy.downstream])
            if complete:
                self._rewound.discard(side)
        for key in self.mirror.known_keys():
            self.worker.look(key)
        self._end_restore()

    def _confirm_outbox(self, coverages: set[Coverage]) -> None:
        """What waited when the agent stopped is sent when every copy has been seen: the store may be an older one."""
        if coverages == {Coverage.COMPLETE}:
            self.worker.outbox.confirm()
        elif self.worker.outbox.doubtful and Coverage.NONE not in coverages:
            self._list(self.policy.downstream, "outbox")

    def _went_back(self, side: Side, how: Rewind) -> None:
        """What a side shows from now on may be older than what we know, or of another cluster (S5.5c, S8.3).

        Held is what a restored upstream would delete. A downstream that went back is only brought in line again, and
        an ordinary boot is no restore.
        """
        self._rewound.add(side)
        if side is self.policy.upstream:
            self._definition.forget()
        if how is Rewind.REBUILT or (how is Rewind.RESTORED and side is self.policy.upstream):
            self._custody.engage(RESTORED)

    def _end_restore(self, settled: Key | None = None) -> None:
        """After a restore deletions are held only as long as there are any, those of `settled` aside (S8.3).

        What the restored side lost is exactly what a complete list of it does not show. When that takes no copy,
        whatever vanishes later is deleted later, by somebody who means the cluster as it is now. A hold that went on
        unseen would catch that one.
        """
        group = self._around.holds.group(self.policy.resource, HoldReason.RESTORED)
        if not self._custody.stands(HoldReason.RESTORED) or (group is not None and group.keys - {settled}):
            return
        coverages = {
            side: {self.mirror.coverage(side, r.namespace) for r in self.on(side)}
            for side in (self.policy.upstream, self.policy.downstream)
        }
        if Coverage.NONE in coverages[self.policy.upstream] | coverages[self.policy.downstream]:
            return
        self._restore_open = bool(self.worker.creating)  # what is being made may turn out to be what was lost
        if self._restore_open:
            return
        if coverages[self.policy.upstream] != {Coverage.COMPLETE}:
            self._list(self.policy.upstream, "restored")
        elif not any(
            isinstance(self.worker.plan(k).content, Delete) for k in self.mirror.views[self.policy.downstream]
        ):
            log.info("%s: the restored %s costs no copy: nothing is held", self.policy.resource, self.policy.upstream)
            self._custody.release(HoldReason.RESTORED, set())

    def _phase_changed(self) -> None:
        self._hold_if_vanished()
        self._around.noticed()

    def vanished(self) -> None:
        """The kind that upstream serves now is not the one that it served before."""
        self._custody.vanish(())
        for reflector in self.on(self.policy.upstream):
            reflector.disown()

    def _replaced(self) -> None:
        """Nobody may have meant what the kind lacks since it was made anew, and only a list from now on shows that."""
        self.vanished()
        running = self._lists.pop(self.policy.upstream, None)
        if running is not None:
            running.cancel()
        self._list(self.policy.upstream, "vanished")
        self._around.noticed()

    def _present(self, key: Key) -> bool:
        view = self.mirror.views[self.policy.upstream].get(key)
        return view is not None and not view.terminating

    def _hold_if_vanished(self) -> None:
        if any(r.listwatch.phase is Phase.MISSING for r in self.on(self.policy.upstream)):
            if not self._custody.vanished:
                log.warning(
                    "%s: the %s does not serve the kind: nothing is deleted", self.policy.resource, self._up.side
                )
                self._definition.forget()  # whichever comes back, what it lacks is held
            self._custody.vanish(self._at_stake())

    def _reappear(self) -> None:
        """What the kind came back without stays held: it went with the kind, and nobody may have meant it."""
        absent = [key for key in self._at_stake() if self.mirror.sight(self.policy.upstream, key) is Gap.ABSENT]
        free = (None, KIND_MISSING)
        lacking = {key for key in absent if self._custody.held(key) in free and not self._custody.passed(key)}
        self._custody.reappear(lacking)
        log.info(
            "%s: the %s serves the kind again; %d copies stay held", self.policy.resource, self._up.side, len(lacking)
        )

    def _at_stake(self) -> Iterator[Key]:
        """The copies that would be deleted without upstream; an orphan that never was a copy is none of them."""
        for key, view in self.mirror.views[self.policy.downstream].items():
            gone = decide(Gap.ABSENT, view, self.policy, self.mirror.record(key))
            if view.stamp is not None and gone.content is not None:
                yield key

    def _settled(self, key: Key) -> None:
        """A copy without upstream looks like an orphan, but a resumed watch is no proof: one list, for all of them."""
        if self._restore_open or self._around.holds.held(self.policy.resource, key, HoldReason.RESTORED):
            self._end_restore(settled=key)
        down = self.mirror.views[self.policy.downstream].get(key)
        if down is None or self.mirror.sight(self.policy.upstream, key) is not Gap.UNSEEN:
            return
        resumed = self.mirror.coverage(self.policy.upstream, key.namespace) is Coverage.RESUMED
        gone = decide(Gap.ABSENT, down, self.policy, self.mirror.record(key))
        if resumed and gone.content is not None:
            self._list(self.policy.upstream, "orphan")

    def _list(self, side: Side, reason: str) -> None:
        """A resumed watch does not tell what is absent, or when it is up to date: have a list tell, one at a time."""
        if side not in self._lists or self._lists[side].done():
            self._lists[side] = asyncio.ensure_future(self._try_list(side, reason))

    async def _try_list(self, side: Side, reason: str) -> None:
        try:
            await self.relist(reason, side)
        except SyncError as error:
            log.info("%s: the %s cannot be listed yet (%s): %s", self.policy.resource, side, reason, error)
