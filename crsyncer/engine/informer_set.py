"""The informers of one kind: how fresh what they show is, and the lists of them that somebody needs."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from crsyncer.core.model import Freshness, Side
from crsyncer.core.watch import ListReason
from crsyncer.engine.cache import Cache
from crsyncer.engine.informer import Informer
from crsyncer.errors import SyncError

log = logging.getLogger(__name__)


class InformerSet:
    """Both sides' informers: one of each, or one of each namespace. Whoever makes them puts them in."""

    def __init__(self, cache: Cache, *, spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]) -> None:
        self.informers: list[Informer] = []
        self._cache = cache
        self._spawn = spawn
        self._running: dict[Side, asyncio.Task[None]] = {}

    def on(self, side: Side) -> list[Informer]:
        """The informers of one side."""
        return [r for r in self.informers if r.side is side]

    def freshnesses(self, side: Side) -> set[Freshness]:
        """How fresh the observations of a side are, over its namespaces."""
        return {self._cache.freshness(side, r.namespace) for r in self.on(side)}

    def is_complete(self, side: Side) -> bool:
        """Whether all of a side has been listed."""
        return self.freshnesses(side) == {Freshness.CONFIRMED}

    async def fresh(self, reason: ListReason, *sides: Side) -> None:
        """Return after a fresh, consistent list of these sides; raises as `ListWatch.fresh_list` does."""
        await asyncio.gather(*(r.listwatch.fresh_list(reason) for r in self.informers if r.side in sides))

    def want(self, side: Side, reason: ListReason, *, anew: bool = False) -> None:
        """A resumed watch does not tell what is absent, or when it is up to date: have a list tell, one at a time.

        `anew`: one that has begun already is not good enough.
        """
        running = self._running.get(side)
        if running is not None and anew:
            running.cancel()
        if running is None or running.done() or anew:
            self._running[side] = self._spawn(self._try(side, reason))

    async def _try(self, side: Side, reason: ListReason) -> None:
        try:
            await self.fresh(reason, side)
        except SyncError as error:
            resource = self._cache.policy.resource
            log.info("%s: the %s cannot be listed yet (%s): %s", resource, side, reason, error)
