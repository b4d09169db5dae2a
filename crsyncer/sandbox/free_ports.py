"""Reserves ports, also while nobody listens on them."""

import os
import random
import socket
from contextlib import suppress
from itertools import islice
from pathlib import Path

from crsyncer.errors import SyncError

_LOWEST = 20000
_HOST = "127.0.0.1"
_reserved: dict[int, int] = {}
"""Port -> the file descriptor that reserves it."""


def free_ports(count: int) -> list[int]:
    """Reserve ports of 127.0.0.1 that nobody listens on, until `give_back` or the end of this process.

    No sandbox of any process on this machine is given them meanwhile: a plane that is down for a restart, or a link
    that is cut, keeps its port. They are below the kernel's ephemeral range, so no outgoing connection takes them
    either. Raises SyncError.
    """
    highest = 32768
    with suppress(OSError, ValueError, IndexError):
        highest = min(highest, int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0]))
    candidates = range(min(_LOWEST, highest // 2), highest)
    found = list(islice(filter(reserve, random.sample(candidates, len(candidates))), count))
    if len(found) == count:
        return found
    give_back(*found)
    raise SyncError("no free port on 127.0.0.1", hint="end some of the sandboxes that run on this machine")


def reserve(port: int) -> bool:
    """Reserve one port; False when it is another's. A UDP socket of that number is what other processes see."""
    with socket.socket(type=socket.SOCK_DGRAM) as reservation, socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            reservation.bind((_HOST, port))
            listener.bind((_HOST, port))
        except OSError:
            return False
        _reserved[port] = reservation.detach()
    return True


def give_back(*ports: int) -> None:
    """End the reservation of ports, of those that have one."""
    for port in ports:
        if port in _reserved:
            os.close(_reserved.pop(port))
