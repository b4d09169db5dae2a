"""The finalizers by which blocking deletion keeps an object upstream until a robot's copy of it has gone (C6)."""

from dataclasses import dataclass

from crsyncer.core.accounts.robot_account import check_robot
from crsyncer.core.content.annotations import OURS
from crsyncer.core.content.object_content import key_of
from crsyncer.core.model import Json, Key
from crsyncer.core.reports.text import unix
from crsyncer.core.requests.calls import Call, Collection, json_patch


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


def add_finalizer(collection: Collection, key: Key, metadata: Json, name: str) -> Call:
    """Put a finalizer on an object of which these are the metadata; nothing happens if it has changed since (C6.2)."""
    found = metadata.get("finalizers") or ()
    path, value = ("/metadata/finalizers/-", name) if found else ("/metadata/finalizers", [name])
    operations = [
        _test_uid(metadata["uid"]),
        {"op": "test", "path": "/metadata/resourceVersion", "value": metadata["resourceVersion"]},
        {"op": "add", "path": path, "value": value},
    ]
    return json_patch(collection.item(key), operations)


def remove_finalizer_at(collection: Collection, key: Key, uid: str, *, name: str, place: int) -> Call:
    """Remove a finalizer from this place of an object that is out of sight (C6.2)."""
    return json_patch(collection.item(key), [_test_uid(uid), *_removal(place, name)])


def test_uid(collection: Collection, key: Key, uid: str) -> Call:
    """Ask whether an object has this uid, by a patch that changes nothing: it fails where it has not (C6.2)."""
    return json_patch(collection.item(key), [_test_uid(uid)])


def remove_finalizer(collection: Collection, kept: KeptObject, name: str) -> Call:
    """Remove a finalizer by JSON Patch, wherever it is in the list (C6.2).

    The patch tests the uid and each place: it fails if the list has changed. Servers keep duplicates (measured), so
    the last one goes first, and the places before it stay what they are.
    """
    operations = [_test_uid(kept.uid)]
    for place in reversed([place for place, found in enumerate(kept.finalizers) if found == name]):
        operations += _removal(place, name)
    return json_patch(collection.item(kept.key), operations)


def _test_uid(uid: str) -> Json:
    return {"op": "test", "path": "/metadata/uid", "value": uid}


def _removal(place: int, name: str) -> list[Json]:
    path = f"/metadata/finalizers/{place}"
    return [{"op": "test", "path": path, "value": name}, {"op": "remove", "path": path}]
