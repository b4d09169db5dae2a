"""The demo of a fleet: one cloud, a controller, three robots with agents, and a link that is cut."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

from crsyncer.core.accounts.robot_account import robot_namespace
from crsyncer.sandbox.agent_process import AgentProcess
from crsyncer.sandbox.cluster import connected
from crsyncer.sandbox.fleet_planes import FleetPlanes, fleet_planes
from crsyncer.sandbox.relay import Relay
from crsyncer.sandbox.stories.fleet_cast import FleetCast, Robot
from crsyncer.sandbox.stories.fleet_steps import AWAY, NAMES, FleetSteps
from crsyncer.sandbox.stories.story import Story, tell


def play_fleet(story: Story, crds: Sequence[Path]) -> int:
    """Play the demo of a fleet, and return its exit code: 1 when a step fails. `crds`: files of the fleet's kinds.

    Raises SyncError where the demo cannot begin, and passes KeyboardInterrupt on; nothing is left running.
    """
    story.step("Four control planes start on this machine: a cloud, and three robots")
    with fleet_planes(*NAMES, progress=partial(story.says, "sandbox")) as planes:
        return tell(story, lambda: asyncio.run(_perform(story, planes, crds)))


async def _perform(story: Story, planes: FleetPlanes, crds: Sequence[Path]) -> None:
    """Run every step; every program of crsyncer has ended when this returns."""
    async with AsyncExitStack() as stack:
        link = await stack.enter_async_context(Relay(planes.cloud.port))
        kubeconfig = planes.cloud.kubeconfig(planes.directory / "cloud.kubeconfig")
        link_kubeconfig = planes.cloud.kubeconfig(planes.directory / "link.kubeconfig", server=link.server)
        robots = {
            name: await enter_robot(stack, planes, name, cloud=link_kubeconfig if name == AWAY else kubeconfig)
            for name in NAMES
        }
        cloud = await stack.enter_async_context(connected(kubeconfig))
        cast = FleetCast(cloud, kubeconfig, planes.directory, robots, link)
        stack.push_async_callback(cast.controller.kill)
        try:
            await FleetSteps(story, cast, crds).run()
        except Exception as error:
            show_logs(story, error, {"fleet": cast.controller.tail(), **tails(robots)})
            raise


async def enter_robot(stack: AsyncExitStack, planes: FleetPlanes, name: str, *, cloud: Path) -> Robot:
    """A robot whose agent does not run yet, and whose controller does. `cloud`: the agent's kubeconfig."""
    directory = planes.directory / f"agent-{name}"
    directory.mkdir()
    kubeconfig = planes.robots[name].kubeconfig(planes.directory / f"{name}.kubeconfig")
    flags = ("--namespace-map", f"{robot_namespace(name)}=default")
    agent = AgentProcess(directory, cloud_kubeconfig=cloud, robot_kubeconfig=kubeconfig, robot_name=name, flags=flags)
    stack.push_async_callback(agent.kill)
    robot = Robot(name, await stack.enter_async_context(connected(kubeconfig)), agent)
    navigation = asyncio.create_task(robot.navigate())
    stack.callback(navigation.cancel)
    return robot


def tails(robots: Mapping[str, Robot]) -> dict[str, str]:
    """The ends of the agents' logs."""
    return {name: each.agent.tail(10) for name, each in robots.items()}


def show_logs(story: Story, error: Exception, logs: Mapping[str, str]) -> None:
    """Show the ends of logs after a failed step, where the error has not shown them."""
    for who, log in logs.items():
        if log and log not in str(error):
            story.says(who, "the end of its log:")
            story.quotes(log)
