"""Three robots on one cloud, each with the rights of profile `namespace` and no more, do their work."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from crsyncer.core.project import ROBOT
from crsyncer.sandbox.agent import AgentProcess
from crsyncer.sandbox.sandbox import Sandbox
from tests.api import Api
from tests.system.bed import eventually
from tests.system.confined import KINDS, ROBOTS, Caller, Confined, at, thing, where


@pytest.fixture(scope="module")
def confined(running_sandbox: Sandbox) -> Confined:
    return Confined(running_sandbox.cloud)


@pytest.fixture
async def robots(
    confined: Confined, sandbox: Sandbox, robot_api: Api, tmp_path: Path
) -> AsyncIterator[list[AgentProcess]]:
    """Three agents, each confined to its namespace on both sides; they share a robot's plane, to save time."""
    crds = [each for each in KINDS.values() if each["spec"]["scope"] == "Namespaced"]
    agents = []
    for each in crds:
        await robot_api.apply_crd(each)
    for name, caller in confined.robots.items():
        home = tmp_path / name
        home.mkdir()
        agents.append(
            AgentProcess(
                home,
                cloud_kubeconfig=sandbox.cloud.kubeconfig(home / "cloud.yaml", token=caller.token),
                robot_kubeconfig=sandbox.robot.kubeconfig(home / "robot.yaml"),
                robot_name=name,
                flags=("--namespace", f"robot-{name}"),
            )
        )
    yield agents
    for agent in agents:
        await agent.kill()
    for each in crds:
        await robot_api.delete(each)


async def test_three_robots_on_one_cloud_sync_their_own_objects(
    confined: Confined, sandbox: Sandbox, robots: list[AgentProcess]
) -> None:
    on_robot = Caller(sandbox.robot, sandbox.robot.admin_token)
    made = [confined.create(plural, robot) for plural in ("goals", "errands", "carts") for robot in ROBOTS]
    for agent in robots:
        await agent.start()
    for agent in robots:
        status = await agent.until(lambda now: {kind["state"] for kind in now["kinds"]} == {"syncing"})
        assert len(status["kinds"]) == 4

    async def copied() -> bool:
        return all(on_robot.ask("GET", where(each)).status == 200 for each in made)

    await eventually(copied)
    for each in made:
        copy_of = on_robot.ask("GET", where(each)).body
        path = where(each, "" if copy_of["kind"] == "Errand" else "status")
        report = [{"op": "add", "path": "/status", "value": {"robot": copy_of["metadata"]["name"]}}]
        assert on_robot.patch(path, *report).status == 200
    for robot in ROBOTS:
        found = thing("findings", f"robot-{robot}", f"seen-by-{robot}")
        assert on_robot.ask("POST", at("findings", f"robot-{robot}"), found).status == 201

    async def reported() -> bool:
        statuses = [confined.now(each).get("status") for each in made]
        findings = [at("findings", f"robot-{robot}", f"seen-by-{robot}") for robot in ROBOTS]
        answers = [confined.admin.ask("GET", path) for path in findings]
        return all(statuses) and all(answer.status == 200 for answer in answers)

    await eventually(reported)
    for robot in ROBOTS:
        copy_of = confined.admin.ask("GET", at("findings", f"robot-{robot}", f"seen-by-{robot}")).body
        assert copy_of["metadata"]["annotations"][ROBOT] == robot
