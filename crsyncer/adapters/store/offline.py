# ruff: noqa: S608 - the names of tables and columns are constants
"""What the CLI can say from the disk while no agent is running. Writes nothing, and imports nothing slow."""

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crsyncer.adapters.store import codec
from crsyncer.adapters.store.codec import CURSORS, META, OUTBOX
from crsyncer.adapters.store.statedir import DATABASE, Lock
from crsyncer.core.model import Cursor, Json, Key, Loaded, Pending, Side
from crsyncer.errors import StoreError


@dataclass(slots=True)
class OfflineKind:
    """What is stored of one kind."""

    copies: dict[Side, int] = field(default_factory=lambda: {Side.CLOUD: 0, Side.ROBOT: 0})
    cursors: dict[tuple[Side, str], Cursor] = field(default_factory=dict)
    """By side and namespace ("" = all namespaces)."""
    pending: int = 0


@dataclass(slots=True)
class OfflineState:
    """A summary of the state directory."""

    path: Path
    bytes: int
    schema: int
    meta: dict[str, Any] = field(default_factory=dict)
    kinds: dict[str, OfflineKind] = field(default_factory=dict)
    """By resource."""
    pending: int = 0
    """Rows in the outbox, dead letters included."""
    dead_letters: int = 0
    oldest: float | None = None
    """Unix time since which the oldest row has been waiting."""


def read_offline(directory: Path) -> OfflineState:
    """Summarise a state directory; raises Locked while an agent uses it, StoreError when there is none to read."""
    with reading(directory) as (connection, size):
        state = OfflineState(directory / DATABASE, size, connection.execute("PRAGMA user_version").fetchone()[0])
        kinds = state.kinds
        for name, sealed in connection.execute(f"SELECT name, row FROM {META}"):
            with suppress(TypeError, ValueError):
                state.meta[name] = json.loads(codec.unseal(sealed, (META, "", "", name)))
        counts = connection.execute("SELECT resource, count(cloud), count(robot) FROM objects GROUP BY resource")
        for resource, cloud, robot in counts:
            kinds.setdefault(resource, OfflineKind()).copies.update({Side.CLOUD: cloud, Side.ROBOT: robot})
        for resource, namespace, side, sealed in connection.execute(f"SELECT * FROM {CURSORS}"):
            with suppress(TypeError, ValueError):
                cursor = codec.load_cursor(codec.unseal(sealed, (CURSORS, resource, namespace, side)))
                kinds.setdefault(resource, OfflineKind()).cursors[Side(side), namespace] = cursor
        query = f"SELECT resource, count(*), sum(dead), min(since) FROM {OUTBOX} GROUP BY resource"
        for resource, count, dead, oldest in connection.execute(query):
            kinds.setdefault(resource, OfflineKind()).pending = count
            state.pending += count
            state.dead_letters += dead
            state.oldest = oldest if state.oldest is None else min(state.oldest, oldest)
    return state


def read_pending(directory: Path) -> list[tuple[str, Key, Pending]]:
    """The outbox, oldest first, each row with its resource and key; raises as `read_offline` does."""
    found = []
    with reading(directory) as (connection, _):
        query = f"SELECT resource, namespace, name, row FROM {OUTBOX} ORDER BY since"
        for resource, namespace, name, row in connection.execute(query):
            with suppress(TypeError, ValueError):
                text = codec.unseal(codec.unpack(row), (OUTBOX, resource, namespace, name))
                found.append((resource, Key(namespace, name), codec.load_pending(text)))
    return found


def read_object(
    directory: Path, resource: str, choose: Callable[[Loaded], Key]
) -> tuple[Key, Loaded, dict[Side, Json]]:
    """What is stored of a kind, and the bodies of the object that `choose` names; raises as `read_offline` does."""
    from crsyncer.adapters.store import rows  # it brings sqlite-utils, which the other questions need not wait for

    bodies = {}
    with reading(directory) as (connection, _):
        loading = rows.Loading()
        for place, sealed in rows.read_kind(connection, resource):
            loading.take(place, sealed)
        key = choose(loading.loaded)
        for side in Side:
            place = (side.value, resource, key.namespace, key.name)
            copy = rows.read_copy(connection, place)
            with suppress(TypeError, ValueError):
                if copy is not None:
                    bodies[side] = codec.load_body(copy.status, copy.rest, place)
    return key, loading.loaded, bodies


@contextmanager
def reading(directory: Path) -> Iterator[tuple[sqlite3.Connection, int]]:
    """The database, as a connection that writes nothing, and its bytes; raises as `read_offline` does."""
    path = directory / DATABASE
    lock = Lock(directory)
    try:
        lock.peek()
        files = [path, path.with_name(path.name + "-wal")]
        size = path.stat().st_size + sum(file.stat().st_size for file in files[1:] if file.exists())
        with closing(connect(path)) as connection:
            yield connection, size
    except FileNotFoundError as error:
        raise StoreError(f"no state in {directory}", hint="has `crsyncer run` used this --state-dir yet?") from error
    except (OSError, TypeError, sqlite3.Error) as error:
        raise StoreError(
            f"cannot read {path}: {error}", hint="run as its owner; `crsyncer run` sets a broken database aside"
        ) from error
    finally:
        lock.release()


def connect(path: Path) -> sqlite3.Connection:
    """A database as a connection that writes nothing, not even where it might; whoever asks keeps others away.

    Without locks SQLite reads what a killed agent has left in the WAL, too, without an index beside it: for that it has
    to be told of the exclusive use before it reads (sqlite.org/wal.html#noshm). Where there is no WAL, it would want
    to make one, if it did not know that nothing changes.
    """
    wal = path.with_name(path.name + "-wal")
    how = "mode=ro&vfs=unix-none" if wal.exists() else "immutable=1"
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?{how}", uri=True)
    connection.text_factory = codec.tolerant
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    return connection
