"""Related objects: which objects a primary refers to, and how their kind is synced (C5)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from crsyncer.core.content.annotations import FILTER, ORPHANS, ROBOT_LABEL, SPEC_SOURCE
from crsyncer.core.content.marks import Marks
from crsyncer.core.content.object_content import NAMESPACE, is_name, stamp_of
from crsyncer.core.content.pointer import find, get, parse
from crsyncer.core.content.selector import Selector
from crsyncer.core.content.shape import Shape
from crsyncer.core.content.template import Names, Template
from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.kinds.namespaces import EVERYWHERE, Namespaces
from crsyncer.core.kinds.naming import SAME_NAME, SAME_NAMESPACE, Naming
from crsyncer.core.kinds.projection import projected
from crsyncer.core.kinds.read_kind import policy_by
from crsyncer.core.kinds.related_entry import RelatedEntry
from crsyncer.core.kinds.sync_policy import Reference, Related
from crsyncer.core.kinds.version_choice import pinned
from crsyncer.core.model import Json, Key, Side
from crsyncer.core.pair.actions import Hold, HoldReason
from crsyncer.errors import SyncError

MOST = 100
"""Objects that one primary may have of one entry."""


class RelatedFailed(SyncError):
    """It cannot be told which objects are related to a primary, or what their copies are called (C5.1, C5.2).

    The message names the place.
    """


class NeverRelated(RelatedFailed):
    """It cannot be told, nor ever could be: the primary never referred to anything by the entry."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Originals of a namespace ("" for cluster-scoped ones), by their labels."""

    namespace: str
    selector: Selector

    def matches(self, key: Key, labels: Mapping[str, str]) -> bool:
        """Whether an object with these labels is one of them."""
        return key.namespace == self.namespace and self.selector.matches(labels)

    @property
    def text(self) -> str:
        """What it selects."""
        return f"{self.namespace}/{self.selector.text}"


@dataclass(frozen=True, slots=True)
class References:
    """What one primary refers to by one entry."""

    keys: frozenset[Key] = frozenset()
    """The originals that it names."""
    selection: Selection | None = None
    """Those that it selects."""

    def cover(self, others: "References") -> bool:
        """Whether these are all that the others are, or more."""
        return others.keys <= self.keys and others.selection in (None, self.selection)

    def __or__(self, others: "References") -> "References":
        """Both; where two selections differ, this one."""
        return References(self.keys | others.keys, self.selection or others.selection)


NO_REFERENCES = References()


def related_entries(policy: KindPolicy) -> tuple[RelatedEntry, ...]:
    """The entries of the SyncPolicy that is in force for a kind."""
    own = policy.sync_policy
    if own is None or policy.problem:
        return ()
    return tuple(
        RelatedEntry(
            own.name,
            policy.resource,
            each,
            filtered=policy.filtered if each.filtered is None else each.filtered,
            named=policy.names_copies or each.naming is not None,
            naming=_copy_naming(each, policy.naming),
            sensitive=policy.sensitive,
        )
        for each in own.related
    )


def _copy_naming(related: Related, of_kind: Naming | None) -> Naming | None:
    """What copies are called by an entry, whose primaries' kind has this naming (C5.2)."""
    own = related.naming
    namespace = own.namespace if own is not None and related.names_namespace else of_kind and of_kind.namespace
    if own is None and (namespace is None or namespace == SAME_NAMESPACE):
        return None
    return Naming(namespace or SAME_NAMESPACE, SAME_NAME if own is None else own.name)


def references_of(primary: Json, entry: RelatedEntry, names: Names, *, namespaced: bool) -> References:
    """What a primary refers to by an entry, as it is on the originals' side (C5.1). Raises RelatedFailed.

    `names` are the primary's, `namespaced` says whether the originals are in namespaces.
    """
    related = entry.related
    selector = related.objects if isinstance(related.objects, Selector) else None
    try:
        found = _names(primary, related, names)
        if selector is None and not found:
            return NO_REFERENCES
        namespace = _namespace(primary, entry, names) if namespaced else ""
    except ValueError as error:
        raise RelatedFailed(f"related object {related.id}: {error}") from None
    if namespace is None:
        return NO_REFERENCES
    keys = frozenset(Key(namespace, name) for name in found)
    if failure := too_many(len(keys)):
        raise RelatedFailed(f"related object {related.id}: {failure}")
    wrong = next((key.name for key in keys if not is_name(key.name)), None)
    if wrong is not None:
        place_of_name = related.objects.path if isinstance(related.objects, Reference) else "object.name"
        text = _named(wrong, place_of_name, entry)
        raise RelatedFailed(f"related object {related.id}: {text} not the name of an object")
    return References(keys, None if selector is None else Selection(namespace, selector))


