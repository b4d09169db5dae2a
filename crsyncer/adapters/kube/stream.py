"""Reads a watch: bytes in any pieces become complete lines, and everything else becomes Unsure."""

from collections.abc import AsyncIterator, Callable

import aiohttp

from crsyncer.adapters.kube.transport import unsure
from crsyncer.errors import Unsure
from crsyncer.ports import Reply

MAX_LINE = 4 * 1024 * 1024
"""Bytes. An event holds one object, and an API server stores none above 3 MiB."""


class WatchStream:
    """An open watch (ports.Stream)."""

    def __init__(
        self,
        response: aiohttp.ClientResponse,
        *,
        reply: Reply | None,
        read_timeout: float,
        count: Callable[[], None],
    ) -> None:
        """`count` is called after each read."""
        self.status = response.status
        self.reply = reply
        self._response = response
        self._read_timeout = read_timeout
        self._count = count

    async def lines(self) -> AsyncIterator[bytes]:
        """Complete lines without their newline, empty ones left out. See ports.Stream."""
        if self.reply is not None:
            return
        unfinished: list[bytes] = []
        size = 0
        while chunk := await self._read():
            head, *more = chunk.split(b"\n")
            size += len(head)
            unfinished.append(head)
            for piece in more:
                if size > MAX_LINE:
                    break
                if size:
                    yield b"".join(unfinished) if len(unfinished) > 1 else unfinished[0]
                unfinished, size = [piece], len(piece)
            if size > MAX_LINE:
                raise Unsure(
                    f"a watch line is longer than {MAX_LINE >> 20} MiB",
                    hint="no API server sends that: what answers at this address?",
                )
        if size:
            raise Unsure("the watch was cut in the middle of a line", hint="something on the way closed it")

    async def _read(self) -> bytes:
        """The next bytes, b"" at a clean end."""
        try:
            return await self._response.content.readany()
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise unsure(error, seconds=self._read_timeout) from None
        except RuntimeError:
            # aiohttp's word for reading on after close().
            raise Unsure("the connection was closed on our side") from None
        finally:
            self._count()
