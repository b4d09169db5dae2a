"""The front door at scale: thousands of watches through it, some of the same robots' direct beside them."""

import asyncio
import contextlib
import random
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from itertools import pairwise

from tests.api import ApiError
from tests.bench.door_stage import DoorStage, Report, Watchers, door_stage, most_robots, namespace_of
from tests.bench.fleet_stage import say
from tests.bench.stage import Figure, rss_mib

_RATES = (50, 200)
_SECONDS = 30.0
_WRITERS = 64
_LAST_SECONDS = 30.0
"""How long it is waited for events that are on their way."""
_DIRECT = 500
"""Robots that watch direct, too: each event of theirs is seen on both ways."""
_PROCESSES = 2


async def figures(*, watches: int, kinds: int) -> AsyncIterator[Figure]:
    """Everything of section 8 and issue 25 that concerns the door."""
    robots = most_robots(watches // kinds, kinds)
    if robots * kinds < watches:
        say(f"{robots * kinds} watches: the limit of open files allows one HAProxy no more")
    async with door_stage(robots=robots, kinds=kinds) as on:
        name = f"{robots * kinds} watches"
        idle, server = on.door_mib(), rss_mib(on.cloud.pids()["apiserver"])
        everybody, some = list(range(robots)), list(range(min(robots, _DIRECT)))
        through = on.watching(on.door.port, on.door.ca, everybody, processes=_PROCESSES, source=2)
        beside = on.watching(on.cloud.port, on.cloud.ca_file, some, processes=1, source=2 + _PROCESSES)
        async with through as door:
            took = await door.until_open("through the door")
            yield Figure(f"{name}: opened", "s", (took,), note=f"{robots * kinds / took:.0f}/s with all requests")
            yield _memory(f"{name}: HAProxy for each", on.door_mib() - idle, robots * kinds, "<= 55")
            gained = rss_mib(on.cloud.pids()["apiserver"]) - server
            yield _memory("  the API server for each", gained, robots * kinds, "")
            async with beside as direct:
                await direct.until_open("direct beside it")
                for rate in _RATES:
                    for figure in await _latency(on, door, direct, rate, some):
                        yield figure
                for figure in await _flood(on, door, some):
                    yield figure
            for figure in await _restarts(on, door):
                yield figure
            yield await _drained(on, door)
            last = await door.report()
            yield Figure("events of foreign namespaces", "events", (float(last.foreign),), goal="0")


async def _latency(on: DoorStage, door: Watchers, direct: Watchers, rate: int, some: list[int]) -> list[Figure]:
    """Write at a rate, half of it to those who watch on both ways."""
    say(f"{rate} writes/s for {_SECONDS:g} s")
    written, there, beside = await _measured(on, door, rate, some, direct)
    one, other = ({(n, sent): taken / 1e6 for n, sent, taken in each.events} for each in (there, beside))
    more = tuple(one[key] - other[key] for key in one.keys() & other.keys())
    lost = f"{written / _SECONDS:.0f} writes/s, {written} written, {len(there.events)} seen"
    found = [
        _with_p99(f"{rate} writes/s: through the door", there.latencies, "p99 <= 50" if rate == 200 else "", lost),
        _with_p99(f"{rate} writes/s: direct", beside.latencies, "", ""),
        _with_p99("  the same event: the door over direct", more, "median <= 1", ""),
    ]
    return [each for each in found if each.samples]


async def _measured(
    on: DoorStage, door: Watchers, rate: int, some: list[int], direct: Watchers | None = None
) -> tuple[int, Report, Report]:
    """Write for a while; the writes, and what was seen through the door and direct."""
    watchers = [each for each in (door, direct) if each is not None]
    for each in watchers:
        await each.report()
    written = await _write(on, rate, some)
    seen = [Report() for _ in watchers]
    until = time.monotonic() + _LAST_SECONDS
    while True:
        for number, each in enumerate(watchers):
            more = await each.report()
            seen[number] = replace(more, events=[*seen[number].events, *more.events])
        if len(seen[0].events) >= written or time.monotonic() > until:
            return written, seen[0], seen[-1]
        await asyncio.sleep(0.5)


async def _write(on: DoorStage, rate: int, some: list[int]) -> int:
    """Change objects at a rate, or as fast as the API server lets 64 writers; how many it took."""
    began, number, taken = time.monotonic(), 0, 0

    async def writer() -> None:
        nonlocal number, taken
        while (now := time.monotonic() - began) < _SECONDS:
            if number >= now * rate:
                await asyncio.sleep(number / rate - now)
                continue
            number += 1
            robot = random.choice(some) if number % 2 else random.randrange(on.robots)
            thing = on.kinds[0].object("o", namespace=namespace_of(robot))
            with contextlib.suppress(ApiError):  # a server that is overloaded gives up some
                await on.api.patch(thing, {"spec": {"sent": time.monotonic_ns()}})
                taken += 1

    await asyncio.gather(*(writer() for _ in range(_WRITERS)))
    return taken


async def _flood(on: DoorStage, door: Watchers, some: list[int]) -> list[Figure]:
    """One robot sends what it can, and the others are written to meanwhile."""
    say("before the flood")
    cpu = [on.door_cpu()]
    _, before, _ = await _measured(on, door, _RATES[-1], some)
    cpu.append(on.door_cpu())
    say("one robot floods")
    began = time.monotonic()
    async with _flooding(on) as counts:
        _, during, _ = await _measured(on, door, _RATES[-1], some)
    cpu.append(on.door_cpu())
    asked = sum(counts.values()) / (time.monotonic() - began)
    told = ", ".join(f"{number} times {status}" for status, number in sorted(counts.items()))
    quiet = {namespace_of(on.robots - 1)}
    others = tuple(taken / 1e6 for name, _, taken in during.events if name not in quiet)
    return [
        _with_p99(f"{_RATES[-1]} writes/s: before a flood", before.latencies, "", ""),
        _with_p99(f"{_RATES[-1]} writes/s: during it, the other robots", others, "as before", told),
        Figure("  CPU of HAProxy: before, and during it", "s", (cpu[1] - cpu[0], cpu[2] - cpu[1])),
        Figure("  the robot that floods", "requests/s", (asked,), goal="20/s pass", note=told),
    ]


@contextlib.asynccontextmanager
async def _flooding(on: DoorStage) -> AsyncIterator[dict[str, int]]:
    """A robot that sends requests, as many as the door answers; the answers by their status, once it has ended."""
    counts: dict[str, int] = {}
    words = (str(on.door.port), str(on.door.ca), on.tokens[on.robots - 1])
    command = (sys.executable, "-m", "tests.bench.door_flood", *words)
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
    try:
        yield counts
        assert process.stdin is not None
        process.stdin.close()  # which ends it
        out, _ = await process.communicate()
        for line in out.decode().splitlines():
            status, number = line.split()
            counts[status] = int(number)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def _restarts(on: DoorStage, door: Watchers) -> list[Figure]:
    """Until everybody is back after HAProxy was killed, and after the API server was."""
    say("HAProxy is killed and started")
    began = time.monotonic()
    await asyncio.to_thread(on.kill_door)
    on.door.start()
    await asyncio.sleep(1.0)
    await door.until_open("after HAProxy's restart")
    haproxy = time.monotonic() - began
    say("the API server is killed and started")
    began = time.monotonic()
    await asyncio.to_thread(on.cloud.stop, "apiserver", graceful=False)
    await asyncio.sleep(1.0)
    await asyncio.to_thread(on.cloud.start)
    started = time.monotonic() - began
    await door.until_open("after the API server's restart")
    took = time.monotonic() - began
    return [
        Figure("HAProxy killed and started: all streams are back", "s", (haproxy,), goal="<= 60"),
        Figure(
            *("the API server killed and started: all streams are back", "s", (took,)),
            goal="<= 60",
            note=f"it serves after {started:.0f} s",
        ),
    ]


async def _drained(on: DoorStage, door: Watchers) -> Figure:
    """How many streams end in each second while the door is drained."""
    say("the door is drained")
    left = [(await door.report()).open]
    drained = asyncio.create_task(asyncio.to_thread(on.drain))
    while not drained.done():
        await asyncio.wait([drained], timeout=1.0)
        left.append((await door.report()).open)
    say(await drained)
    ended = tuple(float(before - after) for before, after in pairwise(left) if before > after)
    return Figure(
        *("the door drained within 30 s: streams that end in a second", "streams", ended),
        goal="spread",
        note=f"at most {max(ended, default=0):.0f} of {left[0]}, in {len(ended)} s",
    )


def _with_p99(name: str, samples: tuple[float, ...], goal: str, note: str) -> Figure:
    """A figure in milliseconds whose note has what the table has no column for."""
    p99 = f"p99 {Figure(name, 'ms', samples).percentile(0.99):.2f}" if samples else ""
    return Figure(name, "ms", samples, goal=goal, note="; ".join(filter(None, (p99, note))))


def _memory(name: str, mib: float, streams: int, goal: str) -> Figure:
    return Figure(name, "KiB", (mib * 1024 / streams,), goal=goal, note=f"{mib:.0f} MiB in all")
