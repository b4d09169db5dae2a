"""The protocols that runtime and engine need, and that the adapters implement."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol

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
from crsyncer.core.requests.calls import Call


@dataclass(frozen=True, slots=True)
class Reply:
    """An HTTP answer, whatever its status. `body` is the decoded JSON object, or {} where it was none."""

    status: int
    body: Json
    text: str = ""
    """The first 500 characters of a body that was not a JSON object."""
    retry_after: float | None = None
    """Seconds, from the Retry-After header."""
    size: int = 0
    """Bytes of the body, uncompressed."""
    date: float | None = None
    """When the server answered, by its own clock (Date header): Unix time in seconds."""


Send = Callable[[Call], Awaitable[Reply]]
"""Sends one request to one server; raises Unsure when there was no answer."""


class Cluster(Protocol):
    """One API server, through one pool of connections. Knows HTTP, TLS and credentials, and nothing of syncing."""

    server: str
    """Base URL, without credentials."""
    fallback_identity: str
    """Digest of CA and server URL: the identity of last resort (S8.1)."""
    clock_offset: float | None
    """By how many seconds the server's clock was ahead of this machine's at its latest answer; None: not known."""

    async def request(self, call: Call, *, progress: Callable[[], None] | None = None) -> Reply:
        """Send one request. Any HTTP answer is a Reply; raises Unsure when there was none, TooLarge among them.

        `progress` is called whenever a part of a good answer (2xx) arrives, which may take a while.
        Raises NotAllowed as long as there has never been a credential to send.
        """
        ...

    def watch(self, call: Call, *, read_timeout: float) -> AbstractAsyncContextManager["Stream"]:
        """Open a watch. Entering raises Unsure when there was no answer."""
        ...

    def refresh_credentials(self) -> bool:
        """Read the kubeconfig and its files again (S10); True when something in them changed."""
        ...

    async def close(self) -> None:
        """Close every connection."""
        ...


class Stream(Protocol):
    """An open watch."""

    status: int
    reply: Reply | None
    """The whole answer where the status is not 200."""

    def lines(self) -> AsyncIterator[bytes]:
        """Complete lines, each at most 4 MiB; ends at a clean end.

        Raises Unsure on a cut, a time-out, an unfinished or overlong line.
        """
        ...


class MetaStore(Protocol):
    """Small values that outlive the agent: all that a connection needs of the store."""

    def get_meta(self, name: str) -> Any:
        """A small JSON value, such as a cluster's identity; None when it was never set."""
        ...

    def put_meta(self, name: str, value: Any) -> None:
        """Set a small JSON value."""
        ...


class Store(Protocol):
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

    def get_meta(self, name: str) -> Any:
        """A small JSON value, such as a side's identity; None when it was never set."""
        ...

    def put_meta(self, name: str, value: Any) -> None:
        """Set a small JSON value."""
        ...

    async def durable(self) -> None:
        """Return when everything put so far is on disk, or when the store has reported a failing disk."""
        ...


class SecretStore(Store, Protocol):
    """The store of what is sensitive: no body and no status of it is ever on disk (C5.6)."""

    def forget_bodies(self, resource: str) -> None:
        """Have no body of a kind in memory any more."""
        ...


class Observer(Protocol):
    """Counts events of runtime and engine, for status and metrics. Every call is cheap and never fails."""

    def relist(self, connection: str, resource: str, reason: str) -> None:
        """A full list was started."""
        ...

    def resume(self, connection: str, resource: str) -> None:
        """A watch went on from a cursor."""
        ...

    def event(self, connection: str, resource: str, event_type: str) -> None:
        """A watch delivered an event."""
        ...

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

    def reconnect(self, connection: str, reason: str) -> None:
        """A lost connection stands again. `reason` is the state in which it was lost."""
        ...
