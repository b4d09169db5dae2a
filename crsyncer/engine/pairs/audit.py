"""Compares, now and then, what is known of a kind with what both sides have, beside live traffic (S4.8)."""

import asyncio
import logging
import random

from crsyncer.core.holds.agent_list_reason import AgentListReason
from crsyncer.core.watching.queue import Priority
from crsyncer.engine.caching.informer_set import InformerSet
from crsyncer.engine.pairs.reconciler import Reconciler
from crsyncer.errors import SyncError
from crsyncer.runtime.listwatch import Phase

log = logging.getLogger(__name__)


class Auditor:
    """Audits one kind. `interval` is in seconds, more or less."""

    def __init__(self, reconciler: Reconciler, *, informer_set: InformerSet, interval: float) -> None:
        self._reconciler = reconciler
        self._cache = reconciler.cache
        self._informer_set = informer_set
        self._interval = interval

    async def run(self) -> None:
        """Audit at times that differ from kind to kind and robot to robot, forever."""
        while True:
            await asyncio.sleep(self._interval * random.uniform(0.5, 1.5))  # noqa: S311
            try:
                await self._audit()
            except SyncError as error:
                log.info("%s: the audit failed, the next one comes later: %s", self._cache.policy.resource, error)

    def audit(self, priority: Priority | None = None) -> None:
        """Compare every object, upstream's statuses too."""
        self._reconciler.to_audit |= set(self._cache.views[self._cache.policy.downstream])
        for key in self._cache.known_keys():
            self._reconciler.enqueue(key, priority)

    async def _audit(self) -> None:
        """Compare the cache with both sides, and then the sides with each other, at the lowest priority.

        Live changes are not delayed: a digest is taken beside the watch, and a list only where the digest differs.
        Raises SyncError when a side did not answer.
        """
        for informer in self._informer_set.informers:
            if informer.listwatch.phase is Phase.WATCHING and not await informer.listwatch.paged_list.agrees():
                log.warning(
                    "%s %s: the server has other objects than the watch has shown",
                    informer.side,
                    self._cache.policy.resource,
                )
                await informer.listwatch.fresh_list(AgentListReason.AUDIT)
        await self._reconciler.outbox.look()
        self.audit(Priority.AUDIT)
