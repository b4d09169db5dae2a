"""What shall be there, computed anew from what is stored: slow, plain, and nothing of the product's (F2, F3.1, F4).

It knows what random histories make: paths through objects, and simple names.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from crsyncer.core.model import Json
from tests.model.simulation.storage import Where, copied

Objects = Mapping[str, Mapping[Where, Json]]
Place = tuple[str, str, str]
"""Resource, namespace, name."""
ROBOTS = "robots.registry.cloudrobotics.com"
FLEET = "fleet.crsyncer.cloudrobotics.com"
PLACEMENTS = f"robotplacements.{FLEET}"
STRIPS = f"fieldstrips.{FLEET}"
CRDS = "customresourcedefinitions.apiextensions.k8s.io"
POLICIES = "syncpolicies.crsyncer.cloudrobotics.com"
ROBOT_LABEL = "cloudrobotics.com/robot-name"
OURS = "crsyncer.cloudrobotics.com/"
SOURCE, REPLICA, SHARED = f"{OURS}source", f"{OURS}replica", f"{OURS}shared"
SYNCER = "cr-syncer.cloudrobotics.com/"
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,55}[a-z0-9])?")
_BRACES = re.compile(r"\{\{\s*(?:\.(\w+)\s*(?:\|\s*default\s+\"([^\"]*)\"\s*)?|\"(\{\{)\")\s*\}\}")
_MOST_BYTES = 512 << 10
_NOT_CONTENT = ("apiVersion", "kind", "metadata", "status")


class Blocked(Exception):
    """A rendering fails."""


class Verbatim(str):
    """What a property set: it is not expanded."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Expected:
    """One replica."""

    robot: str
    source_id: str
    source: str
    """The source's uid; of a template its placement's."""
    placement: str
    """The uid of the one that governs."""
    create_only: bool
    content: Json | None
    """None: its rendering fails, and what is there stays."""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


def digest(value: Any) -> str:
    """24 hex digits of BLAKE2b of compact JSON with sorted keys."""
    text = json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


def lives(obj: Json) -> bool:
    """Whether an object does not terminate."""
    return "deletionTimestamp" not in obj["metadata"]


def texts(obj: Json, what: str) -> dict[str, str]:
    """The labels or annotations of an object."""
    return obj["metadata"].get(what) or {}


def is_served(objects: Objects, resource: str) -> bool:
    """Whether a kind with a CRD is there, and is not about to go."""
    found = objects.get(CRDS, {}).get(("", resource))
    return found is not None and lives(found)


def placeable(objects: Objects, *, shared: bool = False) -> dict[str, bool]:
    """The kinds that may be placed in mode Replica, or Shared (F2.3), and whether they are namespaced."""
    found = {}
    policies = {
        (spec["resource"]["group"], spec["resource"]["resource"]): spec
        for spec in (policy["spec"] for policy in objects.get(POLICIES, {}).values())
    }
    for crd in objects.get(CRDS, {}).values():
        spec, notes = crd["spec"], texts(crd, "annotations")
        policy = policies.get((spec["group"], spec["names"]["plural"]), {})
        source = policy.get("specSource", notes.get(f"{SYNCER}spec-source"))
        filtered = (policy.get("filter") or {}).get("byRobotName", notes.get(f"{SYNCER}filter-by-robot-name") == "true")
        if lives(crd) and source == "cloud" and filtered is not shared:
            found[crd["metadata"]["name"]] = spec["scope"] == "Namespaced"
    for (group, plural), spec in policies.items():
        filtered = bool((spec.get("filter") or {}).get("byRobotName"))
        if not group and spec.get("specSource") == "cloud" and filtered is not shared:
            found[plural] = True
    return found


def selects(selector: Json, labels: Mapping[str, str]) -> bool:
    """Whether a LabelSelector matches."""
    for key, value in (selector.get("matchLabels") or {}).items():
        if labels.get(key) != value:
            return False
    for each in selector.get("matchExpressions") or []:
        there, values = labels.get(each["key"]), each.get("values") or []
        good = {
            "In": there in values,
            "NotIn": there not in values,
            "Exists": there is not None,
            "DoesNotExist": there is None,
        }
        if not good[each["operator"]]:
            return False
    return True


