"""The door's package on a machine that boots: four lines, and robots come in. Restarted, stopped, purged. Its image."""

import json
import os
import ssl
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from crsyncer import __version__
from crsyncer.sandbox.plane import Plane
from crsyncer.sandbox.resource import CRD
from tests.adapters.kube_server import make_certificates
from tests.delivery.built import build, kubeconfig_of
from tests.delivery.command_line import crsyncer
from tests.delivery.followed import ROOT
from tests.delivery.machine import Machine, make_machine
from tests.system.bed import eventually
from tests.system.confined import Confined
from tests.system.conftest import FLEET_CRDS

pytestmark = pytest.mark.nightly("boots a machine")
DOOR_DEB = ROOT / f"dist/crsyncer-door_{__version__}_all.deb"
UNITS = ("crsyncer-door", "crsyncer-door-haproxy")
_ROBOTS = "/apis/registry.cloudrobotics.com/v1alpha1/namespaces/default/robots"
_SECONDS = 120.0
_DOOR, _METRICS = "https://127.0.0.1:8443/version", "http://127.0.0.1:8404/metrics"
_GET = """\
import ssl, sys, urllib.request
url, token = sys.argv[1:]
request = urllib.request.Request(url, headers={"Authorization": "Bearer " + token})
tls = ssl.create_default_context(cafile="/root/ca.crt") if url.startswith("https") else None
reply = urllib.request.urlopen(request, timeout=20, context=tls)
print(reply.status, reply.read().decode())
"""


