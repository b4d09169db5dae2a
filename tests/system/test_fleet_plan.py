"""`crsyncer fleet plan` reads a whole fleet from a real API server, and tries an edit on it without making it."""

from pathlib import Path

from crsyncer.core.model import Json
from crsyncer.sandbox.resource import CONFIG_MAP
from tests.core.sync_policies import placeable
from tests.system.fleet_bed import FleetBed
from tests.system.fleet_objects import made


def writes(content: Json) -> set[str]:
    return {f"{each['verb']} {each['namespace']}/{each['name']} {each['when']}" for each in content["writes"]}


async def test_F11_plan_names_every_write_of_what_is_stored_and_of_an_edit(fleet: FleetBed) -> None:
    goal = fleet.goal(x=1)
    entry = {"group": fleet.group, "resource": "goals", "selectors": [{}]}
    placement = made("RobotPlacement", spec={"robotSelectors": [{}], "resources": [entry]})
    await fleet.robots("r1", "r2")
    for obj in (goal, placement):
        await fleet.api.create(obj)

    async def plan(*words: str | Path, code: int = 1) -> Json:
        return await fleet.asked("plan", *words, code=code)

    async def explain(robot: str) -> Json:
        return await fleet.asked("explain", "a", "--robot", robot)

    [absent] = (await explain("r1"))["replicas"]
    assert (absent["verdict"], absent["rule"], absent["written"]) == ("missing", "F6.4", None)
    content = await plan()
    assert (content["schema"], content["counts"]["create"]) == ("crsyncer.fleet-plan/v1", 2)
    assert writes(content) == {"create robot-r1/dock now", "create robot-r2/dock now"}
    for robot in ("r1", "r2"):
        await fleet.api.ensure_namespace(f"robot-{robot}")
        for body in (await fleet.asked("render", "a", "--robot", robot))["items"]:
            await fleet.api.create(body)
    assert (await plan(code=0))["writes"] == []
    explained = await explain("r1")
    assert (explained["schema"], explained["selected"]) == ("crsyncer.fleet-explain/v1", True)
    [current] = explained["replicas"]
    assert (current["verdict"], current["written"], current["acked"]) == ("current", absent["stamp"], None)

    third, other = fleet.robot("r3"), fleet.goal(x=2)
    edited = await plan("-f", fleet.file(other, third))
    assert writes(edited) == {"update robot-r1/dock now", "update robot-r2/dock now", "create robot-r3/dock now"}
    assert writes(await plan("--without", "a")) == {"delete robot-r1/dock now", "delete robot-r2/dock now"}
    maps = {"group": "", "resource": "configmaps", "names": ["nav"]}
    more = made("RobotPlacement", spec={"robotNames": ["r1"], "resources": [maps]}) | {"metadata": {"name": "maps"}}
    nav = CONFIG_MAP.object("nav", data={"a": "b"})
    assert writes(await plan("-f", fleet.file(placeable("configmaps"), more, nav))) == {"create robot-r1/nav now"}

    shown = await fleet.command("plan", "-f", fleet.file(other, CONFIG_MAP.object("else", data={})), code=1)
    assert f"update goals.{fleet.group} robot-r1/dock: of default/dock, by default/a" in shown.stdout
    assert shown.stdout.endswith("0 creates, 2 updates, 0 deletes\n")
    assert "ConfigMap default/else changes no replica" in shown.stderr
    wrong = {**placement, "spec": {**placement["spec"], "target": "Same"}}
    refused = await fleet.command("plan", "-f", fleet.file(wrong), code=2)
    assert "the cloud refuses RobotPlacement default/a" in refused.stderr
    missing = await fleet.command("plan", "--without", "b", code=2)
    assert "there is no RobotPlacement default/b" in missing.stderr
