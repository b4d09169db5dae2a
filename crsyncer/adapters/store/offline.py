"""Reads the state and its disk for commands while no agent runs. Writes nothing, and imports nothing slow."""

import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from crsyncer.adapters.store import codec, rows, schema
from crsyncer.adapters.store.buffer import Batch
from crsyncer.adapters.store.statedir import DATABASE, Files, Lock, check
from crsyncer.core.model import Json, Key, Loaded, Side
from crsyncer.core.reports.findings import DiskFacts, StoreFindings
from crsyncer.errors import Locked, StoreError

_MOUNTS = Path("/proc/self/mounts")


@dataclass(frozen=True, slots=True)
class OfflineState:
    """The content of a state directory, but for the bodies of objects."""

    path: Path
    bytes: int = 0
    schema: int | None = None
    meta: dict[str, Any] = field(default_factory=dict)
    kinds: dict[str, Loaded] = field(default_factory=dict)
    """By resource. Rows that are damaged are left out."""
    last_write: float | None = None
    """Unix time of the last change to it, in seconds."""


@contextmanager
def reading(directory: Path) -> Iterator[tuple[sqlite3.Connection, int]]:
    """The database, as a connection that writes nothing, and its bytes.

    Raises StoreError where there is none to read, Locked while an agent uses it. It keeps no agent from starting:
    where one began meanwhile, what was read may be of no state that ever was, and Locked is raised at the end.
    """
    files, lock = Files(directory / DATABASE), Lock(directory)
    try:
        lock.peek()
        if not files.main.exists():
            raise StoreError(f"no state in {directory}", hint="has `crsyncer run` used this --state-dir yet?")
        before, size = files.mark(), files.bytes()
        with ExitStack() as stack:
            stack.callback(lock.peek)
            chosen = files
            if len(before) > 1:  # SQLite may remove a WAL when it has read it, which could be the agent's by then
                chosen = files.copy(Path(stack.enter_context(TemporaryDirectory())))
            yield stack.enter_context(closing(schema.connect(chosen))), size
        if files.mark() != before:
            raise Locked(f"{directory} was in use until now", pid=0, hint="try again")
    except (OSError, TypeError, sqlite3.Error) as error:
        raise StoreError(
            f"cannot read {files.main}: {error}", hint="run as its owner; `crsyncer run` sets a broken database aside"
        ) from error


def read_offline(directory: Path) -> OfflineState:
    """Read a state directory; raises as `reading` does."""
    with reading(directory) as (connection, size):
        meta, _ = rows.read_meta(connection)
        kinds = {name: rows.read_kind(connection, name, Batch())[0] for name in rows.read_resources(connection)}
        return OfflineState(
            directory / DATABASE,
            bytes=size,
            schema=schema.pragma(connection, "user_version"),
            meta=meta,
            kinds=kinds,
            last_write=max(file.stat().st_mtime for file in directory.glob(f"{DATABASE}*")),
        )


def read_meta(directory: Path) -> dict[str, Any]:
    """The small values of a state directory; raises as `reading` does."""
    with reading(directory) as (connection, _):
        return rows.read_meta(connection)[0]


def read_bodies(directory: Path, resource: str, key: Key) -> dict[Side, Json]:
    """The stored bodies of an object; raises as `reading` does."""
    bodies = {}
    with reading(directory) as (connection, _):
        for side in Side:
            places = codec.object_places(side, resource, key)[1:]
            with suppress(TypeError, ValueError):
                body = codec.load_body([rows.read_row(connection, place) for place in places], places)
                if body is not None:
                    bodies[side] = body
    return bodies


def look_at_disk(directory: Path) -> DiskFacts:
    """The disk of a state directory, or of the part of its path that exists."""
    place = directory
    while not os.path.lexists(place) and place != place.parent:
        place = place.parent
    owner, me = os.stat(place).st_uid, os.geteuid()
    objection, remedy = _objection(directory, me)
    writable: bool | None = os.access(place, os.W_OK | os.X_OK)
    if not writable and me not in (0, owner):
        writable = None
    room = os.statvfs(place)
    free = room.f_bavail * room.f_frsize
    return DiskFacts(str(place), writable, free, _file_system(place), objection, remedy)


def look_at_store(directory: Path) -> StoreFindings:
    """The store that the next agent will find; raises Locked while one uses it."""
    files = Files(directory / DATABASE)
    if not any(map(os.path.lexists, files.every)):
        return StoreFindings(str(files.main), "missing")
    if not os.path.lexists(files.main):
        return StoreFindings(str(files.main), "broken", message="its main file is missing")
    try:
        with reading(directory) as (connection, size):
            version = schema.check(connection)
    except schema.Unusable as error:
        return StoreFindings(str(files.main), "broken", message=str(error))
    except StoreError as error:
        return StoreFindings(str(files.main), "unreadable", message=str(error.__cause__ or error))
    return StoreFindings(str(files.main), "ok" if version == len(schema.STEPS) else "older", size, version)


def _objection(directory: Path, me: int) -> tuple[str, str]:
    """What is wrong with the owner or the modes of the state, and what to do about it; empty: nothing."""
    user = me
    for path in (directory, directory / DATABASE):  # root asks for an agent that may run as another user
        if not me and os.path.exists(path):  # unlike Path's, it does not raise where root may not look
            user = path.stat().st_uid
    try:
        wide = check(directory, user=user)
    except StoreError as error:
        return str(error), error.hint
    if not wide:
        return "", ""
    path, right = next(iter(wide.items()))
    mode = stat.S_IMODE(path.stat().st_mode)
    return (
        f"{path} may be read by others (mode {mode:04o})",
        f"chmod {right:o} {path}; the agent does so when it starts",
    )


def _file_system(path: Path) -> str:
    """The type of the file system that a path is on; empty where it cannot be read (proc(5), mounts)."""
    try:
        lines = _MOUNTS.read_text(errors="surrogateescape").splitlines()
    except OSError:
        return ""
    mounts = [(Path(place.replace("\\040", " ")), kind) for _, place, kind, *_ in (line.split(" ") for line in lines)]
    around = [mount for mount in mounts if path.resolve().is_relative_to(mount[0])]
    # The innermost mount point; of several file systems on one, the last one mounted is used.
    return max(reversed(around), key=lambda mount: len(mount[0].parts), default=(path, ""))[1]
