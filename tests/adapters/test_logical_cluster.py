"""C9.1 over real sockets: a path in the server's URL is in every request of the agent and of the commands."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from crsyncer.adapters.retries import until_async
from crsyncer.core.model import Side
from crsyncer.sandbox.agent_process import AgentProcess
from tests.adapters.kube_server import TOKEN, Certificates, refused, write_config
from tests.bench.served import Served, served
from tests.delivery.command_line import crsyncer
from tests.model.simulation.connection import Signal
from tests.model.simulation.plane import GROUP, Plane
from tests.system.bed import crd

ID = "2hnrv0u1m7d8h2ar"
PATH = "/clusters/root:robots"
PATIENCE = 60.0


@dataclass(slots=True)
class Clusters:
    """A robot's cluster, a workspace of kcp, and how to reach them."""

    cloud: Plane
    robot: Plane
    workspace: Served
    kubeconfigs: tuple[Path, Path]
    """Of cloud and robot."""


@asynccontextmanager
async def clusters(directory: Path, certificates: Certificates, pair: tuple[Path, Path]) -> AsyncIterator[Clusters]:
    async with served("cloud", pair=pair, path=PATH) as there, served("robot", pair=pair) as here:
        planes = [
            Plane(side, on.server, Signal(asyncio.Event())) for side, on in ((Side.CLOUD, there), (Side.ROBOT, here))
        ]
        planes[0].become_workspace(ID)
        for plane in planes:
            plane.apply(crd(GROUP))
        configs = [
            write_config(directory / name, server=on.url, ca=certificates.ca, user={"token": TOKEN})
            for name, on in (("cloud", there), ("robot", here))
        ]
        yield Clusters(planes[0], planes[1], there, (configs[0], configs[1]))


async def eventually(good: Callable[[], bool]) -> None:
    async def look() -> bool:
        return good()

    assert await until_async(look, seconds=PATIENCE)


async def test_C9_1_the_path_of_the_server_is_in_every_request(
    tmp_path: Path, certificates: Certificates, pair: tuple[Path, Path]
) -> None:
    async with clusters(tmp_path, certificates, pair) as on:
        cloud, robot = on.kubeconfigs
        agent = AgentProcess(tmp_path, cloud_kubeconfig=cloud, robot_kubeconfig=robot)
        await agent.start()
        try:
            for name in ("a", "b"):
                on.cloud.create(name, spec={"x": 1})
            await eventually(lambda: on.robot.objects().keys() == {"a", "b"})
            on.robot.set_status("a", {"phase": "DONE"})
            await eventually(lambda: on.cloud.objects()["a"].get("status") == {"phase": "DONE"})
            on.cloud.delete("b")
            await eventually(lambda: on.robot.objects().keys() == {"a"})
            status = await agent.status()
            assert status["sides"]["cloud"]["identity"] == f"kcp:{ID}"
            assert status["sides"]["cloud"]["server"].endswith(PATH)
            assert (await agent.crsyncer("resync"))[0] == 0
            logins = ("--cloud-kubeconfig", str(cloud), "--robot-kubeconfig", str(robot), "--robot-name", "robot-1")
            _, doctor, _ = await agent.crsyncer("doctor", *logins, "--json")
            assert PATH in doctor
            assert (await agent.crsyncer("diff", *logins))[:2] == (0, "")
            code, access, _ = await agent.crsyncer("check-access", *logins)
            assert (code, PATH in access) == (10, True), "this server answers no reviews"
            assert await agent.stop() == 0
        finally:
            await agent.kill()
        assert on.workspace.strays == []


@pytest.mark.parametrize("command", [("run",), ("doctor",), ("check-access",), ("diff",)], ids=" ".join)
async def test_C9_1_all_logical_clusters_at_once_are_refused_in_one_line(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    config = write_config(tmp_path / "cloud", server="https://kcp.example.com/clusters/*", ca=None, user={})
    robot = write_config(tmp_path / "robot", server="https://robot.example.com", ca=None, user={})
    given = ("--cloud-kubeconfig", config, "--robot-kubeconfig", robot, "--state-dir", tmp_path / "state")
    done = await asyncio.to_thread(crsyncer, *command, *given)
    (line,) = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (2, "")
    assert line.startswith("crsyncer: ")
    assert "its server is all logical clusters at once (/clusters/*)" in line
    assert "/clusters/PATH" in line


@pytest.mark.parametrize("path", ["/clusters/*/", "/services/apiexport/root/robots/clusters/*", "/clusters/%2A"])
async def test_C9_1_however_all_logical_clusters_are_written_they_are_refused(path: str, tmp_path: Path) -> None:
    config = write_config(tmp_path / "config", server=f"https://kcp.example.com{path}", ca=None, user={})
    assert "all logical clusters" in str(await refused(config))
