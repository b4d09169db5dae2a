"""One process of the controller in the simulated world, from its start to its end, whatever the end is."""

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import copy_context
from random import Random
from typing import Any, Protocol

from crsyncer.core.model import Side
from crsyncer.core.requests.calls import Call
from crsyncer.ports import Reply
from tests.fleet_model.standstill import Standstill
from tests.model.simulation.api_server import ApiServer
from tests.model.simulation.clock import OWNED, WRAPPED, Tasks
from tests.model.simulation.connection import Connection, Signal
from tests.model.simulation.journal import Journal
from tests.model.simulation.life import Hand
from tests.model.simulation.weather import Weather

Work = Callable[["Process"], Coroutine[Any, Any, None]]
"""What a process does, from its start on; SIGTERM cancels it."""


class Perform(Protocol):
    """How a request of a process is carried out, in front of witnesses."""

    def __call__(self, process: "Process", call: Call, *, late: bool) -> Reply:
        """`late`: nobody waits for the answer any more."""
        ...


class Process:
    """Begins with `__init__`; ends with `terminate`, `die`, by itself, or when its `fuse` has burnt down.

    `clock` is its machine's, in Unix seconds: `skew` puts it wrong.
    """

    def __init__(
        self,
        name: str,
        identity: str,
        work: Work,
        *,
        server: ApiServer,
        weather: Weather,
        signal: Signal,
        chance: Random,
        clock: Callable[[], float],
        perform: Perform,
        journal: Journal,
    ) -> None:
        self.name = name
        self.identity = identity
        """What it calls itself in the Lease: no other process does, and none of another start."""
        self.chance = chance
        self.skew = 0.0
        """By how many seconds its clock is ahead."""
        self.still = Standstill()
        self.tasks: Tasks = {}
        """What it has begun and not ended."""
        self.dead = False
        self.buried = False
        """It is dead, and its tasks are being ended."""
        self.fuse: int | None = None
        """After so many more messages it dies."""
        self.leads: Callable[[], bool] = lambda: False
        """Whether it would let a write pass now."""
        self.parts: dict[str, Any] = {}
        """What a test wants to look at inside."""
        self._clock = clock
        self._hand = Hand(Side.CLOUD, self, lambda _, call, *, late: perform(self, call, late=late))
        self.cluster = Connection(Side.CLOUD, server, weather=weather, signal=signal, wire=self._hand, journal=journal)
        context = copy_context()
        context.run(OWNED.set, self.tasks)
        context.run(WRAPPED.set, self.still.wrap)
        self.task = asyncio.get_running_loop().create_task(work(self), context=context)

    def clock(self) -> float:
        """Unix time, in seconds, as its machine has it."""
        return self._clock() + self.skew

    @property
    def ended(self) -> BaseException | None:
        """The error with which it ended by itself; None: it did not."""
        done = self.task.done() and not self.task.cancelled()
        return self.task.exception() if done else None

    async def passes(self) -> None:
        """Return if it still lives; else never."""
        if self.fuse is not None and not self.dead:
            self.fuse -= 1
            if self.fuse <= 0:
                self.die()
        if self.buried:
            raise asyncio.CancelledError
        if self.dead:
            await asyncio.get_running_loop().create_future()

    def stand_still(self) -> None:
        """SIGSTOP: what it had sent arrives all the same."""
        self.still.begin()
        self._hand.arrive_all()

    def go_on(self) -> None:
        """SIGCONT."""
        self.still.end()

    def die(self) -> None:
        """Be killed: nothing gets out any more."""
        if not self.dead:
            self.dead = True
            self.still.end()
            self._hand.let_go(self.chance)
