"""The finalizers by which blocking deletion keeps an object upstream until a robot's copy of it has gone (C6)."""

from dataclasses import dataclass, replace
from typing import Any

from crsyncer.core.annotations import OURS
from crsyncer.core.calls import JSON_PATCH, PARTIAL, Call, Collection
from crsyncer.core.cloud_manifests import check_robot
from crsyncer.core.model import Json, Key
from crsyncer.core.project import key_of
from crsyncer.core.text import unix


def finalizer(robot: str) -> str:
    """A robot's finalizer; ConfigError where its name is no DNS label of at most 57 characters."""
    return f"{OURS}robot-{check_robot(robot)}"


@dataclass(frozen=True, slots=True)
class KeptObject:
    """An object that has a robot's finalizer."""

    key: Key
    uid: str
    finalizers: tuple[str, ...]
    """All of them, in order."""
    deleted_at: float | None
    """When somebody deleted it (Unix time, seconds); None: nobody did."""

    def is_due(self, *, older_than: float, now: float, living: bool) -> bool:
        """Whether it is to be released: it has been terminating for so many seconds, or `living` objects are, too."""
        return living if self.deleted_at is None else now - self.deleted_at >= older_than


def kept_object(raw: Json, name: str) -> KeptObject | None:
    """An object as a server lists it; None where it does not have the finalizer."""
    metadata = raw["metadata"]
    finalizers = tuple(metadata.get("finalizers") or ())
    if name not in finalizers:
        return None
    deleted_at = metadata.get("deletionTimestamp")
    return KeptObject(key_of(raw), metadata["uid"], finalizers, unix(deleted_at) if deleted_at else None)


def remove_finalizer(collection: Collection, kept: KeptObject, name: str) -> Call:
    """Remove a finalizer by JSON Patch, wherever it is in the list (C6.2).

    The patch tests the uid and each place: it fails if the list has changed. Servers keep duplicates (measured), so
    the last one goes first, and the places before it stay what they are.
    """
    operations: list[dict[str, Any]] = [{"op": "test", "path": "/metadata/uid", "value": kept.uid}]
    for place in reversed([place for place, found in enumerate(kept.finalizers) if found == name]):
        path = f"/metadata/finalizers/{place}"
        operations += [{"op": "test", "path": path, "value": name}, {"op": "remove", "path": path}]
    where = replace(collection, namespace=kept.key.namespace).path
    return Call("patch", "PATCH", f"{where}/{kept.key.name}", body=operations, content_type=JSON_PATCH, accept=PARTIAL)
