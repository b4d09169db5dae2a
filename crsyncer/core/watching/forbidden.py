"""Writes that a server forbids (403), and may allow again at any time: one of them is tried for all (S10)."""

import math
from collections.abc import Hashable
from itertools import islice
from typing import Generic, TypeVar

from crsyncer.core.watching.backoff import RETRY

K = TypeVar("K", bound=Hashable)

_RELEASED = 2
"""So many are tried at once after each that is allowed: their number doubles, so all have their turn soon."""


class ForbiddenWrites(Generic[K]):
    """The forbidden writes of one kind on one server. Event loop time, in seconds, and `chance` are arguments.

    The one that was tried least recently is next. The waits double from 1 to 60 s until one is allowed, so ten thousand
    writes without a right cost one request a minute, and a write that is forbidden by itself delays no other.
    """

    def __init__(self) -> None:
        self.next_try = math.inf
        """When the next one is to be tried; infinity: there is none."""
        self._keys: dict[K, None] = {}
        """In the order of their last tries."""
        self._failures = 0
        self._released = 0

    def forbidden(self, key: K, now: float, chance: float) -> None:
        """The server has forbidden a write."""
        self._keys.pop(key, None)
        self._keys[key] = None
        if self.next_try == math.inf:
            self._wait(now, chance)

    def __contains__(self, key: K) -> bool:
        return key in self._keys

    def allowed(self, key: K, now: float) -> None:
        """A write was carried out that had been forbidden: others may be allowed, too."""
        self._failures, self.next_try = 0, now
        self._released += _RELEASED
        self.forget(key)

    def forget(self, key: K) -> None:
        """There is no such write to make any more."""
        self._keys.pop(key, None)
        if not self._keys:
            self.next_try, self._failures, self._released = math.inf, 0, 0

    def due(self, now: float, chance: float) -> list[K]:
        """The writes to try now."""
        if now < self.next_try:
            return []
        keys = list(islice(self._keys, self._released or 1))
        for key in keys:
            self._keys[key] = self._keys.pop(key)
        self._released = 0
        self._wait(now, chance)
        return keys

    def _wait(self, now: float, chance: float) -> None:
        self.next_try = now + RETRY.wait(self._failures, chance)
        self._failures += 1
