"""Looks twice before copies are deleted because their upstream vanished (S5.5)."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from crsyncer.core.actions import Hold
from crsyncer.core.backoff import Backoff
from crsyncer.core.guard import Alive, DeletionWindow, is_mass
from crsyncer.core.model import Key
from crsyncer.engine.deletion_holds import KIND_MISSING, MASS_DELETION, DeletionHolds
from crsyncer.engine.kind_alive import KindAlive
from crsyncer.errors import Refused, SyncError, Unsure
from crsyncer.runtime.connection import Connection
from crsyncer.runtime.single_flight import SingleFlight

log = logging.getLogger(__name__)

_SECOND_LOOK_SECONDS = 3.0
_UNSERVED = Backoff(0.5, 15.0)
_LIST_SECONDS = 2.0
_LIST_TRIES = 4


class DeletionCheck:
    """Decides whether the deletions of one kind may go on: what waits in `deletion_holds` then is one batch.

    `relisted()` returns after a fresh consistent list, and `present(key)` whether upstream then has the object;
    `copies()` counts the kind's copies.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        resource: str,
        kind_alive: KindAlive,
        deletion_holds: DeletionHolds,
        copies: Callable[[], int],
        relisted: Callable[[], Awaitable[None]],
        present: Callable[[Key], bool],
        noticed: Callable[[], None],
        spawn: Callable[[Coroutine[Any, Any, None]], object],
    ) -> None:
        self._connection = connection
        self._resource = resource
        self._kind_alive = kind_alive
        self._deletion_holds = deletion_holds
        self._copies = copies
        self._present = present
        self._noticed = noticed
        self._window = DeletionWindow()
        self._list = SingleFlight(relisted, spawn=spawn, pause=_LIST_SECONDS)
        self._baseline = 0
        """Copies there were when the window's first deletion came."""
        self._missing = asyncio.Event()
        """Whether upstream said so last."""

    async def check(self, key: Key) -> Hold | None:
        """None: go on.

        Raises Unsure when upstream did not answer, NotAllowed when it refused the credential, Refused when it has the
        object after all.
        """
        batch = {key, *self._deletion_holds.waiting()}
        hold = await self._verify(key, batch)
        if hold is None:
            hold = self._deletion_holds.held(
                key
            )  # it vanished while that was found out, and may be back without the object
        if hold is not None:
            others = [self._deletion_holds.hold(each, hold) for each in batch - {key}]
            if any(others):
                log.warning("%s: %d more are held: %s", self._resource, sum(others), hold.message)
            return hold
        for each in batch:
            if not self._present(each) and self._deletion_holds.held(each) is None:
                self._deletion_holds.let_pass(each)
        if self._present(key):
            raise Refused("upstream has the object after all")
        return None

    @property
    def kind_missing(self) -> bool:
        """Whether upstream has stopped serving the kind, or is about to."""
        return self._missing.is_set()

    async def run(self) -> None:
        """Find out when a missing kind is served again, forever.

        Nothing else may tell: a watch can outlive its CRD, and go on with the objects of the next one (measured).
        """
        failures = 0
        while True:
            if not self.kind_missing:
                failures = 0
            await self._missing.wait()
            await self._connection.up.wait()
            await self._connection.waits.sleep(_UNSERVED.wait(failures, random.random()))  # noqa: S311
            failures += 1
            try:
                alive = await self._kind_alive.alive()
            except SyncError:
                continue
            self._heard(alive)
            self._noticed()

    def _heard(self, alive: Alive) -> None:
        """What was being deleted a moment ago is unheard of once it is gone, where only discovery tells."""
        if alive is Alive.NO:
            self._missing.set()
        elif alive is not Alive.UNHEARD_OF:
            self._missing.clear()

    async def _verify(self, key: Key, batch: set[Key]) -> Hold | None:
        alive = await self._kind_alive.alive()
        self._heard(alive)
        if self.kind_missing or alive is Alive.OTHER:
            return KIND_MISSING
        # What has come while that was asked is no part of the batch, but makes it one of many.
        deletions = batch | set(self._deletion_holds.waiting())
        size = self._window.count(deletions, asyncio.get_running_loop().time())
        copies = self._baseline = self._copies() if size == len(deletions) else max(self._baseline, self._copies())
        many = is_mass(size, copies)
        if alive is Alive.YES and not many:
            # An orphan may be what a watch that has fallen silent has not told of yet. The rest of the batch was told
            # of, or it would not wait; what was carried out since is not known any more.
            return None if self._deletion_holds.told(key) else await self._listed()
        hold = await self._look_again(batch, wait=alive is not Alive.YES)
        if alive is Alive.UNHEARD_OF and hold is None and await self._kind_alive.alive() is not alive:
            return KIND_MISSING  # it was not served for a while, so what it serves now is no proof
        return hold

    async def _look_again(self, batch: set[Key], *, wait: bool) -> Hold | None:
        """A mass deletion, or one that discovery does not vouch for: a fresh list must show the objects gone.

        Raises Unsure when the connection is lost meanwhile: the list is asked for again once it is back. A list that
        fails though the side answers is asked for again as well, a few times. With `wait`, the list is repeated while
        more deletions arrive: the first few may be the beginning of the kind's end, which takes its time, and is
        certain when the list is refused. All deletions that were waited for are in the batch then.
        """
        failures = 0
        while True:
            if wait:
                batch |= set(self._deletion_holds.waiting())
                await asyncio.sleep(_SECOND_LOOK_SECONDS)
                if all(map(self._deletion_holds.passed, batch)):
                    return None  # another's look was at these too
            try:
                hold = await self._listed()
            except Unsure:
                await self._connection.while_up(self._connection.verified(since=asyncio.get_running_loop().time()))
                if failures == _LIST_TRIES - 1:
                    return MASS_DELETION
                await self._connection.waits.sleep(_UNSERVED.wait(failures, random.random()))  # noqa: S311
                failures += 1
                continue
            if hold is not None or not wait or batch.issuperset(self._deletion_holds.waiting()):
                return hold

    async def _listed(self) -> Hold | None:
        """Have a list tell what is gone; raises Unsure or NotAllowed when there was none (S10)."""
        try:
            await self._connection.while_up(self._list.answer())
        except Refused:
            return KIND_MISSING
        return None
