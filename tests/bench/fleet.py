"""The fleet controller at scale: one cloud, ten sources for each robot, beside the bare writer in turn."""

import asyncio
import time
from collections.abc import AsyncIterator

import aiohttp

from crsyncer.sandbox.resource import CONFIG_MAP
from tests.bench.fleet_stage import (
    OTHER,
    OTHERS_ROBOTS,
    PROPERTIES,
    SOURCES,
    Controller,
    FleetStage,
    Following,
    bare_writer,
    fleet_stage,
    robot_name,
    running,
    say,
)
from tests.bench.stage import Figure, cpu_seconds, medians, rss_mib

_ROUNDS = 3
_ASKED = 10
_EDITED_ROBOTS = 5


class _Samples:
    """What the rounds have measured."""

    def __init__(self) -> None:
        self.bare: list[float] = []
        self.bare_cpu: list[float] = []
        self.bare_server_cpu: list[float] = []
        self.ours: list[float] = []
        self.writes: list[float] = []
        self.cpu: list[float] = []
        self.server_cpu: list[float] = []
        self.others: list[float] = []
        self.restart_writes: list[float] = []
        self.ready: list[float] = []
        self.settled: list[float] = []
        self.rss: list[float] = []
        self.rss_after: list[float] = []

    def figures(self, robots: int) -> list[Figure]:
        """As figures; those that no round has come to are missing."""
        replicas = robots * len(SOURCES)
        limit = medians(self.bare) if self.bare else None
        note = f"{medians(self.ours) / limit:.0%} of the bare writer" if limit and self.ours else ""
        restart = f"restart with {replicas} replicas"
        found = [
            ("the bare writer", "writes/s", self.bare, "", None, ""),
            ("  its CPU for each write", "ms", self.bare_cpu, "", None, ""),
            ("  CPU of API server and etcd for each of its writes", "ms", self.bare_server_cpu, "", None, ""),
            (f"one of 10 sources edited, {robots} robots", "writes/s", self.ours, ">= 80 %", limit, note),
            ("  its writes", "writes", self.writes, f"{robots}", None, ""),
            ("  CPU of the controller for each write", "ms", self.cpu, "", None, ""),
            ("  CPU of API server and etcd for each write", "ms", self.server_cpu, "", None, ""),
            ("  another's edit meanwhile, until its 10 robots have it", "s", self.others, "< 5", None, ""),
            (f"{restart}: writes", "writes", self.restart_writes, "0", None, ""),
            (f"{restart}: until /readyz", "s", self.ready, "<= 60", None, ""),
            (f"{restart}: until it has nothing to do", "s", self.settled, "", None, ""),
            (f"{restart}: RSS", "MiB", self.rss, "<= 250", None, ""),
            ("  RSS after the edit", "MiB", self.rss_after, "<= 250", None, ""),
        ]  # fmt: skip
        return [Figure(n, u, tuple(s), goal=g, limit=bare, note=w) for n, u, s, g, bare, w in found if s]


async def figures(*, robots: int, minutes: float) -> AsyncIterator[Figure]:
    """Everything of section 8 that concerns the controller. Ends after so many minutes, with what there is."""
    samples = _Samples()
    try:
        async with asyncio.timeout(minutes * 60), fleet_stage(robots=robots) as on:
            async with running(on) as one:
                yield await _created(on, one)
            for number in range(_ROUNDS):
                say(f"round {number + 1} of {_ROUNDS}")
                await _bare(on, samples, number)
                before = await on.writes()
                async with running(on) as one:
                    await _restarted(on, one, samples)
                    samples.restart_writes.append(await on.writes() - before)
                    await _edited(on, one, samples, number)
                    if number == _ROUNDS - 1:
                        for figure in [*await _property(on), await _page(one)]:
                            yield figure
    except TimeoutError:
        yield Figure("the fleet's figures: not all were measured, for want of time", "min", (minutes,))
    for figure in samples.figures(robots):
        yield figure


async def _created(on: FleetStage, one: Controller) -> Figure:
    """The controller makes all replicas; how many a second."""
    wanted, before, started = on.replicas, cpu_seconds(one.pid), time.monotonic()
    await one.until_known(wanted)
    seconds, cpu = time.monotonic() - started, (cpu_seconds(one.pid) - before) / wanted * 1000
    await one.until_settled()
    return Figure(f"{wanted} replicas made", "writes/s", (wanted / seconds,), note=f"CPU {cpu:.2f} ms for each")