class DoorMachine:
    """A machine with HAProxy and the door's package, as its administrator sees it."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine

    def __call__(self, *command: str) -> tuple[int, str]:
        return self.machine.run(*command)

    def show(self, unit: str, key: str) -> str:
        return self("systemctl", "show", "--property", key, "--value", unit)[1]

    def get(self, url: str, token: str = "") -> str:
        """What is answered there: the status, and the text."""
        python = ("/usr/lib/crsyncer/bin/python", "-I", "-c", _GET, url, token)
        return self(*python)[1]

    async def until(self, check, what: str) -> None:
        async def asked() -> bool:
            return bool(check())

        try:
            await eventually(asked, seconds=_SECONDS, what=what)
        except AssertionError as overdue:
            logs = [self("journalctl", "--no-pager", "--lines", "30", "--unit", unit)[1] for unit in UNITS]
            raise AssertionError("\n".join([str(overdue), *logs])) from overdue


async def with_robot(cloud: Plane) -> Confined:
    """A cloud with confined robots, of which r1 has a Robot."""
    robots = Confined(cloud)
    assert robots.admin.ask("POST", CRD.path(), FLEET_CRDS["inventory"]).status in (201, 409)
    body = {"apiVersion": "registry.cloudrobotics.com/v1alpha1", "kind": "Robot", "metadata": {"name": "r1"}}

    async def made() -> bool:
        return robots.admin.ask("POST", _ROBOTS, body).status in (201, 409)

    await eventually(made, seconds=_SECONDS, what="the Robot is made")
    return robots


@pytest.fixture
def machine(tmp_path: Path):
    made = make_machine("bookworm", tmp_path, packages=("haproxy",))
    made.boot()
    yield DoorMachine(made)
    made.end()


async def test_four_lines_open_the_door_and_it_closes_without_a_trace(
    machine: DoorMachine,
    deb: Path,
    cloud: Plane,
    tmp_path: Path,
):
    build("door-deb.sh", "dpkg-deb")
    robots = await with_robot(cloud)
    issuer = make_certificates(tmp_path)
    certificate, key = issuer.issue("door")
    home = machine.machine.root / "root"
    await machine.until(machine.machine.is_up, "the machine has booted")
    for name, text in {
        "door.pem": certificate.read_text() + key.read_text(),
        "root.kubeconfig": kubeconfig_of(cloud, tmp_path / "kubeconfig"),
        "ca.crt": (tmp_path / "ca.crt").read_text(),
    }.items():
        machine.machine.write(f"root/{name}", text)
    for each in (deb, DOOR_DEB):
        (home / each.name).write_bytes(each.read_bytes())

    # Nothing is enabled or started by the package.
    both = ("dpkg", "--install", f"/root/{deb.name}", f"/root/{DOOR_DEB.name}")
    machine.machine.run(*both, check=True)
    assert machine("systemctl", "is-enabled", "crsyncer-door")[1] == "disabled"
    assert [machine("systemctl", "is-active", unit)[1] for unit in UNITS] == ["inactive", "inactive"]

    # The lines of systemd/README.md.
    line = "install -m 640 -g crsyncer-door root.kubeconfig door.pem /etc/crsyncer-door/"
    assert line in (ROOT / "systemd/README.md").read_text()
    machine.machine.run("sh", "-c", f"cd /root && {line}", check=True)
    machine.machine.run("systemctl", "enable", "--now", "crsyncer-door", check=True)
    await machine.until(lambda: machine("crsyncer", "door", "status")[0] == 0, "the door is healthy")
    checks = json.loads(machine("crsyncer", "door", "doctor", "--json")[1])["checks"]
    troubles = {each["name"] for each in checks if each["state"] != "ok"}
    assert troubles <= {"certificate", "open-files"}, checks  # it lasts two days; not every host lets a unit have files

    # A robot comes in, HAProxy serves metrics, and neither program may do what it need not.
    token = robots.robots["r1"].token
    assert machine.get(_DOOR, token).startswith("200 ")
    assert "haproxy_server_status" in machine.get(_METRICS)
    pids = {unit: machine.show(unit, "MainPID") for unit in UNITS}
    for pid in pids.values():
        status = (machine.machine.proc(pid) / "status").read_text()
        assert "Uid:\t0" not in status
        assert "NoNewPrivs:\t1" in status

    # The upkeep ends: HAProxy goes on, and takes no notice of its restart.
    machine("systemctl", "stop", "crsyncer-door")
    assert machine.get(_DOOR, token).startswith("200 ")
    machine("systemctl", "start", "crsyncer-door")
    await machine.until(lambda: machine("crsyncer", "door", "status")[0] == 0, "healthy after the restart")
    assert machine.show("crsyncer-door-haproxy", "MainPID") == pids["crsyncer-door-haproxy"]

    # The upkeep hangs: the watchdog ends it, and it is started again.
    machine.machine.write("etc/systemd/system/crsyncer-door.service.d/quick.conf", "[Service]\nWatchdogSec=10\n")
    machine("systemctl", "daemon-reload")
    machine("systemctl", "restart", "crsyncer-door")
    await machine.until(lambda: machine("crsyncer", "door", "status")[0] == 0, "healthy with another watchdog")
    pid = machine.show("crsyncer-door", "MainPID")
    machine("systemctl", "kill", "--kill-who=main", "--signal=SIGSTOP", "crsyncer-door")
    await machine.until(lambda: machine.show("crsyncer-door", "MainPID") not in ("0", pid), "the watchdog has acted")
    await machine.until(lambda: machine("crsyncer", "door", "status")[0] == 0, "healthy after the watchdog")
    assert machine.show("crsyncer-door-haproxy", "MainPID") == pids["crsyncer-door-haproxy"]

    # HAProxy is killed: it is back by itself, with the present map.
    machine("systemctl", "kill", "--kill-who=all", "--signal=SIGKILL", "crsyncer-door-haproxy")
    await machine.until(lambda: machine.get(_DOOR, token).startswith("200 "), "HAProxy is back")
    await machine.until(lambda: machine("crsyncer", "door", "status")[0] == 0, "healthy after HAProxy's end")

    # An upgrade restarts the upkeep and no stream's HAProxy.
    before = {unit: machine.show(unit, "MainPID") for unit in UNITS}
    machine.machine.run(*both, check=True)
    after = {unit: machine.show(unit, "MainPID") for unit in UNITS}
    assert after["crsyncer-door"] not in ("0", before["crsyncer-door"])
    assert after["crsyncer-door-haproxy"] == before["crsyncer-door-haproxy"]

    # It is drained when it is stopped, at the removal. Purged, nothing is left.
    machine.machine.run("dpkg", "--remove", "crsyncer-door", check=True)
    assert [machine("systemctl", "is-active", unit)[1] for unit in UNITS] == ["inactive", "inactive"]
    log = machine("journalctl", "--no-pager", "--unit", "crsyncer-door-haproxy")[1]
    assert "ended 0 streams" in log
    assert (machine.machine.root / "etc/crsyncer-door/door.pem").exists()
    machine.machine.run("dpkg", "--purge", "crsyncer-door", check=True)
    left = machine(
        "find",
        "/etc",
        "/usr/lib",
        "/var/lib",
        "/run",
        "-name",
        "*crsyncer-door*",
        "-not",
        "-path",
        "*/crsyncer-door.service.d*",
    )
    assert left == (0, "")
    assert machine("id", "crsyncer-door")[0] != 0


@contextmanager
def container(name: str, container: dict, mounts: dict[str, Path], log: Path) -> Iterator[list[str]]:
    """A container of the door's pod, with its volumes; yields the command that runs something in it."""
    podman = ["podman", "--runtime", "runc"]
    run = [*podman, "run", "--rm", "--name", name, "--network", "host", "--read-only", "--cap-drop", "all"]
    run += ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=4096:4096", "--tmpfs", "/tmp"]
    given = {"POD_IP": "127.0.0.1"} | {each["name"]: each.get("value", "127.0.0.1") for each in container["env"]}
    given |= {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": mounts["port"].name}
    for key, value in given.items():
        run += ["--env", f"{key}={value.replace('$(POD_IP)', given['POD_IP'])}"]
    for each in container["volumeMounts"]:
        run += ["--volume", f"{mounts[each['name']]}:{each['mountPath']}"]
    words = [*container.get("command", []), *container.get("args", [])]
    program = ["--entrypoint", words.pop(0)] if "command" in container else []
    with log.open("wb") as file:
        process = subprocess.Popen([*run, *program, container["image"], *words], stdout=file, stderr=file)
    try:
        yield [*podman, "exec", name]
    finally:
        subprocess.run([*podman, "stop", name], capture_output=True, timeout=120)
        assert process.wait(60) in (0, 143), log.read_text()


async def test_the_containers_of_the_manifests_serve_a_robot_and_let_it_go_before_they_end(
    image: str, cloud: Plane, tmp_path: Path
):
    assert image
    robots = await with_robot(cloud)
    printed = json.loads(crsyncer("door", "manifests", "--json").stdout)["items"]
    [deployment] = [each for each in printed if each["kind"] == "Deployment"]
    spec = deployment["spec"]["template"]["spec"]
    mounts = {name: tmp_path / name for name in ("run", "account", "certificate", "shards")}
    for each in mounts.values():
        each.mkdir()
    issuer = make_certificates(tmp_path)
    certificate, key = issuer.issue("door")
    (mounts["certificate"] / "tls-combined.pem").write_text(certificate.read_text() + key.read_text())
    (mounts["account"] / "token").write_text(cloud.admin_token)
    (mounts["account"] / "ca.crt").write_bytes(cloud.ca_file.read_bytes())
    (mounts["account"] / "namespace").write_text("crsyncer-door")
    subprocess.run(["chown", "-R", "65532:65532", *mounts.values()], check=True)
    mounts["port"] = tmp_path / str(cloud.port)
    context = ssl.create_default_context(cafile=str(tmp_path / "ca.crt"))

    def get(url: str, **headers: str) -> tuple[int, str]:
        try:
            request = urllib.request.Request(url, headers=headers)
            tls = context if url.startswith("https") else None
            with urllib.request.urlopen(request, timeout=20, context=tls) as reply:
                return reply.status, reply.read().decode()
        except OSError as error:
            return 0, str(error)

    async def configured() -> bool:
        return get("http://127.0.0.1:9466/configured")[0] == 200

    async def serves() -> bool:
        return get(_DOOR, Authorization=f"Bearer {robots.robots['r1'].token}")[0] == 200

    logs = {name: tmp_path / f"{name}.log" for name in ("upkeep", "haproxy")}
    [upkeep], [haproxy] = spec["initContainers"], spec["containers"]
    try:
        with container(f"upkeep-{os.getpid()}", upkeep, mounts, logs["upkeep"]) as inside:
            await eventually(configured, seconds=_SECONDS, what="the sidecar has made the configuration")
            with container(f"haproxy-{os.getpid()}", haproxy, mounts, logs["haproxy"]) as beside:
                await eventually(serves, seconds=_SECONDS, what="the robot comes in")
                assert "haproxy_server_status" in get(_METRICS)[1]

                async def healthy(status=(*inside, "/usr/bin/crsyncer", "door", "status")) -> bool:
                    return subprocess.run(status, capture_output=True, timeout=120).returncode == 0

                await eventually(healthy, seconds=_SECONDS, what="the door is healthy")
                drain = haproxy["lifecycle"]["preStop"]["exec"]["command"]
                done = subprocess.run([*beside, *drain], capture_output=True, text=True, timeout=120)
                assert (done.returncode, done.stdout) == (0, "ended 0 streams\n"), done.stderr
                assert not await serves()
    except AssertionError as error:
        raise AssertionError("\n".join([str(error), *(each.read_text()[-1500:] for each in logs.values())])) from error
