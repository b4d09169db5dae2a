"""Three robots on one cloud, each with the rights of profile `namespace` and no more, do their work."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from crsyncer.core.content.object_content import ROBOT
from crsyncer.sandbox.agent_process import AgentProcess
from crsyncer.sandbox.two_planes import Sandbox
from tests.api import Api
from tests.system.bed import LABEL, eventually
from tests.system.confined import KINDS, ROBOTS, Caller, Confined, at, meta, thing, where

HOMES = {"r1": "default", "r2": "bay-2", "r3": "robot-r3"}
"""Where each robot has its objects; they share a robot's plane, to save time. In the cloud it is `robot-NAME`."""


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent, and the settings with which it reaches both sides."""

    process: AgentProcess
    settings: tuple[str, ...]

    async def ask(self, *arguments: str) -> dict[str, Any]:
        """What a command that reaches both sides says with --json."""
        _, out, error = await self.process.crsyncer(*arguments, *self.settings, "--json")
        assert error == "", (arguments, error)
        content: dict[str, Any] = json.loads(out)
        return content


@pytest.fixture
async def robots(
    confined: Confined, sandbox: Sandbox, robot_api: Api, tmp_path: Path
) -> AsyncIterator[dict[str, Agent]]:
    """Three agents, each confined to its namespace in the cloud, whose objects are elsewhere on the robot."""
    crds = [each for each in KINDS.values() if each["spec"]["scope"] == "Namespaced"]
    agents = {}
    for each in crds:
        await robot_api.apply_crd(each)
    for name, caller in confined.robots.items():
        folder = tmp_path / name
        folder.mkdir()
        cloud = sandbox.cloud.kubeconfig(folder / "cloud.yaml", token=caller.token)
        robot = sandbox.robot.kubeconfig(folder / "robot.yaml")
        home, place = HOMES[name], f"robot-{name}"
        flags = ("--namespace", place) if home == place else ("--namespace-map", f"{place}={home}")
        process = AgentProcess(folder, cloud_kubeconfig=cloud, robot_kubeconfig=robot, robot_name=name, flags=flags)
        settings = ("--cloud-kubeconfig", str(cloud), "--robot-kubeconfig", str(robot), "--robot-name", name, *flags)
        agents[name] = Agent(process, settings)
    yield agents
    for agent in agents.values():
        await agent.process.kill()
    await robot_api.remove_crds(*crds)


def copy_of(obj: dict[str, Any]) -> dict[str, Any]:
    """What names an object's copy on the robot."""
    return meta(obj, namespace=HOMES[obj["metadata"]["labels"][LABEL]])


async def test_three_robots_on_one_cloud_sync_their_own_objects(
    confined: Confined, sandbox: Sandbox, robots: dict[str, Agent]
) -> None:
    on_robot = Caller(sandbox.robot, sandbox.robot.admin_token)
    made = [confined.create(plural, robot) for plural in ("goals", "errands", "carts") for robot in ROBOTS]
    for agent in robots.values():
        await agent.process.start()
    for agent in robots.values():
        await agent.process.until(lambda now: [kind["state"] for kind in now["kinds"]] == ["syncing"] * 4)

    async def copied() -> bool:
        return all(on_robot.ask("GET", where(copy_of(each))).status == 200 for each in made)

    await eventually(copied)
    for each in made:
        copy = on_robot.ask("GET", where(copy_of(each))).body
        assert (copy["spec"], copy["metadata"]["labels"]) == (each["spec"], each["metadata"]["labels"])
        path = where(copy, "" if copy["kind"] == "Errand" else "status")
        report = [{"op": "add", "path": "/status", "value": {"robot": copy["metadata"]["name"]}}]
        assert on_robot.patch(path, *report).status == 200
    for robot, home in HOMES.items():
        found = thing("findings", home, f"seen-by-{robot}")
        assert on_robot.ask("POST", at("findings", home), found).status == 201

    async def reported() -> bool:
        statuses = [confined.now(each).get("status") for each in made]
        findings = [at("findings", f"robot-{robot}", f"seen-by-{robot}") for robot in ROBOTS]
        answers = [confined.admin.ask("GET", path) for path in findings]
        return all(statuses) and all(answer.status == 200 for answer in answers)

    await eventually(reported)
    for robot in ROBOTS:
        report_of = confined.admin.ask("GET", at("findings", f"robot-{robot}", f"seen-by-{robot}")).body
        assert report_of["metadata"]["annotations"][ROBOT] == robot
        listed = on_robot.ask("GET", at("goals", f"robot-{robot}")).body["items"]
        assert bool(listed) == (HOMES[robot] == f"robot-{robot}"), "nothing is where only the cloud has it"
    agent, name = robots["r1"], made[0]["metadata"]["name"]

    async def explained() -> bool:
        content = json.loads((await agent.process.crsyncer("explain", "goals", f"robot-r1/{name}", "--json"))[1])
        copy = {"namespace": "default", "name": name}
        return (content["state"], content["copy"]) == ("in-sync", copy)

    async def compared() -> bool:
        return [kind["differences"] for kind in (await agent.ask("diff"))["kinds"]] == [[], [], [], []]

    await eventually(explained, what=f"{name} is in sync")
    await eventually(compared, what="nothing differs")
    access = await agent.ask("check-access")
    assert (access["health"], access["namespaces"], access["confinedByPolicies"]) == ("healthy", ["robot-r1"], [])

    async def sound() -> bool:  # on a busy machine a server may answer later than the doctor waits for it
        checks = (await agent.ask("doctor"))["checks"]
        return {check["state"] for check in checks if check["name"] in ("kind", "access")} == {"ok"}

    await eventually(sound, seconds=90, what="the doctor finds nothing wrong with the kinds and the account")
