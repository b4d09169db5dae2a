"""Shared mode on real API servers: the root with a robot's agent, and a shard of which the robot is played (F10.3)."""

import asyncio
import json
from pathlib import Path

from crsyncer.core.content.annotations import ROBOT_LABEL, SHARD_LABEL, SHARED
from crsyncer.core.content.object_content import ROBOT as ROBOT_ANNOTATION
from crsyncer.core.content.object_content import digest
from crsyncer.core.model import Json
from crsyncer.fleet.domain.values import PlacedKind
from crsyncer.fleet.rights import shard_rights
from crsyncer.sandbox.plane import Plane
from tests.api import Api
from tests.delivery.command_line import crsyncer
from tests.system.bed import ROBOT, crd, eventually
from tests.system.conftest import FLEET_CRDS, MakeBed
from tests.system.fleet_bed import FleetBed, marks
from tests.system.fleet_objects import made
from tests.system.kinds import account


def rules(group: str) -> list[Json]:
    """The rights that the controller needs at a shard, and no others."""
    kind = PlacedKind(f"goals.{group}", group, "goals", "Goal", "v1", namespaced=True, shared=True)
    return [
        {"apiGroups": [each.group], "resources": [each.resource], "verbs": each.verbs, "resourceNames": each.names}
        for each in shard_rights([kind])
    ]


def returned(copy: Json, group: str, robot: str) -> Json:
    """What the agent of a robot says of its copy."""
    metadata = copy["metadata"]
    place = {each: metadata[each] for each in ("namespace", "name", "uid")}
    name = digest([f"goals.{group}", metadata["namespace"], metadata["name"]])
    found = made(
        "RobotObjectStatus",
        spec={"source": {"group": group, "resource": "goals", **place}, "returned": {"phase": "Ready"}},
    )
    marked = {"labels": {ROBOT_LABEL: robot}, "annotations": {ROBOT_ANNOTATION: robot}}
    return {**found, "metadata": {"namespace": "default", "name": f"{name}-{robot}", **marked}}


async def test_F10_3_an_edit_is_one_write_for_each_shard_and_no_status_lands_on_the_source(
    fleet_api: Api, cloud: Plane, plane_b: Plane, make_bed: MakeBed, group: str, tmp_path: Path
) -> None:
    agent = await make_bed()
    fleet = FleetBed(fleet_api, cloud, tmp_path, group, agent.cloud.resource)
    async with Api(plane_b.server, ca_file=plane_b.ca_file, token=plane_b.admin_token) as api_b:
        on_b = FleetBed(api_b, plane_b, tmp_path, group, await api_b.apply_crd(crd(group)))
        for name in ("robotsyncstates", "robotobjectstatuses"):
            await api_b.apply_crd(FLEET_CRDS[name])
        try:
            await fleet.robots(ROBOT)
            await fleet.robots("rb", **{SHARD_LABEL: "b"})
            await agent.cloud.create("dock", spec={"speed": 1})
            await fleet.place(mode="Shared", readyWhen="returned.status.phase == 'Ready'")
            token = await account(api_b, "fleet", rules(group))
            shard = ("--shard", f"b={plane_b.kubeconfig(tmp_path / 'b.kubeconfig', token=token)}")
            fleet.start("fleet", *shard)

            async def copied() -> Json | None:
                return (await on_b.replicas()).get("default/dock")

            copy = await eventually(copied, what="the copy on b")
            await api_b.create(returned(copy, group, "rb"))
            await agent.robot.shows("dock", spec={"speed": 1})

            async def is_marked() -> bool:
                return SHARED in (await agent.cloud.get("dock"))["metadata"].get("annotations", {})

            await eventually(is_marked, what="the mark on the source")
            await agent.settled()
            await agent.robot.set_status("dock", {"phase": "Ready"})
            status = await fleet.until_status(lambda found: found.get("counts", {}).get("ready") == 2)
            assert status["counts"]["replicas"] == 1
            assert "status" not in await agent.cloud.get("dock")

            await agent.cloud.patch("dock", {"spec": {"speed": 2}})
            await agent.robot.shows("dock", spec={"speed": 2})

            async def is_edited() -> bool:
                return bool((await on_b.replicas())["default/dock"]["spec"] == {"speed": 2})

            await eventually(is_edited, what="the edit on b")
            after = (await on_b.replicas())["default/dock"]
            assert (after["metadata"]["uid"], marks(after)["n"]) == (copy["metadata"]["uid"], 2)

            kubeconfig = cloud.kubeconfig(tmp_path / "reader.kubeconfig")
            for robot, where in ((ROBOT, "root"), ("rb", "b")):
                words = ("fleet", "explain", "all", "--robot", robot, "--json", *shard)
                done = await asyncio.to_thread(crsyncer, *words, "--cloud-kubeconfig", kubeconfig)
                [shown] = json.loads(done.stdout)["replicas"]
                assert (shown["shard"], shown["verdict"]) == (where, "current"), done.stderr

            await fleet.api.delete(await fleet.placement())
            await agent.cloud.shows("dock", status={"phase": "Ready"})

            async def is_left() -> bool:
                return not await on_b.replicas() and not await is_marked()

            await eventually(is_left, what="neither copy nor mark")
        finally:
            await fleet.stop()
