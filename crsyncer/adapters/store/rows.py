# ruff: noqa: S608 - the names of tables and columns are constants of this file
"""The tables: how a buffer becomes one transaction, and rows what they were. Runs in the store's thread."""

import json
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from sqlite3 import Connection
from typing import TYPE_CHECKING, Any

from crsyncer.adapters.store import codec
from crsyncer.adapters.store.buffer import Batch
from crsyncer.adapters.store.codec import (
    CURSORS,
    META,
    OUTBOX,
    RECORD,
    REFERENCES,
    RESTS,
    STATUSES,
    TOMBSTONES,
    VIEWS,
    Place,
)
from crsyncer.core.model import (
    Cursor,
    FinalizerRow,
    Key,
    Loaded,
    Pending,
    Record,
    ReferenceRow,
    Side,
    Source,
    Tombstone,
    View,
)

if TYPE_CHECKING:  # slow to import, and reading does not need it
    from sqlite_utils import Database

KEY = ("resource", "namespace", "name")
OBJECTS = "objects"
COLUMNS = (*VIEWS, *STATUSES.values(), RECORD)
"""The parts that are columns of `objects`: all that one status report changes is in one row, and so in one page."""
TABLES = (*RESTS.values(), OUTBOX, TOMBSTONES, CURSORS, META)
"""The parts that are tables with a column `row`."""
_SHORT = (*VIEWS, RECORD)
"""The parts that are not compressed: it would cost more than it saves."""
_WHERE = "resource = ? AND namespace = ? AND name = ?"
_PUT = "INSERT INTO {} VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET row = excluded.row WHERE row IS NOT excluded.row"
_REMOVE_EMPTY = f"DELETE FROM {OBJECTS} WHERE {_WHERE} AND coalesce({', '.join(COLUMNS)}) IS NULL"


def write(database: "Database", batch: Batch) -> None:
    """Write a batch, inside a transaction that the caller opened."""
    connection = database.conn
    for resource, keep_outbox in batch.forgotten.items():
        for table in (OBJECTS, *TABLES):
            if table != META and not (keep_outbox and table == OUTBOX):
                connection.execute(f"DELETE FROM {table} WHERE resource = ?", (resource,))
    objects: dict[tuple[str, ...], dict[str, bytes | str | None]] = {}
    for (part, *key), row in batch.rows.items():
        packed = row if row is None or part in _SHORT else codec.pack(row)
        if part in COLUMNS:
            objects.setdefault(tuple(key), {})[part] = packed
        elif packed is not None:
            connection.execute(_PUT.format(part), (*key, packed))
        else:
            connection.execute(f"DELETE FROM {part} WHERE {_WHERE}", key)
    of_columns: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for at, columns in objects.items():
        of_columns.setdefault(tuple(sorted(columns)), []).append(dict(zip(KEY, at, strict=True)) | columns)
    for alike in of_columns.values():
        database[OBJECTS].upsert_all(alike, pk=KEY)
    emptied = [at for at, columns in objects.items() if None in columns.values()]
    connection.executemany(_REMOVE_EMPTY, emptied)


def complete(connection: Connection, amended: Callable[[str, bytes, tuple[str, str, str]], str | None]) -> None:
    """Complete what is known of objects in the cloud by the marks that their bodies have: `amended`, if it is text."""
    view, rest = Side.CLOUD.value, RESTS[Side.CLOUD]
    found = connection.execute(
        f"SELECT o.resource, o.namespace, o.name, o.{view}, r.row FROM {OBJECTS} AS o"
        f" JOIN {rest} AS r USING (resource, namespace, name) WHERE o.{view} IS NOT NULL"
    )
    marked = [(text, *key) for *key, known, body in found if (text := amended(known, body, tuple(key))) is not None]
    connection.executemany(f"UPDATE {OBJECTS} SET {view} = ? WHERE {_WHERE}", marked)


def column(part: str) -> tuple[str, str]:
    """The column that holds a part, and its table."""
    return (part, OBJECTS) if part in COLUMNS else ("row", part)


def read_row(connection: Connection, place: Place) -> str | None:
    """The sealed text at a place."""
    part, *key = place
    name, table = column(part)
    found = connection.execute(f"SELECT {name} FROM {table} WHERE {_WHERE}", key).fetchone()
    return None if found is None or found[0] is None else codec.unpack(found[0])


def read_meta(connection: Connection) -> tuple[dict[str, Any], list[str]]:
    """The small values by name, and the names of those that are damaged."""
    values, damaged = {}, []
    for name, row in connection.execute(f"SELECT name, row FROM {META}"):
        try:
            values[name] = json.loads(codec.unseal(codec.unpack(row), (META, "", "", name)))
        except (TypeError, ValueError):
            damaged.append(name)
    return values, damaged


