"""Objects to store, and what storing them costs."""

import asyncio
import hashlib
import sqlite3
import uuid
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from crsyncer.adapters.store.store import SqliteStore
from crsyncer.core.model import Cursor, Json, Key, Loaded, Pending, Record, Side, Stamp, Tombstone, View

GOALS = "goals.lab.example.com"
COMPANIONS = ("", "-wal")


def text(*values) -> str:
    """Something as incompressible as a digest."""
    return hashlib.blake2b(repr(values).encode(), digest_size=12).hexdigest()


def key(number: int) -> Key:
    """The key of an object."""
    return Key("default", f"goal-{number}")


def body(number: int, version: int = 1, *, side: Side = Side.ROBOT) -> Json:
    """An object with a spec of 1.5 KB and a status of 0.5 KB, of which the status depends on the version."""
    return {
        "apiVersion": "lab.example.com/v1",
        "kind": "Goal",
        "metadata": {
            "name": f"goal-{number}",
            "namespace": "default",
            "uid": uid(number, side),
            "resourceVersion": str(version),
            "generation": 1,
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"cloudrobotics.com/robot-name": "robot-1"},
        },
        "spec": {"steps": [{"to": text(number, step), "speed": step, "note": text(step)} for step in range(14)]},
        "status": {
            "phase": "RUNNING",
            "observedGeneration": 1,
            "conditions": [
                {"type": kind, "status": "True", "reason": "Working", "message": f"{text(version, kind)} of {number}"}
                for kind in ("Ready", "Healthy")
            ],
            "position": {"x": version / 7, "y": number / 7},
        },
    }


def uid(number: int, side: Side) -> str:
    """The uid of an object."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{number}{side}"))


def view(number: int, version: int = 1, *, side: Side = Side.ROBOT) -> View:
    """The view of that object."""
    stamp = Stamp(uid(number, Side.CLOUD), "robot-1", text(number), ("cloudrobotics.com/robot-name",))
    return View(
        uid(number, side),
        str(version),
        generation=1,
        terminating=False,
        content=text(number),
        status=text(number, version),
        has_status=True,
        stamp=stamp if side is Side.ROBOT else None,
        called=Key("shop", f"copy-{number}") if side is Side.ROBOT and number % 2 else None,
    )


def cursor(version: int) -> Cursor:
    """A cursor at a revision."""
    return Cursor("cluster", "lab.example.com/v1/goals", "", str(version))


def pending(number: int, version: int) -> Pending:
    """The outbox row of an object."""
    status = body(number, version)["status"]
    return Pending(version, uid(number, Side.CLOUD), text(number, version), status, since=100.0 + number)


def report_status(store: SqliteStore, number: int, version: int) -> None:
    """All that the agent puts for one status on its way: event, outbox, acknowledgement, record and echo."""
    for side in (Side.ROBOT, Side.CLOUD):
        seen = view(number, version, side=side)
        store.put_copy(side, GOALS, key(number), seen, body(number, version, side=side))
        store.put_cursor(side, GOALS, "", cursor(version))
    store.put_pending(GOALS, key(number), pending(number, version))
    store.put_pending(GOALS, key(number), None)
    store.put_record(
        GOALS, key(number), Record(uid(number, Side.CLOUD), acknowledged=text(number, version), had_status=True)
    )


def known(version: int) -> Loaded:
    """What a store knows of the views and cursors of twelve objects."""
    views = {side: {key(number): view(number, version, side=side) for number in range(12)} for side in Side}
    return Loaded(views=views, cursors={(side, ""): cursor(version) for side in Side})


async def crash(directory: Path) -> dict[str, bytes]:
    """The files of an agent that died: version 1 of all objects in the database, version 2 in the WAL."""
    for version in (1, 2):
        store = await SqliteStore.open(directory)
        for number in range(12):
            report_status(store, number, version)
            store.put_pending(GOALS, key(number), pending(number, version))
        store.put_tombstone(GOALS, key(99), Tombstone("u", 1.0))
        for side in Side:
            store.put_cursor(side, GOALS, "", cursor(version))
        if version == 1:
            await store.close()
    await store.durable()
    saved = {suffix: (directory / f"state.db{suffix}").read_bytes() for suffix in COMPANIONS}
    await store.close()
    saved["closed"] = (directory / "state.db").read_bytes()
    return saved


def lay_out(directory: Path, files: dict[str, bytes]) -> Path:
    """A state directory with these files, by what follows `state.db` in their names."""
    directory.mkdir(mode=0o700, parents=True)
    for suffix, content in files.items():
        path = directory / f"state.db{suffix}"
        path.write_bytes(content)
        path.chmod(0o600)
    return directory


def add_a_column(connection: sqlite3.Connection) -> None:
    """A migration, such as a later version may bring."""
    connection.execute("ALTER TABLE cursors ADD COLUMN note TEXT")


def break_bodies(path: Path) -> None:
    """Ruin the page at the root of the bodies; what the other tables hold is still readable."""
    with closing(sqlite3.connect(path)) as database:
        (root,) = database.execute("SELECT rootpage FROM sqlite_master WHERE name = 'robot_rest'").fetchone()
        (size,) = database.execute("PRAGMA page_size").fetchone()
    with path.open("r+b") as file:
        file.seek((root - 1) * size)
        file.write(b"\xff" * size)


@dataclass(frozen=True, slots=True)
class Measured:
    """What the store costs."""

    objects: int
    changes: int
    commit_seconds: list[float]
    written_bytes: float
    """Per status change, as passed to write(2)."""
    dirtied_bytes: float
    """Per status change, in blocks that the kernel has to write."""
    stored_bytes: float
    """Per object."""
    load_seconds: float


async def measure(directory: Path, *, objects: int, changes: int, clock: Callable[[], float]) -> Measured:
    """Store objects on both sides, change statuses all over them in groups of 30 per commit, and load them again."""
    seconds: list[float] = []
    store = await SqliteStore.open(directory, on_commit=seconds.append)
    for number in range(objects):
        report_status(store, number, 1)
        await asyncio.sleep(0)
    await store.durable()
    seconds.clear()
    before = _io()
    for change in range(changes):
        report_status(store, change * 7919 % objects, change + 2)
        if change % 30 == 29:
            await store.durable()
    await store.durable()
    after = _io()
    stored = store.bytes / objects
    begin = clock()
    await store.load(GOALS)
    load_seconds = clock() - begin
    await store.close()
    written, dirtied = ((new - old) / changes for new, old in zip(after, before, strict=True))
    return Measured(objects, changes, seconds, written, dirtied, stored, load_seconds)


def _io() -> tuple[int, int]:
    lines = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(lines["wchar"]), int(lines["write_bytes"])
