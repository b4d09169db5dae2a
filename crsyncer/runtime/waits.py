"""The waits of one connection, which a reload or an operator's command ends at once (S9.1)."""

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from crsyncer.core.watching.backoff import RETRY, Backoff, spread

T = TypeVar("T")
CATCH_UP_SECONDS = 0.25
"""How long the events of an outage may take to arrive after a watch has gone on from its cursor."""


def chance() -> float:
    """A random number from 0 to 1, for jitter."""
    return random.random()  # noqa: S311


class Waits:
    """Everything of one connection that waits for a time: back-offs, and the time that a server asked for."""

    def __init__(self) -> None:
        self.ended = 0
        """How often the waits have been ended."""
        self.listeners: list[Callable[[], None]] = []
        """Called by `end`, for waits that are no `sleep`."""
        self._end = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        """Return after so many seconds, or when `end` is called."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._end.wait()

    async def back_off(self, failures: int, backoff: Backoff = RETRY) -> None:
        """Sleep after the last of some failures; `failures` counts those before it."""
        await self.sleep(backoff.wait(failures, chance()))

    def end(self) -> None:
        """End every wait that is going on."""
        self.ended += 1
        self._end.set()
        self._end = asyncio.Event()
        for listener in self.listeners:
            listener()


class RetryAfter:
    """The pause that a server has asked for (Retry-After)."""

    def __init__(self, waits: Waits) -> None:
        self._waits = waits
        self._until = 0.0
        """Event loop time, in seconds."""
        self._ended = 0
        """How often the waits had been ended when it was asked for."""

    def obey(self, seconds: float) -> None:
        """Pause for so long, and up to a fifth longer; a longer pause that was asked for before stays."""
        self._until = asyncio.get_running_loop().time() + max(self.left, spread(seconds, chance()))
        self._ended = self._waits.ended

    @property
    def left(self) -> float:
        """For how many seconds the pause goes on; 0: it is over."""
        over = self._ended != self._waits.ended
        return 0.0 if over else max(0.0, self._until - asyncio.get_running_loop().time())


async def first_of(work: Awaitable[T], *events: asyncio.Event) -> T | asyncio.Event:
    """Do the work until one of the events is set: the result of the work, else the event. Raises as the work does."""
    task = asyncio.ensure_future(work)
    waits = {asyncio.ensure_future(event.wait()): event for event in events}
    try:
        done, _ = await asyncio.wait([task, *waits], return_when=asyncio.FIRST_COMPLETED)
        return task.result() if task in done else next(event for wait, event in waits.items() if wait in done)
    finally:
        for each in (task, *waits):
            each.cancel()
        await asyncio.gather(task, *waits, return_exceptions=True)
