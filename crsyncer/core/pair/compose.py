"""What is written downstream: the copy that an upstream object calls for (S3.1, S3.3, S3.4, C3)."""

import json
from collections.abc import Iterable

from crsyncer.core.content.annotations import OURS
from crsyncer.core.content.merge import keep_local
from crsyncer.core.content.object_content import (
    APPLIED,
    LAST_DESIRED,
    ROBOT,
    TOO_LARGE,
    UPSTREAM_UID,
    content_of,
    key_of,
    labels,
    stamp_of,
    synced_annotations,
    synced_fields,
    synced_labels,
)
from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.model import Json, Key, Side, Stamp, View
from crsyncer.core.pair.project import last_desired
from crsyncer.core.watching.identity import KCP_PATH, logical_cluster

UPSTREAM_PATH = OURS + "upstream-path"
"""The path of the logical cluster of kcp that the original is in (C9.1)."""
_LAST_DESIRED_BYTES = 128 << 10
"""More is not kept: all annotations of an object may have twice as much. As JSON it is ASCII."""


def compose_copy(
    desired: Json, view: View, policy: KindPolicy, *, downstream: Json | None, name: Key | None = None
) -> Json:
    """The copy that upstream's object calls for: a body to create (downstream None) or to put.

    `desired` is that object after the steps of the kind's policy, `view` shows it as it was received. Finalizers, owner
    references, status and the keys that only downstream actors added are preserved, with keepLocal other fields, too.
    `name` is what a new copy is called; None: as the kind's policy says.
    """
    up_labels, up_annotations = synced_labels(desired), synced_annotations(desired)
    endpoint = policy.endpoint(policy.downstream)
    body: Json = {"apiVersion": endpoint.api_version, "kind": endpoint.kind}
    content = content_of(desired)
    if downstream is None:
        copy = name or policy.new_name(key_of(desired))
        copy_metadata: Json = {"name": copy.name}
        if endpoint.namespaced:
            copy_metadata["namespace"] = copy.namespace
        new_labels, new_annotations = dict(up_labels), dict(up_annotations)
        keep = desired
    else:
        copy_metadata = {k: v for k, v in downstream["metadata"].items() if k != "managedFields"}
        all_annotations = downstream["metadata"].get("annotations") or {}
        if policy.shape.keep_local:
            merged = merged_fields(desired, downstream, policy)
            content = content_of(merged)
            own_labels = labels(downstream)
            new_labels = {k: v for k, v in own_labels.items() if k not in synced_labels(downstream)} | labels(merged)
            own = all_annotations.keys() - synced_annotations(downstream).keys()
            new_annotations = {k: v for k, v in all_annotations.items() if k in own} | synced_annotations(merged)
        else:
            stamp = stamp_of(downstream) or Stamp("")
            new_labels = _three_way(labels(downstream), up_labels, stamp.labels)
            new_annotations = _three_way(all_annotations, up_annotations, stamp.annotations)
        new_annotations.pop(LAST_DESIRED, None)
        keep = downstream
    new_annotations[UPSTREAM_UID] = view.uid
    applied: Json = {"digest": view.content, "labels": sorted(up_labels), "annotations": sorted(up_annotations)}
    if policy.shape.keep_local:
        text = json.dumps(synced_fields(desired), separators=(",", ":"))
        if len(text) <= _LAST_DESIRED_BYTES:
            new_annotations[LAST_DESIRED] = text
        else:
            applied[TOO_LARGE] = True
    new_annotations[APPLIED] = json.dumps(applied, separators=(",", ":"))
    if policy.downstream is Side.CLOUD:
        new_annotations[ROBOT] = policy.robot
    if policy.shape.path is not None and (path := policy.shape.path() or _own_path(desired)):
        new_annotations[UPSTREAM_PATH] = path
    status = keep.get("status")
    # Without the subresource it is part of the main resource (S4.6). The copy's own is always put, even if it is odd: a
    # server with the subresource ignores it, and one that has lost it since would remove what is not put.
    if status is not None and (keep is downstream or (not endpoint.status and isinstance(status, dict))):
        body["status"] = status
    copy_metadata["labels"] = new_labels
    copy_metadata["annotations"] = new_annotations
    body["metadata"] = copy_metadata
    body.update(content)
    marks = policy.shape.marks_of(key_of(desired))
    return body if marks is None else marks.put_on(body)


def _own_path(desired: Json) -> str:
    """The path of its logical cluster that an object of kcp itself has; empty: it has none."""
    return logical_cluster(desired["metadata"]).get(KCP_PATH, "")


def merged_fields(desired: Json, copy: Json, policy: KindPolicy) -> Json:
    """The synced fields of a copy with what upstream has changed since it was written last (C3.2)."""
    merged = keep_local(last_desired(copy, policy), synced_fields(desired), synced_fields(copy))
    wanted = selected_labels(labels(merged), labels(desired), policy)
    return merged | {"metadata": merged["metadata"] | {"labels": wanted}}


def selected_labels(own: dict[str, str], wanted: dict[str, str], policy: KindPolicy) -> dict[str, str]:
    """An object's labels with those as `wanted` without which it would leave our sight (S2.3)."""
    keys = policy.selector_keys
    kept = {key: value for key, value in own.items() if key not in keys}
    return kept | {key: value for key, value in wanted.items() if key in keys}


def _three_way(theirs: dict[str, str], upstream: dict[str, str], owned: Iterable[str]) -> dict[str, str]:
    """Downstream's keys, without those that upstream had and dropped, under upstream's keys."""
    dropped = set(owned) - upstream.keys()
    return {k: v for k, v in theirs.items() if k not in dropped} | upstream