def is_primary(raw: Json, policy: KindPolicy, side: Side) -> bool:
    """Whether an object of a kind with related ones refers to others: it is synced, and not about to go."""
    return is_synced(raw, policy, side) and raw["metadata"].get("deletionTimestamp") is None


def is_synced(raw: Json, policy: KindPolicy, side: Side) -> bool:
    """Whether it is upstream's, or a copy that was made: what anybody else has made refers to nothing."""
    return side is policy.upstream or stamp_of(raw) is not None


def too_many(count: int) -> str:
    """Why a primary has too many related objects of one entry; empty: it has not (C5.1)."""
    return f"there are {count} of them; allowed: {MOST}" if count > MOST else ""


def _named(value: str, place: str, entry: RelatedEntry) -> str:
    """A value that a primary gives, as the beginning of a sentence about it."""
    if entry.sensitive:
        return f"{place} has {len(value)} characters that are"
    return f'"{value[:MOST]}" is'


def _namespace(primary: Json, entry: RelatedEntry, names: Names) -> str | None:
    """The namespace of the originals; None: a value in the primary that it is made of is absent."""
    related = entry.related
    namespace: str | None = primary["metadata"].get("namespace", "")
    if related.namespace is not None:
        namespace = _made(related.namespace, primary, names)
    elif not namespace:
        raise NeverRelated(f'related object {related.id}: "" is no namespace; set object.namespace')
    if namespace is not None and not NAMESPACE.fullmatch(namespace):
        raise ValueError(f"{_named(namespace, 'object.namespace', entry)} no namespace; set object.namespace")
    return namespace


def _names(primary: Json, related: Related, names: Names) -> list[str]:
    match related.objects:
        case Reference(path=path):
            found = [*find(primary, parse(path))]
            if not all(isinstance(each, str) for each in found):
                raise ValueError(f"{path} is not a text")
            return found
        case Template() as template:
            name = _made(template, primary, names)
            return [] if name is None else [name]
        case _:
            return []


def _made(template: Template, primary: Json, names: Names) -> str | None:
    """What a template makes of a primary; None: a value in it is absent (C5.1)."""
    absent = any(get(primary, path) is None for path in template.paths)
    return None if absent else template.render(names, primary)


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
        "status": {each.related.status for each in entries},
        "projection": {each.related.projection for each in entries},
        "naming": {each.naming for each in entries},
    }
    for name, values in same.items():
        if len(values) > 1:
            policies = ", ".join(sorted({each.policy for each in entries}))
            problems.append(f"spec.related of {policies} differ in {name} for {found.resource}; allowed: one for all")
    projection = first.related.projection
    version = first.related.resource.version or (projection and projection.version)
    if version and found.versions:
        only = pinned(version, found.versions)
        if not only:
            problems.append(f'spec.related of {first.policy} has version "{version}"; the robot does not serve it')
        found = replace(found, versions=only or found.versions)
    shape = Shape(marks=Marks)
    if first.filtered and origin is Side.ROBOT:
        shape = replace(shape, steps="robot label", robot=robot, down=_labelled)
    found = replace(found, related=tuple(entries), shape=shape, problem="; ".join(problems))
    return found if projection is None else projected(found, projection)


def _labelled(raw: Json, key: Key, robot: str, identity: str) -> Json:  # noqa: ARG001 - as every Change
    """An original as its copy in the cloud is to be: labelled for the robot (C5.3)."""
    labels = (raw["metadata"].get("labels") or {}) | {ROBOT_LABEL: robot}
    return raw | {"metadata": raw["metadata"] | {"labels": labels}}


def related_failed(failure: str) -> Hold:
    """What is reported of a primary with which something does not go (C5.1, C5.2). The primary itself is synced."""
    return Hold(
        HoldReason.RELATED_FAILED,
        f"objects that go with it are not synced as it asks: {failure}",
        "correct the object, or spec.related of the SyncPolicy",
    )
