"""`crsyncer fleet doctor` on a real API server with RBAC: it names what is missing, and each right that is."""

import asyncio
import json
from pathlib import Path
from typing import Any

from crsyncer.core.model import Json
from crsyncer.sandbox.plane import Plane
from crsyncer.sandbox.resource import Resource
from tests.api import Api
from tests.delivery.command_line import crsyncer
from tests.system.bed import crd
from tests.system.conftest import FLEET_CRDS
from tests.system.fleet_objects import made
from tests.system.kinds import account

ROBOT = Resource.of_crd(FLEET_CRDS["inventory"])


async def test_doctor_names_what_is_missing_and_each_right(
    fleet_api: Api, cloud: Plane, group: str, tmp_path: Path
) -> None:
    kubeconfig = cloud.kubeconfig(tmp_path / "cloud.yaml")

    async def doctor(login: Path = kubeconfig, *, code: int) -> dict[tuple[str, str], Json]:
        words = ("fleet", "doctor", "--json", "--cloud-kubeconfig", login)
        done = await asyncio.to_thread(crsyncer, *words)
        assert done.returncode == code, done.stdout + done.stderr
        content = json.loads(done.stdout)
        assert content["schema"] == "crsyncer.doctor/v1"
        return {(each["name"], each["resource"] or ""): each for each in content["checks"]}

    goals = await fleet_api.apply_crd(crd(group, filtered="true"))
    entry = {"group": group, "resource": goals.plural, "selectors": [{}]}
    for obj in (
        ROBOT.object("r1", spec={}),
        goals.object("dock", spec={"x": 1}),
        made("RobotPlacement", spec={"robotNames": ["r1"], "resources": [entry]}),
    ):
        await fleet_api.create(obj)
    kind, placement = ("kind", f"{goals.plural}.{group}"), ("placement", "default/a")
    found = await doctor(code=13)
    assert {each["state"] for each in found.values()} <= {"ok", "warn"}
    assert [name for name, each in found.items() if each["state"] == "warn"] == [("controller", "")]
    assert found[kind]["message"] == "1 source selected, 0 replicas"
    assert found[placement]["message"] == "1 source for 1 robot"
    assert all(found["crd", each["metadata"]["name"]]["state"] == "ok" for each in [*FLEET_CRDS.values()][:-1])
    shown = await asyncio.to_thread(crsyncer, "fleet", "doctor", "--cloud-kubeconfig", kubeconfig)
    assert "READY: the controller can be started" in shown.stdout

    # An account that may do all but two things.
    rules: Any = [
        {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch", "create", "update", "delete"]}
    ]
    token = await account(fleet_api, f"fleet-{group}", rules)
    own = cloud.kubeconfig(tmp_path / "own.yaml", token=token)
    found = await doctor(own, code=12)
    lacking = {each["resource"]: each["message"] for each in found.values() if each["state"] == "fail"}
    assert lacking[f"{goals.plural}.{group}"] == "may not patch"
    assert lacking["robotplacements.fleet.crsyncer.cloudrobotics.com/status"] == "may not patch"
    assert "leases.coordination.k8s.io/default" not in lacking

    stray = goals.object("odd", spec={}, labels={"crsyncer.cloudrobotics.com/source": "a" * 24})
    await fleet_api.create(stray)
    await fleet_api.create({**made("RobotPlacement", spec={}), "metadata": {"name": "none", "namespace": "default"}})
    gone = {"group": group, "resource": "tasks", "names": ["t"]}
    wrong = made("RobotPlacement", spec={"robotNames": ["r1"], "resources": [gone]})
    await fleet_api.create({**wrong, "metadata": {"name": "wrong", "namespace": "default"}})
    await fleet_api.remove_crds(FLEET_CRDS["statuscollectors"])
    found = await doctor(code=12)
    assert found["marks", ""]["message"].endswith(f"{goals.plural}.{group}/default/odd")
    assert found["placement", "default/none"]["message"] == "selects no robot"
    assert found["placement", "default/wrong"]["message"] == f"NotServed: the cloud does not serve tasks.{group}"
    assert found["crd", "statuscollectors.fleet.crsyncer.cloudrobotics.com"]["message"] == "is not installed"
    older = json.loads(json.dumps(FLEET_CRDS["fieldstrips"]))
    older["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"].pop("description", None)
    older["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"].pop("remove")
    older["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["required"] = ["group"]
    await fleet_api.apply_crd(older)
    found = await doctor(code=12)
    assert found["crd", "fieldstrips.fleet.crsyncer.cloudrobotics.com"]["state"] == "warn"
