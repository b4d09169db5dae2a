"""What the door's figures need: an API server with confined robots, a door before it, and those who watch."""

import asyncio
import contextlib
import json
import os
import resource
import signal
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crsyncer.sandbox.fleet_planes import fleet_planes
from crsyncer.sandbox.plane import Plane
from crsyncer.sandbox.resource import NAMESPACE, Resource
from tests.api import Api
from tests.bench.fleet_stage import say
from tests.bench.stage import cpu_seconds, rss_mib
from tests.delivery.command_line import crsyncer
from tests.door.conftest import ROBOTS_PATH, robot
from tests.door.open_door import Kept, OpenDoor
from tests.system.bed import crd
from tests.system.conftest import FLEET_CRDS

GROUP = "door.example.com"
PLURALS = ("goals", "errands")
_RIGHTS = "crsyncer:bench"
_ACCOUNT = "crsyncer"
_WRITERS = 16
_TOLD_SECONDS = 10.0
_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_FILES_LEFT = 200
"""Files that HAProxy needs beside those of its streams."""


@dataclass(slots=True)
class Report:
    """What watchers have seen since they were last asked."""

    open: int = 0
    of: int = 0
    foreign: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    events: list[tuple[str, int, int]] = field(default_factory=list)

    @property
    def latencies(self) -> tuple[float, ...]:
        """Milliseconds from the write to the robot, one for each event."""
        return tuple(taken / 1e6 for _, _, taken in self.events)


class Watchers:
    """Processes of `tests.bench.door_watchers`."""

    def __init__(self, processes: Sequence[asyncio.subprocess.Process]) -> None:
        self._processes = processes

    async def report(self) -> Report:
        """Of all of them."""
        found = Report()
        for each in self._processes:
            assert each.stdin is not None
            assert each.stdout is not None
            each.stdin.write(b"report\n")
            one: dict[str, Any] = json.loads(await each.stdout.readline())
            found.open, found.of = found.open + one["open"], found.of + one["of"]
            found.foreign += one["foreign"]
            found.events += map(tuple, one["events"])
            for why, number in one["refused"].items():
                found.refused[why] = found.refused.get(why, 0) + number
        return found

    async def until_open(self, what: str, *, seconds: float = 600.0) -> float:
        """Wait until every stream is open; the seconds that it took, or `seconds` where they were too few."""
        started = told = time.monotonic()
        while True:
            now = await self.report()
            if now.open == now.of:
                say(f"{what}: {now.open} streams")
                return time.monotonic() - started
            if time.monotonic() - started > seconds:
                say(f"{what}: {now.open} of {now.of} streams after {seconds:g} s, {now.refused}; going on")
                return seconds
            if time.monotonic() - told > _TOLD_SECONDS:
                told = time.monotonic()
                say(f"{what}: {now.open} of {now.of} streams, refused {now.refused}")
            await asyncio.sleep(0.2)


