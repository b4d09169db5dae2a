"""`crsyncer fleet release` on a real API server: it shows what a hold keeps, and marks where it is held."""

import asyncio
import json
from pathlib import Path
from typing import Any

from crsyncer.core.content.object_content import digest
from crsyncer.fleet.domain.values import RELEASE
from crsyncer.sandbox.plane import Plane
from crsyncer.sandbox.resource import Resource
from tests.api import Api
from tests.delivery.command_line import crsyncer
from tests.system.bed import crd
from tests.system.conftest import FLEET_CRDS
from tests.system.fleet_objects import made

ROBOT = Resource.of_crd(FLEET_CRDS["inventory"])


async def test_F5_2_a_release_shows_what_goes_and_is_set_where_it_is_held(
    fleet_api: Api, cloud: Plane, group: str, tmp_path: Path
) -> None:
    goals = await fleet_api.apply_crd(crd(group, filtered="true"))
    entry = {"group": group, "resource": goals.plural, "selectors": [{}]}
    robot = ROBOT.object("r1", spec={})
    for obj in (robot, goals.object("dock", spec={"x": 1})):
        await fleet_api.create(obj)
    placement = await fleet_api.create(made("RobotPlacement", spec={"robotNames": ["r1"], "resources": [entry]}))
    kubeconfig = cloud.kubeconfig(tmp_path / "cloud.yaml")

    async def run(*words: str, code: int = 0) -> Any:
        done = await asyncio.to_thread(crsyncer, "fleet", *words, "--cloud-kubeconfig", kubeconfig)
        assert done.returncode == code, done.stdout + done.stderr
        return done

    async def released(obj: Any) -> str | None:
        return ((await fleet_api.get(obj))["metadata"].get("annotations") or {}).get(RELEASE)

    await fleet_api.ensure_namespace("robot-r1")
    [body] = json.loads((await run("render", "a", "--robot", "r1", "--json")).stdout)["items"]
    uid = (await fleet_api.create(body))["metadata"]["uid"]
    assert (await run("release", "--all")).stdout == "nothing is held\n"
    await fleet_api.delete(robot)
    hold: Any = {"id": digest([uid]), "reason": "NoRobots", "objects": 1, "message": "1 replica: there are no Robots"}
    await fleet_api.patch_status(placement, {"holds": [hold]})

    shown = await run("release", hold["id"])
    name = f"{goals.plural}.{group}/robot-r1/dock"
    assert f"{hold['id']}: 1 replica of RobotPlacement default/a will be removed" in shown.stdout
    assert f"    {name}\n" in shown.stdout
    assert "nothing was changed; repeat the command with --yes" in shown.stderr
    assert await released(placement) is None
    assert "there is no hold ab12" in (await run("release", hold["id"], "ab12", "--yes", code=1)).stderr
    assert await released(placement) is None
    content = json.loads((await run("release", hold["id"], "--yes", "--json")).stdout)
    assert (content["schema"], content["released"]) == ("crsyncer.fleet-release/v1", True)
    assert await released(placement) == hold["id"]

    decision = made("RobotPlacementDecision", placement={"name": "a", "uid": placement["metadata"]["uid"]}, robots=[])
    decision["metadata"] = {"name": "a-0", "namespace": "default"}
    await fleet_api.create(decision)
    await fleet_api.delete(placement)
    content = json.loads((await run("release", "--all", "--json")).stdout)
    [row] = content["holds"]
    assert (content["released"], row["id"], row["reason"], row["decision"]) == (
        *(False, hold["id"], "PlacementGone", "a-0"),
    )
    assert row["names"] == [name]
    assert (await run("release", "--all", "--yes")).stdout == f"released {hold['id']}: 1 replica will be removed\n"
    assert await released(decision) == hold["id"]
