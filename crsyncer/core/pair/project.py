"""Raw objects: checked, and reduced to a View (S3, S4).

Digests are of meaning, not of text: key order and number spelling do not count (S3.7).
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from crsyncer.core.content.annotations import COPY_OF, OURS, PROPAGATION, ROBOT_LABEL, SHARED
from crsyncer.core.content.object_content import (
    APPLIED,
    LAST_DESIRED,
    NAMESPACE,
    OF_SECRET,
    PROPAGATIONS,
    TOO_LARGE,
    Known,
    content_of,
    digest,
    has_sound_texts,
    is_deeper_than,
    is_name,
    key_of,
    labels,
    stamp_of,
    synced_annotations,
    synced_labels,
)
from crsyncer.core.content.replica_mark import read_replica_mark
from crsyncer.core.content.shape import AS_RECEIVED, MutationFailed
from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.model import Json, Key, Pending, Side, Stamp, View
from crsyncer.core.reports.text import unix

_LEVELS = 10_000
"""API servers take no JSON that is nested more deeply."""
_FAILURE_CHARACTERS = 500
"""Of the reason why a step fails: it is kept in memory, and expressions quote what they find."""

Views = Mapping[Side, Mapping[Key, View]]
"""What is known of the objects of a kind, by side."""


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
    marked = policy.related and side is policy.downstream  # copies are found by their marks (C5.3)
    if policy.filtered and not (leaving or marked) and (metadata.get("labels") or {}).get(ROBOT_LABEL) != policy.robot:
        return f"it is not labelled for robot {policy.robot}"
    if policy.sync_policy is not None and not leaving and not policy.selects(metadata.get("labels") or {}):
        return f"the selector of SyncPolicy {policy.sync_policy.name} does not match its labels"
    return ""


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


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
    known = {} if views is None else _known_texts(key, policy, views)
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
        deleted_at=_deleted_at(metadata),
        unselected=side is policy.downstream and not policy.related and not policy.selects(labels(raw)),
        replica=read_replica_mark(raw, policy.robot) if side is policy.upstream and policy.takes_replicas else None,
        shared=side is policy.upstream and is_shared(raw, policy),
    )


def _known_texts(key: Key, policy: KindPolicy, views: Views) -> Known:
    """The texts and the stamp that the views of a pair have: most are the same on both sides (S6.6)."""
    known: Known = {policy.robot: policy.robot}
    for view in (views[side].get(key) for side in views):
        if view is not None:
            for each in (view.uid, view.content, view.status, view.stamp):
                known[each] = each
    return known


def is_shared(upstream: Json, policy: KindPolicy) -> bool:
    """Whether the statuses of copies of an upstream object go to objects of the robots' own (F10.3)."""
    may_be = policy.upstream is Side.CLOUD and not policy.related and not policy.sensitive
    return may_be and SHARED in (upstream["metadata"].get("annotations") or {})


def _is_finalized(metadata: Json, policy: KindPolicy) -> bool:
    """Whether an upstream object has this robot's finalizer: without blocking, too, for then it has to go (C6.3)."""
    finalizers = metadata.get("finalizers")
    return isinstance(finalizers, list) and policy.finalizer in finalizers


def _deleted_at(metadata: Json) -> float:
    deleted = metadata.get("deletionTimestamp")
    try:
        return 0.0 if deleted is None else unix(deleted)
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
    found = digest([content_of(raw), own_labels, own_annotations], policy.digest_key)
    return OF_SECRET + found if policy.sensitive else found


def without_values(raw: Json, policy: KindPolicy, side: Side) -> Json:
    """A copy without its content and status where it was made of a Secret and its kind is none any more (C5.6, C1.7).

    It stays until it is deleted, and nothing but metadata is asked of it until then.
    """
    if side is policy.upstream or policy.sensitive:
        return raw
    metadata, own = raw["metadata"], raw["metadata"].get("annotations") or {}
    if OF_SECRET not in own.get(APPLIED, ""):  # no label or annotation that is named there has a colon
        return raw
    annotations = {name: text for name, text in own.items() if name.startswith(OURS) and name != LAST_DESIRED}
    named = {name: raw[name] for name in ("apiVersion", "kind") if name in raw}
    return named | {"metadata": metadata | {"annotations": annotations}}


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


def status_with(raw: Json, policy: KindPolicy, value: Any) -> Any:
    """The whole status that an object has once `value` is what moves of it; None: there is none."""
    if policy.subtree is None:
        return value
    whole = raw.get("status")
    status = {k: v for k, v in whole.items() if k != policy.subtree} if isinstance(whole, dict) else {}
    return status if value is None else {**status, policy.subtree: value}
