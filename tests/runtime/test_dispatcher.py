"""When a job runs again."""

import asyncio
from types import SimpleNamespace
from typing import Any

from crsyncer.runtime.dispatcher import Dispatcher, Job
from crsyncer.runtime.waits import Waits


async def test_a_job_that_is_asked_for_again_runs_at_the_earliest_time_that_was_asked_for() -> None:
    connection: Any = SimpleNamespace(waits=Waits(), up=asyncio.Event())
    dispatcher: Dispatcher[str] = Dispatcher(connection, lambda _: None)
    job = Job("goals.lab.example.com", "replica", "dock")
    dispatcher.later(job, 1000.0)
    late = dispatcher._queue.due(job)
    dispatcher.later(job, 100.0)
    early = dispatcher._queue.due(job)
    assert late is not None
    assert early is not None
    assert early < late
    for seconds in (200.0, 1000.0):
        dispatcher.later(job, seconds)
        assert dispatcher._queue.due(job) == early