def expected(objects: Objects, *, home: str, shard: str = "root") -> dict[Place, Expected]:
    """All replicas that shall be on a shard, if none of their robots was on another one before (F10.2)."""
    kinds = placeable(objects)
    placements = [each for each in objects.get(PLACEMENTS, {}).values() if lives(each)]
    placements.sort(key=lambda each: (each["metadata"]["creationTimestamp"], *_where(each)))
    found: dict[Place, Expected] = {}
    for placement in placements:
        if placement["spec"].get("mode") == "Shared":
            copies = {} if shard == "root" else copies_of(objects, placement, home=home)
            found = {**copies, **found}
            continue
        robots = [each for each in robots_of(objects, placement) if shard_of(each) == shard]
        for source, resource, template, create_only in sources_of(objects, placement, home=home):
            if resource not in kinds:
                continue
            for robot in robots:
                name = robot["metadata"]["name"]
                place = place_of(placement, source, resource, name, namespaced=kinds[resource])
                source_id = digest([resource, *identity_of(placement, source, template=template)])
                if place not in found:
                    found[place] = _expected(objects, placement, source, resource, robot, source_id, create_only)
    return found


def copies_of(objects: Objects, placement: Json, *, home: str) -> dict[Place, Expected]:
    """What a Shared placement copies into every shard beside the root (F10.3)."""
    kinds, found, uid = placeable(objects, shared=True), {}, placement["metadata"]["uid"]
    for source, resource, _, create_only in sources_of(objects, placement, home=home):
        if resource in kinds:
            source_id = digest([resource, *_where(source)])
            robot: Json = {"metadata": {"name": ""}}
            made = _expected(objects, placement, source, resource, robot, source_id, create_only)
            found[resource, *_where(source)] = replace(made, annotations={**made.annotations, SHARED: uid})
    return found


def shard_of(robot: Json) -> str:
    """The API server that has a Robot's replicas."""
    return texts(robot, "labels").get(f"{FLEET}/shard") or "root"


def _where(obj: Json) -> tuple[str, str]:
    return obj["metadata"].get("namespace") or "", obj["metadata"]["name"]


def identity_of(placement: Json, source: Json, *, template: bool) -> list[str]:
    """What the SOURCEID is made of, after the kind (F3.2)."""
    if template:
        return [placement["metadata"]["namespace"], placement["metadata"]["name"], source["metadata"]["name"]]
    return list(_where(source))


def robots_of(objects: Objects, placement: Json) -> list[Json]:
    """The Robots that a placement selects."""
    spec, found = placement["spec"], []
    for (_, name), robot in sorted(objects.get(ROBOTS, {}).items()):
        named = name in (spec.get("robotNames") or [])
        chosen = any(selects(each, texts(robot, "labels")) for each in spec.get("robotSelectors") or [])
        if lives(robot) and (named or chosen) and _NAME.fullmatch(name):
            found.append(robot)
    return found


def sources_of(objects: Objects, placement: Json, *, home: str) -> Iterator[tuple[Json, str, bool, bool]]:
    """Source, resource, whether it is a template, whether CreateOnly."""
    namespace, spec = placement["metadata"]["namespace"], placement["spec"]
    seen = set()
    for entry in spec.get("resources") or []:
        resource = f"{entry['resource']}.{entry['group']}" if entry["group"] else entry["resource"]
        for where, source in sorted(objects.get(resource, {}).items()):
            names, selectors = entry.get("names") or [], entry.get("selectors") or []
            if where[0] != namespace and not (where[0] == "" and namespace == home):
                continue
            if names and where[1] not in names:
                continue
            if selectors and not any(selects(each, texts(source, "labels")) for each in selectors):
                continue
            labels = texts(source, "labels")
            if not lives(source) or ROBOT_LABEL in labels or SOURCE in labels or (resource, where) in seen:
                continue
            seen.add((resource, where))
            yield source, resource, False, entry.get("strategy") == "CreateOnly"
    for each in spec.get("templates") or []:
        body = copied(each["object"])
        metadata = {"name": each["name"], "namespace": namespace, "uid": placement["metadata"]["uid"]}
        body["metadata"] = {**(body.get("metadata") or {}), **metadata}
        resource = f"{each['resource']}.{each['group']}" if each["group"] else each["resource"]
        yield body, resource, True, each.get("strategy") == "CreateOnly"


