"""The waits of one connection, which a reload or an operator's command ends at once (S9.1)."""

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable
from typing import Any

from crsyncer.core.backoff import spread


class Waits:
    """Everything of one connection that waits for a time: back-offs, and the patience that a server asked for."""

    def __init__(self) -> None:
        self.ended = 0
        """How often the waits have been ended."""
        self.listeners: list[Callable[[], None]] = []
        """Called by `end`, for waits that are no `sleep`."""
        self._end = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        """Return after so many seconds, or when `end` is called."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._end.wait(), max(0.0, seconds))

    def end(self) -> None:
        """End every wait that is going on."""
        self.ended += 1
        self._end.set()
        self._end = asyncio.Event()
        for listener in self.listeners:
            listener()


class Patience:
    """Until when something is to be left alone, because its server asked for that."""

    def __init__(self, waits: Waits) -> None:
        self._waits = waits
        self._until = 0.0
        """Event loop time, in seconds."""
        self._ended = 0
        """How often the waits had been ended when it was asked for."""

    def ask(self, seconds: float) -> None:
        """Leave it alone for so long, and up to a fifth longer; a longer time that was asked for before stays."""
        self._until = asyncio.get_running_loop().time() + max(self.left, spread(seconds, random.random()))  # noqa: S311
        self._ended = self._waits.ended

    @property
    def left(self) -> float:
        """For how many seconds more; 0 when it may be asked again."""
        over = self._ended != self._waits.ended
        return 0.0 if over else max(0.0, self._until - asyncio.get_running_loop().time())


async def first_of(*works: Awaitable[Any]) -> set[int]:
    """Wait until one of them is done, and cancel the others; the places of those that are done."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return {place for place, task in enumerate(tasks) if task in done}
    finally:
        for task in tasks:
            task.cancel()
