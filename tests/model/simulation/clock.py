"""Time that passes only when nobody has anything to do: an hour of back-off costs nothing, and is always the same."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine
from contextvars import Context, ContextVar, copy_context
from itertools import count
from typing import Any, TypeVar, cast

T = TypeVar("T")
_ROUND_SECONDS = 1e-6
"""What a round of the loop takes: who waits for a moment that rounding has put just ahead would else wait forever."""
EPOCH = 1_800_000_000.0
"""Unix time, in seconds, at which every world begins."""


Tasks = dict["asyncio.Task[Any]", None]
"""In the order in which they began."""
OWNED: ContextVar[Tasks] = ContextVar("owned")
"""Where the tasks that begin in this context are kept until they end: whoever dies takes their own along."""
Wrap = Callable[[Coroutine[Any, Any, Any]], Coroutine[Any, Any, Any]]
WRAPPED: ContextVar[Wrap] = ContextVar("wrapped")
"""What is made of the work of each task that begins in this context: something that can stand still (`standstill`)."""


class Stuck(Exception):
    """Everybody waits, and for nothing that a clock could bring."""


class _Selector:
    """What asyncio asks to wait for sockets. There are none: it moves the clock to where the next timer is due."""

    def __init__(self) -> None:
        self.now = 0.0

    def select(self, timeout: float | None) -> list[Any]:
        if timeout is None:
            raise Stuck
        self.now += max(_ROUND_SECONDS, timeout)
        return []

    def register(self, fileobj: Any, events: int, data: Any = None) -> None:
        """The loop's own wake-up socket: only threads and signals would use it."""

    def unregister(self, fileobj: Any) -> None:
        """See `register`."""

    def get_key(self, fileobj: Any) -> Any:
        raise KeyError(fileobj)

    def get_map(self) -> dict[Any, Any]:
        return {}

    def close(self) -> None:
        """There is nothing to be closed."""


class _Task(asyncio.Task[Any]):
    """A task that is where it is in a set by its number, not by its place in memory: groups cancel theirs in order."""

    def __init__(self, work: Coroutine[Any, Any, Any], *, number: int, **more: Any) -> None:
        self._number = number
        super().__init__(work, **more)

    def __hash__(self) -> int:
        return self._number


class Clock:
    """An event loop in which time is a number. `troubles` collects what asyncio would only have logged."""

    def __init__(self) -> None:
        self._selector = _Selector()
        self.loop = asyncio.SelectorEventLoop(cast("Any", self._selector))
        self.loop.time = lambda: self._selector.now  # type: ignore[method-assign]
        self.troubles: list[str] = []
        self.loop.set_exception_handler(self._trouble)
        self._numbers = count()
        self.loop.set_task_factory(cast("Any", self._begin))

    @property
    def now(self) -> float:
        """Seconds since the world began."""
        return self._selector.now

    def unix(self) -> float:
        """Unix time, in seconds."""
        return EPOCH + self.now

    def run(self, work: Awaitable[T]) -> T:
        """Let everybody go on until this is done."""
        return self.loop.run_until_complete(work)

    def pass_time(self, seconds: float) -> None:
        """Let everybody go on for so long."""
        self.run(asyncio.sleep(seconds))

    def end(self, tasks: Collection[asyncio.Task[Any]]) -> None:
        """Cancel them, and return when they have ended; what they say of it is no trouble."""
        known = len(self.troubles)
        for task in tasks:
            task.cancel()
        if tasks:
            self.run(asyncio.wait(tasks))
        del self.troubles[known:]

    def close(self) -> None:
        """End whatever still runs."""
        self.end(asyncio.all_tasks(self.loop))
        self.run(self.loop.shutdown_asyncgens())
        self.loop.close()

    def _trouble(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self.troubles.append(f"{context.get('message')}: {context.get('exception')!r}")

    def _begin(
        self, loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any], *, context: Context | None = None
    ) -> asyncio.Task[Any]:
        """Begin a task, in the books of whoever began it."""
        context = copy_context() if context is None else context
        wrap = context.get(WRAPPED)
        work = work if wrap is None else wrap(work)
        task = _Task(work, number=next(self._numbers), loop=loop, context=context)
        owned = context.get(OWNED)
        if owned is not None:
            owned[task] = None
            task.add_done_callback(lambda done: owned.pop(done, None))
        return task
