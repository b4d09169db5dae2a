"""The store's thread: it owns the connection, and turns what is put into group commits (S6.1, S6.5).

A thread of its own, not a task: what was put is on disk in time even while the event loop is busy or being cancelled,
and asyncio never waits for the disk.
"""

import asyncio
import logging
import sqlite3
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import TypeVar

from crsyncer.adapters.store import rows
from crsyncer.adapters.store.codec import RESTS, STATUSES, Place
from crsyncer.adapters.store.database import Opened
from crsyncer.adapters.store.statedir import Files
from crsyncer.adapters.threads import fulfil
from crsyncer.core.model import Loaded
from crsyncer.errors import StoreError, SyncError

GROUP_SECONDS = 0.235
"""From the first put to its commit: with the commit itself, durable within 250 ms (S6.3)."""
RETRY_SECONDS = (0.25, 10.0)
"""First and longest delay before the disk is tried again."""
SILENT_SECONDS = 5.0
"""After so long in one piece of work the disk counts as one that refuses."""
LAST_SECONDS = 4.0
"""How long stopping waits for the disk: the agent has 10 s for everything."""
_FULL = 2_000
"""Rows at which the buffer is committed at once, so that a first list of many objects does not pile up in memory."""
_RECENT_BYTES = 2 << 20
_ENTRY_BYTES = 500
"""What keeping a short row costs."""
_BODIES = frozenset((*STATUSES.values(), *RESTS.values()))
_NEVER = float("inf")

_log = logging.getLogger(__name__)
T = TypeVar("T")


