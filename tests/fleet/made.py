"""Values for tests of the fleet's domain: objects as an API server stores them, and what is read of them."""

import copy
from collections.abc import Iterable
from typing import Any

from crsyncer.core.model import Json
from crsyncer.fleet.domain.change import Input
from crsyncer.fleet.domain.fleet import Fleet
from crsyncer.fleet.domain.names import mark_texts, source_id
from crsyncer.fleet.domain.read_objects import placement_of, row_of, source_of
from crsyncer.fleet.domain.replica_plan import Removal, new_body
from crsyncer.fleet.domain.transport.transports import TRANSPORTS
from crsyncer.fleet.domain.values import (
    Marks,
    PlacedKind,
    Placement,
    RenderFailed,
    Rendering,
    ReplicaKey,
    Row,
    Source,
    SourceKey,
    Strategy,
    Target,
    Wanted,
)

GOALS = "goals.lab.example.com"
KIND = PlacedKind(GOALS, "lab.example.com", "goals", "Goal", "v1", namespaced=True)


def goal(name: str = "dock", *, namespace: str = "site", **content: Any) -> Json:
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "resourceVersion": "7"}
    return {"apiVersion": "lab.example.com/v1", "kind": "Goal", "metadata": metadata, "spec": {"x": 1}, **content}


def source(raw: Json | None = None) -> Source:
    return source_of(raw or goal(), GOALS)


def raw_placement(
    name: str = "all",
    *,
    namespace: str = "site",
    created: str = "2026-11-01T00:00:00Z",
    terminating: bool = False,
    **spec: Any,
) -> Json:
    spec.setdefault("resources", [{"group": "lab.example.com", "resource": "goals", "selectors": [{}]}])
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "creationTimestamp": created}
    if terminating:
        metadata["deletionTimestamp"] = "2026-11-09T00:00:00Z"
    return {"metadata": metadata, "spec": spec}


def placement(*arguments: Any, **options: Any) -> Placement:
    return placement_of(raw_placement(*arguments, **options))


def raw_robot(name: str, **labels: str) -> Json:
    return {"metadata": {"name": name, "uid": f"uid-{name}", "labels": labels}, "spec": {}}


def goal_id(name: str = "dock") -> str:
    return source_id(SourceKey(GOALS, "site", name))


def key(robot: str, *, name: str = "dock", target: Target = Target.PER_ROBOT) -> ReplicaKey:
    return ReplicaKey(GOALS, goal_id(name), robot, target)


def ready_fleet(
    *placements: Json, robots: Iterable[str] = ("r1",), sources: Iterable[str] = ("dock",), raws: Iterable[Json] = ()
) -> Fleet:
    """A fleet in which all is listed; without placements, one that gives all goals to all robots."""
    fleet = Fleet(home="default")
    fleet.kind_shown(KIND)
    for name in robots:
        fleet.robot_shown(raw_robot(name))
    for raw in placements or [raw_placement(robotSelectors=[{}])]:
        fleet.placement_shown(raw)
    for raw in [*map(goal, sources), *raws]:
        fleet.object_shown(raw, GOALS)
    fleet.inputs_listed(*Input, GOALS)
    return fleet


def wanted(
    rendering: Rendering | RenderFailed,
    *,
    by: Placement | None = None,
    of: SourceKey | None = None,
    strategy: Strategy = Strategy.UPDATE,
) -> Wanted:
    by, key = by or placement(), of or source().key
    namespace, name = TRANSPORTS[by.target].address(key, "r1", namespaced=True)
    return Wanted(key, source_id(key), "r1", by, KIND, namespace, name, strategy, rendering)


def stored(what: Wanted, **changes: Any) -> Json:
    """The replica as an API server has it after its creation."""
    assert isinstance(what.rendering, Rendering)
    body = new_body(what, what.rendering)
    body["metadata"] |= {"uid": "u1", "resourceVersion": "11", "generation": 1, **changes}
    return body


def row(raw: Json) -> Row:
    found = row_of(raw, GOALS)
    assert found is not None
    return found


def placed(fleet: Fleet, robot: str = "r1", version: int = 1, **options: Any) -> Any:
    """The replica of a robot as the server stores our write."""
    found = fleet.wanted(key(robot, **options))
    assert found is not None
    assert isinstance(found.rendering, Rendering)
    body = copy.deepcopy(new_body(found, found.rendering))
    body["metadata"] |= {"uid": f"replica-{robot}-{found.name}", "resourceVersion": str(version)}
    return body


def decided(fleet: Fleet, robot: str = "r1", removal: Removal = Removal.NOW, **options: Any) -> Any:
    place = key(robot, **options)
    return fleet.decide(place, fleet.wanted(place), removal=removal)


def patched(raw: Json, operations: Any) -> Json:
    """The object after a JSON Patch of tests, additions and removals at existing places."""
    result = copy.deepcopy(raw)
    for each in operations:
        *parents, last = [part.replace("~1", "/").replace("~0", "~") for part in each["path"].split("/")[1:]]
        place = result
        for part in parents:
            place = place[part]
        match each["op"]:
            case "test":
                assert place[last] == each["value"], each
            case "add":
                place[last] = each["value"]
            case _:
                del place[last]
    return result


_DOCK = SourceKey(GOALS, "site", "dock")


def marked(key: SourceKey = _DOCK, *, name: str = "dock", namespace: str = "robot-r1") -> tuple[Marks, Json]:
    """Marks of a source, and a replica for r1 that bears them."""
    marks = Marks(source_id(key), "stamp", 3, key.text, "uid", ("l",), ("a",))
    labels, annotations = mark_texts(marks, "r1")
    return marks, {"metadata": {"name": name, "namespace": namespace, "labels": labels, "annotations": annotations}}
