"""What must be done about one replica, and the bodies of the requests (F2.4, F3.3 to F3.8, F5.1, F5.4)."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Any, assert_never

from crsyncer.core.content.annotations import SHARED
from crsyncer.core.content.object_content import content_of, digest, is_deeper_than
from crsyncer.core.model import Json
from crsyncer.fleet.domain.names import REPLICA, SOURCE, mark_texts
from crsyncer.fleet.domain.transport.keys import ROOT
from crsyncer.fleet.domain.values import (
    MOST_LEVELS,
    Blocked,
    Create,
    Delete,
    Marks,
    Nothing,
    Patch,
    Reason,
    RenderFailed,
    Rendering,
    ReplicaPlan,
    Row,
    Strategy,
    Wait,
    Wanted,
)

Operation = Mapping[str, Any]
_TOO_DEEP = "nested too deeply"


class Removal(StrEnum):
    """What becomes of a replica that nothing wants (F5)."""

    NOW = "now"
    LATER = "later"
    """Its source or robot was lost a moment ago."""
    HELD = "held"
    UNKNOWN = "unknown"
    """What it depends on is not listed, or its kind is not alive."""
    UNMARK = "unmark"
    """KeepReplicas: only the marks go, with that of a copy that robots share."""


def decide_replica(
    *, wanted: Wanted | None, row: Row | None, listed: bool, removal: Removal, may_write: bool
) -> ReplicaPlan:
    """What must be done about one replica.

    wanted            row                 do
    any               not listed          wait: it may be there                              F1.1
    none              none, terminating   nothing
    none              seen                as `removal` says                                  F5
    any               terminating         wait: it is made again when it is gone
    a failure         seen or none        blocked; the marks change to who governs           F4.4, F2.4
    a rendering       none                create, once it may be written                     F3.3
    a rendering       due                 patch, once it may be written                      F3.4, F6.4
    a rendering       drifted             patch                                              F3.5
    a rendering       other placement     patch the marks at once                            F2.4
    a rendering       agrees              nothing
    """
    if not listed:
        return Wait("its kind is not listed")
    if wanted is None:
        return Nothing() if row is None or row.terminating else _remove(row, removal)
    if row is not None and row.terminating:
        return Wait("it is terminating")
    rendering = wanted.rendering
    if row is None:
        if isinstance(rendering, RenderFailed):
            return Blocked(rendering.reason, rendering.message)
        return Create(new_body(wanted, rendering)) if may_write else Wait("its robot is not begun")
    handed_over = row.marks.placement != wanted.placement.uid
    if isinstance(rendering, Rendering):
        due = is_due(wanted, row)
        if (due and may_write) or (not due and is_drifted(wanted, row)):
            return Patch(_content_operations(wanted, rendering, row))
        if not handed_over:
            return Wait("its robot is not begun") if due else Nothing()
    if handed_over:
        return Patch(_mark_operations(row, replace(row.marks, placement=wanted.placement.uid)))
    assert isinstance(rendering, RenderFailed)  # noqa: S101 the other case has returned
    return Blocked(rendering.reason, rendering.message)


def is_due(wanted: Wanted, row: Row | None) -> bool:
    """Whether a replica is missing or has another stamp, except a CreateOnly one that exists (F6.4)."""
    if row is None:
        return True
    if wanted.strategy is Strategy.CREATE_ONLY or isinstance(wanted.rendering, RenderFailed):
        return False
    return row.marks.stamp != wanted.rendering.stamp


def is_drifted(wanted: Wanted, row: Row) -> bool:
    """Whether somebody changed a replica since our write (F3.5); a CreateOnly one may be changed."""
    return wanted.strategy is not Strategy.CREATE_ONLY and row.content not in (row.admitted, row.marks.stamp)


def owned_content(raw: Json, label_keys: Iterable[str], annotation_keys: Iterable[str]) -> str:
    """The digest of an object's content and of the labels and annotations that are the controller's."""
    if is_deeper_than(raw, 2 * MOST_LEVELS):
        return _TOO_DEEP
    metadata = raw["metadata"]
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    owned = [
        {key: texts[key] for key in keys if key in texts}
        for keys, texts in ((label_keys, labels), (annotation_keys, annotations))
    ]
    return digest([content_of(raw), *owned])


def equals(raw: Json, rendering: Rendering, marks: Marks) -> bool:
    """Whether an object is what a rendering asks for and no more: then the stamp is its digest.

    It takes a tenth of the time of a digest.
    """
    metadata = raw["metadata"]
    owned = (
        ({key: texts[key] for key in keys if key in texts}, wanted)
        for texts, keys, wanted in (
            (metadata.get("labels") or {}, marks.labels, rendering.labels),
            (metadata.get("annotations") or {}, marks.annotations, rendering.annotations),
        )
    )
    return _is_same(content_of(raw), rendering.content) and all(found == wanted for found, wanted in owned)


def _is_same(one: Any, other: Any) -> bool:
    """Whether two values have one digest: for Python 1 and true are equal, too."""
    if isinstance(one, dict):
        same = isinstance(other, dict) and one.keys() == other.keys()
        return same and all(_is_same(item, other[key]) for key, item in one.items())
    if isinstance(one, list):
        same = isinstance(other, list) and len(one) == len(other)
        return same and all(_is_same(each, item) for each, item in zip(one, other, strict=True))
    return bool(one == other) and isinstance(one, bool) is isinstance(other, bool)


def contains(raw: Json, rendering: Rendering) -> bool:
    """Whether an object has all that a rendering asks for; a server may have added more (F3.5, after a start)."""
    metadata = raw["metadata"]
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    return (
        _includes(content_of(raw), rendering.content)
        and all(labels.get(key) == text for key, text in rendering.labels.items())
        and all(annotations.get(key) == text for key, text in rendering.annotations.items())
    )


def _includes(found: Any, asked: Any) -> bool:
    if isinstance(asked, dict):
        return isinstance(found, dict) and all(_includes(found.get(key), item) for key, item in asked.items())
    if isinstance(asked, list):
        same = isinstance(found, list) and len(found) == len(asked)
        return same and all(_includes(each, item) for each, item in zip(found, asked, strict=True))
    return not isinstance(found, (dict, list)) and digest(found) == digest(asked)


def name_taken(wanted: Wanted) -> Blocked:
    """Why a replica cannot be made where something else is (F3.7)."""
    place = f"{wanted.namespace}/{wanted.name}" if wanted.namespace else wanted.name
    where = "" if wanted.kind.shard == ROOT else f" on shard {wanted.kind.shard}"
    hint = f"label it {SOURCE}={wanted.source_id} to hand it over, or delete it"
    return Blocked(Reason.NAME_TAKEN, f"{wanted.source.resource} {place}{where} is not of this source; {hint}")


def met_row(raw: Json, wanted: Wanted) -> Row | Blocked:
    """What a look at the name of a replica has found, where something else than a replica is there (F3.7).

    The label with the SOURCEID hands an object over: it is then updated like a replica without a stamp.
    """
    metadata = raw["metadata"]
    found = (metadata.get("labels") or {}).get(SOURCE, "")
    if found != wanted.source_id:
        return name_taken(wanted)
    return Row(
        namespace=wanted.namespace,
        name=wanted.name,
        uid=metadata["uid"],
        resource_version=metadata["resourceVersion"],
        robot=wanted.robot,
        target=wanted.placement.target,
        marks=Marks(found, "", 0, wanted.source.text, ""),
        content=owned_content(raw, (), ()),
        keys=tuple(content_of(raw)),
        terminating=metadata.get("deletionTimestamp") is not None,
        annotated=isinstance(metadata.get("annotations"), dict),
    )


def new_body(wanted: Wanted, rendering: Rendering) -> Json:
    """The object to create."""
    marks = _marks(wanted, rendering, number=1)
    mark_labels, mark_annotations = mark_texts(marks, wanted.robot)
    metadata: Json = {"name": wanted.name}
    if wanted.kind.namespaced:
        metadata["namespace"] = wanted.namespace
    metadata["labels"] = {**rendering.labels, **mark_labels}
    metadata["annotations"] = {**rendering.annotations, **mark_annotations}
    return {"apiVersion": wanted.kind.api_version, "kind": wanted.kind.kind, "metadata": metadata, **rendering.content}


def _marks(wanted: Wanted, rendering: Rendering, *, number: int) -> Marks:
    return Marks(
        source_id=wanted.source_id,
        stamp=rendering.stamp,
        number=number,
        source=wanted.source.text,
        placement=wanted.placement.uid,
        labels=tuple(sorted(rendering.labels)),
        annotations=tuple(sorted(rendering.annotations)),
    )


def _remove(row: Row, removal: Removal) -> ReplicaPlan:
    match removal:
        case Removal.NOW:
            return Delete(row.uid, row.resource_version)
        case Removal.UNMARK:
            ours = (REPLICA, *({SHARED} & set(row.annotations)))
            gone = (_removal("annotations", key) for key in ours)
            return Patch((*_tests(row), _removal("labels", SOURCE), *gone))
        case Removal.LATER | Removal.HELD | Removal.UNKNOWN:
            return Wait(f"its removal is {removal}")
        case _:
            assert_never(removal)


def _content_operations(wanted: Wanted, rendering: Rendering, row: Row) -> tuple[Operation, ...]:
    """Content, owned labels and annotations as rendered; what is not rendered any more goes (F3.3)."""
    marks = _marks(wanted, rendering, number=row.marks.number + 1)
    mark_labels, mark_annotations = mark_texts(marks, wanted.robot)
    return (
        *_tests(row),
        *({"op": "remove", "path": f"/{_escaped(key)}"} for key in row.keys if key not in rendering.content),
        *({"op": "add", "path": f"/{_escaped(key)}", "value": item} for key, item in rendering.content.items()),
        *(_removal("labels", key) for key in row.labels if key not in rendering.labels),
        *(_removal("annotations", key) for key in row.annotations if key not in rendering.annotations),
        *(_addition("labels", key, text) for key, text in {**rendering.labels, **mark_labels}.items()),
        *(_addition("annotations", key, text) for key, text in {**rendering.annotations, **mark_annotations}.items()),
    )


def _mark_operations(row: Row, marks: Marks) -> tuple[Operation, ...]:
    labels, annotations = mark_texts(replace(marks, number=marks.number + 1), row.robot)
    return (
        *_tests(row),
        *(_addition("labels", key, text) for key, text in labels.items()),
        *(_addition("annotations", key, text) for key, text in annotations.items()),
    )


def _tests(row: Row) -> tuple[Operation, ...]:
    return (
        {"op": "test", "path": "/metadata/uid", "value": row.uid},
        {"op": "test", "path": "/metadata/resourceVersion", "value": row.resource_version},
        *([] if row.annotated else [{"op": "add", "path": "/metadata/annotations", "value": {}}]),
    )


def _addition(field: str, key: str, text: str) -> Operation:
    return {"op": "add", "path": f"/metadata/{field}/{_escaped(key)}", "value": text}


def _removal(field: str, key: str) -> Operation:
    return {"op": "remove", "path": f"/metadata/{field}/{_escaped(key)}"}


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
