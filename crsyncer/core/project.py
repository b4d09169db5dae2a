"""Raw objects: checked, and reduced to a View (S3, S4).

Digests are of meaning, not of text: key order and number spelling do not count (S3.7).
"""

import hashlib
import json
import re
from dataclasses import replace
from sys import intern
from typing import Any

from crsyncer.core.annotations import COPY_OF, OURS, PROPAGATION, ROBOT_LABEL, SYNCER
from crsyncer.core.kind_policy import KindPolicy
from crsyncer.core.known import Known, Views, known_of
from crsyncer.core.model import Json, Key, Pending, Side, Stamp, View
from crsyncer.core.shape import AS_RECEIVED, MutationFailed
from crsyncer.core.text import unix

UPSTREAM_UID = OURS + "upstream-uid"
ROBOT = OURS + "robot"
APPLIED = OURS + "applied"
LAST_DESIRED = OURS + "last-applied"
"""The synced fields that upstream's object called for when the copy was written last, with keepLocal only (C3.3)."""
TOO_LARGE = "large"
"""In `APPLIED`: these fields are too large to be kept."""
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"

_STAYING = (OURS, SYNCER, "kcp.io/")
_KCPS = ".kcp.io/"
_NOT_CONTENT = frozenset({"apiVersion", "kind", "metadata", "status"})
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"))
_FLOAT = re.compile(r"\d[.eE]")
NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
PROPAGATIONS = ("background", "foreground", "orphan")
"""What may become of the dependents of an object that is deleted."""
_LEVELS = 10_000
"""API servers take no JSON that is nested more deeply."""
_FAILURE_CHARACTERS = 500
"""Of the reason why a step fails: it is kept in memory, and expressions quote what they find."""


def digest(value: Any, key: bytes = b"") -> str:
    """96 bits that are equal for values of equal meaning: 1 and 1.0 are, 1 and true and "1" are not.

    Without its key nobody can tell whether a guess is the value of which a digest is.
    """
    text = _CANONICAL.encode(value)
    if _FLOAT.search(text):
        text = _CANONICAL.encode(whole_numbers(value))
    return hashlib.blake2b(text.encode(), digest_size=12, key=key).hexdigest()


