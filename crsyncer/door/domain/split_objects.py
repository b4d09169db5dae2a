"""The objects of robots at a shard that is split, and what differs between the shard and its clone (G7.2).

Content, labels and annotations are digests: nothing of an object is kept that a Secret could hold.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from crsyncer.core.accounts.robot_account import robot_namespace
from crsyncer.core.content.annotations import OURS, ROBOT_LABEL, SPEC_SOURCE
from crsyncer.core.content.object_content import ROBOT, content_of, digest
from crsyncer.core.content.object_content import labels as labels_of
from crsyncer.core.model import Json
from crsyncer.core.requests import calls

ROBOT_FINALIZER = f"{OURS}robot-"
"""What the finalizers begin with by which robots keep objects (C6)."""
_NEEDED = frozenset({"list", "get", "delete"})
_ACCOUNTS = frozenset({"serviceaccounts"})
_RBAC = "rbac.authorization.k8s.io"
_TOKEN = "kubernetes.io/service-account-token"  # noqa: S105 the type of a Secret


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Where an object is, at whichever shard."""

    resource: str
    """Such as goals.lab.example.com."""
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.resource}/{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class SplitKind:
    """A namespaced kind that a shard serves, and whose objects robots may have."""

    group: str
    plural: str
    versions: tuple[str, ...]
    """Those in which it is served, the preferred one first."""
    is_custom: bool
    """All its objects count; of another kind those with a robot's label."""
    by_robot: bool = False
    """Its CRD says that robots make its objects."""

    @property
    def resource(self) -> str:
        """The full name."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def collection(self, version: str, namespace: str = "") -> calls.Collection:
        """Its objects in a namespace, or in all."""
        return calls.Collection(self.group, version, self.plural, namespace, "" if self.is_custom else ROBOT_LABEL)


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object of a robot, as a shard has it."""

    uid: str
    resource_version: str
    content: str
    labels: str
    annotations: str
    finalizers: tuple[str, ...] = ()
    is_deleted: bool = False
    """Somebody has deleted it: it goes when its finalizers are gone."""
    by_robot: bool = False
    """The robot makes and writes it, and does so again wherever it is served."""

    @property
    def is_kept(self) -> bool:
        """Whether it has been deleted, and waits for finalizers of others."""
        return self.is_deleted and not any(each.startswith(ROBOT_FINALIZER) for each in self.finalizers)


def served_kinds(
    groups: Mapping[str, Sequence[str]], shown: Mapping[tuple[str, str], Json], crds: Mapping[str, Json]
) -> dict[str, SplitKind]:
    """By full name the kinds whose objects may be robots'; their accounts and rights are none of them.

    `groups` has the versions of each group, the preferred one first, `shown` what discovery says of each version, and
    `crds` the metadata of the CRDs by name.
    """
    found: dict[str, SplitKind] = {}
    for group, versions in groups.items():
        served: dict[str, list[str]] = {}
        for version in versions:
            for plural in _plurals(shown[group, version]):
                served.setdefault(plural, []).append(version)
        for plural, names in served.items():
            resource = f"{plural}.{group}" if group else plural
            crd = crds.get(resource)
            if crd is None and (group == _RBAC or resource in _ACCOUNTS):
                continue
            annotations = (crd or {}).get("annotations") or {}
            found[resource] = SplitKind(
                group, plural, tuple(names), is_custom=crd is not None, by_robot=annotations.get(SPEC_SOURCE) == "robot"
            )
    return found


def read_stored(raw: Json, kind: SplitKind) -> StoredObject | None:
    """An object as an API server shows it; None: it belongs to an account, which stays."""
    if kind.resource == "secrets" and raw.get("type") == _TOKEN:
        return None
    metadata = raw["metadata"]
    annotations = metadata.get("annotations") or {}
    return StoredObject(
        metadata["uid"],
        metadata["resourceVersion"],
        digest(content_of(raw)),
        digest(labels_of(raw)),
        digest(annotations),
        tuple(metadata.get("finalizers") or ()),
        is_deleted="deletionTimestamp" in metadata,
        by_robot=kind.by_robot or robot_namespace(str(annotations.get(ROBOT))) == metadata.get("namespace"),
    )


def clone_difference(shard: str, new: str, one: StoredObject | None, other: StoredObject | None) -> str | None:
    """Why an object at the shard and at its clone are not the same, while the robot is at the shard; None: they are.

    Statuses may differ, for robots send theirs again, and so may what a robot makes itself.
    """
    found = one or other
    if found is None or (found.by_robot and (one is None or other is None)):
        return None
    if other is None:
        return f"is at {shard} alone: it was made there after the snapshot"
    if one is None:
        return f"is at {new} alone: it was removed at {shard} after the snapshot"
    if one.by_robot and other.by_robot:
        return None
    if one.is_deleted != other.is_deleted:
        return f"is deleted at {shard if one.is_deleted else new} alone"
    return _content_difference(one, other)


def why_it_stays(shard: str, new: str, one: StoredObject, other: StoredObject | None) -> str | None:
    """Why an object at the shard must not go there, now that its robot is at the clone; None: it may.

    It may go where the clone has the same, and where it was deleted at either: after the switch a deletion at the shard
    may be ours, of an object that others' finalizers keep.
    """
    if one.is_deleted:
        return None
    if other is None and one.by_robot:
        return f"is not at {new} yet, where its robot makes it anew"
    if other is None:
        return f"is at {shard} alone: it was made there after the snapshot, or removed at {new}"
    if one.by_robot and other.by_robot:
        return None
    if one.uid == other.uid and other.is_deleted:
        return None
    return _content_difference(one, other)


def _content_difference(one: StoredObject, other: StoredObject) -> str | None:
    if one.uid != other.uid:
        return "has another uid: it was made anew"
    differing = [name for name in ("content", "labels", "annotations") if getattr(one, name) != getattr(other, name)]
    return f"differs in its {' and '.join(differing)}: it was written after the snapshot" if differing else None


def _plurals(shown: Json) -> Iterator[str]:
    """The namespaced kinds in what discovery says of a version, whose objects can be listed and deleted."""
    for each in shown.get("resources") or ():
        name = str(each.get("name") or "")
        if each.get("namespaced") and "/" not in name and _NEEDED.issubset(each.get("verbs") or ()):
            yield name


def without_robot_finalizers(collection: calls.Collection, place: Place, stored: StoredObject) -> calls.Call | None:
    """The request that removes robots' finalizers from this very version of an object; None: it has none.

    Servers keep duplicates (measured), so the last one goes first, and the places before it stay what they are.
    """
    places = [at for at, name in enumerate(stored.finalizers) if name.startswith(ROBOT_FINALIZER)]
    if not places:
        return None
    operations = [
        {"op": "test", "path": "/metadata/uid", "value": stored.uid},
        {"op": "test", "path": "/metadata/resourceVersion", "value": stored.resource_version},
        *({"op": "remove", "path": f"/metadata/finalizers/{at}"} for at in reversed(places)),
    ]
    return calls.Call(
        "patch",
        "PATCH",
        f"{collection.path}/{place.name}",
        body=operations,
        content_type=calls.JSON_PATCH,
        accept=calls.PARTIAL,
    )


def delete_stored(collection: calls.Collection, place: Place, uid: str, resource_version: str) -> calls.Call:
    """The request that deletes this very version of an object."""
    body = calls.delete_options(uid, resource_version=resource_version)
    return calls.Call("delete", "DELETE", f"{collection.path}/{place.name}", body=body)