class DoorStage:
    """A cloud with confined robots, and the door before it."""

    def __init__(self, api: Api, cloud: Plane, directory: Path, *, robots: int, kinds: int) -> None:
        self.api = api
        self.cloud = cloud
        self.directory = directory
        self.robots = robots
        self.kinds = [Resource(GROUP, "v1", plural, plural[:-1].capitalize()) for plural in PLURALS[:kinds]]
        self.door = OpenDoor(directory / "front", cloud.kubeconfig(directory / "door.kubeconfig"))
        self.tokens: list[str] = [""] * robots

    async def prepare(self) -> None:
        """Make kinds, namespaces, accounts with their rights, objects, Robots and tokens."""
        definitions = [crd(GROUP, plural=each.plural, filtered="true") for each in self.kinds]
        await asyncio.gather(*map(self.api.apply_crd, [FLEET_CRDS["inventory"], *definitions]))
        rules = [{"apiGroups": [GROUP], "resources": list(PLURALS), "verbs": ["get", "list", "watch"]}]
        await self._post(f"{_RBAC}/clusterroles", {"metadata": {"name": _RIGHTS}, "rules": rules})
        told = time.monotonic()
        left = iter(range(self.robots))

        async def writer() -> None:
            nonlocal told
            for i in left:
                await self._robot(i)
                if time.monotonic() - told > _TOLD_SECONDS:
                    told = time.monotonic()
                    say(f"robots: {i} of {self.robots}")

        await asyncio.gather(*(writer() for _ in range(_WRITERS)))
        say(f"robots: {self.robots}")

    async def _robot(self, i: int) -> None:
        name, namespace = robot_name(i), namespace_of(i)
        place = f"/api/v1/namespaces/{namespace}/serviceaccounts"
        await self.api.create(NAMESPACE.object(namespace))
        await self._post(place, {"metadata": {"name": _ACCOUNT}})
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": _RIGHTS}
        subjects = [{"kind": "ServiceAccount", "name": _ACCOUNT, "namespace": namespace}]
        binding = {"metadata": {"name": _RIGHTS}, "roleRef": role, "subjects": subjects}
        await self._post(f"{_RBAC}/namespaces/{namespace}/rolebindings", binding)
        for kind in self.kinds:
            await self.api.create(kind.object("o", namespace=namespace, spec={"payload": "p" * 400}))
        await self._post(ROBOTS_PATH, robot(name))
        made = await self._post(f"{place}/{_ACCOUNT}/token", {"spec": {"expirationSeconds": 7200}})
        self.tokens[i] = made["status"]["token"]

    async def _post(self, path: str, body: Any) -> Any:
        while True:
            status, answer = await self.api.request("POST", path, json=body)
            if status in (200, 201, 409):
                return answer
            if status not in (404, 429):  # 404: the kind has just been defined
                raise RuntimeError(f"POST {path}: {status} {answer}")
            await asyncio.sleep(0.2)

    def watching(
        self, port: int, ca: Path, robots: Sequence[int], *, processes: int, source: int
    ) -> AbstractAsyncContextManager[Watchers]:
        """Have robots watch at a port, by so many processes from addresses of their own."""
        kinds = [f"apis/{kind.group}/{kind.version}/NAMESPACE/{kind.plural}" for kind in self.kinds]
        lines = [f"{namespace_of(i)} {self.tokens[i]}" for i in robots]
        return watching(self.directory, lines, kinds, port=port, ca=ca, processes=processes, source=source)

    def workers(self) -> list[int]:
        """The processes of HAProxy that serve."""
        assert self.door.haproxy is not None
        pid = self.door.haproxy.pid
        return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]

    def kill_door(self) -> None:
        """End HAProxy as a power cut would."""
        for pid in self.workers():
            os.kill(pid, signal.SIGKILL)
        assert self.door.haproxy is not None
        self.door.haproxy.stop(graceful=False)

    def drain(self) -> str:
        """End HAProxy's streams as before a stop; what the command says."""
        done = crsyncer("door", "drain", "--directory", self.door.directory, "--socket", self.door.socket)
        return str(done.stdout or done.stderr).strip()

    def door_mib(self) -> float:
        """The memory of HAProxy's workers."""
        return sum(map(rss_mib, self.workers()))

    def door_cpu(self) -> float:
        """The seconds of CPU that HAProxy's workers have taken."""
        return sum(map(cpu_seconds, self.workers()))


@contextlib.asynccontextmanager
async def watching(
    directory: Path, lines: Sequence[str], kinds: Sequence[str], *, port: int, ca: Path, processes: int, source: int
) -> AsyncIterator[Watchers]:
    """Have those watch at a port of whom `tests.bench.door_watchers` reads these lines, by so many processes."""
    started: list[asyncio.subprocess.Process] = []
    try:
        for number in range(processes):
            file = directory / f"robots-{source + number}"
            file.write_text("".join(f"{line}\n" for line in lines[number::processes]))
            words = ("127.0.0.1", str(port), str(ca), f"127.0.0.{source + number}", str(file), *kinds)
            command = (sys.executable, "-m", "tests.bench.door_watchers", *words)
            pipe = asyncio.subprocess.PIPE
            limit = 1 << 26  # a report is one line
            started.append(await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, limit=limit))
        yield Watchers(started)
    finally:
        for each in started:
            with contextlib.suppress(ProcessLookupError):
                each.kill()
            await each.wait()


def most_robots(wanted: int, kinds: int) -> int:
    """How many robots one HAProxy of this machine can serve: a stream takes two of its files."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return min(wanted, (hard - _FILES_LEFT) // 2 // kinds)


def robot_name(i: int) -> str:
    """The name of a robot."""
    return f"r{i}"


def namespace_of(i: int) -> str:
    """Its namespace."""
    return f"robot-{robot_name(i)}"


@contextlib.asynccontextmanager
async def door_stage(*, robots: int, kinds: int) -> AsyncIterator[DoorStage]:
    """Start a cloud and an open door, and make the robots; all is gone afterwards."""
    with fleet_planes(progress=say) as planes:
        cloud = planes.cloud
        async with Api(cloud.server, ca_file=cloud.ca_file, token=cloud.admin_token) as api:
            on = DoorStage(api, cloud, planes.directory, robots=robots, kinds=kinds)
            await on.prepare()
            await asyncio.to_thread(on.door.configure)
            on.door.start()
            kept = Kept(on.door)
            try:
                await asyncio.to_thread(kept.wait_ready)
                yield on
            finally:
                await asyncio.to_thread(kept.stop)
                await asyncio.to_thread(on.door.stop)
