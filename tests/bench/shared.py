"""Shared mode at scale: one source for all robots of a root and a shard, whose statuses are objects of their own."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

from crsyncer.adapters.retries import until_async
from crsyncer.core.accounts.robot_account import own_marks
from crsyncer.core.content.annotations import SHARD_LABEL, SHARED
from crsyncer.core.content.object_content import digest
from crsyncer.sandbox.fleet_planes import fleet_planes
from crsyncer.sandbox.plane import Plane
from crsyncer.sandbox.resource import Resource
from tests.api import Api, Object
from tests.bench.door_stage import Watchers, most_robots, watching
from tests.bench.fleet_stage import GROUP, PLACEMENT, Controller, FleetStage, robot_name, running, say, writes
from tests.bench.stage import Figure, cpu_seconds, rss_mib
from tests.system.bed import crd
from tests.system.conftest import FLEET_CRDS

_SHARD, _SOURCE = "b", "zone"
_EDITS = 5
_WATCHED_WRITES = 20
_POLL_SECONDS = 0.5
_PATIENCE = 600.0
_COLLECTOR = Resource.of_crd(FLEET_CRDS["statuscollectors"])
_COMBINED = Resource.of_crd(FLEET_CRDS["combinedstatuses"])
_STATUSES = Resource.of_crd(FLEET_CRDS["robotobjectstatuses"])
_PHASES = {
    "groupBy": [{"name": "phase", "def": "returned.status.phase"}],
    "combinedFields": [{"name": "robots", "type": "COUNT"}],
}


class SharedStage(FleetStage):
    """A source that all robots share; every other one of them is at the shard."""

    def __init__(self, root: Api, shard: Api, planes: tuple[Plane, Plane], directory: Path, *, robots: int) -> None:
        super().__init__(root, planes[0], directory, robots=robots)
        self.shard = shard
        self.flags = ("--shard", f"{_SHARD}={planes[1].kubeconfig(directory / 'shard.kubeconfig')}")
        self.uids: dict[Api, str] = {}
        """Of the source at the root, and of its copy at the shard."""

    async def prepare(self) -> None:
        """Make kinds, Robots, source, collector and placement."""
        for api in (self.api, self.shard):
            await asyncio.gather(*map(api.apply_crd, [*FLEET_CRDS.values(), crd(GROUP)]))
        await self.each("Robots", self._robot)
        await self.api.create(self.goal(_SOURCE))
        await self.api.create(_COLLECTOR.object("phases", spec=_PHASES))
        ready = {"readyWhen": "returned.status.phase == 'Ready'", "statusCollectors": ["phases"]}
        await self._place("all", [_SOURCE], mode="Shared", robotSelectors=[{}], **ready)

    def home(self, i: int) -> Api:
        """The API server of a robot."""
        return self.shard if i % 2 else self.api

    async def until_shared(self, one: Controller) -> None:
        """Wait until the source is marked and the shard has its copy."""
        for api in (self.api, self.shard):
            found = await _until(one, lambda api=api: api.find(self.goals.object(_SOURCE)), _is_shared)  # type: ignore[misc]
            self.uids[api] = found["metadata"]["uid"]

    async def status(self, i: int) -> None:
        """What the agent of a robot says of what it has."""
        api, robot = self.home(i), robot_name(i)
        name = digest([f"{self.goals.plural}.{GROUP}", "default", _SOURCE])
        source = {"group": GROUP, "resource": self.goals.plural, "namespace": "default", "name": _SOURCE}
        spec = {"source": source | {"uid": self.uids[api]}, "returned": {"phase": "Ready"}}
        made = _STATUSES.object(f"{name}-{robot}", spec=spec)
        made["metadata"] |= own_marks(robot)
        await api.create(made)

    async def ours(self) -> tuple[int, int]:
        """The writes to sources and copies so far, at the root and at the shard."""
        return await writes(self.api, GROUP), await writes(self.shard, GROUP)

    async def told(self) -> int:
        """The writes of what the controller tells at the root: Decisions, the placement's status, CombinedStatus."""
        group = _STATUSES.group
        return await writes(self.api, group) - await writes(self.api, group, _STATUSES.plural)

    async def _robot(self, i: int) -> None:
        labels = {SHARD_LABEL: _SHARD} if self.home(i) is self.shard else {}
        metadata = {"name": robot_name(i), "namespace": "default", "labels": labels}
        await self.api.create(
            {"apiVersion": "registry.cloudrobotics.com/v1alpha1", "kind": "Robot", "metadata": metadata}
        )


async def figures(*, robots: int) -> AsyncIterator[Figure]:
    """What issue 25 shows of mode Shared, and what one write costs to an object that everybody watches."""
    watchers = most_robots(robots, 1)  # which also has the API servers open as many files as they may
    async with _stage(robots) as on:
        async with running(on) as one:
            await on.until_shared(one)
            for figure in [*await _returned(on, one), *await _edited(on, one)]:
                yield figure
        before = await on.ours()
        async with running(on) as one:
            await one.until_settled()
            yield Figure("restart with the statuses: writes", "writes", (_more(before, await on.ours()),), goal="0")
            yield Figure("  until it has nothing to do", "s", (one.settled_seconds,))
            yield Figure("  RSS", "MiB", (rss_mib(one.pid),), goal="<= 250")
        for figure in await _watched(on, watchers):
            yield figure


