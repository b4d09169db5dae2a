"""`crsyncer fleet render` reads a real API server, and puts the objects of a file over what is stored there."""

import asyncio
import json
from pathlib import Path
from typing import Any

import yaml

from crsyncer.core.model import Json
from crsyncer.sandbox.plane import Plane
from crsyncer.sandbox.resource import CONFIG_MAP, Resource
from tests.api import Api
from tests.core.sync_policies import placeable
from tests.delivery.command_line import crsyncer
from tests.system.bed import crd
from tests.system.conftest import FLEET_CRDS
from tests.system.fleet_objects import made

ROBOT = Resource.of_crd(FLEET_CRDS["inventory"])


async def test_render_reads_the_cloud_and_puts_a_file_over_it(
    fleet_api: Api, cloud: Plane, group: str, tmp_path: Path
) -> None:
    goals = await fleet_api.apply_crd(crd(group, filtered="true"))
    goal = goals.object("dock", spec={"x": 1, "note": "internal"}, labels={"tier": "edge"})
    entry = {"group": group, "resource": goals.plural, "selectors": [{"matchLabels": {"tier": "edge"}}]}
    config_map = {"group": "", "resource": "configmaps", "names": ["nav"]}
    placement = made("RobotPlacement", spec={"robotNames": ["r1"], "resources": [entry]})
    strip = made("FieldStrip", namespace="", spec={"group": group, "resource": goals.plural, "remove": ["/spec/note"]})
    for obj in (ROBOT.object("r1", spec={"type": "lift"}), goal, placement, strip):
        await fleet_api.create(obj)
    kubeconfig = cloud.kubeconfig(tmp_path / "cloud.yaml")

    async def render(*arguments: str | Path, code: int = 0) -> tuple[list[Json], str]:
        words = ("fleet", "render", "a", "--robot", "r1", "--cloud-kubeconfig", kubeconfig, "--json", *arguments)
        done = await asyncio.to_thread(crsyncer, *words)
        assert done.returncode == code, done.stderr
        return json.loads(done.stdout)["items"], done.stderr

    def file(*objects: Any) -> Path:
        (tmp_path / "objects.yaml").write_text(yaml.safe_dump_all(objects))
        return tmp_path / "objects.yaml"

    [replica], said = await render()
    assert (replica["kind"], replica["spec"], said) == (goals.kind, {"x": 1}, "")
    assert replica["metadata"]["labels"]["tier"] == "edge"
    stored = json.loads(replica["metadata"]["annotations"]["crsyncer.cloudrobotics.com/replica"])
    assert stored["placement"] == (await fleet_api.get(placement))["metadata"]["uid"]

    [replica], _ = await render("-f", file({**goal, "spec": {"x": 7, "note": "internal"}}))
    assert replica["spec"] == {"x": 7}

    both = made("RobotPlacement", spec={"robotNames": ["r1"], "resources": [entry, config_map]})
    nav = CONFIG_MAP.object("nav", data={"a": "b"})
    [replica], said = await render("-f", file(both, nav), code=1)
    assert "configmaps: NotPlaceable: no SyncPolicy in the cloud for configmaps" in said
    _, replica = (await render("-f", file(both, nav, placeable("configmaps"))))[0]
    assert (replica["kind"], replica["data"]) == ("ConfigMap", {"a": "b"})

    gone = {"group": group, "resource": "tasks", "names": ["t"]}
    replicas, said = await render(
        "-f", file(made("RobotPlacement", spec={"robotNames": ["r1"], "resources": [gone]})), code=1
    )
    assert (replicas, f"tasks.{group}: NotServed" in said) == ([], True)

    await fleet_api.remove_crds(FLEET_CRDS["fieldstrips"])
    words = ("fleet", "render", "a", "--robot", "r1", "--cloud-kubeconfig", kubeconfig)
    done = await asyncio.to_thread(crsyncer, *words)
    assert (done.returncode, done.stdout) == (1, ""), "without the strips nobody knows what the replica is"
