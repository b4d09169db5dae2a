"""A disk that refuses from the start: its state is read as far as that is possible, and written once it can be (S6.5).

Runs in the store's thread.
"""

import os
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from crsyncer.adapters.store import rows
from crsyncer.adapters.store.codec import OUTBOX
from crsyncer.adapters.store.database import Opened, empty, open_database, read_only
from crsyncer.adapters.store.offline import connect
from crsyncer.adapters.store.statedir import Lock, create_empty, refuses
from crsyncer.errors import StoreError

_Mark = tuple[tuple[str, int, int, int], ...]
"""Name, inode, size and time of last change of each file of a database that has any content."""


def open_or_freeze(path: Path, *, lock: Lock, clock: Callable[[], float]) -> Opened:
    """Open the database, or what can be read of it where the disk refuses to be written.

    Raises StoreError where it is not the disk: a file that is another user's does not become ours by waiting.
    """
    there = _mark(path)
    try:
        return open_database(path, now=clock())
    except StoreError as error:
        if not _is_of_disk(error, path.parent):
            raise
        return _Frozen(path, lock=lock, clock=clock, refusal=str(error), new=not there).opened


class _Frozen:
    """A database that can only be read at best, and what it takes to write to it.

    What memory holds builds on what was read: only there is it written. Where the disk has another state later, that
    one is left to the next start, but for the outbox: a row that waits here is newer than any that waits there.
    """

    def __init__(self, path: Path, *, lock: Lock, clock: Callable[[], float], refusal: str, new: bool) -> None:
        """`new`: nothing was there when we came."""
        self.opened = empty()
        self._path = path
        self._lock = lock
        self._clock = clock
        self._new = new
        self._read: _Mark = ()
        if not new:
            try:
                self._look()
            except (OSError, StoreError, sqlite3.Error) as error:
                self.opened.notes.append(f"{path.name} cannot be used while the disk refuses: {error}")
        self.opened.refusal, self.opened.thaw = refusal, self._thaw

    def _look(self) -> None:
        """Read what is there, as it is now."""
        mark, connection = _mark(self._path), connect(self._path)
        try:
            found = read_only(connection)
        except BaseException:
            connection.close()
            raise
        self.opened.database.close()
        self.opened.database, self.opened.schema, self.opened.meta = found.database, found.schema, found.meta
        self._read = mark

    def _thaw(self, batch: rows.Batch) -> Opened:
        self._lock.renew()
        same = self._new or (bool(self._read) and self._read == _mark(self._path))
        if same:
            self.opened.database.close()
        try:
            opened = open_database(self._path, now=self._clock())
        except StoreError:
            if same:
                self.opened.database = empty().database
                with suppress(OSError, StoreError, sqlite3.Error):  # what is gone is said at the next try
                    self._look()
            raise
        if same and not opened.rebuilt and not (self._new and opened.meta):
            return opened
        if same:
            self.opened.database, self._new, self._read = empty().database, False, ()
        waiting = rows.Batch({place: row for place, row in batch.rows.items() if place[0] == OUTBOX})
        with opened.database.atomic():
            rows.write(opened.database, waiting)
        opened.close()
        raise StoreError(
            f"the disk works again, but {self._path} is not what was read when the agent started: restart the agent"
        )


def _mark(path: Path) -> _Mark:
    """What tells a database from another and from a changed one."""
    files = [path.with_name(path.name + companion) for companion in ("", "-wal")]
    found = [(file.name, file.stat()) for file in files if file.exists()]
    return tuple((name, stat.st_ino, stat.st_size, stat.st_mtime_ns) for name, stat in found if stat.st_size)


def _is_of_disk(error: StoreError, directory: Path) -> bool:
    """Whether it is the disk that refuses. SQLite does not say why it may not open a file, so that is tried."""
    cause = error.__cause__
    if not isinstance(cause, sqlite3.Error):
        return refuses(cause)
    code = getattr(cause, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    if code != sqlite3.SQLITE_CANTOPEN:
        return code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)
    probe = directory / "probe"
    try:
        create_empty(probe)
        os.unlink(probe)
    except (OSError, StoreError) as found:
        return refuses(found.__cause__ or found)
    return False
