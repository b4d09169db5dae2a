"""Copies that may exist although nothing has shown them yet: their creates are under way, or had no answer (S10)."""

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping, Set
from contextlib import contextmanager

from crsyncer.core.model import Key, Record
from crsyncer.errors import Throttled, Unsure

LATEST_SECONDS = 60.0
"""So long after a create without an answer its copy may still be made, or shown: a message was late."""


def unanswered_creates(records: Mapping[Key, Record], copies: Collection[Key]) -> set[Key]:
    """Those of which the store has the copy's name, and that nothing has shown."""
    return {key for key, record in records.items() if record.called is not None and key not in copies}


class Creates:
    """The creates of one kind of which it is not known yet whether they have made their copies.

    What waits for the end of such a copy waits for that of its create, too: a pair is not forgotten before, nor are
    its hold (S5.5), its finalizer (C6.3) and what goes with it (C5.4). The create may be tried again at any time.

    `ended(key)` is called when it is known. `unanswered` are those that an agent before this one, or the kind before it
    stopped, had sent: the minute of each begins when it is looked at first.
    """

    def __init__(self, ended: Callable[[Key], None], unanswered: Set[Key] = frozenset()) -> None:
        self.unlisted: Set[Key] = frozenset()
        """Copies whose create was not answered when downstream's watch resumed: only a list shows them for certain."""
        self._ended = ended
        self._under_way: set[Key] = set()
        self._unanswered = set(unanswered)
        self._until: dict[Key, float] = {}
        """Until when the copy of a create without an answer may still come, in event loop time, seconds."""

    def __contains__(self, key: Key) -> bool:
        return key in self._under_way or key in self._until or key in self._unanswered

    def __iter__(self) -> Iterator[Key]:
        return iter(self._under_way | self._until.keys() | self._unanswered)

    @contextmanager
    def under_way(self, key: Key) -> Iterator[None]:
        """A copy is created inside the block, which raises the SyncError that says whether it was."""
        self._under_way.add(key)
        try:
            yield
        except Throttled:
            raise  # it was not carried out
        except Unsure:
            self._until[key] = asyncio.get_running_loop().time() + LATEST_SECONDS
            raise
        finally:
            self._under_way.discard(key)
            if key not in self:
                self._ended(key)

    def shown(self, key: Key) -> None:
        """The copy is there."""
        self._until.pop(key, None)
        self._unanswered.discard(key)

    def until(self, key: Key) -> float | None:
        """Until when the copy of a create without an answer may still come; None: there is none, or not any more."""
        if key in self._unanswered:
            self._unanswered.discard(key)
            self._until[key] = asyncio.get_running_loop().time() + LATEST_SECONDS
        until = self._until.get(key)
        if until is not None and until <= asyncio.get_running_loop().time():
            del self._until[key]
            self._ended(key)
            return None
        return until
