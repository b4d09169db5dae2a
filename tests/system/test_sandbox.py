"""The sandbox is what the other tests stand on, so it is shown here to do what it says, on the real planes."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Sequence
from multiprocessing import get_context
from pathlib import Path

import aiohttp
import pytest
import yaml
from click.testing import CliRunner

from crsyncer.adapters.retries import until
from crsyncer.cli.main import main
from crsyncer.cli.sandbox import sandbox as command
from crsyncer.errors import SyncError
from crsyncer.sandbox import binaries, golang, process
from crsyncer.sandbox.free_ports import free_ports, give_back
from crsyncer.sandbox.plane import Plane
from crsyncer.sandbox.resource import CLUSTER_ROLE, CLUSTER_ROLE_BINDING, CONFIG_MAP, NAMESPACE, Resource
from crsyncer.sandbox.two_planes import Sandbox
from tests import planes
from tests.api import Api, ApiError, crd

GONE = (aiohttp.ClientError, ConnectionError)
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture(params=["cloud", "robot"])
def plane(sandbox: Sandbox, request) -> Plane:
    return sandbox.cloud if request.param == "cloud" else sandbox.robot


@pytest.fixture
async def api(plane) -> AsyncIterator[Api]:
    async with Api(plane.server, ca_file=plane.ca_file, token=plane.admin_token) as api:
        yield api


@pytest.fixture
def goals(group) -> Resource:
    return Resource(group, "v1", "goals", "Goal")


# Planes


async def test_both_planes_serve_crds_with_status_and_uid_guards(api, goals):
    assert await api.apply_crd(crd(goals)) == goals
    made = await api.create(goals.object("a", spec={"x": 1}))
    await api.patch_status(made, {"phase": "DONE"})
    await api.patch(made, [{"op": "replace", "path": "/spec/x", "value": 2}])
    current = await api.get(goals.object("a"))
    assert (current["spec"], current["status"]) == ({"x": 2}, {"phase": "DONE"})
    current["status"]["phase"] = "LATER"
    current = await api.replace_status(current)
    assert (await api.replace(current | {"spec": {"x": 3}}))["status"] == {"phase": "LATER"}
    with pytest.raises(ApiError) as refused:
        await api.delete(made, uid="another")
    assert refused.value.status == 409
    await api.delete(made, uid=made["metadata"]["uid"])
    assert await api.find(made) is None
    events = api.watch(goals, since=made["metadata"]["resourceVersion"], timeoutSeconds="60")
    assert [(await anext(events))[0] for _ in range(5)] == ["MODIFIED"] * 4 + ["DELETED"]
    await events.aclose()


async def test_a_changed_crd_is_served_when_apply_crd_returns(cloud_api, goals):
    await cloud_api.apply_crd(crd(goals))
    for edit in range(5):
        await cloud_api.apply_crd(crd(goals, annotations={"edit": str(edit)}))
        status, _ = await cloud_api.request("GET", goals.path())
        assert status == 200


async def test_a_service_account_has_the_rights_of_its_roles_and_no_others(robot, robot_api, group):
    token = await robot_api.service_account_token("default", group)
    role = CLUSTER_ROLE.object(group, rules=[{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}])
    binding = CLUSTER_ROLE_BINDING.object(
        group,
        subjects=[{"kind": "ServiceAccount", "name": group, "namespace": "default"}],
        roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": group},
    )
    await robot_api.create(role)
    await robot_api.create(binding)
    async with Api(robot.server, ca_file=robot.ca_file, token=token) as api, asyncio.timeout(30):
        while (await api.request("GET", CONFIG_MAPS))[0] != 200:  # noqa: ASYNC110 - the authorizer hears by a watch
            await asyncio.sleep(0.02)
        assert (await api.request("GET", "/api/v1/secrets"))[0] == 403
    await robot_api.delete(role)
    await robot_api.delete(binding)


async def test_after_a_compaction_and_a_restart_an_old_cursor_is_gone(plane, api, goals):
    await api.apply_crd(crd(goals))
    cursor = (await api.list(goals))["metadata"]["resourceVersion"]
    for each in "abc":
        await api.create(goals.object(each))
    last = (await api.list(goals))["metadata"]["resourceVersion"]
    assert planes.compact(plane) >= int(last)
    plane.restart("apiserver", graceful=False)
    await api.until_served(goals)
    with pytest.raises(ApiError) as gone:
        async for _ in api.watch(goals, since=cursor, timeoutSeconds="20"):
            pass
    assert gone.value.status == 410
    assert len((await api.list(goals))["items"]) == 3


async def test_a_restored_snapshot_goes_back_in_objects_and_revision(plane, api, tmp_path):
    kept = await api.create(CONFIG_MAP.object("kept", data={"x": "1"}))
    planes.snapshot(plane, tmp_path / "snapshot")
    for each in range(20):
        await api.create(CONFIG_MAP.object(f"later-{each}"))
    before = int((await api.list(CONFIG_MAP))["metadata"]["resourceVersion"])
    planes.restore(plane, tmp_path / "snapshot")
    now = await api.list(CONFIG_MAP, namespace="default")
    assert [each["metadata"]["uid"] for each in now["items"] if each["metadata"]["name"] != "kube-root-ca.crt"] == [
        kept["metadata"]["uid"]
    ]
    assert int(now["metadata"]["resourceVersion"]) < before
    await api.delete(kept)


async def test_a_wiped_plane_is_another_cluster_at_the_old_address(robot, robot_api):
    before = await robot_api.get(NAMESPACE.object("kube-system"))
    await robot_api.create(CONFIG_MAP.object("lost"))
    planes.wipe(robot)
    assert await robot_api.find(CONFIG_MAP.object("lost")) is None
    await robot_api.ensure_namespace("kube-system")
    assert (await robot_api.get(NAMESPACE.object("kube-system")))["metadata"]["uid"] != before["metadata"]["uid"]


async def test_a_paused_api_server_is_silent_and_goes_on_where_it_was(cloud, cloud_api):
    planes.pause(cloud)
    with pytest.raises(TimeoutError):
        await cloud_api.request("GET", CONFIG_MAPS, timeout=0.3)
    assert not cloud.healthy()
    planes.resume(cloud)
    assert (await cloud_api.request("GET", CONFIG_MAPS))[0] == 200


async def test_a_stopped_plane_comes_back_with_its_data(robot, robot_api):
    made = await robot_api.create(CONFIG_MAP.object("durable"))
    robot.stop()
    assert robot.pids() == {}
    with pytest.raises(GONE):
        await robot_api.request("GET", CONFIG_MAPS)
    robot.start()
    assert (await robot_api.get(made))["metadata"]["uid"] == made["metadata"]["uid"]
    await robot_api.delete(made)


def test_a_start_that_fails_shows_the_log(cloud, tmp_path, monkeypatch):
    monkeypatch.setattr("crsyncer.sandbox.plane.free_ports", lambda _count: [cloud.port, cloud.port])
    plane = Plane("twin", tmp_path, apiserver=Path("/bin/true"), datastore=cloud.datastore)
    with pytest.raises(SyncError, match="address already in use") as failed:
        plane.start()
    assert str(tmp_path) in failed.value.hint


def test_a_kubeconfig_is_private_and_works_with_kubectl(sandbox, robot, tmp_path):
    token = tmp_path / "token"
    token.write_text(robot.admin_token)
    path = robot.kubeconfig(tmp_path / "config", token_file=token, namespace="kube-system")
    assert path.stat().st_mode & 0o777 == 0o600
    assert yaml.safe_load(path.read_text())["clusters"][0]["cluster"]["server"] == robot.server
    kubectl = [sandbox.programs.kubectl(), "--kubeconfig", path]
    shown = subprocess.run([*kubectl, "get", "namespace", "-o", "name"], capture_output=True, text=True, check=True)
    assert "namespace/kube-system" in shown.stdout


# Programs, processes and ports


def test_a_port_is_reserved_for_one_process_until_it_is_given_back():
    script = "import sys; from crsyncer.sandbox.free_ports import reserve; print(reserve(int(sys.argv[1])))"

    def reserved_elsewhere(port: int) -> str:
        asked = [sys.executable, "-c", script, str(port)]
        return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()

    mine, other = free_ports(2)
    assert reserved_elsewhere(mine) == "False"
    give_back(mine)
    assert reserved_elsewhere(mine) == "True"
    assert reserved_elsewhere(other) == "False"
    give_back(other)


def _runs(child: process.Process, program: str) -> bool:
    return child.alive() and program in Path(f"/proc/{child.pid}/comm").read_text()


def test_nothing_is_left_of_a_parent_that_was_killed(tmp_path):
    script = (
        "import os, signal, sys; from pathlib import Path; from crsyncer.sandbox.process import spawn\n"
        "for name in 'ab': print(spawn(['/bin/sleep', '600'], log=Path('log'), cwd=Path.cwd()).pid, flush=True)\n"
        "signal.pause()"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, cwd=tmp_path)
    assert parent.stdout is not None
    children = [process.Process(int(parent.stdout.readline()), tmp_path, tmp_path / "log") for _ in "ab"]
    assert until(lambda: all(_runs(child, "sleep") for child in children), seconds=30)
    os.kill(children[1].pid, signal.SIGSTOP)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    assert until(lambda: not any(child.alive() for child in children), seconds=30)


def test_the_commands_start_find_and_stop_a_detached_sandbox(tmp_path, capsys):
    where = ["--directory", str(tmp_path / "box")]
    script = "from crsyncer.cli.sandbox import sandbox; sandbox()"
    assert main(["sandbox", "env", *where]) == 1
    assert "hint: start it with: crsyncer sandbox up --directory" in capsys.readouterr().err
    subprocess.run([sys.executable, "-c", script, "up", *where], check=True, capture_output=True)
    try:

        def is_up() -> bool:  # one that answers late is brought up again
            again = CliRunner().invoke(command, ["up", *where])
            return (again.exit_code, "already up" in again.output) == (0, True)

        assert until(is_up, seconds=180)
        shown = CliRunner().invoke(command, ["env", *where]).output
        exported = dict(line.removeprefix("export ").split("=", 1) for line in shown.splitlines())
        assert {"CLOUD_KUBECONFIG", "ROBOT_KUBECONFIG", "KUBECTL"} <= exported.keys()
        assert "CRSYNCER_STATE_DIR" not in exported
        agents = ["--state-dir", str(tmp_path / "state"), "--json"]
        shown = CliRunner().invoke(command, ["env", *where, *agents]).output
        assert json.loads(shown)["CRSYNCER_STATE_DIR"] == str(tmp_path / "state")
        kubectl = [exported["KUBECTL"], "--kubeconfig", exported["ROBOT_KUBECONFIG"]]
        subprocess.run([*kubectl, "get", "namespace", "default"], check=True, capture_output=True)
        found = Sandbox.attach(tmp_path / "box")
        assert found is not None
        pids = [pid for plane in found.planes for pid in plane.pids().values()]
        assert len(pids) == 6  # an API server, its store and two controllers in one process, twice
        os.kill(pids[0], signal.SIGKILL)  # a half-dead one is brought up again by `up`, and still stopped by `down`
    finally:
        assert CliRunner().invoke(command, ["down", *where]).exit_code == 0
    assert not any(plane.pids() for plane in found.planes)
    assert CliRunner().invoke(command, ["down", *where]).output.startswith("nothing is up")


def _find_slowly(cache: Path, counter: Path) -> None:
    def build(names: Sequence[str], directory: Path, _progress: object) -> None:
        with counter.open("a") as file:
            file.write("".join(f"{name}\n" for name in names))
        time.sleep(0.1)  # long enough for the other process to come
        for name in names:
            (directory / name).touch()

    os.environ.pop("KUBEBUILDER_ASSETS", None)
    found = binaries.find(cache=cache, build=build, download=lambda *_: False, progress=lambda _: None)
    assert found.kine is not None


def test_two_processes_build_once(tmp_path):
    spawner = get_context("spawn")
    both = [spawner.Process(target=_find_slowly, args=(tmp_path, tmp_path / "built")) for _ in range(2)]
    for each in both:
        each.start()
    for each in both:
        each.join(120)
    assert [each.exitcode for each in both] == [0, 0]
    assert sorted((tmp_path / "built").read_text().split()) == ["etcd", "kine", "kube-apiserver"]


GO = """#!/bin/sh
until_told() { for _ in $(seq 600); do [ -e "$TOLD/$1" ] && break; sleep 0.1; done; }
case $1 in
version) echo go version go1.26.1 linux/amd64 ;;
list) until_told fetching; echo errors; echo fmt ;;
build)
    [ "$CGO_ENABLED" = 0 ] || { echo "sqlite3.h: no such file" >&2; exit 1; }
    echo errors; until_told compiling; echo fmt
    while [ "$1" != -o ]; do shift; done
    touch "$2/etcd" "$2/kine" ;;
