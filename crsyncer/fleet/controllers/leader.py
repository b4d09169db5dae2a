"""Leading by a Lease: one controller of several writes, and stops in time when it cannot renew the Lease (F1.2)."""

import asyncio
import logging
import math
import time
from collections.abc import Callable, Mapping

from crsyncer.core.model import Json
from crsyncer.core.requests.calls import Call
from crsyncer.core.watching.backoff import UNSERVED
from crsyncer.errors import NotLeading, SyncError, Throttled
from crsyncer.fleet.domain import lease as leases
from crsyncer.fleet.domain.lease import LEADS_SECONDS, LEASE, RENEW_SECONDS, ObservedLease
from crsyncer.runtime.connection import Connection
from crsyncer.runtime.waits import chance

log = logging.getLogger(__name__)

_POLL_SECONDS = 2.0
"""How often a standby reads the Lease."""
_AGAIN_SECONDS = 0.5
"""How soon a leader tries again to renew the Lease."""


class Leader:
    """Takes the Lease, keeps it, and says before each write whether this process may still make it.

    `identity` names this process and no other one, not even its own successor. `clock` is Unix time in seconds: it is
    only shown in the Lease, like the annotations that `annotations` returns.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        namespace: str,
        identity: str,
        annotations: Callable[[], Mapping[str, str]] = dict,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.identity = identity
        self.holder = ""
        """Who leads, as the Lease said when it was last read; "": nobody, or it is not known."""
        self.error = ""
        """Why a standby cannot read or take the Lease; "": it can."""
        self._connection = connection
        self._namespace = namespace
        self._annotations = annotations
        self._clock = clock
        self._observed: ObservedLease | None = None
        self._claim: Call | None = None
        """The request by which this process takes the Lease: the last one that was sent."""
        self._lease: Json = {}
        """The Lease as the holder knows it."""
        self._renewed_at = -math.inf
        """When the last renewal that the server carried out was sent, in event loop time; -inf: it does not lead."""

    @property
    def leads(self) -> bool:
        """Whether this process may begin a write."""
        return asyncio.get_running_loop().time() <= self._renewed_at + LEADS_SECONDS

    def check(self, call: Call) -> None:
        """Let a leader's write pass, and what takes the Lease or gives it back; raises NotLeading for any other."""
        if call is not self._claim and not self.leads:
            raise NotLeading(
                f"{call.verb} {call.path} is not sent: this process does not lead", hint="the leader does it"
            )

    async def acquire(self) -> None:
        """Return when this process leads. Until then only the Lease is read; errors are logged and tried again."""
        failures = 0
        while True:
            await self._connection.up.wait()
            try:
                left = await self._look()
                if left <= 0 and await self._take():
                    log.info("this process leads: it holds the Lease %s/%s", self._namespace, LEASE)
                    return
                failures, wait = 0, min(_POLL_SECONDS, left) if left > 0 else _AGAIN_SECONDS
            except SyncError as error:
                self._note(error)
                pause = error.retry_after if isinstance(error, Throttled) else 0.0
                wait = pause + UNSERVED.wait(failures, chance())
                failures += 1
            await self._connection.waits.sleep(wait)

    async def keep(self) -> None:
        """Renew the Lease for as long as this process leads; raises NotLeading when it does not any more."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout_at(self._renewed_at + LEADS_SECONDS) as limit:
                wait = self._renewed_at + RENEW_SECONDS - loop.time()
                while True:
                    await asyncio.sleep(wait)
                    renewed = await self._renew()
                    limit.reschedule(self._renewed_at + LEADS_SECONDS)
                    wait = self._renewed_at + RENEW_SECONDS - loop.time() if renewed else _AGAIN_SECONDS
        except TimeoutError:
            why = f"it could not be renewed for {LEADS_SECONDS:.0f} s"
            raise self._lost(f"{why}: {self.error}" if self.error else why) from None

    async def release(self) -> None:
        """Give the Lease back, so that a standby leads at once. No write may be under way; errors are only logged."""
        leads, self._renewed_at = self.leads, -math.inf
        if not leads:
            return
        self._claim = leases.give_back(self._namespace, self._lease, unix=self._clock())
        try:
            (await self._connection.request(self._claim)).shown()
            self.holder = ""
        except SyncError as error:
            log.warning("the Lease %s/%s is not given back: %s", self._namespace, LEASE, error)

    async def _look(self) -> float:
        """Read the Lease; for how many seconds it is not to be taken."""
        loop = asyncio.get_running_loop()
        lease = await self._read()
        self._observed = leases.observe(self._observed, lease, now=loop.time())
        self.holder, self.error = leases.holder(lease), ""
        claim = None if self._claim is None else self._claim.body
        return leases.free_at(self._observed, claim) - loop.time()

    async def _take(self) -> bool:
        """Take the Lease as it was read; False: somebody else was quicker."""
        lease = None if self._observed is None else self._observed.lease
        self._claim = leases.take(self._namespace, lease, identity=self.identity, unix=self._clock())
        return await self._hold(self._claim)

    async def _renew(self) -> bool:
        """Renew the Lease; False: it has to be tried again. Raises NotLeading when it is another's, or gone."""
        try:
            annotations = self._annotations()
            renewal = leases.renew(self._namespace, self._lease, unix=self._clock(), annotations=annotations)
            if await self._hold(renewal):
                return True
            lease = await self._read()
        except NotLeading as error:
            raise self._lost(str(error)) from None
        except SyncError as error:
            self._note(error)
            return False
        self.holder = leases.holder(lease)
        if lease is None or self.holder != self.identity:
            raise self._lost("it is gone" if lease is None else f"{self.holder or 'nobody'} holds it")
        self._lease = lease
        return False

    async def _hold(self, call: Call) -> bool:
        """Send what makes or keeps this process the holder; False: the Lease is not as it was read."""
        sent = asyncio.get_running_loop().time()
        reply = await self._connection.request(call)
        vanished = reply.status == 404 and bool(reply.body) and call.method == "PUT"
        if reply.status == 409 or vanished:
            return False
        self._lease, self._renewed_at = reply.shown(), sent
        self.holder, self.error = self.identity, ""
        return True

    async def _read(self) -> Json | None:
        """The Lease; None: there is none."""
        reply = await self._connection.request(leases.read(self._namespace))
        return None if reply.status == 404 and reply.body else reply.shown()

    def _lost(self, why: str) -> NotLeading:
        """What is raised when this process leads no more; from now on it writes nothing."""
        self._renewed_at = -math.inf
        where = f"{self._namespace}/{LEASE}"
        return NotLeading(f"the Lease {where} is lost: {why}", hint="a standby leads, or the next start of this one")

    def _note(self, error: SyncError) -> None:
        """Keep an error, and log it when it is another one than before."""
        if str(error) != self.error:
            self.error = str(error)
            log.warning("the Lease %s/%s: %s", self._namespace, LEASE, error)
