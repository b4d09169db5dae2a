"""Looks names up, in threads that nobody waits for.

The event loop's own threads keep a process from ending while DNS hangs (20 s measured), and so do aiohttp's, which are
the same.
"""

import asyncio
import socket
import threading
from contextlib import suppress

from aiohttp.abc import AbstractResolver, ResolveResult


async def look_up(host: str, port: int, family: int = socket.AF_UNSPEC) -> list[ResolveResult]:
    """The addresses of a host, in the order to try them; raises OSError where it has none."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[list[ResolveResult]] = loop.create_future()

    def settle(found: list[ResolveResult] | OSError) -> None:
        if answer.done():
            return
        if isinstance(found, OSError):
            answer.set_exception(found)
        else:
            answer.set_result(found)

    def ask() -> None:
        found: list[ResolveResult] | OSError
        try:
            found = _addresses(host, port, family)
        except OSError as error:
            found = error
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(settle, found)

    threading.Thread(target=ask, name="crsyncer-names", daemon=True).start()
    return await answer


def _addresses(host: str, port: int, family: int) -> list[ResolveResult]:
    numeric = socket.NI_NUMERICHOST | socket.NI_NUMERICSERV
    found = []
    for its_family, _, protocol, _, address in socket.getaddrinfo(
        host, port, family=family, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG
    ):
        text, _ = socket.getnameinfo(address, numeric)
        found.append(
            ResolveResult(
                hostname=host, host=text, port=port, family=its_family, proto=protocol, flags=socket.AI_NUMERICHOST
            )
        )
    return found


class Resolver(AbstractResolver):
    """`look_up` as aiohttp wants it. (A subclass: aiohttp has no other way.)"""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """The addresses of a host; raises OSError."""
        return await look_up(host, port, family)

    async def close(self) -> None:
        """There is nothing to close."""
