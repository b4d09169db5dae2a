"""The package on a machine that boots: installed, hung, given a new kubeconfig, rebooted, upgraded, removed, purged.

Also the image, the package for another architecture, and that a build can be repeated.
"""

import hashlib
import json
import os
import shutil
import subprocess
from functools import partial
from pathlib import Path

import pytest
import yaml

from crsyncer import __version__
from crsyncer.sandbox.plane import Plane
from crsyncer.sandbox.resource import Resource
from tests.api import Api
from tests.delivery.built import ARCHITECTURE, DEB, build, kubeconfig_of
from tests.delivery.followed import ROOT
from tests.delivery.interpreters import ORDER, POLICY, tries_expressions
from tests.delivery.machine import DEPENDS, DISTRIBUTIONS, Machine, make_machine
from tests.delivery.policy_reference import policies
from tests.system.bed import crd, eventually

pytestmark = pytest.mark.nightly("boots machines and waits for a watchdog")

K3S, CLOUD = "etc/rancher/k3s/k3s.yaml", "etc/crsyncer/cloud.kubeconfig"
_BEFORE = "0.0.1"
_SECONDS = 180.0
_EDITS = 10
_READ_POLICIES = """\
import json, sys
from crsyncer.adapters.expressions import Expressions
from crsyncer.core.kinds.merge_settings import read_object
for title, policy in json.load(open(sys.argv[1])).items():
    if problem := read_object(policy, Expressions).problem:
        sys.exit(f"{title}: {problem}")
"""
"""Reads SyncPolicies as the agent does, with the languages of their steps."""


