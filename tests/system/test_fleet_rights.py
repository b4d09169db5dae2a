"""The controller works on a real API server with exactly what `fleet manifests` grants, and serves its page."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
import yaml

from crsyncer.core.model import Json
from crsyncer.sandbox.fleet_process import controller
from crsyncer.sandbox.free_ports import free_ports
from crsyncer.sandbox.plane import Plane
from crsyncer.sandbox.program import Program
from crsyncer.sandbox.resource import Resource
from tests.api import Api, ApiError
from tests.delivery.command_line import crsyncer
from tests.system.bed import crd, eventually
from tests.system.fleet_bed import FleetBed, make_fleet_bed
from tests.system.fleet_objects import made

NAMESPACE = "crsyncer-fleet"
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")
GRANTS = ("Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")


class Account:
    """Controllers with the account of the manifests, and the addresses that they serve on."""

    def __init__(self, bed: FleetBed, kubeconfig: Path) -> None:
        self.bed = bed
        self.kubeconfig = kubeconfig

    def start(self, name: str) -> int:
        """Start a controller; the port that it listens on."""
        (port,) = free_ports(1)
        flags = ("--controller-namespace", NAMESPACE, "--listen", f"127.0.0.1:{port}")
        program: Program = controller(self.bed.directory, kubeconfig=self.kubeconfig, name=name, flags=flags)
        program.start()
        self.bed.controllers[name] = program
        return port


@pytest.fixture
async def account(fleet_api: Api, cloud: Plane, tmp_path: Path, group: str) -> AsyncIterator[Account]:
    bed = await make_fleet_bed(fleet_api, cloud, tmp_path, group)
    (tmp_path / "crd.yaml").write_text(yaml.safe_dump(crd(group, filtered="true")))
    done = await asyncio.to_thread(crsyncer, "fleet", "manifests", "--crds", tmp_path / "crd.yaml", "--json")
    granted = [each for each in json.loads(done.stdout)["items"] if each["kind"] in GRANTS]
    fleet_api.learn(*(Resource("rbac.authorization.k8s.io", "v1", f"{kind.lower()}s", kind) for kind in GRANTS[2:]))
    try:
        for obj in granted:
            if await fleet_api.find(obj) is None:
                await fleet_api.create(obj)
        token = await fleet_api.service_account_token(NAMESPACE, "crsyncer-fleet")

        async def in_force() -> bool:  # a role is in force when the API server has heard of it
            return all([await may(fleet_api, right) for role in granted for right in rights(role)])

        await eventually(in_force, what="the rights of the account")
        yield Account(bed, cloud.kubeconfig(tmp_path / "account.yaml", token=token))
    finally:
        await bed.stop()
        for obj in granted:
            if obj["kind"] != "Namespace" and await fleet_api.find(obj) is not None:
                await fleet_api.delete(obj)


def rights(role: Json) -> list[Json]:
    """Each right that a role gives, as an access review names it."""
    return [
        {"namespace": role["metadata"].get("namespace", ""), "group": group, "verb": verb, "name": name}
        | dict(zip(("resource", "subresource"), f"{resource}/".split("/"), strict=False))
        for rule in role.get("rules", ())
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        for name in rule.get("resourceNames", [""])
    ]


async def may(api: Api, right: Json) -> bool:
    """Whether the account has a right."""
    spec = {"user": f"system:serviceaccount:{NAMESPACE}:crsyncer-fleet", "resourceAttributes": right}
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
    _, answer = await api.request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", json=review)
    return bool(answer["status"]["allowed"])


async def get(port: int, path: str) -> tuple[int, str]:
    """What a controller answers; 0: nothing."""
    try:
        async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}{path}") as reply:
            return reply.status, await reply.text()
    except aiohttp.ClientError:
        return 0, ""


async def test_F2_5_the_controller_works_with_the_rights_of_its_manifests_and_asks_for_no_others(account: Account):
    bed, port = account.bed, account.start("first")
    await bed.robots("r1", "r2")
    source = await bed.api.create(bed.goal(speed=1))
    placement = await bed.place()
    await bed.until_specs(r1={"speed": 1}, r2={"speed": 1})
    await bed.api.patch(source, {"spec": {"speed": 2}})
    await bed.until_specs(r1={"speed": 2}, r2={"speed": 2})
    await bed.until_status(lambda status: status["counts"]["stamped"] == 2)

    async def led() -> bool:
        return "crsyncer_fleet_leader 1.0" in (await get(port, "/metrics"))[1]

    await eventually(led, what="the metrics of the leader")
    assert (await get(port, "/readyz"))[0] == 200
    assert f"default/{placement['metadata']['name']}" in (await get(port, "/"))[1]
    assert "Robot r1" in (await get(port, "/?robot=r1"))[1]
    standby = account.start("second")

    async def named() -> bool:
        return "leads, and shows the fleet" in (await get(standby, "/"))[1]

    await eventually(named, what="the page of the standby")
    assert (await get(standby, "/readyz"))[0] == 200

    login = ("--cloud-kubeconfig", account.kubeconfig, "--controller-namespace", NAMESPACE)
    done = await asyncio.to_thread(crsyncer, "fleet", "doctor", "--json", *login)
    checks = json.loads(done.stdout)["checks"]
    assert [each for each in checks if each["state"] == "fail"] == [], "the doctor asks for other rights"

    await bed.api.patch(placement, {"spec": {"robotSelectors": [], "robotNames": ["r2"]}})
    await bed.until_specs(r2={"speed": 2})
    await bed.api.delete(placement)
    await bed.api.until_gone(placement)
    text = (await get(port, "/metrics"))[1]
    assert 'verb="list"' in text
    refused = [line for line in text.splitlines() if 'code="403"' in line or 'code="401"' in line]
    assert refused == []


async def test_F2_5_the_account_may_do_nothing_else(account: Account):
    cloud, api = account.bed.cloud, account.bed.api
    await api.create(account.bed.goal(speed=1))
    token = await api.service_account_token(NAMESPACE, "crsyncer-fleet")
    async with Api(cloud.server, ca_file=cloud.ca_file, token=token) as own:
        own.learn(account.bed.goals)
        allowed = await own.get(account.bed.goal())
        assert allowed["spec"] == {"speed": 1}
        robot: Json = {"apiVersion": "registry.cloudrobotics.com/v1alpha1", "kind": "Robot"}
        for attempt in (
            own.create(made("RobotPlacement", spec={})),
            own.delete(made("RobotPlacement", spec={})),
            own.create(made("FieldStrip", namespace="", spec={})),
            own.create({**robot, "metadata": {"name": "r1", "namespace": "default"}}),
            own.create(
                {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "metadata": {"name": "r1", "namespace": "crsyncer-properties"},
                }
            ),
            own.list(Resource("", "v1", "secrets", "Secret")),
            own.list(Resource("", "v1", "configmaps", "ConfigMap")),
            own.list(Resource("", "v1", "pods", "Pod")),
            own.delete({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}),
            own.list(LEASES, namespace=NAMESPACE),
        ):
            with pytest.raises(ApiError) as refused:
                await attempt
            assert refused.value.status == 403
