"""The wire between two programs: a TCP relay that can be cut, frozen, slowed, and counts what passes."""

import asyncio
import ctypes
import random
import socket
import struct
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress

_CHUNK = 65536
_HOST = "127.0.0.1"
# Linux: a socket filter (classic BPF) that keeps 0 bytes of each packet, that is, drops it before TCP sees it.
_SO_ATTACH_FILTER = 26
_DROP_ALL = struct.pack("HBBI", 0x06, 0, 0, 0)

Dial = Callable[[], Awaitable[socket.socket]]


class Wire:
    """Relays each connection to `port` over a socket that `dial` opens. Used inside one running event loop.

    When `cut` has returned, connecting is refused and every connection is closed.
    """

    def __init__(self, port: int, *, dial: Dial) -> None:
        self.port = port
        self.bytes_up = 0
        self.bytes_down = 0
        self.connects = 0
        self.latency = 0.0
        """Seconds that every byte is late, in each direction; handshakes of TCP excepted."""
        self.rate: float | None = None
        """Bytes per second in each direction, shared by all connections."""
        self.loss = 0.0
        """The part of all pieces that is lost once, and so is late by another round trip, with all that follows it."""
        self._free = {True: 0.0, False: 0.0}
        """When the line is free again, up and down, in event loop time."""
        self._chance = random.Random(1)
        self._dial = dial
        self._listener: socket.socket | None = None
        self._accepting: asyncio.Task[None] | None = None
        self._pairs: dict[asyncio.Task[None], _Pair] = {}
        self._frozen = False

    @property
    def connections(self) -> int:
        """Open now."""
        return len(self._pairs)

    async def open(self) -> None:
        """Listen and relay; what was frozen is dropped, as by a peer that has forgotten it."""
        if self._listener is not None and not self._frozen:
            return
        await self.cut()
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((_HOST, self.port))
        listener.listen(512)
        listener.setblocking(False)
        self._listener = listener
        self._accepting = asyncio.ensure_future(self._accept(listener))

    async def cut(self) -> None:
        """Refuse connections and reset those that are open."""
        self._frozen = False
        if self._accepting is not None:
            self._accepting.cancel()
            self._accepting = None
        if self._listener is not None:
            _close(self._listener)
            self._listener = None
        pairs, self._pairs = self._pairs, {}
        for task, pair in pairs.items():
            pair.reset()
            task.cancel()
        await asyncio.gather(*pairs, return_exceptions=True)

    async def freeze(self) -> None:
        """Packets vanish: nothing is read, acknowledged, written, closed or accepted, until `open` or `cut`."""
        if self._listener is None or self._frozen:
            return
        self._frozen = True
        drop_packets(self._listener)
        if self._accepting is not None:
            self._accepting.cancel()
            self._accepting = None
        for task, pair in self._pairs.items():
            drop_packets(pair.client)
            pair.hold = True  # its sockets stay open when its task ends
            task.cancel()

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                client, _ = await loop.sock_accept(listener)
            except OSError:  # out of file descriptors, or a client that is gone already
                await asyncio.sleep(0.05)
                continue
            client.setblocking(False)
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.connects += 1
            pair = _Pair(client)
            task = asyncio.ensure_future(self._relay(pair))
            self._pairs[task] = pair
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        pair = self._pairs.get(task)  # None: the wire was cut meanwhile
        if pair is not None and not pair.hold:
            del self._pairs[task]

    async def _relay(self, pair: "_Pair") -> None:
        try:
            pair.server = await self._dial()
            async with asyncio.TaskGroup() as group:
                group.create_task(self._carry(pair.client, pair.server, up=True))
                group.create_task(self._carry(pair.server, pair.client, up=False))
        except* OSError:
            pair.reset()  # one end broke, and so must the other
        finally:
            if not pair.hold:
                pair.close()

    async def _carry(self, source: socket.socket, sink: socket.socket, *, up: bool) -> None:
        """Move bytes until the source ends, then say so to the sink. OSError when either breaks."""
        loop = asyncio.get_running_loop()
        late: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(64)
        async with asyncio.TaskGroup() as group:
            deliverer: asyncio.Task[None] | None = None
            while True:
                data = await loop.sock_recv(source, min(_CHUNK, max(256, int(self.rate / 8))) if self.rate else _CHUNK)
                if up:
                    self.bytes_up += len(data)
                else:
                    self.bytes_down += len(data)
                if self.rate:
                    self._free[up] = max(loop.time(), self._free[up]) + len(data) / self.rate
                    await asyncio.sleep(self._free[up] - loop.time())
                if self.latency or deliverer is not None:  # once late always late, or bytes would overtake each other
                    deliverer = deliverer or group.create_task(_deliver(late, sink))
                    trips = 3 if self._chance.random() < self.loss else 1
                    await late.put((loop.time() + trips * self.latency, data))
                else:
                    await _pass_on(data, sink)
                if not data:
                    return


class _Pair:
    """The two sockets of a relayed connection."""

    __slots__ = ("client", "hold", "server")

    def __init__(self, client: socket.socket) -> None:
        self.client = client
        self.server: socket.socket | None = None
        self.hold = False

    def close(self) -> None:
        for end in (self.client, self.server):
            if end is not None:
                _close(end)

    def reset(self) -> None:
        """Close so that both peers get a reset instead of an end."""
        self.hold = False
        for end in (self.client, self.server):
            if end is not None and end.fileno() >= 0:
                with suppress(OSError):
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close()


async def connect(port: int) -> socket.socket:
    """A TCP connection to a port of 127.0.0.1. Raises OSError."""
    target = socket.socket()
    target.setblocking(False)
    try:
        target.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await asyncio.get_running_loop().sock_connect(target, (_HOST, port))
    except BaseException:
        _close(target)
        raise
    return target


async def _deliver(late: "asyncio.Queue[tuple[float, bytes]]", sink: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    data = b"."
    while data:
        due, data = await late.get()
        await asyncio.sleep(max(0.0, due - loop.time()))
        await _pass_on(data, sink)


async def _pass_on(data: bytes, sink: socket.socket) -> None:
    if data:
        await asyncio.get_running_loop().sock_sendall(sink, data)
    else:
        with suppress(OSError):  # it may have gone first
            sink.shutdown(socket.SHUT_WR)


def _close(end: socket.socket) -> None:
    """Close, and tell the event loop first: it would go on with the next socket of that number."""
    if end.fileno() >= 0:
        loop = asyncio.get_running_loop()
        loop.remove_reader(end)
        loop.remove_writer(end)
        end.close()


def drop_packets(end: socket.socket) -> None:
    """Let incoming packets vanish unacknowledged, so that the peer's kernel sees a dead link as well.

    Elsewhere than on Linux the peer's packets are acknowledged until a buffer is full, and only silence remains.
    """
    if sys.platform == "linux":
        program = ctypes.create_string_buffer(_DROP_ALL)
        # struct sock_fprog: a length and, aligned, a pointer
        end.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack("HP", 1, ctypes.addressof(program)))
