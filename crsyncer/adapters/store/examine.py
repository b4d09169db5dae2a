"""What the doctor can say of the state and the disk that it lives on. Writes nothing."""

import os
import sqlite3
from pathlib import Path

from crsyncer.adapters.store.database import is_circumstance, schema_of
from crsyncer.adapters.store.migrations import STEPS
from crsyncer.adapters.store.offline import reading
from crsyncer.adapters.store.statedir import COMPANIONS, DATABASE, check_files
from crsyncer.core.findings import DiskFacts, StoreFindings
from crsyncer.errors import StoreError

_MOUNTS = Path("/proc/self/mounts")


def look_at_disk(directory: Path) -> DiskFacts:
    """The disk of a state directory, or of the part of its path that exists."""
    place = directory
    while not os.path.lexists(place) and place != place.parent:
        place = place.parent
    objection = remedy = ""
    try:
        check_files(directory)
    except StoreError as error:
        objection, remedy = str(error), error.hint
    owner, me = os.stat(place).st_uid, os.geteuid()
    writable: bool | None = os.access(place, os.W_OK | os.X_OK)
    if not writable and me not in (0, owner):
        writable = None
    room = os.statvfs(place)
    free = room.f_bavail * room.f_frsize
    return DiskFacts(str(place), writable, free, _file_system(place), objection, remedy)


def look_at_store(directory: Path) -> StoreFindings:
    """The store that the next agent will find; raises Locked while one uses it."""
    path = directory / DATABASE
    present = [companion for companion in COMPANIONS if os.path.lexists(f"{path}{companion}")]
    if not present:
        return StoreFindings(str(path), "missing")
    if "" not in present:
        return StoreFindings(str(path), "broken", message="its main file is missing")
    try:
        with reading(directory) as (connection, size):
            schema = schema_of(connection)
    except StoreError as error:
        cause = error.__cause__
        broken = cause is None or (isinstance(cause, sqlite3.Error) and not is_circumstance(cause))
        return StoreFindings(str(path), "broken" if broken else "unreadable", message=str(cause or error))
    return StoreFindings(str(path), "ok" if schema == len(STEPS) else "older", size, schema)


def _file_system(path: Path) -> str:
    """The type of the file system that a path is on; empty where the kernel does not tell (proc(5), mounts)."""
    try:
        lines = _MOUNTS.read_text(errors="surrogateescape").splitlines()
    except OSError:
        return ""
    real, best, kind = path.resolve(), -1, ""
    for line in lines:
        _, place, found, *_ = line.split(" ")
        point = Path(place.replace("\\040", " "))
        # Of several mounted on one point the last is the one in sight.
        if real.is_relative_to(point) and len(point.parts) >= best:
            best, kind = len(point.parts), found
    return kind
