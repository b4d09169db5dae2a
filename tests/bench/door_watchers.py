"""Robots that watch, thousands of them in one process: TLS streams with their own tokens, each in its own namespace.

Run as `python -m tests.bench.door_watchers ADDRESS PORT CA SOURCE FILE KIND...`. FILE has a line for each robot, its
namespace and its token; each has a stream for each KIND, a collection such as `apis/GROUP/v1/NAMESPACE/PLURAL`. A
stream asks what an agent asks when it connects: a list of one object, the kind's discovery, then the watch; it waits as
the agent does, by `core`'s rules. Like the agent (`tests/door/test_patience.py`) it keeps the connection where a server
asks for patience, and grants as much as was asked for. SOURCE is the address that the connections come from. Commands
come on standard input: `report` prints one line of JSON and forgets the events that it tells of.

It decodes no JSON and has no event loop of Python's: 10,000 streams cost the same machine as the servers.
"""

import errno
import heapq
import json
import random
import re
import selectors
import socket
import ssl
import sys
import time
from collections import deque
from enum import Enum, auto
from itertools import count
from pathlib import Path

from crsyncer.core.watching.backoff import RETRY, capped, spread
from crsyncer.core.watching.watch import probe_wait

_LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d+)")
_RETRY_AFTER = re.compile(rb"(?i)\r\nretry-after: *(\d+)")
_VERSION = re.compile(rb'"resourceVersion":"(\d+)"')
_SENT = re.compile(rb'"sent":(\d+)')
_NAMESPACE = re.compile(rb'"namespace":"([^"]+)"')
_MOST_AT_ONCE = 128
"""Connections that are being made for the first time: this process alone would be the limit otherwise."""
_HEAD_SECONDS = 60.0
_LEAST_PATIENCE = 1.0
_PATIENCE = (b"429", b"503")
"""After these answers a connection is used again."""


class Phase(Enum):
    """How far a stream is."""

    WAITING = auto()
    CONNECTING = auto()
    HANDSHAKE = auto()
    ASKING = auto()
    OPEN = auto()


_AT_REST = (Phase.WAITING, Phase.OPEN)


class Robots:
    """All streams of this process, and what they have seen."""

    def __init__(self, address: tuple[str, int], ca: str, source: str) -> None:
        self.address = address
        self.source = source
        self.tls = ssl.create_default_context(cafile=ca)
        self.selector = selectors.DefaultSelector()
        self.of = 0
        self.busy = 0
        self.open = 0
        self.opened = 0
        """How often a watch was opened, ever."""
        self.foreign = 0
        self.refused: dict[str, int] = {}
        """Answers and ends that were not wanted, by what they were."""
        self.events: list[tuple[str, int, int]] = []
        """Namespace, when it was written and how long it took: nanoseconds."""
        self._timers: list[tuple[float, int, int, Stream]] = []
        self._numbers = count()

    def later(self, seconds: float, stream: "Stream") -> None:
        """Look after a stream then, unless it has failed meanwhile."""
        heapq.heappush(self._timers, (time.monotonic() + seconds, next(self._numbers), stream.turn, stream))

    def look(self, now: float) -> None:
        """Connect the streams whose wait is over, and give up answers that are overdue."""
        while self._timers and self._timers[0][0] <= now:
            _, _, turn, stream = heapq.heappop(self._timers)
            if turn == stream.turn and stream.phase is Phase.WAITING:
                stream.begin()
            elif turn == stream.turn and stream.phase is not Phase.OPEN:
                stream.fail("no answer")

    def report(self) -> str:
        """As JSON; the events are forgotten."""
        events, self.events = self.events, []
        known = {"open": self.open, "of": self.of, "opened": self.opened, "foreign": self.foreign}
        return json.dumps({**known, "refused": self.refused, "events": events})


