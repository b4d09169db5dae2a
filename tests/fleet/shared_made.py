"""A fleet with one shared source, a robot at the root and one on a shard (F10.3)."""

from typing import Any

from crsyncer.core.model import Json
from crsyncer.fleet.domain.change import Input
from crsyncer.fleet.domain.fleet import Fleet
from crsyncer.fleet.domain.replica_plan import new_body
from crsyncer.fleet.domain.returned.variables import Returned
from crsyncer.fleet.domain.values import (
    PlacedKind,
    Rendering,
    ReplicaKey,
    SourceKey,
    Target,
)
from tests.fleet.made import GOALS, goal, goal_id, raw_placement, raw_robot

FINALIZER = "fleet.crsyncer.cloudrobotics.com/placement"
STATUSES = "robotobjectstatuses.fleet.crsyncer.cloudrobotics.com"
KIND = PlacedKind(GOALS, "lab.example.com", "goals", "Goal", "v1", namespaced=True, shared=True, message="unfiltered")
AT_B = PlacedKind(
    GOALS, "lab.example.com", "goals", "Goal", "v1", namespaced=True, shared=True, message="unfiltered", shard="b"
)
DOCK = SourceKey(GOALS, "site", "dock")
COPY = ReplicaKey(GOALS, goal_id(), "", Target.SHARED, "b")


def raw_shared(name: str = "all", *, finalized: bool = True, **options: Any) -> Json:
    raw = raw_placement(name, **{"mode": "Shared", "robotSelectors": [{}], **options})
    raw["metadata"] |= {"finalizers": [FINALIZER]} if finalized else {}
    return raw


def made(*placements: Json, source: Json | None = None) -> Fleet:
    """A fleet with the source dock at the root, r0 at the root, and rb on shard b; all is listed."""
    fleet = Fleet(home="default", shards=("root", "b"))
    fleet.unread.clear()
    fleet.kind_shown(KIND)
    fleet.kind_shown(AT_B)
    fleet.robot_shown(raw_robot("r0"))
    fleet.robot_shown(raw_robot("rb", **{"fleet.crsyncer.cloudrobotics.com/shard": "b"}))
    for raw in placements or [raw_shared()]:
        fleet.placement_shown(raw)
    fleet.object_shown(source or goal(), GOALS)
    fleet.inputs_listed(*Input, GOALS, f"b/{GOALS}")
    return fleet


def copied(fleet: Fleet, **metadata: Any) -> Json:
    """The copy on b as the server stores our write."""
    wanted = fleet.wanted(COPY)
    assert wanted is not None
    assert isinstance(wanted.rendering, Rendering)
    body = new_body(wanted, wanted.rendering)
    body["metadata"] |= {"uid": "copy", "resourceVersion": "3", "generation": 4, **metadata}
    return body


def returned(robot: str = "rb", status: Any = None, *, name: str = "", **fields: Any) -> Json:
    """A RobotObjectStatus of the dock."""
    about = {"group": "lab.example.com", "resource": "goals", "namespace": "site", "name": "dock", "uid": "copy"}
    spec = {"source": about, "returned": status or {"phase": "Ready"}, "lastUpdate": "2026-11-01T00:00:00Z"}
    metadata = {
        "namespace": "default",
        "name": name or f"{goal_id()}-{robot}",
        "labels": {"cloudrobotics.com/robot-name": robot},
        "annotations": {"crsyncer.cloudrobotics.com/robot": robot},
    }
    return {"metadata": metadata | fields.pop("metadata", {}), "spec": spec | fields}


def show(fleet: Fleet, raw: Json, shard: str = "b") -> set[ReplicaKey]:
    return fleet.statuses.shown(raw, shard=shard, robots_namespace="default").returned


def status_of(fleet: Fleet, key: ReplicaKey) -> Returned:
    found = fleet.statuses.returned(key)
    assert found is not None
    return found


def view(robot: str = "rb", shard: str = "b") -> ReplicaKey:
    return ReplicaKey(GOALS, goal_id(), robot, Target.SHARED, shard)
