"""Two accounts on a real cloud: what a robot works with is dead after weeks without the link, and it comes back."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from crsyncer.adapters.retries import until
from crsyncer.core.cloud_manifests import Plan, Profile, confinable
from crsyncer.sandbox.agent import AgentProcess
from crsyncer.sandbox.sandbox import Sandbox
from tests.api import Api
from tests.link.link import Link
from tests.system.bed import SECONDS, eventually
from tests.system.confined import KINDS, Caller, Confined, at, where

ACCOUNT = "/api/v1/namespaces/robot-r4/serviceaccounts/crsyncer"
GOALS = KINDS["goals"]


@pytest.fixture(scope="module")
def confined(running_sandbox: Sandbox) -> Confined:
    """The cloud with one more robot, which has two accounts."""
    made = Confined(running_sandbox.cloud)
    kinds = (confinable(GOALS, Profile.NAMESPACE, place="-"),)
    made.apply(Plan(("r4",), kinds, two_accounts=True))
    return made


@pytest.fixture
async def agent(
    confined: Confined, sandbox: Sandbox, robot_api: Api, cloud_link: Link, tmp_path: Path
) -> AsyncIterator[AgentProcess]:
    """The agent of robot r4, with nothing but the token of the account that makes tokens."""
    await robot_api.apply_crd(GOALS)
    enroll = confined.caller("robot-r4", "crsyncer-enroll")
    agent = AgentProcess(
        tmp_path,
        cloud_kubeconfig=cloud_link.kubeconfig(tmp_path / "cloud.yaml", token=enroll.token),
        robot_kubeconfig=sandbox.robot.kubeconfig(tmp_path / "robot.yaml"),
        robot_name="r4",
        flags=("--namespace", "robot-r4", "--require-confinement"),
    )
    yield agent
    await agent.kill()
    await robot_api.remove_crds(GOALS)


def working_token(link: Link) -> str:
    """The token of the last request that was not for a token."""
    used = [request for request in link.requests if not request.path.endswith("/token")]
    return used[-1].headers["authorization"].removeprefix("Bearer ")


async def test_tokens_that_ended_without_the_link_are_made_anew_without_a_human(
    confined: Confined, sandbox: Sandbox, agent: AgentProcess, cloud_link: Link
) -> None:
    on_robot = Caller(sandbox.robot, sandbox.robot.admin_token)
    goal = confined.create("goals", "r4")
    await agent.start()

    async def copied() -> bool:
        return on_robot.ask("GET", where(goal)).status == 200

    await eventually(copied)
    worker = Caller(sandbox.cloud, working_token(cloud_link))
    assert worker.ask("GET", at("goals", "robot-r4")).status == 200
    cloud_link.cut()
    await agent.until(lambda status: status["sides"]["cloud"]["state"] == "offline")
    # No server makes a token that ends within ten minutes: with its account made anew it is as dead as after weeks.
    assert confined.admin.ask("DELETE", ACCOUNT).status == 200
    assert confined.admin.ask("POST", ACCOUNT.rpartition("/")[0], {"metadata": {"name": "crsyncer"}}).status == 201
    assert until(lambda: worker.ask("GET", at("goals", "robot-r4")).status == 401, seconds=SECONDS)
    report = {"op": "add", "path": "/status", "value": {"phase": "DONE"}}
    assert on_robot.patch(where(goal, "status"), report).status == 200
    cloud_link.restore()

    async def reported() -> bool:
        return confined.now(goal).get("status") == {"phase": "DONE"}

    await eventually(reported)

    async def renewed() -> bool:
        return working_token(cloud_link) != worker.token

    await eventually(renewed, what="the work goes on with another token")
    await agent.until(lambda status: status["health"] == "healthy" and status["sides"]["cloud"]["reconnects"] >= 1)
    kept = [file for file in agent.directory.rglob("*") if file.is_file()]
    assert [file for file in kept if working_token(cloud_link).encode() in file.read_bytes()] == []
    # Nor does a start without the link need one: there is no token on the disk.
    await agent.stop()
    cloud_link.cut()
    await agent.start()
    cloud_link.restore()
    await agent.until(lambda status: status["sides"]["cloud"]["state"] == "connected")
