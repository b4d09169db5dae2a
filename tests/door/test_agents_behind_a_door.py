"""Agents that reach their cloud through the door alone: as without it, whatever becomes of HAProxy."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from crsyncer.adapters.retries import until_async
from crsyncer.door.door_files import MAP
from crsyncer.door.master_socket import MasterSocket
from crsyncer.sandbox.agent_process import AgentProcess
from crsyncer.sandbox.two_planes import Sandbox
from tests.api import Api
from tests.door.conftest import Audited
from tests.door.open_door import OpenDoor
from tests.system.confined import JSON_PATCH, KINDS, Caller, at, where

NAMES = ("r1", "r2")
SECONDS = 90


@pytest.fixture
async def agents(
    audited: Audited, door: OpenDoor, sandbox: Sandbox, robot_api: Api, tmp_path: Path
) -> AsyncIterator[dict[str, AgentProcess]]:
    """Two robots, which share a robot's plane; each has its objects in a namespace of its own."""
    crd = KINDS["goals"]
    await robot_api.apply_crd(crd)
    found = {}
    for name in NAMES:
        folder = tmp_path / name
        folder.mkdir()
        found[name] = AgentProcess(
            folder,
            cloud_kubeconfig=door.robot_kubeconfig(folder / "cloud", token=audited.cloud.robots[name].token),
            robot_kubeconfig=sandbox.robot.kubeconfig(folder / "robot"),
            robot_name=name,
            flags=("--namespace-map", f"robot-{name}=bay-{name}", "--require-confinement"),
        )
        await found[name].start()
    yield found
    for agent in found.values():
        await agent.kill()
    await robot_api.remove_crds(crd)


async def test_agents_sync_through_the_door_and_keep_every_copy_when_it_is_reloaded_killed_and_away(
    agents: dict[str, AgentProcess], audited: Audited, door: OpenDoor, sandbox: Sandbox
) -> None:
    on_robot = Caller(sandbox.robot, sandbox.robot.admin_token)

    async def eventually(question: Any) -> None:
        if not await until_async(question, seconds=SECONDS):
            seen = {name: await agent.ask() for name, agent in agents.items()}
            pytest.fail(f"not after {SECONDS} s: {question}\n{seen}\n{door.haproxy and door.haproxy.tail()}")

    def paths(made: dict[str, Any]) -> str:
        name = made["metadata"]["namespace"].removeprefix("robot-")
        return at("goals", f"bay-{name}", made["metadata"]["name"])

    async def copied(made: dict[str, Any], secret: str) -> dict[str, Any]:
        found: dict[str, Any] = {}

        async def is_there() -> bool:
            answer = on_robot.ask("GET", paths(made))
            found.update(answer.body if answer.status == 200 else {})
            return answer.status == 200 and answer.body["spec"]["secret"] == secret

        await eventually(is_there)
        return found

    def edit(made: dict[str, Any], secret: str) -> None:
        operation = {"op": "replace", "path": "/spec/secret", "value": secret}
        assert audited.cloud.admin.patch(where(made), operation).status == 200

    made = [audited.cloud.create("goals", name) for name in NAMES]
    copies = [await copied(each, "apple") for each in made]

    for each in made:
        body = [{"op": "add", "path": "/status", "value": {"done": True}}]
        assert on_robot.ask("PATCH", f"{paths(each)}/status", body, **JSON_PATCH).status == 200

        async def is_told(each: dict[str, Any] = each) -> bool:
            return bool(audited.cloud.now(each).get("status") == {"done": True})

        await eventually(is_told)

    await MasterSocket(door.socket, door.directory / MAP).reload()
    for each in made:
        edit(each, "reloaded")
        await copied(each, "reloaded")

    assert door.haproxy is not None
    await asyncio.to_thread(door.haproxy.stop)
    for each in made:
        edit(each, "away")
    door.start()
    last = [await copied(each, "away") for each in made]
    assert [each["metadata"]["uid"] for each in last] == [each["metadata"]["uid"] for each in copies]
    for agent in agents.values():
        status = await agent.until(lambda now: now["health"] == "healthy")
        assert status["holds"] == []
        assert status["writes"]["robot"]["delete"] == 0
