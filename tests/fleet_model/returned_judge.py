"""What is made of returned statuses, judged: singletons, CombinedStatuses, and which robots are Ready (F6, F7).

As in `oracle`, all that shall be there is computed anew from what is stored, by nothing of the product's.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from crsyncer.core.model import Json
from tests.fleet_model import oracle
from tests.fleet_model.oracle import (
    FLEET,
    PLACEMENTS,
    REPLICA,
    ROBOT_LABEL,
    SOURCE,
    Expected,
    Objects,
    Place,
    lives,
    texts,
)

if TYPE_CHECKING:
    from tests.fleet_model.fleet_world import FleetWorld
    from tests.fleet_model.world_parts import Write

READY_WHEN = "returned.status.phase == 'Ready'"
COLLECTORS: Mapping[str, Json] = {
    "rows": {"select": [{"name": "robot", "def": "inventory.name"}, {"name": "phase", "def": "returned.status.phase"}]},
    "ready": {"combinedFields": [{"name": "n", "type": "COUNT"}], "filter": READY_WHEN},
    "bad": {"select": [{"name": "x", "def": "nobody"}]},
}
"""All that histories have."""
_COLLECTORS, _COMBINED = f"statuscollectors.{FLEET}", f"combinedstatuses.{FLEET}"
_DECISIONS = f"robotplacementdecisions.{FLEET}"
_ERROR = "Key not found in map"


@dataclass(frozen=True, slots=True)
class Selected:
    """A source as one placement selects it."""

    placement: Json
    resource: str
    source: Json
    source_id: str
    is_template: bool
    places: Mapping[str, Place]
    """By robot: where its replica belongs."""


def look(world: "FleetWorld", write: "Write") -> str:
    """What is wrong with a write of a status; empty: nothing (F6.2)."""
    if write.status >= 300 or write.verb != "status" or write.late or write.resource.endswith(FLEET):
        return ""
    if write.after is not None and SOURCE in texts(write.after, "labels"):
        return f"{write}: the status of a replica is the robot's"
    name = f"{write.resource}/{write.name}"
    placements = world.stored(PLACEMENTS).values()
    if any(name == each["source"] for raw in placements for each in (raw.get("status") or {}).get("singletons") or []):
        return ""
    return f"{write}: no placement lists it among its singletons (F6.2)"


def selections(objects: Objects, *, home: str) -> Iterator[Selected]:
    """Each source of each placement."""
    kinds = oracle.placeable(objects)
    for placement in objects.get(PLACEMENTS, {}).values():
        if not lives(placement):
            continue
        robots = oracle.robots_of(objects, placement)
        for source, resource, is_template, _ in oracle.sources_of(objects, placement, home=home):
            if resource in kinds:
                places = {
                    robot["metadata"]["name"]: oracle.place_of(
                        placement, source, resource, robot["metadata"]["name"], namespaced=kinds[resource]
                    )
                    for robot in robots
                }
                source_id = oracle.digest([resource, *oracle.identity_of(placement, source, template=is_template)])
                yield Selected(placement, resource, source, source_id, is_template, places)


def disagreements(objects: Objects, *, home: str) -> Iterator[str]:
    """What differs from what shall be there, once the controller has nothing more to do."""
    selected = [*selections(objects, home=home)]
    yield from _singletons(objects, selected)
    yield from _combined(objects, selected)
    yield from _states(objects, selected, home)


def _replica(objects: Objects, each: Selected, robot: str) -> Json | None:
    place = each.places[robot]
    found = objects.get(place[0], {}).get(place[1:])
    is_ours = found is not None and texts(found, "labels").get(SOURCE) == each.source_id
    return found if is_ours and found is not None and REPLICA in texts(found, "annotations") else None


def _has_status(objects: Objects, resource: str) -> bool:
    crd = objects[oracle.CRDS].get(("", resource))
    return crd is not None and "status" in (crd["spec"]["versions"][0].get("subresources") or {})


def _singletons(objects: Objects, selected: list[Selected]) -> Iterator[str]:
    listed = {
        (each["source"], raw["metadata"]["name"]): each["robot"]
        for raw in objects.get(PLACEMENTS, {}).values()
        for each in (raw.get("status") or {}).get("singletons") or []
    }
    wanted: dict[str, Selected] = {}
    for resource in oracle.placeable(objects):
        for where, source in objects.get(resource, {}).items():
            labels = texts(source, "labels")
            if not _has_status(objects, resource) or {SOURCE, ROBOT_LABEL} & labels.keys() or not lives(source):
                continue
            name = f"{resource}/{where[1]}"
            single = [
                each
                for each in selected
                if not each.is_template
                and each.source["metadata"]["uid"] == source["metadata"]["uid"]
                and each.placement["spec"].get("statusReturn") == "Singleton"
            ]
            robots = {robot for each in single for robot in each.places}
            if len(robots) != 1:
                if source.get("status"):
                    yield f"{name} has the status {source['status']}, and goes to {len(robots)} robots (F6.2)"
                continue
            (robot,) = robots
            chosen = min((each for each in single if each.places), key=_age)
            replica = _replica(objects, chosen, robot)
            status = (replica or {}).get("status")
            wanted[name] = chosen
            if status and source.get("status") != status:
                yield f"{name} has the status {source.get('status')}, and {robot} returned {status} (F6.2)"
            if status and listed.get((name, chosen.placement["metadata"]["name"])) != robot:
                yield f"{name} is not listed with {robot}: {listed} (F6.2)"
    for name, placement in listed:
        if name not in wanted or wanted[name].placement["metadata"]["name"] != placement:
            yield f"{placement} lists {name}, which has no status of its robot (F6.2)"


def _age(each: Selected) -> tuple[str, str, str]:
    metadata = each.placement["metadata"]
    return metadata["creationTimestamp"], metadata["namespace"], metadata["name"]


def _combined(objects: Objects, selected: list[Selected]) -> Iterator[str]:
    known = {name[1] for name in objects.get(_COLLECTORS, {})}
    wanted = {}
    for each in selected:
        asked = each.placement["spec"].get("statusCollectors") or []
        if asked:
            uid = each.placement["metadata"]["uid"]
            names = [name for name in asked if name in known and name != "bad"]
            wanted[f"{each.source_id}.{uid}"] = [_rows(objects, each, name) for name in names]
    found = {where[1]: raw for where, raw in objects.get(_COMBINED, {}).items()}
    for name in wanted.keys() ^ found.keys():
        yield f"the CombinedStatus {name} is {'missing' if name in wanted else 'left over'} (F7.3)"
    for name in wanted.keys() & found.keys():
        shown = [[[_cell(cell) for cell in row] for row in each["rows"]] for each in found[name]["results"]]
        if shown != wanted[name]:
            yield f"the CombinedStatus {name} shows {shown}, and not {wanted[name]} (F7.3)"


def _cell(cell: Json) -> Any:
    value = cell.get("value")
    return _ERROR if isinstance(value, str) and value.startswith(_ERROR) else value


def _rows(objects: Objects, each: Selected, collector: str) -> list[list[Any]]:
    replicas = {robot: _replica(objects, each, robot) for robot in sorted(each.places)}
    phases = {robot: (raw.get("status") or {}).get("phase", _ERROR) for robot, raw in replicas.items() if raw}
    if collector == "rows":
        return [[robot, phase] for robot, phase in phases.items()]
    return [[str(sum(phase == "Ready" for phase in phases.values()))]]


def _states(objects: Objects, selected: list[Selected], home: str) -> Iterator[str]:
    """All robots are unreported here."""
    expected = oracle.expected(objects, home=home)
    for placement in objects.get(PLACEMENTS, {}).values():
        if not lives(placement):
            continue
        uid = placement["metadata"]["uid"]
        decided = {
            robot["name"]: robot["state"]
            for raw in objects.get(_DECISIONS, {}).values()
            if raw["placement"]["uid"] == uid
            for robot in raw["robots"]
        }
        robots = [robot["metadata"]["name"] for robot in oracle.robots_of(objects, placement)]
        if sorted(decided) != sorted(robots):
            yield f"the Decisions of {placement['metadata']['name']} list {sorted(decided)}, not {robots} (F2.1)"
        own = [each for each in selected if each.placement["metadata"]["uid"] == uid]
        for robot in decided.keys() & set(robots):
            wanted = [each for each in expected.values() if each.robot == robot and each.placement == uid]
            state = _state(placement, wanted, [_replica(objects, each, robot) for each in own])
            if state not in ("", decided[robot]):
                yield f"{robot} is {decided[robot]}, and not {state} (F6.4)"


def _state(placement: Json, wanted: list[Expected], replicas: list[Json | None]) -> str:
    """The state of an unreported robot; empty: it may be Blocked, or another placement governs a replica."""
    if not replicas:
        return "Ready"
    if len(wanted) < len(replicas) or not all(replicas) or any(each.content is None for each in wanted):
        return ""
    is_ready = all(((raw or {}).get("status") or {}).get("phase") == "Ready" for raw in replicas)
    return "Ready" if "readyWhen" in placement["spec"] and is_ready else "Stamped"
