"""`crsyncer fleet plan` reads a whole fleet from a real API server, and tries an edit on it without making it."""

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


async def test_F11_plan_names_every_write_of_what_is_stored_and_of_an_edit(
    fleet_api: Api, cloud: Plane, group: str, tmp_path: Path
) -> None:
    goals = await fleet_api.apply_crd(crd(group, filtered="true"))
    goal = goals.object("dock", spec={"x": 1})
    entry = {"group": group, "resource": goals.plural, "selectors": [{}]}
    placement = made("RobotPlacement", spec={"robotSelectors": [{}], "resources": [entry]})
    for obj in (ROBOT.object("r1", spec={}), ROBOT.object("r2", spec={}), goal, placement):
        await fleet_api.create(obj)
    kubeconfig = cloud.kubeconfig(tmp_path / "cloud.yaml")

    async def run(*words: str | Path, code: int) -> Any:
        done = await asyncio.to_thread(crsyncer, "fleet", *words, "--cloud-kubeconfig", kubeconfig)
        assert done.returncode == code, done.stderr
        return done

    async def plan(*words: str | Path, code: int = 1) -> Json:
        return dict(json.loads((await run("plan", "--json", *words, code=code)).stdout))

    def writes(content: Json) -> set[str]:
        return {f"{each['verb']} {each['namespace']}/{each['name']} {each['when']}" for each in content["writes"]}

    def file(*objects: Any) -> Path:
        (tmp_path / "objects.yaml").write_text(yaml.safe_dump_all(objects))
        return tmp_path / "objects.yaml"

    async def explain(robot: str) -> Json:
        return dict(json.loads((await run("explain", "a", "--robot", robot, "--json", code=0)).stdout))

    [absent] = (await explain("r1"))["replicas"]
    assert (absent["verdict"], absent["rule"], absent["written"]) == ("missing", "F6.4", None)
    content = await plan()
    assert (content["schema"], content["counts"]["create"]) == ("crsyncer.fleet-plan/v1", 2)
    assert writes(content) == {"create robot-r1/dock now", "create robot-r2/dock now"}
    for robot in ("r1", "r2"):
        await fleet_api.ensure_namespace(f"robot-{robot}")
        rendered = await run("render", "a", "--robot", robot, "--json", code=0)
        for body in json.loads(rendered.stdout)["items"]:
            await fleet_api.create(body)
    assert (await plan(code=0))["writes"] == []
    explained = await explain("r1")
    assert (explained["schema"], explained["selected"]) == ("crsyncer.fleet-explain/v1", True)
    [current] = explained["replicas"]
    assert (current["verdict"], current["written"], current["acked"]) == ("current", absent["stamp"], None)
    assert (await explain("r3"))["replicas"] == []
    text = (await run("explain", "default/a", "--robot", "r1", code=0)).stdout
    assert text.startswith("RobotPlacement default/a selects robot r1.")
    assert f"ok  {goals.plural}.{group} robot-r1/dock: current: Current [F3.4]" in text
    assert "there is no RobotPlacement default/b" in (await run("explain", "b", "--robot", "r1", code=1)).stderr

    third, other = ROBOT.object("r3", spec={}), {**goal, "spec": {"x": 2}}
    edited = await plan("-f", file(other, third))
    assert writes(edited) == {"update robot-r1/dock now", "update robot-r2/dock now", "create robot-r3/dock now"}
    assert writes(await plan("--without", "a")) == {"delete robot-r1/dock now", "delete robot-r2/dock now"}
    maps = {"group": "", "resource": "configmaps", "names": ["nav"]}
    more = made("RobotPlacement", spec={"robotNames": ["r1"], "resources": [maps]}) | {"metadata": {"name": "maps"}}
    nav = CONFIG_MAP.object("nav", data={"a": "b"})
    assert writes(await plan("-f", file(placeable("configmaps"), more, nav))) == {"create robot-r1/nav now"}
    rollout = {"readyWhen": "true", "rollout": {}}
    slow = {**placement, "spec": {**placement["spec"], **rollout}}
    assert writes(await plan("-f", file(slow, other))) == {"update robot-r1/dock inTurn", "update robot-r2/dock inTurn"}

    shown = await run("plan", "-f", file(other, CONFIG_MAP.object("else", data={})), code=1)
    assert f"update {goals.plural}.{group} robot-r1/dock: of default/dock, by default/a" in shown.stdout
    assert shown.stdout.endswith("0 creates, 2 updates, 0 deletes\n")
    assert "ConfigMap default/else changes no replica" in shown.stderr
    wrong = {**placement, "spec": {**placement["spec"], "target": "Same"}}
    refused = await run("plan", "-f", file(wrong), code=2)
    assert "the cloud refuses RobotPlacement default/a" in refused.stderr
    missing = await run("plan", "--without", "b", code=2)
    assert "there is no RobotPlacement default/b" in missing.stderr
