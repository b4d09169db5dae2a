"""Ports that stay ours."""

import random
import socket
from contextlib import ExitStack, suppress
from pathlib import Path

from crsyncer.sandbox.errors import SandboxError

_LOWEST = 20000


def free_ports(count: int) -> list[int]:
    """Ports of 127.0.0.1 that nobody listens on, all different.

    They are below the kernel's ephemeral range: out of that, an outgoing connection can take the port of a plane while
    the plane is down for a restart. Random, so that two sandboxes at a time hardly meet. Raises SandboxError.
    """
    highest = 32768
    with suppress(OSError, ValueError, IndexError):
        highest = min(highest, int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0]))
    candidates = range(min(_LOWEST, highest // 2), highest)
    with ExitStack() as taken:
        found: list[int] = []
        for port in random.sample(candidates, min(len(candidates), 1000)):
            listener = taken.enter_context(socket.socket())
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with suppress(OSError):
                listener.bind(("127.0.0.1", port))
                found.append(port)
            if len(found) == count:
                return found
    raise SandboxError("no free port on 127.0.0.1")
