"""When the controller writes again: at a pace, and after a failure by a back-off that grows (F6.3, S10).

Event loop time, in seconds, and `chance` are arguments.
"""

import math
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Generic, TypeVar

from crsyncer.core.watching.backoff import RETRY
from crsyncer.errors import NotGranted, SyncError

K = TypeVar("K", bound=Hashable)

FORBIDDEN_SECONDS = 150.0
"""What was forbidden counts as forbidden for so long: what still has to be written asks again within 60 s."""
_RELEASED = 2
"""So many are tried at once after each that is allowed: their number doubles, so all have their turn soon."""


@dataclass(slots=True)
class Tries:
    """Tries that failed in a row. The waits double from 1 to 60 s."""

    failures: int = 0
    next: float = math.inf
    """When it is tried again; infinity: nothing failed."""

    def failed(self, now: float, chance: float) -> None:
        """One more has failed."""
        self.next = now + RETRY.wait(self.failures, chance)
        self.failures += 1


class WriteTimes(Generic[K]):
    """The last looks at objects, and the tries to write them.

    An object that changes all the time is written at its pace; one that could not be written waits, however it changes.
    One of which it costs much to say what it shall contain is looked at no more often than that.
    """

    def __init__(self) -> None:
        self._tried: dict[K, float] = {}
        self._failed: dict[K, Tries] = {}

    def left(self, key: K, now: float, *, pace: float) -> float:
        """For how many seconds an object is not to be written; 0: it may be."""
        if key in self._failed:
            return max(0.0, self._failed[key].next - now)
        return max(0.0, self._tried[key] + pace - now) if key in self._tried else 0.0

    def looked(self, key: K, now: float) -> None:
        """Note that it is found out now whether an object is to be written."""
        self._tried[key] = now

    @contextmanager
    def trying(self, key: K, now: float, chance: float) -> Iterator[None]:
        """Note that an object is written now, and whether that failed."""
        self._tried[key] = now
        try:
            yield
        except NotGranted:  # it has its turn among all that need the right, and its pace
            self._failed.pop(key, None)
            raise
        except SyncError:
            self._failed.setdefault(key, Tries()).failed(now, chance)
            raise
        self._failed.pop(key, None)

    def forget(self, key: K) -> None:
        """An object is gone."""
        self._tried.pop(key, None)
        self._failed.pop(key, None)


class ForbiddenWrites(Generic[K]):
    """Writes of one kind that a server forbids (403), and may allow again at any time: one of them is tried for all.

    The one that was tried least recently is next. They share their waits until one is allowed, so ten thousand writes
    without a right cost one request a minute, and a write that is forbidden by itself delays no other.

    Whoever makes a write is called when it is `due`, or comes by itself at `next_try` and asks for its `refusal`.
    """

    def __init__(self) -> None:
        self._tries = Tries()
        self._keys: dict[K, tuple[float, str]] = {}
        """When each was tried or asked for last, and what the server said; in the order of their last tries."""
        self._released = 0
        self._turns: set[K] = set()
        """Those that may be made when they come."""

    @property
    def next_try(self) -> float:
        """When the next one is to be tried; infinity: there is none."""
        return self._tries.next

    def forbidden(self, key: K, now: float, chance: float, message: str = "") -> None:
        """The server has forbidden a write."""
        self._keys.pop(key, None)
        self._keys[key] = (now, message)
        if self._tries.next == math.inf:
            self._tries.failed(now, chance)

    def __contains__(self, key: K) -> bool:
        return key in self._keys

    def refusal(self, key: K, now: float, chance: float) -> str | None:
        """What the server said of a write that must not be made now; None: it may be."""
        if key not in self._keys:
            return None
        message = self._keys[key][1]
        self._keys[key] = (now, message)
        if now >= self._tries.next:
            for silent in [each for each, (asked, _) in self._keys.items() if asked < now - FORBIDDEN_SECONDS]:
                self.forget(silent)
            self._turns.update(self.due(now, chance))
        if key in self._turns:
            self._turns.discard(key)
            return None
        return message

    def allowed(self, key: K, now: float) -> None:
        """A write was carried out that had been forbidden: others may be allowed, too."""
        self._tries = Tries(next=now)
        self._released += _RELEASED
        self.forget(key)

    def forget(self, key: K) -> None:
        """There is no such write to make any more."""
        self._keys.pop(key, None)
        self._turns.discard(key)
        if not self._keys:
            self._tries, self._released = Tries(), 0

    def due(self, now: float, chance: float) -> list[K]:
        """The writes to try now."""
        if now < self._tries.next:
            return []
        keys = list(islice(self._keys, self._released or 1))
        for key in keys:
            self._keys[key] = self._keys.pop(key)
        self._released = 0
        self._tries.failed(now, chance)
        return keys
