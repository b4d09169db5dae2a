"""The meaning of a list's and a watch's answers, lines and ends, and the step that follows (S9.1, S9.2, S8.2).

Holds no connection and no clock: `runtime/listwatch.py` carries answers in and takes the steps that come out.
`runtime/listwatch.py` is also where it is decided that a list is needed instead of a watch.
"""

import json
import re
from dataclasses import dataclass
from enum import StrEnum

from crsyncer.core.model import Json, Key, ObjectVersion
from crsyncer.core.requests.answers import judge
from crsyncer.core.watching.backoff import RETRY, Backoff, capped
from crsyncer.errors import Expired, NotAllowed, NotServed, SyncError, Throttled, Unsure

_AT_ONCE_SECONDS = 1.0
_EMPTY_WATCH = Backoff(0.5, 30.0)
_REINITIALIZING_SECONDS = 1.0
_SOON_PROBE_SECONDS = 8.0
_LATELY_SECONDS = 900.0
_OLDEST = re.compile(r"too old resource version: [0-9]+ \(([0-9]+)\)")


class EventType(StrEnum):
    """What happened to an object, in the words of a watch."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


class ListReason(StrEnum):
    """Why a list-watch lists although a watch is cheaper; the values are labels of `crsyncer_relists_total`.

    Whoever has a collection listed on request has reasons of their own.
    """

    FIRST = "first"
    EXPIRED = "expired"
    """The server no longer has the events after the cursor."""
    UNPROVEN = "unproven"
    """The server no longer has the checkpoint, so it cannot show whether its history is the known one (S8.2)."""
    NO_REVISION = "unverified"
    """No probe shows the server's present resourceVersion, so that it cannot be compared with the cursor (S8.2)."""
    RESTORED = "restored"
    """The cluster was restored from an older state (S8.3)."""
    REBOOTED = "rebooted"
    """The robot has booted, and its server may have lost its last writes (S8.4)."""
    INCONSISTENT = "inconsistent"
    """The last list was of two moments, and so proves no absence (S9.4)."""


_SHARED = frozenset({ListReason.EXPIRED, ListReason.UNPROVEN, ListReason.RESTORED})
_KEEP_CURSOR = frozenset({ListReason.UNPROVEN, ListReason.NO_REVISION})


def is_shared(reason: StrEnum) -> bool:
    """Whether the reason for a list comes from the server, and so to all its clients at the same time."""
    return reason in _SHARED


def keeps_cursor(reason: StrEnum) -> bool:
    """Whether the cursor may be right in spite of a list, and only could not be confirmed by a resume check."""
    return reason in _KEEP_CURSOR


@dataclass(frozen=True, slots=True)
class Emit:
    """An event to hand on. The cursor moves to `resource_version` together with the data."""

    type: EventType
    raw: Json
    resource_version: str


@dataclass(frozen=True, slots=True)
class Bookmark:
    """Every event up to this resourceVersion has been delivered."""

    resource_version: str


@dataclass(frozen=True, slots=True)
class Relist:
    """List the collection.

    `oldest` is the oldest resourceVersion that the server still has, where the message of its 410 shows it (measured,
    1.36: `too old resource version: 5 (205)`). It stays the same while there are few writes; a restart changes it.
    """

    reason: StrEnum
    oldest: str = ""


@dataclass(frozen=True, slots=True)
class Rewatch:
    """Watch again from the cursor, after a pause in seconds (to be jittered)."""

    pause: float


WatchStep = Relist | Rewatch | SyncError
"""An error says why nothing can be watched: NotServed (S1.6), NotAllowed, or Unsure where the watch or the whole server
may be down, which is probed then; the watch goes on from the cursor.
"""


def read_line(line: bytes) -> Emit | Bookmark | WatchStep:
    """The meaning of one line of a watch. A line that is not an event counts as a broken connection."""
    try:
        event = json.loads(line)
        kind, raw = event["type"], event["object"]
        if kind == "ERROR":
            return read_answer(int(raw.get("code") or 500), raw)
        version = raw["metadata"]["resourceVersion"]
        if not isinstance(version, str) or not version:
            return Unsure("a watch line without a resourceVersion")
        if kind == "BOOKMARK":
            return Bookmark(version)
        return Emit(EventType(kind), raw, version)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        return Unsure("a watch line that is not an event")


def read_answer(status: int, body: Json, *, retry_after: float | None = None) -> WatchStep:
    """The step after a list or watch was answered with an error. `body` is the Status object, {} when it was none."""
    message = str(body.get("message") or "")
    match judge(status, body):
        case Expired():
            oldest = _OLDEST.search(message)
            return Relist(ListReason.EXPIRED, oldest[1] if oldest else "")
        case Throttled():
            return Rewatch(capped(retry_after, default=_REINITIALIZING_SECONDS))
        case NotServed():
            return NotServed(message)
        case NotAllowed():
            return NotAllowed(message, status=status)
        case _:
            return Unsure(message or f"answered {status}")


def listed_at(body: Json) -> str:
    """The resourceVersion of a list; empty when it is no list: a portal or proxy has answered in the server's place.

    Only a list may show that there is nothing (S5). An empty one has `items`, maybe null.
    """
    metadata = body.get("metadata")
    version = metadata.get("resourceVersion") if isinstance(metadata, dict) else None
    return version if "items" in body and isinstance(version, str) else ""


def version_of(raw: Json) -> ObjectVersion | None:
    """The object, and the version of it, that metadata belong to; None where they are not valid metadata."""
    metadata = raw.get("metadata")
    if not isinstance(metadata, dict):
        return None
    namespace = metadata.get("namespace") or ""
    name, uid, version = (metadata.get(part) for part in ("name", "uid", "resourceVersion"))
    texts = isinstance(namespace, str) and all(isinstance(text, str) and text for text in (name, uid, version))
    return ObjectVersion(Key(namespace, str(name)), str(uid), str(version)) if texts else None


def newer(one: str, other: str) -> bool:
    """Whether a resourceVersion is newer than another of the same cluster.

    etcd and kine number their revisions with growing integers; any other value is never newer.
    """
    return one.isdigit() and other.isdigit() and int(one) > int(other)


def probe_wait(*, outage: float, errors: int, chance: float) -> float:
    """How many seconds to wait before a server that is down is probed again (S9.1). `chance` is as of core.backoff.

    A server that does not answer is probed again after at most half of the `outage` so far, in seconds. So a link that
    comes up for as long as it was down is always probed while it is up.
    A server that answers may be overloaded: it is probed less often after each of the `errors` that it last answered
    one after the other; 0 when the last probe had no answer, so that an outage does not count as overload.
    """
    longest = _SOON_PROBE_SECONDS if outage < _LATELY_SECONDS else RETRY.last
    if errors:
        return Backoff(RETRY.first, longest).wait(errors - 1, chance)
    return chance * min(longest, max(RETRY.first, outage / 2))


class EmptyWatches:
    """Counts watches that ended at once without an event: a server that keeps closing is not asked 1,000 times."""

    def __init__(self) -> None:
        self._count = 0

    def ended(self, *, lived_seconds: float, events: int) -> Rewatch:
        """A watch ended cleanly."""
        if events or lived_seconds >= _AT_ONCE_SECONDS:
            self._count = 0
            return Rewatch(0.0)
        self._count += 1
        return Rewatch(_EMPTY_WATCH.wait(self._count - 1, 0.0))