async def _bare(on: FleetStage, samples: _Samples, number: int) -> None:
    """The bare writer writes to all replicas of one source. No controller runs."""
    word = f"bare-{number}"
    async with Following(on) as seen, bare_writer(on, SOURCES[0], word) as writer:
        assert writer.stdin is not None
        cpu, server, started = cpu_seconds(writer.pid), on.server_seconds(), time.monotonic()
        writer.stdin.write(b"\n")
        samples.bare.append(on.robots / (await seen.reach(word, on.robots) - started))
        samples.bare_cpu.append((cpu_seconds(writer.pid) - cpu) / on.robots * 1000)
        samples.bare_server_cpu.append((on.server_seconds() - server) / on.robots * 1000)
    say(f"the bare writer: {samples.bare[-1]:.0f} writes/s, CPU {samples.bare_cpu[-1]:.2f} ms for each")


async def _restarted(on: FleetStage, one: Controller, samples: _Samples) -> None:
    """What a start has taken; `running` has waited until it is ready."""
    await one.until_known(on.replicas)
    await one.until_settled()
    samples.ready.append(one.ready_seconds)
    samples.settled.append(one.settled_seconds)
    samples.rss.append(rss_mib(one.pid))
    ready, settled = one.ready_seconds, one.settled_seconds
    say(f"restart: ready in {ready:.1f} s, idle after {settled:.1f} s, {samples.rss[-1]:.0f} MiB")


async def _edited(on: FleetStage, one: Controller, samples: _Samples, number: int) -> None:
    """Edit one source of all robots, and meanwhile the one of a few, again and again. The writes of both count."""
    word, before, cpu = f"ours-{number}", await on.writes(), cpu_seconds(one.pid)
    others: list[float] = []
    server, few, meanwhile = on.server_seconds(), min(OTHERS_ROBOTS, on.robots), 0
    async with Following(on) as seen, asyncio.TaskGroup() as tasks:
        started = time.monotonic()
        await on.edit(SOURCES[0], word)
        whole = tasks.create_task(seen.reach(word, on.robots))
        while not whole.done():
            mine, since = f"other-{number}-{len(others)}", time.monotonic()
            await on.edit(OTHER, mine)
            others.append(await seen.reach(mine, few) - since)
            meanwhile += 0 if whole.done() else few
            await asyncio.wait([whole], timeout=1.0)
        took = await whole - started
    theirs = len(others) * few
    samples.server_cpu.append((on.server_seconds() - server) / (on.robots + theirs) * 1000)
    await one.until_settled()
    samples.ours.append((on.robots + meanwhile) / took)
    samples.others += others
    mine_alone = await on.writes() - before - 1 - len(others) - theirs
    samples.writes.append(mine_alone)
    samples.cpu.append((cpu_seconds(one.pid) - cpu) / (on.robots + theirs) * 1000)
    samples.rss_after.append(rss_mib(one.pid))
    pace = f"{samples.ours[-1]:.0f} writes/s, {samples.ours[-1] / samples.bare[-1]:.0%} of the bare writer"
    say(f"edited: {pace}, CPU {samples.cpu[-1]:.2f} ms for each; another's edit waited {max(others):.2f} s")


async def _property(on: FleetStage) -> list[Figure]:
    """One property of one robot, which all of its ten replicas use."""
    seconds, writes = [], []
    async with Following(on) as seen:
        for i in range(min(_EDITED_ROBOTS, on.robots)):
            before, word, started = await on.writes(), f"fast-{i}", time.monotonic()
            config = CONFIG_MAP.object(robot_name(i), namespace=PROPERTIES, data={"speed": word})
            await on.api.create(config)
            seconds.append(await seen.reach(word, len(SOURCES)) - started)
            await asyncio.sleep(1)
            writes.append(float(await on.writes() - before))
    return [
        Figure("one property of one robot, until its replicas have it", "s", tuple(seconds), goal="<= 2"),
        Figure("  its writes", "writes", tuple(writes), goal="<= 10"),
    ]


async def _page(one: Controller) -> Figure:
    """The page of the whole fleet."""
    taken, size = [], 0
    async with aiohttp.ClientSession() as session:
        for _ in range(_ASKED):
            started = time.monotonic()
            size = len(await one.answer(session, "/"))
            taken.append((time.monotonic() - started) * 1000)
    return Figure("the page, answered", "ms", tuple(taken), goal="< 1000", note=f"{size / 1024:.0f} KiB")
