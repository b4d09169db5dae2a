"""A queue of keys, not of events: many events of one object merge into one reconciliation of its newest state."""

import heapq
import math
from collections.abc import Callable, Hashable
from enum import IntEnum
from typing import Generic, TypeVar

from crsyncer.core.watching.lanes import Lanes

K = TypeVar("K", bound=Hashable)


class Priority(IntEnum):
    """The order of work when there is much of it, as after an outage (S7.2)."""

    DELETION = 0
    SPEC = 1
    CREATION = 2
    """After changes: somebody may be waiting for a change, and objects come by the thousand."""
    FINAL_STATUS = 3
    PERIODIC_STATUS = 4
    AUDIT = 5


class WorkQueue(Generic[K]):
    """Dirty and processing sets, priorities and not-before times. Time, in seconds, is an argument.

    A key is handed out to one worker at a time. A key that becomes dirty while it is being processed is handed out
    again when its worker is done. A key's priority is the best of those it was added with, and stays with it while it
    waits for another try: a deletion that failed once is still a deletion.

    Keys are in lanes, as of when they became ready. Among equals, the lane that was served least recently is next, and
    in a lane the first that came; where many wait, every other time the last. So neither a thousand keys of another
    lane nor a thousand that came before have a key wait for all of them, and none waits forever.
    """

    def __init__(self, lane: Callable[[K], Hashable] = lambda _: None) -> None:
        self._lanes = Lanes(lane)
        """The keys that are ready."""
        self._dirty: dict[K, Priority] = {}
        self._processing: dict[K, Priority] = {}
        self._later: list[tuple[float, int, K]] = []
        self._due: dict[K, tuple[float, Priority]] = {}
        self._failures: dict[K, int] = {}
        self._count = 0

    def __contains__(self, key: K) -> bool:
        return key in self._dirty or key in self._processing or key in self._due

    def add(self, key: K, priority: Priority) -> None:
        """Something happened to the key: hand it out as soon as possible, also if it waits for a time."""
        self._due.pop(key, None)
        known = self._dirty.get(key)
        if known is not None and known <= priority:
            return
        self._dirty[key] = priority
        if key not in self._processing:
            if known is not None:
                self._lanes.leave(key, known)
            self._lanes.enter(key, priority)

    def add_at(self, key: K, when: float) -> bool:
        """Hand the key out again at a time, unless something happens to it before; False: it comes sooner anyway.

        The key keeps the priority that it was handed out with; without a worker it gets the lowest one.
        """
        due, priority = self._due.get(key, (None, Priority.AUDIT))
        if key in self._dirty or (due is not None and due <= when):
            return False
        self._count += 1
        self._due[key] = (when, min(priority, self._processing.get(key, priority)))
        heapq.heappush(self._later, (when, self._count, key))
        return True

    def pop(self, now: float, most: float = math.inf) -> K | None:
        """The next key to work on, of a lane of which fewer than `most` are processed; None when there is none yet."""
        while self._later and self._later[0][0] <= now:
            when, _, key = heapq.heappop(self._later)
            due, priority = self._due.get(key, (None, Priority.AUDIT))
            if due == when:
                self.add(key, priority)
        found = self._lanes.take(most)
        if found is not None:
            self._processing[found] = self._dirty.pop(found)
        return found

    def done(self, key: K) -> None:
        """The reconciler is finished with the key."""
        del self._processing[key]
        self._lanes.done(key)
        if key in self._dirty:
            self._lanes.enter(key, self._dirty[key])

    def lane(self, key: K) -> Hashable:
        """The lane of a key that is ready or being processed."""
        return self._lanes.of(key)

    def withdraw(self, key: K) -> None:
        """Nothing is left to be done for a key that is being processed: do not hand it out again for what happened."""
        if key in self._processing:
            self._dirty.pop(key, None)

    def next_due(self) -> float | None:
        """When the next waiting key's time comes; None when none waits."""
        while self._later and self.due(self._later[0][2]) != self._later[0][0]:
            heapq.heappop(self._later)
        return self._later[0][0] if self._later else None

    def count_failure(self, key: K) -> int:
        """Count a failure; how many there had been in a row before it."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        return failures

    def retry_now(self) -> None:
        """End every wait: each key that waits for its time is ready now."""
        for key, (_, priority) in list(self._due.items()):
            self.add(key, priority)

    def count(self, wanted: Callable[[K], bool], *, due: bool = True) -> int:
        """How many wanted keys are dirty, being processed or, with `due`, waiting for their time."""
        return sum(map(wanted, self._dirty.keys() | self._processing.keys() | (self._due.keys() if due else set())))

    def due(self, key: K) -> float | None:
        """The time that a key waits for; None when it waits for none."""
        return self._due[key][0] if key in self._due else None

    def drop(self, chosen: Callable[[K], bool]) -> None:
        """Forget the keys that are chosen; those being processed finish."""
        for key in [k for k in {**self._dirty, **self._due, **self._failures} if chosen(k)]:
            if key in self._dirty and key not in self._processing:
                self._lanes.leave(key, self._dirty[key])
            for known in (self._dirty, self._due, self._failures):
                known.pop(key, None)

    def succeeded(self, key: K) -> None:
        """Forget the key's failures."""
        self._failures.pop(key, None)

    def failures(self, key: K) -> int:
        """How often the key has failed in a row."""
        return self._failures.get(key, 0)
