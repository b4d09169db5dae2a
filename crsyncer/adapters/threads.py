"""Work done in one thread and awaited in another."""

import errno
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")


def fulfil(future: "Future[T]", work: Callable[[], T]) -> None:
    """Do the work, and give the future its result or its error. Does nothing where the future was cancelled."""
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = work()
    except Exception as error:
        future.set_exception(error)
    else:
        future.set_result(result)


def in_daemon(work: Callable[[], T], *, name: str) -> "Future[T]":
    """Do the work in a thread of its own, which keeps no process from ending, as those of asyncio and aiohttp do."""
    future: Future[T] = Future()
    threading.Thread(target=fulfil, args=(future, work), name=name, daemon=True).start()
    return future


class DaemonThreads(ThreadPoolExecutor):
    """An event loop's executor whose threads keep no process from ending.

    Those of the default one do, by 20 s while DNS hangs (measured). A subclass, because event loops take no other.
    """

    def submit(self, work: Callable[..., T], /, *args: Any, **kwargs: Any) -> "Future[T]":
        """Begin the work at once; raises OSError where there are too many tasks or too little memory."""
        try:
            return in_daemon(partial(work, *args, **kwargs), name="crsyncer-worker")
        except RuntimeError as error:
            raise OSError(errno.EAGAIN, str(error)) from None
