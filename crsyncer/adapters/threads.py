"""Work done in one thread and awaited in another."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

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
