"""Runs the steps of `crsyncer demo --shards`: a shard is killed, a shard is split, and robots keep what they have."""

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import yaml

from crsyncer.core.accounts.robot_account import robot_namespace
from crsyncer.core.content.annotations import SHARD_LABEL
from crsyncer.core.reports.text import count
from crsyncer.sandbox.cluster import Cluster
from crsyncer.sandbox.resource import Resource
from crsyncer.sandbox.stories.fleet_cast import (
    COPY,
    CRD,
    CRD_FILE,
    NAVIGATIONS,
    PLACEMENT,
    PLACEMENTS,
    REPORTS,
    ROBOTS,
    SOURCE,
    Json,
    replica,
)
from crsyncer.sandbox.stories.fleet_looks import copy_is, counts_are, ends_with, shown
from crsyncer.sandbox.stories.shards_cast import ShardsCast
from crsyncer.sandbox.stories.story import Seen, Story

WEST, EAST, CLONE = "west", "east", "east-2"
HOMES = {"amr-1": WEST, "amr-2": EAST, "amr-3": WEST, "amr-4": EAST}
"""What `crsyncer door assign` chooses: the choice depends on the names alone."""
NAMES = tuple(HOMES)
MOVING = "amr-4"
_PATIENCE = 90.0
"""Seconds for a step with agents whose shard was away: they ask again after a while, not at once."""


