"""What the agent makes of a policy that is edited: nobody else knows when it has heard of it."""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from crsyncer.core.kinds.kind_policy import KindPolicy
from tests.model.histories.policy_references import GOALS
from tests.model.simulation.world import World

FLIGHT_SECONDS = 10.0
"""A request was decided so long ago at most, unless nobody waits for it any more."""

T = TypeVar("T", bound=Hashable)


class Followed(Generic[T]):
    """What of the policy of goals the agent follows, and followed a moment ago. `read` takes it from the kind's."""

    def __init__(self, world: World, read: Callable[[KindPolicy], T]) -> None:
        self._world = world
        self._read = read
        self._until: dict[T, float] = {}
        """What the agent has followed, and until when at least."""
        self._since: dict[T, float] = {}
        """When it began to follow that last."""
        self._latest: T | None = None

    def look(self) -> None:
        """Note what the agent follows."""
        now = self.now()
        if now is None:
            return
        self._until[now] = self._world.clock.now
        if now != self._latest:
            self._latest, self._since[now] = now, self._world.clock.now

    def now(self) -> T | None:
        """What it follows; None: the kind is not synced, or has no policy."""
        entries = self._world.life.engine.kinds.entries if self._world.life is not None else {}
        kind = entries[GOALS].kind if GOALS in entries else None
        return None if kind is None or kind.policy.sync_policy is None else self._read(kind.policy)

    def ever(self) -> frozenset[T]:
        """All that it has followed, which a request that comes late may still go by."""
        self.look()
        return frozenset(self._until)

    def in_force(self) -> dict[T, float]:
        """What it follows, or followed a moment ago, and since when, in seconds since the world began."""
        self.look()
        since = max(self._until.values(), default=0.0) - FLIGHT_SECONDS
        return {each: self._since[each] for each, until in self._until.items() if until >= since}
