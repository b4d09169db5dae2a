"""Many robots in one process, each with only what it has towards the cloud: a link, a list-watch and its memory.

`python -m tests.faults.robots KUBECONFIG CRD FIRST COUNT` runs robots r<FIRST> and on. Each line on its standard input
is a step; it answers with one line of JSON: how many have seen their object at that step, when, and what it cost.
"""

import asyncio
import json
import random
import sys
import time
from pathlib import Path
from typing import Any

from crsyncer.adapters.kube import Exchange, KubeCluster
from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.kinds.read_kind import read_policy
from crsyncer.core.model import Json, Key, Loaded, Side
from crsyncer.core.pair import object_calls
from crsyncer.core.requests import calls
from crsyncer.core.requests.calls import Call
from crsyncer.core.watching.watch import EventType
from crsyncer.engine.caching.cache import Cache
from crsyncer.engine.caching.informer import Informer
from crsyncer.engine.kinds.negotiation import robots_version
from crsyncer.engine.reporting.recorder import Recorder
from crsyncer.runtime.connection import Connection
from crsyncer.runtime.listwatch import Phase
from tests.model.simulation.disk import Disk, Memory
from tests.model.simulation.life import Tally
from tests.system.bed import eventually, some_at_a_time

_WATCH_TIMEOUT = 300
_START_SECONDS = 300.0


class Immortal:
    """Owns a store in memory, and does not die."""

    dead = False

    def step(self) -> None:
        """Nothing comes of it."""

    async def passes(self) -> None:
        """At once."""


class Robot:
    """The connection layer of one robot's agent, cloud side only. `cluster` is its own: no two share a TLS session."""

    def __init__(self, policy: KindPolicy, cluster: KubeCluster) -> None:
        self.seen: dict[int, float] = {}
        """When its object was first shown at which step, in seconds of the monotonic clock."""
        self._policy = policy
        store = Memory(Disk(), Immortal(), random.Random())
        tally = Tally()
        self.link = Connection(
            Side.CLOUD,
            cluster=cluster,
            store=store,
            observer=tally,
            probe_calls=self._probe_calls,
            crds=lambda: {policy.resource: None},
            clock=time.time,
        )
        self.reflector = Informer(
            self.link,
            side=Side.CLOUD,
            policy=policy,
            namespace="",
            cache=Cache(policy, store=store, loaded=Loaded(), clock=time.time),
            observer=tally,
            recorder=Recorder(store, clock=time.time),
            watch_timeout=_WATCH_TIMEOUT,
            changed=self._changed,
            observed=lambda _side, _key, _raw, _live: None,
            freshness_changed=lambda _side, _namespace: None,
            rewound=lambda _side, _how: None,
            phase_changed=lambda: None,
            unpaired=lambda: None,
        )

    async def watching(self) -> bool:
        """Whether it hears of changes."""
        return self.reflector.listwatch.phase is Phase.WATCHING

    def _probe_calls(self) -> list[Call]:
        kinds = [] if self.reflector.state.cursor() is None else [object_calls.revision(self._policy, Side.CLOUD)]
        return [*kinds, calls.VERSION]

    def _changed(self, _side: Side, _key: Key, _type: EventType, raw: Json | None) -> None:
        if raw is not None:
            self.seen.setdefault(raw["spec"]["step"], time.monotonic())


class Crowd:
    """The robots of this process, and all that they have asked."""

    def __init__(self) -> None:
        self.robots: list[Robot] = []
        self._requests: list[tuple[float, str, int]] = []

    def observe(self, exchange: Exchange) -> None:
        """Note a request that was answered, or was not (code 0)."""
        if exchange.code is not None:
            self._requests.append((time.monotonic(), exchange.verb, exchange.code))

    def report(self, step: int) -> dict[str, Any]:
        """What the test wants to know."""
        return {
            "watching": sum(robot.reflector.listwatch.phase is Phase.WATCHING for robot in self.robots),
            "seen": [robot.seen[step] for robot in self.robots if step in robot.seen],
            "relists": sum(robot.reflector.state.relists for robot in self.robots),
            "resumes": sum(robot.reflector.state.resumes for robot in self.robots),
            "requests": self._requests,
        }


async def main(kubeconfig: Path, crd: Json, *, first: int, count: int) -> None:
    """Run robots, and answer until the standard input ends."""
    crowd = Crowd()
    async with asyncio.TaskGroup() as tasks:
        running: list[asyncio.Task[None]] = []

        async def begin(number: int) -> None:
            policy = read_policy(crd, f"r{number}")
            assert policy is not None
            cluster = KubeCluster(kubeconfig, observe=crowd.observe)
            robot = Robot(robots_version(policy), cluster)
            crowd.robots.append(robot)
            running.extend(tasks.create_task(run) for run in (robot.link.run(), robot.reflector.listwatch.run()))
            await eventually(robot.watching, seconds=_START_SECONDS, what=f"r{number} watches")

        await some_at_a_time(begin(number) for number in range(first, first + count))
        while line := await asyncio.to_thread(sys.stdin.readline):
            print(json.dumps(crowd.report(int(line))), flush=True)
        for task in running:
            task.cancel()
    for robot in crowd.robots:
        await robot.link.cluster.close()


if __name__ == "__main__":
    path, schema, start, number = sys.argv[1:]
    asyncio.run(main(Path(path), json.loads(schema), first=int(start), count=int(number)))
