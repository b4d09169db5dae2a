"""The bed that tests of the whole agent stand on: two real planes, a link to each, one kind, one agent process."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crsyncer.sandbox.agent_process import AgentProcess
from crsyncer.sandbox.plane import Plane
from crsyncer.sandbox.resource import Resource
from tests.api import Api
from tests.link.link import Link

SYNCER = "cr-syncer.cloudrobotics.com/"
OURS = "crsyncer.cloudrobotics.com/"
LABEL = "cloudrobotics.com/robot-name"
ROBOT = "robot-1"
SECONDS = 60.0
"""How long a test waits for what must happen: long, because machines stand still now and then, and it polls."""


def crd(
    group: str,
    *,
    plural: str = "goals",
    source: str | None = "cloud",
    filtered: str | None = None,
    subtree: str | None = None,
    status: bool = True,
    cluster: bool = False,
    versions: tuple[str, ...] = ("v1",),
    storage: str | None = None,
    schema: dict[str, Any] | None = None,
    **ours: str,
) -> dict[str, Any]:
    """A CRD as on the robot. `status`: with the subresource; `ours`: crsyncer's annotations, `_` for `-`."""
    annotations = {OURS + key.replace("_", "-"): value for key, value in ours.items()}
    for key, value in (("spec-source", source), ("filter-by-robot-name", filtered), ("status-subtree", subtree)):
        if value is not None:
            annotations[SYNCER + key] = value
    kind = plural.removesuffix("s").capitalize()
    any_object = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}", "annotations": annotations},
        "spec": {
            "group": group,
            "scope": "Cluster" if cluster else "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"},
            "versions": [
                {
                    "name": name,
                    "served": True,
                    "storage": name == (storage or versions[-1]),
                    "schema": {"openAPIV3Schema": schema or any_object},
                    **({"subresources": {"status": {}}} if status else {}),
                }
                for name in versions
            ],
        },
    }


async def eventually(check: Callable[[], Awaitable[Any]], *, seconds: float = SECONDS, what: str = "") -> Any:
    """Poll until `check` returns something true, and return it. Raises AssertionError that says what was waited for."""
    deadline = asyncio.get_running_loop().time() + seconds
    while True:
        result = await check()
        if result:
            return result
        assert asyncio.get_running_loop().time() < deadline, f"not within {seconds} s: {what or check}"
        await asyncio.sleep(0.03)


async def some_at_a_time(work: Iterable[Awaitable[Any]]) -> None:
    """Await many things, 16 at a time: a busy machine accepts no hundreds of connections at once."""
    gate = asyncio.Semaphore(16)

    async def one(thing: Awaitable[Any]) -> None:
        async with gate:
            await thing

    await asyncio.gather(*map(one, work))


@dataclass
class SideBed:
    """One plane as a user or a controller sees it: past the link, with all rights."""

    api: Api
    plane: Plane
    link: Link
    resource: Resource
    subresource: bool = True

    def goal(self, name: str, **fields: Any) -> dict[str, Any]:
        """An object of the kind under test."""
        return self.resource.object(name, **fields)

    async def create(self, name: str, **fields: Any) -> dict[str, Any]:
        """Create an object: `create("a", spec={...}, labels={...}, namespace=...)`."""
        return await self.api.create(self.goal(name, **fields))

    async def find(self, name: str, **where: str) -> dict[str, Any] | None:
        """The object now; None when there is none."""
        return await self.api.find(self.goal(name, **where))

    async def get(self, name: str, **where: str) -> dict[str, Any]:
        """The object now."""
        return await self.api.get(self.goal(name, **where))

    async def patch(self, name: str, change: dict[str, Any], **where: str) -> dict[str, Any]:
        """Merge-patch the main resource."""
        return await self.api.patch(self.goal(name, **where), change)

    async def set_status(self, name: str, status: Any, **where: str) -> dict[str, Any]:
        """Replace the whole status as a controller would; None removes it."""
        path = "/status" if self.subresource else ""
        obj = await self.get(name, **where)
        if status is None:
            change = [{"op": "remove", "path": "/status"}]
        else:
            change = [{"op": "add", "path": "/status", "value": status}]
        return await self.api.patch(obj, change, subresource=path.strip("/"))

    async def delete(self, name: str, **where: str) -> None:
        """Delete it."""
        await self.api.delete(self.goal(name, **where))

    async def names(self) -> set[str]:
        """The names of all objects of the kind, in all namespaces."""
        return {item["metadata"]["name"] for item in (await self.api.list(self.resource))["items"]}

    async def shows(self, name: str, *, seconds: float = SECONDS, **fields: Any) -> dict[str, Any]:
        """Wait until the object's top-level fields are these (None: the field is absent), and return it."""
        where = {"namespace": fields.pop("namespace")} if "namespace" in fields else {}

        async def check() -> dict[str, Any] | None:
            found = await self.find(name, **where)
            return found if found and all(found.get(k) == v for k, v in fields.items()) else None

        found: dict[str, Any] = await eventually(
            check, seconds=seconds, what=f"{self.plane.name} shows {name} with {fields}"
        )
        return found

    async def gone(self, name: str, *, seconds: float = SECONDS, **where: str) -> None:
        """Wait until the object is gone."""

        async def check() -> bool:
            return await self.find(name, **where) is None

        await eventually(check, seconds=seconds, what=f"{name} is gone from {self.plane.name}")

    async def record(self, name: str = "") -> "History":
        """Record every state of an object ("": of all of them) from here on, by watch."""
        since = (await self.api.list(self.resource))["metadata"]["resourceVersion"]
        history = History(name, self, since)
        history.task = asyncio.create_task(history.follow(self.api, self.resource, since))
        return history


