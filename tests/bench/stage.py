"""What every figure needs: planes, plain links, objects of the stated size, processes, and counters read from /proc."""

import asyncio
import contextlib
import os
import secrets
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crsyncer.sandbox.agent_process import AgentProcess
from crsyncer.sandbox.resource import Resource
from crsyncer.sandbox.two_planes import Sandbox
from tests.api import Api
from tests.link.link import Link
from tests.system.bed import crd

_TICKS = os.sysconf("SC_CLK_TCK")
_WRITERS = 16


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured figure. `samples` are in `unit`; `goal` is a sentence of the design, `limit` the bare syncer's."""

    name: str
    unit: str
    samples: tuple[float, ...]
    goal: str = ""
    limit: float | None = None
    note: str = ""

    def percentile(self, share: float) -> float:
        """A percentile of the samples, nearest rank."""
        ordered = sorted(self.samples)
        return ordered[min(len(ordered) - 1, max(0, round(share * len(ordered) + 0.5) - 1))]

    def row(self) -> dict[str, Any]:
        """As in bench.json."""
        return {
            "name": self.name,
            "unit": self.unit,
            "n": len(self.samples),
            "p50": statistics.median(self.samples),
            "p95": self.percentile(0.95),
            "p99": self.percentile(0.99),
            "goal": self.goal,
            "limit": self.limit,
            "note": self.note,
        }


@dataclass
class Stage:
    """Two planes behind plain links, and one kind of objects with a fresh group."""

    sandbox: Sandbox
    cloud: Api
    robot: Api
    cloud_link: Link
    robot_link: Link
    directory: Path
    resource: Resource
    extra: list[Resource] = field(default_factory=list)

    def goal(self, name: str, *, x: int = 1) -> dict[str, Any]:
        """An object of 1.5 KB as JSON."""
        return self.resource.object(name, spec={"x": x, "payload": "p" * 1250, "waypoints": [1, 2, 3]})

    def status(self, n: int) -> dict[str, Any]:
        """A status of 0.5 KB."""
        return {"phase": "RUNNING", "n": n, "message": "m" * 420}

    def agent(self, name: str) -> AgentProcess:
        """An agent on a state directory of its own, behind the links."""
        directory = self.directory / name
        directory.mkdir(exist_ok=True)
        return AgentProcess(
            directory,
            cloud_kubeconfig=self.cloud_link.kubeconfig(directory / "cloud.yaml"),
            robot_kubeconfig=self.robot_link.kubeconfig(directory / "robot.yaml"),
        )

    async def each(self, count: int, work: Callable[[int], Awaitable[Any]]) -> None:
        """Do something for 0 … count - 1 through 16 writers."""
        slots = asyncio.Semaphore(_WRITERS)

        async def one(i: int) -> None:
            async with slots:
                await work(i)

        await asyncio.gather(*(one(i) for i in range(count)))

    async def fresh_kind(self) -> None:
        """Go on with a new group, so that nothing of before is in the way."""
        await self.drop_kind()
        definition = crd(f"b{secrets.token_hex(3)}.example.com")
        self.resource = await self.cloud.apply_crd(definition)
        await self.robot.apply_crd(definition)

    async def drop_kind(self) -> None:
        """Delete the kinds in use on both planes."""
        for resource in (self.resource, *self.extra):
            name = f"{resource.plural}.{resource.group}"
            for api in (self.robot, self.cloud):
                body = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
                found = await api.find({**body, "metadata": {"name": name}})
                if found is not None:
                    await api.delete(found)
                    await api.until_gone(found, seconds=120)
        self.extra.clear()


@contextlib.asynccontextmanager
async def stage() -> AsyncIterator[Stage]:
    """Start planes and links; everything is gone afterwards."""
    with Sandbox.up() as sandbox, tempfile.TemporaryDirectory() as directory:
        async with contextlib.AsyncExitStack() as stack:
            cloud, robot = [
                await stack.enter_async_context(Api(p.server, ca_file=p.ca_file, token=p.admin_token))
                for p in (sandbox.cloud, sandbox.robot)
            ]
            cloud_link, robot_link = [
                await stack.enter_async_context(Link(p, http=False)) for p in (sandbox.cloud, sandbox.robot)
            ]
            nothing = Resource("none", "v1", "nones", "None")
            made = Stage(sandbox, cloud, robot, cloud_link, robot_link, Path(directory), nothing)
            yield made


@contextlib.asynccontextmanager
async def bare_syncer(on: Stage) -> AsyncIterator[int]:
    """The bare syncer as a process behind the same links; its pid."""
    sides = ((on.cloud_link, on.sandbox.cloud), (on.robot_link, on.sandbox.robot))
    arguments = [a for link, plane in sides for a in (link.server, str(plane.ca_file), plane.admin_token)]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.bench.bare", *arguments, on.resource.path()), stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    for _ in range(2):
        await process.stdout.readline()
    try:
        yield process.pid
    finally:
        process.kill()
        await process.wait()


@contextlib.asynccontextmanager
async def running(agent: AgentProcess, resource: Resource) -> AsyncIterator[AgentProcess]:
    """The agent, in sync for a kind, stopped afterwards."""
    name = f"{resource.plural}.{resource.group}"
    await agent.start()
    try:
        await agent.until(
            lambda s: any(k["resource"] == name and k["state"] == "syncing" for k in s["kinds"]), seconds=60
        )
        yield agent
    finally:
        await agent.stop()


class Counting:
    """Counts, by watch, the objects of a side that fulfil something."""

    def __init__(self, api: Api, resource: Resource, wanted: Callable[[dict[str, Any]], bool]) -> None:
        self.times: dict[str, float] = {}
        self._api, self._resource, self._wanted = api, resource, wanted
        self._more = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "Counting":
        since = (await self._api.list(self._resource, limit="1"))["metadata"]["resourceVersion"]
        self._task = asyncio.create_task(self._follow(since))
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def reach(self, count: int, *, seconds: float = 900.0) -> float:
        """Wait until so many objects were seen; the time of the last."""
        async with asyncio.timeout(seconds):
            while len(self.times) < count:
                self._more.clear()
                await self._more.wait()
        return max(self.times.values())

    async def _follow(self, since: str) -> None:
        while True:  # a server ends the watches of a kind that has just been defined
            async for kind, obj in self._api.watch(self._resource, since=since):
                since = obj["metadata"]["resourceVersion"]
                if kind != "DELETED" and obj["metadata"]["name"] not in self.times and self._wanted(obj):
                    self.times[obj["metadata"]["name"]] = time.monotonic()
                    self._more.set()


def rss_mib(pid: int) -> float:
    """Resident memory of a process."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


def cpu_seconds(pid: int) -> float:
    """User and system time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def written_bytes(pid: int) -> int:
    """Bytes that a process has had written to storage."""
    for line in Path(f"/proc/{pid}/io").read_text().splitlines():
        if line.startswith("write_bytes:"):
            return int(line.split()[1])
    return 0


def medians(samples: Iterable[float]) -> float:
    """The median."""
    return statistics.median(samples)
