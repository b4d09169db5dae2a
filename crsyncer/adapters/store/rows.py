# ruff: noqa: S608 - the names of tables and columns are constants of this file
"""The tables: how a buffer becomes one transaction, and rows what they were. Runs in the store's thread."""

import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from sqlite3 import Connection
from typing import TYPE_CHECKING, Any

from crsyncer.adapters.store import codec
from crsyncer.adapters.store.codec import CLOUD, CURSORS, META, OUTBOX, RECORD, ROBOT, TOMBSTONES, Copy, Place, Row
from crsyncer.core.model import Cursor, Key, Loaded, Pending, Side, Tombstone

if TYPE_CHECKING:  # the library is slow to import, and who only reads needs nothing of it
    from sqlite_utils import Database

Where = tuple[str, str, str]
"""Resource, namespace, name."""

_KEY = ("resource", "namespace", "name")
_WHERE = "resource = ? AND namespace = ? AND name = ?"
_COLUMNS = ("cloud", "cloud_status", "cloud_rest", "robot", "robot_status", "robot_rest", "record")
_FIND = f"SELECT id, {', '.join(_COLUMNS)} FROM objects WHERE {_WHERE}"
_UPDATE = f"UPDATE objects SET {', '.join(f'{name} = ?' for name in _COLUMNS)} WHERE id = ?"
_INSERT = f"INSERT INTO objects (resource, namespace, name, {', '.join(_COLUMNS)}) VALUES ({', '.join('?' * 10)})"
_FIRST_COLUMN = {CLOUD: 0, ROBOT: 3}


@dataclass(frozen=True, slots=True)
class Batch:
    """Writes that belong into one transaction; of several to one place, the newest."""

    rows: dict[Place, Row | None] = field(default_factory=dict)
    forgotten: dict[str, bool] = field(default_factory=dict)
    """Kinds to be forgotten before the rows are written, and whether their outbox stays."""

    def forget(self, resource: str, *, keep_outbox: bool) -> None:
        """Forget a kind, with what was put of it so far."""
        for place in [place for place in self.rows if _is_of(place, resource, keep_outbox=keep_outbox)]:
            del self.rows[place]
        self.forgotten[resource] = keep_outbox and self.forgotten.get(resource, True)

    def absorb(self, newer: "Batch") -> None:
        """Add what was put later."""
        for resource, keep_outbox in newer.forgotten.items():
            self.forget(resource, keep_outbox=keep_outbox)
        self.rows.update(newer.rows)

    def covers(self, place: Place) -> bool:
        """Whether what is on disk at a place does not count any more."""
        keep_outbox = self.forgotten.get(place[1])
        return place in self.rows or (keep_outbox is not None and _is_of(place, place[1], keep_outbox=keep_outbox))

    def sealed(self, resource: str) -> Iterator[tuple[Place, str]]:
        """What is to be written of a kind, as sealed texts."""
        for place, row in self.rows.items():
            if place[1] == resource and place[0] != META and row is not None:
                yield place, row.view if isinstance(row, Copy) else row

    def __bool__(self) -> bool:
        return bool(self.rows or self.forgotten)


def _is_of(place: Place, resource: str, *, keep_outbox: bool) -> bool:
    return place[1] == resource and place[0] != META and not (keep_outbox and place[0] == OUTBOX)


def write(database: "Database", batch: Batch) -> None:
    """Write a batch, inside a transaction that the caller opened."""
    connection = database.conn
    for resource, keep_outbox in batch.forgotten.items():
        _forget(connection, resource, keep_outbox=keep_outbox)
    objects: dict[Where, dict[str, Row | None]] = {}
    tables: dict[str, dict[Where, Any]] = {}
    for place, row in batch.rows.items():
        part, key = place[0], place[1:]
        if part in (CLOUD, ROBOT, RECORD):
            objects.setdefault(key, {})[part] = row
        else:
            tables.setdefault(part, {})[key] = row
    for key, parts in objects.items():
        _write_object(connection, key, parts)
    for table, rows in tables.items():
        _write_table(database, table, rows)


def _write_object(connection: Connection, key: Where, parts: dict[str, Row | None]) -> None:
    found = connection.execute(_FIND, key).fetchone()
    identifier, *old = found or (None, *(None for _ in _COLUMNS))
    new = list(old)
    rests: dict[str, bytes | None] = {}
    for part, row in parts.items():
        if part == RECORD:
            new[6] = row
            continue
        at = _FIRST_COLUMN[part]
        if isinstance(row, Copy):
            new[at : at + 3] = row.view, codec.pack(row.status), row.digest
            if old[at + 2] != row.digest:
                rests[part] = zlib.compress(row.rest, 1)
        else:
            new[at : at + 3] = None, None, None
            rests[part] = None
    if identifier is None:
        if not any(new):
            return
        identifier = connection.execute(_INSERT, (*key, *new)).lastrowid
    elif not any(new):
        connection.execute("DELETE FROM objects WHERE id = ?", (identifier,))
    elif new != old:
        connection.execute(_UPDATE, (*new, identifier))
    for part, rest in rests.items():
        at = _rest_id(identifier, part)
        if rest is None:
            connection.execute("DELETE FROM rests WHERE id = ?", (at,))
        else:
            connection.execute("INSERT OR REPLACE INTO rests VALUES (?, ?)", (at, rest))


