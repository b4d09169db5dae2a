"""One question for many callers."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class SingleFlight(Generic[T]):
    """One answer for everybody who asked before the question was sent; later callers get the next one.

    Questions are sent at least `pause` seconds apart: what trickles in is then one question, and not hundreds.
    `spawn` starts the task that asks: its owner ends it, and with it the wait of all callers.
    """

    def __init__(
        self,
        ask: Callable[[], Awaitable[T]],
        *,
        spawn: Callable[[Coroutine[Any, Any, None]], object],
        pause: float = 0.0,
    ) -> None:
        self._ask = ask
        self._spawn = spawn
        self._pause = pause
        self._not_before = 0.0
        self._next: asyncio.Future[T] | None = None
        self._lock = asyncio.Lock()

    async def answer(self) -> T:
        """Ask, or wait with those who are about to. Raises what the question raises."""
        if self._next is None:
            self._next = asyncio.get_running_loop().create_future()
            self._spawn(self._turn(self._next))
        return await asyncio.shield(self._next)

    async def _turn(self, answer: asyncio.Future[T]) -> None:
        loop = asyncio.get_running_loop()
        async with self._lock:
            await asyncio.sleep(self._not_before - loop.time())
            self._next = None
            try:
                answer.set_result(await self._ask())
            except asyncio.CancelledError:
                answer.cancel()
                raise
            except Exception as error:
                answer.set_exception(error)
                answer.exception()  # the callers may have stopped waiting: then nobody has to hear of it
            finally:
                self._not_before = loop.time() + self._pause
