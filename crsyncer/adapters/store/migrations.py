# ruff: noqa: S608 - the names of tables and columns are constants
"""The schema, as the steps that lead to it. Forward only: what a newer version wrote is set aside, not read (S6.5)."""

import json
from collections.abc import Callable, Sequence
from contextlib import suppress

from sqlite_utils import Database, Migrations

from crsyncer.adapters.store import codec

Step = Callable[[Database], None]


def first(database: Database) -> None:
    """Create the tables.

    What one status report changes (both views, both statuses, the record) shares a row and so a page; the rest of the
    bodies, larger and quieter, lives in a table of its own. The other tables are small.
    """
    for statement in (
        """CREATE TABLE objects (
            id INTEGER PRIMARY KEY, resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
            cloud TEXT, cloud_status BLOB, cloud_rest BLOB,
            robot TEXT, robot_status BLOB, robot_rest BLOB,
            record TEXT, UNIQUE (resource, namespace, name))""",
        "CREATE TABLE rests (id INTEGER PRIMARY KEY, body BLOB NOT NULL)",
        """CREATE TABLE outbox (
            resource TEXT, namespace TEXT, name TEXT, since REAL NOT NULL, dead INTEGER NOT NULL, row BLOB NOT NULL,
            PRIMARY KEY (resource, namespace, name)) WITHOUT ROWID""",
        *(
            f"""CREATE TABLE {table} (
                resource TEXT, namespace TEXT, name TEXT, row TEXT NOT NULL,
                PRIMARY KEY (resource, namespace, name)) WITHOUT ROWID"""
            for table in ("tombstones", "cursors", "meta")
        ),
    ):
        database.execute(statement)


def without_blocked(database: Database) -> None:
    """Take the tenth value out of each view: nobody asked whether an object has finalizers.

    A view that is damaged stays as it is, to be found damaged when it is read.
    """
    for part in ("cloud", "robot"):
        found = f"SELECT id, resource, namespace, name, {part} FROM objects WHERE {part} IS NOT NULL"
        changed = []
        for identifier, *key, sealed in database.execute(found):
            place = (part, *key)
            with suppress(TypeError, ValueError):
                values = json.loads(codec.unseal(sealed, place))
                del values[9:10]
                changed.append((codec.seal(codec.dump(values), place), identifier))
        database.conn.executemany(f"UPDATE objects SET {part} = ? WHERE id = ?", changed)


STEPS: tuple[Step, ...] = (first, without_blocked)


def migrate(database: Database, steps: Sequence[Step] = STEPS) -> int:
    """Take a database, new or old, to the last step, each in a transaction of its own; returns the schema's number.

    `user_version` is the number of steps taken: it can be read without knowing the schema.
    """
    migrations = Migrations("crsyncer")
    for number, step in enumerate(steps, 1):
        migrations(name=f"{number:04}")(_numbered(step, number))
    with database.atomic():  # the table of steps and its index: a half of them is not a schema
        migrations.ensure_migrations_table(database)
    migrations.apply(database)
    return len(steps)


def _numbered(step: Step, number: int) -> Step:
    def numbered(database: Database, /) -> None:
        step(database)
        database.execute(f"PRAGMA user_version = {number}")

    return numbered
