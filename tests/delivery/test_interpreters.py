"""The agent on other Pythons than that of the tests: the package's on every run, each supported one every night."""

import ast
import os
import signal
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from crsyncer.sandbox.agent_process import AgentProcess
from tests.delivery.command_line import write_kubeconfig
from tests.delivery.followed import ROOT
from tests.delivery.interpreters import ORDER, POLICY, SUPPORTED, Interpreter, found, packaged, tries_expressions
from tests.system.commands import edit

_EDITS = 10


@pytest.fixture(scope="module")
def of_package() -> Interpreter:
    return packaged()


def is_robot(name: str, status: dict[str, Any]) -> bool:
    return bool(status["robot"] == name)


async def start_reload_stop(python: Interpreter, directory: Path) -> None:
    """Start an agent, edit its settings time and again, and stop it: one process, which ends with code 0."""
    kubeconfig, config = write_kubeconfig(directory / "kubeconfig"), directory / "config.yaml"
    config.write_text("robotName: r0\n")
    agent = AgentProcess(
        directory,
        cloud_kubeconfig=kubeconfig,
        robot_kubeconfig=kubeconfig,
        robot_name="",
        flags=("--robot-context", "robot", "--config", str(config)),
        environment=python.environment,
        python=python.program,
    )
    await agent.start()
    pid = agent.pid
    try:
        for number in range(1, _EDITS + 1):
            edit(config, f"robotName: r{number}\nnamespaces: [n{number}]\n")
            await agent.until(partial(is_robot, f"r{number}"))
        edit(config, "robotName: [")
        await agent.until(lambda status: [each["code"] for each in status["reasons"]].count("ConfigRejected") == 1)
        edit(config, "robotName: last\nlog: {level: debug}\n")
        os.kill(pid, signal.SIGHUP)
        await agent.until(partial(is_robot, "last"))
        assert agent.pid == pid
        assert await agent.stop() == 0
        assert "Traceback" not in agent.log.read_text()
    finally:
        await agent.kill()


async def test_the_agent_starts_reloads_and_stops_on_the_packages_python(of_package: Interpreter, tmp_path: Path):
    await start_reload_stop(of_package, tmp_path)


def test_the_packages_python_compiles_the_expressions_of_policies(of_package: Interpreter, tmp_path: Path):
    policy, order = tmp_path / "policy.yaml", tmp_path / "order.yaml"
    policy.write_text(POLICY)
    order.write_text(ORDER)
    tries_expressions(of_package.crsyncer, policy, order)


@pytest.mark.nightly("each supported Python")
@pytest.mark.parametrize("version", SUPPORTED)
async def test_the_agent_starts_reloads_and_stops_on_each_supported_python(version: str, tmp_path: Path):
    await start_reload_stop(found(version), tmp_path)


def test_nothing_is_raised_where_CPython_3_11_2_would_wrap_it_into_a_group():
    """In an `except*`, fixed in 3.11.4: github.com/python/cpython/issues/103590."""
    raised = []
    for file in (ROOT / "crsyncer").rglob("*.py"):
        text = file.read_text()
        tried = (
            [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.TryStar)] if "except*" in text else []
        )
        inside = [node for each in tried for handler in each.handlers for node in ast.walk(handler)]
        raised += [(file.name, node.lineno) for node in inside if isinstance(node, ast.Raise)]
    assert raised == []
