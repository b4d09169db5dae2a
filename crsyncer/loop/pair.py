"""One kind in sync: its reflectors, its mirror, and what happens when one of its objects changes."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from crsyncer.core.actions import Agreed, Create, Delete, Hold, HoldReason, Plan, SendStatus, StatusAction, Update, Why
from crsyncer.core.decide import decide
from crsyncer.core.guard import DriftBrake, Holds
from crsyncer.core.model import Gap, Json, Key, Loaded, Side
from crsyncer.core.policy import Policy
from crsyncer.core.project import status_value
from crsyncer.core.queue import Priority
from crsyncer.core.watch import EventType
from crsyncer.errors import Never, NotAllowed, Refused, SyncError, Throttled
from crsyncer.loop.brake import DeletionBrake
from crsyncer.loop.custody import MANUAL, RESTORED, Custody
from crsyncer.loop.dispatch import Dispatcher, Job
from crsyncer.loop.execute import Executor
from crsyncer.loop.listwatch import Coverage
from crsyncer.loop.mirror import Mirror
from crsyncer.loop.outbox import Outbox
from crsyncer.loop.reflector import Reflector
from crsyncer.loop.side import SideLink
from crsyncer.ports import Observer, Store

log = logging.getLogger(__name__)

CONTENT, STATUS, CHECK = "content", "status", "check"
_DEAD_RETRY_SECONDS = 3600.0
_HEARING_SECONDS = 0.25
_TAKEN_RETRY_SECONDS = 15.0
_VERBS = {Create: "create", Update: "update", Delete: "delete"}


@dataclass(frozen=True, slots=True)
class Refusal:
    """What downstream said to which upstream content; tried again at `until` (event loop time, seconds)."""

    content: str
    message: str
    until: float


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What all kinds share. `clock` is Unix time in seconds, `watch_timeout` a watch's length in seconds."""

    links: dict[Side, SideLink]
    dispatchers: dict[Side, Dispatcher]
    store: Store
    observer: Observer
    holds: Holds
    clock: Callable[[], float]
    watch_timeout: int
    noticed: Callable[[], None]


