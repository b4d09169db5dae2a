"""One life of the agent: the real engine on adapters that obey the world, from start to stop, or to a sudden end."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextvars import copy_context
from dataclasses import dataclass
from functools import cache, partial
from random import Random
from typing import Any, Protocol, TypeVar

from crsyncer.adapters.expressions import Expressions
from crsyncer.adapters.vault import Vault
from crsyncer.console.operators.control_commands import ControlCommands
from crsyncer.console.screens.gather import gather
from crsyncer.core.kinds.namespaces import EVERYWHERE, Namespaces
from crsyncer.core.model import Json, Side
from crsyncer.core.requests.calls import Call
from crsyncer.engine.engine import Engine
from crsyncer.engine.reporting.event_publisher import EventPublisher
from crsyncer.engine.reporting.robot_reporter import RobotReporter
from crsyncer.ports import Reply
from crsyncer.runtime.listwatch import Phase
from tests.model.simulation.api_server import ApiServer
from tests.model.simulation.clock import OWNED, Tasks
from tests.model.simulation.connection import Connection, Signal
from tests.model.simulation.disk import Disk, Memory
from tests.model.simulation.journal import Journal
from tests.model.simulation.plane import Plane
from tests.model.simulation.weather import Weather

T = TypeVar("T")
ROBOT = "robot-1"


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """What an agent is told at its start. Times are in seconds."""

    robot: str = ROBOT
    namespaces: Namespaces = EVERYWHERE
    watch_timeout: int = 300
    audit_interval: float = 6 * 3600
    name: str = "crsyncer"
    """What it calls itself to API servers."""
    require_confinement: bool = False
    kubernetes_events: bool = False
    """Whether it writes Kubernetes Events, as the real agent does."""
    reports: bool = False
    """Whether it reports to a fleet, as the real agent does."""
    report_namespace: str | None = "default"
    expressions: Callable[[], Expressions] = Expressions
    """The languages of policies."""
    trust: tuple[str, ...] = ()
    digest_key: bytes = b"key"


class Perform(Protocol):
    """How a request is carried out, in front of witnesses."""

    def __call__(self, side: Side, call: Call, *, late: bool) -> Reply:
        """`late`: nobody waits for the answer any more."""
        ...


class Owner(Protocol):
    """A process that lives in the world."""

    chance: Random

    async def passes(self) -> None:
        """Return if it still lives; else never."""
        ...


class Hand:
    """What one life holds of one server (connection.Wire)."""

    def __init__(self, side: Side, life: Owner, perform: Perform) -> None:
        self._side = side
        self._life = life
        self._perform = perform
        self._sent: list[Call] = []
        self._answers: list[tuple[Call, Reply]] = []
        """What came to a process that stands still."""

    async def passes(self) -> None:
        """Return if the agent still lives; else never."""
        await self._life.passes()

    def perform(self, call: Call, *, late: bool = False) -> Reply:
        """Have the server carry a request out, in front of witnesses."""
        for number, (asked, reply) in enumerate(self._answers):
            if asked is call:
                del self._answers[number]
                return reply
        if call in self._sent:
            self._sent.remove(call)
        return self._perform(self._side, call, late=late)

    def arrive_all(self) -> None:
        """The process stands still: what it had sent arrives, and it finds the answers when it goes on."""
        sent, self._sent = self._sent, []
        self._answers += [(call, self._perform(self._side, call, late=False)) for call in sent]

    def outlives(self, call: Call) -> None:
        """A request is on its way that may arrive although the agent has died."""
        if call.method != "GET":
            self._sent.append(call)

    def abandon(self, call: Call, seconds: float) -> None:
        """Nobody waits for a request any more: if it is on its way, it arrives in so many seconds, or never."""
        if call in self._sent and self._life.chance.random() < 0.5:
            asyncio.get_running_loop().call_later(seconds, self._arrive, call)
        elif call in self._sent:
            self._sent.remove(call)

    def _arrive(self, call: Call) -> None:
        if call in self._sent:
            self.perform(call, late=True)

    def let_go(self, chance: Random) -> None:
        """The agent has died: what it had sent arrives, or does not."""
        sent, self._sent = self._sent, []
        for call in sent:
            if chance.random() < 0.5:
                self._perform(self._side, call, late=True)


class Tally:
    """Counts what happened (ports.Observer)."""

    def __init__(self) -> None:
        self.relists: Counter[tuple[str, str, str]] = Counter()
        self.resumes: Counter[tuple[str, str]] = Counter()

    def relist(self, connection: str, resource: str, reason: str) -> None:
        """A full list was started."""
        self.relists[connection, resource, reason] += 1

    def resume(self, connection: str, resource: str) -> None:
        """A watch went on from a cursor."""
        self.resumes[connection, resource] += 1

    def event(self, connection: str, resource: str, event_type: str) -> None:
        """Not counted."""

    def write(self, side: Side, resource: str, verb: str, result: str) -> None:
        """Not counted: the world's journal has what really happened."""

    def noop(self) -> None:
        """Not counted."""

    def latency(self, direction: str, seconds: float) -> None:
        """Not counted."""

    def reconnect(self, connection: str, reason: str) -> None:
        """Not counted."""


