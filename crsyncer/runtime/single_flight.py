"""One question for many who want to know."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class SingleFlight(Generic[T]):
    """One answer for everybody who asked before the question was put; later askers get the next one.

    Questions are put at least `pause` seconds apart: what trickles in is then one question, and not hundreds.
    """

    def __init__(self, ask: Callable[[], Awaitable[T]], *, pause: float = 0.0) -> None:
        self._ask = ask
        self._pause = pause
        self._not_before = 0.0
        self._next: asyncio.Task[T] | None = None
        self._lock = asyncio.Lock()

    async def answer(self) -> T:
        """Put the question, or wait with those who are about to. Raises what the question raises."""
        if self._next is None:
            self._next = asyncio.ensure_future(self._turn())
            self._next.add_done_callback(_heard)
        return await asyncio.shield(self._next)

    async def _turn(self) -> T:
        loop = asyncio.get_running_loop()
        async with self._lock:
            await asyncio.sleep(self._not_before - loop.time())
            self._next = None
            try:
                return await self._ask()
            finally:
                self._not_before = loop.time() + self._pause


def _heard(task: asyncio.Task[T]) -> None:
    """Whoever asked may have stopped waiting: then a failure is nobody's, and no accident either."""
    if not task.cancelled():
        task.exception()
