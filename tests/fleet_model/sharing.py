"""A fleet whose robots share one source, and the statuses that their agents return (F10.3)."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.fleet_model import oracle
from tests.fleet_model.oracle import ROBOT_LABEL, SHARED
from tests.fleet_model.sharded import GOALS, Sharded, sharded
from tests.model.simulation.plane import GROUP, Plane

NEW, OLD = {"x": 2}, {"x": 1}
STATUSES = "robotobjectstatuses.fleet.crsyncer.cloudrobotics.com"


@contextmanager
def shared(**spec: Any) -> Iterator[Sharded]:
    """The source dock, which r0 at the root, rb and rc share by the placement p."""
    with sharded(filtered=None, mode="Shared", **spec) as fleet:
        yield fleet


def plane(fleet: Sharded, robot: str) -> Plane:
    """The API server of a robot."""
    shard = robot.removeprefix("r")
    return fleet.world.cloud if shard == "0" else fleet[shard].cloud


def returned(
    fleet: Sharded,
    robot: str,
    status: Any,
    *,
    name: str = "dock",
    at: Plane | None = None,
    namespace: str = "default",
    **source: Any,
) -> None:
    """The agent of a robot writes its RobotObjectStatus. `at`: its API server, if its name does not say that."""
    cloud = at or plane(fleet, robot)
    copy = cloud.get(name, namespace="default")
    assert copy is not None
    about = {"group": GROUP, "resource": "goals", "namespace": "default", "name": name, "uid": copy["metadata"]["uid"]}
    spec = {"source": about | source, "returned": status, "lastUpdate": "2026-11-01T00:00:00Z"}
    made = f"{oracle.digest([GOALS, 'default', name])}-{robot}"
    if made in cloud.objects(STATUSES, namespace):
        cloud.set(made, kind=STATUSES, namespace=namespace, spec=spec)
        return
    marks = {"labels": {ROBOT_LABEL: robot}, "annotations": {f"{oracle.OURS}robot": robot}}
    cloud.create(made, kind=STATUSES, namespace=namespace, spec=spec, **marks)


def mark(fleet: Sharded, name: str = "dock") -> str | None:
    """The mark of a source."""
    source = fleet.world.cloud.get(name, namespace="default")
    assert source is not None
    return oracle.texts(source, "annotations").get(SHARED)
