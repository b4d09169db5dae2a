# ruff: noqa: S608 - the names of tables and columns are constants
"""Opening the database file, whatever state it is in. Runs in the store's thread."""

import os
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from sqlite_utils import Database

from crsyncer.adapters.store import codec, rows
from crsyncer.adapters.store.codec import META, OUTBOX, RECORD, TOMBSTONES, Due, Place
from crsyncer.adapters.store.migrations import STEPS, Step, migrate
from crsyncer.adapters.store.statedir import APPLICATION_ID, COMPANIONS, create_empty
from crsyncer.errors import StoreError

PAGE_BYTES = 2048
"""An object's row is 1 to 1.5 KB, and a whole page is written when one changes."""
_KEEP_BROKEN = 3
_CIRCUMSTANCES = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_READONLY,
}


class _Unusable(Exception):
    """The file is not a database of ours that we can go on with; `ours` says whether to look for rows in it."""

    def __init__(self, message: str, *, ours: bool) -> None:
        super().__init__(message)
        self.ours = ours


@dataclass(slots=True)
class Opened:
    """A database that is ready, and what had to be done for that."""

    database: Database
    schema: int
    meta: dict[str, str] = field(default_factory=dict)
    """Sealed, by name."""
    rebuilt: bool = False
    notes: list[str] = field(default_factory=list)
    refusal: str = ""
    """Why it could only be read."""
    thaw: "Callable[[rows.Batch], Opened] | None" = None
    """Where it could only be read: opens it for a batch to be written; raises SyncError while that is not possible."""

    def close(self) -> None:
        """Fold the WAL into the file, as far as the disk permits, and close it."""
        with suppress(sqlite3.Error):
            self.database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        self.database.close()


@dataclass(frozen=True, slots=True)
class _Aside:
    """A set of files that was renamed."""

    path: Path
    why: _Unusable


def open_database(path: Path, *, now: float, steps: Sequence[Step] = STEPS, patience: float = 5.0) -> Opened:
    """Open, check and migrate the database; one that cannot be used is set aside and built anew (S6.5).

    Raises StoreError only when the disk does not let us write; its cause is the error that it was.
    """
    try:
        opened = _open(path, now=now, steps=steps, patience=patience)
        if isinstance(opened, _Aside):
            opened = _rebuilt(opened, path, now=now, steps=steps, patience=patience)
        opened.meta = rows.read_meta(opened.database.conn)
    except (OSError, sqlite3.Error) as error:
        raise StoreError(
            f"cannot open {path}: {error}",
            hint="check owner, mode and free space of the state directory, and that no other program has the file open",
        ) from error
    return opened


def _rebuilt(aside: _Aside, path: Path, *, now: float, steps: Sequence[Step], patience: float) -> Opened:
    """A new database with what could be salvaged; where the disk has no room for it the old one is put back."""
    try:
        opened = _open(path, now=now, steps=steps, patience=patience)
        if isinstance(opened, _Aside):
            raise StoreError(f"a new {path} is unusable too: {opened.why}", hint="check the disk")
        with ExitStack() as stack:
            stack.callback(opened.close)
            _tell_and_salvage(aside, opened)
            stack.pop_all()
    except (OSError, sqlite3.Error):
        for companion in COMPANIONS:
            path.with_name(path.name + companion).unlink(missing_ok=True)
            with suppress(FileNotFoundError):
                os.rename(aside.path.with_name(aside.path.name + companion), path.with_name(path.name + companion))
        raise
    return opened


