"""The originals of one kind that are to be fetched, cannot be read, or whose copies can have no name (C5.1, C5.2)."""

import asyncio
from collections.abc import Set

from crsyncer.core.model import Key
from crsyncer.core.watching.backoff import RETRY
from crsyncer.engine.kinds.kind import Kind
from crsyncer.errors import Conflict, SyncError
from crsyncer.runtime.waits import Waits, chance, first_of

_TRIES = 2
"""An original that could not be read so often is reported: one answer may be a hiccup."""
_SHOWN = 3
"""How many originals a message names."""


class MissingOriginals:
    """Why primaries do not have all copies that they need.

    Each original waits by itself after a failure: one that cannot be read does not delay others (S9.5).
    """

    def __init__(self) -> None:
        self._tries: dict[Key, int] = {}
        self._due_at: dict[Key, float] = {}
        """When one that failed is tried again (event loop time, seconds)."""
        self._unreadable: dict[Key, str] = {}
        """Why originals cannot be read."""
        self._misnamed: dict[Key, str] = {}
        """By original without a copy, why that could have no valid name."""
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
        return self._unreadable.pop(key, None) is not None

    def forget(self, key: Key) -> None:
        """Nothing refers to an original any more."""
        self.discard(key)
        self._misnamed.pop(key, None)

    def restart(self) -> None:
        """The kind starts again: the names of its copies may be others."""
        self._misnamed.clear()

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
            self._unreadable[key] = error
        return key in self._unreadable

    def check_name(self, key: Key, kind: Kind) -> bool:
        """Find out whether the copy of an original can have a name; whether the answer is another than before."""
        before = self._misnamed.pop(key, "")
        try:
            kind.cache.name_on(kind.policy.downstream, key)
        except Conflict:
            pass  # its namespace is not in the namespace map
        except SyncError as error:
            self._misnamed[key] = f": {error}"
        return before != self._misnamed.get(key, "")

    def message(self, originals: Set[Key], *, confidential: bool) -> str:
        """What is wrong about these originals; empty: nothing. `confidential`: without their names (C5.6)."""
        wrong = {**self._misnamed, **self._unreadable}
        keys = sorted(originals & wrong.keys())
        if keys and confidential:
            return "an original cannot be read, or its copy has no valid name"
        texts = [f"{key}{wrong[key]}" for key in keys[:_SHOWN]]
        return "; ".join([*texts, *([f"and {len(keys) - _SHOWN} more"] if len(keys) > _SHOWN else [])])
