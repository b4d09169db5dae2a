"""The requests of the fleet controller, as values: each write is guarded by uid and resourceVersion (F3.3)."""

from typing import Any

from crsyncer.core.content.annotations import OURS
from crsyncer.core.model import Json, Key
from crsyncer.core.requests.calls import JSON, JSON_PATCH, PARTIAL, PARTIAL_LIST, Call, Collection, delete_options
from crsyncer.fleet.domain.values import (
    GROUP,
    PLACEMENT_FINALIZER,
    PROPERTIES_NAMESPACE,
    RELEASE,
    PlacedKind,
    Placement,
)

VERSION = "v1alpha1"
PLACEMENTS = Collection(GROUP, VERSION, "robotplacements")
DECISIONS = Collection(GROUP, VERSION, "robotplacementdecisions")
STRIPS = Collection(GROUP, VERSION, "fieldstrips")
COLLECTORS = Collection(GROUP, VERSION, "statuscollectors")
COMBINED = Collection(GROUP, VERSION, "combinedstatuses")
SYNC_STATES = Collection(GROUP, VERSION, "robotsyncstates")
OBJECT_STATUSES = Collection(GROUP, VERSION, "robotobjectstatuses")
PROPERTIES = Collection("", "v1", "configmaps", PROPERTIES_NAMESPACE)
NAMESPACES = Collection("", "v1", "namespaces")
ROBOT_NAMESPACE_LABEL = OURS + "robot-name"
WRITE_SECONDS = 5.0
"""A write that is not answered by then is given up (F1.2)."""


def objects_of(kind: PlacedKind, namespace: str = "", selector: str = "") -> Collection:
    """The objects of a placed kind."""
    return Collection(kind.group, kind.version, kind.plural, namespace if kind.namespaced else "", selector)


def item(collection: Collection, key: Key) -> str:
    """The path of one object; the collection is of all namespaces."""
    place = Collection(collection.group, collection.version, collection.plural, key.namespace)
    return f"{place.path}/{key.name}"


def revision(collection: Collection) -> Call:
    """The cheapest consistent list of a collection: its resourceVersion is the cluster's present one (S8.2)."""
    query = (("labelSelector", f"{OURS}nothing=nothing"), ("limit", "1"))
    return Call("list", "GET", collection.path, query, accept=PARTIAL_LIST, timeout=20.0)


def get_object(kind: PlacedKind, namespace: str, name: str) -> Call:
    """Look at the name of a replica, after a write was refused."""
    return Call("get", "GET", item(objects_of(kind), Key(namespace, name)), sensitive=kind.sensitive)


def create(path: str, body: Json, *, accept: str = JSON, sensitive: bool = False) -> Call:
    """Create an object in a collection of this path."""
    return Call("create", "POST", path, body=body, accept=accept, sensitive=sensitive, timeout=WRITE_SECONDS)


def patch(path: str, operations: list[Any], *, accept: str = JSON, sensitive: bool = False) -> Call:
    """Change an object by a JSON Patch, whose first operations guard it."""
    return Call(
        "patch", "PATCH", path, body=operations, content_type=JSON_PATCH, accept=accept, timeout=WRITE_SECONDS,
        sensitive=sensitive,
    )  # fmt: skip


def delete(path: str, uid: str, resource_version: str, *, sensitive: bool = False) -> Call:
    """Delete an object as it was seen, and what depends on it in the background."""
    options = delete_options(uid, resource_version=resource_version, propagation="background")
    return Call("delete", "DELETE", path, body=options, sensitive=sensitive, timeout=WRITE_SECONDS)


def add_finalizer(raw_finalizers: list[str] | None, placement: Placement, resource_version: str) -> Call:
    """Put the controller's finalizer on a placement, in the version in which it was seen without it."""
    add = (
        {"op": "add", "path": "/metadata/finalizers", "value": [PLACEMENT_FINALIZER]}
        if not raw_finalizers
        else {"op": "add", "path": "/metadata/finalizers/-", "value": PLACEMENT_FINALIZER}
    )
    return _patch_placement(placement, [*_tests(placement.uid, resource_version), add])


def remove_finalizer(finalizers: list[str], placement: Placement) -> Call:
    """Remove the controller's finalizer; the test of its place fails if the list has changed."""
    path = f"/metadata/finalizers/{finalizers.index(PLACEMENT_FINALIZER)}"
    operations = [
        {"op": "test", "path": "/metadata/uid", "value": placement.uid},
        {"op": "test", "path": path, "value": PLACEMENT_FINALIZER},
        {"op": "remove", "path": path},
    ]
    return _patch_placement(placement, operations)


def remove_release(collection: Collection, key: Key, *, uid: str, release: str) -> Call:
    """Remove the annotation of a release that was carried out, or that fits no hold (F5.2)."""
    path = f"/metadata/annotations/{RELEASE.replace('/', '~1')}"
    operations = [
        {"op": "test", "path": "/metadata/uid", "value": uid},
        {"op": "test", "path": path, "value": release},
        {"op": "remove", "path": path},
    ]
    return patch(item(collection, key), operations, accept=PARTIAL)


def put_status(path: str, uid: str, status: Json) -> Call:
    """Write the status of an object; the uid is tested, so it never lands on another one of the path."""
    test, write = (
        {"op": "test", "path": "/metadata/uid", "value": uid},
        {"op": "add", "path": "/status", "value": status},
    )
    return patch(f"{path}/status", [test, write], accept=PARTIAL)


def annotation_operations(metadata: Json, name: str, value: str | None) -> tuple[Json, ...]:
    """Set an annotation of an object as it was seen, or (None) remove it."""
    tests = _tests(metadata["uid"], metadata["resourceVersion"])
    path = f"/metadata/annotations/{name.replace('/', '~1')}"
    if value is None:
        return (*tests, {"op": "remove", "path": path})
    has_any = isinstance(metadata.get("annotations"), dict)
    made = [] if has_any else [{"op": "add", "path": "/metadata/annotations", "value": {}}]
    return (*tests, *made, {"op": "add", "path": path, "value": value})


def put_own(collection: Collection, body: Json, *, uid: str = "", resource_version: str = "") -> Call:
    """Write an object of the controller's own: create it, or (with a uid) replace it as it was seen."""
    key = Key(body["metadata"].get("namespace", ""), body["metadata"]["name"])
    if not uid:
        place = Collection(collection.group, collection.version, collection.plural, key.namespace)
        return create(place.path, body, accept=PARTIAL)
    guarded = body | {"metadata": body["metadata"] | {"uid": uid, "resourceVersion": resource_version}}
    return Call("update", "PUT", item(collection, key), body=guarded, accept=PARTIAL, timeout=WRITE_SECONDS)


def _patch_placement(placement: Placement, operations: list[Json]) -> Call:
    return patch(item(PLACEMENTS, Key(placement.namespace, placement.name)), operations, accept=PARTIAL)


def _tests(uid: str, resource_version: str) -> list[Json]:
    return [
        {"op": "test", "path": "/metadata/uid", "value": uid},
        {"op": "test", "path": "/metadata/resourceVersion", "value": resource_version},
    ]
