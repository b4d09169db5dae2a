# ruff: noqa: S608 - the names of tables and columns are constants
"""Opening the database, whatever state its files and its disk are in (S6.5). Runs in the store's thread."""

import os
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from sqlite_utils import Database

from crsyncer.adapters.store import codec, rows, schema
from crsyncer.adapters.store.buffer import Batch
from crsyncer.adapters.store.codec import META, OUTBOX, RECORD, REFERENCES, TOMBSTONES, Place
from crsyncer.adapters.store.schema import Unusable
from crsyncer.adapters.store.statedir import Files, Lock, Mark, create_empty, prepare, refuses, sync_names
from crsyncer.errors import StoreError

PAGE_BYTES = 2048
"""An object's row is 1 to 1.5 KB, and a whole page is written when one changes."""
_KEEP_BROKEN = 3
_PATIENCE_SECONDS = 5.0
"""How long another program may keep the file locked."""


@dataclass(slots=True)
class Opened:
    """A database that is ready, and what had to be done for that."""

    database: Database
    meta: dict[str, Any] = field(default_factory=dict)
    rebuilt: bool = False
    notes: list[str] = field(default_factory=list)
    refusal: str = ""
    """Why it can only be read; empty: it can be written."""
    thaw: "Callable[[Batch], Opened] | None" = None
    """Where it can only be read: see _Frozen."""

    def read_meta(self, connection: sqlite3.Connection) -> None:
        """Load the small values, and note which are damaged; raises sqlite3.Error."""
        self.meta, damaged = rows.read_meta(connection)
        self.notes += [f"damaged, taken as never set: {name}" for name in damaged]

    def close(self) -> None:
        """Fold the WAL into the file, as far as the disk permits, and close it."""
        with suppress(sqlite3.Error):
            _checkpoint(self.database)
        self.database.close()


def open_database(files: Files) -> Opened:
    """Open, check and migrate the database; one that cannot be used is set aside and built anew (S6.5).

    Raises StoreError only when the disk does not let us write; its cause is the error that it was.
    """
    try:
        _finish_exchange(files)
        with ExitStack() as readers:
            try:
                version = _examine(files, readers)
                readers.close()
                return _open(files, version)
            except Unusable as error:
                return _rebuild(files, error, readers)
    except (OSError, Unusable, sqlite3.Error) as error:  # a new database may be unusable, too
        raise StoreError(
            f"cannot open {files.main}: {error}",
            hint="check owner, mode and free space of the state directory, and that no other program has the file open",
        ) from error


def _examine(files: Files, readers: ExitStack) -> int:
    """The schema that the files have, 0 where there is none yet; raises Unusable, OSError or sqlite3.Error.

    Reads only, by a connection that `readers` closes: closing it would fold a sound WAL, and delete a broken one.
    """
    sizes = {name: size for name, _, size, _ in files.mark()}
    if files.main.name not in sizes:
        if sizes:
            raise Unusable("its main file is missing", ours=False)
        return 0
    if files.journal.exists():  # SQLite has to undo what was cut off
        with suppress(sqlite3.DatabaseError), closing(sqlite3.connect(files.main)) as connection:
            schema.pragma(connection, "user_version")
    return schema.check(readers.enter_context(closing(schema.connect(files))))


def _open(files: Files, version: int) -> Opened:
    """Open for writing what was found sound; raises Unusable where it is not."""
    create_empty(files.main)
    connection = sqlite3.connect(files.main, timeout=_PATIENCE_SECONDS)
    connection.text_factory = codec.tolerant
    try:
        with schema.judging():
            # No other process may write, and the WAL's index stays in memory instead of in a -shm file.
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            _configure(connection, new=not version)
            schema.migrate(connection)
            if schema.pragma(connection, "freelist_count"):
                connection.execute("PRAGMA incremental_vacuum").fetchall()
            opened = Opened(Database(connection))
            opened.read_meta(connection)
    except BaseException:
        connection.close()
        raise
    if 0 < version < len(schema.STEPS):
        opened.notes.append(f"{files.main.name} was migrated from schema {version} to {len(schema.STEPS)}")
    return opened


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
        # What is removed is overwritten where that costs no further write: a kind may become sensitive (C5.6).
        "secure_delete = FAST",
        # Before there is a table: a power cut in the middle must not make it look like another program's.
        *((f"application_id = {schema.APPLICATION_ID}",) if new else ()),
    ):
        connection.execute(f"PRAGMA {setting}").fetchall()


def _checkpoint(database: Database) -> None:
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


# A database that cannot be used


def _rebuild(files: Files, why: Unusable, readers: ExitStack) -> Opened:
    """Build a new database with what can be salvaged, and only then exchange it for the old one.

    Raises OSError, sqlite3.Error or Unusable where the disk does not take it; all is then as it was.
    """
    new, saved = files.named("new"), {}
    new.remove()
    try:
        opened = _open(new, 0)
        with closing(opened.database):
            if why.ours:
                saved = _salvage(files, opened.database, readers)
            _checkpoint(opened.database)
        sync_names(files.main.parent)
    except BaseException:
        with suppress(OSError):
            new.remove()
        raise
    aside = _set_aside(files)
    readers.close()  # now that the WAL has another name
    new.rename(files)
    for number in _numbers(files)[:-_KEEP_BROKEN]:
        with suppress(OSError):
            files.named(f"broken-{number}").remove()
    opened = _open(files, len(schema.STEPS))
    opened.rebuilt = True
    opened.notes.append(f"the database could not be used ({why}); it is now {aside.main.name}")
    if why.ours:
        opened.notes.append("saved from it: " + (", ".join(f"{n} {part}" for part, n in saved.items()) or "nothing"))
    return opened


