"""Between the words of the model and what a row holds.

Dataclasses become JSON arrays in the order of their fields, but for those at the end that have their default: so a
field may be added at the end, with a default, without a migration. Every text is sealed with a checksum over itself and
the place it belongs to: SQLite's own check finds a broken tree, not a flipped bit in a name or a revision, and
deletions are decided on these.
"""

import json
import zlib
from dataclasses import fields, replace
from typing import Any, TypeVar

from crsyncer.core.content.annotations import ROBOT_LABEL, SHARED
from crsyncer.core.content.object_content import labels
from crsyncer.core.content.replica_mark import REPLICA, read_replica_mark
from crsyncer.core.holds.hold_list import DELETION_HOLDS
from crsyncer.core.model import (
    Cursor,
    FinalizerRow,
    Json,
    Key,
    OwnStatus,
    Pending,
    Record,
    ReferenceRow,
    ReplicaMark,
    Side,
    Source,
    Stamp,
    Tombstone,
    View,
)
from crsyncer.core.pair.actions import HoldReason

Plain = Cursor | FinalizerRow | Pending | Record | ReferenceRow | Tombstone
T = TypeVar("T", Cursor, FinalizerRow, Pending, Record, ReferenceRow, Tombstone, View)

Place = tuple[str, str, str, str]
"""Where a row belongs: part (a table or a column of it), resource, namespace, name."""

VIEWS = tuple(side.value for side in Side)
"""Parts that hold what is known of an object on a side."""
STATUSES = {side: f"{side.value}_status" for side in Side}
"""Parts that hold the resourceVersion and, where there is one, the status: a status report changes nothing else."""
RESTS = {side: f"{side.value}_rest" for side in Side}
"""Parts that hold the rest of the body, with holes for these, so that the order of keys survives."""
RECORD, OUTBOX, TOMBSTONES, CURSORS, META = "record", "outbox", "tombstones", "cursors", "meta"
REFERENCES = "related_references"
"""What primaries refer to; the resource of a row is that of the originals."""
STAYING = (META, REFERENCES)
"""The parts that stay when a kind is forgotten."""
FINALIZER = "finalizer/"
"""Begins the name of an outbox row that is about the finalizer of an object, instead of its status."""

_COMPACT = json.JSONEncoder(separators=(",", ":"))


def dump(value: Any) -> str:
    """Compact JSON. Escaped to ASCII, so that whatever JSON can say can be stored, lone surrogates included."""
    return _COMPACT.encode(value)


def seal(text: str, place: Place) -> str:
    """The text with a checksum over it and its place."""
    return f"{text}#{_sum(text, place):08x}"


def tolerant(raw: bytes) -> str:
    """Decode what SQLite has as a text, whatever it became: that it is damaged is for `unseal` to find."""
    return raw.decode(errors="surrogateescape")


def unseal(sealed: str, place: Place) -> str:
    """The text; raises ValueError or TypeError when it, or the place that it was found at, is not what was written."""
    text, mark, found = sealed[:-9], sealed[-9:-8], sealed[-8:]
    if mark != "#" or found != f"{_sum(text, place):08x}":
        raise ValueError(f"checksum of {place}")
    return text


def pack(text: str) -> bytes:
    """A text as it is kept where it may be long."""
    return zlib.compress(text.encode(), 1)


def unpack(packed: bytes | str) -> str:
    """The text again, or one that cannot be unsealed where that is not possible."""
    if isinstance(packed, str):
        return packed
    try:
        return zlib.decompress(packed).decode()
    except (TypeError, ValueError, zlib.error):
        return ""


def _sum(text: str, place: Place) -> int:
    return zlib.crc32("\0".join((*place, text)).encode(errors="surrogatepass"))


_STAMP = [field.name for field in fields(View)].index("stamp")
_SHARED = [field.name for field in fields(View)].index("shared")
_REPLICA = [field.name for field in fields(View)].index("replica")
_OWN = [field.name for field in fields(Record)].index("own")
_CALLED: dict[type, int] = {kind: [field.name for field in fields(kind)].index("called") for kind in (View, Record)}


def object_places(side: Side, resource: str, key: Key) -> tuple[Place, Place, Place]:
    """Where an object is: its view, its status, and the rest of its body."""
    view, status, rest = (
        (part, resource, key.namespace, key.name) for part in (side.value, STATUSES[side], RESTS[side])
    )
    return view, status, rest


def finalizer_place(resource: str, key: Key) -> Place:
    """Where the row of an object's finalizer is: beside that of its status, under a name that no object can have."""
    return OUTBOX, resource, key.namespace, FINALIZER + key.name


def reference_place(resource: str, source: Source) -> Place:
    """Where the row of what a primary refers to is. Names of policies, entries and objects have no slash."""
    (policy, entry), key = source
    return REFERENCES, resource, key.namespace, f"{policy}/{entry}/{key.name}"


def source_at(place: Place) -> Source:
    """The entry and the primary that a row is of; raises ValueError."""
    policy, entry, name = place[3].split("/", 2)
    return (policy, entry), Key(place[2], name)


