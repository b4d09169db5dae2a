"""Works that share the event loop: a long one in parts, and several at the same time."""

import asyncio
from collections.abc import Coroutine, Generator, Iterable
from typing import Any, TypeVar

from crsyncer.errors import first_error

T = TypeVar("T")


async def give_way() -> None:
    """Let everything else have its turn of the event loop, after a part of a long work."""
    await asyncio.sleep(0)


async def in_parts(work: Generator[None, None, T]) -> T:
    """The result of a long work: everything else has its turn of the event loop after each part."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: T = end.value
            return result
        await give_way()


async def all_of(works: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Do works at the same time: their results, in order. The first error ends the others, and is raised as it is."""
    try:
        async with asyncio.TaskGroup() as tasks:
            started = [tasks.create_task(work) for work in works]
    except BaseExceptionGroup as errors:
        raise first_error(errors) from None
    return [each.result() for each in started]
