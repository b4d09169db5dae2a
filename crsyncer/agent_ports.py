"""The protocols that only the agent's engine needs: its state on disk, and the rest of what it counts."""

from typing import Protocol

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
from crsyncer.ports import MetaStore, Observer


class Store(MetaStore, Protocol):
    """The state on disk. Writes are buffered at once and committed together; reads see the buffered writes (S6)."""

    async def load(self, resource: str, *, only_outbox: bool = False) -> Loaded:
        """Everything known about one kind, or only what waits in its outbox: statuses and finalizers."""
        ...

    async def body(self, side: Side, resource: str, key: Key) -> Json | None:
        """The newest stored copy of an object, without managedFields."""
        ...

    def put_copy(self, side: Side, resource: str, key: Key, view: View, body: Json) -> None:
        """Remember an object as seen on a side."""
        ...

    def drop_copy(self, side: Side, resource: str, key: Key) -> None:
        """Forget an object."""
        ...

    def put_cursor(self, side: Side, resource: str, namespace: str, cursor: Cursor | None) -> None:
        """Move a cursor, in the same transaction as everything put before; None forgets it."""
        ...

    def put_record(self, resource: str, key: Key, record: Record | None) -> None:
        """Set (or remove) the record of a pair."""
        ...

    def put_pending(self, resource: str, key: Key, pending: Pending | None) -> None:
        """Set (or remove) the outbox row of an object."""
        ...

    def put_tombstone(self, resource: str, key: Key, tombstone: Tombstone | None) -> None:
        """Record upstream's deletion, or that it has been carried out."""
        ...

    def put_finalizer(self, resource: str, key: Key, row: FinalizerRow | None) -> None:
        """Set (or remove) the row of the finalizer that an upstream object has, or may have."""
        ...

    async def load_references(self, resource: str) -> dict[Source, ReferenceRow]:
        """What primaries refer to of a kind of related objects."""
        ...

    def put_reference(self, resource: str, source: Source, row: ReferenceRow | None) -> None:
        """Set or remove what a primary refers to of a kind; `forget_kind` leaves it."""
        ...

    def forget_kind(self, resource: str, *, keep_outbox: bool = True) -> None:
        """Drop copies, cursors, records and tombstones of a kind that is not ours any more."""
        ...

    async def durable(self) -> bool:
        """Wait until everything put so far is on disk; False when the store has reported a failing disk."""
        ...


class SecretStore(Store, Protocol):
    """The store of what is sensitive: no body and no status of it is ever on disk (C5.6)."""

    def forget_bodies(self, resource: str) -> None:
        """Have no body of a kind in memory any more."""
        ...


class EngineObserver(Observer, Protocol):
    """Counts events of the engine, too, for status and metrics."""

    def write(self, side: Side, resource: str, verb: str, result: str) -> None:
        """A write was answered; `result`: done or the error.

        Verbs: create, update, delete, status, finalizer, and content for a failure of one of the first three.
        """
        ...

    def noop(self) -> None:
        """A look at a pair found nothing to do."""
        ...

    def latency(self, direction: str, seconds: float) -> None:
        """From an event's arrival to the acknowledged write. `direction`: spec, status."""
        ...
