"""What makes the simulated world legitimate: its API server answers as real ones do."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from crsyncer.adapters.kube import KubeCluster
from crsyncer.core.calls import Call
from crsyncer.core.model import Side
from crsyncer.ports import Cluster, Reply
from crsyncer.sandbox.sandbox import Sandbox
from tests.contract.kinds import kinds
from tests.contract.script import Script
from tests.model.connection import Connection
from tests.model.plane import Plane
from tests.model.world import World


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


async def transcript(cluster: Cluster, group: str) -> list[tuple[str, Any]]:
    """What a server answers to the whole script."""
    script = Script(cluster, group)
    await script.run()
    await kinds(script)
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
            return world.clock.run(transcript(cluster, group))
        finally:
            sweeper.cancel()


async def _sweep(plane: Plane, group: str) -> None:
    """What the API server does by itself with a CRD that is being deleted."""
    while True:
        await asyncio.sleep(0.1)
        plane.sweep("goals", group=group)


@pytest.mark.parametrize("plane", ["cloud", "robot"])
async def test_a_real_api_server_answers_as_the_simulated_one(
    sandbox: Sandbox, group: str, tmp_path: Path, plane: str
) -> None:
    cluster = KubeCluster(sandbox.kubeconfig(plane))
    try:
        real = await transcript(cluster, group)
    finally:
        await cluster.close()
    assert real == await asyncio.to_thread(simulated, group)