@dataclass
class History:
    """Every state that a watch has shown of an object since a version of the side."""

    name: str
    side: SideBed
    since: str
    events: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    task: asyncio.Task[None] | None = None

    async def follow(self, api: Api, resource: Resource, since: str) -> None:
        async for kind, obj in api.watch(resource, since=since):
            if self.name in ("", obj["metadata"]["name"]):
                self.events.append((kind, obj))

    def statuses(self) -> list[Any]:
        """The status of each state so far, None where there was none; for those who wait for one."""
        return [obj.get("status") for kind, obj in self.events if kind != "DELETED"]

    async def complete(self) -> list[Any]:
        """The status of each state up to the present one: a watch may be behind what its server answers."""
        items = (await self.side.api.list(self.side.resource))["items"]
        versions = [int(i["metadata"]["resourceVersion"]) for i in items if self.name in ("", i["metadata"]["name"])]
        newest = max(versions, default=0)

        async def check() -> bool:
            return max((int(obj["metadata"]["resourceVersion"]) for _, obj in self.events), default=0) >= newest

        if newest > int(self.since):
            await eventually(check, what=f"the watch of {self.side.plane.name} shows version {newest}")
        return self.statuses()


@dataclass
class Bed:
    """Everything a test needs. `cloud` and `robot` are the planes past the links, `agent` the process under test."""

    group: str
    directory: Path
    cloud: SideBed
    robot: SideBed
    agent: AgentProcess

    @property
    def resource(self) -> str:
        """The name of the CRD under test."""
        return f"{self.cloud.resource.plural}.{self.group}"

    async def kind(self) -> dict[str, Any]:
        """The kind's row in `status`."""
        status = await self.agent.ask()
        assert status is not None, self.agent.tail()
        return next(k for k in status["kinds"] if k["resource"] == self.resource)

    async def start(self, *, state: str | None = "syncing") -> None:
        """Start the agent and wait until the kind is in a state (None: only until it answers)."""
        await self.agent.start()
        if state is not None:
            await self.until_kind(state)

    async def until_kind(self, state: str, *, seconds: float = SECONDS) -> dict[str, Any]:
        """Wait until the kind is in a state, and return its row."""

        def good(status: dict[str, Any]) -> bool:
            return any(k["resource"] == self.resource and k["state"] == state for k in status["kinds"])

        status = await self.agent.until(good, seconds=seconds)
        return next(k for k in status["kinds"] if k["resource"] == self.resource)

    async def resumed(self, *sides: str) -> None:
        """Wait until the kind is synced, and its watches on these sides have gone on from where they were."""

        def good(status: dict[str, Any]) -> bool:
            rows = [kind for kind in status["kinds"] if kind["resource"] == self.resource]
            return any(row["state"] == "syncing" and all(row["resumes"][side] for side in sides) for row in rows)

        await self.agent.until(good)

    async def until_side(self, side: str, state: str, *, seconds: float = SECONDS) -> None:
        """Wait until a side is in a state."""
        await self.agent.until(lambda status: status["sides"][side]["state"] == state, seconds=seconds)

    async def heard(self, *sides: SideBed) -> None:
        """Wait until the agent has seen every object that is on these sides now; it may be cut off from the others."""
        for side in sides:
            name = "cloud" if side is self.cloud else "robot"
            items = (await side.api.list(side.resource))["items"]
            version = max((int(item["metadata"]["resourceVersion"]) for item in items), default=0)

            async def check(name: str = name, version: int = version) -> bool:
                return int((await self.kind())["cursor"][name] or 0) >= version

            await eventually(check, what=f"the agent has seen version {version} of the {name}")

    async def settled(self, *, seconds: float = SECONDS) -> None:
        """Wait until the agent has seen everything that is on both planes, and has nothing left to do."""
        versions = {}
        for name, side in (("cloud", self.cloud), ("robot", self.robot)):
            items = (await side.api.list(side.resource))["items"]
            versions[name] = max((int(item["metadata"]["resourceVersion"]) for item in items), default=0)
        writes: Any = None

        async def check() -> bool:
            nonlocal writes
            status = await self.agent.ask()
            if status is None:
                return False
            kind = next((k for k in status["kinds"] if k["resource"] == self.resource), None)
            if kind is None or kind["state"] != "syncing" or any(kind["pending"].values()):
                return False
            if any(int(kind["cursor"][side] or 0) < version for side, version in versions.items()):
                return False
            before, writes = writes, status["writes"]
            return bool(before == writes)

        await eventually(check, seconds=seconds, what=f"settled; {(await self.agent.ask() or {}).get('kinds')}")

    @contextlib.asynccontextmanager
    async def stopped(self, *, kill: bool = False) -> AsyncIterator[None]:
        """The agent is down inside the block, and started again after it."""
        await (self.agent.kill() if kill else self.agent.stop())
        yield
        await self.agent.start()


def memory(pid: int, what: str = "VmRSS") -> float:
    """MiB that a process has in memory; `VmHWM`: the most that it ever had. Source: proc_pid_status(5)."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{what}:")) / 1024


def cpu_seconds(pid: int) -> float:
    """User and system time of a process. Source: proc(5), fields 14 and 15 of stat."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def writes(link: Link) -> list[str]:
    """Every request through a link that could have changed something, as `VERB path`; Kubernetes Events aside."""
    found = [r for r in link.requests if not r.path.startswith("/apis/events.k8s.io/")]
    return [f"{r.method} {r.path}" for r in found if r.method not in ("GET", "HEAD")]
