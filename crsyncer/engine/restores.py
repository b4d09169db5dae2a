"""What a side that went back in time puts in doubt, what is held for it, and how that ends (S8.3, S5.5c)."""

import logging

from crsyncer.core.actions import Delete, HoldReason
from crsyncer.core.holds import Holds
from crsyncer.core.model import Freshness, Key, Side
from crsyncer.engine.cache import Cache
from crsyncer.engine.deletion_holds import RESTORED, DeletionHolds
from crsyncer.engine.informer_set import InformerSet
from crsyncer.engine.reconciler import Reconciler
from crsyncer.runtime.collection_state import Rewind

log = logging.getLogger(__name__)


class Restores:
    """Restores of one kind's two sides."""

    def __init__(
        self,
        reconciler: Reconciler,
        *,
        cache: Cache,
        deletion_holds: DeletionHolds,
        informer_set: InformerSet,
        holds: Holds,
    ) -> None:
        self._reconciler = reconciler
        self._cache = cache
        self._policy = cache.policy
        self._deletion_holds = deletion_holds
        self._informer_set = informer_set
        self._holds = holds
        self._rewound: set[Side] = set()
        """Sides that were found older, or other, than they were, and have not been listed since."""
        self._open = False
        """Whether the end of a restore waits for copies that are being made."""

    def distrust(self, side: Side) -> None:
        """A restore may have cost the cursor, and a crash the list after it: whatever comes is newer."""
        self._cache.distrust(side)
        self._rewound.add(side)

    def begin(self, side: Side, how: Rewind) -> None:
        """What a side shows from now on may be older than what we know, or of another cluster.

        Held is what a restored upstream would delete. A downstream that went back is only brought in line again, and
        an ordinary boot is no restore.
        """
        self._rewound.add(side)
        if how is Rewind.REBUILT or (how is Rewind.RESTORED and side is self._policy.upstream):
            self._deletion_holds.engage(RESTORED)

    def freshness_changed(self, side: Side) -> None:
        """How fresh the observations of a side are has changed: its copies are compared with all they may have lost."""
        if side in self._rewound:
            self._reconciler.unverified |= set(self._cache.views[self._policy.downstream])
            if self._informer_set.complete(side):
                self._rewound.discard(side)

    def settled(self, key: Key) -> None:
        """An object needs nothing any more: perhaps it was the last that was held."""
        if self._open or self._holds.held(self._policy.resource, key, HoldReason.RESTORED):
            self.end(settled=key)

    def end(self, settled: Key | None = None) -> None:
        """After a restore deletions are held only as long as there are any, those of `settled` aside.

        A complete list does not show what the restore lost. If no copy would be deleted for that, the hold ends:
        whatever is deleted later is deleted on purpose, and a hold that went on would keep that back.
        """
        group = self._holds.group(self._policy.resource, HoldReason.RESTORED)
        if not self._deletion_holds.stands(HoldReason.RESTORED) or (group is not None and group.keys - {settled}):
            return
        upstream, downstream = self._policy.upstream, self._policy.downstream
        if Freshness.STORED in self._informer_set.freshnesses(upstream) | self._informer_set.freshnesses(downstream):
            return
        self._open = bool(self._reconciler.creating)  # what is being made may turn out to be what was lost
        if self._open:
            return
        if not self._informer_set.complete(upstream):
            self._informer_set.want(upstream, "restored")
        elif not any(isinstance(self._reconciler.plan(k).content, Delete) for k in self._cache.views[downstream]):
            log.info("%s: the restored %s costs no copy: nothing is held", self._policy.resource, upstream)
            self._deletion_holds.release(HoldReason.RESTORED, set())
