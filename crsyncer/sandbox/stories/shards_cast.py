"""The cast of `crsyncer demo --shards`: a root, its shards, a front door, and robots whose agents come through it."""

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

from crsyncer.sandbox.cloning import clone
from crsyncer.sandbox.cluster import Cluster, connected
from crsyncer.sandbox.fleet_planes import FleetPlanes
from crsyncer.sandbox.fleet_process import controller, fleet_command
from crsyncer.sandbox.front_door import FrontDoor
from crsyncer.sandbox.program import Program
from crsyncer.sandbox.stories.fleet_cast import Robot


@dataclass(slots=True)
class ShardsCast:
    """Everybody. People use the API servers directly; agents know the door alone."""

    planes: FleetPlanes
    kubeconfig: Path
    """The root's."""
    root: Cluster
    shards: dict[str, Cluster]
    door: FrontDoor
    robots: Mapping[str, Robot]
    stack: AsyncExitStack
    """Ends what is started during the story."""
    controller: Program = field(init=False)

    def __post_init__(self) -> None:
        self._make_controller()

    def start_controller(self) -> None:
        """Start the controller with all shards that there are now."""
        self._make_controller()
        self.controller.start()

    async def fleet(self, *arguments: str) -> tuple[int, str, str]:
        """Run a command of `crsyncer fleet` with all shards: exit code, standard output, standard error."""
        return await fleet_command(self.kubeconfig, *arguments, *self.door.shard_flags)

    async def kill_shard(self, shard: str) -> None:
        """Kill a shard's API server and etcd."""
        await asyncio.to_thread(self.planes.shards[shard].stop, graceful=False)

    async def start_shard(self, shard: str) -> None:
        """Start a shard again."""
        await asyncio.to_thread(self.planes.shards[shard].start)

    async def clone_shard(self, shard: str, name: str) -> None:
        """Start another API server over a copy of a shard's etcd; the door and its commands know it from now on."""
        plane = await asyncio.to_thread(clone, self.planes.shards[shard], name, self.planes.directory / name)
        self.stack.callback(plane.stop, graceful=False)
        await asyncio.to_thread(plane.start)
        self.door.add(name, plane)
        kubeconfig = plane.kubeconfig(self.planes.directory / f"{name}.kubeconfig")
        self.shards[name] = await self.stack.enter_async_context(connected(kubeconfig))

    def _make_controller(self) -> None:
        directory = self.planes.directory
        self.controller = controller(directory, kubeconfig=self.kubeconfig, flags=self.door.shard_flags)
