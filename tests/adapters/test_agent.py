"""The agent as a process: what the world may do to it at its start and at its end."""

import asyncio
import contextlib
import ctypes
import json
import os
import shutil
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from crsyncer.errors import SyncError
from crsyncer.sandbox.agent_process import AgentProcess
from tests.adapters.kube_server import TOKEN, write_config
from tests.adapters.processes import ends

Run = Callable[..., AbstractAsyncContextManager[AgentProcess]]
NOWHERE = "https://127.0.0.1:1"
NAME_SERVER = ".".join(map(str, (127 << 24 | os.getpid()).to_bytes(4)))
"""An address that no other process takes for the same test."""


@pytest.fixture
def agent(tmp_path: Path) -> Run:
    """An agent between two kubeconfigs, whose clusters nobody serves unless the test does."""

    @asynccontextmanager
    async def running(
        *,
        cloud: dict[str, Any] | None = None,
        server: str = NOWHERE,
        insecure: bool = False,
        flags: tuple[str, ...] = (),
        **more: Any,
    ) -> AsyncIterator[AgentProcess]:
        user, about = {"token": TOKEN}, {"insecure-skip-tls-verify": True} if insecure else {}
        made = AgentProcess(
            tmp_path,
            cloud_kubeconfig=write_config(tmp_path / "cloud", server=server, ca=None, user=cloud or user, **about),
            robot_kubeconfig=write_config(tmp_path / "robot", server=f"{NOWHERE}/robot", ca=None, user=user),
            flags=flags,
            **more,
        )
        await made.start()
        try:
            yield made
        finally:
            await made.kill()

    return running


def plugin(directory: Path, script: str) -> dict[str, Any]:
    """A user of a kubeconfig whose exec plug-in is a Python script."""
    program = directory / "plugin"
    program.write_text(f"#!{sys.executable}\n{script}\n")
    program.chmod(0o700)
    return {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(program), "installHint": "ask us"}}


def refused(status: dict[str, Any], text: str) -> bool:
    """Whether the cloud's credential cannot be used, a human is needed, and this is said of it."""
    cloud = status["sides"]["cloud"]
    return (cloud["state"], status["health"]) == ("unauthorized", "attention") and text in cloud["error"]


async def test_S7_1_a_plugin_that_fails_at_start_makes_its_side_unauthorized_and_the_agent_runs(
    agent: Run, tmp_path: Path
) -> None:
    script = "import signal, sys; sys.exit(f'no network, blocked: {signal.pthread_sigmask(signal.SIG_BLOCK, ())}')"
    async with agent(cloud=plugin(tmp_path, script)) as running:
        # On a busy machine the first question may take longer than a plug-in is waited for.
        await running.until(lambda status: refused(status, "no network, blocked: set()"))
        assert await running.stop() == 0


async def test_S7_1_a_plugin_that_hangs_at_start_keeps_the_agent_neither_from_running_nor_from_stopping(
    agent: Run, tmp_path: Path
) -> None:
    pid = tmp_path / "pid"
    script = f"import os, time; open({str(pid)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    async with agent(cloud=plugin(tmp_path, script)) as running:
        await running.until(lambda _: pid.exists() and pid.read_text() != "")
        assert await running.stop() == 0
    assert ends(int(pid.read_text()))


async def test_S7_1_a_token_file_that_is_missing_at_start_is_used_when_it_comes(agent: Run, tmp_path: Path) -> None:
    token = tmp_path / "token"
    async with agent(cloud={"tokenFile": str(token)}) as running:
        await running.until(lambda status: refused(status, str(token)))
        token.write_text(TOKEN)
        await running.until(lambda status: status["sides"]["cloud"]["state"] == "offline")


