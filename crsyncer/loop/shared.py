"""One question for many who want to know."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Shared(Generic[T]):
    """One answer for everybody who asked before the question was put; later askers get the next one."""

    def __init__(self, ask: Callable[[], Awaitable[T]]) -> None:
        self._ask = ask
        self._next: asyncio.Task[T] | None = None
        self._lock = asyncio.Lock()

    async def answer(self) -> T:
        """Put the question, or wait with those who are about to. Raises what the question raises."""
        if self._next is None:
            self._next = asyncio.ensure_future(self._turn())
        return await asyncio.shield(self._next)

    async def _turn(self) -> T:
        async with self._lock:
            self._next = None
            return await self._ask()
