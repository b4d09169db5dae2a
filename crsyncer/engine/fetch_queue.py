"""The originals of one kind that are still to be fetched, and those that cannot be read (C5.1)."""

import asyncio

from crsyncer.core.backoff import RETRY
from crsyncer.core.model import Key
from crsyncer.runtime.waits import chance

_TRIES = 2
"""An original that could not be read so often is reported: one answer may be a hiccup."""


class FetchQueue:
    """Each original waits by itself after a failure: one that cannot be read does not delay others (S9.5)."""

    def __init__(self) -> None:
        self._tries: dict[Key, int] = {}
        self._due_at: dict[Key, float] = {}
        """When one that failed is tried again (event loop time, seconds)."""
        self._errors: dict[Key, str] = {}

    def __contains__(self, key: Key) -> bool:
        return key in self._tries

    def add(self, key: Key) -> None:
        """An original is to be fetched."""
        self._tries.setdefault(key, 0)

    def discard(self, key: Key) -> bool:
        """An original is not to be fetched any more; whether that ends a failure."""
        self._tries.pop(key, None)
        self._due_at.pop(key, None)
        return self._errors.pop(key, None) is not None

    def due(self) -> list[Key]:
        """Those to be fetched now."""
        now = asyncio.get_running_loop().time()
        return [key for key in self._tries if self._due_at.get(key, now) <= now]

    def wait(self) -> float | None:
        """In how many seconds the next one is due; None: none waits."""
        return min(self._due_at.values(), default=0.0) - asyncio.get_running_loop().time() if self._due_at else None

    def hurry(self) -> None:
        """A reload or an operator's command ends every wait (S9.1)."""
        self._due_at.clear()

    def failed(self, key: Key, error: str) -> bool:
        """An original could not be read; whether that has to be reported."""
        if key not in self._tries:
            return False
        self._due_at[key] = asyncio.get_running_loop().time() + RETRY.wait(self._tries[key], chance())
        self._tries[key] += 1
        if self._tries[key] >= _TRIES:
            self._errors[key] = error
        return key in self._errors

    def failure(self, key: Key) -> str | None:
        """Why an original cannot be read; None: it can, as far as is known."""
        return self._errors.get(key)
