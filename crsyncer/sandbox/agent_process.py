"""Runs the agent as a process of its own, for the demo, tests and benchmarks."""

import asyncio
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from crsyncer.adapters.control import ask
from crsyncer.adapters.retries import until_async
from crsyncer.errors import SyncError
from crsyncer.sandbox.program import Program, outcome

_PATIENCE_SECONDS = 60.0


class AgentProcess:
    """One `crsyncer run` in a directory; started, stopped and killed at will. Its log is `agent.log` there.

    Its state is in `state` there, unless `state_dir` says where. It ends with this process, unless `detached`.
    """

    def __init__(
        self,
        directory: Path,
        *,
        cloud_kubeconfig: Path,
        robot_kubeconfig: Path,
        robot_name: str = "robot-1",
        flags: tuple[str, ...] = (),
        environment: Mapping[str, str] | None = None,
        wrapper: tuple[str, ...] = (),
        detached: bool = False,
        state_dir: Path | None = None,
        python: Path | str = sys.executable,
    ) -> None:
        """`wrapper`: a command that becomes the agent, such as `prlimit`; the agent's follows it."""
        self.directory = directory
        self.state_dir = state_dir or directory / "state"
        self._crsyncer = (str(python), "-m", "crsyncer.cli.main")
        command = [
            *wrapper,
            *(*self._crsyncer, "run"),
            *("--cloud-kubeconfig", str(cloud_kubeconfig), "--robot-kubeconfig", str(robot_kubeconfig)),
            *("--state-dir", str(self.state_dir), "--listen", "off"),
            *(("--robot-name", robot_name) if robot_name else ()),
            *flags,
        ]
        self._program = Program(command, log=directory / "agent.log", environment=environment, detached=detached)

    @property
    def log(self) -> Path:
        """Its log."""
        return self._program.log

    @property
    def pid(self) -> int:
        """The process; 0 when none runs."""
        return self._program.pid

    @property
    def running(self) -> bool:
        """Whether the process is alive."""
        return self._program.running

    async def start(self, *, ready: bool = True, environment: Mapping[str, str] | None = None) -> None:
        """Start it, and wait until it answers on its socket; `environment` is for this time only.

        Raises SyncError with the end of its log.
        """
        self._program.start(environment=environment)
        if ready:
            await self.until(lambda status: status["agent"]["state"] == "running")

    async def stop(self) -> int:
        """Stop it as systemd does (SIGTERM), and return the exit code."""
        return await self._program.stop()

    async def kill(self) -> None:
        """Kill it (SIGKILL)."""
        await self._program.kill()

    async def status(self) -> dict[str, Any]:
        """The document that `crsyncer status --json` prints."""
        document: dict[str, Any] = json.loads((await self.crsyncer("status", "--json"))[1])
        return document

    async def crsyncer(self, *arguments: str) -> tuple[int, str, str]:
        """Run another command on the same state directory: exit code, standard output, standard error."""
        command = [*self._crsyncer, *arguments, "--state-dir", str(self.state_dir)]
        return await outcome(command, environment=self._program.environment)

    async def ask(self) -> dict[str, Any] | None:
        """The status document from the control socket; None without an answer."""
        try:
            return await asyncio.to_thread(ask, self.state_dir, {"command": "status"})
        except SyncError:
            return None

    async def until(
        self, good: Callable[[dict[str, Any]], bool], *, seconds: float = _PATIENCE_SECONDS
    ) -> dict[str, Any]:
        """Poll the status until it is good. Raises SyncError with the last one, or when the process has ended."""
        last: dict[str, Any] | None = None

        async def look() -> dict[str, Any] | None:
            nonlocal last
            last = await self.ask() or last
            if last is not None and good(last):
                return last
            if not self.running:
                raise SyncError(f"the agent has ended:\n{self.tail()}")
            return None

        if (status := await until_async(look, seconds=seconds)) is not None:
            return status
        raise SyncError(f"the agent's status is not as expected after {seconds} s: {last}\n{self.tail()}")

    def tail(self, lines: int = 25) -> str:
        """The end of its log."""
        return self._program.tail(lines)
