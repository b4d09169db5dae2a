"""Notifies systemd of the agent's state, where systemd asks for it."""

import socket
from collections.abc import MutableMapping
from contextlib import suppress

_MOST_CHARACTERS = 1000
"""Of a field: systemd ignores a message of more than 4,096 bytes."""


class ServiceManager:
    """The socket of sd_notify(3). Where there is none, such as in a shell or a pod, nothing is sent.

    `environment` loses NOTIFY_SOCKET: a login plug-in must not notify in the agent's name.
    """

    def __init__(self, environment: MutableMapping[str, str]) -> None:
        address = environment.pop("NOTIFY_SOCKET", "")
        self.listens = bool(address)
        """Whether systemd expects notifications."""
        self._address = "\0" + address[1:] if address.startswith("@") else address

    def notify(self, **fields: str) -> None:
        """Send fields such as READY="1" or STATUS="...". Never waits and never fails: systemd may not read them."""
        if not self.listens:
            return
        lines = (f"{name}={' '.join(value.split())[:_MOST_CHARACTERS]}" for name, value in fields.items())
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
            channel.setblocking(False)
            channel.sendto("\n".join(lines).encode(errors="replace"), self._address)
