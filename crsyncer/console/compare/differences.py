"""Compares the two objects of a pair: only the fields that crsyncer syncs."""

from collections.abc import Iterable
from typing import Any

from crsyncer.core.content.object_content import (
    concealed,
    content_of,
    digest,
    map_generation,
    stamp_of,
    synced_annotations,
    synced_labels,
    whole_numbers,
)
from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.model import Json, Key, Side, Stamp
from crsyncer.core.pair.compose import merged_fields
from crsyncer.core.pair.decide import may_delete
from crsyncer.core.pair.project import is_shared, status_value, status_with, view_of

Generations = tuple[tuple[int, int], ...]
"""(downstream, upstream) generations with the same content."""
Difference = dict[Side, Json | None]
"""Each side's object of a pair that does not agree, reduced to synced fields; None: it does not exist."""


def difference(
    upstream: Json | None,
    downstream: Json | None,
    policy: KindPolicy,
    *,
    key: Key,
    generations: Generations | None = None,
) -> Difference | None:
    """How the objects of the pair with this key differ; None: they agree.

    upstream     downstream    differs
    absent       ours          the whole object: it must be deleted                   S5
    absent       not ours      nothing                                                S5.3
    terminating  absent        nothing
    seen         absent        the whole object: it must be created                   S3.2
    seen         seen          content; labels and annotations that upstream owns     S3.1, S3.4
                               the synced status, once the copy has one               S4.3, S4.5
                               that of a related object, where it goes to the copy    C5.5
                               none of a shared object, which takes none              F10.3
                               the uid, if it is a copy of another object             S5.4
                               a deletion that has begun on one side only             S5

    A mapped observedGeneration is translated by the copy's `generations`, or left out where these are not known
    (None). Changes that downstream's admission made to a copy are differences; with keepLocal its own fields are none
    (C3.2). Both objects are compared after their steps; raises MutationFailed where one fails (C4).
    """
    shared = upstream is not None and is_shared(upstream, policy)
    if upstream is not None:
        upstream = policy.shape.desired(upstream)
    if downstream is not None:
        downstream = policy.shape.sent(downstream, key)
    if upstream is None or downstream is None:
        return _lone(upstream, policy, policy.upstream, key=key) or _lone(
            downstream, policy, policy.downstream, key=key
        )
    stamp = stamp_of(downstream) or Stamp("")
    if policy.shape.keep_local:
        merged = merged_fields(upstream, downstream, policy)
        kept = {name: value for name, value in upstream.items() if name in ("apiVersion", "kind", "status")}
        upstream = kept | merged | {"metadata": upstream["metadata"] | merged["metadata"]}
    own = (synced_labels(upstream), synced_annotations(upstream))
    copied = (
        _only(synced_labels(downstream), {*own[0], *stamp.labels}),
        _only(synced_annotations(downstream), {*own[1], *stamp.annotations}),
    )
    wanted, found = _document(upstream, policy, key, *own), _document(downstream, policy, key, *copied)
    uid = upstream["metadata"]["uid"]
    if stamp.upstream_uid == uid:
        if policy.copies_status or (downstream.get("status") and not policy.related and not shared):
            statuses = _statuses(upstream, downstream, policy, generations)
            wanted, found = (_with_status(*each, policy) for each in zip((wanted, found), statuses, strict=True))
    elif stamp.upstream_uid:
        wanted["metadata"]["uid"], found["metadata"]["uid"] = uid, stamp.upstream_uid
    deletions = [raw["metadata"].get("deletionTimestamp") for raw in (upstream, downstream)]
    if None in deletions:
        for document, time in zip((wanted, found), deletions, strict=True):
            if time is not None:
                document["metadata"]["deletionTimestamp"] = time
    if digest(wanted) == digest(found):
        return None
    return {policy.upstream: whole_numbers(wanted), policy.downstream: whole_numbers(found)}


def _lone(raw: Json | None, policy: KindPolicy, side: Side, *, key: Key) -> Difference | None:
    if raw is None:
        return None
    if side is policy.upstream:
        differs = raw["metadata"].get("deletionTimestamp") is None
    else:
        differs = may_delete(view_of(raw, policy, side, key=key), policy)
    whole = _document(raw, policy, key, synced_labels(raw), synced_annotations(raw))
    status = None if policy.related and not policy.copies_status else status_value(raw, policy)
    return {side: _with_status(whole, status, policy), side.other: None} if differs else None


def _document(raw: Json, policy: KindPolicy, key: Key, labels: dict[str, str], annotations: dict[str, str]) -> Json:
    """The object under the key of its pair, without its status and without fields that its own server sets."""
    metadata: Json = {"namespace": key.namespace, "name": key.name} if key.namespace else {"name": key.name}
    for name, texts in (("labels", labels), ("annotations", annotations)):
        if texts:
            metadata[name] = texts
    content = content_of(raw)
    if policy.sensitive:
        content = concealed(content, policy.digest_key)
        metadata |= concealed(
            {name: metadata[name] for name in ("annotations",) if name in metadata}, policy.digest_key
        )
    robots = policy.on_robot
    return {"apiVersion": robots.api_version, "kind": robots.kind, "metadata": metadata, **content}


def _statuses(upstream: Json, downstream: Json, policy: KindPolicy, generations: Generations | None) -> tuple[Any, Any]:
    """The synced part of both statuses, with comparable values of `observedGeneration` (S4.7)."""
    statuses = status_value(upstream, policy), status_value(downstream, policy)
    if not policy.map_generation or policy.subtree is not None:
        return statuses
    if generations is not None:
        return statuses[0], map_generation(statuses[1], generations)
    first, second = (
        {k: v for k, v in value.items() if k != "observedGeneration"} if isinstance(value, dict) else value
        for value in statuses
    )
    return first, second


def _with_status(document: Json, value: Any, policy: KindPolicy) -> Json:
    status = status_with({}, policy, value) if value is not None else None
    return document if status is None else {**document, "status": status}


def _only(texts: dict[str, str], keys: Iterable[str]) -> dict[str, str]:
    return {key: texts[key] for key in keys if key in texts}
