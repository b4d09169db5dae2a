"""The state on disk: SQLite behind a buffer (S6.1, S6.5). The format of rows is in `codec` and `rows`, the handling of
broken files and disks in `database`.

The disk has a thread of its own, not a task: what was put is on disk in time even while the event loop is busy or being
cancelled, and asyncio never waits for the disk.
"""

import asyncio
import json
import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Self, TypeVar

from crsyncer.adapters.store import codec, rows
from crsyncer.adapters.store.buffer import Batch, Recent
from crsyncer.adapters.store.codec import CURSORS, META, OUTBOX, RECORD, TOMBSTONES, Place, Plain
from crsyncer.adapters.store.database import Opened, open_or_freeze
from crsyncer.adapters.store.schema import STEPS
from crsyncer.adapters.store.statedir import Files, Lock, prepare
from crsyncer.adapters.threads import fulfil
from crsyncer.core.model import (
    Cursor,
    FinalizerRow,
    Json,
    Key,
    Loaded,
    Pending,
    Record,
    ReferenceRow,
    Side,
    Source,
    Tombstone,
    View,
)
from crsyncer.errors import Locked, StoreError, SyncError

GROUP_SECONDS = 0.235
"""From the first put to its commit: with the commit itself, durable within 250 ms (S6.3)."""
RETRY_SECONDS = (0.25, 10.0)
"""First and longest delay before the disk is tried again."""
SILENT_SECONDS = 5.0
"""After so long in one piece of work the disk counts as one that refuses."""
LAST_SECONDS = 4.0
"""How long closing waits for the disk: the agent has 10 s for everything."""
_LOCK_SECONDS = 0.5
"""How long we try to take the directory: an agent that ends, or a reader that looks for one, is soon done."""
_FULL = 2_000
"""Rows at which the buffer is committed at once, so that a first list of many objects does not pile up in memory."""
_NEVER = float("inf")

_log = logging.getLogger(__name__)
T = TypeVar("T")


def _ignore(_: object) -> None: ...


