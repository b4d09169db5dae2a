"""How a cluster that was restored from an older state is noticed (S8.2, S8.3).

Three things give it away: a revision below what is known (`runtime/listwatch.py` compares it), a watch that does not
repeat the newest known object (`read_replay`), and a list that this history cannot have (`is_foreign`,
`are_too_many`).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from crsyncer.core.watching.watch import Bookmark, Emit, Relist, WatchStep, newer, read_line
from crsyncer.errors import NotAllowed, Unsure

DISTRUSTED = "1"
"""Stands for the resourceVersion of an object that the server has to show again: any version is newer, and no object
has it. A write with it is a conflict; with 0 it would be invalid (422: a version must be specified; measured, 1.36).
"""
_FIRST_VERSION = 2
"""A watch from resourceVersion 0 may begin at any version."""


class History(StrEnum):
    """Whether a cluster's history is the one that we know."""

    SAME = "same"
    OTHER = "other"
    """It was restored from an older state, and has gone on differently since."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The newest object that is known of a collection: a server with the same history shows it again."""

    uid: str
    resource_version: str


@dataclass(frozen=True, slots=True)
class Replay:
    """The result of a resume check. `oldest` is as in Relist."""

    history: History
    oldest: str = ""


def newest_up_to(cursor: str, objects: Iterable[tuple[str, str]]) -> Checkpoint | None:
    """The newest object up to the cursor; a newer one may come from our own write to another history.

    `objects` are uids and resourceVersions.
    """
    numbered = [(uid, version) for uid, version in objects if version.isdigit() and not newer(version, cursor)]
    uid, newest = max(numbered, key=lambda each: int(each[1]), default=("", "0"))
    return Checkpoint(uid, newest) if cursor.isdigit() and int(newest) >= _FIRST_VERSION else None


def read_replay(line: bytes, checkpoint: Checkpoint) -> Replay | WatchStep | None:
    """What a line of a watch proves that began just before the checkpoint's resourceVersion; None: nothing.

    Revisions number the writes of a cluster, so the same history begins with the same object, and another cannot.
    """
    step = read_line(line)
    match step:
        case Emit(raw=raw, resource_version=version):
            same = (version, raw["metadata"].get("uid")) == (checkpoint.resource_version, checkpoint.uid)
            return Replay(History.SAME if same else History.OTHER)
        case Bookmark():
            return None
        case _:
            return not_replayed(step)


def not_replayed(step: WatchStep) -> Replay | WatchStep:
    """The result where the server replays nothing: UNKNOWN where it no longer has the events; else the step to take.

    A server that denies the replay also denies the watch; only a 410 needs a list (S9.2). A 401 is about the whole
    server, and not about this one collection.
    """
    match step:
        case Relist(oldest=oldest):
            return Replay(History.UNKNOWN, oldest)
        case NotAllowed(status=401):
            return Unsure(str(step))
        case _:
            return step


def is_foreign(shown: str, *, known: str | None, is_known: bool, listed_at: str, cursor: str) -> bool:
    """Whether a consistent list of `listed_at` shows a version that this history cannot have.

    It shows no older version of an object than the `known` one (None: there is none) that it should know. Nor does it
    show a version that is not newer than the cursor and yet not `is_known`: everything up to the cursor was seen.
    """
    if known is not None and newer(known, shown):
        return not newer(known, listed_at)
    return cursor.isdigit() and not newer(shown, cursor) and not is_known and known != DISTRUSTED


def are_too_many(missing: Iterable[str], *, shown: Iterable[str], listed_at: str, cursor: str) -> bool:
    """Whether a list lacks more objects, last known in these versions, than can have been deleted since the cursor.

    Each write has a resourceVersion of its own, and everything up to the cursor was seen. The writes that made the
    versions which the list shows (`shown`) deleted nothing.
    """
    if not cursor.isdigit() or not listed_at.isdigit() or newer(cursor, listed_at):
        return False
    since = sum(newer(version, cursor) and not newer(version, listed_at) for version in set(shown))
    return int(listed_at) - int(cursor) - since < sum(version != DISTRUSTED for version in missing)
