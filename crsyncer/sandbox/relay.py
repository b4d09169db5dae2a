"""Relays TCP connections to a plane: the demo's link to the cloud, which can be cut."""

import asyncio
import socket
import struct
from contextlib import suppress
from types import TracebackType

from crsyncer.sandbox.free_ports import free_ports, give_back

_HOST = "127.0.0.1"
_CHUNK = 65536
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)  # struct linger: on, for 0 s


class Relay:
    """Relays connections from an address of its own to a plane's port. An async context manager."""

    def __init__(self, plane_port: int) -> None:
        self._plane_port = plane_port
        (self._port,) = free_ports(1)
        self.server = f"https://{_HOST}:{self._port}"
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()

    async def __aenter__(self) -> "Relay":
        await self.restore()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.cut()
        give_back(self._port)

    def cut(self) -> None:
        """Reset every connection and refuse new ones, until `restore`."""
        if self._server is not None:
            self._server.close()
        for writer in self._open:
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
            writer.transport.abort()

    async def restore(self) -> None:
        """Relay again."""
        self._server = await asyncio.start_server(self._relay, _HOST, self._port)

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            with suppress(OSError):
                plane_reader, plane_writer = await asyncio.open_connection(_HOST, self._plane_port)
                try:
                    await asyncio.gather(_carry(reader, plane_writer), _carry(plane_reader, writer))
                finally:
                    plane_writer.transport.abort()
        finally:
            self._open.discard(writer)
            writer.transport.abort()


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Pass bytes on until the reader ends, then say so to the writer. Raises OSError when either breaks."""
    while data := await reader.read(_CHUNK):
        writer.write(data)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()
