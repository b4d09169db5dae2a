"""Resolves host names in daemon threads: the event loop's own keep a process from ending while DNS hangs.

That took 20 s when it was measured; aiohttp's resolver uses the same threads.
"""

import asyncio
import errno
import socket
from functools import partial

from aiohttp.abc import AbstractResolver, ResolveResult

from crsyncer.adapters.threads import in_daemon


class Resolver(AbstractResolver):
    """Implements aiohttp's resolver, which can only be done by a subclass."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """The addresses of a host, in the order to try them; raises OSError where it has none."""
        try:
            found = in_daemon(partial(_look_up, host, port, family), name="crsyncer-names")
        except RuntimeError as error:  # too many tasks, or too little memory
            raise OSError(errno.EAGAIN, str(error)) from None
        return await asyncio.wrap_future(found)

    async def close(self) -> None:
        """There is nothing to close."""


def _look_up(host: str, port: int, family: int) -> list[ResolveResult]:
    numeric = socket.NI_NUMERICHOST | socket.NI_NUMERICSERV
    found = []
    try:
        addresses = socket.getaddrinfo(host, port, family=family, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
    except UnicodeError:  # an empty or too long part of a name, which Python refuses before it asks
        raise socket.gaierror(socket.EAI_NONAME, "no host name") from None
    for its_family, _, protocol, _, address in addresses:
        text, _ = socket.getnameinfo(address, numeric)
        found.append(
            ResolveResult(
                hostname=host, host=text, port=port, family=its_family, proto=protocol, flags=socket.AI_NUMERICHOST
            )
        )
    return found