class Life:
    """Begins with `__init__`; ends with `stop`, `die`, or by itself when its `fuse` has burnt down."""

    def __init__(
        self,
        servers: Mapping[Side, ApiServer],
        *,
        weather: Mapping[Side, Weather],
        signals: Mapping[Side, Signal],
        disk: Disk,
        chance: Random,
        clock: Callable[[], float],
        perform: Perform,
        journal: Journal,
        settings: AgentSettings,
        boot: str,
    ) -> None:
        self.settings = settings
        self.tasks: Tasks = {}
        """What it has begun and not ended."""
        self.dead = False
        self.died = 0.0
        """When (Unix time, seconds)."""
        self.fuse: int | None = None
        """After so many more steps (a message, a put) it dies."""
        self.tally = Tally()
        self._disk = disk
        self.chance = chance
        self._clock = clock
        self._since = clock()
        self.store = Memory(disk, self, chance)
        self._hands = {side: Hand(side, self, perform) for side in Side}
        self.clusters = {
            side: Connection(
                side,
                servers[side],
                weather=weather[side],
                signal=signals[side],
                wire=self._hands[side],
                journal=journal,
            )
            for side in Side
        }
        self.engine = Engine(
            self.clusters,
            store=self.store,
            observer=self.tally,
            robot=settings.robot,
            namespaces=settings.namespaces,
            watch_timeout=settings.watch_timeout,
            audit_interval=settings.audit_interval,
            clock=clock,
            report_changed=lambda: None,
            expressions=settings.expressions,
            trust=settings.trust,
            vault=cache(partial(Vault, self.store)),
            digest_key=lambda: settings.digest_key,
            boot=boot,
            name=settings.name,
            require_confinement=settings.require_confinement,
            report_namespace=settings.report_namespace,
        )
        self.commands = ControlCommands(self.engine.kinds, self.engine.context)
        self._loop = asyncio.get_running_loop()
        self._context = copy_context()
        self._context.run(OWNED.set, self.tasks)
        self.task = self.begin(self.engine.run())
        if settings.kubernetes_events:
            self.begin(EventPublisher(self.engine, instance=settings.name).run())
        if settings.reports:
            reporter = RobotReporter(
                self.engine,
                robot=settings.robot,
                namespaces=settings.namespaces,
                report_namespace=settings.report_namespace,
                health=lambda: str(self.document(self._loop.time())["health"]),
            )
            self.begin(reporter.run())

    def begin(self, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        """Have this agent do something; it ends with the agent."""
        return self._loop.create_task(work, context=self._context)

    def is_idle(self, planes: Mapping[Side, Plane], annotated: Iterable[str]) -> bool:
        """Whether it has seen everything that the clusters have, and has nothing to do but wait.

        `annotated`: the CRDs that say where specs come from. A request that is under way may be followed by a write,
        however long its link makes that take.
        """
        engine = self.engine
        rows = engine.kinds.entries
        begun = all(name in rows and (rows[name].kind or rows[name].error) for name in annotated)
        if not begun or not all(link.up.is_set() for link in engine.connections.values()):
            return False
        if any(cluster.asking for cluster in self.clusters.values()):
            return False
        for kind in [row.kind for row in rows.values() if row.kind is not None]:
            resource = kind.policy.resource
            if any(d.active(resource) for d in engine.dispatchers.values()):
                return False
            for informer in kind.informers:
                newest, phase = planes[informer.side].newest(resource), informer.listwatch.phase
                cursor = informer.state.cursor()
                expired = cursor is None and phase is Phase.WATCHING
                if int(cursor or 0) < newest or expired or phase in (Phase.WAITING, Phase.LISTING):
                    return False
        return True

    def has_plans(self) -> bool:
        """Whether something waits that it has begun.

        That is what it tries again after a back-off, and a create without an answer, whose copy may still come (S10).
        What is held, or rejected for good, waits for a human.
        """
        kinds, now = (row.kind for row in self.engine.kinds.entries.values()), self._loop.time()
        return any(any(k.cache.creates) or any(k.pending_ages(now).values()) for k in kinds if k is not None)

    def order(self, request: Json) -> "asyncio.Task[Json]":
        """Have the agent carry out what its control socket was asked for."""
        return self.begin(self.commands.answer(request))

    def step(self) -> None:
        """Something happens of which a crash may be the next thing."""
        if self.fuse is not None and not self.dead:
            self.fuse -= 1
            if self.fuse <= 0:
                self.die()

    async def passes(self) -> None:
        """Return if the agent still lives; else never."""
        self.step()
        if self.dead:
            await asyncio.get_running_loop().create_future()

    def die(self) -> None:
        """Be killed: from here on nothing gets out any more, and memory is worth nothing."""
        if not self.dead:
            self.dead = True
            self.died = self._clock()
            self._disk.crash(self.chance)
            for hand in self._hands.values():
                hand.let_go(self.chance)

    def document(self, now: float) -> Json:
        """What `crsyncer status --json` would say; `now` is event loop time, in seconds."""
        state = "degraded" if self._disk.refuses else "ok"
        return gather(
            self.engine,
            robot=self.settings.robot,
            pid=1,
            since=self._since,
            store={"path": "memory", "bytes": 0, "schema": None, "state": state},
            loop_time=now,
        )


class Complaints(logging.Handler):
    """Collects what the agent logs as an error: each is a defect, or of one."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """See logging.Handler."""
        self.messages.append(self.format(record))
