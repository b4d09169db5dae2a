"""Short retries inside one call, for commands and the sandbox, by the package `backoff`.

The agent's long waits are not made here: they belong to its queue, with the back-off of `core/watching/backoff.py`.
"""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import backoff

Answer = TypeVar("Answer")
Function = TypeVar("Function", bound=Callable[..., Any])


def until(
    question: Callable[[], Answer], is_good: Callable[[Answer], bool] = bool, *, seconds: float, interval: float = 0.05
) -> Answer:
    """Repeat a question until its answer is good, and return the last answer, after `seconds` also a bad one."""
    return _repeated(question, is_good, seconds, interval)()


async def until_async(
    question: Callable[[], Awaitable[Answer]],
    is_good: Callable[[Answer], bool] = bool,
    *,
    seconds: float,
    interval: float = 0.05,
) -> Answer:
    """Do the same as `until` with a question that is awaited."""

    async def ask() -> Answer:  # backoff knows coroutine functions only, not everything that returns an awaitable
        return await question()

    return await _repeated(ask, is_good, seconds, interval)()


def retried(error: type[Exception], *, seconds: float, interval: float = 0.05) -> Callable[[Function], Function]:
    """Decorate a function so that it is called again while it raises this error, for `seconds` at most."""
    return backoff.on_exception(backoff.constant, error, interval=interval, max_time=seconds, jitter=None, logger=None)


def _repeated(question: Function, is_good: Callable[[Any], bool], seconds: float, interval: float) -> Function:
    def is_bad(answer: Any) -> bool:
        return not is_good(answer)

    repeat = backoff.on_predicate(
        backoff.constant, is_bad, interval=interval, max_time=seconds, jitter=None, logger=None
    )
    return repeat(question)
