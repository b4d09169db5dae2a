"""All robots of a cloud come back at the same moment (row 51).

The robots are the agent's own connection layer (`robots.py`), each with its own TLS sessions and memory, in few
processes, behind one link. What they ask from the moment of its return is counted, with answer or without.
"""

import asyncio
import contextlib
import json
import math
import resource
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from crsyncer.sandbox.plane import Plane
from tests.api import Api
from tests.link.link import Link
from tests.system.bed import LABEL, crd, eventually, some_at_a_time

ROBOTS = 1000
"""Takes two minutes on two cores; where they have much other work, it may not get through: then fewer show the same."""
_PROCESSES = 2
_CUT_SECONDS = 30.0
_SECONDS = 300.0
_LONGEST_PAUSE = 8.0
"""Seconds between two probes at the most, in an outage between 16 s and 15 min (S9.1)."""
_REQUESTS = 4
"""What coming back takes: a probe, whose cluster it is, the proof of its history (S8.2), the watch."""
_SPARE_REQUESTS = 1
"""A second probe, where a busy server has let the first grow too old to prove anything (S8.2)."""
_BYTES = 12 * 1024
"""A robot's, both directions, TLS and the object included."""
_FILES = 5 * ROBOTS
"""File descriptors: two for each relayed connection, of which a robot has two."""


@dataclass
class Fleet:
    """Processes full of robots."""

    processes: list[asyncio.subprocess.Process] = field(default_factory=list)

    async def report(self, step: int) -> dict[str, Any]:
        """What all processes have to say of a step, taken together."""
        parts = await asyncio.gather(*(self._ask(process, step) for process in self.processes))
        joined: dict[str, Any] = parts[0]
        for part in parts[1:]:
            joined = {key: joined[key] + part[key] for key in joined}
        return joined

    async def until(self, step: int, *, watching: int) -> dict[str, Any]:
        """Wait until every robot has seen its object at a step, and so many are watching."""
        latest: dict[str, Any] = {}

        async def check() -> dict[str, Any] | None:
            nonlocal latest
            latest = await self.report(step)
            if len(latest["seen"]) == ROBOTS and latest["watching"] == watching:
                return latest
            await asyncio.sleep(0.3)  # to answer is work for those who are measured
            return None

        with contextlib.suppress(AssertionError):
            return dict(await eventually(check, seconds=_SECONDS))
        raise AssertionError(f"step {step}: {len(latest['seen'])} have seen it, {latest['watching']} are watching")

    async def _ask(self, process: asyncio.subprocess.Process, step: int) -> dict[str, Any]:
        assert process.stdin
        assert process.stdout
        process.stdin.write(f"{step}\n".encode())
        answer = await asyncio.wait_for(process.stdout.readline(), _SECONDS)
        return dict(json.loads(answer))


@contextlib.asynccontextmanager
async def fleet(kubeconfig: Path, schema: dict[str, Any]) -> AsyncIterator[Fleet]:
    """All robots, begun; they are gone afterwards."""
    running = Fleet()
    share = ROBOTS // _PROCESSES
    try:
        for number in range(_PROCESSES):
            arguments = (str(kubeconfig), json.dumps(schema), str(number * share), str(share))
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "tests.faults.robots",
                *arguments,
                cwd=Path(__file__).parents[2],
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                limit=1 << 24,
            )
            running.processes.append(process)
        yield running
    finally:
        for process in running.processes:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()


@pytest.fixture
def many_files() -> Iterator[None]:
    """As many file descriptors as this test wants, also in the processes that it starts."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    enough = max(soft, _FILES)
    assert hard == resource.RLIM_INFINITY or enough <= hard, f"needs {enough} file descriptors, may have {hard}"
    resource.setrlimit(resource.RLIMIT_NOFILE, (enough, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def busiest(times: list[float]) -> int:
    """The most that fell into any one second."""
    times = sorted(times)
    most = first = 0
    for last, moment in enumerate(times):
        while times[first] <= moment - 1.0:
            first += 1
        most = max(most, last - first + 1)
    return most


def peak_budget() -> int:
    """Requests in the busiest second, as S9.1's jitter allows.

    A robot that is down probes after pauses drawn evenly from 0 to L = 8 s. So at any moment, and so when the link
    comes back, what is left of its pause is shorter than x with the chance 1 - (1 - x/L)**2 (residual time of a renewal
    process): 15/64 of all probe in the first second, and fewer in each that follows. Four standard deviations more are
    let pass, and all that a robot asks may fall into the second of its probe. (After 15 minutes L is 60 s: then 3.3 %
    come in the first second, and 95 % within 47 s.)
    """
    chance = 1 - (1 - 1 / _LONGEST_PAUSE) ** 2
    robots = ROBOTS * chance + 4 * math.sqrt(ROBOTS * chance * (1 - chance))
    return math.ceil(robots * (_REQUESTS + _SPARE_REQUESTS))


@pytest.mark.nightly
@pytest.mark.fault_51
@pytest.mark.usefixtures("many_files")
async def test_robots_that_come_back_at_once_cost_the_cloud_a_few_requests_each_and_list_nothing(
    cloud: Plane, cloud_api: Api, group: str, tmp_path: Path
):
    schema = crd(group, filtered="true")
    goals = await cloud_api.apply_crd(schema)
    robots = [f"r{number}" for number in range(ROBOTS)]

    async def all_change(step: int) -> None:
        await some_at_a_time(cloud_api.patch(goals.object(name), {"spec": {"step": step}}) for name in robots)

    await some_at_a_time(
        cloud_api.create(goals.object(name, labels={LABEL: name}, spec={"step": 0, "text": "x" * 500}))
        for name in robots
    )
    async with Link(cloud, http=False) as link, fleet(link.kubeconfig(tmp_path / "cloud.yaml"), schema) as running:
        await running.until(0, watching=ROBOTS)
        # What each has seen last is so young that the server's memory grows, instead of forgetting it (row 8 is that).
        await all_change(1)
        before = await running.until(1, watching=ROBOTS)
        link.cut()
        cut_at = time.monotonic()
        await all_change(2)
        await asyncio.sleep(cut_at + _CUT_SECONDS - time.monotonic())  # how long it is away is what is tested
        assert (await running.report(2))["watching"] == 0
        link.clear()
        restored_at = time.monotonic()
        link.restore()
        after = await running.until(2, watching=ROBOTS)
        moved = link.bytes_up + link.bytes_down
        connects = link.connects
    waits = sorted(seen - restored_at for seen in after["seen"])
    asked = [(moment, verb, code) for moment, verb, code in after["requests"] if moment >= restored_at]
    peak = busiest([moment for moment, _, _ in asked])
    print(f"{ROBOTS} robots: {waits[ROBOTS // 2]:.1f} s (median), {waits[ROBOTS * 95 // 100]:.1f} s (95 %),")
    print(f"{waits[-1]:.1f} s (last); {moved / ROBOTS:,.0f} bytes and {connects / ROBOTS:.2f} connections each;")
    print(f"{len(asked)} requests, {peak} in the busiest second (budget {peak_budget()}):")
    print(dict(Counter(f"{verb} {code}" for _, verb, code in asked)))
    assert after["relists"] == before["relists"]
    assert after["resumes"] >= before["resumes"] + ROBOTS
    assert len(asked) <= ROBOTS * (_REQUESTS + _SPARE_REQUESTS)
    assert peak <= peak_budget()
    assert moved <= ROBOTS * _BYTES