async def _returned(on: SharedStage, one: Controller) -> list[Figure]:
    """All robots tell what they have, and the controller counts them."""
    await one.until_settled()
    ours, told, cpu, began = await on.ours(), await on.told(), cpu_seconds(one.pid), time.monotonic()
    await on.each("RobotObjectStatuses", on.status)
    written = time.monotonic()
    await _until(one, lambda: on.api.get(PLACEMENT.object("all")), lambda found: _ready(found) == on.robots)
    counted = time.monotonic()
    await _until(one, lambda: on.api.list(_COMBINED, namespace="default"), lambda found: _combined(found) == on.robots)
    combined = time.monotonic()
    await one.until_settled()
    name, used = f"{on.robots} RobotObjectStatuses", cpu_seconds(one.pid) - cpu
    return [
        Figure(f"{name}, by a bare writer", "writes/s", (on.robots / (written - began),)),
        Figure("  from the last one until the placement counts all", "s", (counted - written,)),
        Figure("  and until the CombinedStatus does", "s", (combined - written,)),
        Figure("  writes to source and copy", "writes", (_more(ours, await on.ours()),), goal="0"),
        Figure("  writes of Decisions, statuses and CombinedStatus", "writes", (float(await on.told() - told),)),
        Figure("  CPU of the controller for each", "ms", (used / on.robots * 1000,)),
        Figure("  RSS of the controller", "MiB", (rss_mib(one.pid),), goal="<= 250"),
    ]


async def _edited(on: SharedStage, one: Controller) -> list[Figure]:
    """The source is edited, several times."""
    taken, at_root, at_shard = [], [], []
    for number in range(_EDITS):
        before, word, began = await on.ours(), f"edit-{number}", time.monotonic()
        await on.edit(_SOURCE, word)
        await _until(
            one,
            lambda: on.shard.get(on.goals.object(_SOURCE)),
            lambda found, word=word: found["spec"]["edit"] == word,  # type: ignore[misc]
            interval=0.02,
        )
        taken.append((time.monotonic() - began) * 1000)
        await asyncio.sleep(2.0)  # for writes that must not come
        after = await on.ours()
        at_root.append(float(after[0] - before[0] - 1))
        at_shard.append(float(after[1] - before[1]))
    return [
        Figure(f"an edit for {on.robots} robots: writes of ours at the root", "writes", tuple(at_root), goal="0"),
        Figure("  at the shard", "writes", tuple(at_shard), goal="1"),
        Figure("  until the shard has it", "ms", tuple(taken)),
    ]


async def _watched(on: SharedStage, watchers: int) -> list[Figure]:
    """One object is written that everybody watches at the root."""
    kind = f"apis/{GROUP}/{on.goals.version}/NAMESPACE/{on.goals.plural}"
    lines = [f"default {on.cloud.admin_token}"] * watchers
    async with watching(
        on.directory, lines, [kind], port=on.cloud.port, ca=on.cloud.ca_file, processes=2, source=2
    ) as everybody:
        took = await everybody.until_open("one object")
        await everybody.report()
        cpu, latencies, whole = on.server_seconds(), list[float](), list[float]()
        for _ in range(_WATCHED_WRITES):
            await on.api.patch(on.goals.object(_SOURCE), {"spec": {"sent": time.monotonic_ns()}})
            seen = await _all_seen(everybody, watchers)
            latencies += seen
            whole.append(max(seen))
        used = (on.server_seconds() - cpu) / _WATCHED_WRITES * 1000
    name = f"one write to an object that {watchers} watch"
    p99 = Figure(name, "ms", tuple(latencies)).percentile(0.99)
    return [
        Figure(f"{watchers} watches of one object: opened", "s", (took,)),
        Figure(name, "ms", tuple(latencies), note=f"p99 {p99:.0f}, {len(latencies)} events"),
        Figure("  until the last one has it", "ms", tuple(whole)),
        Figure("  CPU of API server and etcd for a write", "ms", (used,)),
    ]


async def _all_seen(everybody: Watchers, watchers: int) -> list[float]:
    """The latencies of one write, in milliseconds, once all have seen it, or half a minute is over."""
    seen: list[float] = []
    until = time.monotonic() + 30.0
    while len(seen) < watchers and time.monotonic() < until:
        await asyncio.sleep(_POLL_SECONDS)
        seen += (await everybody.report()).latencies
    return seen


async def _until(
    one: Controller,
    ask: Callable[[], Awaitable[Any]],
    is_good: Callable[[Any], bool],
    *,
    interval: float = _POLL_SECONDS,
) -> Any:
    """Ask until the answer is good; RuntimeError where it is not for long, or the controller has ended."""

    async def asked() -> Any:
        assert one.pid
        return await ask()

    if not is_good(found := await until_async(asked, is_good, seconds=_PATIENCE, interval=interval)):
        raise RuntimeError(f"after {_PATIENCE:g} s: {str(found)[:500]}")
    return found


def _is_shared(found: Object | None) -> bool:
    return found is not None and SHARED in (found["metadata"].get("annotations") or {})


def _ready(placement: Any) -> int:
    return int(((placement.get("status") or {}).get("counts") or {}).get("ready") or 0)


def _combined(found: Any) -> int:
    """The robots that the CombinedStatus counts as Ready."""
    rows = [row for each in found["items"] for result in each.get("results") or () for row in result.get("rows") or ()]
    return sum(int(row[1]["value"]) for row in rows if row[0]["value"] == "Ready")


def _more(before: tuple[int, int], after: tuple[int, int]) -> float:
    return float(sum(after) - sum(before))


@contextlib.asynccontextmanager
async def _stage(robots: int) -> AsyncIterator[SharedStage]:
    with fleet_planes(shards=(_SHARD,), progress=say) as planes:
        root, shard = planes.cloud, planes.shards[_SHARD]
        async with (
            Api(root.server, ca_file=root.ca_file, token=root.admin_token) as api,
            Api(shard.server, ca_file=shard.ca_file, token=shard.admin_token) as api_b,
        ):
            on = SharedStage(api, api_b, (root, shard), planes.directory, robots=robots)
            await on.prepare()
            yield on
