"""Replicas and requests, read by those who judge them."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from crsyncer.core.model import Json
from crsyncer.core.requests.calls import Call
from tests.fleet_model import oracle
from tests.fleet_model.oracle import REPLICA, SOURCE, Expected, Objects, Place
from tests.model.simulation.judge import is_guarded


@dataclass(slots=True)
class Moment:
    """What was stored from a time on (seconds since the world began)."""

    time: float
    objects: Objects
    _expected: dict[Place, Expected] | None = None

    def expected(self, home: str) -> dict[Place, Expected]:
        """The replicas that should have been there."""
        if self._expected is None:
            self._expected = oracle.expected(self.objects, home=home)
        return self._expected


def is_lease(call: Call) -> bool:
    """Whether a request is about Leases."""
    return call.path.startswith("/apis/coordination.k8s.io/")


def is_replica(raw: Json) -> bool:
    """Whether an object bears the controller's marks."""
    return SOURCE in oracle.texts(raw, "labels") and REPLICA in oracle.texts(raw, "annotations")


def marks(raw: Json) -> Json:
    """What the annotation of a replica says."""
    found: Json = json.loads(oracle.texts(raw, "annotations")[REPLICA])
    return found


def content_of(raw: Json) -> Json:
    """Everything of an object but metadata and status."""
    return {key: value for key, value in raw.items() if key not in ("apiVersion", "kind", "metadata", "status")}


def differences(found: Json, wanted: Expected, *, is_new: bool = False) -> str:
    """How a replica differs from what it shall be; "": it does not. `is_new`: it was written just now."""
    if wanted.content is None:
        return "nothing, for its rendering fails" if is_new else ""
    if wanted.create_only and not is_new:
        return ""
    if content_of(found) != wanted.content:
        return f"{content_of(found)} is not {wanted.content}"
    for what, asked in (("labels", wanted.labels), ("annotations", wanted.annotations)):
        there, owned = oracle.texts(found, what), marks(found)[what]
        if {key: there.get(key) for key in owned} != asked:
            return f"{what} {there}, of which {owned} are ours, are not {asked}"
    return ""


def distinct(states: Iterable[Any]) -> list[Any]:
    """States without those that are equal to an earlier one."""
    found: list[Any] = []
    for state in states:
        if state not in found:
            found.append(state)
    return found


def owned(raw: Json) -> Any:
    """All that the controller may write of a replica, but how often it did."""
    annotations = {key: text for key, text in oracle.texts(raw, "annotations").items() if key != REPLICA}
    said = {key: value for key, value in marks(raw).items() if key != "n"}
    return content_of(raw), oracle.texts(raw, "labels"), annotations, said


def without_status(raw: Json) -> Any:
    """All of an object that a write of its status leaves as it is."""
    metadata = {
        key: value for key, value in (raw.get("metadata") or {}).items() if key not in ("resourceVersion", "generation")
    }
    return content_of(raw), metadata


def unmarked(raw: Json) -> Any:
    """All of an object but its status and the mark of what robots share."""
    content, metadata = without_status(raw)
    annotations = {key: text for key, text in oracle.texts(raw, "annotations").items() if key != oracle.SHARED}
    return content, {**metadata, "annotations": annotations}


def has_guards(call: Call) -> bool:
    """Whether a request changes no other object than the one that was seen (F3.3)."""
    match call.method:
        case "DELETE":
            return {"uid", "resourceVersion"} <= set((call.body or {}).get("preconditions") or {})
        case "PATCH":
            tested = {each["path"] for each in call.body if each["op"] == "test"}
            return "/metadata/uid" in tested
        case _:
            return is_guarded(call)