def is_circumstance(error: sqlite3.Error) -> bool:
    """Whether the file may be fine, and the disk or another program is in the way."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    return code & 0xFF in _CIRCUMSTANCES and code != sqlite3.SQLITE_IOERR_SHORT_READ


def _open(path: Path, *, now: float, steps: Sequence[Step], patience: float) -> "Opened | _Aside":
    wal = path.with_name(path.name + "-wal")
    if _size(wal) and not _size(path):
        return _Aside(_set_aside(path, now), _Unusable("its main file is missing", ours=False))
    create_empty(path)
    with ExitStack() as stack:
        connection = stack.enter_context(closing(sqlite3.connect(path, timeout=patience)))
        connection.text_factory = codec.tolerant
        try:
            schema = _check(connection, steps)
            _configure(connection, new=not schema)
            opened = Opened(Database(connection), schema=len(steps))
            migrate(opened.database, steps)
            _check_tables(connection, steps)
            if _pragma(connection, "freelist_count"):
                connection.execute("PRAGMA incremental_vacuum").fetchall()
        except Exception as error:
            # Anything can come out of a damaged file, undecodable error messages of SQLite's own included.
            if isinstance(error, OSError) or (isinstance(error, sqlite3.Error) and is_circumstance(error)):
                raise
            why = error if isinstance(error, _Unusable) else _Unusable(str(error), ours=True)
            # While it is open: closing it would fold the WAL into it, or delete it.
            return _Aside(_set_aside(path, now), why)
        stack.pop_all()
    if 0 < schema < opened.schema:
        opened.notes.append(f"{path.name} was migrated from schema {schema} to {opened.schema}")
    return opened


def schema_of(connection: sqlite3.Connection) -> int:
    """The schema of a database as far as it is ours and sound, 0 for a new one; raises StoreError where it is not.

    The error's message is why it would be set aside.
    """
    try:
        return _check(connection, STEPS)
    except _Unusable as error:
        raise StoreError(str(error)) from None


def read_only(connection: sqlite3.Connection) -> Opened:
    """A sound database of this version, as it is; raises StoreError or sqlite3.Error where it is not that."""
    schema = schema_of(connection)
    if schema != len(STEPS):
        raise StoreError(f"it has to be migrated from schema {schema}")
    try:
        _check_tables(connection, STEPS)
    except _Unusable as error:
        raise StoreError(str(error)) from None
    return Opened(Database(connection), schema, meta=rows.read_meta(connection))


def empty() -> Opened:
    """A database in memory."""
    database = Database(sqlite3.connect(":memory:"))
    return Opened(database, migrate(database))


def _check(connection: sqlite3.Connection, steps: Sequence[Step]) -> int:
    """The schema of the file, 0 for a new one; raises _Unusable."""
    # Exclusive: nobody else may write, and the WAL's index stays in memory instead of in a -shm file.
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    owner, schema = _pragma(connection, "application_id"), _pragma(connection, "user_version")
    if owner != APPLICATION_ID:
        if owner or schema or connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            raise _Unusable("it was written by another program", ours=False)
        return 0
    if schema > len(steps):
        raise _Unusable(f"it was written by a newer crsyncer (schema {schema})", ours=True)
    # The thorough sister of quick_check: an index that misses an object would make it look absent.
    found = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
    if found != "ok":
        raise _Unusable(found.replace("\n", " "), ours=True)
    return schema


def _check_tables(connection: sqlite3.Connection, steps: Sequence[Step]) -> None:
    """Compare the tables with freshly made ones: SQLite believes what stands there, flipped bits included."""
    with closing(sqlite3.connect(":memory:")) as fresh:
        migrate(Database(fresh), steps)
        tables = "SELECT type, name, sql FROM sqlite_master ORDER BY name"
        if connection.execute(tables).fetchall() != fresh.execute(tables).fetchall():
            raise _Unusable("its tables are not what they should be", ours=True)


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def _configure(connection: sqlite3.Connection, *, new: bool) -> None:
    layout = (f"page_size = {PAGE_BYTES}", "auto_vacuum = INCREMENTAL")
    for setting in (
        # Only where there is none yet, since opening must write nothing: a robot whose disk is full starts too.
        *(layout if new else ()),
        "journal_mode = WAL",
        "synchronous = FULL",
        "wal_autocheckpoint = 256",
        f"journal_size_limit = {4 << 20}",
        "cache_size = -1024",
        # Before there is a table: a power cut in the middle must not make it look like another program's.
        *((f"application_id = {APPLICATION_ID}",) if new else ()),
    ):
        connection.execute(f"PRAGMA {setting}").fetchall()


def _tell_and_salvage(aside: _Aside, opened: Opened) -> None:
    opened.rebuilt = True
    opened.notes.append(f"the database could not be used ({aside.why}); it is now {aside.path.name}")
    if aside.why.ours:
        saved = _salvage(aside.path, opened.database)
        # The index of the WAL that reading made.
        aside.path.with_name(aside.path.name + "-shm").unlink(missing_ok=True)
        opened.notes.append("saved from it: " + (", ".join(f"{n} {part}" for part, n in saved.items()) or "nothing"))


def _set_aside(path: Path, now: float) -> Path:
    """Rename the whole set; the newest few are kept for a post mortem, so that they cannot fill the disk."""
    stamp = datetime.fromtimestamp(now, UTC).strftime("%Y%m%dT%H%M%SZ")
    aside = path.with_name(f"{path.name}.broken-{stamp}")
    while any(aside.with_name(aside.name + companion).exists() for companion in COMPANIONS):
        aside = aside.with_name(aside.name + "+")
    for companion in COMPANIONS:
        with suppress(FileNotFoundError):
            os.rename(path.with_name(path.name + companion), aside.with_name(aside.name + companion))
    broken = [found for found in path.parent.glob(f"{path.name}.broken-*") if not found.name.endswith(COMPANIONS[1:])]
    for old in sorted(broken, key=lambda found: found.name)[:-_KEEP_BROKEN]:
        for companion in COMPANIONS:
            old.with_name(old.name + companion).unlink(missing_ok=True)
    return aside


def _size(path: Path) -> int:
    """Bytes, none where there is no such file."""
    return path.stat().st_size if path.exists() else 0


def _salvage(aside: Path, database: Database) -> dict[str, int]:
    """Carry over what cannot be listed anew and is still as it was written. No cursor, and so no copies."""
    saved: dict[str, int] = {}
    for part in (OUTBOX, RECORD, TOMBSTONES, META):
        batch = rows.Batch()
        # From both ends: a broken page in the middle stops a scan, not the one that comes the other way.
        for order in ("ASC", "DESC"):
            with (
                suppress(sqlite3.Error, UnicodeError),
                closing(sqlite3.connect(f"file:{aside}?mode=ro", uri=True)) as old,
            ):
                old.text_factory = codec.tolerant
                _collect(old, part, order, batch)
        if batch:
            with database.atomic():
                rows.write(database, batch)
            saved[part] = len(batch.rows)
    return saved


def _collect(old: sqlite3.Connection, part: str, order: str, batch: rows.Batch) -> None:
    column, table = ("record", "objects") if part == RECORD else ("row", part)
    by = "id" if part == RECORD else f"resource {order}, namespace {order}, name"
    found = old.execute(
        f"SELECT resource, namespace, name, {column} FROM {table} WHERE {column} IS NOT NULL ORDER BY {by} {order}"
    )
    for resource, namespace, name, row in found:
        place: Place = (part, resource, namespace, name)
        with suppress(TypeError, ValueError, IndexError, AttributeError):
            sealed = row if isinstance(row, str) else codec.unpack(row)
            text = codec.unseal(sealed, place)
            if part == OUTBOX:
                pending = codec.load_pending(text)
                batch.rows[place] = Due(sealed, pending.since, pending.dead)
            else:
                batch.rows[place] = sealed
