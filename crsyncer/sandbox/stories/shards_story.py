"""The demo of shards: a root, two shards and a clone, the front door before them, and four robots."""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

from crsyncer.sandbox.cluster import connected
from crsyncer.sandbox.fleet_planes import FleetPlanes, fleet_planes
from crsyncer.sandbox.front_door import FrontDoor
from crsyncer.sandbox.stories.fleet_story import enter_robot, show_logs, tails
from crsyncer.sandbox.stories.shards_cast import ShardsCast
from crsyncer.sandbox.stories.shards_steps import EAST, NAMES, WEST, ShardsSteps
from crsyncer.sandbox.stories.story import Story, tell


def play_shards(story: Story, haproxy: Path, crds: Sequence[Path], report_crd: Path) -> int:
    """Play the demo of shards, and return its exit code: 1 when a step fails.

    `crds`: files of the fleet's kinds at the root; `report_crd`: the one of them that shards have as well.
    Raises SyncError where the demo cannot begin, and passes KeyboardInterrupt on; nothing is left running.
    """
    story.step("Seven control planes start on this machine: a root, two shards, and four robots")
    with fleet_planes(*NAMES, shards=(WEST, EAST), progress=partial(story.says, "sandbox")) as planes:
        return tell(story, lambda: asyncio.run(_perform(story, planes, haproxy, crds, report_crd)))


async def _perform(story: Story, planes: FleetPlanes, haproxy: Path, crds: Sequence[Path], report_crd: Path) -> None:
    """Run every step; every program of crsyncer and HAProxy have ended when this returns."""
    async with AsyncExitStack() as stack:
        door = FrontDoor(planes.directory / "front-door", planes.cloud, planes.shards, haproxy=haproxy)
        door.write()
        stack.push_async_callback(door.close)
        kubeconfig = planes.cloud.kubeconfig(planes.directory / "root.kubeconfig")
        shards = {
            name: await stack.enter_async_context(connected(plane.kubeconfig(planes.directory / f"{name}.kubeconfig")))
            for name, plane in planes.shards.items()
        }
        robots = {name: await enter_robot(stack, planes, name, cloud=door.robot_kubeconfig(name)) for name in NAMES}
        root = await stack.enter_async_context(connected(kubeconfig))
        cast = ShardsCast(planes, kubeconfig, root, shards, door, robots, stack)
        try:
            await ShardsSteps(story, cast, crds, report_crd).run()
        except Exception as error:
            ends = {"fleet": cast.controller.tail(), "door": door.upkeep.tail(), "haproxy": door.haproxy.tail(10)}
            show_logs(story, error, {**ends, **tails(robots)})
            raise
        finally:
            await cast.controller.kill()
