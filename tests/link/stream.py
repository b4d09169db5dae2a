"""One end of a relayed HTTP connection: heads and bodies in, bytes out, with an eye on the other end."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import suppress

from tests.link.http1 import HEAD_END, Body

CHUNK = 65536
PATIENCE = 3600.0  # seconds for a TLS handshake; a plane that is stopped or slow is for the client to judge
_LONGEST_HEAD = 1 << 20


class Stream:
    """A reader that can be waited for together with another one: a relay must notice either end's leaving."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._buffer = b""
        self._ended = False
        self._reading: asyncio.Task[bytes] | None = None

    async def head(self, *, unless: "Stream | None") -> bytes:
        """The next message's head; nothing when this end or the one in `unless` ends first."""
        while HEAD_END not in self._buffer:
            if len(self._buffer) > _LONGEST_HEAD:
                raise ValueError("a head without an end")
            if not await self._more(unless):
                return b""
        head, _, self._buffer = self._buffer.partition(HEAD_END)
        return head + HEAD_END

    async def body(self, body: Body, *, unless: "Stream | None" = None) -> AsyncIterator[bytes]:
        """What follows a head, piece by piece as it arrives; stops early, `body.done` unset, where `head` would."""
        while not body.done:
            if not self._buffer and not await self._more(unless):
                return
            size = body.feed(self._buffer)
            piece, self._buffer = self._buffer[:size], self._buffer[size:]
            yield piece

    async def write(self, data: bytes) -> None:
        """Send, and wait while the other side does not take it."""
        self._writer.write(data)
        await self._writer.drain()

    async def gone(self) -> None:
        """Return when this end has ended."""
        while not self._ended:
            await self._more(None)

    async def finish(self) -> None:
        """Send what is buffered, then the end."""
        self._writer.close()
        with suppress(TimeoutError, OSError):
            async with asyncio.timeout(5):
                await self._writer.wait_closed()

    def abort(self) -> None:
        """Close at once."""
        if self._reading is not None:
            self._reading.cancel()
        self._writer.transport.abort()

    async def _more(self, unless: "Stream | None") -> bool:
        """Wait for bytes. False when this end has ended, or the other one while this one had nothing to say."""
        while True:
            if self._ended or (unless is not None and unless._ended):
                return False
            watched = [end for end in (self, unless) if end is not None and (end is self or not end._buffer)]
            await asyncio.wait({end._read() for end in watched}, return_when=asyncio.FIRST_COMPLETED)
            before = len(self._buffer)
            for end in watched:
                end._collect()
            if len(self._buffer) > before:
                return True

    def _read(self) -> asyncio.Task[bytes]:
        if self._reading is None:
            self._reading = asyncio.ensure_future(self._reader.read(CHUNK))
        return self._reading

    def _collect(self) -> None:
        """Take what the pending read brought, if it is done. A broken connection is an ended one."""
        if self._reading is None or not self._reading.done():
            return
        data = b"" if self._reading.cancelled() or self._reading.exception() else self._reading.result()
        self._reading = None
        self._buffer += data
        self._ended = not data


async def accept_tls(end: socket.socket, context: ssl.SSLContext) -> Stream:
    """The server's side of TLS on a connected socket. Raises OSError."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(reader)
    transport, _ = await loop.connect_accepted_socket(
        lambda: protocol, end, ssl=context, ssl_handshake_timeout=PATIENCE
    )
    return Stream(reader, asyncio.StreamWriter(transport, protocol, reader, loop))
