"""Whether a kind is alive upstream, and still the one whose objects our copies are of (S5.5a)."""

import asyncio
import logging
import random
from collections.abc import Callable, Coroutine
from typing import Any

from crsyncer.core import calls, object_calls
from crsyncer.core.answers import says_nothing
from crsyncer.core.backoff import Backoff, granted
from crsyncer.core.calls import Call
from crsyncer.core.kind_served import Served, served_by_both, served_by_crd, served_in_discovery
from crsyncer.core.model import Side
from crsyncer.core.policy import Policy
from crsyncer.errors import SyncError, Unsure
from crsyncer.ports import Reply, Store
from crsyncer.runtime.connection import Connection
from crsyncer.runtime.single_flight import SingleFlight
from crsyncer.runtime.waits import Patience

log = logging.getLogger(__name__)

_PAUSE_SECONDS = 0.25
_PROBE_SECONDS = 20.0
_UNKNOWN_CRD = Backoff(5.0, 300.0)


class ServedCheck:
    """What defines one kind upstream: discovery, and the cloud's CRD where it may be read.

    A CRD that was deleted and made anew out of sight is alive, and its collection is empty: discovery and lists say
    what they would say had somebody deleted every object. Only the CRD's uid tells the difference, so it is remembered
    from list to list. Where it may not be read there is nothing that could tell, and what remains is that many
    deletions are verified (S5.5b). The robot's own CRDs are watched (`engine/kinds.py`), and not asked for here.

    `gone()` is called when the CRD is being deleted, or is not there any more; `replaced()` when the kind is found to
    be another: it has to have upstream listed.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        policy: Policy,
        store: Store,
        gone: Callable[[], None],
        replaced: Callable[[], None],
        spawn: Callable[[Coroutine[Any, Any, None]], object],
    ) -> None:
        self._connection = connection
        self._policy = policy
        self._store = store
        self._gone = gone
        self._replaced = replaced
        self._name = f"crd:{connection.name}:{policy.resource}"
        self._readable = policy.upstream is Side.CLOUD
        """Whether the CRD was ours to read when it was last asked for, or may be."""
        self._patience = Patience(connection.waits)
        """How long upstream does not want to be asked again."""
        self._due = asyncio.Event()
        self._crd = SingleFlight(self._ask_crd, spawn=spawn, pause=_PAUSE_SECONDS)
        self._discovery = SingleFlight(self._ask_discovery, spawn=spawn, pause=_PAUSE_SECONDS)

    async def alive(self) -> Served:
        """What upstream says now; raises Unsure when it did not answer."""
        if not self._readable:
            return await self._discovery.answer()
        served, crd = await asyncio.gather(self._discovery.answer(), self._crd.answer())
        return served_by_both(served, crd)

    def doubt(self) -> None:
        """What upstream shows may be by another CRD than before: find out, soon."""
        if self._policy.upstream is Side.CLOUD:
            self._due.set()

    def forget(self) -> None:
        """Upstream's CRD may be another, and what is lost with the one before is held for a reason that is known."""
        self._remember("")

    async def run(self) -> None:
        """Find out by which CRD upstream serves the kind, whenever that is in question, forever."""
        failures = 0
        while True:
            await self._due.wait()
            await self._connection.up.wait()
            self._due.clear()
            try:
                await self._crd.answer()
            except SyncError as error:
                log.info(
                    "%s: the CRD of the %s is not known yet: %s", self._policy.resource, self._connection.name, error
                )
                self._due.set()
                await self._connection.waits.sleep(_UNKNOWN_CRD.wait(failures, random.random()))  # noqa: S311
                failures += 1
            else:
                failures = 0

    async def _ask_crd(self) -> Served | None:
        uid = self._uid()
        reply = await self._ask(calls.crd(self._policy.resource))
        alive = served_by_crd(reply.status, reply.body, uid)
        self._readable = alive is not None
        if alive is Served.NO:
            self._gone()  # now: it may be made anew before a deletion asks, and by a CRD whose uid was not known
        if alive is Served.OTHER:
            await self._meet_again(uid)
            log.warning("%s: the CRD of the %s was made anew", self._policy.resource, self._connection.name)
            self._replaced()
            self._remember("")
            self._due.set()
        elif alive is Served.YES and not uid:
            alive = await self._discovery.answer()  # only this tells of the scope, which a CRD never changes
            if alive in (Served.YES, Served.UNKNOWN):
                self._remember(str(reply.body["metadata"]["uid"]))
        return alive

    async def _meet_again(self, uid: str) -> None:
        """Another cluster has another CRD, too: then it is not the kind that is another. Raises Unsure."""
        try:
            async with asyncio.timeout(_PROBE_SECONDS):
                await self._connection.wait_probed(since=asyncio.get_running_loop().time())
        except TimeoutError:
            raise Unsure(f"the {self._connection.name} may be another cluster") from None
        if self._uid() != uid:
            raise Unsure(f"the {self._connection.name} went back in time, or is another cluster")

    async def _ask_discovery(self) -> Served:
        reply = await self._ask(object_calls.discovery(self._policy, self._policy.version))
        return served_in_discovery(reply.status, reply.body, self._policy)

    async def _ask(self, call: Call) -> Reply:
        if not self._connection.up.is_set():
            raise Unsure(
                f"the {self._connection.name} is {self._connection.state}"
            )  # another cluster would answer (S8.3)
        if self._patience.left:
            raise Unsure(f"the {self._connection.name} has asked for patience")
        reply = await self._connection.request(call)
        if says_nothing(reply.status):
            self._patience.ask(granted(reply.retry_after))
            raise Unsure(f"the {self._connection.name} answered {reply.status}")
        return reply

    def _uid(self) -> str:
        """The uid of the CRD whose objects our copies are of, if it is known of this very cluster; else empty."""
        cluster, uid = self._store.get_meta(self._name) or ("", "")
        return str(uid) if cluster == self._connection.cluster_identity else ""

    def _remember(self, uid: str) -> None:
        if uid != self._uid():
            self._store.put_meta(self._name, [self._connection.cluster_identity, uid])
