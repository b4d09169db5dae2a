"""The protocols that the runtime needs for one API server, and that the adapters implement."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from crsyncer.core.model import Json
from crsyncer.core.requests.answers import judge, shown
from crsyncer.core.requests.calls import Call
from crsyncer.errors import SyncError


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

    def error(self, *, patch: bool = False) -> SyncError | None:
        """None when the request happened; else the error that says whether it may have. `patch`: a JSON Patch (S10)."""
        return judge(self.status, self.body, text=self.text, retry_after=self.retry_after, patch=patch)

    def happened(self, *, patch: bool = False, unless: int = 0) -> "Reply":
        """The same, once it is known that the request happened; else raises that error.

        `unless`: the status code of a request that was made before.
        """
        error = self.error(patch=patch)
        if error is not None and self.status != unless:
            raise error
        return self

    def shown(self) -> Json:
        """The object that the answer shows. Raises the error that it means, Unsure where it shows none."""
        shown(self.happened().body)
        return self.body


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


class Observer(Protocol):
    """Counts what happens to a connection and its list-watches, for metrics. Every call is cheap and never fails."""

    def relist(self, connection: str, resource: str, reason: str) -> None:
        """A full list was started."""
        ...

    def resume(self, connection: str, resource: str) -> None:
        """A watch went on from a cursor."""
        ...

    def event(self, connection: str, resource: str, event_type: str) -> None:
        """A watch delivered an event."""
        ...

    def reconnect(self, connection: str, reason: str) -> None:
        """A lost connection stands again. `reason` is the state in which it was lost."""
        ...
