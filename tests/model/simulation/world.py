"""The world in plain verbs: `world.cloud.create("a", spec={"x": 1})`, `world.cut("cloud")`, `world.settle()`.

Nothing moves between two verbs: time passes, and the agent goes on, only in `pass_time` and `settle`. The same seed and
verbs give the same history, to the last jitter, wherever `PYTHONHASHSEED` is the same.
"""

import asyncio
import logging
import math
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from types import TracebackType
from typing import Any

from crsyncer.core.content.annotations import SPEC_SOURCE
from crsyncer.core.model import Json, Side
from crsyncer.core.requests.calls import Call
from crsyncer.ports import Reply
from tests.model.simulation.api_server import CRDS, ApiServer
from tests.model.simulation.clock import Clock
from tests.model.simulation.connection import Signal
from tests.model.simulation.disk import Disk
from tests.model.simulation.journal import Journal
from tests.model.simulation.judge import Judge
from tests.model.simulation.life import AgentSettings, Complaints, Life
from tests.model.simulation.plane import GROUP, NAMESPACE, Plane
from tests.model.simulation.storage import Storage
from tests.model.simulation.weather import Fate, Rule, Weather
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
    """Two clusters, the links to them, a disk, and at most one agent. `kinds`: by plural, the keywords of `bed.crd`.

    `beside` another world is that of another robot: one cloud and one clock, and everything else is its own.
    Each world is judged: it raises AssertionError at its end if the agent did what it must never do (`judge`), or no
    request met a fault that was injected, unless faults come `by_chance`.
    """

    def __init__(
        self,
        seed: int = 0,
        *,
        kinds: Mapping[str, Mapping[str, Any]] | None = None,
        settings: AgentSettings = AgentSettings(),  # noqa: B008 - it is frozen
        beside: "World | None" = None,
        by_chance: bool = False,
    ) -> None:
        self.settings = settings
        self._beside = beside
        self.chance = Random(seed)
        if beside is None:
            random.seed(seed)  # the agent's jitter
        self.clock: Clock = Clock() if beside is None else beside.clock
        self.journal = Journal()
        self.kinds: dict[str, Mapping[str, Any]] = dict(kinds or ({"goals": {}} if beside is None else beside.kinds))
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
        self.weather = {side: Weather(self.chance) for side in Side}
        self.robot = self._plane(Side.ROBOT, settings.robot, revision=100)
        self.cloud: Plane = self._plane(Side.CLOUD, "cloud", revision=5000) if beside is None else beside.cloud
        self.servers = {side: plane.server for side, plane in self.planes.items()}
        self.signals = {side: plane.signal for side, plane in self.planes.items()}
        self._complaints = Complaints()
        self._by_chance = by_chance
        self.judge = Judge(self)

    def __enter__(self) -> "World":
        if self._beside is None:
            logging.getLogger("crsyncer").addHandler(self._complaints)
        return self

    def _plane(self, side: Side, name: str, *, revision: int) -> Plane:
        server = ApiServer(Storage(name, revision=revision, now=lambda: self.clock.now))
        mapped = self.settings.namespaces.on(side) if self.settings.namespaces.mapped else ()
        plane = Plane(side, server, Signal(asyncio.Event()), home=(*mapped, NAMESPACE)[0])
        if mapped:
            plane.make_namespace(plane.home)
        for plural, keywords in self.kinds.items():
            plane.apply(crd(GROUP, plural=plural, **keywords))
        return plane

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        wrong = [*self.judge.violations, *self.judge.lost_statuses()] if kind is None else []
        if not self._by_chance:
            wrong += [
                f"no request to the {side} met it: {each}" for side in Side for each in self.weather[side].unmet()
            ]
        logging.getLogger("crsyncer").removeHandler(self._complaints)
        if self.life is not None:
            self.life.die()
            self._bury()
        if self._beside is None:
            self.clock.close()
        if kind is None and wrong:
            raise AssertionError("\n".join(wrong))

    @property
    def planes(self) -> dict[Side, Plane]:
        """Both clusters, as their users see them."""
        return {Side.CLOUD: self.cloud, Side.ROBOT: self.robot}

    @property
    def troubles(self) -> list[str]:
        """What of the agent must never come up: errors that it logs, tasks that fail, an end that nobody asked for.

        What an agent beside this one logs is among it.
        """
        found = self._complaints.messages + self.clock.troubles
        if self.life is not None and not self.life.dead and self.life.task.done():
            found.append(f"the agent has ended: {self.life.task.exception()!r}")
        return found

    # Time

    def begin(self, *names: str, source: str = "cloud", seconds: float | None = None, **fields: Any) -> None:
        """Create objects upstream, start the agent, and let it go on for so long, or settle."""
        self._create(names, source, fields)
        self.start()
        self._go_on(seconds)

    def add(self, *names: str, source: str = "cloud", seconds: float | None = None, **fields: Any) -> None:
        """Create objects upstream, and let the agent go on for so long, or settle."""
        self._create(names, source, fields)
        self._go_on(seconds)

    def _create(self, names: Iterable[str], source: str, fields: Mapping[str, Any]) -> None:
        for name in names:
            self.planes[Side(source)].create(name, **{"spec": {"x": 1}, **fields})

    def edit(self, name: str, *, source: str = "cloud", seconds: float | None = None, **fields: Any) -> None:
        """Change an object upstream, and let the agent go on for so long, or settle."""
        self.planes[Side(source)].set(name, **fields)
        self._go_on(seconds)

    def remove(self, *names: str, source: str = "cloud", seconds: float | None = None, **where: str) -> None:
        """Delete objects upstream, and let the agent go on for so long, or settle."""
        for name in names:
            self.planes[Side(source)].delete(name, **where)
        self._go_on(seconds)

    def report(self, name: str, status: Any, *, source: str = "cloud", seconds: float | None = None, **of: str) -> None:
        """Write the status of a copy, as its controller does, and let the agent go on for so long, or settle."""
        self.planes[Side(source).other].set_status(name, status, **of)
        self._go_on(seconds)

    def _go_on(self, seconds: float | None) -> None:
        self.settle() if seconds is None else self.pass_time(seconds)

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
        return self.life is None or self.life.is_idle(self.planes, self._annotated())

    def at_rest(self) -> bool:
        """Whether the agent is idle, and whatever it does next follows from something new."""
        return self.idle() and (self.life is None or not self.life.has_plans())

    def all_run(self) -> bool:
        """Whether every kind of this world is synced at the moment."""
        rows = self.life.engine.kinds.entries.values() if self.life is not None else ()
        return sum(row.kind is not None for row in rows) == len(self.kinds)

    def _annotated(self) -> Iterator[str]:
        """The CRDs that the robot has and that say where specs come from."""
        for (_, name), found in self.servers[Side.ROBOT].storage.of(CRDS).items():
            annotations = found["metadata"].get("annotations") or {}
            if annotations.get(SPEC_SOURCE) and "deletionTimestamp" not in found["metadata"]:
                yield name

    # The agent

    def start(self) -> None:
        """Start the agent."""
        assert self.life is None, "it runs already"

        async def begin() -> Life:
            life = Life(
                self.servers,
                weather=self.weather,
                signals=self.signals,
                disk=self.disk,
                chance=self.chance,
                clock=self.clock.unix,
                perform=self._perform,
                journal=self.journal,
                settings=self.settings,
                boot=f"boot-{self.boots}",
            )
            self.judge.starts(self.disk.known(self.clock.now))
            return life

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

    @contextmanager
    def down(self, when: bool = True, *, kill: bool = False) -> Iterator[None]:
        """What happens inside happens while the agent is stopped, or killed; `when`: or else while it runs."""
        if when:
            self.crash() if kill else self.stop()
        yield
        if when:
            self.start()

    def lose_database(self) -> None:
        """The state directory is empty when the agent starts next."""
        self.put_back(Disk())

    def put_back(self, backup: Disk) -> None:
        """The state directory is a backup's (`disk.copied()`) when the agent starts next."""
        assert self.life is None, "it still has the file open"
        self.disk = backup.copied()
        self.judge.forget()

    def order(self, command: str, **given: Any) -> Json:
        """Have the agent carry out an operator's command (`console.control`); its answer. Raises SyncError."""
        assert self.life is not None, "nobody is there to take orders"
        self.judge.ordered(command)
        return self.clock.run(self.life.order({"command": command, **given}))

    def _bury(self) -> None:
        life, self.life = self.life, None
        if life is not None:
            self.deaths.append(life.died)
            self.clock.end(list(life.tasks))

    # The links

    def cut(self, side: str, *, seconds: float = 0.0) -> None:
        """Connections to a side are refused, and those there are break; for so long up to now."""
        self.weather[Side(side)].cut = True
        self.signals[Side(side)].ring()
        if seconds:
            self.pass_time(seconds)

    def connect(self, side: str) -> None:
        """A side that was cut can be reached again; whatever else befalls its requests goes on."""
        self.weather[Side(side)].cut = False
        self.signals[Side(side)].ring()

    def silence(self, side: str) -> None:
        """Connections to a side stand, and nothing comes through any more (half-open)."""
        self.weather[Side(side)].silent = True

    def mend(self, side: str) -> None:
        """The link to a side is as good as new."""
        self.weather[Side(side)].clear()
        self.signals[Side(side)].ring()

    def heal(self, side: str, *, seconds: float | None = None) -> None:
        """Mend the link to a side, and let the agent go on for so long, or settle."""
        self.mend(side)
        self._go_on(seconds)

    def inject(
        self,
        side: str,
        fate: Fate | Reply,
        *,
        verb: str = "",
        part: str = "",
        times: float = 1,
        seconds: float = math.inf,
        standing: bool = False,
    ) -> Rule:
        """Let this befall the next requests to a side: those of a Kubernetes verb, whose path contains a part.

        So many of them, and only for so long: `times=math.inf, seconds=60` is every one for a minute. The world fails
        at its end when no request has met it, unless it is `standing`: how that server is, rather than a fault.
        """

        def matches(call: Call) -> bool:
            return (not verb or call.verb == verb) and part in call.path

        return self.weather[Side(side)].add(Rule(matches, fate, times, self.clock.now + seconds, standing=standing))

    def lose_paths(self, side: str) -> Rule:
        """A gateway in front of a side knows no path any more, and ends the watches; until the rule is removed."""
        rule = Rule(lambda _: True, Reply(404, {}, "404 page not found"), 1_000_000)
        self.weather[Side(side)].ends = 1
        return self.weather[Side(side)].add(rule, first=True)

    # What came of it

    def status(self) -> dict[str, Any]:
        """What `crsyncer status --json` says; {} while no agent runs."""
        return {} if self.life is None else self.life.document(self.clock.now)

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
        self.judge.writes(True)
        reply = server.answer(call)
        self.judge.writes(False)
        verb = "status" if call.verb != "create" and address.subresource else call.verb
        after = server.storage.of(address.kind.resource).get(where)
        write = Write(self.clock.now, side, verb, address.kind.resource, name, call, reply.status, before, after, late)
        self.writes.append(write)
        self.judge.look(write)
        for witness in self.witnesses:
            witness(write)
        self.signals[side].ring()
        return reply