def whole_numbers(value: Any) -> Any:
    """The value with every float that is a whole number turned into that integer."""
    if isinstance(value, dict):
        return {key: whole_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [whole_numbers(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def is_name(text: str) -> bool:
    """Whether an object may have this name."""
    return NAME.fullmatch(text) is not None


def key_of(raw: Json) -> Key:
    """The key of an object that an API server sent."""
    metadata = raw["metadata"]
    return Key(intern(metadata.get("namespace") or ""), metadata["name"])  # many objects are in few namespaces


def objection(raw: Json, policy: KindPolicy, side: Side, *, namespace: str = "", leaving: bool = False) -> str:
    """Why an object of a side must not be touched, whatever server sent it (security, threat 28); empty: it may.

    It never raises, and `view_of` does not raise on an object without an objection.
    `namespace` is the one that was requested, "" for all. A `leaving` object may have lost its label.
    """
    if is_deeper_than(raw, _LEVELS):
        return f"it is nested more than {_LEVELS} levels deep"
    metadata = raw.get("metadata")
    if not isinstance(metadata, dict) or not all(_is_text(metadata.get(k)) for k in ("uid", "resourceVersion")):
        return "it has no uid or resourceVersion"
    endpoint = policy.endpoint(side)
    if raw.get("apiVersion") != endpoint.api_version or raw.get("kind") != endpoint.kind:
        return f"it is a {raw.get('apiVersion')} {raw.get('kind')}, not a {endpoint.api_version} {endpoint.kind}"
    name, own_namespace = metadata.get("name"), metadata.get("namespace", "")
    if not isinstance(name, str) or not is_name(name):
        return "its name is not valid"
    if own_namespace != "" and not (_is_text(own_namespace) and NAMESPACE.fullmatch(own_namespace)):
        return "its namespace is not valid"
    if endpoint.namespaced != bool(own_namespace):
        return "its namespace does not fit the kind's scope"
    if not has_sound_texts(raw):
        return "its labels or annotations are not texts"
    if type(metadata.get("generation", 0)) is not int:
        return "its generation is not a number"
    if namespace and own_namespace != namespace:
        return f"it is of namespace {own_namespace}, asked was {namespace}"
    if policy.filtered and not leaving and (metadata.get("labels") or {}).get(ROBOT_LABEL) != policy.robot:
        return f"it is not labelled for robot {policy.robot}"
    if policy.sync_policy is not None and not leaving and not policy.selects(metadata.get("labels") or {}):
        return f"the selector of SyncPolicy {policy.sync_policy.name} does not match its labels"
    return ""


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def has_sound_texts(raw: Json) -> bool:
    """Whether an object's labels and annotations are texts."""
    found = (raw["metadata"].get(name) for name in ("labels", "annotations"))
    return all(
        texts is None or (isinstance(texts, dict) and all(isinstance(text, str) for text in texts.values()))
        for texts in found
    )


def is_deeper_than(raw: Any, levels: int) -> bool:
    """Whether a value is nested more deeply. Without recursion: a deep object would overflow the stack."""
    layer: list[Any] = [raw]
    for _ in range(levels):
        layer = [
            item
            for value in layer
            for item in (value.values() if isinstance(value, dict) else value)
            if isinstance(item, (dict, list))
        ]
        if not layer:
            return False
    return True


def synced_annotations(raw: Json) -> dict[str, str]:
    """An object's annotations without those that never travel: ours, kubectl's and those of kcp (C2.1)."""
    annotations = raw["metadata"].get("annotations") or {}
    return {k: v for k, v in annotations.items() if not k.startswith(_STAYING) and _KCPS not in k and k != LAST_APPLIED}


def synced_labels(raw: Json) -> dict[str, str]:
    """An object's labels without those that never travel: ours and those of kcp (C2.1)."""
    return {k: v for k, v in labels(raw).items() if not k.startswith(_STAYING) and _KCPS not in k}


def labels(raw: Json) -> dict[str, str]:
    """An object's labels."""
    return raw["metadata"].get("labels") or {}


def stamp_of(raw: Json, known: Known | None = None) -> Stamp | None:
    """What our annotations on a copy say; None when it is not a copy of ours. Texts that are `known` are kept once."""
    annotations = raw["metadata"].get("annotations") or {}
    uid = annotations.get(UPSTREAM_UID)
    if not uid:
        return None
    same = ({} if known is None else known).setdefault
    robot = annotations.get(ROBOT, "")
    try:
        applied = json.loads(annotations.get(APPLIED, ""))
        content = str(applied["digest"])
        return Stamp(
            upstream_uid=same(uid, uid),
            robot=same(robot, robot),
            digest=same(content, content),
            labels=tuple(map(str, applied["labels"])),
            annotations=tuple(map(str, applied["annotations"])),
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        # Somebody edited the annotation: the uid still says whose copy it is, and the content is written again.
        return Stamp(upstream_uid=uid, robot=robot, bare=APPLIED not in annotations)


def last_desired(copy: Json, policy: KindPolicy) -> Json | None:
    """What a copy's annotation says was applied to it last; None where it says nothing, or nothing sound (C3.3)."""
    stamp, text = stamp_of(copy), (copy["metadata"].get("annotations") or {}).get(LAST_DESIRED)
    if stamp is None or text is None:
        return None
    try:
        found = json.loads(text)
        sound = isinstance(found, dict) and desired_digest(found, policy) == stamp.digest
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return found if sound else None


def _has_lost_desired(copy: Json, policy: KindPolicy) -> bool:
    """Whether it is not known any more what was applied to a copy with a sound stamp, although that was kept (C3.3)."""
    return last_desired(copy, policy) is None and TOO_LARGE not in json.loads(copy["metadata"]["annotations"][APPLIED])


def view_of(raw: Json, policy: KindPolicy, side: Side, *, key: Key | None = None, views: Views | None = None) -> View:
    """What decisions need to know of an object as seen on a side.

    `key` is that of its pair; None: the one that the namespace map makes of its name. `views` are all that are known
    of the kind: texts that those of the pair have are kept once.
    """
    metadata = raw["metadata"]
    own = key_of(raw)
    unnamed = policy.key_of(side, own) or own
    key = key or unnamed
    known = {} if views is None else known_of(key, policy, views)
    stamp = stamp_of(raw, known) if side is policy.downstream else None
    if policy.shape.keep_local and stamp is not None and stamp.digest and _has_lost_desired(raw, policy):
        stamp = replace(stamp, digest="")
    status = raw.get("status")
    finalized = side is policy.upstream and _is_finalized(metadata, policy)
    shaped, failure = _shaped(raw, policy, side, key) if policy.shape is not AS_RECEIVED else (raw, "")
    uid, moving = metadata["uid"], status_digest(shaped, policy)
    content = desired_digest(shaped, policy) if side is policy.upstream else _content_digest(shaped, stamp, policy)
    return View(
        uid=known.setdefault(uid, uid),
        resource_version=metadata["resourceVersion"],
        generation=metadata.get("generation", 0),
        terminating=metadata.get("deletionTimestamp") is not None,
        content=known.setdefault(content, content),
        status=known.setdefault(moving, moving),
        has_status=status is not None,
        odd_status=status is not None and not isinstance(status, dict),
        stamp=known.setdefault(stamp, stamp),
        failure=failure,
        unmarked=side is policy.downstream and _is_unmarked(raw, policy, key),
        propagation=_propagation(metadata) if side is policy.upstream and policy.sync_policy is not None else "",
        controlled=side is policy.downstream and policy.shape.marks is not None and _is_controlled(raw),
        called=None if key == unnamed else own,
        finalized=finalized,
        deleted_at=_deleted_at(metadata) if finalized else 0.0,
        unselected=side is policy.downstream and not policy.related and not policy.selects(labels(raw)),
    )


def _is_finalized(metadata: Json, policy: KindPolicy) -> bool:
    """Whether an upstream object has this robot's finalizer: without blocking, too, for then it has to go (C6.3)."""
    finalizers = metadata.get("finalizers")
    return isinstance(finalizers, list) and policy.finalizer in finalizers


def _deleted_at(metadata: Json) -> float:
    try:
        return unix(metadata.get("deletionTimestamp") or "")
    except (TypeError, ValueError):
        return 0.0


def bears_mark(raw: Json) -> bool:
    """Whether an object says that it is a copy, by a mark at least."""
    found = (raw["metadata"].get(field) for field in ("annotations", "labels"))
    return any(isinstance(texts, dict) and COPY_OF in texts for texts in found)


def _is_controlled(raw: Json) -> bool:
    """Whether an object that is no copy of ours belongs to a controller."""
    owners = raw["metadata"].get("ownerReferences")
    if not isinstance(owners, list) or stamp_of(raw) is not None or bears_mark(raw):
        return False
    return any(isinstance(owner, dict) and owner.get("controller") is True for owner in owners)


def _propagation(metadata: Json) -> str:
    """What upstream's annotation says of the dependents of the copy; empty: nothing that can be followed (C6.5)."""
    text = ((metadata.get("annotations") or {}).get(PROPAGATION) or "").lower()
    return text if text in PROPAGATIONS else ""


def _is_unmarked(copy: Json, policy: KindPolicy, key: Key) -> bool:
    """Whether a copy lacks marks that it has to have (C2.4)."""
    marks = policy.shape.marks_of(key)
    return marks is not None and bool(marks.wrong_on(copy))


def _shaped(raw: Json, policy: KindPolicy, side: Side, key: Key) -> tuple[Json, str]:
    """An object as it goes to the other side, and why a step fails on it; empty: none does (C4.1, C4.4)."""
    try:
        return policy.shape.desired(raw) if side is policy.upstream else policy.shape.sent(raw, key), ""
    except MutationFailed as error:
        return raw, error.where if policy.sensitive else str(error)[:_FAILURE_CHARACTERS]


def desired_digest(desired: Json, policy: KindPolicy) -> str:
    """Digest of the content of upstream's object as its copy is to be.

    It is another one with keepLocal: where that is switched, every copy is written once, by the other rule (C3.2).
    """
    found = _content_digest(desired, None, policy)
    return digest(["keepLocal", found]) if policy.shape.keep_local else found


def _content_digest(raw: Json, stamp: Stamp | None, policy: KindPolicy) -> str:
    own_labels, own_annotations = synced_labels(raw), synced_annotations(raw)
    if stamp is not None:
        own_labels = {k: own_labels[k] for k in stamp.labels if k in own_labels}
        own_annotations = {k: own_annotations[k] for k in stamp.annotations if k in own_annotations}
    return digest([content_of(raw), own_labels, own_annotations], policy.digest_key)


def concealed(value: Any, key: bytes) -> Any:
    """The value with a digest in place of each text, number and boolean in it (C5.6)."""
    match value:
        case dict():
            return {name: concealed(each, key) for name, each in value.items()}
        case list():
            return [concealed(each, key) for each in value]
        case None:
            return None
    return f"digest {digest(value, key)}"


def content_of(raw: Json) -> Json:
    """The part of an object that upstream owns, labels and annotations aside (S3.1)."""
    return {k: v for k, v in raw.items() if k not in _NOT_CONTENT}


def status_value(raw: Json, policy: KindPolicy) -> Any:
    """The status that moves: `.status`, or its subtree; None when there is none, or an empty one (S4.3, S4.5).

    None moves of a sensitive kind: a Secret has none, and that of its other end may quote it (C5.6).
    """
    status = None if policy.sensitive else raw.get("status")
    if policy.subtree is not None:
        status = status.get(policy.subtree) if isinstance(status, dict) else None
        return None if status == {} else status
    return status or None


def value_to_send(row: Pending, policy: KindPolicy, key: Key) -> Any:
    """What a row of the outbox puts upstream, by the steps of now (C4.1). Raises MutationFailed."""
    if row.raw:
        return status_value(policy.shape.sent(row.value, key), policy)
    if policy.shape.up is None or row.value is None:
        return row.value
    # It was queued when there were no steps, so the rest of the copy is not known.
    return status_value(policy.shape.sent({"metadata": {}, "status": status_with({}, policy, row.value)}, key), policy)


def status_digest(raw: Json, policy: KindPolicy) -> str:
    """Digest of the status that moves; empty when there is none."""
    value = status_value(raw, policy)
    return "" if value is None else digest(value)


def touched(known: Json, answered: Json) -> bool:
    """Whether more than the status has changed between two versions of an object, of whose metadata these are.

    A change of anything but metadata and status raises the generation. Where the status is no subresource, a change of
    it does so as well, and the two cannot be told apart. Some built-in kinds have no generation: nothing is known then.
    """
    return "generation" not in known or any(
        known.get(name) != answered.get(name) for name in {*known, *answered} - {"resourceVersion", "managedFields"}
    )


def status_with(raw: Json, policy: KindPolicy, value: Any) -> Any:
    """The whole status that an object has once `value` is what moves of it; None: there is none."""
    if policy.subtree is None:
        return value
    whole = raw.get("status")
    status = {k: v for k, v in whole.items() if k != policy.subtree} if isinstance(whole, dict) else {}
    return status if value is None else {**status, policy.subtree: value}


def synced_fields(raw: Json) -> Json:
    """The content, labels and synced annotations of an object."""
    return content_of(raw) | {"metadata": {"labels": synced_labels(raw), "annotations": synced_annotations(raw)}}


def differences(wanted: Json, found: Json) -> list[str]:
    """The paths at which an object is not as wanted: of content, labels and synced annotations."""
    return [path for path, _, _ in leaf_differences(synced_fields(wanted), synced_fields(found))]


def leaf_differences(one: Any, other: Any, path: str = "") -> list[tuple[str, Any, Any]]:
    """The fields in which two values differ: the path, and the value of each."""
    if isinstance(one, dict) and isinstance(other, dict):
        keys = sorted(one.keys() | other.keys())
        return [leaf for key in keys for leaf in leaf_differences(one.get(key), other.get(key), f"{path}.{key}")]
    return [] if digest(one) == digest(other) else [(path.removeprefix("."), one, other)]


def map_generation(value: Any, generations: tuple[tuple[int, int], ...]) -> Any:
    """The status with `observedGeneration` translated to upstream's numbers; 0 when not known (S4.7)."""
    observed = _observed(value)
    return value if observed is None else {**value, "observedGeneration": dict(generations).get(observed, 0)}


def note_observed(value: Any, generations: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    """The generations with a place for the one that a status observed: 0, where it is not known, and only of the last.

    It becomes known when the write that made it is answered, and then the status has to go up again (S4.7).
    """
    known = tuple(pair for pair in generations if pair[1])
    observed = _observed(value)
    return known if observed is None or observed in dict(known) else (*known, (observed, 0))


def _observed(value: Any) -> int | None:
    observed = value.get("observedGeneration") if isinstance(value, dict) else None
    return observed if isinstance(observed, int) and not isinstance(observed, bool) else None
