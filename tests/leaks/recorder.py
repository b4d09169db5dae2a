"""A pytest plugin that keeps what would be gone after a test: outputs of commands, and what the planes stored.

What a test reads from a command is in the test's memory only, and the planes' directories are removed at the end.
"""

import contextlib
import logging
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from crsyncer.sandbox.agent_process import AgentProcess
from crsyncer.sandbox.two_planes import Sandbox

KEPT = "CRSYNCER_LEAKS_KEPT"
"""The variable that names the directory."""


def pytest_configure() -> None:
    """Record what commands print."""
    logging.getLogger("kubernetes").setLevel(logging.WARNING)  # the tests' own client logs whole answers
    communicate, crsyncer = subprocess.Popen.communicate, AgentProcess.crsyncer

    def record(*texts: str | bytes | None) -> None:
        with (Path(os.environ[KEPT]) / f"commands-{os.getpid()}.txt").open("ab") as file:
            file.writelines(text.encode() if isinstance(text, str) else text for text in texts if text)

    def recorded(process: Any, *arguments: Any, **options: Any) -> Any:
        printed = communicate(process, *arguments, **options)
        record(f"{process.args}\n", *printed)
        return printed

    async def recorded_of_agent(agent: AgentProcess, *arguments: str) -> tuple[int, str, str]:
        code, out, error = await crsyncer(agent, *arguments)
        record(f"{arguments}\n", out, error)
        return code, out, error

    subprocess.Popen.communicate = recorded  # type: ignore[method-assign, assignment]
    AgentProcess.crsyncer = recorded_of_agent  # type: ignore[method-assign, assignment]


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any]) -> Generator[None, Any, Any]:
    """Before the planes of a session are removed, copy what they logged and stored."""
    made = yield
    if isinstance(made, Sandbox) and fixturedef.argname == "running_sandbox":
        target = Path(os.environ[KEPT]) / f"planes-{os.getpid()}"
        fixturedef.addfinalizer(lambda: _copy(made, target))
    return made


def _copy(sandbox: Sandbox, target: Path) -> None:
    """Copy all but the robot's Secrets: there the documents have an operator keep the agent's credential.

    They are rows of kine's file, of which the others are copied, with their history.
    """
    files = sandbox.robot.data / "db"
    with contextlib.suppress(shutil.Error):  # the planes still write: what vanishes meanwhile is not missed
        shutil.copytree(
            sandbox.directory, target, ignore=lambda folder, _: ["db"] if Path(folder) == files.parent else []
        )
    with contextlib.closing(sqlite3.connect(files / "state.db")) as kine, (target / "robot.txt").open("wb") as file:
        for name, *values in kine.execute("SELECT name, value, old_value FROM kine"):
            if not name.startswith("/registry/secrets/"):
                file.writelines([name.encode(), *(value for value in values if value), b"\n"])