class Committer:
    """A buffer in front of a database. The newest put to a place wins, and all puts are committed in one piece.

    While the disk refuses, the refused batch stays in front of newer puts, cursors included, and is tried again.
    """

    def __init__(
        self, files: Files, *, on_trouble: Callable[[str | None], None], on_commit: Callable[[float], None]
    ) -> None:
        """`on_trouble` is called in the event loop, `on_commit` in the thread, with seconds."""
        self.commits = 0
        self.bytes = 0
        """What the files took on disk after the last commit. The event loop itself never looks at the disk."""
        self._files = files
        self._refusal: str | None = None
        self._busy_since = _NEVER
        self._on_trouble = on_trouble
        self._on_commit = on_commit
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._run, name="crsyncer-store", daemon=True)
        self._opened: Opened | None = None
        self._retry = RETRY_SECONDS[0]
        # Everything below is shared by loop and thread, and touched under _wake.
        self._wake = threading.Condition()
        self._buffer, self._flying = rows.Batch(), rows.Batch()
        self._due = _NEVER
        self._jobs: deque[Callable[[], None]] = deque()
        self._waiters: list[Future[None]] = []
        self._recent = Recent()
        self._closing = False

    @property
    def trouble(self) -> str | None:
        """Why the disk does not take what was put; None while it does, as far as is known."""
        if time.monotonic() - self._busy_since > SILENT_SECONDS:
            return f"the disk has not answered for more than {SILENT_SECONDS:.0f} s"
        return self._refusal

    async def start(self, open_: Callable[[], Opened]) -> Opened:
        """Start the thread and open the database in it; raises what `open_` raises."""

        def begin() -> Opened:
            self._opened = opened = open_()
            if opened.thaw is not None:
                with self._wake:
                    self._refusal, self._due = opened.refusal, time.monotonic() + self._retry
                self._report(opened.refusal)
            self._measure()
            return opened

        self._thread.start()
        return await self._do(begin)

    def put(self, parts: Mapping[Place, str | None]) -> None:
        """Write rows, or remove them, with the next commit: all of them with the same one."""
        with self._wake:
            self._buffer.rows.update(parts)
            self._touch()

    def forget(self, resource: str, *, keep_outbox: bool) -> None:
        """Forget a kind with the next commit, and what was put of it before."""
        with self._wake:
            self._buffer.forget(resource, keep_outbox=keep_outbox)
            self._touch()

    async def flush(self) -> None:
        """Return when everything put so far is on disk, or after the disk has refused it and that was reported."""
        with self._wake:
            if self._closing or self.trouble is not None or not (self._buffer or self._flying):
                return
            committed: Future[None] = Future()
            self._waiters.append(committed)
            self._due = 0.0
            self._wake.notify()
        waiter = asyncio.wrap_future(committed)
        while not waiter.done() and self.trouble is None:
            await asyncio.wait([waiter], timeout=1.0)

    async def read(self, places: Sequence[Place]) -> list[str | None]:
        """The newest rows put at the places of an object's body; raises sqlite3.Error."""
        with self._wake:
            found = [self._in_memory(place) for place in places]
        if all(known for known, _ in found):
            return [row for _, row in found]
        return await self._do(lambda: self._read(places))  # all of them: they belong together

    async def load(self, resource: str) -> tuple[Loaded, list[Place]]:
        """A kind, what is not yet on disk included, and which rows of it were damaged; raises sqlite3.Error."""
        return await self._do(lambda: self._load(resource))

    async def stop(self) -> bool:
        """Commit what is left, fold the WAL into the database and end the thread; False where the disk is silent.

        The thread is then still at it, and dies with the process.
        """
        with self._wake:
            self._closing = True
            self._wake.notify()
        if self._thread.ident is not None:  # else the agent is stopped before the thread begins
            await asyncio.to_thread(self._thread.join, LAST_SECONDS)
        return not self._thread.is_alive()

    def _touch(self) -> None:
        if len(self._buffer.rows) >= _FULL and self._refusal is None and self._due > 0:
            self._due = 0.0
            self._wake.notify()
        elif self._due == _NEVER:
            self._due = time.monotonic() + GROUP_SECONDS
            self._wake.notify()

    def _in_memory(self, place: Place) -> tuple[bool, str | None]:
        """Whether the row at a place is in memory, and the row."""
        for batch in (self._buffer, self._flying):
            if batch.covers(place):
                return True, batch.rows.get(place)
        recent = self._recent.get(place)
        return recent is not None, recent

    async def _do(self, work: Callable[[], T]) -> T:
        """Let the thread do something between two commits; raises what it raises, StoreError once stopped."""
        done: Future[T] = Future()
        with self._wake:
            if self._closing:
                raise StoreError("the store is closed")
            self._jobs.append(partial(fulfil, done, work))
            self._wake.notify()
        return await asyncio.wrap_future(done)

    def _report(self, trouble: str | None) -> None:
        with suppress(RuntimeError):  # the event loop was closed before the store
            self._loop.call_soon_threadsafe(self._on_trouble, trouble)

    # Below here, all runs in the thread.

    def _run(self) -> None:
        while True:
            with self._wake:
                while not (self._jobs or self._closing or time.monotonic() >= self._due):
                    self._wake.wait(None if self._due == _NEVER else max(0.0, self._due - time.monotonic()))
                job = self._jobs.popleft() if self._jobs and time.monotonic() < self._due else None
                done = self._closing and not job
            self._busy_since = time.monotonic()
            (job or self._commit)()
            self._busy_since = _NEVER
            if done:
                break
        if self._opened is not None:
            self._opened.close()
            self._measure()

    def _measure(self) -> None:
        with suppress(OSError):
            self.bytes = self._files.bytes()

    def _commit(self) -> None:
        with self._wake:
            batch, self._buffer = self._buffer, rows.Batch()
            waiters, self._waiters = self._waiters, []
            self._flying, self._due = batch, _NEVER
        try:
            if batch or self._refusal is not None:
                self._write(batch)
        except Exception as error:
            self._refused(batch, error)
        else:
            self._accepted(batch)
        for waiter in waiters:
            fulfil(waiter, lambda: None)

    def _write(self, batch: rows.Batch) -> None:
        opened = self._ready()
        if opened.thaw is not None:
            self._opened = opened = opened.thaw(batch)
        begin = time.perf_counter()
        with opened.database.atomic():
            rows.write(opened.database, batch)
        self.commits += 1
        self._on_commit(time.perf_counter() - begin)
        self.bytes = self._files.bytes()

    def _accepted(self, batch: rows.Batch) -> None:
        with self._wake:
            self._recent.update(batch)
            self._flying = rows.Batch()
            recovered = self._refusal is not None
            if recovered:
                self._refusal, self._retry = None, RETRY_SECONDS[0]
        if recovered:
            self._report(None)

    def _refused(self, batch: rows.Batch, error: Exception) -> None:
        with self._wake:
            batch.absorb(self._buffer)
            self._buffer, self._flying = batch, rows.Batch()
            self._due, self._retry = time.monotonic() + self._retry, min(2 * self._retry, RETRY_SECONDS[1])
            said = str(error) if isinstance(error, SyncError) else f"cannot write the state: {error}"
            message, known = said, self._refusal
            self._refusal = message
        if not isinstance(error, sqlite3.Error | OSError | SyncError):
            _log.error("a defect keeps the state from being written", exc_info=error)
        if message != known:
            self._report(message)

    def _read(self, places: Sequence[Place]) -> list[str | None]:
        connection = self._ready().database.conn
        found = [rows.read_row(connection, place) for place in places]
        with self._wake:
            for place, row in zip(places, found, strict=True):
                if row is not None:
                    self._recent.add(place, row)
        return found

    def _load(self, resource: str) -> tuple[Loaded, list[Place]]:
        with self._wake:
            newer = rows.Batch(dict(self._buffer.rows), dict(self._buffer.forgotten))
        return rows.read_kind(self._ready().database.conn, resource, newer)

    def _ready(self) -> Opened:
        if self._opened is None:
            raise StoreError("the database is not open")
        return self._opened


class Recent:
    """Halves of bodies that were last written or read, bounded in bytes. Only the thread adds, in disk order."""

    __slots__ = ("_bytes", "_rows")

    def __init__(self) -> None:
        self._rows: OrderedDict[Place, str] = OrderedDict()
        self._bytes = 0

    def get(self, place: Place) -> str | None:
        """A row, which then counts as used just now."""
        row = self._rows.get(place)
        if row is not None:
            self._rows.move_to_end(place)
        return row

    def add(self, place: Place, row: str) -> None:
        """Keep a row, at the cost of those that were not used for longest."""
        self._drop(place)
        self._rows[place] = row
        self._bytes += len(row) + _ENTRY_BYTES
        while self._bytes > _RECENT_BYTES:
            self._drop(next(iter(self._rows)))

    def update(self, batch: rows.Batch) -> None:
        """Follow a batch that was written."""
        for place in [place for place in self._rows if batch.covers(place)]:
            self._drop(place)
        for place, row in batch.rows.items():
            if row is not None and place[0] in _BODIES:
                self.add(place, row)

    def _drop(self, place: Place) -> None:
        row = self._rows.pop(place, None)
        if row is not None:
            self._bytes -= len(row) + _ENTRY_BYTES