def _rest_id(identifier: int, part: str) -> int:
    return 2 * identifier + (part == ROBOT)


def _write_table(database: "Database", table: str, rows: dict[Where, str | None]) -> None:
    gone = [key for key, row in rows.items() if row is None]
    database.conn.executemany(f"DELETE FROM {table} WHERE {_WHERE}", gone)
    kept = [dict(zip((*_KEY, "row"), (*key, codec.pack(row)), strict=True)) for key, row in rows.items() if row]
    if kept:
        database[table].upsert_all(kept, pk=_KEY)


def _forget(connection: Connection, resource: str, *, keep_outbox: bool) -> None:
    ids = "SELECT {} FROM objects WHERE resource = ?"
    for expression in ("2 * id", "2 * id + 1"):
        connection.execute(f"DELETE FROM rests WHERE id IN ({ids.format(expression)})", (resource,))
    for table in ("objects", TOMBSTONES, CURSORS, *(() if keep_outbox else (OUTBOX,))):
        connection.execute(f"DELETE FROM {table} WHERE resource = ?", (resource,))


def read_copy(connection: Connection, place: Place) -> Copy | None:
    """An object's body; None when there is none, or none that can be trusted."""
    part, *key = place
    row = connection.execute(
        f"SELECT {part}, {part}_status, {part}_rest, id FROM objects WHERE {_WHERE}", key
    ).fetchone()
    if row is None or row[0] is None:
        return None
    rest = connection.execute("SELECT body FROM rests WHERE id = ?", (_rest_id(row[3], part),)).fetchone()
    try:
        body = zlib.decompress(rest[0])
        if codec.rest_digest(body, place) != row[2]:
            return None
        return Copy(row[0], codec.unpack(row[1]), body, row[2])
    except (TypeError, ValueError, zlib.error):
        return None


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
    """The kinds of which anything is stored."""
    tables = ("objects", OUTBOX, TOMBSTONES, CURSORS)
    query = " UNION ".join(f"SELECT resource FROM {table}" for table in tables)
    return [resource for (resource,) in connection.execute(query)]


def read_kind(connection: Connection, resource: str, newer: Batch) -> tuple[Loaded, list[Place]]:
    """A kind, with what is not yet on disk, and which rows of it are damaged; raises sqlite3.Error.

    Where an observation is lost, so are that side's cursors: a gap must be listed anew, not be taken for an absence.
    """
    loaded, damaged = Loaded(), []
    keys: dict[tuple[str, str], Key] = {}
    pool: dict[Any, Any] = {}
    on_disk = ((place, sealed) for place, sealed in _sealed(connection, resource) if not newer.covers(place))
    for place, sealed in chain(on_disk, newer.sealed(resource)):
        part, _, namespace, name = place
        try:
            text = codec.unseal(sealed, place)
            if part == CURSORS:
                loaded.cursors[Side(name), namespace] = codec.load(Cursor, text)
                continue
            key = keys.get((namespace, name)) or Key(pool.setdefault(namespace, namespace), name)
            keys[namespace, name] = key
            match part:
                case "record":
                    loaded.records[key] = codec.load_record(text, pool)
                case "outbox":
                    loaded.pending[key] = codec.load(Pending, text)
                case "tombstones":
                    loaded.tombstones[key] = codec.load(Tombstone, text)
                case _:
                    loaded.views[Side(part)][key] = codec.load_view(text, pool)
        except (TypeError, ValueError, IndexError):
            damaged.append(place)
    lost = {place[0] for place in damaged}
    for scope in [scope for scope in loaded.cursors if scope[0].value in lost]:
        del loaded.cursors[scope]
    return loaded, damaged


def _sealed(connection: Connection, resource: str) -> Iterator[tuple[Place, str]]:
    for table in (CURSORS, TOMBSTONES, OUTBOX):
        for namespace, name, row in connection.execute(
            f"SELECT namespace, name, row FROM {table} WHERE resource = ?", (resource,)
        ):
            yield (table, resource, namespace, name), codec.unpack(row)
    query = "SELECT namespace, name, cloud, robot, record FROM objects WHERE resource = ?"
    for namespace, name, *parts in connection.execute(query, (resource,)):
        for part, text in zip((CLOUD, ROBOT, RECORD), parts, strict=True):
            if text is not None:
                yield (part, resource, namespace, name), text