class Pair:
    """Keeps the objects of one kind in agreement. `run` reflects both sides; the dispatchers call `work`."""

    def __init__(self, policy: Policy, *, namespaces: Sequence[str], around: Surroundings, loaded: Loaded) -> None:
        self.policy = policy
        if any(cursor.selector != policy.projection for cursor in loaded.cursors.values()):
            # Another robot name, subtree or direction: what is stored would be taken for absences, or other statuses.
            around.store.forget_kind(policy.resource, keep_outbox=False)
            loaded = Loaded()
        self.mirror = Mirror(policy, store=around.store, loaded=loaded, clock=around.clock)
        self.refused: dict[Key, Refusal] = {}
        """Copies that downstream refuses for good (S3.6)."""
        self.denied: dict[str, str] = {}
        """Writes that the credential may not make, by half."""
        self._around = around
        self._up = around.links[policy.upstream]
        self._down = around.links[policy.downstream]
        self.outbox = Outbox(self._up, policy=policy, mirror=self.mirror, store=around.store, clock=around.clock)
        self._executor = Executor(self._down, policy=policy, mirror=self.mirror, store=around.store)
        self._drift = DriftBrake()
        self._custody = Custody(self.mirror, store=around.store, holds=around.holds, clock=around.clock)
        self._brake = DeletionBrake(
            self._up,
            policy=policy,
            copies=lambda: len(self.mirror.views[policy.downstream]),
            relisted=lambda: self.relist("verify", policy.upstream),
            present=lambda key: key in self.mirror.views[policy.upstream],
        )
        self._halves = {CONTENT: self._content, STATUS: self._status, CHECK: self._check_ahead}
        self._arrived: dict[Job, float] = {}
        self.unverified: set[Key] = set()
        """Copies that are to be compared with upstream whatever is remembered of them (S4.8)."""
        self._rewound: set[Side] = set()
        """Sides that were found older, or other, than they were, and have not been listed since (S8.3)."""
        self._orphan_list: asyncio.Task[None] | None = None
        self.reflectors = [
            Reflector(
                around.links[side],
                policy=policy,
                namespace=namespace,
                mirror=self.mirror,
                observer=around.observer,
                watch_timeout=around.watch_timeout,
                changed=self._changed,
                covered=self._covered,
                went_back=self._went_back,
                phase_changed=around.noticed,
            )
            for side in Side
            for namespace in (namespaces if namespaces and policy.namespaced else [""])
        ]

    @property
    def kind_missing(self) -> bool:
        """Whether upstream has stopped serving the kind, or is about to (S5.5)."""
        return self._brake.kind_missing

    def on(self, side: Side) -> list[Reflector]:
        """The reflectors of one side."""
        return [r for r in self.reflectors if r.side is side]

    async def run(self) -> None:
        """Reflect both sides, forever."""
        async with asyncio.TaskGroup() as tasks:
            for reflector in self.reflectors:
                tasks.create_task(reflector.listwatch.run())

    def revive(self) -> None:
        """The CRD has changed, or a human asks: what was refused is tried again at once."""
        self.refused.clear()
        for key in self.mirror.known_keys():
            self.look(key)

    def hold_all(self) -> None:
        """A human holds back every deletion."""
        self._custody.engage(MANUAL)
        self._around.noticed()

    def release(self, reason: HoldReason, keys: set[Key]) -> None:
        """A human lets go on what is held for a reason."""
        self._custody.release(reason, keys)
        for key in keys:
            self.look(key)
        self._around.noticed()

    def retry(self, key: Key) -> None:
        """A human asks: what was refused of an object is tried again at once."""
        self.refused.pop(key, None)
        self.outbox.revive(key)
        self.look(key)

    async def relist(self, reason: str, *sides: Side) -> None:
        """Return after a fresh, consistent list of these sides; raises as `ListWatch.fresh_list` does."""
        await asyncio.gather(*(r.listwatch.fresh_list(reason) for r in self.reflectors if r.side in sides))

    def verify(self) -> None:
        """Compare every object, upstream's statuses too (S4.8)."""
        self.unverified |= set(self.mirror.views[self.policy.downstream])
        for key in self.mirror.known_keys():
            self.look(key)

    # What the reflectors report

    def _changed(self, side: Side, key: Key, event_type: EventType, raw: Json | None) -> None:
        job = Job(self.policy.resource, CONTENT, key)
        gone = event_type is EventType.DELETED
        if side is self.policy.downstream:
            plan = self.plan(key)
            if plan.status is not None and raw is not None:
                # In the same transaction as the copy and the cursor: nothing can come between (S6.1).
                self._take(key, plan.status, status_value(raw, self.policy))
        else:
            self._arrived.setdefault(job, asyncio.get_running_loop().time())
            if key in self.mirror.pending:
                self._queue_status(key, self.outbox.priority(key))  # what was refused before may be taken now (S10)
        if gone:
            self.mirror.lost(side, key)
            self._custody.forget(key)
        self._around.dispatchers[self.policy.downstream].add(job, Priority.DELETION if gone else self._priority(key))
        if gone and side is self.policy.upstream and not self._down.up.is_set():
            # The copy is out of reach: ask now whether it may be deleted, the cloud may be gone when it is back.
            self._around.dispatchers[self.policy.upstream].add(job._replace(half=CHECK), Priority.DELETION)

    def _covered(self, side: Side) -> None:
        if self.mirror.coverage(side, "") is Coverage.COMPLETE and side is self.policy.upstream:
            self._brake.kind_missing = False
        if side is self.policy.upstream and self._up.up.is_set():
            # What has happened meanwhile arrives now, oldest first: hear it out, for deletions go first (S7.2).
            self._around.dispatchers[self.policy.downstream].pause(_HEARING_SECONDS)
        if side in self._rewound:
            self.unverified |= set(self.mirror.views[self.policy.downstream])
            if self.mirror.coverage(side, "") is Coverage.COMPLETE:
                self._rewound.discard(side)
        for key in self.mirror.known_keys():
            self.look(key)

    def _went_back(self, side: Side, rebuilt: bool) -> None:
        """What a side shows from now on is older than what we know, or of another cluster (S5.5c, S8.3)."""
        self._rewound.add(side)
        if rebuilt or side is self.policy.upstream:
            self._custody.engage(RESTORED)

    def look(self, key: Key) -> None:
        """Have both halves of a pair looked at."""
        job = Job(self.policy.resource, CONTENT, key)
        self._around.dispatchers[self.policy.downstream].add(job, self._priority(key))
        if key in self.mirror.pending:
            self._queue_status(key, self.outbox.priority(key))

    def _priority(self, key: Key) -> Priority:
        """Deletions, then changes, then new objects (S7.2)."""
        if key in self.mirror.tombstones:
            return Priority.DELETION
        return Priority.SPEC if key in self.mirror.views[self.policy.downstream] else Priority.CREATION

    def _queue_status(self, key: Key, priority: Priority) -> None:
        self._around.dispatchers[self.policy.upstream].add(Job(self.policy.resource, STATUS, key), priority)

    # What is done about it

    async def work(self, job: Job) -> None:
        """Look at one half of one pair, and do what must be done."""
        try:
            verb = await self._halves[job.half](job)
        except SyncError as error:
            self._failed(job, error)
            return
        except Exception:
            # A defect that one object meets must not stop the others; it is logged whole, and met again later.
            log.exception("%s %s: the %s could not be looked at", self.policy.resource, job.key, job.half)
            self._dispatcher(job).failed(job)
            return
        dispatcher = self._dispatcher(job)
        dispatcher.succeeded(job)
        if verb is None:
            self._around.observer.noop()
            self._arrived.pop(job, None)
            return
        self._denied(job.half, None)
        side = self.policy.downstream if job.half == CONTENT else self.policy.upstream
        self._around.observer.write(side, self.policy.resource, verb, "done")
        arrived = self._arrived.pop(job, None)
        if arrived is not None:
            seconds = asyncio.get_running_loop().time() - arrived
            self._around.observer.latency("spec" if job.half == CONTENT else "status", seconds)
        if job.half == CONTENT and verb != "delete":
            dispatcher.add(job, Priority.SPEC)  # a write may be followed by another: a create by its status

    def plan(self, key: Key) -> Plan:
        """What would have to be done for an object now."""
        up, down = self.policy.upstream, self.policy.downstream
        sights = self.mirror.sight(up, key), self.mirror.sight(down, key)
        row = self.mirror.pending.get(key)
        return decide(*sights, self.policy, self.mirror.record(key), pending=row, verify=key in self.unverified)

    async def _content(self, job: Job) -> str | None:
        """Bring the copy in line; the verb of the write that was made, None when there was no need."""
        key = job.key
        plan = self.plan(key)
        if plan.status is not None:
            await self._recall_status(key, plan.status)
        self.unverified.discard(key)
        action = plan.content
        if action is None:
            self._settled(key)
            self._unhold(key, plan.status)
            return None
        if isinstance(action, Create | Update) and self._still_refused(key):
            return None
        if isinstance(action, Create) and self._status_first(key):
            return None
        hold = await self._brakes(job, action)
        if hold is None and not isinstance(action, Hold):
            hold = await self._executor.perform(key, action)
            if hold is not None:
                # What has the name is out of our sight: no event will tell that it is gone.
                self._dispatcher(job).later(job, _TAKEN_RETRY_SECONDS)
        if hold is not None:
            self._hold(key, hold)
            return None
        if isinstance(action, Update) and action.why is Why.DRIFT:
            self._drift.reverted(key, asyncio.get_running_loop().time())
        self._unhold(key, plan.status)
        return _VERBS.get(type(action), "status")

    async def _brakes(self, job: Job, action: Any) -> Hold | None:
        """What keeps an action from being done, if anything."""
        key = job.key
        match action:
            case Hold():
                return action
            case Delete(why=why):
                hold = self._custody.standing()
                return hold if hold is not None or why is Why.REPLACED else await self._check(key)
            case Update(why=Why.DRIFT):
                wait = self._drift.wait(key, asyncio.get_running_loop().time())
                if wait > 0:
                    self._dispatcher(job).later(job, wait)
                    return await self._executor.contested(key)
        return None

    async def _check(self, key: Key) -> Hold | None:
        """Whether a copy may be deleted, asked once: what was let pass or held stays so (S5.5).

        A held deletion goes on when a human says so or the object comes back.
        """
        hold = self._custody.held(key)
        if hold is not None or self._custody.passed(key):
            return hold
        hold = await self._brake.check(key)
        if hold is None:
            self._custody.let_pass(key)
        return hold

    async def _check_ahead(self, job: Job) -> None:
        """Have a deletion checked whose copy is out of reach."""
        if job.key in self.mirror.tombstones and job.key in self.mirror.views[self.policy.downstream]:
            hold = await self._check(job.key)
            if hold is not None:
                self._hold(job.key, hold)

    def _still_refused(self, key: Key) -> bool:
        """Whether downstream has refused this very content within the hour."""
        refusal = self.refused.get(key)
        upstream = self.mirror.views[self.policy.upstream].get(key)
        if refusal is None or upstream is None:
            return False
        return refusal.content == upstream.content and asyncio.get_running_loop().time() < refusal.until

    def _status_first(self, key: Key) -> bool:
        """Whether a vanished copy's last status should reach upstream before the copy is made again (S5.2)."""
        row = self.mirror.pending.get(key)
        if row is None or row.dead or row.attempts or not self._up.up.is_set():
            return False
        if self.mirror.sight(self.policy.upstream, key) is Gap.UNSEEN:
            return False
        self._queue_status(key, Priority.FINAL_STATUS)
        return True

    def _settled(self, key: Key) -> None:
        """The pair agrees, or one side is not known well enough to say."""
        self.refused.pop(key, None)
        self.mirror.tidy(key)
        down = self.mirror.views[self.policy.downstream].get(key)
        if down is None or self.mirror.sight(self.policy.upstream, key) is not Gap.UNSEEN:
            return
        resumed = self.mirror.coverage(self.policy.upstream, key.namespace) is Coverage.RESUMED
        looking = self._orphan_list is not None and not self._orphan_list.done()
        if (
            resumed
            and not looking
            and decide(Gap.ABSENT, down, self.policy, self.mirror.record(key)).content is not None
        ):
            # It looks like an orphan, but a resumed watch is no proof: one list, for all of them.
            self._orphan_list = asyncio.ensure_future(self._look_for_orphans())

    async def _look_for_orphans(self) -> None:
        try:
            await self.relist("orphan", self.policy.upstream)
        except SyncError as error:
            log.info("%s: orphans cannot be told yet: %s", self.policy.resource, error)

    # Status

    def _take(self, key: Key, action: StatusAction, value: Any) -> None:
        match action:
            case SendStatus():
                priority = self.outbox.take(key, action, value)
                if priority is not None:
                    job = Job(self.policy.resource, STATUS, key)
                    self._arrived.setdefault(job, asyncio.get_running_loop().time())
                    if self._up.up.is_set():  # else `look` queues it, by what it is worth when the link is back (S7.2)
                        self._queue_status(key, priority)
            case Agreed():
                self.outbox.agree(key, action)
            case Hold():
                self._hold(key, action)

    async def _recall_status(self, key: Key, action: StatusAction) -> None:
        """Take a status whose event has passed: its value is in the store."""
        value = None
        if isinstance(action, SendStatus) and action.digest:
            body = await self._around.store.body(self.policy.downstream, self.policy.resource, key)
            view = self.mirror.views[self.policy.downstream].get(key)
            if body is None or view is None or view.status != action.digest:
                return
            value = status_value(body, self.policy)
        self._take(key, action, value)

    async def _status(self, job: Job) -> str | None:
        sent = await self.outbox.send(job.key, self._dispatcher(job).failures(job))
        self._status_tried(job.key)
        if job.key in self.mirror.pending and sent:
            self._queue_status(job.key, self.outbox.priority(job.key))
        return "status" if sent else None

    def _status_tried(self, key: Key) -> None:
        """A vanished copy may have been waiting for its last status to go first (S5.2)."""
        if self.mirror.sight(self.policy.downstream, key) is Gap.ABSENT:
            content = Job(self.policy.resource, CONTENT, key)
            self._around.dispatchers[self.policy.downstream].add(content, Priority.SPEC)

    # Failures and holds

    def _failed(self, job: Job, error: SyncError) -> None:
        """It did not happen, or nobody knows (S10): say so once, and decide when to look again."""
        side = self.policy.downstream if job.half == CONTENT else self.policy.upstream
        dispatcher = self._dispatcher(job)
        result = type(error).__name__.lower()
        verb = "status" if job.half == STATUS else "content"
        self._around.observer.write(side, self.policy.resource, verb, result)
        level = logging.DEBUG if isinstance(error, Refused) else logging.WARNING
        log.log(level, "%s %s %s: %s: %s", side, self.policy.resource, job.key, result, error)
        match error:
            case Never():
                self._dead(job, error)
                dispatcher.later(job, _DEAD_RETRY_SECONDS)
            case Throttled(retry_after=seconds):
                dispatcher.slow_down(seconds)
                dispatcher.later(job, seconds)
            case NotAllowed(status=status):
                self._denied(job.half, str(error) if status == 403 else None)
                dispatcher.later(job, max(1.0, dispatcher.failed(job)))
            case _:
                dispatcher.failed(job)
        if job.half == STATUS:
            if not isinstance(error, Never):
                self.outbox.tried(job.key, error)
            self._status_tried(job.key)

    def _dead(self, job: Job, error: SyncError) -> None:
        if job.half == STATUS:
            self.outbox.bury(job.key, error)
            return
        upstream = self.mirror.views[self.policy.upstream].get(job.key)
        until = asyncio.get_running_loop().time() + _DEAD_RETRY_SECONDS
        self.refused[job.key] = Refusal(upstream.content if upstream else "", str(error), until)
        self._around.noticed()

    def _hold(self, key: Key, hold: Hold) -> None:
        if self._custody.hold(key, hold):
            log.warning("%s %s is held: %s: %s", self.policy.resource, key, hold.reason, hold.message)
            self._around.noticed()

    def _unhold(self, key: Key, status: StatusAction | None) -> None:
        """What held the content is over; a status that is held for its own sake (S4.5) stays so."""
        kept = status.reason if isinstance(status, Hold) else None
        for reason in HoldReason:
            if reason is not kept:
                self._around.holds.clear(self.policy.resource, key, reason=reason)

    def _denied(self, half: str, message: str | None) -> None:
        if message is None:
            if self.denied.pop(half, None) is not None:
                self._around.noticed()
        elif self.denied.get(half) != message:
            self.denied[half] = message
            self._around.noticed()

    def _dispatcher(self, job: Job) -> Dispatcher:
        side = self.policy.downstream if job.half == CONTENT else self.policy.upstream
        return self._around.dispatchers[side]