def read_resources(connection: Connection) -> list[str]:
    """The kinds of which anything is stored. Names that are not ASCII text are damaged, and left out."""
    tables = (OBJECTS, OUTBOX, TOMBSTONES, CURSORS)
    query = " UNION ".join(f"SELECT resource FROM {table}" for table in tables)
    names = (resource for (resource,) in connection.execute(query))
    return [name for name in names if isinstance(name, str) and name.isascii()]


def read_kind(
    connection: Connection, resource: str, newer: Batch, *, only_outbox: bool = False
) -> tuple[Loaded, list[Place]]:
    """A kind or its outbox, with what is not yet on disk, and which rows are damaged; raises sqlite3.Error.

    Where an observation is lost, so are that side's cursors: a gap must be listed anew, not be taken for an absence.
    """
    loaded, damaged = Loaded(), []
    keys: dict[tuple[str, str], Key] = {}
    pool: dict[Any, Any] = {}
    stored = _sealed(connection, resource, (OUTBOX,) if only_outbox else (CURSORS, TOMBSTONES, OUTBOX))
    objects = _sealed_objects(connection, resource) if not only_outbox else ()
    on_disk = ((place, sealed) for place, sealed in chain(stored, objects) if not newer.covers(place))
    for place, sealed in chain(on_disk, newer.sealed(resource)):
        part, _, namespace, name = place
        if only_outbox and part != OUTBOX:
            continue
        try:
            text = codec.unseal(sealed, place)
            if part == CURSORS:
                loaded.cursors[Side(name), namespace] = codec.load(Cursor, text, pool)
                continue
            about_finalizer = part == OUTBOX and name.startswith(codec.FINALIZER)
            name = name.removeprefix(codec.FINALIZER) if about_finalizer else name
            if "/" in name:
                raise ValueError(f"{place} is of a newer version")  # no object is called so
            key = keys.get((namespace, name)) or Key(pool.setdefault(namespace, namespace), name)
            keys[namespace, name] = key
            match part:
                case "record":
                    loaded.records[key] = codec.load(Record, text, pool)
                case "outbox" if about_finalizer:
                    loaded.finalizers[key] = codec.load(FinalizerRow, text, pool)
                case "outbox":
                    loaded.pending[key] = codec.load(Pending, text, pool)
                case "tombstones":
                    loaded.tombstones[key] = codec.load(Tombstone, text, pool)
                case _:
                    loaded.views[Side(part)][key] = codec.load(View, text, pool)
        except (TypeError, ValueError, IndexError):
            damaged.append(place)
    lost = {place[0] for place in damaged}
    for scope in [scope for scope in loaded.cursors if scope[0].value in lost]:
        del loaded.cursors[scope]
    return loaded, damaged


def read_references(connection: Connection, resource: str, newer: Batch) -> dict[Source, ReferenceRow]:
    """What primaries refer to of a kind; of a damaged row that is unknown. Raises sqlite3.Error."""
    found: dict[Source, ReferenceRow] = {}
    pool: dict[Any, Any] = {}
    stored = ((place, row) for place, row in _sealed(connection, resource, (REFERENCES,)) if not newer.covers(place))
    waiting = ((place, row) for place, row in newer.rows.items() if place[:2] == (REFERENCES, resource))
    for place, sealed in chain(stored, waiting):
        if sealed is None:
            continue
        try:
            source = codec.source_at(place)
        except ValueError:
            continue
        try:
            found[source] = codec.load(ReferenceRow, codec.unseal(sealed, place), pool)
        except (TypeError, ValueError):
            found[source] = ReferenceRow(unknown=True)
    return found


def _sealed(connection: Connection, resource: str, tables: Iterable[str]) -> Iterator[tuple[Place, str]]:
    for table in tables:
        for namespace, name, row in connection.execute(
            f"SELECT namespace, name, row FROM {table} WHERE resource = ?", (resource,)
        ):
            yield (table, resource, namespace, name), codec.unpack(row)


def _sealed_objects(connection: Connection, resource: str) -> Iterator[tuple[Place, str]]:
    query = f"SELECT namespace, name, {', '.join(_SHORT)} FROM {OBJECTS} WHERE resource = ?"
    for namespace, name, *packed in connection.execute(query, (resource,)):
        for part, row in zip(_SHORT, packed, strict=True):
            if row is not None:
                yield (part, resource, namespace, name), codec.unpack(row)
