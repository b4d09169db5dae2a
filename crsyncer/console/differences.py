"""What differs in a pair of objects: of what crsyncer is responsible for, and nothing else."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from crsyncer.core.decide import may_delete
from crsyncer.core.model import Json, Key, Side, Stamp
from crsyncer.core.policy import Policy
from crsyncer.core.project import (
    content_of,
    digest,
    key_of,
    labels,
    stamp_of,
    status_value,
    status_with,
    synced_annotations,
    view_of,
    whole_numbers,
)


@dataclass(frozen=True, slots=True)
class Difference:
    """A pair that does not agree. `shown` is what differs on each side, as an object; None: it is not there."""

    key: Key
    shown: dict[Side, Json | None]


def difference(upstream: Json | None, downstream: Json | None, policy: Policy) -> Difference | None:
    """How a pair differs, from what both servers show of it, at least one of them; None where nothing does.

    upstream     downstream    differs
    absent       ours          it should not be there: shown whole                    S5
    absent       not ours      nothing                                                S5.3
    terminating  absent        nothing
    seen         absent        it should be there: shown whole                        S3.2
    seen         seen          content; labels and annotations that upstream owns     S3.1, S3.4
                               the status that moves, once the copy has one           S4.3, S4.5
                               the uid, where it is a copy of another object          S5.4
                               a deletion that only one side knows of                 S5

    Knows no records: what admission downstream made of our write shows as a difference, and an observedGeneration
    that is mapped is left out.
    """
    if upstream is None or downstream is None:
        lone = upstream or downstream
        if lone is None or not _counts_alone(
            lone, policy, policy.upstream if downstream is None else policy.downstream
        ):
            return None
        whole = _document(lone, policy, labels(lone), synced_annotations(lone))
        side = policy.upstream if downstream is None else policy.downstream
        return Difference(key_of(lone), {side: _with_status(whole, lone, policy), side.other: None})
    stamp = stamp_of(downstream) or Stamp("")
    own = (labels(upstream), synced_annotations(upstream))
    copied = (
        _only(labels(downstream), {*own[0], *stamp.labels}),
        _only(synced_annotations(downstream), {*own[1], *stamp.annotations}),
    )
    one, other = _document(upstream, policy, *own), _document(downstream, policy, *copied)
    uid = upstream["metadata"]["uid"]
    if stamp.upstream_uid == uid:
        if status_value(downstream, policy) is not None:
            one, other = _with_status(one, upstream, policy), _with_status(other, downstream, policy)
    elif stamp.upstream_uid:
        one["metadata"]["uid"], other["metadata"]["uid"] = uid, stamp.upstream_uid
    dying = [raw["metadata"].get("deletionTimestamp") for raw in (upstream, downstream)]
    if None in dying:
        for document, time in zip((one, other), dying, strict=True):
            if time is not None:
                document["metadata"]["deletionTimestamp"] = time
    if digest(one) == digest(other):
        return None
    shown = {policy.upstream: whole_numbers(one), policy.downstream: whole_numbers(other)}
    return Difference(key_of(upstream), shown)


def _counts_alone(lone: Json, policy: Policy, side: Side) -> bool:
    if side is policy.upstream:
        return lone["metadata"].get("deletionTimestamp") is None
    return may_delete(view_of(lone, policy, side), policy)


def _document(raw: Json, policy: Policy, labels: dict[str, str], annotations: dict[str, str]) -> Json:
    """An object without its status and everything that is its own server's."""
    metadata: Json = {name: raw["metadata"][name] for name in ("namespace", "name") if name in raw["metadata"]}
    for name, texts in (("labels", labels), ("annotations", annotations)):
        if texts:
            metadata[name] = texts
    return {"apiVersion": policy.api_version, "kind": policy.kind, "metadata": metadata, **content_of(raw)}


def _with_status(document: Json, raw: Json, policy: Policy) -> Json:
    value: Any = status_value(raw, policy)
    if policy.map_generation and policy.subtree is None and isinstance(value, dict):
        value = {k: v for k, v in value.items() if k != "observedGeneration"}
    status = status_with({}, policy, value) if value is not None else None
    return document if status is None else {**document, "status": status}


def _only(texts: dict[str, str], keys: Iterable[str]) -> dict[str, str]:
    return {key: texts[key] for key in keys if key in texts}
