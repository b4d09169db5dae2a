"""Related objects: which objects a primary refers to, and how their kind is synced (C5).

A robot without SyncPolicies never imports this.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from crsyncer.core.actions import Hold, HoldReason
from crsyncer.core.annotations import FILTER, ORPHANS, ROBOT_LABEL, SPEC_SOURCE
from crsyncer.core.kind_policy import KindPolicy, policy_by
from crsyncer.core.marks import Marks
from crsyncer.core.model import Json, Key, Side
from crsyncer.core.namespaces import EVERYWHERE, Namespaces
from crsyncer.core.pointer import find, get, parse
from crsyncer.core.project import is_name, stamp_of
from crsyncer.core.selector import Selector
from crsyncer.core.shape import Shape
from crsyncer.core.sync_policy import Reference, Related
from crsyncer.core.template import Names, Template
from crsyncer.errors import SyncError

MOST = 100
"""Objects that one primary may have of one entry."""


class RelatedFailed(SyncError):
    """It cannot be told which objects are related to a primary. The message names the place (C5.1)."""


@dataclass(frozen=True, slots=True)
class RelatedEntry:
    """One entry of `spec.related`, in a policy that is followed."""

    policy: str
    """The SyncPolicy's name."""
    primary: str
    """The kind of the primaries."""
    related: Related
    filtered: bool
    """Originals in the cloud need the robot's label, and copies in the cloud get it (C5.3)."""

    @property
    def resource(self) -> str:
        """The kind of the related objects."""
        return self.related.resource.full_name

    @property
    def id(self) -> tuple[str, str]:
        """What names the entry, also after it has changed."""
        return self.policy, self.related.id


@dataclass(frozen=True, slots=True)
class Selection:
    """Originals of a namespace ("" for cluster-scoped ones), by their labels."""

    namespace: str
    selector: Selector

    def matches(self, key: Key, labels: Mapping[str, str]) -> bool:
        """Whether an object with these labels is one of them."""
        return key.namespace == self.namespace and self.selector.matches(labels)


def related_entries(policy: KindPolicy) -> tuple[RelatedEntry, ...]:
    """The entries of the SyncPolicy that is in force for a kind."""
    own = policy.sync_policy
    if own is None or policy.problem:
        return ()
    return tuple(
        RelatedEntry(own.name, policy.resource, each, policy.filtered if each.filtered is None else each.filtered)
        for each in own.related
    )


def related_keys(primary: Json, related: Related, names: Names, *, namespaced: bool) -> frozenset[Key]:
    """The originals that a primary refers to by their names, as it is on their side (C5.1). Raises RelatedFailed.

    `names` are the primary's, `namespaced` says whether the originals are.
    """
    try:
        found = _names(primary, related, names)
    except ValueError as error:
        raise RelatedFailed(f"related object {related.id}: {error}") from None
    namespace = _namespace(primary, related, names) if found and namespaced else ""
    keys = frozenset(Key(namespace, name) for name in found)
    if failure := too_many(len(keys)):
        raise RelatedFailed(f"related object {related.id}: {failure}")
    wrong = next((key.name for key in keys if not is_name(key.name)), None)
    if wrong is not None:
        raise RelatedFailed(f'related object {related.id}: "{wrong[:MOST]}" is not the name of an object')
    return keys


def related_selection(primary: Json, related: Related, names: Names, *, namespaced: bool) -> Selection | None:
    """The originals that a primary selects by their labels; None: its entry has no selector. As `related_keys`."""
    if not isinstance(related.objects, Selector):
        return None
    return Selection(_namespace(primary, related, names) if namespaced else "", related.objects)


def is_primary(raw: Json, policy: KindPolicy, side: Side) -> bool:
    """Whether an object of a kind with related ones refers to others: it is synced, and not about to go."""
    if raw["metadata"].get("deletionTimestamp") is not None:
        return False
    return side is policy.upstream or stamp_of(raw) is not None


def too_many(count: int) -> str:
    """Why a primary has too many related objects of one entry; empty: it has not (C5.1)."""
    return f"there are {count} of them; allowed: {MOST}" if count > MOST else ""


def _namespace(primary: Json, related: Related, names: Names) -> str:
    namespace: str = primary["metadata"].get("namespace", "")
    if related.namespace is not None:
        try:
            namespace = related.namespace.render(names, primary)
        except ValueError as error:
            raise RelatedFailed(f"related object {related.id}: {error}") from None
    if not is_name(namespace):
        raise RelatedFailed(f'related object {related.id}: "{namespace}" is no namespace; set object.namespace')
    return namespace


def _names(primary: Json, related: Related, names: Names) -> list[str]:
    match related.objects:
        case Reference(path=path):
            found = [*find(primary, parse(path))]
            if not all(isinstance(each, str) for each in found):
                raise ValueError(f"{path} is not a text")
            return found
        case Template() as template:
            paths = [each for each in template.placeholders if each.startswith("/")]
            absent = any(get(primary, parse(path)) is None for path in paths)
            return [] if absent else [template.render(names, primary)]
        case _:
            return []


def related_policy(
    crd: Json, entries: Sequence[RelatedEntry], robot: str, *, namespaces: Namespaces = EVERYWHERE
) -> KindPolicy:
    """How a kind is synced of which objects are related to primaries; what differs between entries is a problem."""
    first = entries[0]
    origin = first.related.origin
    annotations = {SPEC_SOURCE: origin.value, ORPHANS: "keep"}
    if first.filtered and origin is Side.CLOUD:
        annotations[FILTER] = "true"
    found = policy_by(annotations, crd, robot, namespaces=namespaces)
    problems = [found.problem] if found.problem else []
    same: dict[str, set[object]] = {
        "origin": {each.related.origin for each in entries},
        "resource.version": {each.related.resource.version for each in entries},
        "cleanup": {each.related.keep for each in entries},
        "filterByRobotName": {each.filtered for each in entries},
    }
    for name, values in same.items():
        if len(values) > 1:
            policies = ", ".join(sorted({each.policy for each in entries}))
            problems.append(f"spec.related of {policies} differ in {name} for {found.resource}; allowed: one for all")
    if (version := first.related.resource.version) is not None and found.versions:
        only = tuple(replace(each, storage=True) for each in found.versions if each.name == version and each.served)
        if not only:
            problems.append(f'spec.related of {first.policy} has version "{version}"; the robot does not serve it')
        found = replace(found, versions=only or found.versions)
    shape = Shape(marks=Marks)
    if first.filtered and origin is Side.ROBOT:
        shape = replace(shape, steps="robot label", robot=robot, down=_labelled)
    return replace(found, related=tuple(entries), shape=shape, problem="; ".join(problems))


def _labelled(raw: Json, key: Key, robot: str, identity: str) -> Json:  # noqa: ARG001 - as every Change
    """An original as its copy in the cloud is to be: labelled for the robot (C5.3)."""
    labels = (raw["metadata"].get("labels") or {}) | {ROBOT_LABEL: robot}
    return raw | {"metadata": raw["metadata"] | {"labels": labels}}


def related_failed(failure: str) -> Hold:
    """What is reported of a primary whose related objects cannot be told (C5.1). The primary itself is synced."""
    return Hold(
        HoldReason.RELATED_FAILED,
        f"objects that go with it cannot be told: {failure}",
        "correct the object, or spec.related of the SyncPolicy",
    )
