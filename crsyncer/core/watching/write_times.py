"""When an object may be written again: at a pace, and after a failure by a back-off that grows (F6.3, S10)."""

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from crsyncer.core.watching.backoff import RETRY
from crsyncer.errors import SyncError

K = TypeVar("K", bound=Hashable)


class WriteTimes(Generic[K]):
    """The last tries of objects. Event loop time, in seconds, and `chance` are arguments.

    An object that changes all the time is written at its pace; one that could not be written waits, however it changes.
    """

    def __init__(self) -> None:
        self._tried: dict[K, float] = {}
        self._failed: dict[K, tuple[int, float]] = {}
        """How often in a row, and when it is tried again."""

    def left(self, key: K, now: float, *, pace: float) -> float:
        """For how many seconds an object is not to be written; 0: it may be."""
        if key in self._failed:
            return max(0.0, self._failed[key][1] - now)
        return max(0.0, self._tried[key] + pace - now) if key in self._tried else 0.0

    @contextmanager
    def trying(self, key: K, now: float, chance: float) -> Iterator[None]:
        """Note that an object is written now, and whether that failed."""
        self._tried[key] = now
        try:
            yield
        except SyncError:
            failures, _ = self._failed.get(key, (0, 0.0))
            self._failed[key] = failures + 1, now + RETRY.wait(failures, chance)
            raise
        self._failed.pop(key, None)

    def forget(self, key: K) -> None:
        """An object is gone."""
        self._tried.pop(key, None)
        self._failed.pop(key, None)
