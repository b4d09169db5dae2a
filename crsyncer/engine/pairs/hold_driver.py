"""Carries out the steps of the hold machine of one kind, and records what it decides (S5.5)."""

import asyncio
import contextlib
import logging
import random
from collections.abc import Callable, Collection, Iterator
from typing import Any, assert_never

from crsyncer.core.holds.agent_list_reason import AgentListReason
from crsyncer.core.holds.deletion_holds import DeletionHolds
from crsyncer.core.holds.hold_list import DELETION_HOLDS
from crsyncer.core.holds.hold_machine import HoldMachine
from crsyncer.core.holds.hold_steps import Ask, Conclude, HoldStep, Idle, List, Pause, ProveCluster
from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.model import Freshness, Gap, Json, Key, Side
from crsyncer.core.pair.actions import HoldReason
from crsyncer.core.requests.answers import is_inconclusive
from crsyncer.core.requests.calls import Call
from crsyncer.core.watching.backoff import capped
from crsyncer.engine.caching.cache import Cache
from crsyncer.engine.caching.informer_set import InformerSet
from crsyncer.engine.context import EngineContext
from crsyncer.errors import SyncError, Unsure
from crsyncer.runtime.listwatch import Phase
from crsyncer.runtime.waits import RetryAfter, first_of

log = logging.getLogger(__name__)

_PROBE_SECONDS = 20.0


def kind_wide_name(resource: str) -> str:
    """Under which name the store keeps what holds every deletion of a kind."""
    return f"kind-holds:{resource}"


def crd_name(policy: KindPolicy) -> str:
    """Under which name the store keeps the uid of upstream's CRD of a kind, for each that the projection names."""
    place = policy.endpoint(policy.upstream).resource
    return f"crd:{policy.upstream}:{policy.resource}" + (f"@{place}" if place != policy.resource else "")


def another_name(policy: KindPolicy) -> str:
    """Under which name the store keeps that an edited projection names another kind upstream (C1.7)."""
    return f"another:{policy.resource}"