async def test_SIGTERM_ends_the_agent_while_DNS_hangs(agent: Run, tmp_path: Path) -> None:
    unshare = shutil.which("unshare")
    if os.geteuid() or not unshare:
        pytest.skip("a name server of its own takes a mount namespace, and that takes root")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind((NAME_SERVER, 53))
        resolver = tmp_path / "resolv.conf"
        resolver.write_text(f"nameserver {NAME_SERVER}\noptions timeout:30 attempts:1\n")
        command = f'mount --bind {resolver} /etc/resolv.conf && exec "$@"'
        async with agent(
            server="https://cloud.example.com", wrapper=(unshare, "--mount", "sh", "-c", command, "sh")
        ) as running:
            await asyncio.to_thread(silent.recv, 512)
            assert await running.stop() == 0


async def test_SIGTERM_ends_the_agent_while_a_file_system_hangs(agent: Run, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(TOKEN)
    async with agent(cloud={"tokenFile": str(token)}) as running:
        with hanging(token):
            os.utime(token)
            while await running.ask() is not None:
                pass
            assert await running.stop() == 0


@contextlib.contextmanager
def hanging(file: Path) -> Iterator[None]:
    """Have every open(2) of a file wait, as on a dead file system: fanotify(7) asks us, and we do not answer."""
    at_cwd, content_class, mark_add, open_permission = -100, 0x4, 0x1, ctypes.c_uint64(0x10000)
    libc = ctypes.CDLL(None)
    asked = libc.fanotify_init(content_class, os.O_RDONLY)
    if asked < 0:
        pytest.skip("fanotify takes root")
    try:
        if libc.fanotify_mark(asked, mark_add, open_permission, at_cwd, os.fsencode(file)):
            pytest.skip("this kernel asks nobody before it opens a file")
        yield
    finally:
        os.close(asked)


async def test_SIGTERM_ends_the_agent_while_its_event_loop_hangs(agent: Run, tmp_path: Path) -> None:
    pipe = tmp_path / "log"
    os.mkfifo(pipe)
    unread = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
    try:
        async with agent(wrapper=("/bin/sh", "-c", f'exec "$@" 2>>{pipe}', "sh")) as running:
            with contextlib.suppress(BlockingIOError):
                while os.write(unread, b"x"):  # writing a log line then takes as long as on a dead file system
                    pass
            os.kill(running.pid, signal.SIGHUP)
            while await running.ask() is not None:
                pass
            assert await running.stop() == 0
    finally:
        os.close(unread)


async def test_a_pipe_in_the_place_of_a_token_file_stops_its_side_and_nothing_else(agent: Run, tmp_path: Path) -> None:
    token = tmp_path / "token"
    os.mkfifo(token)
    async with agent(cloud={"tokenFile": str(token)}) as running:
        await running.until(lambda status: refused(status, f"token file {token}"))
        token.unlink()
        token.write_text(TOKEN)
        await running.until(lambda status: status["sides"]["cloud"]["state"] == "offline")


async def test_TLS_without_verification_takes_a_flag_and_shows_in_status(agent: Run) -> None:
    with pytest.raises(SyncError, match=r"crsyncer: cloud\.kubeconfig: .*--insecure-skip-tls-verify"):
        async with agent(insecure=True):
            pass
    async with agent(insecure=True, flags=("--insecure-skip-tls-verify",)) as running:
        await running.until(
            lambda status: (
                status["sides"]["cloud"]["state"] == "offline"
                and "TlsNotVerified" in [reason["code"] for reason in status["reasons"]]
            )
        )


async def test_a_reload_applies_the_format_of_log_lines(agent: Run, tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("log: {format: text}")
    async with agent(flags=("--config", str(config))) as running:
        (tmp_path / "new").write_text("log: {format: json}")
        (tmp_path / "new").replace(config)

        def is_json(_: Any) -> bool:
            os.kill(running.pid, signal.SIGHUP)  # it is logged
            lines = [line for line in running.tail(100).splitlines() if line.startswith("{") and line.endswith("}")]
            return any(json.loads(line)["message"].startswith("SIGHUP") for line in lines)

        await running.until(is_json)
