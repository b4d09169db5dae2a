"""What makes the simulated world legitimate: its API server answers as real ones do."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from crsyncer.adapters.kube import KubeCluster
from crsyncer.core.model import Side
from crsyncer.core.requests.calls import VERSION, Call
from crsyncer.errors import SyncError
from crsyncer.ports import Cluster, Reply
from crsyncer.sandbox import plane as sandbox_plane
from crsyncer.sandbox.two_planes import Sandbox
from tests import planes
from tests.contract.kinds import kinds
from tests.contract.pages import pages
from tests.contract.script import PATIENCE, Script
from tests.model.simulation.connection import Connection
from tests.model.simulation.plane import Plane
from tests.model.simulation.world import World


class _Open:
    """A wire that nothing is tied to."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def passes(self) -> None:
        """Always."""

    def perform(self, call: Call, *, late: bool = False) -> Reply:  # noqa: ARG002
        """Carry it out."""
        reply = self._world.servers[Side.CLOUD].answer(call)
        self._world.signals[Side.CLOUD].ring()
        return reply

    def outlives(self, call: Call) -> None:
        """Nobody dies here."""

    def abandon(self, call: Call, seconds: float) -> None:
        """Nobody stops waiting."""


async def transcript(cluster: Cluster, group: str, compact: Callable[[], Awaitable[object]]) -> list[tuple[str, Any]]:
    """What a server answers to the whole script."""
    script = Script(cluster, group)
    await script.run()
    await kinds(script)
    await pages(script, compact)
    return script.transcript.told()


def simulated(group: str) -> list[tuple[str, Any]]:
    """What the simulated server answers to the script."""
    with World() as world:
        side = Side.CLOUD
        cluster = Connection(
            side,
            world.servers[side],
            weather=world.weather[side],
            signal=world.signals[side],
            wire=_Open(world),
            journal=world.journal,
        )
        sweeper = world.clock.loop.create_task(_sweep(world.cloud, group))
        try:
            return world.clock.run(transcript(cluster, group, partial(_compact, world.cloud)))
        finally:
            sweeper.cancel()


async def _compact(plane: Plane) -> None:
    plane.compact()


async def _sweep(plane: Plane, group: str) -> None:
    """What the API server does by itself with a CRD that is being deleted."""
    while True:
        await asyncio.sleep(0.1)
        plane.sweep("goals", group=group)


async def _forget(plane: sandbox_plane.Plane, cluster: Cluster) -> None:
    """Compact the history, and restart the API server, which still serves old pages from its cache (measured)."""
    await asyncio.to_thread(planes.compact, plane)
    await asyncio.to_thread(plane.restart, "apiserver", graceful=False)
    async with asyncio.timeout(PATIENCE):
        while True:
            with contextlib.suppress(SyncError):
                if (await cluster.request(VERSION)).status == 200:
                    return
            await asyncio.sleep(0.1)


async def _real(sandbox: Sandbox, plane: sandbox_plane.Plane, group: str) -> list[tuple[str, Any]]:
    """What a real server answers to the script."""
    cluster = KubeCluster(sandbox.kubeconfig(plane.name))
    try:
        return await transcript(cluster, group, partial(_forget, plane, cluster))
    finally:
        await cluster.close()


async def test_real_api_servers_answer_as_the_simulated_one(sandbox: Sandbox, group: str) -> None:
    """On etcd and on kine, at the same time: most of it is waiting for what servers do in their own time."""
    cloud, robot = await asyncio.gather(*(_real(sandbox, plane, group) for plane in sandbox.planes))
    wanted = await asyncio.to_thread(simulated, group)
    assert cloud == wanted
    assert robot == wanted
