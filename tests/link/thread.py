"""An event loop in a thread of its own."""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

_Result = TypeVar("_Result")
_PATIENCE = 60.0  # seconds


class LoopThread:
    """Runs coroutines for other threads, between `start` and `stop`."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    @property
    def running(self) -> bool:
        """Between `start` and `stop`?"""
        return self._loop is not None

    def start(self) -> None:
        """Start the thread. It is no reason to keep the process alive."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=self._name, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        """Run a coroutine in the thread, and return its result when it has ended. Not from the thread itself.

        Raises what the coroutine raises, and TimeoutError after a minute.
        """
        if self._loop is None:
            work.close()
            raise RuntimeError(f"the thread {self._name} does not run")
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_PATIENCE)

    def stop(self) -> None:
        """Cancel what still runs in the thread, and end it."""
        if self._loop is None or self._thread is None:
            return
        self.run(_end_tasks())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._loop = self._thread = None


async def _end_tasks() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
