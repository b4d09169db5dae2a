"""One object at a time: latencies, bytes on the wire, start and restart, idle cost, the store's writes."""

import asyncio
import os
import sqlite3
import sys
import time
from collections.abc import AsyncIterator
from typing import Any

from crsyncer.sandbox.agent_process import AgentProcess
from crsyncer.sandbox.resource import Resource
from tests import planes
from tests.bench.stage import Counting, Figure, Stage, bare_syncer, cpu_seconds, medians, running, written_bytes
from tests.system.bed import crd

_SAMPLES = 60
_IDLE_SECONDS = 60


async def latencies(on: Stage) -> AsyncIterator[Figure]:
    """Spec down and status up, one object, idle, beside the bare syncer."""
    await on.fresh_kind()
    async with bare_syncer(on):
        await _first(on)
        spec_limit, status_limit = medians(await _specs(on)), medians(await _statuses(on))
    await on.fresh_kind()
    agent = on.agent(f"latency-{on.resource.group}")
    async with running(agent, on.resource):
        await _first(on)
        specs = await _specs(on)
        yield Figure("spec cloud → robot, idle", "ms", tuple(specs), goal="<= 20 / 60 (p50 / p95)", limit=spec_limit)
        on.cloud_link.clear()
        statuses = await _statuses(on)
        moved = on.cloud_link.bytes_up + on.cloud_link.bytes_down
        goal = "<= 40 / 100 (p50 / p95)"
        yield Figure("status robot → cloud, idle", "ms", tuple(statuses), goal=goal, limit=status_limit)
        yield Figure("one status update on the wire, its echo included", "bytes", (moved / _SAMPLES,), goal="<= 3,500")


async def starts(on: Stage) -> AsyncIterator[Figure]:
    """Cold start, `crsyncer status`, the first object, and a restart with 1,000 unchanged objects."""
    await on.fresh_kind()
    await on.cloud.create(on.goal("first"))
    firsts, statuses = [], []
    for n in range(3):
        agent = on.agent(f"start-{n}-{on.resource.group}")
        if n:
            await on.robot.delete(on.goal("first"))
        async with Counting(on.robot, on.resource, lambda _: True) as seen:
            started = time.monotonic()
            await agent.start(ready=False)
            firsts.append(await seen.reach(1) - started)
        for _ in range(3):
            started = time.monotonic()
            await agent.crsyncer("status")
            statuses.append(time.monotonic() - started)
        await agent.stop()
    yield Figure("start → first object on the robot", "s", tuple(firsts), goal="<= 1.5")
    yield Figure("crsyncer status", "s", tuple(statuses), goal="<= 0.25")
    yield Figure("crsyncer --help", "s", tuple([await _help() for _ in range(5)]), goal="< 0.25")
    async for figure in _restart(on):
        yield figure


async def _restart(on: Stage) -> AsyncIterator[Figure]:
    await on.fresh_kind()
    agent = on.agent(f"restart-{on.resource.group}")
    async with running(agent, on.resource):
        async with Counting(on.robot, on.resource, lambda _: True) as seen:
            await on.each(1_000, lambda i: on.cloud.create(on.goal(f"o{i}")))
            await seen.reach(1_000)
        await agent.until(lambda s: s["outbox"]["depth"] == 0 and s["kinds"][0]["pending"]["spec"] == 0)
    for link in (on.cloud_link, on.robot_link):
        link.clear()
    started = time.monotonic()
    async with running(agent, on.resource):
        taken = time.monotonic() - started
        status = await agent.status()
        moved = [link.bytes_up + link.bytes_down for link in (on.cloud_link, on.robot_link)]
        writes = sum(sum(side.values()) for side in status["writes"].values())
        yield Figure("restart with 1,000 unchanged objects: writes", "writes", (writes,), goal="0")
        yield Figure("restart with 1,000 unchanged objects: bytes, cloud", "bytes", (moved[0],), goal="<= 6,000")
        yield Figure("restart with 1,000 unchanged objects: bytes, robot", "bytes", (moved[1],))
        yield Figure(
            "restart with 1,000 unchanged objects: until in sync", "s", (taken,), goal="<= 2 (1 after start-up)"
        )
        async for figure in _relist(on, agent):
            yield figure
        async for figure in _store(on, agent):
            yield figure
        async for figure in _idle(on, agent):
            yield figure


