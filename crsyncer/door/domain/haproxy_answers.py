"""What HAProxy answers on its sockets, read: its processes, maps, streams and servers. HAProxy 2.6 to 3.x."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_ENTRY = re.compile(r"^0x[0-9a-f]+: key=(?P<key>.+?) use=\d+ exp=-?\d+(?P<data>.*)$", re.MULTILINE)
_COUNT = re.compile(r"\b(?P<name>conn_cur|http_req_cnt)=(?P<number>\d+)")
_SESSION = re.compile(r"^(?P<id>0x[0-9a-f]+): .*?\bsrc=(?P<source>\S+) .*?\bbe=(?P<backend>\S+)", re.MULTILINE)
_VERSION = re.compile(r"(?:HAProxy|HA-Proxy) version (\d+)\.(\d+)")
_FAILED = re.compile(r"^\d+\s+master\s+\d+ \[failed: (\d+)\]", re.MULTILINE)
_UPTIME = re.compile(r"(\d+)d(\d+)h(\d+)m(\d+)s")
BACKEND = "shard-"
"""Before the name of a shard: its backend."""
_UP = "2"
"""srv_op_state of a server that is up (management guide, "show servers state")."""


@dataclass(frozen=True, slots=True)
class Worker:
    """A process of HAProxy that serves, or served until the last reload."""

    pid: int
    is_old: bool
    version: str
    uptime: int = 0
    """Seconds since it loaded its configuration."""


@dataclass(frozen=True, slots=True)
class Stream:
    """A request in progress: a watch, above all."""

    namespace: str
    """The robot's."""
    shard: str
    source: str
    """The robot's address and port."""


@dataclass(frozen=True, slots=True)
class Server:
    """A shard as HAProxy sees it."""

    is_up: bool
    address: str
    """What its name meant when HAProxy started; "-" where it meant nothing."""


def processes(text: str) -> tuple[Worker, ...]:
    """The workers in the answer to `show proc`."""
    found, is_old = [], False
    for line in text.splitlines():
        if line.startswith("#"):
            is_old = "old" in line
            continue
        words = line.split()
        if len(words) >= 4 and words[0].isdigit() and words[1] == "worker":
            found.append(Worker(int(words[0]), is_old, words[-1], _seconds(words[-2])))
    return tuple(found)


def reloads(text: str) -> int:
    """How often the master has been told to load its configuration again, by the answer to `show proc`."""
    for line in text.splitlines():
        words = line.split()
        if len(words) >= 3 and words[0].isdigit() and words[1] == "master" and words[2].isdigit():
            return int(words[2])
    return 0


def has_refused(text: str) -> bool:
    """Whether the master could not load its configuration the last time that it was told to, by `show proc`."""
    found = _FAILED.search(text)
    return found is not None and int(found[1]) > 0


def map_entries(text: str) -> dict[str, str]:
    """The answer to `show map FILE`: lines of an id, a key and a value."""
    lines = (line.split() for line in text.splitlines())
    return {words[1]: words[2] for words in lines if len(words) == 3 and words[0].startswith("0x")}


def streams(text: str) -> tuple[Stream, ...]:
    """The streams in the answer to `show table streams`: those that still go on."""
    found = []
    for key, count in _entries(text, "conn_cur"):
        namespace, _, rest = key.partition("/")
        shard, _, source = rest.partition("/")
        if count and source:
            found.append(Stream(namespace, shard, source))
    return tuple(found)


def refused_tokens(text: str) -> int:
    """How many tokens were refused, by the answer to `show table refused`."""
    return sum(count for _, count in _entries(text, "http_req_cnt"))


def sessions(text: str) -> dict[tuple[str, str], str]:
    """The answer to `show sess`: the id of each session that is at a shard, by that and the robot's address."""
    return {
        (found["backend"].removeprefix(BACKEND), found["source"]): found["id"]
        for found in _SESSION.finditer(text)
        if found["backend"].startswith(BACKEND)
    }


def servers(text: str) -> dict[str, Server]:
    """Each shard as HAProxy sees it, by the answer to `show servers state`."""
    lines = (line.split() for line in text.splitlines())
    return {
        words[3]: Server(words[5] == _UP, words[4])
        for words in lines
        if len(words) > 6 and words[1] == f"{BACKEND}{words[3]}"
    }


def version(text: str) -> tuple[int, int] | None:
    """The version in the answer to `haproxy -v`; None: that is another program."""
    found = _VERSION.search(text)
    return (int(found[1]), int(found[2])) if found else None


def _seconds(text: str) -> int:
    """An uptime such as 0d00h02m20s."""
    found = _UPTIME.fullmatch(text)
    days, hours, minutes, seconds = map(int, found.groups()) if found else (0, 0, 0, 0)
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def _entries(text: str, counter: str) -> Iterator[tuple[str, int]]:
    """Key and counter of each entry of a stick table."""
    for entry in _ENTRY.finditer(text):
        counts = {found["name"]: int(found["number"]) for found in _COUNT.finditer(entry["data"])}
        if counter in counts:
            yield entry["key"], counts[counter]
