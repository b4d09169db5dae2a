"""A robot that floods: `python -m tests.bench.door_flood PORT CA TOKEN` sends requests until standard input ends.

Eight connections, each with several requests on their way. At the end it prints each status with its number. It is as
nice as can be: a real one has a machine of its own.
"""

import os
import re
import select
import socket
import ssl
import sys
import threading
from collections import Counter

_CONNECTIONS = 8
_AT_ONCE = 16
_STATUS = re.compile(rb"HTTP/1\.1 (\d{3}) ")


def flood(port: int, ca: str, token: str, *, ended: threading.Event, counts: Counter[str]) -> None:
    """One connection after the other, each until the door closes it."""
    request = f"GET /version HTTP/1.1\r\nHost: door\r\nAuthorization: Bearer {token}\r\n\r\n".encode() * _AT_ONCE
    context = ssl.create_default_context(cafile=ca)
    while not ended.is_set():
        try:
            with (
                socket.create_connection(("127.0.0.1", port), timeout=10) as plain,
                context.wrap_socket(plain, server_hostname="localhost") as channel,
            ):
                while not ended.is_set():
                    channel.sendall(request)
                    missing = _AT_ONCE
                    while missing:
                        data = channel.recv(65536)
                        if not data:
                            raise OSError("closed")
                        found = [each.decode() for each in _STATUS.findall(data)]
                        counts.update(found)
                        missing -= len(found)
        except OSError:
            counts["closed"] += 1


def main(port: str, ca: str, token: str) -> None:
    """Flood until standard input ends."""
    os.nice(19)
    ended, counts = threading.Event(), Counter[str]()
    threads = [
        threading.Thread(
            target=flood, args=(int(port), ca, token), kwargs={"ended": ended, "counts": counts}, daemon=True
        )
        for _ in range(_CONNECTIONS)
    ]
    for each in threads:
        each.start()
    select.select([sys.stdin], [], [])
    ended.set()
    for each in threads:
        each.join(15)
    for status, number in counts.items():
        print(status, number)


if __name__ == "__main__":
    main(*sys.argv[1:])
