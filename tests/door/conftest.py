"""A real API server with an audit log and three robots confined by RBAC, and the front door before it."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from crsyncer.adapters.retries import until
from crsyncer.sandbox.plane import Plane
from crsyncer.sandbox.resource import CRD
from crsyncer.sandbox.two_planes import Sandbox
from tests.delivery.command_line import crsyncer
from tests.door.open_door import OpenDoor
from tests.system.confined import ROBOTS, Confined
from tests.system.conftest import FLEET_CRDS

AUDIT_POLICY = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "Metadata"}]}
ROBOTS_PATH = "/apis/registry.cloudrobotics.com/v1alpha1/namespaces/default/robots"


class Audited:
    """An API server that writes down each request that reaches it."""

    def __init__(self, plane: Plane, log: Path) -> None:
        self.plane = plane
        self.log = log
        self.cloud = Confined(plane)
        inventory = FLEET_CRDS["inventory"]
        self.cloud.admin.ask("POST", CRD.path(), inventory)

        def made() -> bool:
            answers = [self.cloud.admin.ask("POST", ROBOTS_PATH, robot(name)).status for name in ROBOTS]
            return all(status in (201, 409) for status in answers)

        assert until(made, seconds=60)

    def door_kubeconfig(self, path: Path, *, server: str | None = None) -> Path:
        """The account that `crsyncer door manifests` prints, with its rights and no others, for an address."""
        done = crsyncer("door", "manifests", "--json")
        assert done.returncode == 0, done.stderr
        wanted = {
            "Namespace": "/api/v1/namespaces",
            "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts",
            "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles",
            "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings",
        }
        for each in json.loads(done.stdout)["items"]:
            if each["kind"] in wanted:
                place = wanted[each["kind"]].format(each["metadata"].get("namespace"))
                assert self.cloud.admin.ask("POST", place, each).status in (201, 409)
        caller = self.cloud.caller("crsyncer-door", "crsyncer-door")
        assert until(lambda: caller.ask("GET", ROBOTS_PATH).status == 200, seconds=60)
        return self.plane.kubeconfig(path, server=server, token=caller.token)

    def heard_of(self, marker: str) -> bool:
        """Whether a request with this text in it reached the API server."""
        return marker in self.log.read_text()


def robot(name: str, shard: str = "") -> dict:
    """A Robot of the inventory."""
    labels = {"fleet.crsyncer.cloudrobotics.com/shard": shard} if shard else {}
    return {
        "apiVersion": "registry.cloudrobotics.com/v1alpha1",
        "kind": "Robot",
        "metadata": {"name": name, "namespace": "default", "labels": labels},
        "spec": {},
    }


def plane_of(name: str, home: Path, sandbox: Sandbox) -> tuple[Plane, Path]:
    """An API server of one's own, not started yet, and its audit log."""
    home = home / name
    home.mkdir()
    policy, log = home / "policy.json", home / "audit.log"
    policy.write_text(json.dumps(AUDIT_POLICY))
    flags = (f"--audit-policy-file={policy}", f"--audit-log-path={log}")
    programs = sandbox.programs
    plane = Plane(name, home / "plane", apiserver=programs.kube_apiserver, datastore=programs.etcd, flags=flags)
    return plane, log


@pytest.fixture(scope="module")
def audited(running_sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Audited]:
    """The root, which has the three robots."""
    plane, log = plane_of("root", tmp_path_factory.mktemp("audited"), running_sandbox)
    plane.start()
    try:
        yield Audited(plane, log)
    finally:
        plane.stop(graceful=False)


@pytest.fixture(scope="module")
def shard_b(audited: Audited, running_sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Audited]:
    """Another shard, with the same robots."""
    plane, log = plane_of("b", tmp_path_factory.mktemp("shard"), running_sandbox)
    plane.start()
    try:
        yield Audited(plane, log)
    finally:
        plane.stop(graceful=False)


@pytest.fixture(scope="module")
def door(audited: Audited, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenDoor]:
    """The door before the root, open."""
    home = tmp_path_factory.mktemp("door")
    door = OpenDoor(home, audited.door_kubeconfig(home / "root.kubeconfig"))
    door.configure()
    door.start()
    try:
        door.until_open("/version", audited.cloud.robots["r1"].token)
        yield door
    finally:
        door.stop()
