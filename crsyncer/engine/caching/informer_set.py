"""The informers of one kind: how fresh their observations are, and lists on request."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from enum import StrEnum
from typing import Any

from crsyncer.core.model import Freshness, Side
from crsyncer.engine.caching.cache import Cache
from crsyncer.engine.caching.informer import Informer
from crsyncer.errors import SyncError

log = logging.getLogger(__name__)


class InformerSet:
    """Both sides' informers: one for a side, or one for each namespace of it. `Kind` adds them."""

    def __init__(self, cache: Cache, *, spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]) -> None:
        self.informers: list[Informer] = []
        self._cache = cache
        self._spawn = spawn
        self._running: dict[Side, asyncio.Task[None]] = {}

    def on(self, side: Side) -> list[Informer]:
        """The informers of one side."""
        return [each for each in self.informers if each.side is side]

    def freshnesses(self, side: Side) -> set[Freshness]:
        """How fresh the observations of a side are, over its namespaces."""
        return {self._cache.freshness(side, each.namespace) for each in self.on(side)}

    def is_complete(self, side: Side) -> bool:
        """Whether all of a side has been listed."""
        return self.freshnesses(side) == {Freshness.CONFIRMED}

    async def fresh(self, reason: StrEnum, *sides: Side) -> None:
        """Return after a fresh, consistent list of these sides; raises as `ListWatch.fresh_list` does."""
        await asyncio.gather(*(each.listwatch.fresh_list(reason) for each in self.informers if each.side in sides))

    def request_list(self, side: Side, reason: StrEnum) -> None:
        """Have a side listed, one list at a time: a resumed watch shows neither absences nor when it is up to date."""
        running = self._running.get(side)
        if running is None or running.done():
            self._running[side] = self._spawn(self._try(side, reason))

    async def _try(self, side: Side, reason: StrEnum) -> None:
        try:
            await self.fresh(reason, side)
        except SyncError as error:
            resource = self._cache.policy.resource
            log.info("%s: the %s cannot be listed yet (%s): %s", resource, side, reason, error)
