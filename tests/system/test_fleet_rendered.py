"""`crsyncer fleet render` reads a real API server, and puts the objects of a file over what is stored there."""

import json
from pathlib import Path

from crsyncer.core.model import Json
from crsyncer.sandbox.resource import CONFIG_MAP
from tests.core.sync_policies import placeable
from tests.system.conftest import FLEET_CRDS
from tests.system.fleet_bed import FleetBed
from tests.system.fleet_objects import made


async def test_render_reads_the_cloud_and_puts_a_file_over_it(fleet: FleetBed) -> None:
    goal = fleet.goals.object("dock", spec={"x": 1, "note": "internal"}, labels={"tier": "edge"})
    entry = {"group": fleet.group, "resource": "goals", "selectors": [{"matchLabels": {"tier": "edge"}}]}
    config_map = {"group": "", "resource": "configmaps", "names": ["nav"]}
    placement = made("RobotPlacement", spec={"robotNames": ["r1"], "resources": [entry]})
    strip = made("FieldStrip", namespace="", spec={"group": fleet.group, "resource": "goals", "remove": ["/spec/note"]})
    await fleet.robots("r1")
    for obj in (goal, placement, strip):
        await fleet.api.create(obj)

    async def render(*arguments: str | Path, code: int = 0) -> tuple[list[Json], str]:
        done = await fleet.command("render", "a", "--robot", "r1", "--json", *arguments, code=code)
        return json.loads(done.stdout)["items"], done.stderr

    [replica], said = await render()
    assert (replica["kind"], replica["spec"], said) == (fleet.goals.kind, {"x": 1}, "")
    assert replica["metadata"]["labels"]["tier"] == "edge"
    stored = json.loads(replica["metadata"]["annotations"]["crsyncer.cloudrobotics.com/replica"])
    assert stored["placement"] == (await fleet.api.get(placement))["metadata"]["uid"]

    [replica], _ = await render("-f", fleet.file({**goal, "spec": {"x": 7, "note": "internal"}}))
    assert replica["spec"] == {"x": 7}

    both = made("RobotPlacement", spec={"robotNames": ["r1"], "resources": [entry, config_map]})
    nav = CONFIG_MAP.object("nav", data={"a": "b"})
    [replica], said = await render("-f", fleet.file(both, nav), code=1)
    assert "configmaps: NotPlaceable: no SyncPolicy in the cloud for configmaps" in said
    _, replica = (await render("-f", fleet.file(both, nav, placeable("configmaps"))))[0]
    assert (replica["kind"], replica["data"]) == ("ConfigMap", {"a": "b"})

    gone = {"group": fleet.group, "resource": "tasks", "names": ["t"]}
    replicas, said = await render(
        "-f", fleet.file(made("RobotPlacement", spec={"robotNames": ["r1"], "resources": [gone]})), code=1
    )
    assert (replicas, f"tasks.{fleet.group}: NotServed" in said) == ([], True)

    await fleet.api.remove_crds(FLEET_CRDS["fieldstrips"])
    done = await fleet.command("render", "a", "--robot", "r1", code=1)
    assert done.stdout == "", "without the strips nobody knows what the replica is"
