"""The state on disk: SQLite behind a buffer (S6). The thread that owns the disk is in `committer`, the format of rows
in `codec` and `rows`, and the handling of broken files and disks in `database`.
"""

import asyncio
import json
import logging
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from crsyncer.adapters.store import codec
from crsyncer.adapters.store.codec import CURSORS, META, OUTBOX, RECORD, TOMBSTONES, Place, Plain
from crsyncer.adapters.store.committer import Committer
from crsyncer.adapters.store.database import Opened, open_or_freeze
from crsyncer.adapters.store.schema import STEPS
from crsyncer.adapters.store.statedir import Files, Lock, prepare
from crsyncer.core.model import Cursor, Json, Key, Loaded, Pending, Record, Side, Tombstone, View
from crsyncer.errors import Locked, StoreError

_LOCK_SECONDS = 0.5
"""How long we try to take the directory: an agent that ends, or a reader that looks for one, is soon done."""

_log = logging.getLogger(__name__)


def _ignore(_: object) -> None:
    """The default callback."""


class SqliteStore:
    """Implements ports.Store. Made by `open`; without `close` the last 250 ms are lost.

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
        self._lock = lock
        self._rebuilt = False
        self._meta: dict[str, Any] = {}
        self._committer = Committer(files, on_trouble=on_trouble, on_commit=on_commit)

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
        lock = await _acquired(Lock(directory))
        store = cls(files, lock, on_trouble, on_commit)
        try:
            store._begin(await store._committer.start(lambda: open_or_freeze(files, lock)))
        except BaseException:
            await store.close()
            raise
        return store

    @property
    def trouble(self) -> str | None:
        """What is wrong with the disk now, also where it only keeps silent, which `on_trouble` is not called for."""
        return self._committer.trouble

    @property
    def state(self) -> str:
        """`degraded` while the disk refuses, `rebuilt` when the database had to be made anew at start, else `ok`."""
        if self.trouble is not None:
            return "degraded"
        return "rebuilt" if self._rebuilt else "ok"

    @property
    def bytes(self) -> int:
        """What the database took on disk after the last commit."""
        return self._committer.bytes

    @property
    def commits(self) -> int:
        """How many transactions were written since `open`."""
        return self._committer.commits

    async def load(self, resource: str) -> Loaded:
        """Everything known about one kind, what is not yet on disk included; raises StoreError.

        A row whose checksum does not fit is left out and noted; with an observation, that side's cursors are left
        out too, so that the gap is listed anew instead of being taken for an absence.
        """
        try:
            loaded, damaged = await self._committer.load(resource)
        except sqlite3.Error as error:
            raise StoreError(f"cannot read {self.path}: {error}", hint="check the disk, then restart") from error
        self.notes.extend(f"damaged, to be listed anew: {place}" for place in damaged)
        return loaded

    async def body(self, side: Side, resource: str, key: Key) -> Json | None:
        """The newest stored copy, which the caller may change; None where there is none that can be read."""
        places = codec.object_places(side, resource, key)[1:]
        try:
            return codec.load_body(await self._committer.read(places), places)
        except (sqlite3.Error, TypeError, ValueError) as error:
            _log.warning("cannot read the copy of %s %s on side %s: %s", resource, key, side, error)
            return None

    def put_copy(self, side: Side, resource: str, key: Key, view: View, body: Json) -> None:
        """Remember an object as seen on a side. The body is encoded at once, so the caller may change it later."""
        self._committer.put(codec.dump_object(view, body, codec.object_places(side, resource, key)))

    def drop_copy(self, side: Side, resource: str, key: Key) -> None:
        """Forget an object."""
        self._committer.put(dict.fromkeys(codec.object_places(side, resource, key)))

    def put_cursor(self, side: Side, resource: str, namespace: str, cursor: Cursor | None) -> None:
        """Move a cursor, in the same transaction as everything put before; None forgets it."""
        self._put((CURSORS, resource, namespace, side.value), cursor)

    def put_record(self, resource: str, key: Key, record: Record | None) -> None:
        """Remember (or forget) what was agreed on a pair."""
        self._put((RECORD, resource, key.namespace, key.name), record)

    def put_pending(self, resource: str, key: Key, pending: Pending | None) -> None:
        """Set (or remove) the outbox row of an object; comparing `seq` before a removal is the caller's duty."""
        self._put((OUTBOX, resource, key.namespace, key.name), pending)

    def put_tombstone(self, resource: str, key: Key, tombstone: Tombstone | None) -> None:
        """Record upstream's deletion, or that it has been carried out."""
        self._put((TOMBSTONES, resource, key.namespace, key.name), tombstone)

    def forget_kind(self, resource: str, *, keep_outbox: bool = True) -> None:
        """Drop copies, cursors, records and tombstones of a kind that is not ours any more."""
        self._committer.forget(resource, keep_outbox=keep_outbox)

    def get_meta(self, name: str) -> Any:
        """A small JSON value; None when it was never set."""
        return self._meta.get(name)

    def put_meta(self, name: str, value: Any) -> None:
        """Set a small JSON value."""
        text = codec.dump(value)
        self._meta[name] = json.loads(text)
        place = (META, "", "", name)
        self._committer.put({place: codec.seal(text, place)})

    async def durable(self) -> None:
        """Return when everything put so far is on disk, or when the store has reported that the disk refuses it."""
        await self._committer.flush()

    async def close(self) -> None:
        """Write what is left, fold the WAL into the database, and give the directory up. Puts after it are lost.

        A disk that does not answer is not waited for; the directory then stays ours until the process ends.
        """
        if await self._committer.stop():
            self._lock.release()
        else:
            _log.error("the disk does not answer: what it did not take is forgotten, and collected at the next start")

    def _begin(self, opened: Opened) -> None:
        self.notes, self._rebuilt, self._meta = opened.notes, opened.rebuilt, opened.meta

    def _put(self, place: Place, value: Plain | None) -> None:
        self._committer.put({place: None if value is None else codec.seal(codec.dump_fields(value), place)})


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
