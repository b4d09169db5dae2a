"""A root, shards behind a front door, a controller, and robots whose agents come through the door: all of it real."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from crsyncer.adapters.retries import until_async
from crsyncer.cli.fleet.fleet_crds import INVENTORY, KINDS, SCHEMAS
from crsyncer.core.accounts.robot_account import robot_namespace
from crsyncer.core.content.annotations import ROBOT_LABEL, SHARD_LABEL
from crsyncer.sandbox.agent_process import AgentProcess
from crsyncer.sandbox.cloning import clone
from crsyncer.sandbox.cluster import Cluster, Json, connected
from crsyncer.sandbox.fleet_planes import FleetPlanes, fleet_planes
from crsyncer.sandbox.fleet_process import controller
from crsyncer.sandbox.front_door import FrontDoor
from crsyncer.sandbox.plane import Plane
from crsyncer.sandbox.program import Program
from crsyncer.sandbox.resource import Resource
from crsyncer.sandbox.stories.fleet_cast import CRD, CRD_FILE, NAVIGATIONS, PLACEMENT, PLACEMENTS, ROBOTS, SOURCE
from tests.door.programs import haproxy

SECONDS = 180
REPORT_CRD = SCHEMAS / "robotsyncstates.yaml"
_AT_ONCE = 4
"""Agents that are started at the same time."""
_ALL = "robots"
"""The API server that all robots share; each has its objects in a namespace of its own."""


def bay(robot: str) -> str:
    """The namespace of a robot on the robots' API server."""
    return f"bay-{robot}"


