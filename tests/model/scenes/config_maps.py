"""ConfigMaps and Secrets in the made-up world, which have no CRD."""

from typing import Any

from crsyncer.core.model import Json
from crsyncer.core.requests.calls import Call
from tests.model.simulation.plane import Plane

_PATH = "/api/v1/namespaces/{}/{}"


def put_map(
    plane: Plane, name: str, *, namespace: str = "default", labels: Any = None, kind: str = "configmaps", **data: str
) -> None:
    """Create one, or replace its data and labels."""
    found, path = maps(plane, namespace, kind=kind).get(name), _PATH.format(namespace, kind)
    metadata: Json = {"name": name, "labels": labels or {}}
    if found is None:
        call = Call("create", "POST", path, body={"metadata": metadata, "data": data})
    else:
        metadata = found["metadata"] | {"labels": found["metadata"].get("labels") if labels is None else labels}
        call = Call("update", "PUT", f"{path}/{name}", body={"metadata": metadata, "data": data})
    _ask(plane, call)


def annotate_map(plane: Plane, name: str, annotations: Json, **metadata: Any) -> None:
    """Set annotations of a ConfigMap, and other metadata."""
    found = maps(plane)[name]
    known = found["metadata"].get("annotations") or {}
    body = {**found, "metadata": {**found["metadata"], **metadata, "annotations": known | annotations}}
    _ask(plane, Call("update", "PUT", f"{_PATH.format('default', 'configmaps')}/{name}", body=body))


def strip_map(plane: Plane, name: str, *, namespace: str = "default") -> None:
    """Remove all labels and annotations of a ConfigMap."""
    found = maps(plane, namespace)[name]
    kept = {key: value for key, value in found["metadata"].items() if key not in ("labels", "annotations")}
    body = {**found, "metadata": kept}
    _ask(plane, Call("update", "PUT", f"{_PATH.format(namespace, 'configmaps')}/{name}", body=body))


def delete_map(plane: Plane, name: str, *, namespace: str = "default", kind: str = "configmaps") -> None:
    """Delete one."""
    _ask(plane, Call("delete", "DELETE", f"{_PATH.format(namespace, kind)}/{name}"))


def maps(plane: Plane, namespace: str = "default", *, kind: str = "configmaps") -> dict[str, Json]:
    """Those of a namespace by name, as stored."""
    found = plane.server.storage.of(kind).items()
    return {name: raw for (place, name), raw in found if place == namespace}


def data(plane: Plane, namespace: str = "default", *, kind: str = "configmaps") -> dict[str, dict[str, str]]:
    """The data of each of a namespace."""
    return {name: raw.get("data") or {} for name, raw in maps(plane, namespace, kind=kind).items()}


def _ask(plane: Plane, call: Call) -> None:
    reply = plane.server.answer(call)
    assert reply.status < 300, reply.body
    plane.signal.ring()
