"""Verifies deletions before copies are deleted because their upstream vanished (S5.5)."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from crsyncer.core.actions import Hold
from crsyncer.core.backoff import Backoff
from crsyncer.core.holds import DeletionWindow, is_mass
from crsyncer.core.kind_served import Served
from crsyncer.core.model import Key
from crsyncer.engine.deletion_holds import KIND_MISSING, MASS_DELETION, DeletionHolds
from crsyncer.engine.missing_kind import MissingKind
from crsyncer.errors import Refused, Unsure
from crsyncer.runtime.connection import Connection
from crsyncer.runtime.single_flight import SingleFlight

log = logging.getLogger(__name__)

_SECOND_LOOK_SECONDS = 3.0
_ROUND_SECONDS = 0.25
_LIST_SECONDS = 2.0
_UNLISTED = Backoff(0.5, 15.0)
_LIST_TRIES = 4


class DeletionCheck:
    """Verifies the deletions of one kind in rounds: everything that waits when a round begins is one batch.

    `relisted()` returns after a fresh consistent list, and `present(key)` says whether upstream then has the object;
    `copies()` counts the kind's copies; `durable()` returns when the verdicts are on disk.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        resource: str,
        missing_kind: MissingKind,
        deletion_holds: DeletionHolds,
        copies: Callable[[], int],
        relisted: Callable[[], Awaitable[None]],
        present: Callable[[Key], bool],
        durable: Callable[[], Awaitable[None]],
        spawn: Callable[[Coroutine[Any, Any, None]], object],
    ) -> None:
        self._connection = connection
        self._resource = resource
        self._missing_kind = missing_kind
        self._deletion_holds = deletion_holds
        self._copies = copies
        self._present = present
        self._durable = durable
        self._window = DeletionWindow()
        self._round = SingleFlight(self._verify, spawn=spawn, pause=_ROUND_SECONDS)
        self._list = SingleFlight(relisted, spawn=spawn, pause=_LIST_SECONDS)
        self._asked: set[Key] = set()
        """Objects that somebody waits to delete, orphans included."""
        self._baseline = 0
        """How many copies there were when the window's first deletion came."""

    async def check(self, key: Key) -> Hold | None:
        """None: the copy may be deleted, and the verdict is on disk: it holds offline, and after a crash (S7.1).

        Raises Unsure when upstream did not answer, NotAllowed when it refused the credential, Refused when it has the
        object after all.
        """
        verified: frozenset[Key] = frozenset()
        self._asked.add(key)
        try:
            while True:
                hold = self._deletion_holds.held(key)
                if hold is not None:
                    return hold
                if self._present(key):
                    raise Refused("upstream has the object after all")
                if key in verified or self._deletion_holds.passed(key):
                    return None
                if not self._connection.up.is_set():
                    raise Unsure(f"the {self._connection.name} is {self._connection.state}")
                verified = await self._round.answer()
        finally:
            self._asked.discard(key)

    async def _verify(self) -> frozenset[Key]:
        """One round: hold everything that waits, or let it pass; the objects that passed. Raises as `check` does."""
        batch = self._batch()
        alive = await self._missing_kind.alive()
        if self._deletion_holds.vanished:
            return self._hold(batch, KIND_MISSING)
        batch |= self._batch()
        size = self._window.count(batch, asyncio.get_running_loop().time())
        copies = self._baseline = self._copies() if size == len(batch) else max(self._baseline, self._copies())
        if alive is not Served.YES or is_mass(size, copies):
            return await self._look_again(batch, alive)
        told = {key for key in batch if self._deletion_holds.told(key)}
        passed = self._let_pass(told)
        if batch != told:
            # An orphan may be an object that a silent watch has not shown yet. The others were deleted by an event.
            hold = await self._listed()
            passed |= self._let_pass(batch - told) if hold is None else self._hold(batch - told, hold)
        await self._durable()
        return passed

    async def _look_again(self, batch: set[Key], alive: Served) -> frozenset[Key]:
        """A mass deletion, or one that discovery does not vouch for: a fresh list must show the objects gone.

        Raises Unsure when the connection is lost meanwhile: the list is asked for again once it is back. A list that
        fails though the side answers is asked for again as well, a few times.

        Where discovery does not tell, the list is repeated while more deletions arrive: the first few may be the
        beginning of the kind's end, which takes its time, and is certain when the list is refused.
        """
        failures = 0
        while True:
            if alive is not Served.YES:
                batch |= self._batch()
                await asyncio.sleep(_SECOND_LOOK_SECONDS)
            try:
                hold = await self._listed()
            except Unsure:
                await self._connection.while_up(self._connection.wait_probed(since=asyncio.get_running_loop().time()))
                failures += 1
                if failures == _LIST_TRIES:
                    return self._hold(batch, MASS_DELETION)
                await self._connection.waits.sleep(_UNLISTED.wait(failures, random.random()))  # noqa: S311
                continue
            if hold is not None:
                return self._hold(batch, hold)
            if alive is Served.YES or batch.issuperset(self._batch()):
                break
        if alive is Served.UNHEARD_OF and await self._missing_kind.alive() is not alive:
            self._missing_kind.gone()  # it was not served for a while, so the list proves nothing
            return self._hold(batch, KIND_MISSING)
        passed = self._let_pass(batch)
        await self._durable()
        return passed

    async def _listed(self) -> Hold | None:
        """Have a list show what is gone; raises Unsure or NotAllowed when there was none (S10)."""
        try:
            await self._connection.while_up(self._list.answer())
        except Refused:
            self._missing_kind.gone()
            return KIND_MISSING
        return None

    def _batch(self) -> set[Key]:
        return {*self._deletion_holds.waiting(), *self._asked}

    def _let_pass(self, batch: set[Key]) -> frozenset[Key]:
        passed = frozenset(key for key in batch if not self._present(key) and self._deletion_holds.held(key) is None)
        for key in passed:
            self._deletion_holds.let_pass(key)
        return passed

    def _hold(self, batch: set[Key], hold: Hold) -> frozenset[Key]:
        """Hold a batch; nothing has passed."""
        new = sum(self._deletion_holds.hold(key, hold) for key in batch if not self._present(key))
        if new:
            log.warning("%s: %d deletions are held: %s", self._resource, new, hold.message)
        return frozenset()