def _finish_exchange(files: Files) -> None:
    """Go on where a rebuild was cut off: once the main file has its new name, the new database is complete."""
    new = files.named("new")
    if not new.main.exists():
        return
    if files.main.exists():
        new.remove()
        return
    if files.mark():
        _set_aside(files)
    new.rename(files)


def _set_aside(files: Files) -> Files:
    """Rename the set, after a number: a clock may have gone back since the last one."""
    aside = files.named(f"broken-{max(_numbers(files), default=0) + 1}")
    files.rename(aside)
    return aside


def _numbers(files: Files) -> list[int]:
    """Of the sets that were set aside, oldest first. Some are kept for a post mortem."""
    names = (path.name.removeprefix(f"{files.main.name}.broken-") for path in files.main.parent.iterdir())
    return sorted({int(number) for name in names if (number := name.partition("-")[0]).isdecimal()})


def _salvage(files: Files, database: Database, readers: ExitStack) -> dict[str, int]:
    """Carry over what cannot be listed anew and is still as it was written; how many rows of each part.

    No cursor, and so no copies.
    """
    batch = Batch()
    # From both ends: a broken page in the middle stops a scan, but not the one from the other end.
    for part, order in product((OUTBOX, RECORD, TOMBSTONES, META, REFERENCES), ("ASC", "DESC")):
        with suppress(sqlite3.Error, UnicodeError):
            _collect(readers.enter_context(closing(schema.connect(files))), part, order, batch)
    with database.atomic():
        rows.write(database, batch)
    return Counter(place[0] for place in batch.rows)


def _collect(old: sqlite3.Connection, part: str, order: str, batch: Batch) -> None:
    column, table = rows.column(part)
    by = ", ".join(f"{name} {order}" for name in (("id",) if table == rows.OBJECTS else rows.KEY))
    found = old.execute(
        f"SELECT resource, namespace, name, {column} FROM {table} WHERE {column} IS NOT NULL ORDER BY {by}"
    )
    for *key, row in found:
        place: Place = (part, *key)
        with suppress(TypeError, ValueError):
            sealed = codec.unpack(row)
            codec.unseal(sealed, place)
            batch.rows[place] = sealed


# A disk that refuses


def open_or_freeze(files: Files, lock: Lock) -> Opened:
    """Open the database, or what can be read of it where the disk refuses to be written.

    Raises StoreError where it is not the disk: a file that is another user's does not become ours by waiting.
    """
    try:
        there = files.mark()
    except OSError:
        there = None
    try:
        return open_database(files)
    except StoreError as error:
        if not _is_of_disk(error, files):
            raise
        frozen = _Frozen(Opened(_in_memory(), refusal=str(error)), files, lock)
        frozen.opened.thaw = frozen.thaw
        try:
            if there == ():  # whatever is there by now, we made it
                frozen.mark = files.mark()
            else:
                frozen.read()
        except (OSError, Unusable, sqlite3.Error) as why:
            frozen.opened.notes.append(f"{files.main.name} cannot be used while the disk refuses: {why}")
        return frozen.opened


@dataclass(slots=True)
class _Frozen:
    """A database that can only be read at best, and what it takes to write to it.

    What memory holds builds on what was read: only there is it written. Where the disk has another state later, that
    one is left to the next start, but for the outbox: a row that waits here is newer than any that waits there.
    """

    opened: Opened
    files: Files
    lock: Lock
    mark: Mark | None = None
    """Of the files that memory builds on; None: it builds on none that could be read."""

    def read(self) -> None:
        """Read what is there, as it is now; raises OSError, Unusable or sqlite3.Error."""
        mark, connection = self.files.mark(), schema.connect(self.files)
        try:
            if (version := schema.check(connection)) != len(schema.STEPS):
                raise Unusable(f"it has to be migrated from schema {version}", ours=True)
            self.opened.read_meta(connection)
        except BaseException:
            connection.close()
            raise
        self.opened.database, self.mark = Database(connection), mark

    def thaw(self, batch: Batch) -> Opened:
        """Open the database for a batch to be written; raises SyncError while that is not possible."""
        self.lock.renew()
        prepare(self.files.main.parent)
        try:
            same = self.mark == self.files.mark()
        except OSError as error:
            raise StoreError(f"cannot look at {self.files.main}: {error}") from error
        if same:  # before it is opened for writing: closing a reader may remove the WAL
            self.opened.database.close()
            self.opened.database = _in_memory()
        try:
            opened = open_database(self.files)
        except StoreError:
            if same:  # whatever is there now, we made it
                with suppress(OSError, Unusable, sqlite3.Error):
                    self.mark = self.files.mark()
                    self.read()
            raise
        if same and not opened.rebuilt:
            return opened
        self.mark = None
        waiting = Batch({place: row for place, row in batch.rows.items() if place[0] == OUTBOX})
        with opened.database.atomic():
            rows.write(opened.database, waiting)
        opened.close()
        raise StoreError(
            f"the disk works again, but {self.files.main} is not what was read when the agent started: "
            "restart the agent"
        )


def _in_memory() -> Database:
    connection = sqlite3.connect(":memory:")
    schema.migrate(connection)
    return Database(connection)


def _is_of_disk(error: StoreError, files: Files) -> bool:
    """Whether it is the disk that refuses. SQLite does not report why it cannot open a file, so that is tried."""
    cause = error.__cause__
    if not isinstance(cause, sqlite3.Error):
        return refuses(cause)
    code = getattr(cause, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    if code != sqlite3.SQLITE_CANTOPEN:
        return code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)
    probe = files.main.with_name("probe")
    try:
        create_empty(probe)
        os.unlink(probe)
    except (OSError, StoreError) as found:
        return refuses(found.__cause__ or found)
    return False
