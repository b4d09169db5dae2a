"""What a side that went back in time puts in doubt, what is held for it, and how that ends (S8.3, S5.5c)."""

import logging

from crsyncer.core.actions import Delete, HoldReason
from crsyncer.core.guard import Holds
from crsyncer.core.model import Key, Side
from crsyncer.loop.custody import RESTORED, Custody
from crsyncer.loop.listings import Listings
from crsyncer.loop.mirror import Mirror
from crsyncer.loop.reflector import Rewind
from crsyncer.loop.sink import Coverage
from crsyncer.loop.worker import Worker

log = logging.getLogger(__name__)


class Restore:
    """Restores of one kind's two sides."""

    def __init__(self, worker: Worker, *, mirror: Mirror, custody: Custody, listings: Listings, holds: Holds) -> None:
        self._worker = worker
        self._mirror = mirror
        self._policy = mirror.policy
        self._custody = custody
        self._listings = listings
        self._holds = holds
        self._rewound: set[Side] = set()
        """Sides that were found older, or other, than they were, and have not been listed since."""
        self._open = False
        """Whether the end of a restore waits for copies that are being made."""

    def mistrust(self, side: Side) -> None:
        """A restore may have cost the cursor, and a crash the list after it: whatever comes is newer."""
        self._mirror.distrust(side)
        self._rewound.add(side)

    def begin(self, side: Side, how: Rewind) -> None:
        """What a side shows from now on may be older than what we know, or of another cluster.

        Held is what a restored upstream would delete. A downstream that went back is only brought in line again, and
        an ordinary boot is no restore.
        """
        self._rewound.add(side)
        if how is Rewind.REBUILT or (how is Rewind.RESTORED and side is self._policy.upstream):
            self._custody.engage(RESTORED)

    def covered(self, side: Side) -> None:
        """What a missing object means has changed on a side: its copies are compared with all they may have lost."""
        if side in self._rewound:
            self._worker.unverified |= set(self._mirror.views[self._policy.downstream])
            if self._listings.complete(side):
                self._rewound.discard(side)

    def settled(self, key: Key) -> None:
        """An object needs nothing any more: perhaps it was the last that was held."""
        if self._open or self._holds.held(self._policy.resource, key, HoldReason.RESTORED):
            self.end(settled=key)

    def end(self, settled: Key | None = None) -> None:
        """After a restore deletions are held only as long as there are any, those of `settled` aside.

        What the restored side lost is exactly what a complete list of it does not show. When that takes no copy,
        whatever vanishes later is deleted later, by somebody who means the cluster as it is now. A hold that went on
        unseen would catch that one.
        """
        group = self._holds.group(self._policy.resource, HoldReason.RESTORED)
        if not self._custody.stands(HoldReason.RESTORED) or (group is not None and group.keys - {settled}):
            return
        upstream, downstream = self._policy.upstream, self._policy.downstream
        if Coverage.NONE in self._listings.coverages(upstream) | self._listings.coverages(downstream):
            return
        self._open = bool(self._worker.creating)  # what is being made may turn out to be what was lost
        if self._open:
            return
        if not self._listings.complete(upstream):
            self._listings.want(upstream, "restored")
        elif not any(isinstance(self._worker.plan(k).content, Delete) for k in self._mirror.views[downstream]):
            log.info("%s: the restored %s costs no copy: nothing is held", self._policy.resource, upstream)
            self._custody.release(HoldReason.RESTORED, set())