async def _relist(on: Stage, agent: AgentProcess) -> AsyncIterator[Figure]:
    """A 410 made as it happens: the API server restarts while the link is cut, and has forgotten what was before."""
    on.cloud_link.cut()
    await agent.until(lambda s: s["sides"]["cloud"]["state"] == "offline", seconds=90)
    await on.cloud.patch(on.goal("o1"), {"metadata": {"annotations": {"touched": "1"}}})
    planes.compact(on.sandbox.cloud)
    on.sandbox.cloud.restart("apiserver")
    await on.cloud.until_served(on.resource)
    on.cloud_link.clear()
    relists = (await agent.status())["kinds"][0]["relists"]["cloud"]

    def relisted(status: dict[str, Any]) -> bool:
        kind = status["kinds"][0]
        return bool(kind["relists"]["cloud"] > relists and kind["state"] == "syncing" and not kind["pending"]["spec"])

    on.cloud_link.restore()
    await agent.until(relisted, seconds=120)
    moved = on.cloud_link.bytes_up + on.cloud_link.bytes_down
    note = "all bytes since the link was back, probes and TLS included; one object had changed"
    yield Figure("relist after 410, per unchanged object", "bytes", (moved / 1_000,), goal="<= 120", note=note)


async def _store(on: Stage, agent: AgentProcess) -> AsyncIterator[Figure]:
    """What 1,000 status changes under load cost the disk."""
    before, started = written_bytes(agent.pid), time.monotonic()
    path = on.resource.path

    async def report(i: int) -> Any:
        where = path(namespace="default", name=f"o{i}", subresource="status")
        headers = {"Content-Type": "application/merge-patch+json"}
        return await on.robot.request("PATCH", where, json={"status": on.status(i)}, headers=headers)

    async with Counting(on.cloud, on.resource, lambda obj: "status" in obj) as seen:
        await on.each(1_000, report)
        await seen.reach(1_000)
    await asyncio.sleep(1.0)  # the last group commit
    taken = time.monotonic() - started
    figure = (written_bytes(agent.pid) - before) / 1_000
    note = f"1,000 changes in {taken:.1f} s, sqlite {sqlite3.sqlite_version}"
    yield Figure("store: written per status change under load", "bytes", (figure,), goal="<= 6,144", note=note)


async def _idle(on: Stage, agent: AgentProcess) -> AsyncIterator[Figure]:
    """CPU over a minute, 1,000 objects, five kinds."""
    for n in range(4):
        definition = crd(f"i{n}.{on.resource.group}")
        on.extra.append(Resource.of_crd(definition))
        await on.cloud.apply_crd(definition)
        await on.robot.apply_crd(definition)
    await agent.until(lambda s: [k["state"] for k in s["kinds"]].count("syncing") == 5, seconds=60)
    before = cpu_seconds(agent.pid)
    await asyncio.sleep(_IDLE_SECONDS)
    taken = cpu_seconds(agent.pid) - before
    yield Figure(f"CPU, idle, 1,000 objects, 5 kinds, over {_IDLE_SECONDS} s", "s", (taken,), goal="<= 0.3")


async def _help() -> float:
    started = time.monotonic()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "crsyncer.cli.main", "run", "--help"), stdout=asyncio.subprocess.DEVNULL, env=os.environ
    )
    await process.wait()
    return time.monotonic() - started


async def _first(on: Stage) -> None:
    async with Counting(on.robot, on.resource, lambda _: True) as seen:
        await on.cloud.create(on.goal("one"))
        await seen.reach(1)


async def _specs(on: Stage) -> list[float]:
    samples = []
    for n in range(100, 100 + _SAMPLES):
        async with Counting(on.robot, on.resource, lambda obj, n=n: obj["spec"]["x"] == n) as seen:  # type: ignore[misc]
            started = time.monotonic()
            await on.cloud.patch(on.goal("one"), {"spec": {"x": n}})
            samples.append((await seen.reach(1) - started) * 1000)
    return samples


async def _statuses(on: Stage) -> list[float]:
    samples = []
    for n in range(_SAMPLES):
        async with Counting(on.cloud, on.resource, lambda obj, n=n: obj.get("status", {}).get("n") == n) as seen:  # type: ignore[misc]
            started = time.monotonic()
            await on.robot.patch_status(on.goal("one"), on.status(n))
            samples.append((await seen.reach(1) - started) * 1000)
    return samples
