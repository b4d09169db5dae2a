"""One command of crsyncer as a process of its own: started, stopped and killed at will."""

import asyncio
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from crsyncer.sandbox.process import spawn

_STOP_SECONDS = 60.0


async def outcome(command: Sequence[str], *, environment: Mapping[str, str] | None = None) -> tuple[int, str, str]:
    """Run a command to its end: exit code, standard output, standard error. `environment`: all of its variables."""
    process = await asyncio.create_subprocess_exec(
        *command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    )
    out, error = await process.communicate()
    return process.returncode or 0, out.decode(), error.decode()


class Program:
    """A process and its log. It ends with this process, unless `detached`."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        log: Path,
        environment: Mapping[str, str] | None = None,
        detached: bool = False,
    ) -> None:
        self.log = log
        self.environment = {**os.environ, **(environment or {})}
        self._command = list(command)
        self._detached = detached
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process; 0 when none runs."""
        return self._process.pid if self.running and self._process is not None else 0

    @property
    def running(self) -> bool:
        """Whether the process is alive."""
        return self._process is not None and self._process.poll() is None

    def start(self, *, environment: Mapping[str, str] | None = None) -> None:
        """Start it; `environment` is for this time only."""
        variables = {**self.environment, **(environment or {})}
        self._process = spawn(
            self._command, log=self.log, cwd=self.log.parent, detached=self._detached, env=variables
        ).popen

    async def stop(self) -> int:
        """Stop it as systemd does (SIGTERM), and return the exit code."""
        return await self._end(signal.SIGTERM)

    async def kill(self) -> None:
        """Kill it (SIGKILL)."""
        await self._end(signal.SIGKILL)

    async def ended(self) -> int:
        """Wait until it ends by itself, and return the exit code."""
        return 0 if self._process is None else await asyncio.to_thread(self._process.wait, _STOP_SECONDS)

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        if self._process is not None:
            self._process.send_signal(number)

    def tail(self, lines: int = 25) -> str:
        """The end of its log."""
        return "\n".join(self.log.read_text().splitlines()[-lines:]) if self.log.exists() else ""

    async def _end(self, number: signal.Signals) -> int:
        self.send(number)
        return await self.ended()
