"""Links that are cut, silent, and back: until the newest statuses are in the cloud."""

import asyncio
import time
from collections.abc import AsyncIterator

from tests.bench.stage import Counting, Figure, Stage, running

_CUT_SECONDS = 60
_CHANGED = 20


async def figures(on: Stage) -> AsyncIterator[Figure]:
    """A cut with a kill, with 20 and with 1,000 objects; then a connection that dies silently."""
    for count in (20, 1_000):
        await on.fresh_kind()
        agent = on.agent(f"outage-{count}-{on.resource.group}")
        async with running(agent, on.resource):
            async with Counting(on.robot, on.resource, lambda _: True) as seen:
                await on.each(count, lambda i: on.cloud.create(on.goal(f"o{i}")))
                await seen.reach(count)
            on.cloud_link.cut()
            cut = time.monotonic()
            for n in range(3):
                await on.each(_CHANGED, lambda i, n=n: on.robot.patch_status(on.goal(f"o{i}"), on.status(n)))  # type: ignore[misc]
            await agent.until(lambda s: s["outbox"]["depth"] == _CHANGED, seconds=60)
            await agent.kill()
            await asyncio.sleep(max(0.0, _CUT_SECONDS - (time.monotonic() - cut)))
            await agent.start()
            async with Counting(on.cloud, on.resource, lambda obj: obj.get("status", {}).get("n") == 2) as seen:
                on.cloud_link.restore()
                started = time.monotonic()
                await agent.until(lambda s: s["sides"]["cloud"]["state"] == "connected", seconds=90)
                connected = time.monotonic()
                done = await seen.reach(_CHANGED)
        note = f"of these {connected - started:.1f} s until the next try to connect"
        name = f"cut {_CUT_SECONDS} s, killed, restarted, link back: {_CHANGED} newest statuses, {count} objects"
        yield Figure(name, "s", (done - started,), goal="<= 2", note=note)
    await on.fresh_kind()
    agent = on.agent(f"silent-{on.resource.group}")
    async with running(agent, on.resource):
        started = time.monotonic()
        on.cloud_link.half_open()
        await agent.until(lambda s: s["sides"]["cloud"]["state"] == "offline", seconds=180)
        yield Figure("silently dead connection noticed", "s", (time.monotonic() - started,), goal="<= 60")
        on.cloud_link.restore()