def place_of(placement: Json, source: Json, resource: str, robot: str, *, namespaced: bool) -> Place:
    """Where the replica of a source for a robot belongs (F3.1)."""
    name = source["metadata"]["name"]
    if namespaced and placement["spec"].get("target", "PerRobot") == "PerRobot":
        return resource, f"robot-{robot}", name
    return resource, placement["metadata"]["namespace"] if namespaced else "", f"{name}-{robot}"


def _expected(
    objects: Objects, placement: Json, source: Json, resource: str, robot: Json, source_id: str, create_only: bool
) -> Expected:
    uid = placement["metadata"]["uid"]
    ids = (robot["metadata"]["name"], source_id, source["metadata"]["uid"], uid, create_only)
    try:
        made = _rendered(objects, placement, source, resource, robot)
    except Blocked:
        return Expected(*ids, None)
    metadata = made.pop("metadata")
    if len(json.dumps(made)) > _MOST_BYTES:
        return Expected(*ids, None)
    return Expected(*ids, made, metadata["labels"], metadata["annotations"])


def _rendered(objects: Objects, placement: Json, source: Json, resource: str, robot: Json) -> Json:
    made = {key: copied(value) for key, value in source.items() if key not in _NOT_CONTENT}
    made["metadata"] = {
        what: {key: text for key, text in texts(source, what).items() if _travels(key)}
        for what in ("labels", "annotations")
    }
    for strip in objects.get(STRIPS, {}).values():
        spec = strip["spec"]
        if (f"{spec['resource']}.{spec['group']}" if spec["group"] else spec["resource"]) == resource:
            for path in spec["remove"]:
                _remove(made, path)
    known = _properties(objects, robot)
    for override in placement["spec"].get("overrides") or []:
        if selects(override.get("robotSelector") or {}, texts(robot, "labels")):
            for step in override["steps"]:
                _apply(made, step, known)
    return _expanded(made, known) if placement["spec"].get("expand") else made


def _travels(key: str) -> bool:
    prefixes = (OURS, f"{FLEET}/", "kubectl.kubernetes.io/", SYNCER)
    return key != ROBOT_LABEL and not key.startswith(prefixes)


def _properties(objects: Objects, robot: Json) -> dict[str, str]:
    name, spec = robot["metadata"]["name"], robot.get("spec") or {}
    stored = objects.get("configmaps", {}).get(("crsyncer-properties", name), {}).get("data") or {}
    fields = {key: value for key, value in spec.items() if isinstance(value, str)}
    return {**fields, **texts(robot, "labels"), **texts(robot, "annotations"), **stored, "robotName": name}


def _steps(path: str) -> list[str]:
    return [part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:]]


def _remove(made: Json, path: str) -> bool:
    *parents, last = _steps(path)
    place: Any = made
    for part in parents:
        place = place.get(part) if isinstance(place, dict) else None
    if isinstance(place, dict) and last in place:
        del place[last]
        return True
    return False


def _apply(made: Json, step: Json, known: Mapping[str, str]) -> None:
    *parents, last = _steps(step["path"])
    if "remove" in step:
        _remove(made, step["path"])
        return
    value = step["set"]["value"] if "set" in step else _property(step["property"], known)
    place: Any = made
    for part in parents:
        place = place.setdefault(part, {})
        if not isinstance(place, dict):
            raise Blocked
    place[last] = value if isinstance(value, Verbatim) else copied(value)


def _property(asked: Json, known: Mapping[str, str]) -> Any:
    if asked["name"] not in known:
        raise Blocked
    text = known[asked["name"]]
    match asked.get("type", "string"):
        case "integer" if not re.fullmatch(r"-?\d+", text):
            raise Blocked
        case "integer":
            return int(text)
        case "boolean" if text not in ("true", "false"):
            raise Blocked
        case "boolean":
            return text == "true"
    return Verbatim(text)


def _expanded(value: Any, known: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _expanded(each, known) for key, each in value.items()}
    if isinstance(value, list):
        return [_expanded(each, known) for each in value]
    if not isinstance(value, str) or isinstance(value, Verbatim):
        return value

    def told(match: re.Match[str]) -> str:
        name, default, braces = match[1], match[2], match[3]
        if braces:
            return braces
        if name in known:
            return known[name]
        if default is None:
            raise Blocked
        return default

    rest = _BRACES.sub("", value)
    if "{{" in rest:
        raise Blocked
    return _BRACES.sub(told, value)
