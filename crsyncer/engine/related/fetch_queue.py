"""The originals of one kind that are still to be fetched, and those that cannot be read (C5.1)."""

import asyncio

from crsyncer.core.model import Json, Key
from crsyncer.core.pair.object_calls import collection
from crsyncer.core.requests import calls
from crsyncer.core.watching.backoff import RETRY
from crsyncer.engine.caching.informer import Informer
from crsyncer.engine.kinds.kind import Kind
from crsyncer.runtime.waits import Waits, chance, first_of

_TRIES = 2
"""An original that could not be read so often is reported: one answer may be a hiccup."""


class FetchQueue:
    """Each original waits by itself after a failure: one that cannot be read does not delay others (S9.5)."""

    def __init__(self) -> None:
        self._tries: dict[Key, int] = {}
        self._due_at: dict[Key, float] = {}
        """When one that failed is tried again (event loop time, seconds)."""
        self.failures: dict[Key, str] = {}
        """Why originals cannot be read."""
        self._wake = asyncio.Event()

    def __contains__(self, key: Key) -> bool:
        return key in self._tries

    def add(self, key: Key) -> None:
        """An original is to be fetched."""
        self._tries.setdefault(key, 0)
        self.wake()

    def wake(self) -> None:
        """End `until_due`: there may be something to fetch."""
        self._wake.set()

    def discard(self, key: Key) -> bool:
        """An original is not to be fetched any more; whether that ends a failure."""
        self._tries.pop(key, None)
        self._due_at.pop(key, None)
        return self.failures.pop(key, None) is not None

    def due(self) -> list[Key]:
        """Those to be fetched now."""
        now = asyncio.get_running_loop().time()
        return [key for key in self._tries if self._due_at.get(key, now) <= now]

    async def until_due(self, waits: Waits) -> None:
        """Return when the next one is due, or `wake` is called. A reload or a command ends every wait (S9.1)."""
        ended = waits.ended
        self._wake.clear()
        if self._due_at:
            seconds = min(self._due_at.values()) - asyncio.get_running_loop().time()
            await first_of(waits.sleep(seconds), self._wake)
        else:
            await self._wake.wait()
        if waits.ended != ended:
            self._due_at.clear()

    def failed(self, key: Key, error: str) -> bool:
        """An original could not be read; whether that has to be reported."""
        if key not in self._tries:
            return False
        self._due_at[key] = asyncio.get_running_loop().time() + RETRY.wait(self._tries[key], chance())
        self._tries[key] += 1
        if self._tries[key] >= _TRIES:
            self.failures[key] = error
        return key in self.failures


async def read_original(kind: Kind, key: Key) -> tuple[Informer, Json] | None:
    """An original, and the informer of its namespace; None: there is none. Raises SyncError."""
    policy = kind.policy
    informer = next((each for each in kind.on(policy.upstream) if each.namespace in ("", key.namespace)), None)
    if informer is None:
        return None
    call = calls.list_one(collection(policy, policy.upstream, informer.namespace), key)
    items = await informer.list_items(call)
    return next(((informer, raw) for raw in items if informer.identify(raw, None) == key), None)
