"""Between the words of the model and what a row holds.

Dataclasses become JSON arrays in the order of their fields, so a field may be added at the end, with a default,
without a migration. Every text is sealed with a checksum over itself and the place it belongs to: SQLite's own check
finds a broken tree, not a flipped bit in a name or a revision, and deletions are decided on these.
"""

import hashlib
import json
import zlib
from collections.abc import Callable
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any, TypeVar

from crsyncer.core.model import Cursor, Json, Pending, Record, Side, Stamp, Tombstone, View

Plain = Cursor | Pending | Record | Tombstone
T = TypeVar("T", Cursor, Pending, Tombstone)

Place = tuple[str, str, str, str]
"""Where a row belongs: part (a table or a column of it), resource, namespace, name."""

CLOUD, ROBOT, RECORD = Side.CLOUD.value, Side.ROBOT.value, "record"
OUTBOX, TOMBSTONES, CURSORS, META = "outbox", "tombstones", "cursors", "meta"


@dataclass(frozen=True, slots=True)
class Copy:
    """An object in two halves: what a status report changes, and the rest, which is then not written again."""

    view: str
    status: str
    """Sealed array of resourceVersion and, where there is one, the status."""
    rest: bytes
    """The body with holes for these, so that the order of keys survives."""
    digest: bytes
    """Of place and rest."""


Row = Copy | str


def dump(value: Any) -> str:
    """Compact JSON. Escaped to ASCII, so that whatever JSON can say can be stored, lone surrogates included."""
    return json.dumps(value, separators=(",", ":"))


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


def unpack(packed: bytes) -> str:
    """The text again, or one that cannot be unsealed where that is not possible."""
    try:
        return zlib.decompress(packed).decode()
    except (TypeError, ValueError, zlib.error):
        return ""


def _sum(text: str, place: Place) -> int:
    return zlib.crc32("\0".join((*place, text)).encode(errors="surrogatepass"))


def _values(kind: type) -> Callable[[Any], tuple[Any, ...]]:
    return attrgetter(*(field.name for field in fields(kind)))


_view, _stamp = _values(View), _values(Stamp)
_STAMP = [field.name for field in fields(View)].index("stamp")
_GENERATIONS = [field.name for field in fields(Record)].index("generations")


def dump_copy(view: View, body: Json, place: Place) -> Copy:
    """Split and encode an object, without its managedFields."""
    values = list(_view(view))
    if view.stamp is not None:
        values[_STAMP] = _stamp(view.stamp)
    metadata = {name: value for name, value in body["metadata"].items() if name != "managedFields"}
    moving = [metadata.get("resourceVersion")]
    if "resourceVersion" in metadata:
        metadata["resourceVersion"] = None
    rest = body | {"metadata": metadata}
    if "status" in body:
        moving.append(body["status"])
        rest["status"] = None
    encoded = dump(rest).encode()
    return Copy(seal(dump(values), place), seal(dump(moving), place), encoded, rest_digest(encoded, place))


def load_body(status: str, rest: bytes, place: Place) -> Json:
    """The whole object again; raises ValueError."""
    body: Json = json.loads(rest)
    version, *status_values = json.loads(unseal(status, place))
    if "resourceVersion" in body["metadata"]:
        body["metadata"]["resourceVersion"] = version
    if status_values:
        body["status"] = status_values[0]
    return body


def rest_digest(rest: bytes, place: Place) -> bytes:
    """64 bits by which two versions of one object's rest are told apart, and a damaged one from a good one."""
    return hashlib.blake2b("\0".join(place).encode() + b"\0" + rest, digest_size=8).digest()


def load_view(text: str, pool: dict[Any, Any]) -> View:
    """A view whose repeated strings are shared with everything else that was loaded through the pool."""
    values = _pooled(json.loads(text), pool)
    if values[_STAMP] is not None:
        stamp = tuple(_as_tuple(value, pool) for value in _pooled(values[_STAMP], pool))
        values[_STAMP] = pool.setdefault(stamp, Stamp(*stamp))
    return View(*values)


def dump_fields(value: Plain) -> str:
    """Encode a record, outbox row, tombstone or cursor."""
    return dump([getattr(value, each.name) for each in fields(value)])


def load(kind: type[T], text: str) -> T:
    """Decode an outbox row, tombstone or cursor; raises ValueError or TypeError."""
    return kind(*json.loads(text))


def load_record(text: str, pool: dict[Any, Any]) -> Record:
    """Decode a record; raises ValueError or TypeError."""
    values = _pooled(json.loads(text), pool)
    values[_GENERATIONS] = tuple(tuple(pair) for pair in values[_GENERATIONS])
    return Record(*values)


def _pooled(values: list[Any], pool: dict[Any, Any]) -> list[Any]:
    return [pool.setdefault(value, value) if type(value) is str else value for value in values]


def _as_tuple(value: Any, pool: dict[Any, Any]) -> Any:
    if isinstance(value, list):
        keys = tuple(_pooled(value, pool))
        return pool.setdefault(keys, keys)
    return value