def dump_object(view: View, body: Json, places: tuple[Place, ...]) -> dict[Place, str | None]:
    """Encode an object, without its managedFields, as what belongs at its places."""
    values = _values(view)
    if view.stamp is not None:
        values[_STAMP] = _values(view.stamp)
    metadata = {name: value for name, value in body["metadata"].items() if name != "managedFields"}
    moving = [metadata.get("resourceVersion")]
    if "resourceVersion" in metadata:
        metadata["resourceVersion"] = None
    rest = body | {"metadata": metadata, "status": None}  # a hole also where none is: the first one changes no more
    if "status" in body:
        moving.append(body["status"])
    return {place: seal(dump(part), place) for place, part in zip(places, (values, moving, rest), strict=True)}


def with_replica(view: str, rest: bytes, key: tuple[str, str, str]) -> str | None:
    """What is known of an object in the cloud, with the fleet's marks of its body; None: it has none, or is damaged."""
    body_text = unpack(rest)
    if REPLICA not in body_text:
        return None
    place = (Side.CLOUD.value, *key)
    try:
        body = json.loads(unseal(body_text, (RESTS[Side.CLOUD], *key)))
        values = json.loads(unseal(unpack(view), place))
        mark = read_replica_mark(body, labels(body).get(ROBOT_LABEL, ""))
    except (TypeError, ValueError):
        return None
    if mark is None or len(values) > _REPLICA:
        return None
    return seal(dump([*values, *_FIELDS[View][1][len(values) : _REPLICA], mark]), place)


def with_shared(view: str, rest: bytes, key: tuple[str, str, str]) -> str | None:
    """What is known of an object that takes no status, with that; None: it takes one, or is damaged."""
    body_text = unpack(rest)
    if SHARED not in body_text:
        return None
    place = (Side.CLOUD.value, *key)
    try:
        shared = SHARED in (json.loads(unseal(body_text, (RESTS[Side.CLOUD], *key)))["metadata"]["annotations"] or {})
        values = json.loads(unseal(unpack(view), place))
    except (KeyError, TypeError, ValueError):
        return None
    if not shared or len(values) > _SHARED:
        return None
    return seal(dump([*values, *_FIELDS[View][1][len(values) : _SHARED], True]), place)


def load_body(rows: list[str | None], places: tuple[Place, ...]) -> Json | None:
    """The whole object again, of its status and the rest; None without them. Raises ValueError or TypeError."""
    sealed = [row for row in rows if row is not None]
    if len(sealed) < len(places):
        return None
    (version, *status_values), body = (json.loads(unseal(*each)) for each in zip(sealed, places, strict=True))
    if "resourceVersion" in body["metadata"]:
        body["metadata"]["resourceVersion"] = version
    if status_values:
        body["status"] = status_values[0]
    else:
        body.pop("status", None)
    whole: Json = body
    return whole


def dump_fields(value: Plain) -> str:
    """Encode a record, outbox row, tombstone or cursor."""
    return dump(_values(value))


def load(kind: type[T], text: str, pool: dict[Any, Any]) -> T:
    """Decode what is known of an object, or a cursor; raises ValueError or TypeError, also for a field or a side that
    only a newer version knows. What that holds a deletion for, and we do not know, is held as a mass deletion is.

    Repeated strings, stamps and lists of keys are shared with everything else that was loaded through the pool.
    """
    values = json.loads(text)
    if kind is not Pending:  # its status is JSON, and stays it
        values = [_shared(value, pool) for value in values]
    if kind is View and len(values) > _STAMP and values[_STAMP] is not None:
        values[_STAMP] = pool.setdefault(("stamp", values[_STAMP]), Stamp(*values[_STAMP]))
    if kind is View and len(values) > _REPLICA and values[_REPLICA] is not None:
        values[_REPLICA] = pool.setdefault(("replica", values[_REPLICA]), ReplicaMark(*values[_REPLICA]))
    called = _CALLED.get(kind, len(values))
    if called < len(values) and values[called] is not None:
        values[called] = Key(*values[called])
    if kind is Record and len(values) > _OWN and values[_OWN] is not None:
        values[_OWN] = OwnStatus(*values[_OWN])
    return _understood(kind(*values))


def _understood(value: T) -> T:
    if isinstance(value, FinalizerRow):
        Side(value.side)
    if isinstance(value, Tombstone) and value.held and value.held not in DELETION_HOLDS:
        return replace(value, held=HoldReason.MASS_DELETION.value)
    return value


def _shared(value: Any, pool: dict[Any, Any]) -> Any:
    if isinstance(value, list):
        value = tuple(_shared(each, pool) for each in value)
    return pool.setdefault(value, value) if isinstance(value, str | tuple) else value


def _values(value: Plain | View | Stamp) -> list[Any]:
    names, defaults = _FIELDS[type(value)]
    values = [getattr(value, name) for name in names]
    while values and values[-1] == defaults[len(values) - 1]:
        values.pop()
    return values


_FIELDS = {
    kind: (tuple(each.name for each in fields(kind)), tuple(each.default for each in fields(kind)))
    for kind in (Cursor, FinalizerRow, Pending, Record, ReferenceRow, Tombstone, View, Stamp)
}
"""The names of each class's fields, and their defaults."""
