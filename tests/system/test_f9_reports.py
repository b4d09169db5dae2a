"""F9: a robot with the rights of `cloud-manifests` reports to its fleet, and can write no other robot's report."""

import copy
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from crsyncer.console.confinement.manifests import Plan, Profile, confinable
from crsyncer.core.content.object_content import ROBOT
from crsyncer.core.content.replica_mark import SOURCE
from crsyncer.core.model import Json
from crsyncer.core.reports.robot_report import applied_digest
from crsyncer.sandbox.agent_process import AgentProcess
from crsyncer.sandbox.resource import CRD, Resource
from crsyncer.sandbox.two_planes import Sandbox
from tests.api import Api
from tests.model.scenes.reporting import PLACEMENT, marks
from tests.system.bed import LABEL, eventually
from tests.system.confined import KINDS, ROBOTS, SHARED, Answer, Confined, at, thing
from tests.system.conftest import FLEET_CRDS

REPORTS = FLEET_CRDS["robotsyncstates"]
STATES = Resource("fleet.crsyncer.cloudrobotics.com", "v1alpha1", "robotsyncstates", "RobotSyncState")


@pytest.fixture(scope="module")
def confined(confined: Confined) -> Iterator[Confined]:
    """Robots that are confined, and may report."""
    assert confined.admin.ask("POST", CRD.path(), REPORTS).status in (201, 409)
    for profile in Profile:
        kind = confinable(REPORTS, profile, place="-")
        confined.apply(Plan(ROBOTS, (kind,), profile=profile, namespaces=(SHARED,)))
    yield confined
    assert confined.admin.ask("DELETE", CRD.path(name=REPORTS["metadata"]["name"])).status == 200


@pytest.fixture
async def agent(confined: Confined, sandbox: Sandbox, robot_api: Api, tmp_path: Path) -> AsyncIterator[AgentProcess]:
    """The agent of r1, confined to its namespace in the cloud."""
    await robot_api.apply_crd(KINDS["goals"])
    cloud = sandbox.cloud.kubeconfig(tmp_path / "cloud.yaml", token=confined.robots["r1"].token)
    robot = sandbox.robot.kubeconfig(tmp_path / "robot.yaml")
    flags = ("--namespace-map", "robot-r1=default")
    process = AgentProcess(tmp_path, cloud_kubeconfig=cloud, robot_kubeconfig=robot, robot_name="r1", flags=flags)
    yield process
    await process.kill()
    await robot_api.remove_crds(KINDS["goals"])


def report(name: str, robot: str, **metadata: Any) -> Json:
    """A report, as the agent of a robot writes it."""
    marked = {"labels": {LABEL: robot}, "annotations": {ROBOT: robot}}
    head = {"apiVersion": STATES.api_version, "kind": STATES.kind}
    return head | {"metadata": {"name": name, **marked, **metadata}, "spec": {"robot": robot, "beat": 1}}


async def test_F9_1_F9_5_a_confined_robot_reports_which_of_its_replicas_it_has(
    confined: Confined, agent: AgentProcess
) -> None:
    replica = thing("goals", "robot-r1", "dock", "r1")
    replica["metadata"]["labels"][SOURCE] = "0" * 24
    replica["metadata"]["annotations"] = marks("dock", 3)
    made = confined.admin.ask("POST", at("goals", "robot-r1"), replica)
    assert made.status == 201, made
    await agent.start()

    async def acknowledged() -> Json | None:
        found = confined.admin.ask("GET", STATES.path(namespace="robot-r1", name="r1")).body
        return found if found.get("spec", {}).get("applied") else None

    found = await eventually(acknowledged, what="the replica is acknowledged")
    assert found["metadata"]["labels"] == {LABEL: "r1"}
    assert found["metadata"]["annotations"] == {ROBOT: "r1"}
    assert found["spec"]["applied"] == {PLACEMENT: applied_digest([(made.body["metadata"]["uid"], 3)])}
    beat = found["spec"]["beat"]
    change = {"op": "add", "path": "/metadata/annotations", "value": marks("dock", 4)}
    assert confined.admin.patch(at("goals", "robot-r1", "dock"), change).status == 200

    async def rewritten() -> bool:
        spec = confined.admin.ask("GET", STATES.path(namespace="robot-r1", name="r1")).body["spec"]
        same = spec["applied"] == {PLACEMENT: applied_digest([(made.body["metadata"]["uid"], 4)])}
        return bool(same and spec["beat"] > beat)

    await eventually(rewritten, what="the rewrite of the same content is acknowledged")
    assert confined.admin.ask("DELETE", at("goals", "robot-r1", "dock")).status == 200


@pytest.mark.parametrize("profile", Profile)
async def test_F9_1_a_robot_writes_its_own_report_and_no_others(confined: Confined, profile: Profile) -> None:
    shared = profile is Profile.SHARED
    one, other = ((confined.sharing if shared else confined.robots)[robot] for robot in ("r2", "r3"))
    own, foreign = (SHARED, SHARED) if shared else ("robot-r2", "robot-r3")

    def create(name: str, robot: str, namespace: str = own) -> Answer:
        return one.ask("POST", STATES.path(namespace=namespace), report(name, robot))

    async def in_force() -> bool:
        listed = [each.ask("GET", STATES.path(namespace=at)).status for each, at in ((one, own), (other, foreign))]
        return listed == [200, 200] and create("r3", "r2").status == 403

    await eventually(in_force, what="roles and policies are in force")
    made, theirs = create("r2", "r2"), other.ask("POST", STATES.path(namespace=foreign), report("r3", "r3"))
    assert (made.status, theirs.status) == (201, 201), (made, theirs)
    path = STATES.path(namespace=own, name="r2")
    raised = {**made.body, "spec": {"robot": "r2", "beat": 2}}
    assert one.ask("PUT", path, raised).status == 200
    foreign_path = STATES.path(namespace=foreign, name="r3")
    stolen = {**theirs.body, "spec": {"robot": "r3", "beat": 99}}
    signed = copy.deepcopy(theirs.body)
    signed["metadata"] |= {"labels": {LABEL: "r2"}, "annotations": {ROBOT: "r2"}}
    refused = [
        create("r1", "r2"),
        create("r1", "r1"),
        create("other", "r2"),
        create("r1", "r1", "robot-r1"),
        one.ask("PUT", foreign_path, stolen),
        one.ask("PUT", foreign_path, signed),
        one.ask("DELETE", foreign_path),
    ]
    assert {each.status for each in refused} <= {403, 422}, refused  # 422: a label that is not that of the namespace
    assert confined.admin.ask("GET", foreign_path).body["spec"] == {"robot": "r3", "beat": 1}
    assert one.ask("DELETE", path).status == 200
    assert other.ask("DELETE", foreign_path).status == 200
