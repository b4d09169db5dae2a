"""`crsyncer fleet doctor` on a real API server with RBAC: it names what is missing, and each right that is."""

import json
from collections import defaultdict
from typing import Any

from crsyncer.fleet.rights import own_rights
from tests.system.conftest import FLEET_CRDS
from tests.system.fleet_bed import FleetBed
from tests.system.fleet_objects import made
from tests.system.kinds import account


async def test_doctor_of_an_account_without_rights_names_each_of_them(fleet: FleetBed) -> None:
    token = await account(fleet.api, f"none-{fleet.group}", [])
    own = fleet.cloud.kubeconfig(fleet.directory / "none.yaml", token=token)
    found = await fleet.checked(login=own, code=12)
    lacking = {resource: each["message"] for (name, resource), each in found.items() if name == "permissions"}
    granted: dict[str, list[str]] = defaultdict(list)
    for right in own_rights(controller_namespace="default", robots="robots.registry.cloudrobotics.com"):
        plural, _, subresource = right.resource.partition("/")
        resource = f"{plural}.{right.group}".rstrip(".")
        granted["/".join(filter(None, (resource, subresource, right.namespace)))] += right.verbs
    assert lacking == {place: f"may not {', '.join(verbs)}" for place, verbs in granted.items()}


async def test_doctor_names_what_is_missing_and_each_right(fleet: FleetBed) -> None:
    await fleet.robots("r1")
    await fleet.api.create(fleet.goal(x=1))
    await fleet.place("a")
    kind, placement = ("kind", f"goals.{fleet.group}"), ("placement", "default/a")
    found = await fleet.checked(code=13)
    assert {each["state"] for each in found.values()} <= {"ok", "warn"}
    assert [name for name, each in found.items() if each["state"] == "warn"] == [("controller", "")]
    assert found[kind]["message"] == "1 source selected, 0 replicas"
    assert found[placement]["message"] == "1 source for 1 robot"
    assert all(found["crd", each["metadata"]["name"]]["state"] == "ok" for each in [*FLEET_CRDS.values()][:-1])
    assert (await fleet.asked("doctor", code=13))["schema"] == "crsyncer.doctor/v1"
    assert "READY: the controller can be started" in (await fleet.command("doctor", code=13)).stdout

    # An account that may do all but two things.
    rules: Any = [
        {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch", "create", "update", "delete"]}
    ]
    token = await account(fleet.api, f"fleet-{fleet.group}", rules)
    own = fleet.cloud.kubeconfig(fleet.directory / "own.yaml", token=token)
    found = await fleet.checked(login=own, code=12)
    lacking = {each["resource"]: each["message"] for each in found.values() if each["state"] == "fail"}
    assert lacking[f"goals.{fleet.group}"] == "may not patch"
    assert lacking["robotplacements.fleet.crsyncer.cloudrobotics.com/status"] == "may not patch"
    assert "leases.coordination.k8s.io/default" not in lacking

    stray = fleet.goals.object("odd", spec={}, labels={"crsyncer.cloudrobotics.com/source": "a" * 24})
    await fleet.api.create(stray)
    await fleet.api.create({**made("RobotPlacement", spec={}), "metadata": {"name": "none", "namespace": "default"}})
    gone = {"group": fleet.group, "resource": "tasks", "names": ["t"]}
    wrong = made("RobotPlacement", spec={"robotNames": ["r1"], "resources": [gone]})
    await fleet.api.create({**wrong, "metadata": {"name": "wrong", "namespace": "default"}})
    await fleet.api.remove_crds(FLEET_CRDS["statuscollectors"])
    found = await fleet.checked(code=12)
    assert found["marks", ""]["message"].endswith(f"goals.{fleet.group}/default/odd")
    assert found["placement", "default/none"]["message"] == "selects no robot"
    assert found["placement", "default/wrong"]["message"] == f"NotServed: the cloud does not serve tasks.{fleet.group}"
    assert found["crd", "statuscollectors.fleet.crsyncer.cloudrobotics.com"]["message"] == "is not installed"
    older = json.loads(json.dumps(FLEET_CRDS["fieldstrips"]))
    older["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"].pop("description", None)
    older["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"].pop("remove")
    older["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["required"] = ["group"]
    await fleet.api.apply_crd(older)
    found = await fleet.checked(code=12)
    assert found["crd", "fieldstrips.fleet.crsyncer.cloudrobotics.com"]["state"] == "warn"
