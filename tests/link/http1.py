"""As much HTTP/1.1 as a relay needs: heads, and where a message ends. Bytes pass unchanged."""

import http
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

HEAD_END = b"\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Head:
    """The first line of a request or response in its three words, and the headers, names in lower case."""

    words: tuple[str, str, str]
    headers: Mapping[str, str]


def parse_head(raw: bytes) -> Head:
    """`raw` ends with the empty line. Raises ValueError."""
    first, *lines = raw.decode("latin-1").rstrip("\r\n").split("\r\n")
    one, two, *three = first.split(" ", 2)
    pairs = (line.partition(":") for line in lines)
    return Head((one, two, three[0] if three else ""), {name.lower(): value.strip() for name, _, value in pairs})


def answer(status: int, body: bytes | Mapping[str, Any], headers: Mapping[str, str]) -> bytes:
    """A whole response. A mapping becomes JSON; headers given here win over the computed ones."""
    content_type = "application/json" if isinstance(body, Mapping) else "text/plain"
    content = json.dumps(body).encode() if isinstance(body, Mapping) else body
    complete = {"Content-Type": content_type, "Content-Length": str(len(content)), **headers}
    try:
        phrase = http.HTTPStatus(status).phrase
    except ValueError:
        phrase = "Unknown"
    lines = [f"HTTP/1.1 {status} {phrase}", *(f"{name}: {value}" for name, value in complete.items()), "", ""]
    return "\r\n".join(lines).encode("latin-1") + content


class Body:
    """Follows a body through its framing. `feed` says how many bytes of a chunk of data still belong to it."""

    __slots__ = ("_chunked", "_in_trailers", "_left", "_line", "_until_close", "done")

    def __init__(self, headers: Mapping[str, str], *, absent: bool = False, until_close: bool = False) -> None:
        """`absent`: there is none whatever the headers say. `until_close`: without a length it lasts until the end."""
        self._chunked = "chunked" in headers.get("transfer-encoding", "").lower()
        self._left = 0 if self._chunked else int(headers.get("content-length", 0))
        self._until_close = until_close and not self._chunked and "content-length" not in headers
        self._line = b""
        self._in_trailers = False
        self.done = absent or not (self._chunked or self._left or self._until_close)

    def feed(self, data: bytes) -> int:
        """Account for `data`; returns the length of its part before the end of the body. Raises ValueError."""
        if self.done:
            return 0
        if self._until_close:
            return len(data)
        position = 0
        while position < len(data) and not self.done:
            step = min(self._left, len(data) - position)
            self._left -= step
            position += step
            if not self._chunked:
                self.done = self._left == 0
            elif self._left == 0 and position < len(data):
                end = data.find(b"\n", position) + 1 or len(data)
                self._line += data[position:end]
                position = end
                if self._line.endswith(b"\n"):
                    self._end_of_line(self._line.strip())
                    self._line = b""
        return position

    def _end_of_line(self, line: bytes) -> None:
        if self._in_trailers:
            self.done = not line
        elif size := int(line.partition(b";")[0], 16):
            self._left = size + 2  # the line end after the data is no size line
        else:
            self._in_trailers = True
