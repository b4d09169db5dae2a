"""Runs the jobs for one server while it is connected: by priority, some at a time, and later again if they failed."""

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Hashable
from functools import partial
from typing import Generic, NamedTuple, TypeVar

from crsyncer.core.watching.backoff import RETRY, Backoff, spread
from crsyncer.core.watching.pace import MOST
from crsyncer.core.watching.queue import Priority, WorkQueue
from crsyncer.runtime.connection import Connection
from crsyncer.runtime.waits import RetryAfter, chance

_AGAIN = 8
"""Maximum number of retried jobs of one lane that run at once. The other slots stay free for new jobs: a retried job
may hold its slot until its request times out."""
_CROWDED_SECONDS = 0.25

K = TypeVar("K", bound=Hashable)


class Job(NamedTuple, Generic[K]):
    """Work on one object: on its content (written downstream), or on its status (written upstream), for example."""

    resource: str
    work: str
    key: K


def _by_resource(job: Job[K]) -> Hashable:
    return job.resource


class Dispatcher(Generic[K]):
    """Runs the jobs that write to one server: as many quick ones at a time as its pace allows, and 16 of any one lane.

    A job that is slower than expected for this link no longer counts against the limit, and a lane without running
    jobs may start one: a job that is stuck never delays the rest (S9.5).
    The number of a lane's jobs is bounded and not their time: a slow connection needs its time, and the effect of a
    request is known only when it has ended.

    `start` begins a job and returns its task, which belongs to the kind; None where the kind has stopped.
    `lane` returns the lane of a job, by default one for each kind; it counts as of when the job became ready.
    """

    def __init__(
        self,
        connection: Connection,
        start: Callable[[Job[K]], asyncio.Task[None] | None],
        *,
        lane: Callable[[Job[K]], Hashable] = _by_resource,
    ) -> None:
        self._connection = connection
        self._start = start
        self._queue: WorkQueue[Job[K]] = WorkQueue(lane)
        self._wake = asyncio.Event()
        self._again: Counter[Hashable] = Counter()
        self._since: dict[Job[K], float] = {}
        """Since when each job has been in the queue without a break, in event loop time, seconds."""
        self._quick: set[Job[K]] = set()
        """The jobs that are under way and not yet slower than expected."""
        self.under_way: dict[Job[K], float] = {}
        """When each job that is being done began, in event loop time."""
        self._retry_after = RetryAfter(connection.waits)
        """The pause that the server asked for."""
        connection.waits.listeners.append(self._retry_now)

    def add(self, job: Job[K], priority: Priority) -> None:
        """Run a job as soon as possible."""
        self._since.setdefault(job, asyncio.get_running_loop().time())
        self._queue.add(job, priority)
        self._wake.set()

    def begins_at_once(self, job: Job[K]) -> bool:
        """Whether a job would begin at once if it were added: it neither waits for a time nor is under way."""
        return self._connection.up.is_set() and not self._retry_after.left and job not in self._queue

    def withdraw(self, job: Job[K]) -> None:
        """Nothing is left of a job that is under way: do not run it again."""
        self._queue.withdraw(job)

    def later(self, job: Job[K], seconds: float) -> None:
        """Run a job again after a time, jittered by up to a fifth, unless its time comes before that anyway."""
        now, due = asyncio.get_running_loop().time(), self._queue.due(job)
        if due is None or due > now + seconds:
            self.at(job, now + spread(seconds, chance()))

    def at(self, job: Job[K], when: float) -> None:
        """Run a job again at a time, in event loop time: others wait for that moment."""
        self._since.setdefault(job, asyncio.get_running_loop().time())
        if self._queue.add_at(job, when):
            self._wake.set()

    def back_off(self, job: Job[K], backoff: Backoff = RETRY) -> None:
        """Run a job again after a back-off that grows with its failures in a row."""
        self._at(job, backoff.wait(self._queue.count_failure(job), chance()))

    def succeeded(self, job: Job[K]) -> None:
        """Reset the back-off of a job."""
        self._queue.succeeded(job)

    def failures(self, job: Job[K]) -> int:
        """How often the job has failed in a row."""
        return self._queue.failures(job)

    def slow_down(self, seconds: float) -> None:
        """The server asks for a pause: send nothing for so long, then one write at a time until one succeeds."""
        self._connection.pace.throttled()
        self.pause(seconds)

    def pause(self, seconds: float) -> None:
        """Start no job for so long, and up to a fifth longer."""
        self._retry_after.obey(seconds)

    def forget(self, resource: str) -> None:
        """A kind has stopped: drop its jobs that wait."""
        self._queue.drop(lambda job: job.resource == resource)
        self._since = {job: since for job, since in self._since.items() if job.resource != resource}

    def oldest(self, resource: str, *, but: Collection[K] = ()) -> float | None:
        """Since when the oldest job of a kind has been waiting or running, some objects aside; None: there is none.

        In event loop time, seconds.
        """
        known = self._since.items()
        return min((since for job, since in known if job.resource == resource and job.key not in but), default=None)

    def waiting(self, resource: str, work: str, *, but: Collection[K] = ()) -> int:
        """How many objects of a kind still wait to be reconciled, some aside."""
        return self._queue.count(lambda job: job.resource == resource and job.work == work and job.key not in but)

    def active(self, resource: str) -> int:
        """How many objects of a kind are being reconciled, or are next."""
        return self._queue.count(lambda job: job.resource == resource, due=False)

    def next_try(self, job: Job[K]) -> float | None:
        """In how many seconds a job that waits for its time runs again; None when it does not wait."""
        due = self._queue.due(job)
        return None if due is None else max(0.0, due - asyncio.get_running_loop().time())

    async def run(self) -> None:
        """Dispatch, forever."""
        loop = asyncio.get_running_loop()
        while True:
            await self._connection.up.wait()
            self._wake.clear()
            while self._connection.up.is_set() and not self._retry_after.left:
                job = self._queue.pop(loop.time(), self._most())
                if job is None:
                    break
                again = self._queue.failures(job) > 0
                if again and self._again[self._queue.lane(job)] >= _AGAIN:
                    self._queue.add_at(job, loop.time() + _CROWDED_SECONDS)
                    self._queue.done(job)
                    continue
                self._begin(job, again=again)
            paused = self._retry_after.left
            due = loop.time() + paused if paused else self._queue.next_due()
            timer = None if due is None else loop.call_at(due, self._wake.set)
            await self._wake.wait()
            if timer is not None:
                timer.cancel()

    def _at(self, job: Job[K], seconds: float) -> None:
        self.at(job, asyncio.get_running_loop().time() + seconds)

    def _retry_now(self) -> None:
        """End the waits of all jobs."""
        self._queue.retry_now()
        self._wake.set()

    def _most(self) -> int:
        """A lane may begin one more job while fewer than so many of its jobs are under way."""
        if len(self._quick) < self._connection.pace.limit:
            return MOST
        return 1 if self._connection.pace.limit > 1 else 0  # one at a time is one of any lane

    def _begin(self, job: Job[K], *, again: bool) -> None:
        task = self._start(job)
        if task is None:
            self._queue.done(job)
            self._since.pop(job, None)
            return
        loop = asyncio.get_running_loop()
        self._again[self._queue.lane(job)] += again
        self._quick.add(job)
        self.under_way[job] = loop.time()
        slow = loop.call_later(self._connection.pace.slow, self._leave, job)
        task.add_done_callback(partial(self._ended, job, again, slow))

    def _ended(self, job: Job[K], again: bool, slow: asyncio.TimerHandle, _: asyncio.Task[None]) -> None:
        slow.cancel()
        self._leave(job)
        lane = self._queue.lane(job)
        self._again[lane] -= again
        if not self._again[lane]:
            del self._again[lane]
        self._queue.done(job)
        del self.under_way[job]
        if job not in self._queue:
            self._since.pop(job, None)

    def _leave(self, job: Job[K]) -> None:
        """The job has ended, or is slow: another job may begin."""
        self._quick.discard(job)
        self._wake.set()