class SqliteStore:
    """Implements ports.Store, which has the contract. Made by `open`; without `close` the last 250 ms are lost.

    The newest put to a place wins, and all puts are committed in one piece. While the disk refuses, the refused batch
    stays in front of newer puts, cursors included, and is tried again.

    `on_trouble` is called in the event loop with what is wrong when the disk refuses, and with None when it has
    taken everything again. `on_commit` is called in the store's thread with the seconds that a commit took.
    """

    schema = len(STEPS)

    def __init__(
        self, files: Files, lock: Lock, on_trouble: Callable[[str | None], None], on_commit: Callable[[float], None]
    ) -> None:
        """`open` makes stores."""
        self.path = files.main
        self.notes: list[str] = []
        """What happened when it was opened, and what turned out to be damaged since."""
        self.commits = 0
        """How many transactions were written since `open`."""
        self.bytes = 0
        """What the files took on disk after the last commit. The event loop itself never looks at the disk."""
        self._files = files
        self._lock = lock
        self._on_trouble = on_trouble
        self._on_commit = on_commit
        self._meta: dict[str, Any] = {}
        self._opened: Opened | None = None
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._run, name="crsyncer-store", daemon=True)
        self._jobs: SimpleQueue[Callable[[], None]] = SimpleQueue()
        """What the thread does, one after another; a commit that is due goes before them."""
        self._closed = self._is_over = False
        self._busy_since = _NEVER
        self._retry = RETRY_SECONDS[0]
        # Everything below is shared by loop and thread, and changed under _guard.
        self._guard = threading.Lock()
        self._buffer, self._flying = Batch(), Batch()
        self._recent = Recent()
        self._due = _NEVER
        self._refusal: str | None = None

    @classmethod
    async def open(
        cls,
        directory: Path,
        *,
        on_trouble: Callable[[str | None], None] = _ignore,
        on_commit: Callable[[float], None] = _ignore,
    ) -> Self:
        """Take the state directory and load the database, rebuilding it where it cannot be used; see `notes`.

        Where the disk refuses to be written, what can be read is loaded and the rest kept in memory; see `trouble`.
        Raises Locked when another process has the directory, StoreError when it cannot be used safely.
        """
        files = prepare(directory)
        store = cls(files, await _acquired(Lock(directory)), on_trouble, on_commit)
        try:
            store._thread.start()
            await store._do(store._open)
        except BaseException:
            await store.close()
            raise
        return store

    @property
    def trouble(self) -> str | None:
        """Why the disk does not take what was put; None while it does, as far as is known.

        Also where it only keeps silent, which `on_trouble` is not called for.
        """
        if time.monotonic() - self._busy_since > SILENT_SECONDS:
            return f"the disk has not answered for more than {SILENT_SECONDS:.0f} s"
        return self._refusal

    @property
    def state(self) -> str:
        """`degraded` while the disk refuses, `rebuilt` when the database had to be made anew at start, else `ok`."""
        if self.trouble is not None:
            return "degraded"
        return "rebuilt" if self._opened is not None and self._opened.rebuilt else "ok"

    async def load(self, resource: str, *, only_outbox: bool = False) -> Loaded:
        """What is known about one kind, what is not yet on disk included; raises StoreError.

        A row whose checksum does not fit is left out and noted; with an observation, that side's cursors are left
        out too, so that the gap is listed anew instead of being taken for an absence.
        """
        loaded, damaged = await self._do_read(lambda: rows.read_kind(*self._at(resource), only_outbox=only_outbox))
        self.notes.extend(f"damaged, to be listed anew: {place}" for place in damaged)
        return loaded

    async def body(self, side: Side, resource: str, key: Key) -> Json | None:
        """The newest stored copy, which the caller may change; None where there is none that can be read."""
        places = codec.object_places(side, resource, key)[1:]
        with self._guard:
            found = [self._in_memory(place) for place in places]
        try:
            if all(known for known, _ in found):
                return codec.load_body([row for _, row in found], places)
            # All of them: they belong together.
            return codec.load_body(await self._do(partial(self._read, places)), places)
        except (sqlite3.Error, TypeError, ValueError) as error:
            _log.warning("cannot read the copy of %s %s on side %s: %s", resource, key, side, error)
            return None

    def put_copy(self, side: Side, resource: str, key: Key, view: View, body: Json) -> None:
        """The body is encoded at once, so the caller may change it later."""
        self._put(codec.dump_object(view, body, codec.object_places(side, resource, key)))

    def drop_copy(self, side: Side, resource: str, key: Key) -> None:
        self._put(dict.fromkeys(codec.object_places(side, resource, key)))

    def put_cursor(self, side: Side, resource: str, namespace: str, cursor: Cursor | None) -> None:
        self._put_fields((CURSORS, resource, namespace, side.value), cursor)

    def put_record(self, resource: str, key: Key, record: Record | None) -> None:
        self._put_fields((RECORD, resource, key.namespace, key.name), record)

    def put_pending(self, resource: str, key: Key, pending: Pending | None) -> None:
        """Set (or remove) the outbox row of an object; comparing `seq` before a removal is the caller's duty."""
        self._put_fields((OUTBOX, resource, key.namespace, key.name), pending)

    def put_finalizer(self, resource: str, key: Key, row: FinalizerRow | None) -> None:
        self._put_fields(codec.finalizer_place(resource, key), row)

    def put_tombstone(self, resource: str, key: Key, tombstone: Tombstone | None) -> None:
        self._put_fields((TOMBSTONES, resource, key.namespace, key.name), tombstone)

    async def load_references(self, resource: str) -> dict[Source, ReferenceRow]:
        return await self._do_read(lambda: rows.read_references(*self._at(resource)))

    def put_reference(self, resource: str, source: Source, row: ReferenceRow | None) -> None:
        self._put_fields(codec.reference_place(resource, source), row)

    def forget_kind(self, resource: str, *, keep_outbox: bool = True) -> None:
        with self._guard:
            self._buffer.forget(resource, keep_outbox=keep_outbox)
            self._touch()

    def get_meta(self, name: str) -> Any:
        return self._meta.get(name)

    def put_meta(self, name: str, value: Any) -> None:
        text, place = codec.dump(value), (META, "", "", name)
        self._meta[name] = json.loads(text)
        self._put({place: codec.seal(text, place)})

    async def durable(self) -> bool:
        with self._guard:
            idle = self._closed or self.trouble is not None or not (self._buffer or self._flying)
        waiter = None if idle else asyncio.wrap_future(self._submit(self._commit))
        while waiter is not None and not waiter.done() and self.trouble is None:
            await asyncio.wait([waiter], timeout=1.0)
        return self.trouble is None

    async def close(self) -> None:
        """Write what is left, fold the WAL into the database, and give the directory up. Puts after it are lost.

        A disk that does not answer is not waited for; the directory then stays ours until the process ends.
        """
        self._closed = True
        self._jobs.put(self._finish)
        if self._thread.ident is not None:  # else the agent is stopped before the thread begins
            await asyncio.to_thread(self._thread.join, LAST_SECONDS)
        if self._thread.is_alive():
            _log.error("the disk does not answer: what it did not take is forgotten, and collected at the next start")
        else:
            self._lock.release()

    def _put_fields(self, place: Place, value: Plain | None) -> None:
        self._put({place: None if value is None else codec.seal(codec.dump_fields(value), place)})

    def _put(self, parts: Mapping[Place, str | None]) -> None:
        """Write rows, or remove them, with the next commit: all of them with the same one."""
        with self._guard:
            self._buffer.rows.update(parts)
            self._touch()

    def _touch(self) -> None:
        if len(self._buffer.rows) >= _FULL and self._refusal is None and self._due > 0:
            self._due = 0.0
        elif self._due == _NEVER:
            self._due = time.monotonic() + GROUP_SECONDS
        else:
            return
        self._jobs.put(_wake)

    def _in_memory(self, place: Place) -> tuple[bool, str | None]:
        """Whether the row at a place is in memory, and the row."""
        for batch in (self._buffer, self._flying):
            if batch.covers(place):
                return True, batch.rows.get(place)
        recent = self._recent.get(place)
        return recent is not None, recent

    async def _do_read(self, work: Callable[[], T]) -> T:
        try:
            return await self._do(work)
        except sqlite3.Error as why:
            raise StoreError(f"cannot read {self.path}: {why}", hint="check the disk, then restart") from why

    async def _do(self, work: Callable[[], T]) -> T:
        """Let the thread do something between two commits; raises what it raises, StoreError once closed."""
        return await asyncio.wrap_future(self._submit(work))

    def _submit(self, work: Callable[[], T]) -> "Future[T]":
        if self._closed:
            raise StoreError("the store is closed")
        done: Future[T] = Future()
        self._jobs.put(partial(fulfil, done, work))
        return done

    # Below here, all runs in the thread.

    def _run(self) -> None:
        while not self._is_over:
            work = self._next()
            self._busy_since = time.monotonic()
            work()
            self._busy_since = _NEVER

    def _next(self) -> Callable[[], None]:
        seconds = self._due - time.monotonic()
        with suppress(Empty):
            if seconds > 0:
                return self._jobs.get(timeout=None if seconds == _NEVER else seconds)
        return self._commit

    def _open(self) -> None:
        self._opened = opened = open_or_freeze(self._files, self._lock)
        self.notes, self._meta = opened.notes, opened.meta
        if opened.thaw is not None:
            with self._guard:
                self._refusal, self._due = opened.refusal, time.monotonic() + self._retry
            self._report(opened.refusal)
        self._measure()

    def _finish(self) -> None:
        self._commit()
        self._is_over = True
        if self._opened is not None:
            self._opened.close()
            self._measure()

    def _measure(self) -> None:
        with suppress(OSError):
            self.bytes = self._files.bytes()

    def _commit(self) -> None:
        with self._guard:
            batch, self._buffer = self._buffer, Batch()
            self._flying, self._due = batch, _NEVER
        try:
            if batch or self._refusal is not None:
                self._write(batch)
        except Exception as error:
            self._refused(batch, error)
        else:
            self._accepted(batch)

    def _write(self, batch: Batch) -> None:
        opened = self._ready()
        if opened.thaw is not None:
            self._opened = opened = opened.thaw(batch)
        begin = time.perf_counter()
        with opened.database.atomic():
            rows.write(opened.database, batch)
        self.commits += 1
        self._on_commit(time.perf_counter() - begin)
        self.bytes = self._files.bytes()

    def _accepted(self, batch: Batch) -> None:
        with self._guard:
            self._recent.update(batch)
            self._flying = Batch()
            recovered = self._refusal is not None
            if recovered:
                self._refusal, self._retry = None, RETRY_SECONDS[0]
        if recovered:
            self._report(None)

    def _refused(self, batch: Batch, error: Exception) -> None:
        with self._guard:
            batch.absorb(self._buffer)
            self._buffer, self._flying = batch, Batch()
            self._due, self._retry = time.monotonic() + self._retry, min(2 * self._retry, RETRY_SECONDS[1])
            message = str(error) if isinstance(error, SyncError) else f"cannot write the state: {error}"
            known = self._refusal
            self._refusal = message
        if not isinstance(error, sqlite3.Error | OSError | SyncError):
            _log.error("a defect keeps the state from being written", exc_info=error)
        if message != known:
            self._report(message)

    def _read(self, places: Sequence[Place]) -> list[str | None]:
        connection = self._ready().database.conn
        found = [rows.read_row(connection, place) for place in places]
        with self._guard:
            for place, row in zip(places, found, strict=True):
                if row is not None:
                    self._recent.add(place, row)
        return found

    def _at(self, resource: str) -> tuple[sqlite3.Connection, str, Batch]:
        with self._guard:
            return self._ready().database.conn, resource, Batch({**self._buffer.rows}, {**self._buffer.forgotten})

    def _ready(self) -> Opened:
        if self._opened is None:
            raise StoreError("the database is not open")
        return self._opened

    def _report(self, trouble: str | None) -> None:
        with suppress(RuntimeError):  # the loop was closed before the store
            self._loop.call_soon_threadsafe(self._on_trouble, trouble)


def _wake() -> None:
    """Do nothing: the thread looks again at when a commit is due."""


async def _acquired(lock: Lock) -> Lock:
    until = time.monotonic() + _LOCK_SECONDS
    while True:
        try:
            lock.acquire()
        except Locked:
            if time.monotonic() > until:
                raise
            await asyncio.sleep(0.05)
        else:
            return lock
