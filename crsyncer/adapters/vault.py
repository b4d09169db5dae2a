"""Keeps what is sensitive: bodies in memory, and the key of their digests in a file (C5.6)."""

import logging
import os
import secrets
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

from crsyncer.adapters.store.statedir import DIGEST_KEY, sync_names
from crsyncer.agent_ports import Store
from crsyncer.core.content.shape import bare
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

log = logging.getLogger(__name__)

_KEY_BYTES = 32
_FLAGS = os.O_NOFOLLOW | os.O_CLOEXEC


def digest_key(directory: Path) -> bytes:
    """The key in the state directory; a new one where there is none, or another file: that costs one write per copy.

    A disk that refuses it costs the same at the next start.
    """
    path = directory / DIGEST_KEY
    try:
        with open(os.open(path, os.O_RDONLY | _FLAGS), "rb") as file:
            if len(found := file.read(_KEY_BYTES + 1)) == _KEY_BYTES:
                return found
    except FileNotFoundError:
        pass
    except OSError as error:
        log.warning("%s cannot be read, so each copy of a Secret is written once: %s", path, error.strerror)
    new = secrets.token_bytes(_KEY_BYTES)
    try:
        path.unlink(missing_ok=True)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FLAGS, 0o600), "wb") as file:
            file.write(new)
            file.flush()
            os.fsync(file.fileno())
        sync_names(directory)
    except OSError as error:
        log.warning("%s cannot be written, so the next start writes each copy of a Secret: %s", path, error.strerror)
    return new


class Vault:
    """The store of what is sensitive: all but bodies and statuses is in `store`, on disk. Bodies end with the process.

    Nor is there a cursor on disk, so that after a start each object is listed, and its body known again.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._bodies: dict[tuple[str, Side, Key], Json] = {}

    async def load(self, resource: str, *, only_outbox: bool = False) -> Loaded:
        """As the store's, and which objects were seen since the start.

        What it has of the time before the kind was sensitive is taken from the disk.
        """
        loaded = await self._store.load(resource, only_outbox=only_outbox)
        whole = await self._store.load(resource) if only_outbox else loaded
        for side, views in whole.views.items():
            for key, view in views.items():
                if await self._store.body(side, resource, key) not in (None, _stub(key)):
                    views[key] = replace(view, failure="")
                    self._store.put_copy(side, resource, key, views[key], _stub(key))
        for key in loaded.pending:
            self.put_pending(resource, key, None)
        loaded.pending.clear()
        loaded.seen.update((side, key) for name, side, key in self._bodies if name == resource)
        return loaded

    async def body(self, side: Side, resource: str, key: Key) -> Json | None:
        """The object as it was seen last, a copy of its own; None: it was not seen since the start."""
        return deepcopy(self._bodies.get((resource, side, key)))

    def put_copy(self, side: Side, resource: str, key: Key, view: View, body: Json) -> None:
        """Keep the body, and have the store keep what decisions need."""
        self._bodies[resource, side, key] = bare(body)
        self._store.put_copy(side, resource, key, view, _stub(key))

    def drop_copy(self, side: Side, resource: str, key: Key) -> None:
        """Forget the object."""
        self._bodies.pop((resource, side, key), None)
        self._store.drop_copy(side, resource, key)

    def put_cursor(self, side: Side, resource: str, namespace: str, cursor: Cursor | None) -> None:
        """No cursor is kept."""

    def put_record(self, resource: str, key: Key, record: Record | None) -> None:
        """As the store's."""
        self._store.put_record(resource, key, record)

    def put_pending(self, resource: str, key: Key, pending: Pending | None) -> None:  # noqa: ARG002 - as every Store
        """No status of what is sensitive waits for upstream: it could quote a value."""
        self._store.put_pending(resource, key, None)

    def put_tombstone(self, resource: str, key: Key, tombstone: Tombstone | None) -> None:
        """As the store's."""
        self._store.put_tombstone(resource, key, tombstone)

    def put_finalizer(self, resource: str, key: Key, row: FinalizerRow | None) -> None:
        """As the store's."""
        self._store.put_finalizer(resource, key, row)

    def forget_bodies(self, resource: str) -> None:
        """Have no body of a kind in memory any more."""
        self._bodies = {place: body for place, body in self._bodies.items() if place[0] != resource}

    async def load_references(self, resource: str) -> dict[Source, ReferenceRow]:
        """As the store's."""
        return await self._store.load_references(resource)

    def put_reference(self, resource: str, source: Source, row: ReferenceRow | None) -> None:
        """As the store's."""
        self._store.put_reference(resource, source, row)

    def forget_kind(self, resource: str, *, keep_outbox: bool = True) -> None:
        """Forget every object of a kind."""
        self.forget_bodies(resource)
        self._store.forget_kind(resource, keep_outbox=keep_outbox)

    def get_meta(self, name: str) -> Any:
        """As the store's."""
        return self._store.get_meta(name)

    def put_meta(self, name: str, value: Any) -> None:
        """As the store's."""
        self._store.put_meta(name, value)

    async def durable(self) -> bool:
        """As the store's."""
        return await self._store.durable()


def _stub(key: Key) -> Json:
    """What is on disk in place of a body."""
    return {"metadata": {"name": key.name}}
