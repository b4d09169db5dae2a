"""One question for many, some of whom stop waiting."""

import asyncio
import gc
from typing import Any

from crsyncer.errors import Unsure
from crsyncer.runtime.single_flight import SingleFlight


async def test_an_answer_that_nobody_waits_for_any_more_may_fail_without_a_word() -> None:
    loop, said = asyncio.get_running_loop(), list[dict[str, Any]]()
    loop.set_exception_handler(lambda _, context: said.append(context))
    asked, failing = asyncio.Event(), asyncio.Event()

    async def ask() -> None:
        asked.set()
        await failing.wait()
        raise Unsure("no answer")

    shared = SingleFlight(ask, spawn=asyncio.ensure_future)
    impatient = asyncio.ensure_future(shared.answer())
    await asked.wait()
    impatient.cancel()
    failing.set()
    await asyncio.gather(impatient, return_exceptions=True)
    del impatient
    await asyncio.sleep(0)
    gc.collect()
    assert said == []
