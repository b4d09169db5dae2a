"""Keeps the copies of a kind that upstream does not serve, until the kind is back (S5.5a)."""

import asyncio
import logging
import random
from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from typing import Any

from crsyncer.core.backoff import UNSERVED
from crsyncer.core.decide import decide
from crsyncer.core.kind_served import Served
from crsyncer.core.model import Freshness, Gap, Key, Observation, Side
from crsyncer.engine.cache import Cache
from crsyncer.engine.deletion_holds import KIND_MISSING, DeletionHolds
from crsyncer.engine.informer import Informer
from crsyncer.engine.informer_set import InformerSet
from crsyncer.engine.served_check import ServedCheck
from crsyncer.errors import SyncError
from crsyncer.ports import Store
from crsyncer.runtime.connection import Connection
from crsyncer.runtime.listwatch import Phase

log = logging.getLogger(__name__)

_STEADY_SECONDS = 1.0
"""A cursor of a CRD that is no more is refused inside a watch that began with 200, at once (measured)."""


class MissingKind:
    """A kind that upstream does not serve, or serves by another CRD, until it is known what came back.

    `ended()` is called when the hold has ended.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        cache: Cache,
        deletion_holds: DeletionHolds,
        informer_set: InformerSet,
        store: Store,
        ended: Callable[[], None],
        spawn: Callable[[Coroutine[Any, Any, None]], object],
    ) -> None:
        self.served_check = ServedCheck(
            connection,
            policy=cache.policy,
            store=store,
            gone=partial(self.gone, certain=True),
            replaced=self._replaced,
            spawn=spawn,
        )
        self._connection = connection
        self._cache = cache
        self._policy = cache.policy
        self._deletion_holds = deletion_holds
        self._informer_set = informer_set
        self._ended = ended
        self._stale = False
        """Whether the CRD was deleted or replaced for certain, and upstream has not been listed since it is back."""
        self._resumed_at: float | None = None
        """When the watch has gone on from its cursor, in event loop time, seconds; None: it has not, since the gap."""
        self._resumes: dict[str, int] = {}
        """How often each of upstream's watches had resumed when it was lost last."""
        self._gap = deletion_holds.vanished
        """Whether upstream's cursors may be newer than the gap: a list was taken since, or the agent was restarted.
        Then a watch that resumes proves nothing, because its cursor is past what the kind lacks."""
        self._poke = asyncio.Event()

    async def alive(self) -> Served:
        """Whether upstream serves the kind; raises Unsure when it did not answer. A no holds every deletion."""
        alive = await self.served_check.alive()
        if alive is Served.NO:
            self.gone(certain=True)
        return alive

    def gone(self, *, certain: bool = False) -> None:
        """Upstream does not serve the kind: hold all copies, whichever there are by now.

        `certain`: the CRD is deleted or being deleted; else a gateway may have lost its way for a moment.
        """
        self._stale |= certain
        if not self._deletion_holds.vanished:
            log.warning("%s: the %s does not serve the kind: nothing is deleted", *self._names())
        self._deletion_holds.vanish(self._at_stake())
        self._poke.set()

    def check(self) -> None:
        """Hold all copies while upstream's collection is not found."""
        if self._missing():
            self.gone()

    def replaced(self) -> None:
        """Upstream serves the kind by another CRD than before: only a list from now on shows what came back."""
        self._stale = True
        self._deletion_holds.vanish(())
        for informer in self._informer_set.on(self._policy.upstream):
            informer.state.forget_cursor()
        self._poke.set()

    def freshness_changed(self, side: Side) -> None:
        """How fresh the observations of a side are has changed."""
        if side is not self._policy.upstream:
            self.check()
        else:
            self._note_resume(self._informer_set.on(side), self._informer_set.freshnesses(side))
        if self._deletion_holds.vanished:
            self._poke.set()

    def _note_resume(self, informers: list[Informer], found: set[Freshness]) -> None:
        """Note whether upstream's watches have gone on from their cursors, with no list in between."""
        if Freshness.CONFIRMED in found:
            self._gap = self._deletion_holds.vanished
        if Freshness.STORED in found:
            self._resumed_at = None
            self._resumes = {each.namespace: each.state.resumes for each in informers}
        elif found == {Freshness.RESUMED}:
            self._gap |= any(each.state.resumes <= self._resumes.get(each.namespace, 0) for each in informers)
            self._resumed_at = None if self._gap else asyncio.get_running_loop().time()

    async def run(self) -> None:
        """While the kind is missing, find out whether it is back, and as the same one, forever.

        Nothing else may tell: a watch can outlive its CRD, and go on with the objects of the next one (measured).
        """
        failures = 0
        while True:
            await self._poke.wait()
            await self._connection.up.wait()
            self._poke.clear()
            if not self._deletion_holds.vanished:
                failures = 0
                continue
            try:
                if await self._over():
                    self._ended()
                    continue
            except SyncError as error:
                log.info("%s: the %s has not said whether the kind is back: %s", *self._names(), error)
            self._poke.set()
            await self._connection.waits.sleep(UNSERVED.wait(failures, random.random()))  # noqa: S311
            failures += 1

    async def _over(self) -> bool:
        """End the hold if the kind is back; whether it is. Raises SyncError where that is not known."""
        upstream, downstream = self._policy.upstream, self._policy.downstream
        if self._missing() or await self.alive() is Served.NO:
            return False
        if self._stale:
            await self._informer_set.fresh("vanished", upstream)
            self._stale = False
        elif self._resumed_at is not None:
            await asyncio.sleep(self._resumed_at + _STEADY_SECONDS - asyncio.get_running_loop().time())
            if self._resumed_at is not None and not self._stale:
                return self._end(set())
        for side in (upstream, downstream):
            if not self._informer_set.complete(side):
                await self._informer_set.fresh("vanished", side)
        if self._missing() or self._stale or not all(map(self._informer_set.complete, Side)):
            return False
        return self._end({key for key in self._at_stake() if self._cache.observe(upstream, key).found is Gap.ABSENT})

    def _end(self, lacking: set[Key]) -> bool:
        """The kind is served again. Copies whose objects a list lacks stay held: nobody may have meant to delete them.

        A watch that has gone on without a gap lacks nothing: a deletion that it delivers is an ordinary one.
        """
        free = (None, KIND_MISSING)
        held = {
            key for key in lacking if self._deletion_holds.held(key) in free and not self._deletion_holds.passed(key)
        }
        self._deletion_holds.reappear(held)
        self._gap = False
        log.info("%s: the %s serves the kind again; %d copies stay held", *self._names(), len(held))
        return True

    def _missing(self) -> bool:
        return any(r.listwatch.phase is Phase.MISSING for r in self._informer_set.on(self._policy.upstream))

    def _replaced(self) -> None:
        self.replaced()
        self._informer_set.want(self._policy.upstream, "vanished", anew=True)

    def _at_stake(self) -> Iterator[Key]:
        """The copies that would be deleted without upstream; an orphan that never was a copy is none of them."""
        for key, view in self._cache.views[self._policy.downstream].items():
            gone = decide(Observation(Gap.ABSENT), Observation(view), self._policy, self._cache.record(key))
            if view.stamp is not None and gone.content is not None:
                yield key

    def _names(self) -> tuple[str, str]:
        return self._policy.resource, self._policy.upstream
