"""Many objects at once: the agent beside the bare syncer, in turn, behind the same links."""

import time
from collections.abc import AsyncIterator
from typing import Any

from tests.bench.stage import Counting, Figure, Stage, bare_syncer, cpu_seconds, medians, rss_mib, running

_ROUNDS = 3


async def figures(on: Stage, *, counts: tuple[int, ...]) -> AsyncIterator[Figure]:
    """Throughput down and up for each count, limit and ours in turn, medians compared."""
    await _warm_up(on)
    for count in counts:
        rates: dict[str, list[float]] = {"bare down": [], "bare up": [], "down": [], "up": []}
        cpu: list[float] = []
        for _ in range(_ROUNDS):
            await on.fresh_kind()
            async with bare_syncer(on):
                rates["bare down"].append(await _down(on, count))
                rates["bare up"].append(await _up(on, count))
            await on.fresh_kind()
            agent = on.agent(f"bulk-{count}-{on.resource.group}")
            async with running(agent, on.resource):
                before = cpu_seconds(agent.pid)
                rates["down"].append(await _down(on, count))
                rates["up"].append(await _up(on, count))
                cpu.append((cpu_seconds(agent.pid) - before) / count * 50)
        for direction in ("down", "up"):
            limit, ours = medians(rates[f"bare {direction}"]), medians(rates[direction])
            yield Figure(
                f"{count} objects {'cloud → robot' if direction == 'down' else '(statuses) robot → cloud'}",
                "objects/s",
                tuple(rates[direction]),
                goal=">= 80 % of the bare syncer",
                limit=limit,
                note=f"{ours / limit:.0%} of the bare syncer",
            )
        yield Figure(f"CPU of the agent per 100 writes, {count} objects", "s", tuple(cpu))


async def ten_thousand(on: Stage) -> AsyncIterator[Figure]:
    """10,000 objects on one robot: pace, memory, and live changes meanwhile."""
    await on.fresh_kind()
    agent = on.agent(f"many-{on.resource.group}")
    async with running(agent, on.resource):
        yield Figure("RSS at 0 objects", "MiB", (rss_mib(agent.pid),), goal="<= 60")
        for count, have in ((300, 0), (1_000, 300)):
            await _fill(on, have, count)
            yield Figure(f"RSS at {count} objects", "MiB", (rss_mib(agent.pid),))
        started = time.monotonic()
        async with Counting(on.robot, on.resource, lambda obj: obj["metadata"]["name"].startswith("n")) as seen:
            live: list[float] = []
            for block in range(1_000, 10_000, 1_500):
                await on.each(1_500, lambda i, block=block: on.cloud.create(on.goal(f"n{block + i}")))  # type: ignore[misc]
                live.append(await _live_change(on, "o0", x=block))
            done = await seen.reach(9_000)
        yield Figure("10,000 objects, arriving at the robot", "objects/s", (9_000 / (done - started),))
        yield Figure("live spec change while 10,000 objects arrive", "ms", tuple(live), goal="within 3 times idle")
        yield Figure("RSS at 10,000 objects", "MiB", (rss_mib(agent.pid),), goal="<= 80")
    started = time.monotonic()
    async with running(agent, on.resource):
        yield Figure("restart with 10,000 objects until in sync", "s", (time.monotonic() - started,))
        yield Figure("RSS at 10,000 objects after a restart", "MiB", (rss_mib(agent.pid),), goal="<= 80")


async def _fill(on: Stage, have: int, count: int) -> None:
    async with Counting(on.robot, on.resource, lambda _: True) as seen:
        await on.each(count - have, lambda i: on.cloud.create(on.goal(f"o{have + i}")))
        await seen.reach(count - have)


async def _live_change(on: Stage, name: str, *, x: int) -> float:
    """Milliseconds from a spec change in the cloud until the robot shows it."""
    async with Counting(on.robot, on.resource, lambda o: o["spec"]["x"] == x and o["metadata"]["name"] == name) as seen:
        started = time.monotonic()
        await on.cloud.patch(on.goal(name), {"spec": {"x": x}})
        return (await seen.reach(1) - started) * 1000


async def _down(on: Stage, count: int) -> float:
    """Create objects in the cloud; how many a second arrive on the robot."""
    async with Counting(on.robot, on.resource, lambda _: True) as seen:
        started = time.monotonic()
        await on.each(count, lambda i: on.cloud.create(on.goal(f"o{i}")))
        return count / (await seen.reach(count) - started)


async def _up(on: Stage, count: int) -> float:
    """Report a status on each copy; how many a second arrive in the cloud."""
    path = on.resource.path

    async def report(i: int) -> Any:
        body = {"status": on.status(i)}
        headers = {"Content-Type": "application/merge-patch+json"}
        where = path(namespace="default", name=f"o{i}", subresource="status")
        return await on.robot.request("PATCH", where, json=body, headers=headers)

    async with Counting(on.cloud, on.resource, lambda obj: "status" in obj) as seen:
        started = time.monotonic()
        await on.each(count, report)
        return count / (await seen.reach(count) - started)


async def _warm_up(on: Stage) -> None:
    """A cold API server does its first 300 POSTs at half its pace."""
    await on.fresh_kind()
    for api in (on.cloud, on.robot):
        await on.each(300, lambda i, api=api: api.create(on.goal(f"w{i}")))  # type: ignore[misc]