class Robot:
    """The installed agent, as its operator sees it."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine

    def installs(self, deb: Path) -> None:
        (self.machine.root / "root/crsyncer.deb").write_bytes(deb.read_bytes())
        self.machine.run("dpkg", "--install", "/root/crsyncer.deb", check=True)

    def systemctl(self, *arguments: str) -> str:
        return self.machine.run("systemctl", *arguments)[1]

    def show(self, key: str) -> str:
        return self.systemctl("show", "--property", key, "--value", "crsyncer")

    def log(self) -> str:
        return self.machine.run("journalctl", "--unit", "crsyncer", "--no-pager")[1]

    def status(self) -> dict:
        output = self.machine.run("crsyncer", "status", "--json")[1]
        return json.loads(output) if output.startswith("{") else {}

    async def until(self, check, what: str) -> None:
        async def asked() -> bool:
            return bool(check())

        try:
            await eventually(asked, seconds=_SECONDS, what=what)
        except AssertionError as overdue:
            raise AssertionError(f"{overdue}\n{self.systemctl('status', 'crsyncer')}") from overdue

    async def until_up(self) -> None:
        await self.until(self.machine.is_up, "the machine has booted")

    async def until_healthy(self, what: str) -> None:
        await self.until(lambda: self.machine.run("crsyncer", "status")[0] == 0, f"healthy {what}")


@pytest.fixture(params=DISTRIBUTIONS)
async def robot_machine(request, deb, tmp_path):
    machine = make_machine(request.param, tmp_path)
    machine.boot()
    yield Robot(machine)
    machine.end()


@pytest.fixture
def version_before(deb: Path, tmp_path: Path) -> Path:
    """The package as if it were an older one: this one under a lower version."""
    subprocess.run(["dpkg-deb", "--raw-extract", deb, tmp_path / "before"], check=True)
    control = tmp_path / "before/DEBIAN/control"
    control.write_text(control.read_text().replace(f"Version: {__version__}", f"Version: {_BEFORE}"))
    subprocess.run(["dpkg-deb", "-Znone", "--build", tmp_path / "before", tmp_path / "before.deb"], check=True)
    return tmp_path / "before.deb"


async def test_the_package_keeps_a_robot_in_sync_through_all_that_happens_to_a_machine(
    robot_machine: Robot,
    version_before: Path,
    cloud: Plane,
    robot: Plane,
    cloud_api: Api,
    robot_api: Api,
    group: str,
    tmp_path: Path,
):
    it, machine = robot_machine, robot_machine.machine
    goals = Resource(group, "v1", "goals", "Goal")
    for api in (cloud_api, robot_api):
        await api.create(crd(group))
        await api.until_served(goals)
    number = 0

    async def syncs(what: str) -> None:
        nonlocal number
        number += 1
        goal = goals.object(f"g{number}", spec={"x": number})
        await cloud_api.create(goal)

        async def arrived() -> bool:
            return await robot_api.find(goal) is not None

        await eventually(arrived, seconds=_SECONDS, what=f"an object arrives {what}")
        await it.until_healthy(what)

    async def versions() -> dict[str, str]:
        return {o["metadata"]["name"]: o["metadata"]["resourceVersion"] for o in (await robot_api.list(goals))["items"]}

    await it.until_up()

    # Installed: nothing is enabled or started. Every library that it needs is there.
    it.installs(version_before)
    assert (it.systemctl("is-enabled", "crsyncer"), it.systemctl("is-active", "crsyncer")) == ("disabled", "inactive")
    assert "not found" not in machine.run("sh", "-c", "find /usr/lib/crsyncer -name '*.so' | xargs ldd")[1]

    machine.write("root/policy.yaml", POLICY)
    machine.write("root/order.yaml", ORDER)
    tries_expressions(partial(machine.run, "crsyncer"), "/root/policy.yaml", "/root/order.yaml")
    examples = {title: yaml.safe_load(text) for title, text in policies().items()}
    machine.write("root/examples.json", json.dumps(examples))
    python = ("/usr/lib/crsyncer/bin/python", "-I", "-c", _READ_POLICIES, "/root/examples.json")
    assert machine.run(*python) == (0, "")
    assert "systemctl enable --now crsyncer" in machine.run("crsyncer", "status")[1]

    # Started before k3s ever ran, its kubeconfig is missing; once it is there, the agent runs without a human.
    config = (machine.root / "etc/crsyncer/config.yaml").read_text().replace("robotName:", "robotName: r1")
    machine.write("etc/crsyncer/config.yaml", config, mode=0o644)
    machine.write(CLOUD, kubeconfig_of(cloud, tmp_path / "cloud.kubeconfig"))
    machine.write("etc/systemd/system/crsyncer.service.d/quick.conf", "[Service]\nWatchdogSec=10\n", mode=0o644)
    it.systemctl("daemon-reload")
    it.systemctl("enable", "--now", "crsyncer")
    await it.until(lambda: it.show("SubState") == "auto-restart", "the unit tries again")
    kubeconfig = kubeconfig_of(robot, tmp_path / "k3s.yaml")
    machine.write(K3S, kubeconfig)
    await syncs("after the first start")
    await it.until(lambda: "HEALTHY" in it.show("StatusText").upper(), "systemctl shows the headline")

    # Every command finds what the unit is configured by.
    for command, allowed in (("doctor", {0, 10, 12}), ("diff", {0}), ("check-access", {0, 12})):
        code, output = machine.run("crsyncer", command)
        assert code in allowed, (command, output)

    # A member of the group may look, and nobody else.
    machine.run("useradd", "--groups", "crsyncer", "anna", check=True)
    machine.run("useradd", "visitor", check=True)
    assert machine.run("runuser", "-u", "anna", "--", "crsyncer", "status")[0] == 0
    assert "you may look" in machine.run("runuser", "-u", "anna", "--", "crsyncer", "resync")[1]
    assert "a member of the group" in machine.run("runuser", "-u", "visitor", "--", "crsyncer", "status")[1]

    # Settings edited time and again: the same process, which writes nothing twice.
    before, pid = await versions(), it.show("MainPID")
    for number in range(1, _EDITS + 1):
        edited = f"{config}\nwatchTimeout: {100 + number}\ncontrol: {{group: anna}}\n"
        machine.write("etc/crsyncer/config.yaml", edited, mode=0o644)
        await it.until(
            lambda count=number: it.log().count("starting over with them") == count, f"edit {number} is taken"
        )
    await it.until_healthy("after the edits")
    assert (it.show("MainPID"), await versions()) == (pid, before)
    assert "Traceback" not in it.log()
    assert machine.run("runuser", "-u", "anna", "--", "crsyncer", "resync")[0] == 0
    machine.write("etc/crsyncer/config.yaml", config, mode=0o644)
    await syncs("with the first settings")

    # Hung: the watchdog ends it, its log shows where it stood, and it is back.
    pid = it.show("MainPID")
    it.systemctl("kill", "--kill-who=main", "--signal=SIGSTOP", "crsyncer")
    await it.until(lambda: it.show("MainPID") not in ("0", pid), "the watchdog has restarted the agent")
    await syncs("after the watchdog")
    assert "Watchdog timeout" in it.log()
    assert "Fatal Python error: Aborted" in it.log()

    # k3s renews its credential: the old copy is refused, the new one is used.
    machine.write(K3S, kubeconfig.replace(robot.admin_token, "expired"))
    await it.until(lambda: it.status().get("sides", {}).get("robot", {}).get("state") == "unauthorized", "refused")
    machine.write(K3S, kubeconfig)
    await syncs("with the renewed kubeconfig")

    # Rebooted.
    before = await versions()
    boot_id = machine.run("cat", "/run/credentials/crsyncer.service/boot-id")[1]
    machine.run("systemctl", "reboot")
    await it.until(lambda: not machine.is_up(), "it goes down")
    await it.until_up()
    await it.until_healthy("after the reboot")
    assert machine.run("cat", "/run/credentials/crsyncer.service/boot-id")[1] != boot_id
    assert await versions() == before
    await syncs("after the reboot")

    # Upgraded: the state stays, a running agent is restarted once, unchanged objects are not written.
    before = await versions()
    pid, store = it.show("MainPID"), (machine.root / "var/lib/crsyncer/state.db").stat().st_ino
    it.installs(DEB)
    assert it.show("MainPID") not in ("0", pid)
    assert it.show("NRestarts") == "0"
    await it.until_healthy("after the upgrade")
    assert it.status()["version"] == __version__
    assert (machine.root / "var/lib/crsyncer/state.db").stat().st_ino == store
    assert (machine.root / "etc/crsyncer/config.yaml").read_text() == config
    assert await versions() == before
    await syncs("after the upgrade")

    # Removed: configuration and state stay. Purged: nothing does.
    machine.run("dpkg", "--remove", "crsyncer", check=True)
    assert it.systemctl("is-active", "crsyncer") == "inactive"
    assert (machine.root / CLOUD).exists()
    assert (machine.root / "var/lib/crsyncer/state.db").exists()
    it.installs(DEB)
    assert it.systemctl("is-enabled", "crsyncer") == "enabled"
    machine.run("dpkg", "--purge", "crsyncer", check=True)
    left = machine.run(
        "find", "/etc", "/usr", "/var/lib", "-name", "*crsyncer*", "-not", "-path", "*/crsyncer.service.d*"
    )
    assert left == (0, "")
    assert machine.run("id", "crsyncer")[0] != 0


async def test_the_image_runs_twice_on_a_volume_whose_modes_were_widened(
    image: str, cloud: Plane, robot: Plane, tmp_path: Path
):
    settings, volume = tmp_path / "settings", tmp_path / "volume"
    settings.mkdir()
    volume.mkdir()
    for plane in (cloud, robot):
        (settings / plane.name).write_text(kubeconfig_of(plane, tmp_path / "kubeconfig"))
    subprocess.run(["chown", "-R", "65532:65532", settings, volume], check=True)
    for _ in range(2):
        subprocess.run(["chmod", "-R", "a+rwX", volume], check=True)  # as fsGroup does, and more
        podman = [
            *("podman", "--runtime", "runc", "run", "--rm", "--name", f"crsyncer-{os.getpid()}", "--read-only"),
            *("--network", "host", "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=4096:4096", "--cap-drop", "all"),
            *("--volume", f"{volume}:/var/lib/crsyncer", "--volume", f"{settings}:/etc/crsyncer:ro"),
            image,
        ]
        options = ["--cloud-kubeconfig", "/etc/crsyncer/cloud", "--robot-kubeconfig", "/etc/crsyncer/robot"]
        with (tmp_path / "log").open("wb") as log:
            agent = subprocess.Popen([*podman, "run", *options, "--listen", "off"], stdout=log, stderr=log)

        async def healthy() -> bool:
            command = ["podman", "--runtime", "runc", "exec", f"crsyncer-{os.getpid()}", "/usr/bin/crsyncer", "status"]
            return subprocess.run(command, capture_output=True, timeout=120).returncode == 0

        try:
            await eventually(healthy, seconds=_SECONDS, what="the agent in the container is healthy")
            assert (volume / "state.db").stat().st_mode & 0o777 == 0o600
        finally:
            subprocess.run(["podman", "--runtime", "runc", "stop", f"crsyncer-{os.getpid()}"], capture_output=True)
        assert agent.wait(60) == 0, (tmp_path / "log").read_text()


@pytest.mark.skipif(ARCHITECTURE == "arm64", reason="this machine needs no emulator to run it")
@pytest.mark.skipif(shutil.which("qemu-aarch64-static") is None, reason="no qemu here: apt install qemu-user-static")
async def test_the_package_for_arm64_syncs_an_object_in_an_emulator(
    cloud: Plane, robot: Plane, cloud_api: Api, robot_api: Api, group: str, tmp_path: Path
):
    root, state = tmp_path / "root", tmp_path / "state"
    deb = ROOT / f"dist/crsyncer_{__version__}_arm64.deb"
    subprocess.run([ROOT / "packaging/deb.sh", "arm64"], check=True, timeout=1200)
    subprocess.run([ROOT / "packaging/unpack-debian.sh", "arm64", root, *DEPENDS], check=True, timeout=600)
    subprocess.run(["dpkg-deb", "--extract", deb, root], check=True, timeout=120)
    program: list[str | Path] = [root / "usr/lib/crsyncer/bin/python", "-I", root / "usr/bin/crsyncer"]
    emulated = ["qemu-aarch64-static", "-L", root, *program]
    goals = Resource(group, "v1", "goals", "Goal")
    for api in (cloud_api, robot_api):
        await api.create(crd(group))
        await api.until_served(goals)
    goal = goals.object("g", spec={"x": 1})
    await cloud_api.create(goal)
    kubeconfigs = [f"--{plane.name}-kubeconfig={plane.kubeconfig(tmp_path / plane.name)}" for plane in (cloud, robot)]
    with (tmp_path / "agent.log").open("wb") as log:
        run = [*emulated, "run", "--state-dir", state, *kubeconfigs, "--robot-name", "r1", "--listen", "off"]
        agent = subprocess.Popen(run, stdout=log, stderr=log)

    async def arrived() -> bool:
        return await robot_api.find(goal) is not None

    async def healthy() -> bool:
        return subprocess.run([*emulated, "status", "--state-dir", state], capture_output=True).returncode == 0

    try:
        await eventually(arrived, seconds=_SECONDS, what="an object arrives")
        await eventually(healthy, seconds=_SECONDS, what="the agent in the emulator is healthy")
    finally:
        agent.terminate()
    assert agent.wait(60) == 0


def test_the_same_commit_gives_the_same_package(deb: Path):
    before = hashlib.sha256(deb.read_bytes()).hexdigest()
    build("deb.sh", "apt-get", "dpkg-deb")
    assert hashlib.sha256(deb.read_bytes()).hexdigest() == before