class ShardsSteps:
    """Runs the steps once. `crds`: files with the fleet's own kinds and the Robot; shards get `report_crd` alone."""

    def __init__(self, story: Story, cast: ShardsCast, crds: Sequence[Path], report_crd: Path) -> None:
        self._story = story
        self._cast = cast
        self._crds = crds
        self._report_crd = report_crd
        self._uids: dict[str, str] = {}
        """Those of the objects on the robots, when they had come."""

    async def run(self) -> None:
        """Run every step, up to the first that does not hold. Raises Untrue."""
        await self._planes()
        for title, step in (
            (
                "The root gets the fleet's kinds and four Robots; each gets a shard and an account",
                self._enrol,
            ),
            ("HAProxy is the front door: each agent comes through it to its own shard", self._open),
            ("One object and one RobotPlacement at the root: each robot's object is on its shard", self._place),
            (f"The shard {WEST} is killed, and release 1.1 is placed meanwhile", self._kill),
            (f"The shard {WEST} is started again: its robots catch up", self._start_again),
            (f"The shard {EAST} gets a clone, {CLONE}: an API server over a copy of its etcd", self._clone),
            (f"crsyncer door split moves {MOVING} to the clone", self._split),
            ("The controller is started again, and release 1.2 is placed", self._go_on),
        ):
            self._story.step(title)
            await step()

    async def _planes(self) -> None:
        clusters = {"root": self._cast.root, **self._cast.shards}
        clusters |= {name: robot.cluster for name, robot in self._cast.robots.items()}

        async def look(who: str) -> Seen:
            return Seen(who, f"kube-apiserver {await clusters[who].version()}", holds=True)

        await self._story.expect("all API servers answer", *(partial(look, who) for who in clusters))

    async def _enrol(self) -> None:
        cast = self._cast
        fleet = [crd for path in self._crds for crd in yaml.safe_load_all(path.read_text(encoding="utf-8"))]
        report = yaml.safe_load(self._report_crd.read_text(encoding="utf-8"))
        await asyncio.gather(
            *(cast.root.add_crd(crd) for crd in (CRD, *fleet)),
            *(shard.add_crd(crd) for shard in cast.shards.values() for crd in (CRD, report)),
            *(each.cluster.add_crd(CRD) for each in cast.robots.values()),
        )
        for name in NAMES:
            await cast.root.create(ROBOTS, ROBOTS.object(name))
        self._story.says("root", f"creates the Robots {', '.join(NAMES)}")
        self._story.quotes(f"\n{await self._door_command('assign', '--yes')}\n")
        crds = (CRD_FILE, self._report_crd)
        quotas = {
            shard: await cast.door.enrol(cluster, _robots_of(shard), crds) for shard, cluster in cast.shards.items()
        }
        for shard in quotas:
            self._story.says(shard, f"gets what crsyncer cloud-manifests prints for {', '.join(_robots_of(shard))}")
        await self._story.expect(
            "each robot may use its own namespace at its shard, and nothing else",
            *(partial(self._is_at, name, HOMES[name]) for name in NAMES),
            *(partial(_is_counted, shard, cast.shards[shard], found) for shard, found in quotas.items()),
        )

    async def _open(self) -> None:
        door = self._cast.door
        self._story.says("config", await self._door_command("config"))
        door.haproxy.start()
        self._story.says("haproxy", f"HAProxy, process {door.haproxy.pid}, at {door.server}")
        door.upkeep.start()
        self._story.says("door", f"crsyncer door run, process {door.upkeep.pid}")
        await self._door_status(0)
        await asyncio.gather(*(each.agent.start() for each in self._cast.robots.values()))
        for each in self._cast.robots.values():
            self._story.says(each.name, f"crsyncer run, process {each.agent.pid}, knows the door alone")
        await self._story.expect(
            "each agent reports to its own shard, through the door",
            *(partial(self._reports, name) for name in NAMES),
            *(partial(self._streams_are_of, shard, _robots_of(shard)) for shard in (WEST, EAST)),
        )

    async def _place(self) -> None:
        self._cast.start_controller()
        self._story.says("fleet", f"crsyncer fleet run, process {self._cast.controller.pid}, with both shards")
        await self._cast.root.create(NAVIGATIONS, SOURCE)
        await self._cast.root.create(PLACEMENTS, PLACEMENT)
        self._story.says("root", f"creates navigations/nav {shown(SOURCE['spec'])}, and a placement for all robots")
        await self._story.expect(
            "each robot has the object, from its own shard",
            *(partial(self._copy_is, name, "1.0") for name in NAMES),
            *(partial(self._has_replicas, shard, _robots_of(shard)) for shard in (WEST, EAST)),
            partial(counts_are, self._cast.root, selected=4, replicas=4),
        )
        for name, robot in self._cast.robots.items():
            self._uids[name] = (await robot.cluster.get(NAVIGATIONS, COPY))["metadata"]["uid"]

    async def _kill(self) -> None:
        await self._cast.kill_shard(WEST)
        self._story.says(WEST, "its API server and its etcd are killed")
        await self._release("1.1")
        await self._story.expect(
            f"the robots of {EAST} get it; those of {WEST} keep what they have",
            *(partial(self._copy_is, name, "1.1") for name in _robots_of(EAST)),
            *(partial(self._copy_is, name, "1.0") for name in _robots_of(WEST)),
            *(partial(self._is_same, name) for name in NAMES),
        )
        await self._door_status(10)

    async def _start_again(self) -> None:
        await self._cast.start_shard(WEST)
        await self._story.expect(
            "nobody has lost anything: the same objects as before, with the new release",
            *(partial(self._copy_is, name, "1.1") for name in NAMES),
            *(partial(self._is_kept, name) for name in NAMES),
            seconds=_PATIENCE,
        )

    async def _clone(self) -> None:
        await self._cast.controller.stop()
        self._story.says("fleet", "ends: whoever writes the robots' objects is stopped for the split; robots go on")
        await self._cast.clone_shard(EAST, CLONE)
        self._story.says(CLONE, f"starts with a copy of the data of {EAST}, and its keys of service accounts")
        await self._door_status(0)

    async def _split(self) -> None:
        names = self._cast.planes.directory / "robots.txt"
        names.write_text(f"{MOVING}\n", encoding="utf-8")
        split = (EAST, CLONE, "--names", str(names), "--door", self._cast.door.listen)
        for more in ((), ("--yes",)):
            self._story.quotes(f"\n{await self._door_command('split', *split, *more)}\n")
        staying = [name for name in _robots_of(EAST) if name != MOVING]
        await self._story.expect(
            f"{MOVING} is served by {CLONE}, and neither has anything of the other's robots",
            partial(self._is_at, MOVING, CLONE),
            partial(self._streams_are_of, CLONE, [MOVING]),
            partial(self._streams_are_of, EAST, staying),
            partial(self._has_replicas, CLONE, [MOVING]),
            partial(self._has_replicas, EAST, staying),
            *(partial(self._is_kept, name) for name in NAMES),
        )

    async def _go_on(self) -> None:
        self._cast.start_controller()
        self._story.says("fleet", f"crsyncer fleet run, process {self._cast.controller.pid}, with three shards")
        await self._release("1.2")
        await self._story.expect(
            "every robot gets it from its own shard, and each still has the object that it had at first",
            *(partial(self._copy_is, name, "1.2") for name in NAMES),
            *(partial(self._is_kept, name) for name in NAMES),
            partial(self._has_replicas, CLONE, [MOVING]),
            partial(counts_are, self._cast.root, selected=4, ready=4),
        )
        await ends_with(self._story, "crsyncer fleet status", 0, partial(self._cast.fleet, "status"))
        await self._door_status(0)

    # Parts of steps

    async def _release(self, release: str) -> None:
        await self._cast.root.patch(NAVIGATIONS, SOURCE, {"spec": {"release": release}})
        self._story.says("root", f"changes navigations/nav: release {release}")

    async def _door_command(self, name: str, *arguments: str) -> str:
        """Run a command of the door, which must end with 0; its output."""
        ended, out, error = await self._cast.door.command(name, *arguments)
        command = " ".join(("crsyncer door", name, *arguments))
        await self._story.expect("exit code 0", partial(_done, command, ended, out or error), seconds=0)
        return out.rstrip()

    async def _door_status(self, code: int) -> None:
        await ends_with(self._story, "crsyncer door status", code, partial(self._cast.door.command, "status"))

    async def _copy_is(self, name: str, release: str) -> Seen:
        return await copy_is(self._cast.robots[name], release, SOURCE["spec"]["map"])

    async def _is_at(self, name: str, shard: str) -> Seen:
        found = await self._cast.root.get(ROBOTS, ROBOTS.object(name))
        label = (found["metadata"].get("labels") or {}).get(SHARD_LABEL)
        return Seen("root", f"the Robot {name} has the shard {label}", label == shard)

    async def _reports(self, name: str) -> Seen:
        shard = HOMES[name]
        report = REPORTS.object(name, namespace=robot_namespace(name))
        found = await self._cast.shards[shard].find(REPORTS, report)
        if found is None:
            return Seen(shard, f"{name} has not reported", holds=False)
        return Seen(shard, f"{name} reports: {found['spec']['health']}", holds=True)

    async def _streams_are_of(self, shard: str, names: Sequence[str]) -> Seen:
        found = await self._cast.door.page(f"/streams?shard={shard}") or {}
        robots = found.get("robots") or []
        return Seen("door", f"streams at {shard}: {', '.join(robots) or 'none'}", robots == list(names))

    async def _has_replicas(self, shard: str, names: Sequence[str]) -> Seen:
        there = [name for name in NAMES if await self._cast.shards[shard].find(NAVIGATIONS, replica(name))]
        return Seen(shard, f"has the objects of {', '.join(there) or 'no robot'}", there == list(names))

    async def _is_same(self, name: str) -> Seen:
        found = await self._cast.robots[name].cluster.find(NAVIGATIONS, COPY)
        same = found is not None and found["metadata"]["uid"] == self._uids[name]
        return Seen(name, f"navigations/nav is {'the object that it was' if same else 'another object'}", same)

    async def _is_kept(self, name: str) -> Seen:
        """The object is the same, and the agent has neither deleted nor held anything."""
        same = await self._is_same(name)
        status = await self._cast.robots[name].agent.ask()
        if status is None:
            return Seen(name, "its agent does not answer", holds=False)
        deleted, holds = status["writes"]["robot"]["delete"], len(status["holds"])
        text = f"{same.what}; its agent is {status['health']}, deleted {deleted}, holds {holds}"
        return Seen(name, text, same.holds and (status["health"], deleted, holds) == ("healthy", 0, 0))


def _robots_of(shard: str) -> list[str]:
    return [name for name, home in HOMES.items() if home == shard]


async def _done(command: str, ended: int, output: str) -> Seen:
    """A command that has ended, with the end of its output where that is bad."""
    return Seen("door", f"{command} ends with {ended}{'' if ended == 0 else f': {output.strip()}'}", ended == 0)


async def _is_counted(shard: str, cluster: Cluster, quotas: Sequence[Json]) -> Seen:
    """An API server refuses what a quota counts until the quota shows what there is."""
    found = [await cluster.get(Resource.of_object(each), each) for each in quotas]
    counted = sum("used" in (each.get("status") or {}) for each in found)
    return Seen(shard, f"{counted} of {count(len(found), 'quota')} in force", counted == len(found))
