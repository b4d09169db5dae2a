"""Compares, now and then, what is known of a kind with what both sides have, beside live traffic (S4.8)."""

import asyncio
import logging
import random

from crsyncer.core.queue import Priority
from crsyncer.errors import SyncError
from crsyncer.loop.listings import Listings
from crsyncer.loop.listwatch import Phase
from crsyncer.loop.mirror import Mirror
from crsyncer.loop.worker import Worker

log = logging.getLogger(__name__)


class Auditor:
    """Audits one kind. `interval` is in seconds, more or less."""

    def __init__(self, worker: Worker, *, mirror: Mirror, listings: Listings, interval: float) -> None:
        self._worker = worker
        self._mirror = mirror
        self._listings = listings
        self._interval = interval

    async def run(self) -> None:
        """Audit at times that differ from kind to kind and robot to robot, forever."""
        while True:
            await asyncio.sleep(self._interval * random.uniform(0.5, 1.5))  # noqa: S311
            try:
                await self._audit()
            except SyncError as error:
                log.info("%s: not audited this time: %s", self._mirror.policy.resource, error)

    def verify(self, priority: Priority | None = None) -> None:
        """Compare every object, upstream's statuses too."""
        self._worker.unverified |= set(self._mirror.views[self._mirror.policy.downstream])
        for key in self._mirror.known_keys():
            self._worker.look(key, priority)

    async def _audit(self) -> None:
        """Compare what is known with what both sides have, and then the sides, after everything else there is to do.

        Live changes do not notice: a digest is taken beside the watch, and a list only where that shows something
        else. Raises SyncError when a side did not answer.
        """
        for reflector in self._listings.reflectors:
            if reflector.listwatch.phase is Phase.WATCHING and not await reflector.agrees():
                log.warning("%s %s is not what the watch has shown", reflector.side, self._mirror.policy.resource)
                await reflector.listwatch.fresh_list("audit")
        self.verify(Priority.AUDIT)