class HoldDriver:
    """The deletions of one kind: `holds` has those that are held or verified, `run` finds out about the rest.

    Every change that gives the machine something to find out or to record is made inside `event()`. `kind_is_back()` is
    called when upstream, which did not serve the kind, serves it again, and `kind_is_held()` when every deletion is to
    be held from now on. While the version is a guess, upstream may serve the kind in another version only: nothing is
    asked, and no answer counts.
    """

    def __init__(
        self,
        *,
        cache: Cache,
        context: EngineContext,
        informer_set: InformerSet,
        kind_is_back: Callable[[], None],
        kind_is_held: Callable[[], None],
    ) -> None:
        self._cache = cache
        self._context = context
        self._store = context.store
        self._upstream = cache.policy.upstream
        self._connection = context.connections[self._upstream]
        self._informer_set = informer_set
        self._kind_is_back = kind_is_back
        self._kind_is_held = kind_is_held
        self._retry_after = RetryAfter(self._connection.waits)
        """The pause that upstream asked for."""
        self._jitter = random.Random(random.random())  # noqa: S311
        self._wake = asyncio.Event()
        self._round: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when the present round of verification is over."""
        self._version_is_guess = cache.policy.version_is_guess and self._upstream is Side.CLOUD
        """Whether nothing has shown yet that upstream serves the kind in this version."""
        self.suspicions = 0
        """How often the kind went out of sight: upstream may serve it in another version."""
        self._was_presumed_absent = False
        self._kind_wide_name, self._crd_name = kind_wide_name(cache.policy.resource), crd_name(cache.policy)
        self._another_name = another_name(cache.policy)
        self._mass_name = f"mass-deletion:{cache.policy.resource}"
        kind_wide = self._store.get_meta(self._kind_wide_name) or {}
        self.holds = DeletionHolds(
            cache.policy,
            holds=context.holds,
            views=cache.views,
            tombstones=cache.tombstones,
            kind_wide={_reason(word): (str(i), float(since)) for word, (i, since) in kind_wide.items()},
            is_another=bool(self._store.get_meta(self._another_name)),
            now=context.clock(),
        )
        cluster, uid = self._store.get_meta(self._crd_name) or ("", "")
        self.machine = HoldMachine(cache.policy, holds=self.holds, crd=(cluster, uid))
        self.machine.mass_deletion = tuple(self._store.get_meta(self._mass_name) or (0, 0.0))
        self._recorded = dict(self.holds.kind_wide), self.machine.crd, self.machine.mass_deletion
        self._record()

    async def run(self) -> None:
        """Find out what is not known, forever."""
        program = self.machine.program()
        self._tick()
        step = next(program)
        while True:
            self._record()
            try:
                result = await self._do(step)
            except SyncError as error:
                result = error
            self._tick()
            step = program.send(result)

    @contextlib.contextmanager
    def event(self) -> Iterator[HoldMachine]:
        """Tell the machine something inside the block; afterwards the changes are recorded and the machine wakes."""
        self._tick()
        before = self.holds.held_every()
        yield self.machine
        self._record()
        self._wake.set()
        if before is None and self.holds.held_every() is not None:
            self._kind_is_held()

    async def verify(self, key: Key) -> None:
        """Return when it is known whether a deletion is held or verified, or upstream has the object.

        The result is recorded: it counts offline, and after a crash (S7.1). For an orphan it counts for one write.
        Raises Unsure when upstream did not answer, NotAllowed when it did not accept the credential.
        """
        wanted = self.machine.wanted
        wanted[key] += 1
        try:
            while self.holds.is_open(key):
                if not self._connection.up.is_set():
                    raise Unsure(f"the {self._connection.name} is {self._connection.state}")
                if self._version_is_guess:
                    raise Unsure(f"the {self._connection.name} has not shown yet which versions it serves")
                self._wake.set()
                await asyncio.shield(self._round)
        finally:
            wanted[key] -= 1
            if not wanted[key]:
                del wanted[key]

    @property
    def is_presumed_absent(self) -> bool:
        """Whether an object of the kind is taken for absent once its hold is released: no watch would show it."""
        return self.holds.kind_missing and Freshness.STORED in self._informer_set.freshnesses(self._upstream)

    def release(self, reason: HoldReason, keys: Collection[Key]) -> None:
        """Release a hold: an operator asks for that, or nothing is held any more."""
        if reason is HoldReason.KIND_MISSING and self.is_presumed_absent:
            absent = set(keys)
            for key in keys:
                self._cache.lost(self._upstream, key)  # an object of a kind that upstream does not serve is absent
            # The objects may come back with the kind: a list has to show which.
            for informer in self._informer_set.on(self._upstream):
                informer.state.forget_cursor()
            self._informer_set.request_list(self._upstream, AgentListReason.RELEASED)
        else:
            absent = {key for key in keys if self._cache.observe(self._upstream, key).found is Gap.ABSENT}
        with self.event() as machine:
            machine.holds.release(reason, keys, absent=absent, now=self._context.clock())

    def freshness_changed(self, side: Side) -> None:
        """The freshness of a side's observations has changed."""
        if side is self._upstream and Freshness.CONFIRMED in self._informer_set.freshnesses(side):
            self._version_is_guess = False
        with self.event() as machine:
            machine.freshness_changed(side, self._informer_set.freshnesses(side))

    def negotiated(self, policy: KindPolicy) -> None:
        """A negotiation has agreed on the same version again."""
        self._version_is_guess &= policy.version_is_guess
        self.phase_changed()

    def phase_changed(self) -> None:
        """A watch is in another phase, or the version is no guess any more: upstream may not serve the kind."""
        phases = [each.listwatch.phase for each in self._informer_set.on(self._upstream)]
        with self.event() as machine:
            machine.phase_changed(missing=Phase.MISSING in phases and not self._version_is_guess)

    async def _do(self, step: HoldStep) -> Any:
        waits, connection = self._connection.waits, self._connection
        match step:
            case Idle(seconds=seconds):
                ended = waits.ended
                events = [self._wake] if connection.up.is_set() else [self._wake, connection.up]
                await first_of(self._wake.wait() if seconds is None else waits.sleep(seconds), *events)
                self._wake.clear()
                if waits.ended != ended:
                    self.machine.hurry()
            case Pause(seconds=seconds, retry=retry):
                await (waits.sleep(seconds) if retry else asyncio.sleep(seconds))
            case Ask(calls=calls):
                return await asyncio.gather(*map(self._ask, calls))
            case List(side=side, reason=reason):
                await self._context.connections[side].while_up(self._informer_set.fresh(reason, side))
            case ProveCluster():
                try:
                    async with asyncio.timeout(_PROBE_SECONDS):
                        now = asyncio.get_running_loop().time()
                        await connection.while_up(connection.wait_probed(since=now))
                except TimeoutError:
                    raise Unsure(f"the {connection.name} may be another cluster") from None
            case Conclude(error=error):
                done, self._round = self._round, asyncio.get_running_loop().create_future()
                if error is None:
                    done.set_result(None)
                else:
                    done.set_exception(error)
                    done.exception()  # read it, for there may be no caller left that does
            case _:
                assert_never(step)
        return None

    async def _ask(self, call: Call) -> tuple[int, Json]:
        if not self._connection.up.is_set():  # another cluster would answer (S8.3)
            raise Unsure(f"the {self._connection.name} is {self._connection.state}")
        if self._retry_after.left:
            raise Unsure(f"the {self._connection.name} has asked for a pause (Retry-After)")
        reply = await self._connection.request(call)
        if is_inconclusive(reply.status):
            self._retry_after.obey(capped(reply.retry_after))
            raise Unsure(f"the {self._connection.name} answered {reply.status}")
        return reply.status, reply.body

    def _tick(self) -> None:
        self.machine.tick(
            asyncio.get_running_loop().time(),
            unix=self._context.clock(),
            chance=self._jitter.random(),
            up=self._connection.up.is_set() and not self._version_is_guess,
            cluster=self._connection.cluster_identity or "",
        )

    def _record(self) -> None:
        """Put all that has changed into the store, the notes into the log, and report the facts."""
        machine = self.machine
        for key, tombstone in self.holds.changed.items():
            self._cache.add_tombstone(key, tombstone)
        self.holds.changed.clear()
        self._context.save_issued()
        kind_wide, crd, mass = self._recorded
        self._recorded = dict(self.holds.kind_wide), machine.crd, machine.mass_deletion
        if kind_wide != self.holds.kind_wide:
            self._store.put_meta(self._kind_wide_name, self.holds.kind_wide)
        if mass != machine.mass_deletion:
            self._store.put_meta(self._mass_name, list(machine.mass_deletion))
        if self._store.get_meta(self._another_name) and not self.holds.is_another:
            self._store.put_meta(self._another_name, False)
        if crd != machine.crd:
            self._store.put_meta(self._crd_name, list(machine.crd))
        expired, machine.cursors_expired = machine.cursors_expired, False
        for informer in self._informer_set.on(self._upstream) if expired else ():
            informer.state.forget_cursor()
        for text in machine.notes:
            log.info(text)
        for fact in machine.facts:
            self._context.recorder.record(fact)
        machine.notes.clear()
        machine.facts.clear()
        presumed = self.is_presumed_absent
        self.suspicions += presumed and not self._was_presumed_absent
        self._was_presumed_absent = presumed
        if HoldReason.KIND_MISSING in kind_wide and not self.holds.kind_missing:
            self._kind_is_back()


def _reason(word: str) -> HoldReason:
    """What deletions of a kind are held for; a reason that only a newer version knows ends when a human says so."""
    return HoldReason(word) if word in DELETION_HOLDS else HoldReason.MANUAL
