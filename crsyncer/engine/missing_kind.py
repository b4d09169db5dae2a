"""What becomes of the copies when their kind vanishes upstream: they are kept, and given back one by one (S5.5a)."""

import logging
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

from crsyncer.core.decide import decide
from crsyncer.core.model import Gap, Key, Observation, Side
from crsyncer.engine.cache import Cache
from crsyncer.engine.deletion_holds import KIND_MISSING, DeletionHolds
from crsyncer.engine.kind_alive import KindAlive
from crsyncer.engine.relists import Relists
from crsyncer.ports import Store
from crsyncer.runtime.connection import Connection
from crsyncer.runtime.listwatch import Phase
from crsyncer.runtime.sink import Coverage

log = logging.getLogger(__name__)


class MissingKind:
    """A kind that upstream does not serve, or serves anew, from its end to the list that shows what came back."""

    def __init__(
        self,
        connection: Connection,
        *,
        cache: Cache,
        deletion_holds: DeletionHolds,
        relists: Relists,
        store: Store,
        spawn: Callable[[Coroutine[Any, Any, None]], object],
    ) -> None:
        self.kind_alive = KindAlive(connection, policy=cache.policy, store=store, replaced=self._replaced, spawn=spawn)
        self._cache = cache
        self._policy = cache.policy
        self._deletion_holds = deletion_holds
        self._relists = relists
        self._stale = False
        """Whether upstream has not been listed since the kind turned out to be another."""

    def check(self) -> None:
        """Hold all copies, whichever there are by now, while upstream does not serve the kind."""
        if not self._missing():
            return
        if not self._deletion_holds.vanished:
            log.warning("%s: the %s does not serve the kind: nothing is deleted", *self._names())
        self._deletion_holds.vanish(self._at_stake())
        self.kind_alive.forget()  # whichever comes back, what it lacks is held; a crash finds that before this

    def begin(self) -> None:
        """The kind that upstream serves now is not the one that it served before."""
        self._deletion_holds.vanish(())
        self._stale = True
        for informer in self._relists.on(self._policy.upstream):
            informer.disown()

    def covered(self, side: Side) -> None:
        """What a missing object means has changed: complete lists show what came back, and for which copies.

        A resumed watch upstream may be of another kind of the same name: its refusal of the cursor follows inside a 200
        (measured). One downstream may not have shown yet what a crash made us forget.
        """
        if side is self._policy.upstream and self._relists.complete(side):
            self._stale = False
        if not self._deletion_holds.vanished:
            return
        lacking = [each for each in Side if not self._relists.complete(each)]
        for each in lacking:
            if Coverage.NONE not in self._relists.coverages(each):
                self._relists.want(each, "vanished")
        if not (lacking or self._stale or self._missing()):
            self._end()

    def _missing(self) -> bool:
        return any(r.listwatch.phase is Phase.MISSING for r in self._relists.on(self._policy.upstream))

    def _replaced(self) -> None:
        """Nobody may have meant what the kind lacks since it was made anew, and only a list from now on shows that."""
        self.begin()
        self._relists.want(self._policy.upstream, "vanished", anew=True)

    def _end(self) -> None:
        """What the kind came back without stays held: it went with the kind, and nobody may have meant it."""
        absent = [
            key for key in self._at_stake() if self._cache.observe(self._policy.upstream, key).found is Gap.ABSENT
        ]
        free = (None, KIND_MISSING)
        lacking = {
            key for key in absent if self._deletion_holds.held(key) in free and not self._deletion_holds.passed(key)
        }
        self._deletion_holds.reappear(lacking)
        log.info("%s: the %s serves the kind again; %d copies stay held", *self._names(), len(lacking))

    def _at_stake(self) -> Iterator[Key]:
        """The copies that would be deleted without upstream; an orphan that never was a copy is none of them."""
        for key, view in self._cache.views[self._policy.downstream].items():
            gone = decide(Observation(Gap.ABSENT), Observation(view), self._policy, self._cache.record(key))
            if view.stamp is not None and gone.content is not None:
                yield key

    def _names(self) -> tuple[str, str]:
        return self._policy.resource, self._policy.upstream
