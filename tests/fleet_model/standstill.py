"""Processes that stand still (SIGSTOP): none of their tasks runs on, while the world and the clock do."""

import asyncio
from collections.abc import Coroutine
from typing import Any


class Standstill:
    """Whether a process stands still. Its tasks are wrapped by `wrap`."""

    def __init__(self) -> None:
        self.stands = False
        self._waiting: list[asyncio.Future[None]] = []

    def begin(self) -> None:
        """Stand still from the next step of any task on."""
        self.stands = True

    def end(self) -> None:
        """Go on."""
        self.stands = False
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    def wrap(self, work: Coroutine[Any, Any, Any]) -> Coroutine[Any, Any, Any]:
        """The work of a task, which makes no step while the process stands still."""
        return _Suspendable(work, self)

    def pause(self) -> "asyncio.Future[None]":
        """What a task waits for until the process goes on, as `Future.__await__` hands it to the task."""
        future = asyncio.get_running_loop().create_future()
        future._asyncio_future_blocking = True
        self._waiting.append(future)
        return future


class _Suspendable(Coroutine[Any, Any, Any]):
    """A coroutine, as the standard library wants it: its class is not ours to choose."""

    def __init__(self, work: Coroutine[Any, Any, Any], still: Standstill) -> None:
        self._work = work
        self._still = still
        self._error: BaseException | None = None
        """What was thrown in meanwhile."""

    def send(self, value: Any) -> Any:
        if self._still.stands:
            return self._still.pause()
        error, self._error = self._error, None
        return self._work.send(value) if error is None else self._work.throw(error)

    def throw(self, *given: Any) -> Any:
        error = given[0] if isinstance(given[0], BaseException) else given[0](*given[1:2])
        if self._still.stands:
            self._error = error
            return self._still.pause()
        return self._work.throw(error)

    def close(self) -> None:
        self._work.close()

    def __await__(self) -> Any:
        return self._work.__await__()
