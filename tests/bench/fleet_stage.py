"""What the fleet's figures need: a cloud of its own with Robots, a controller, and what the API server counts."""

import asyncio
import contextlib
import re
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp

from crsyncer.adapters.retries import until_async
from crsyncer.sandbox.fleet_planes import fleet_planes
from crsyncer.sandbox.fleet_process import controller
from crsyncer.sandbox.free_ports import free_ports
from crsyncer.sandbox.plane import Plane
from crsyncer.sandbox.program import Program
from crsyncer.sandbox.resource import NAMESPACE, Resource
from tests.api import Api, Object
from tests.bench.bare import Side
from tests.bench.stage import cpu_seconds
from tests.system.bed import crd
from tests.system.conftest import FLEET_CRDS

PLACEMENT = Resource.of_crd(FLEET_CRDS["robotplacements"])
GROUP = "bench.example.com"
PROPERTIES = "crsyncer-properties"
SOURCES = tuple(f"g{number}" for number in range(10))
OTHER = "other"
OTHERS_ROBOTS = 10
_WRITERS = 16
_TOLD_SECONDS = 10.0
_START_SECONDS = 300.0
_WRITTEN = re.compile(r"^apiserver_request_total\{([^}]*)\} (\S+)$", re.MULTILINE)
_VERBS = ("POST", "PUT", "PATCH", "APPLY", "DELETE")
_PLACE = re.compile(rb'"name":"[^"]+","namespace":"robot-[^"]+"')
_VERSION = re.compile(rb'"resourceVersion":"(\d+)"')
_WORD = re.compile(rb'"(?:edit|speed|bench\.example\.com/round)":"([^"]+)"')


