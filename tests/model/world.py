"""The world in plain verbs: `world.cloud.create("a", spec={"x": 1})`, `world.cut("cloud")`, `world.settle()`.

Nothing moves between two verbs: time passes, and the agent goes on, only in `pass_time` and `settle`. The same seed and
verbs give the same history, to the last jitter, wherever `PYTHONHASHSEED` is the same.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from types import TracebackType
from typing import Any

from crsyncer.core.calls import Call
from crsyncer.core.model import Json, Side
from crsyncer.ports import Reply
from tests.model.api_server import ApiServer
from tests.model.clock import Clock
from tests.model.connection import Signal
from tests.model.disk import Disk
from tests.model.life import Complaints, Life
from tests.model.plane import GROUP, Plane
from tests.model.storage import Storage
from tests.model.weather import Fate, Rule, Weather
from tests.system.bed import crd

_SETTLE_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Write:
    """A request of the agent that could change something, when it was carried out, and what it came to."""

    time: float
    side: Side
    verb: str
    resource: str
    name: str
    call: Call
    status: int
    """HTTP."""
    before: Json | None
    after: Json | None
    """The object as it was and is."""
    late: bool = False
    """Nobody waited for it any more."""

    def __str__(self) -> str:
        return f"{self.side}: {self.verb} {self.name} ({self.status})"


class World:
    """Two clusters, the links to them, a disk, and at most one agent. `kinds`: by plural, the keywords of `bed.crd`."""

    def __init__(self, seed: int = 0, *, kinds: Mapping[str, Mapping[str, Any]] | None = None) -> None:
        self.chance = Random(seed)
        random.seed(seed)  # the agent's jitter
        self.clock = Clock()
        self.kinds = dict(kinds or {"goals": {}})
        self.writes: list[Write] = []
        self.witnesses: list[Callable[[Write], None]] = []
        """Told of every write of the agent that is carried out."""
        self.listeners: list[Callable[[Side, Call, Reply], None]] = []
        """Told of every answer that the agent is given to what it reads."""
        self.disk = Disk()
        self.boots = 1
        """How often the robot was booted: what it calls its present boot."""
        self.life: Life | None = None
        self.deaths: list[float] = []
        """When the agent was killed or stopped (Unix time, seconds)."""
        self.servers = {
            side: ApiServer(Storage(side.value, revision=revision))
            for side, revision in ((Side.CLOUD, 5000), (Side.ROBOT, 100))
        }
        self.weather = {side: Weather(self.chance) for side in Side}
        self.signals = {side: Signal(asyncio.Event()) for side in Side}
        self.cloud, self.robot = (Plane(side, self.servers[side], self.signals[side]) for side in Side)
        for plane in self.planes.values():
            for plural, keywords in self.kinds.items():
                plane.apply(crd(GROUP, plural=plural, **keywords))
        self._complaints = Complaints()

    def __enter__(self) -> "World":
        logging.getLogger("crsyncer").addHandler(self._complaints)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        logging.getLogger("crsyncer").removeHandler(self._complaints)
        if self.life is not None:
            self.life.die()
        self.clock.close()

    @property
    def planes(self) -> dict[Side, Plane]:
        """Both clusters, as their users see them."""
        return {Side.CLOUD: self.cloud, Side.ROBOT: self.robot}

    @property
    def troubles(self) -> list[str]:
        """What of the agent must never come up: errors that it logs, tasks that fail, an end that nobody asked for."""
        found = self._complaints.messages + self.clock.troubles
        if self.life is not None and not self.life.dead and self.life.task.done():
            found.append(f"the agent has ended: {self.life.task.exception()!r}")
        return found

    # Time

    def pass_time(self, seconds: float) -> None:
        """Let the agent go on for so long."""
        self.clock.pass_time(seconds)
        if self.life is not None and self.life.dead:
            self._bury()

    def settle(self, *, seconds: float = 600.0) -> None:
        """Let the agent go on until it has seen everything and has nothing left to do; raises AssertionError."""
        deadline = self.clock.now + seconds
        quiet = 0
        while quiet < 2:
            assert self.clock.now < deadline, f"not settled within {seconds} s: {self.status()}"
            writes = len(self.writes)
            self.pass_time(_SETTLE_SECONDS)
            quiet = quiet + 1 if self.idle() and writes == len(self.writes) else 0

    def idle(self) -> bool:
        """Whether the agent has seen everything that is there, and has nothing to do but wait."""
        life = self.life
        if life is None:
            return True
        engine = life.engine
        running = [row.kind for row in engine.kinds.rows.values() if row.kind is not None]
        if len(running) < len(self.kinds) or not all(link.up.is_set() for link in engine.connections.values()):
            return False
        for kind in running:
            resource = kind.policy.resource
            if any(d.active(resource) for d in engine.dispatchers.values()):
                return False
            for informer in kind.informers:
                newest = self.planes[informer.side].newest(kind.policy.plural)
                if int(informer.cursor() or 0) < newest:
                    return False
        return True

    # The agent

    def start(self) -> None:
        """Start the agent."""
        assert self.life is None, "it runs already"

        async def begin() -> Life:
            return Life(
                self.servers,
                weather=self.weather,
                signals=self.signals,
                disk=self.disk,
                chance=self.chance,
                clock=self.clock.unix,
                perform=self._perform,
                boot=f"boot-{self.boots}",
            )

        self.life = self.clock.run(begin())

    def crash(self) -> None:
        """Kill it, here and now."""
        if self.life is not None:
            self.life.die()
            self._bury()

    def crash_after(self, steps: int) -> None:
        """Kill it after so many more steps of its own: messages sent or received, things put into the store."""
        if self.life is not None:
            self.life.fuse = steps

    def stop(self) -> None:
        """End it as SIGTERM does: what was put is written."""
        if self.life is not None:
            self.life.store.close()
            self.life.die()
            self._bury()

    def lose_database(self) -> None:
        """The state directory is empty when the agent starts next."""
        assert self.life is None, "it still has the file open"
        self.disk = Disk()

    def _bury(self) -> None:
        if self.life is not None:
            self.deaths.append(self.life.died)
        self.life = None
        loop = self.clock.loop
        known = len(self.clock.troubles)
        tasks = asyncio.all_tasks(loop)
        for task in tasks:
            task.cancel()
        if tasks:
            self.clock.run(asyncio.wait(tasks))
        del self.clock.troubles[known:]  # whoever is torn out in the middle may cry

    # The links

    def cut(self, side: str) -> None:
        """Connections to a side are refused, and those there are break."""
        self.weather[Side(side)].cut = True
        self.signals[Side(side)].ring()

    def silence(self, side: str) -> None:
        """Connections to a side stand, and nothing comes through any more (half-open)."""
        self.weather[Side(side)].silent = True

    def mend(self, side: str) -> None:
        """The link to a side is as good as new."""
        self.weather[Side(side)].clear()
        self.signals[Side(side)].ring()

    def inject(self, side: str, fate: Fate | Reply, *, verb: str = "", part: str = "", times: int = 1) -> None:
        """Let this befall the next requests to a side: those of a Kubernetes verb, whose path contains a part."""

        def matches(call: Call) -> bool:
            return (not verb or call.verb == verb) and part in call.path

        self.weather[Side(side)].rules.append(Rule(matches, fate, times))

    # What came of it

    def status(self) -> dict[str, Any]:
        """What `crsyncer status --json` says; {} while no agent runs."""
        return {} if self.life is None else self.life.document()

    def _perform(self, side: Side, call: Call, *, late: bool) -> Reply:
        server = self.servers[side]
        if call.method == "GET":
            reply = server.answer(call)
            for listener in self.listeners:
                listener(side, call, reply)
            return reply
        address = server.address(call.path)
        if address is None:
            return server.answer(call)
        name = address.name or call.body["metadata"]["name"]
        objects = server.storage.of(address.kind.resource)
        where = (address.namespace, name)
        before = objects.get(where)
        reply = server.answer(call)
        verb = "status" if call.verb != "create" and address.subresource else call.verb
        after = server.storage.of(address.kind.resource).get(where)
        write = Write(self.clock.now, side, verb, address.kind.resource, name, call, reply.status, before, after, late)
        self.writes.append(write)
        for witness in self.witnesses:
            witness(write)
        self.signals[side].ring()
        return reply
