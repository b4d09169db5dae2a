"""Commands on a machine with the package find what the unit is configured by, without a flag.

The unit's files are in a mount namespace of the command's own. On machines that boot: test_packages_booted.py.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from crsyncer.sandbox.agent_process import AgentProcess
from tests.delivery.command_line import CLI, environment, write_kubeconfig
from tests.delivery.followed import ROOT

_UNITS = Path("/etc/systemd/system")
_COVER = 'mount --bind "$1" "$2" && shift 2 && exec "$@"'


class PackagedMachine:
    """This machine, as if the package were installed, with the paths of its unit under a directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.units, self.etc, self.state = (directory / name for name in ("units", "etc", "state"))
        for folder in (self.units, self.etc):
            folder.mkdir()
        unit = (ROOT / "systemd/crsyncer.service").read_text().replace("/etc/crsyncer", str(self.etc))
        unit = unit.replace("/etc/rancher/k3s", str(self.etc))
        unit += f"[Service]\nEnvironment=CRSYNCER_STATE_DIR={self.state}\n"
        (self.units / "crsyncer.service").write_text(unit)
        (self.etc / "config.yaml").write_text((ROOT / "systemd/config.yaml").read_text())
        write_kubeconfig(self.etc / "cloud.kubeconfig")
        robot = write_kubeconfig(self.etc / "k3s.yaml").read_text()
        (self.etc / "k3s.yaml").write_text(robot.replace("127.0.0.1:9", "127.0.0.1:10"))

    def crsyncer(self, *arguments: str) -> tuple[int, str]:
        """Run a command there: exit code and output."""
        command: list[str | Path] = [
            "unshare",
            "--mount",
            "sh",
            "-c",
            _COVER,
            "sh",
            self.units,
            _UNITS,
            *CLI,
            *arguments,
        ]
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120, env=environment()
        )
        return done.returncode, done.stdout


@pytest.fixture
def machine(tmp_path: Path) -> PackagedMachine:
    if os.geteuid() or shutil.which("unshare") is None or not _UNITS.is_dir():
        pytest.skip("only root can cover /etc/systemd/system, and only where it is")
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode != 0:
        pytest.skip("this container allows no mount namespaces")
    return PackagedMachine(tmp_path)


def test_doctor_checks_what_the_unit_is_configured_by(machine: PackagedMachine):
    config = machine.etc / "config.yaml"
    config.write_text(config.read_text().replace("robotName:", "robotName: r1"))
    code, output = machine.crsyncer("doctor", "--json")
    assert code == 13, output
    checked = next(check["message"] for check in json.loads(output)["checks"] if check["name"] == "config")
    assert checked.startswith(f"{config} is valid; robotName from {config}:")
    assert "cloud.kubeconfig from crsyncer.service, robot.kubeconfig from crsyncer.service" in checked
    assert "stateDir from crsyncer.service" in checked


@pytest.mark.parametrize("command", ["diff", "check-access"])
def test_commands_that_look_at_the_clusters_find_both_kubeconfigs(machine: PackagedMachine, command: str):
    code, output = machine.crsyncer(command)
    assert (code, "connection refused" in output) == (2 if command == "diff" else 1, True), output


def test_before_the_first_start_status_says_how_to_start_it(machine: PackagedMachine):
    code, output = machine.crsyncer("status")
    assert code == 13
    assert "-> systemctl enable --now crsyncer" in output
    assert str(machine.state) in output


async def test_status_finds_the_agent_of_the_unit(machine: PackagedMachine):
    agent = AgentProcess(
        machine.directory,
        cloud_kubeconfig=machine.etc / "cloud.kubeconfig",
        robot_kubeconfig=machine.etc / "k3s.yaml",
        state_dir=machine.state,
    )
    await agent.start()
    try:
        code, output = machine.crsyncer("status", "--json")
        assert code != 13
        assert f'"pid": {agent.pid}' in output
    finally:
        await agent.kill()
