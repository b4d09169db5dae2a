"""`python -m tests.bench.soak --seconds 3600`: does the agent's memory stay flat while it works?

The real agent, with its real store and HTTP client, syncs statuses between two simulated API servers that listen on
this machine. Prints its resident memory twice a minute, and at the end how it grew over the second half.
"""

import argparse
import asyncio
import statistics
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from crsyncer.core.model import Json
from crsyncer.core.requests.calls import CRDS, JSON_PATCH, Call
from crsyncer.sandbox.agent_process import AgentProcess
from tests.adapters.kube_server import TOKEN, make_certificates, write_config
from tests.bench.served import Served, served
from tests.system.bed import crd

_GROUP = "lab.example.com"
_GOALS = f"/apis/{_GROUP}/v1/namespaces/default/goals"
_SAMPLE_SECONDS = 30.0
_SYNC_SECONDS = 600.0
"""How long the first sync may take on a machine that has other things to do."""


def _ask(on: Served, call: Call) -> None:
    reply = on.server.answer(call)
    assert reply.status < 300, f"{call.method} {call.path}: {reply.status} {reply.body}"


def _goal(number: int) -> Json:
    """An object of 1.5 KB."""
    spec = {"x": number, "payload": "p" * 1250, "waypoints": [1, 2, 3]}
    return {"metadata": {"name": f"goal-{number}"}, "spec": spec}


def _report(on: Served, number: int, step: int) -> None:
    """A controller on the robot writes a status of 0.5 KB."""
    status = {"phase": "RUNNING", "n": step, "message": f"{step:08}" * 52}
    change = [{"op": "add", "path": "/status", "value": status}]
    _ask(on, Call("patch", "PATCH", f"{_GOALS}/goal-{number}/status", body=change, content_type=JSON_PATCH))


async def _work(robot: Served, *, objects: int, rate: float, changes: list[int]) -> None:
    loop = asyncio.get_running_loop()
    begin = loop.time()
    while True:
        due = int((loop.time() - begin) * rate)
        while changes[0] < due:
            changes[0] += 1
            _report(robot, changes[0] * 7919 % objects, changes[0])
        await asyncio.sleep(0.02)


def memory_mib(pid: int) -> float:
    """Resident memory of a process that is its own, in MiB (proc(5), RssAnon): without shared libraries."""
    fields = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(fields["RssAnon"].split()[0]) / 1024


@asynccontextmanager
async def working_agent(
    directory: Path, *, objects: int, rate: float
) -> AsyncIterator[tuple[AgentProcess, Callable[[], int]]]:
    """An agent that syncs `rate` status changes a second, and a function that says how many there have been."""
    certificates = make_certificates(directory)
    pair, changes = certificates.issue("server"), [0]
    async with served("cloud", pair=pair) as cloud, served("robot", pair=pair) as robot:
        for on in (cloud, robot):
            _ask(on, Call("create", "POST", CRDS, body=crd(_GROUP)))
        for number in range(objects):
            _ask(cloud, Call("create", "POST", _GOALS, body=_goal(number)))
        cloud_config, robot_config = (
            write_config(directory / f"{name}.yaml", server=on.url, ca=certificates.ca, user={"token": TOKEN})
            for name, on in (("cloud", cloud), ("robot", robot))
        )
        agent = AgentProcess(directory, cloud_kubeconfig=cloud_config, robot_kubeconfig=robot_config)
        await agent.start()
        try:
            await agent.until(
                lambda status: [kind["objects"]["robot"] for kind in status["kinds"]] == [objects],
                seconds=_SYNC_SECONDS,
            )
            async with asyncio.TaskGroup() as tasks:
                work = tasks.create_task(_work(robot, objects=objects, rate=rate, changes=changes))
                yield agent, lambda: changes[0]
                work.cancel()
        finally:
            await agent.stop()


async def soak(directory: Path, *, objects: int, rate: float, seconds: float) -> list[tuple[int, float]]:
    """Have an agent work for so many seconds; the number of changes so far and its memory in MiB, twice a minute."""
    samples: list[tuple[int, float]] = []
    async with working_agent(directory, objects=objects, rate=rate) as (agent, changes):
        for _ in range(round(seconds / _SAMPLE_SECONDS)):
            await asyncio.sleep(_SAMPLE_SECONDS)
            status = await agent.ask()
            samples.append((changes(), memory_mib(agent.pid)))
            waiting = "no answer" if status is None else f"{status['outbox']['depth']} waiting"
            print(f"{changes():>9} changes  {samples[-1][1]:>7.2f} MiB  {waiting}", flush=True)
    return samples


def growth(samples: list[tuple[int, float]]) -> float:
    """Bytes per change, by the straight line that fits best."""
    slope = statistics.linear_regression([float(count) for count, _ in samples], [mib for _, mib in samples]).slope
    return slope * (1 << 20)


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=3600.0, help="at least 60")
    parser.add_argument("--rate", type=float, default=60.0, help="status changes a second")
    parser.add_argument("--objects", type=int, default=500)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        samples = asyncio.run(soak(Path(directory), objects=given.objects, rate=given.rate, seconds=given.seconds))
    half = samples[-max(2, len(samples) // 2) :]
    print(f"second half: {half[0][1]:.2f} to {half[-1][1]:.2f} MiB, {growth(half):.1f} bytes a change")


if __name__ == "__main__":
    main()