@dataclass(slots=True)
class ShardBed:
    """Verbs of people who run all this."""

    planes: FleetPlanes
    door: FrontDoor
    homes: dict[str, str]
    """The shard of each robot."""
    stack: AsyncExitStack
    clusters: dict[str, Cluster] = field(default_factory=dict)
    """The root's is `root`, the robots' is `robots`."""
    agents: dict[str, AgentProcess] = field(default_factory=dict)
    program: Program | None = None
    """The controller."""

    def shard(self, name: str) -> Plane:
        """The plane of a shard."""
        return self.planes.shards[name]

    async def connect(self, name: str, plane: Plane) -> None:
        """Be an administrator of an API server."""
        kubeconfig = plane.kubeconfig(self.planes.directory / f"{name}.admin.kubeconfig")
        self.clusters[name] = await self.stack.enter_async_context(connected(kubeconfig))

    async def open(self) -> None:
        """Make kinds, Robots and accounts, and open the door."""
        await self.connect("root", self.planes.cloud)
        await self.connect(_ALL, self.planes.robots[_ALL])
        for name, plane in self.planes.shards.items():
            await self.connect(name, plane)
        fleet = [SCHEMAS / f"{name}.yaml" for name in (*KINDS, INVENTORY)]
        for crd in (CRD, *(yaml.safe_load(file.read_text(encoding="utf-8")) for file in fleet)):
            await self.clusters["root"].add_crd(crd)
        await self.clusters[_ALL].add_crd(CRD)
        quotas: list[tuple[Cluster, Json]] = []
        for shard in self.planes.shards:
            for crd in (CRD, yaml.safe_load(REPORT_CRD.read_text(encoding="utf-8"))):
                await self.clusters[shard].add_crd(crd)
            names = [name for name, home in self.homes.items() if home == shard]
            for name in names:
                await self.clusters["root"].create(ROBOTS, ROBOTS.object(name, labels={SHARD_LABEL: shard}))
            found = await self.door.enrol(self.clusters[shard], names, (CRD_FILE, REPORT_CRD))
            quotas += [(self.clusters[shard], each) for each in found]

        async def counted() -> bool:
            now = [await cluster.get(Resource.of_object(each), each) for cluster, each in quotas]
            return all("used" in (each.get("status") or {}) for each in now)

        await self.eventually(counted)
        self.door.write()
        code, _, error = await self.door.command("config")
        assert code == 0, error
        self.door.haproxy.start()
        self.door.upkeep.start()
        await self.until_kept()

    async def start_agents(self) -> None:
        """Start all agents, some at a time."""
        kubeconfig = self.planes.robots[_ALL].kubeconfig(self.planes.directory / "robots.kubeconfig")
        for name in self.homes:
            folder = self.planes.directory / f"agent-{name}"
            folder.mkdir()
            flags = ("--namespace-map", f"{robot_namespace(name)}={bay(name)}", "--require-confinement")
            self.agents[name] = AgentProcess(
                folder,
                cloud_kubeconfig=self.door.robot_kubeconfig(name),
                robot_kubeconfig=kubeconfig,
                robot_name=name,
                flags=flags,
            )
            self.stack.push_async_callback(self.agents[name].kill)
        agents = list(self.agents.values())
        for start in range(0, len(agents), _AT_ONCE):
            await asyncio.gather(*(each.start() for each in agents[start : start + _AT_ONCE]))

    async def start_controller(self) -> None:
        """Start the controller with all shards that the door knows."""
        if self.program is not None:
            await self.program.kill()
        kubeconfig = self.planes.cloud.kubeconfig(self.planes.directory / "fleet.kubeconfig")
        self.program = controller(self.planes.directory, kubeconfig=kubeconfig, flags=self.door.shard_flags)
        self.stack.push_async_callback(self.program.kill)
        self.program.start()

    async def place(self) -> None:
        """Place an object on all robots, and wait until they have it."""
        await self.clusters["root"].create(NAVIGATIONS, SOURCE)
        await self.clusters["root"].create(PLACEMENTS, PLACEMENT)
        await self.until_release("1.0")

    async def release(self, release: str) -> None:
        """Change the object that is placed."""
        await self.clusters["root"].patch(NAVIGATIONS, SOURCE, {"spec": {"release": release}})

    async def until_release(self, release: str, name: str = "nav") -> None:
        """Wait until every robot has an object with this release."""

        async def all_have_it() -> bool:
            found = [await self.copy(robot, name) for robot in self.homes]
            return all(each is not None and each["spec"]["release"] == release for each in found)

        await self.eventually(all_have_it)

    async def copy(self, robot: str, name: str = "nav") -> Json | None:
        """An object on a robot."""
        return await self.clusters[_ALL].find(NAVIGATIONS, NAVIGATIONS.object(name, namespace=bay(robot)))

    async def stored(self, robot: str, shard: str, name: str = "nav") -> Json | None:
        """An object of a robot at a shard."""
        return await self.clusters[shard].find(NAVIGATIONS, NAVIGATIONS.object(name, namespace=robot_namespace(robot)))

    async def probe(self, release: str) -> None:
        """Write an object of each robot at its shard, one that no controller knows."""
        for robot, shard in self.homes.items():
            await self.write(robot, shard, "probe", release)

    async def write(self, robot: str, shard: str, name: str, release: str) -> None:
        """Write an object of a robot at a shard."""
        namespace, spec = robot_namespace(robot), {"release": release, "map": "probed"}
        obj = NAVIGATIONS.object(name, namespace=namespace, labels={ROBOT_LABEL: robot}, spec=spec)
        if await self.stored(robot, shard, name) is None:
            await self.clusters[shard].create(NAVIGATIONS, obj)
        else:
            await self.clusters[shard].patch(NAVIGATIONS, obj, {"spec": spec})

    async def versions(self) -> dict[str, Any]:
        """The uid and the version of what is placed, of each robot: on the robot, and at its shard."""
        found: dict[str, Any] = {}
        for robot, shard in self.homes.items():
            for where, obj in (("robot", await self.copy(robot)), (shard, await self.stored(robot, shard))):
                assert obj is not None, (robot, where)
                found[f"{robot} at {where}"] = (obj["metadata"]["uid"], obj["metadata"]["resourceVersion"])
        return found

    async def uids(self) -> dict[str, str]:
        """The uids of what is placed, on the robots."""
        return {key: uid for key, (uid, _) in (await self.versions()).items() if key.endswith("at robot")}

    async def until_healthy(self, held: Mapping[str, int] | None = None) -> None:
        """Wait until all agents are well, have deleted nothing, and hold nothing but what is said of a robot."""
        for name, agent in self.agents.items():
            holds = (held or {}).get(name, 0)

            def is_well(now: Json, holds: int = holds) -> bool:
                return len(now["holds"]) == holds and (holds > 0 or now["health"] == "healthy")

            status = await agent.until(is_well, seconds=SECONDS)
            assert status["writes"]["robot"]["delete"] == 0, name

    async def until_kept(self) -> None:
        """Wait until the door finds nothing wrong."""

        async def good() -> bool:
            page = await self.door.page("/status")
            return page is not None and page["reasons"] == []

        await self.eventually(good)

    async def until_streams(self, shard: str, names: set[str]) -> None:
        """Wait until exactly these robots have streams at a shard."""

        async def same() -> bool:
            page = await self.door.page(f"/streams?shard={shard}")
            return page is not None and set(page["robots"]) == names

        await self.eventually(same)

    async def clone(self, shard: str, name: str) -> None:
        """Start a clone of a shard, and have the door know it."""
        plane = await asyncio.to_thread(clone, self.shard(shard), name, self.planes.directory / name)
        self.stack.callback(plane.stop, graceful=False)
        await asyncio.to_thread(plane.start)
        await self.connect(name, plane)
        self.door.add(name, plane)
        await self.until_kept()

    @staticmethod
    async def eventually(question: Any) -> None:
        """Wait until something holds."""
        assert await until_async(question, seconds=SECONDS)


@asynccontextmanager
async def shard_bed(homes: Mapping[str, str]) -> AsyncIterator[ShardBed]:
    """Everything runs, and each robot has the object that is placed, with release 1.0."""
    program: Path = haproxy()
    with fleet_planes(_ALL, shards=sorted(set(homes.values()))) as planes:
        async with AsyncExitStack() as stack:
            door = FrontDoor(planes.directory / "front-door", planes.cloud, planes.shards, haproxy=program)
            door.write()
            stack.push_async_callback(door.close)
            bed = ShardBed(planes, door, dict(homes), stack)
            await bed.open()
            await bed.start_agents()
            await bed.start_controller()
            await bed.place()
            yield bed