esac
"""


def test_a_build_tells_how_far_it_is_and_goes_on_without_c_where_c_does_not_compile(tmp_path, monkeypatch):
    for program, script in {"go": GO, "cc": "#!/bin/sh\n"}.items():
        (tmp_path / program).write_text(script)
        (tmp_path / program).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("TOLD", str(tmp_path))
    monkeypatch.setattr(golang, "_EVERY", 0.05)
    made = tmp_path / "made"
    made.mkdir()
    said: list[str] = []

    def progress(line: str) -> None:
        said.append(line)
        if line.startswith(("fetching sources, ", "compiling: 50 %, ")):
            (tmp_path / line.split()[0].strip(":")).touch()

    golang.build(["etcd", "kine"], made, progress)
    assert sorted(path.name for path in made.iterdir()) == ["etcd", "kine"]
    assert any(line.startswith("compiling: 50 %, ") for line in said)
    assert "building with a C compiler failed, trying without: sqlite3.h: no such file" in said


def test_without_go_the_robot_runs_on_etcd_and_says_so(tmp_path, monkeypatch):
    for name in binaries.REQUIRED:
        (tmp_path / name).touch()
    said: list[str] = []

    def build(*_: object) -> None:
        raise SyncError("no Go")

    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    found = binaries.find(cache=tmp_path / "cache", build=build, progress=said.append)
    assert found.kine is None
    assert Sandbox(tmp_path / "box", programs=found).robot.datastore.name == "etcd"
    assert "no Go" in said[-1]
    (tmp_path / "etcd").unlink()
    with pytest.raises(SyncError, match="KUBEBUILDER_ASSETS"):
        binaries.find(cache=tmp_path / "cache")


def test_an_archive_with_another_digest_is_not_used(tmp_path, monkeypatch):
    (tmp_path / "archive").write_bytes(b"not what it was")
    monkeypatch.setattr(binaries, "ARCHIVE_URL", (tmp_path / "archive").as_uri())
    monkeypatch.setattr(binaries, "ARCHIVE_SHA512", {"linux-amd64": "0" * 128, "linux-arm64": "0" * 128})
    said: list[str] = []
    assert not binaries._download(tmp_path / "unpacked", said.append)
    assert "digest" in said[-1]
    assert not (tmp_path / "unpacked").exists()
