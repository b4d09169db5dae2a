"""The tables, as the steps that lead to them, and whether a file has them. No sqlite-utils: the CLI reads this too.

Forward only: what a newer version wrote is set aside, not read (S6.5).
"""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

from crsyncer.adapters.store import codec, rows
from crsyncer.adapters.store.statedir import Files

APPLICATION_ID = 0x63727379
"""Marks our files for `file(1)` and for us: "crsy"."""

Step = Callable[[sqlite3.Connection], None]

_TABLE = """CREATE TABLE {} (
                resource TEXT, namespace TEXT, name TEXT, row BLOB NOT NULL,
                PRIMARY KEY (resource, namespace, name))"""
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


class Unusable(Exception):
    """The file is not a sound database of ours; `ours`: it may hold rows worth saving."""

    def __init__(self, message: str, *, ours: bool) -> None:
        super().__init__(message)
        self.ours = ours


def first(connection: sqlite3.Connection) -> None:
    """Create the tables.

    What one status report changes (both views, both statuses, the record) shares a row and so a page; the rest of the
    bodies, larger and quieter, lives in tables of its own. The other tables are small.
    """
    columns = ", ".join(f"{part} BLOB" for part in rows.COLUMNS)
    for statement in (
        f"""CREATE TABLE {rows.OBJECTS} (
            id INTEGER PRIMARY KEY, resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL, {columns},
            UNIQUE (resource, namespace, name))""",
        *(_TABLE.format(table) for table in rows.TABLES),
    ):
        connection.execute(statement)


def second(connection: sqlite3.Connection) -> None:
    """Create the table of what primaries refer to."""
    connection.execute(_TABLE.format(codec.REFERENCES))


def third(connection: sqlite3.Connection) -> None:
    """Note which objects of the cloud are replicas of a fleet: no event may show them again for long (F9.5)."""
    rows.complete(connection, codec.with_replica)


def fourth(connection: sqlite3.Connection) -> None:
    """Note which objects of the cloud take no status: no event may show them again for long (F10.3)."""
    rows.complete(connection, codec.with_shared)


STEPS: tuple[Step, ...] = (first, second, third, fourth)


def migrate(connection: sqlite3.Connection, schema: int | None = None) -> None:
    """Take a database to a schema, the last one by default, each step in a transaction; raises what a step raises.

    `user_version`, the number of steps taken, is the schema.
    """
    for number in range(pragma(connection, "user_version"), len(STEPS) if schema is None else schema):
        with connection:  # commits, or rolls back
            connection.execute("BEGIN")
            STEPS[number](connection)
            connection.execute(f"PRAGMA user_version = {number + 1}")


def pragma(connection: sqlite3.Connection, name: str) -> int:
    """A number that SQLite keeps in the file; raises sqlite3.Error."""
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def connect(files: Files) -> sqlite3.Connection:
    """A database as a connection that writes nothing, not even where it might; the caller keeps others away.

    Without locks SQLite reads what a killed agent has left in the WAL, too, without an index beside it: the
    exclusive mode must be set before the first read (sqlite.org/wal.html#noshm). Where there is no WAL, `immutable`
    keeps it from making one.
    """
    how = "mode=ro&vfs=unix-none" if files.wal.exists() else "immutable=1"
    connection = sqlite3.connect(f"{files.main.absolute().as_uri()}?{how}", uri=True)
    connection.text_factory = codec.tolerant
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    return connection


@contextmanager
def judging() -> Iterator[None]:
    """Turn an error that is the file's into Unusable; that of the disk, or of another program in the way, passes."""
    try:
        yield
    except sqlite3.Error as error:
        if is_circumstance(error):
            raise
        raise Unusable(str(error), ours=True) from error
    except (TypeError, ValueError) as error:  # such as undecodable error messages of SQLite's own
        raise Unusable(str(error), ours=True) from error


@judging()
def check(connection: sqlite3.Connection) -> int:
    """The schema of a database that is ours and sound, 0 for one without tables. Changes nothing.

    Raises Unusable where it is not that, and sqlite3.Error where the disk or another program is in the way.
    """
    owner, schema = pragma(connection, "application_id"), pragma(connection, "user_version")
    if owner != APPLICATION_ID:
        if owner or schema or connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            raise Unusable("it was written by another program", ours=False)
        return 0
    if schema > len(STEPS):
        raise Unusable(f"it was written by a newer crsyncer (schema {schema})", ours=True)
    # The thorough sister of quick_check: an index that misses an object would make it look absent.
    found = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
    if found != "ok":
        raise Unusable(found.replace("\n", " "), ours=True)
    # SQLite does not check its table of tables for flipped bits; tables that are not ours do not matter.
    tables = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY name"
    with closing(sqlite3.connect(":memory:")) as fresh:
        migrate(fresh, schema)
        expected = fresh.execute(tables).fetchall()
    names = {table for _, _, table, _ in expected}
    if [row for row in connection.execute(tables) if row[1] in names or row[2] in names] != expected:
        raise Unusable("its tables are not what they should be", ours=True)
    return schema


def is_circumstance(error: sqlite3.Error) -> bool:
    """Whether the file may be fine, and the disk or another program is in the way."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    return code & 0xFF in _CIRCUMSTANCES and code != sqlite3.SQLITE_IOERR_SHORT_READ
