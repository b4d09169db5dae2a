"""What the agent tells systemd, received on a real socket in systemd's place."""

import asyncio
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from crsyncer.adapters.systemd import ServiceManager
from crsyncer.sandbox.agent_process import AgentProcess
from tests.adapters.kube_server import TOKEN, write_config

_PATIENCE_SECONDS = 60


class Manager:
    """The receiving end of sd_notify(3), at a path or at an abstract address."""

    def __init__(self, address: str) -> None:
        self.environment = {"NOTIFY_SOCKET": address}
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.settimeout(_PATIENCE_SECONDS)
        self._socket.bind(address.replace("@", "\0", 1))

    def receive(self) -> str:
        return self._socket.recv(4096).decode()

    async def until(self, *expected: str) -> None:
        """Receive until a message contained each of these, in this order."""
        for text in expected:
            while text not in await asyncio.to_thread(self.receive):
                pass

    def close(self) -> None:
        self._socket.close()


@pytest.fixture(params=["/{}", "@crsyncer{}"], ids=["path", "abstract"])
def manager(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Manager]:
    made = Manager(request.param.format(f"{tmp_path}/notify"[1:]))
    yield made
    made.close()


def test_nothing_is_told_where_nobody_asks():
    ServiceManager({}).notify(READY="1")


def test_a_manager_that_is_gone_or_reads_nothing_holds_nothing_up(tmp_path):
    gone = ServiceManager({"NOTIFY_SOCKET": str(tmp_path / "nothing")})
    gone.notify(READY="1")
    full = Manager(str(tmp_path / "full"))
    teller = ServiceManager(full.environment)
    for _ in range(10_000):
        teller.notify(WATCHDOG="1")
    assert full.receive() == "WATCHDOG=1"
    full.close()


def test_a_status_is_one_line_and_no_longer_than_systemd_takes(manager):
    teller = ServiceManager(manager.environment)
    teller.notify(READY="1", STATUS="refused:\nREADY=0\r\n" + "\N{SNOWMAN}" * 5000)
    ready, status = manager.receive().split("\n")
    assert ready == "READY=1"
    assert status.startswith("STATUS=refused: READY=0 \N{SNOWMAN}")


async def test_the_agent_is_ready_without_an_API_server_says_how_it_is_and_is_not_spoken_for(manager, tmp_path):
    overheard = tmp_path / "environment"
    plugin = tmp_path / "plugin"
    plugin.write_text(f"#!/bin/sh\nenv > {overheard}\nexit 1\n")
    plugin.chmod(0o700)
    login = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(plugin)}}
    agent = AgentProcess(
        tmp_path,
        cloud_kubeconfig=write_config(tmp_path / "cloud", server="https://127.0.0.1:1", ca=None, user=login),
        robot_kubeconfig=write_config(
            tmp_path / "robot", server="https://127.0.0.1:1/robot", ca=None, user={"token": TOKEN}
        ),
        environment=manager.environment,
    )
    await agent.start(ready=False)
    try:
        await manager.until("READY=1", "STATUS=ATTENTION: ", "WATCHDOG=1")
        os.kill(agent.pid, signal.SIGHUP)
        await manager.until("RELOADING=1", "READY=1")
        stopping = asyncio.create_task(agent.stop())
        await manager.until("STOPPING=1")  # read at once: what finds no room is not sent
        assert await stopping == 0
    finally:
        await agent.kill()
    assert "PATH" in overheard.read_text()
    assert "NOTIFY_SOCKET" not in overheard.read_text()