def say(what: str) -> None:
    """Tell how far it is; the table is on standard output."""
    print(f"  {time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)


class FleetStage:
    """A cloud with robots, ten sources for all of them, and one more for a few."""

    def __init__(self, api: Api, cloud: Plane, directory: Path, *, robots: int) -> None:
        self.api = api
        self.cloud = cloud
        self.directory = directory
        self.robots = robots
        self.goals = Resource(GROUP, "v1", "goals", "Goal")
        self.kubeconfig = cloud.kubeconfig(directory / "fleet.kubeconfig")
        self.port = free_ports(1)[0]
        self.url = f"http://127.0.0.1:{self.port}"
        self.flags: tuple[str, ...] = ()
        """What the controller is given beside its address."""

    @property
    def replicas(self) -> int:
        """How many there are when all are made."""
        return self.robots * len(SOURCES) + min(OTHERS_ROBOTS, self.robots)

    async def prepare(self) -> None:
        """Make kinds, namespaces, Robots, sources and placements. The controller makes the replicas."""
        definitions = [*FLEET_CRDS.values(), crd(GROUP, filtered="true")]
        await asyncio.gather(*map(self.api.apply_crd, definitions))
        await self.api.ensure_namespace(PROPERTIES)
        await self.each("namespaces", self._namespace)
        await self.each("Robots", self._robot)
        for name in (*SOURCES, OTHER):
            await self.api.create(self.goal(name))
        step = {"path": "/spec/speed", "property": {"name": "speed"}}
        await self._place("all", SOURCES, robotSelectors=[{}], overrides=[{"steps": [step]}])
        names = [robot_name(i) for i in range(min(OTHERS_ROBOTS, self.robots))]
        await self._place("few", [OTHER], robotNames=names)

    def goal(self, name: str, *, edit: str = "none") -> Object:
        """A source of 2.3 KB."""
        spec = {"edit": edit, "payload": "p" * 2100, "waypoints": [{"x": i, "y": 0.5} for i in range(5)]}
        return self.goals.object(name, spec=spec)

    async def edit(self, name: str, word: str) -> None:
        """Edit a source."""
        await self.api.patch(self.goals.object(name), {"spec": {"edit": word}})

    async def lines(self, since: str) -> AsyncIterator[bytes]:
        """The events of all goals after a resourceVersion, as they come, until the server ends the watch."""
        query = {"watch": "true", "resourceVersion": since}
        timeout = aiohttp.ClientTimeout(total=None)
        side = Side(self.cloud.server, str(self.cloud.ca_file), self.cloud.admin_token)
        async with (
            side.open(0) as session,
            session.get(self.goals.path(), params=query, timeout=timeout, read_bufsize=1 << 22) as reply,
        ):
            reply.raise_for_status()
            async for line in reply.content:
                yield line

    async def writes(self) -> int:
        """How many writes to goals the API server has answered so far with a success."""
        return await writes(self.api, GROUP)

    def server_seconds(self) -> float:
        """The CPU time of API server and etcd."""
        pids = self.cloud.pids()
        return cpu_seconds(pids["apiserver"]) + cpu_seconds(pids["store"])

    async def each(self, what: str, work: Callable[[int], Awaitable[Any]]) -> None:
        """Do something for each robot through 16 writers, and tell how far it is."""
        left, told = iter(range(self.robots)), time.monotonic()

        async def writer() -> None:
            nonlocal told
            for i in left:
                await work(i)
                if time.monotonic() - told > _TOLD_SECONDS:
                    told = time.monotonic()
                    say(f"{what}: {i} of {self.robots}")

        await asyncio.gather(*(writer() for _ in range(_WRITERS)))
        say(f"{what}: {self.robots}")

    async def _namespace(self, i: int) -> None:
        await self.api.create(NAMESPACE.object(f"robot-{robot_name(i)}"))

    async def _robot(self, i: int) -> None:
        metadata = {"name": robot_name(i), "namespace": "default", "labels": {"speed": "1"}}
        await self.api.create(
            {"apiVersion": "registry.cloudrobotics.com/v1alpha1", "kind": "Robot", "metadata": metadata}
        )

    async def _place(self, name: str, names: Any, **spec: Any) -> None:
        resources = [{"group": GROUP, "resource": "goals", "names": list(names)}]
        made = PLACEMENT.object(name, spec={"resources": resources, **spec})
        await self.api.create(made)


class Controller:
    """One run of the controller, and what is measured of its start."""

    def __init__(self, on: FleetStage) -> None:
        self._on = on
        flags = ("--listen", f"127.0.0.1:{on.port}", *on.flags)
        self.program: Program = controller(on.directory, kubeconfig=on.kubeconfig, flags=flags)
        self.ready_seconds = 0.0
        self.settled_seconds = 0.0

    @property
    def pid(self) -> int:
        """Its process."""
        if not self.program.running:
            raise RuntimeError(f"the controller has ended:\n{self.program.tail()}")
        return self.program.pid

    async def until_ready(self) -> None:
        """Wait until it leads and knows all inputs: a standby is ready, too."""
        started = time.monotonic()
        async with aiohttp.ClientSession() as session:
            await until_async(lambda: self._leads(session), seconds=_START_SECONDS)
            await until_async(lambda: self.answer(session, "/readyz"), seconds=_START_SECONDS)
        self.ready_seconds = time.monotonic() - started

    async def until_known(self, replicas: int) -> None:
        """Wait until it knows so many replicas. It is not asked often: an answer about 10,000 robots takes 70 ms."""
        told = time.monotonic()
        async with aiohttp.ClientSession() as session:
            while (count := await self.gauge(session, "crsyncer_fleet_replicas")) < replicas:
                await asyncio.sleep(max(0.2, replicas / 50_000))
                if time.monotonic() - told > _TOLD_SECONDS:
                    told = time.monotonic()
                    say(f"replicas: {count:.0f} of {replicas}")

    async def until_settled(self) -> None:
        """Wait until it has nothing to do: it takes less than a fifth of a core for three seconds."""
        started, quiet_since = time.monotonic(), 0.0
        while True:
            before, at = cpu_seconds(self.pid), time.monotonic()
            await asyncio.sleep(0.5)
            if cpu_seconds(self.pid) - before > 0.1:
                quiet_since = 0.0
            elif not quiet_since:
                quiet_since = at
            elif time.monotonic() - quiet_since > 3.0:
                self.settled_seconds = self.ready_seconds + quiet_since - started
                return

    async def _leads(self, session: aiohttp.ClientSession) -> bool:
        return b"crsyncer_fleet_leader 1.0" in await self.answer(session, "/metrics")

    async def answer(self, session: aiohttp.ClientSession, path: str) -> bytes:
        """What it serves at a path; nothing where it is not ready, or does not serve yet."""
        assert self.pid
        with contextlib.suppress(aiohttp.ClientError):
            async with session.get(self._on.url + path) as reply:
                body = await reply.read()
                return body or b"ok" if reply.status == 200 else b""
        return b""

    async def gauge(self, session: aiohttp.ClientSession, name: str) -> float:
        """A metric without labels, or the sum over its labels."""
        text = (await self.answer(session, "/metrics")).decode()
        return sum(float(each) for each in re.findall(rf"^{name}(?:{{[^}}]*}})? (\S+)$", text, re.MULTILINE))


@contextlib.asynccontextmanager
async def running(on: FleetStage) -> AsyncIterator[Controller]:
    """A controller that is ready; it gives the Lease back at the end, so that the next one leads at once."""
    one = Controller(on)
    one.program.start()
    try:
        await one.until_ready()
        yield one
    finally:
        if one.program.running:
            await one.program.stop()


class Following:
    """Tells, by watch, which replicas have a word in them. Decodes nothing: the API server needs the CPU."""

    def __init__(self, on: FleetStage) -> None:
        self._seen: dict[str, set[bytes]] = defaultdict(set)
        self._last: dict[str, float] = {}
        self._on = on
        self._more = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "Following":
        since = (await self._on.api.list(self._on.goals, limit="1"))["metadata"]["resourceVersion"]
        self._task = asyncio.create_task(self._follow(since))
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def reach(self, word: str, count: int) -> float:
        """Wait until so many replicas have it; the time of the last."""
        assert self._task is not None
        told = time.monotonic()
        while len(self._seen[word]) < count:
            if self._task.done():
                self._task.result()
            self._more.clear()
            await self._more.wait()
            if time.monotonic() - told > _TOLD_SECONDS:
                told = time.monotonic()
                say(f"{word}: {len(self._seen[word])} of {count}")
        return self._last[word]

    async def _follow(self, since: str) -> None:
        try:
            while True:  # a server ends its watches now and then
                async for line in self._on.lines(since):
                    if (version := _VERSION.search(line)) is not None:
                        since = version[1].decode()
                    if (place := _PLACE.search(line)) is None:
                        continue
                    for word in map(bytes.decode, _WORD.findall(line)):
                        if place[0] not in self._seen[word]:
                            self._seen[word].add(place[0])
                            self._last[word] = time.monotonic()
                            self._more.set()
        finally:
            self._more.set()


@contextlib.asynccontextmanager
async def bare_writer(on: FleetStage, source: str, number: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """The bare writer with its patches made, waiting for the word."""
    arguments = (on.cloud.server, str(on.cloud.ca_file), on.cloud.admin_token, on.goals.path(), source, number)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.bench.bare_writer", *arguments), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        said = await process.stdout.readline()
        assert said == f"ready {on.robots}\n".encode(), said
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


@contextlib.asynccontextmanager
async def fleet_stage(*, robots: int) -> AsyncIterator[FleetStage]:
    """Start a cloud and make everything but the replicas; all is gone afterwards."""
    with fleet_planes(progress=say) as planes:
        cloud = planes.cloud
        async with Api(cloud.server, ca_file=cloud.ca_file, token=cloud.admin_token) as api:
            on = FleetStage(api, cloud, planes.directory, robots=robots)
            await on.prepare()
            yield on


async def writes(api: Api, group: str, plural: str = "") -> int:
    """How many writes to objects of a group, or of one kind in it, a server has answered so far with a success."""
    status, text = await api.request("GET", "/metrics")
    assert status == 200, text
    total = 0.0
    for found, value in _WRITTEN.findall(text):
        words = dict(re.findall(r'(\w+)="([^"]*)"', found))
        is_asked = words["group"] == group and words["resource"] == (plural or words["resource"])
        if is_asked and words["verb"] in _VERBS and words["code"].startswith("2"):
            total += float(value)
    return int(total)


def robot_name(i: int) -> str:
    """The name of a robot."""
    return f"r{i}"