class Stream:
    """A robot's watch of a kind, and the way to it."""

    __slots__ = (
        *(
            "asked",
            "failures",
            "is_watching",
            "lost_at",
            "namespace",
            "path",
            "pending",
            "phase",
            "plain",
            "rest",
            "robots",
            "sock",
            "token",
        ),
        *("turn", "version"),
    )

    def __init__(self, robots: Robots, namespace: str, token: str, kind: str) -> None:
        self.robots = robots
        self.namespace = namespace
        self.token = token
        self.path = f"/{kind.replace('NAMESPACE', f'namespaces/{namespace}')}"
        self.phase = Phase.WAITING
        self.failures = 0
        self.lost_at: float | None = None
        """Since when it is not open, once it was or was tried."""
        self.pending: list[str] = []
        self.asked = ""
        self.rest = b""
        self.version = 0
        self.is_watching = False
        self.turn = 0
        """How often it has failed, ever: a deadline is of one turn."""
        self.plain: socket.socket | None = None
        """The connection before there is TLS on it."""
        self.sock: ssl.SSLSocket | None = None

    def begin(self) -> None:
        """Connect, or ask again on a connection that was kept."""
        if self.sock is None:
            self.connect()
            return
        self.move_to(Phase.ASKING)
        self.robots.later(_HEAD_SECONDS, self)
        try:
            self.send()
        except OSError as error:
            self.fail(type(error).__name__)

    def connect(self) -> None:
        """Begin with a connection."""
        robots = self.robots
        plain = socket.socket()
        plain.setblocking(False)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        plain.bind((robots.source, 0))
        code = plain.connect_ex(robots.address)
        if code not in (0, errno.EINPROGRESS):
            plain.close()
            self.fail(errno.errorcode.get(code, str(code)))
            return
        self.plain = plain
        self.move_to(Phase.CONNECTING)
        robots.later(_HEAD_SECONDS, self)
        robots.selector.register(plain, selectors.EVENT_WRITE, self)

    def act(self) -> None:
        """Go on as far as the socket lets it."""
        try:
            if self.phase is Phase.CONNECTING:
                self.begin_handshake()
            assert self.sock is not None
            if self.phase is Phase.HANDSHAKE:
                self.sock.do_handshake()
                self.move_to(Phase.ASKING)
                group = self.path.partition("/namespaces/")[0]
                self.pending = [group, f"{self.path}?limit=1"]
                self.ask()
            self.read()
        except ssl.SSLWantReadError:
            self.want(selectors.EVENT_READ)
        except ssl.SSLWantWriteError:
            self.want(selectors.EVENT_WRITE)
        except OSError as error:
            self.fail(type(error).__name__)

    def begin_handshake(self) -> None:
        """Begin with TLS on a connection that is there; Python would not before. Raises OSError."""
        robots, plain = self.robots, self.plain
        assert plain is not None
        if code := plain.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            raise OSError(code, "refused")
        robots.selector.unregister(plain)
        self.plain = None
        self.sock = robots.tls.wrap_socket(plain, server_hostname=robots.address[0], do_handshake_on_connect=False)
        robots.selector.register(self.sock, selectors.EVENT_READ, self)
        self.move_to(Phase.HANDSHAKE)

    def want(self, events: int) -> None:
        """Be woken for this."""
        assert self.sock is not None
        self.robots.selector.modify(self.sock, events, self)

    def ask(self) -> None:
        """Send the next request; after the others the watch."""
        query = f"watch=true&allowWatchBookmarks=true&timeoutSeconds=600&resourceVersion={self.version}"
        self.is_watching = not self.pending
        self.asked = self.pending.pop() if self.pending else f"{self.path}?{query}"
        self.send()

    def send(self) -> None:
        """Send the request that is asked for."""
        assert self.sock is not None
        lines = (f"GET {self.asked} HTTP/1.1", "Host: door", "Accept: application/json")
        self.sock.sendall("\r\n".join((*lines, f"Authorization: Bearer {self.token}", "", "")).encode())

    def move_to(self, phase: Phase) -> None:
        """Be in another phase, and have it counted."""
        robots = self.robots
        robots.busy += (phase not in _AT_REST) - (self.phase not in _AT_REST)
        robots.open += (phase is Phase.OPEN) - (self.phase is Phase.OPEN)
        self.phase = phase

    def read(self) -> None:
        """Read all that is there."""
        while self.sock is not None:
            data = self.sock.recv(65536)
            if not data:
                self.fail("ended")
                return
            self.rest += data
            if self.phase is Phase.ASKING and not self.answered():
                return
            if self.phase is Phase.OPEN:
                self.see(time.monotonic_ns())

    def answered(self) -> bool:
        """Take an answer that is whole, and ask the next; False where the stream has failed."""
        head, gap, body = self.rest.partition(b"\r\n\r\n")
        if not gap:
            return True
        status, length = head[9:12], _LENGTH.search(head)
        if status not in (b"200", *_PATIENCE):
            self.fail(status.decode(errors="replace"))
            return False
        if self.is_watching and status == b"200":
            self.move_to(Phase.OPEN)
            self.rest, self.failures, self.lost_at = body, 0, None
            self.robots.opened += 1
            return True
        if not (len(body) >= int(length[1]) if length else body.endswith(b"0\r\n\r\n")):
            return True
        if status in _PATIENCE:
            asked = _RETRY_AFTER.search(head)
            self.refused(status, float(asked[1]) if asked else None)
        else:
            self.version = max(map(int, _VERSION.findall(body)), default=self.version)
            self.rest = b""
            self.ask()
        return True

    def see(self, now: int) -> None:
        """Take the events that are whole."""
        *lines, self.rest = self.rest.split(b"\n")
        for line in lines:
            if not line.startswith(b"{"):
                continue
            if line.startswith(b'{"type":"ERROR"'):
                self.fail("event ERROR")
                return
            namespace = _NAMESPACE.search(line)
            if namespace is not None and namespace[1].decode() != self.namespace:
                self.robots.foreign += 1
            if (sent := _SENT.search(line)) is not None:
                self.robots.events.append((self.namespace, int(sent[1]), now - int(sent[1])))

    def refused(self, status: bytes, retry_after: float | None) -> None:
        """Wait for what the server has asked for, on this connection; but for a watch that is throttled, and longer."""
        asked = spread(capped(retry_after, default=_LEAST_PATIENCE), random.random())
        again = 0.0 if self.is_watching and status == b"429" else RETRY.wait(self.failures, random.random())
        self.wait(status.decode(), asked + again)

    def fail(self, why: str) -> None:
        """Hang up and wait."""
        kept = self.phase is Phase.WAITING
        for each in (self.plain, self.sock):
            if each is not None:
                self.robots.selector.unregister(each)
                each.close()
        self.plain = self.sock = None
        self.version = 0
        if kept:
            return  # the server has closed a connection on which nothing was asked: the next request makes another
        now = time.monotonic()
        self.lost_at = now if self.lost_at is None else self.lost_at
        self.wait(why, probe_wait(outage=now - self.lost_at, errors=0, chance=random.random()))

    def wait(self, why: str, seconds: float) -> None:
        """Try again when an agent would."""
        refused = self.robots.refused
        refused[why] = refused.get(why, 0) + 1
        self.move_to(Phase.WAITING)
        self.rest = b""
        self.turn += 1
        self.robots.later(seconds, self)
        self.failures += 1


def main(address: str, port: str, ca: str, source: str, file: str, *kinds: str) -> None:
    """Watch until standard input ends."""
    robots = Robots((address, int(port)), ca, source)
    lines = [line.split() for line in Path(file).read_text().splitlines()]
    first = deque(Stream(robots, namespace, token, kind) for namespace, token in lines for kind in kinds)
    robots.of = len(first)
    robots.selector.register(sys.stdin, selectors.EVENT_READ, None)
    while True:
        for key, _ in robots.selector.select(0.05):
            if key.data is not None:
                key.data.act()
            elif sys.stdin.readline() == "":
                return
            else:
                print(robots.report(), flush=True)
        while first and robots.busy < _MOST_AT_ONCE:
            first.popleft().connect()
        robots.look(time.monotonic())


if __name__ == "__main__":
    main(*sys.argv[1:])
