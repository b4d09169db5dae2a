"""A front door before the cloud of the agents under test: with `pytest --door` they reach it through that alone."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from crsyncer.adapters.retries import until
from crsyncer.sandbox.plane import Plane
from crsyncer.sandbox.resource import CRD
from tests.door.open_door import OpenDoor
from tests.link.link import Way
from tests.system.confined import Caller
from tests.system.conftest import FLEET_CRDS

_KIND = {"apiVersion": "registry.cloudrobotics.com/v1alpha1", "kind": "Robot"}
_ROBOTS = "/apis/registry.cloudrobotics.com/v1alpha1/namespaces/default/robots"
_ROBOT = "robot-door"
"""The namespace of an account that the door takes for a robot's; at the API server it may do everything."""


@contextmanager
def way_through_a_door(cloud: Plane, home: Path) -> Iterator[Way]:
    """The way into a cloud through a door, which is open meanwhile. No `door run`: no robot moves, no key changes."""
    admin, rbac = Caller(cloud, cloud.admin_token), "rbac.authorization.k8s.io"
    admin.ask("POST", "/api/v1/namespaces", {"metadata": {"name": _ROBOT}})
    admin.ask("POST", f"/api/v1/namespaces/{_ROBOT}/serviceaccounts", {"metadata": {"name": "crsyncer"}})
    binding = {
        "metadata": {"name": _ROBOT},
        "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "namespace": _ROBOT, "name": "crsyncer"}],
    }
    admin.ask("POST", f"/apis/{rbac}/v1/clusterrolebindings", binding)
    admin.ask("POST", CRD.path(), FLEET_CRDS["inventory"])
    robot = {**_KIND, "metadata": {"name": "door", "namespace": "default"}}
    assert until(lambda: admin.ask("POST", _ROBOTS, robot).status in (201, 409), seconds=60)
    wanted = {"spec": {"expirationSeconds": 30 * 24 * 3600}}
    made = admin.ask("POST", f"/api/v1/namespaces/{_ROBOT}/serviceaccounts/crsyncer/token", wanted)
    assert made.status == 201, made
    token = made.body["status"]["token"]
    door = OpenDoor(home, cloud.kubeconfig(home / "root.kubeconfig"))
    door.configure()
    door.start()
    try:
        door.until_open("/api/v1/namespaces", token)
        yield Way(door.port, door.ca, token)
    finally:
        door.stop()
