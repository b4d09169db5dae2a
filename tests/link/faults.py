"""What a link saw, and what it does to some of it."""

import asyncio
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from tests.link.thread import LoopThread


@dataclass(slots=True)
class Request:
    """What the agent asked, and what it got."""

    time: float
    """Seconds of time.monotonic() when its head had arrived."""
    method: str
    path: str
    """Without the query."""
    query: str
    headers: Mapping[str, str]
    """Names in lower case."""
    status: int = 0
    """0 as long as there is no answer."""
    bytes_in: int = 0
    """Head and body of the request, without TLS."""
    bytes_out: int = 0
    """Head and body of the answer so far, without TLS."""
    body: bytes = b""
    """The first 64 KiB; nothing any more once the link keeps 32 MiB of bodies."""
    done: bool = False
    """The answer is complete, or will never be."""

    @property
    def user_agent(self) -> str:
        """Who asked."""
        return self.headers.get("user-agent", "")

    @property
    def target(self) -> str:
        """Path and query: what the patterns of a link are searched in."""
        return f"{self.path}?{self.query}" if self.query else self.path


class Fault(Enum):
    """What an injection does with a request."""

    ANSWER = "answer it in place of the plane"
    STALL = "never answer"
    HANG_UP = "close the connection without an answer"
    TRUNCATE = "cut the answer in the middle"


@dataclass(slots=True)
class Injection:
    """A fault that waits for its requests: `count` says how many it hit so far, `remove` ends it."""

    fault: Fault
    pattern: re.Pattern[str]
    thread: LoopThread
    """The link's, which meets the requests."""
    method: str | None = None
    when: Callable[[Request], bool] | None = None
    times: int | None = None
    after_request: bool = False
    """The plane carries the request out first: a lost or falsified reply."""
    status: int = 0
    response: bytes = b""
    after_bytes: int = 0
    count: int = 0
    removed: asyncio.Event = field(default_factory=asyncio.Event)

    def remove(self) -> None:
        """No further request is hit; those that are stalled end in a closed connection."""
        if self.thread.running:
            self.thread.run(self._remove())

    async def _remove(self) -> None:
        self.removed.set()

    def matches(self, request: Request) -> bool:
        """Is it due for this request?"""
        return (
            not self.removed.is_set()
            and (self.times is None or self.count < self.times)
            and self.method in (None, request.method)
            and self.pattern.search(request.target) is not None
            and (self.when is None or self.when(request))
        )

    def reaches_plane(self) -> bool:
        """Does the plane see the request?"""
        return self.after_request or self.fault is Fault.TRUNCATE
