"""The connection to one cluster: one state machine for all kinds, one probe while it is down (S9.1, S8.1, S8.2)."""

import asyncio
import contextlib
import logging
import math
import random
from collections.abc import Awaitable, Callable, Collection, Sequence
from enum import StrEnum
from typing import TypeVar

from crsyncer.core import calls
from crsyncer.core.answers import says_nothing, shown
from crsyncer.core.backoff import Backoff, granted, spread
from crsyncer.core.calls import PARTIAL, Call
from crsyncer.core.identity import KUBE_SYSTEM, SERVER, Evidence, evidence_in, merged, name_of, same_cluster
from crsyncer.core.identity import crd as crd_evidence
from crsyncer.core.identity import crds as known_crds
from crsyncer.core.pace import Pace
from crsyncer.core.watch import probe_wait
from crsyncer.errors import NotAllowed, SyncError, Throttled, Unsure
from crsyncer.ports import Cluster, MetaStore, Observer, Reply
from crsyncer.runtime.probe import Probe, refusal
from crsyncer.runtime.waits import Waits

T = TypeVar("T")
log = logging.getLogger(__name__)

_UNAUTHORIZED_RETRY_SECONDS = 15.0
"""The longest wait while a credential is refused: a new one is usually on its way, and no file may announce it."""
_NOTE_SECONDS = 60.0
_SILENCE_SECONDS = 35.0
"""A server that was silent for so long is probed, so that a dead connection is noticed within a minute (S9.1)."""
_BUSY_SECONDS = 1.0
"""A probe that gets no answer proves nothing if another request was answered so long after the probe began."""
_FRESH_SECONDS = 2.0
"""The result of a probe is used again for so long: a cluster takes longer to be restored."""
_INCOMPLETE = Backoff(0.5, 8.0)
"""Between probes of a server that answers, but does not tell its present resourceVersion."""
_KUBE_SYSTEM = Call("get", "GET", "/api/v1/namespaces/kube-system", accept=PARTIAL, timeout=20.0)


class ConnectionState(StrEnum):
    """The state of a connection, as `status` shows it."""

    CONNECTING = "connecting"
    CONNECTED = "connected"
    OFFLINE = "offline"
    UNAUTHORIZED = "unauthorized"
    IDENTITY_CHANGED = "identity-changed"


class Connection:
    """The state machine of one API server. Its users wait for `up` and report failed requests to it.

    `name` stands in logs, metrics and the store. `probe` returns the requests of a probe: the cheapest consistent lists
    at hand, and last one that every server answers. `crds` returns the names of the CRDs whose uids may identify the
    cluster. `clock` is Unix time in seconds. `boot` identifies the present boot of the server's machine; "" where it is
    not known (S8.4). `admit` gets a way to ask, and raises NotAllowed where the server must not be used with these
    credentials.
    """

    def __init__(
        self,
        name: str,
        *,
        cluster: Cluster,
        store: MetaStore,
        observer: Observer,
        probe: Callable[[], Sequence[Call]],
        crds: Callable[[], Collection[str]],
        clock: Callable[[], float],
        boot: str = "",
        admit: Callable[[Callable[[Call], Awaitable[Reply]]], Awaitable[None]] | None = None,
    ) -> None:
        self.name = name
        self.boot = boot
        self.cluster = cluster
        self.state = ConnectionState.CONNECTING
        self.since = clock()
        self.last_ok: float | None = store.get_meta(f"last-ok:{name}")
        """When the server last gave a good answer, to this process or an earlier one: Unix time in seconds."""
        self.error: str | None = None
        self.hint = ""
        self.reconnects = 0
        self.cluster_identity: str | None = store.get_meta(f"identity:{name}")
        """The identity of the cluster at the first connection. Cursors carry it, whatever is learned later (S6.2)."""
        self.revision = 0
        """The cluster's resourceVersion at the last probe that showed one; 0 when none does."""
        self.met = math.inf
        """When this process first connected, by the server's clock (Unix time, seconds)."""
        self.moved_at = self.up_since = math.inf
        """When it last asked or heard the side, and since when it is up, in event loop time; for `/livez`."""
        self.pace = Pace()
        """How many writes at a time the server takes."""
        self._under_way = 0
        self.waits = Waits()
        """Everything that waits for a time before it sends the next request to this server."""
        self.up = asyncio.Event()
        self.down = asyncio.Event()
        self._store = store
        self._observer = observer
        self._probe = probe
        self._admit = admit
        self._probing = Probe(self._ask)
        self._complete = True
        """Whether the last probe showed all that the server can show; if not, `wait_probed` waits for the next."""
        self._crds = crds
        self._clock = clock
        self._doubt = asyncio.Event()
        self._hurry = asyncio.Event()
        self._evidence = f"evidence:{name}"
        self._known: Evidence = store.get_meta(self._evidence) or evidence_in(self.cluster_identity)
        self._found: Evidence = {}
        self._asked: set[str] = set()
        """The CRDs whose uids have been read."""
        self._identity_due = True
        self._answered = False
        self._noted_at = self._heard_at = 0.0
        """Event loop time, in seconds: Unix time may jump."""
        self._proven = (-math.inf, -math.inf)
        """When the last successful probe began and ended, in event loop time."""
        self._was_connected = False
        self._patience = 0.0
        self._callers: list[tuple[float, asyncio.Future[None]]] = []
        """The callers of `wait_probed`: each waits for a probe that began after its time."""

    async def run(self) -> None:
        """Connect, and reconnect whenever the connection is lost; never returns."""
        loop = asyncio.get_running_loop()
        failures, lost_at = 0, loop.time()
        while True:
            if await self._try():
                failures = 0 if self._complete else failures + 1
                if failures:
                    await self._wait(_INCOMPLETE.wait(failures - 1, random.random()))  # noqa: S311
                await self._until_doubt()
                lost_at = loop.time()
                continue
            chance, outage = random.random(), loop.time() - lost_at  # noqa: S311
            wait = probe_wait(outage=outage, failures=failures, answered=self._answered, chance=chance)
            if self.state is ConnectionState.UNAUTHORIZED:
                wait = min(wait, _UNAUTHORIZED_RETRY_SECONDS)
            failures += 1
            await self._wait(wait)

    async def _wait(self, seconds: float) -> None:
        """Wait before the next probe: for as long as the server asked for, and this back-off on top of it."""
        with contextlib.suppress(TimeoutError):
            patience = spread(self._patience, random.random())  # noqa: S311
            await asyncio.wait_for(self._hurry.wait(), patience + seconds)

    def retry_now(self) -> None:
        """End every wait for this server: an operator gave a command, or the settings were read again (S9.1)."""
        self._hurry.set()
        self.waits.end()

    @property
    def identity(self) -> str | None:
        """The strongest known evidence of which cluster it is; None before the first connection."""
        return name_of(self._known) if self._known else None

    def heard(self) -> None:
        """The server has answered something, or a part of an answer has arrived."""
        self.last_ok = self._clock()
        self._heard_at = self.moved_at = asyncio.get_running_loop().time()
        if self._heard_at > self._noted_at + _NOTE_SECONDS:
            self._note()

    def doubt(self, reason: str) -> None:
        """A request failed: probe whether the server is there."""
        log.debug("%s: in doubt: %s", self.name, reason)
        self._identity_due = True
        self._doubt.set()

    async def wait_probed(self, *, since: float) -> None:
        """Return when a probe that began after `since` has just found the side connected (S8.2).

        `since` is event loop time, in seconds.
        """
        loop = asyncio.get_running_loop()
        began, ended = self._proven
        # At start the probe may have been one that says nothing about the revision: that of a kind does.
        told = self.up.is_set() and self.revision > 0
        if told and began >= since and loop.time() - ended < _FRESH_SECONDS:
            return
        answer: asyncio.Future[None] = loop.create_future()
        self._callers.append((since, answer))
        self._doubt.set()
        await answer

    async def while_up(self, work: Awaitable[T]) -> T:
        """Return the result of the work; raise Unsure when the connection goes down, rather than wait for that long."""
        task, lost = asyncio.ensure_future(work), asyncio.ensure_future(self.down.wait())
        try:
            await asyncio.wait({task, lost}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise Unsure(f"the {self.name} is {self.state}")
            return task.result()
        finally:
            task.cancel()
            lost.cancel()

    async def request(self, call: Call) -> Reply:
        """Send a request; a missing answer makes the side find out, and is raised as Unsure."""
        loop = asyncio.get_running_loop()
        began, writes = loop.time(), call.method != "GET"
        self._under_way += writes
        try:
            reply = await self.cluster.request(call, progress=self.heard)
        except Unsure as error:
            self.doubt(str(error))
            raise
        finally:
            self._under_way -= writes
        if writes and not says_nothing(reply.status):
            asked, now = f"{call.verb} {calls.kind_of(call)}", loop.time()
            self.pace.answered(asked, now - began, under_way=self._under_way + 1, now=now)
        if reply.status in (401, 502, 503, 504):
            self.doubt(str(reply.body.get("message") or f"answered {reply.status}"))
        else:
            self.heard()
        return reply

    def accept_identity(self) -> None:
        """A human says that the cluster is the right one: its identity becomes the known one (S8.3)."""
        if self.state is ConnectionState.IDENTITY_CHANGED:
            self._name(name_of(self._found))
            self._know(self._found)
            self.retry_now()

    def forget_crd_uid(self, resource: str) -> None:
        """A kind was seen to be missing: its CRD may come back as another, and the cluster is the same."""
        evidence = crd_evidence(resource)
        if evidence in self._known:
            self._know({name: uid for name, uid in self._known.items() if name != evidence})

    async def _until_doubt(self) -> None:
        loop = asyncio.get_running_loop()
        while (patience := self._heard_at + _SILENCE_SECONDS - loop.time()) > 0:
            try:
                await asyncio.wait_for(self._doubt.wait(), patience)
            except TimeoutError:
                continue
            return

    async def _try(self) -> bool:
        """One probe; the state afterwards is the truth as far as it is known."""
        loop = asyncio.get_running_loop()
        began = self.moved_at = loop.time()
        self._doubt.clear()  # whatever was doubted before this probe, it answers
        self._hurry.clear()
        try:
            if not await self._probe_once():
                return False
        except NotAllowed as error:
            self._down(ConnectionState.UNAUTHORIZED, str(error), error.hint)
            return False
        except SyncError as error:
            busy = isinstance(error, Throttled)  # an answer: whoever was connected stays so (S9.1)
            slow = not self._answered and self._heard_at > began + _BUSY_SECONDS  # or full, and not down
            if self.up.is_set() and (busy or slow):
                log.debug("%s: %s: %s", self.name, "busy" if busy else "slow", error)
                self._complete = not busy
                if busy or self._callers:
                    self._doubt.set()
                return True
            self._down(ConnectionState.OFFLINE, str(error) or "no answer", error.hint)
            return False
        if not self._complete:
            if self._callers:
                self._doubt.set()
            return True
        self._proven = (began, loop.time())
        for since, answer in self._callers:
            if since <= began and not answer.done():
                answer.set_result(None)
        self._callers = [asking for asking in self._callers if not asking[1].done()]
        return True

    async def _probe_once(self) -> bool:
        """Whether it is there, and the cluster that it was. Raises Unsure when it did not answer, or not well."""
        self._patience = 0.0
        reply, self._complete = await self._probing.put(self._probe())
        if self._complete:
            self.revision = _revision(reply)
        found = await self._current_evidence()
        self.heard()
        if not same_cluster(self._known, found):
            self._down(
                ConnectionState.IDENTITY_CHANGED,
                f"this is another cluster than before ({name_of(found)}, was {self.identity})",
                "point the kubeconfig back, or accept the new cluster with: crsyncer holds release " + self.name,
            )
            return False
        if self._admit is not None:
            await self._admit(self._ask)
        if self.cluster_identity is None:
            self._name(name_of(found))
        self._know(merged(self._known, found))
        if not self._was_connected:
            self.met = self._clock() if reply.date is None else reply.date
        self._connected()
        return True

    async def _ask(self, call: Call) -> Reply:
        self._answered = False
        reply = await self.cluster.request(call)
        if reply.status == 401 and self.cluster.refresh_credentials():
            reply = await self.cluster.request(call)
        self._answered = says_nothing(reply.status)
        self._patience = max(self._patience, granted(reply.retry_after) if self._answered else 0.0)
        return reply

    async def _current_evidence(self) -> Evidence:
        """Asked on every connect and after every doubt: whoever answers now may be somebody else."""
        unasked = KUBE_SYSTEM not in self._found and not self._asked.issuperset(self._crds())
        if self.state is not ConnectionState.CONNECTED or self._identity_due or unasked:
            self._found = await self._read_evidence()
            self._identity_due = False
        return self._found

    async def _read_evidence(self) -> Evidence:
        """The uid of kube-system; where that does not tell, those of CRDs: of known ones until one is as it was."""
        found = {SERVER: self.cluster.fallback_identity}
        reply = await self._look(_KUBE_SYSTEM)
        if reply.status == 200:
            found[KUBE_SYSTEM] = str(shown(reply.body)["uid"])
            if KUBE_SYSTEM in self._known or not known_crds(self._known):
                return found
        elif reply.status == 404 and reply.body and KUBE_SYSTEM in self._known:
            # A server answers before it has made its namespaces: with them comes what tells who it is.
            raise Unsure("the cluster has no namespace kube-system yet", hint="is it just being set up, or restored?")
        self._asked = set(self._crds())
        known = known_crds(self._known)
        proven = False
        for resource in sorted(self._asked | known, key=lambda name: (name not in known, name)):
            if proven and resource in known:
                continue
            reply = await self._look(calls.crd(resource))
            if reply.status == 200:
                uid = found[crd_evidence(resource)] = str(shown(reply.body)["uid"])
                proven = proven or self._known.get(crd_evidence(resource)) == uid
            elif reply.status != 404:
                break  # not ours to read, and every further question costs a slow connection as much
        return found

    async def _look(self, call: Call) -> Reply:
        reply = await self._ask(call)
        if says_nothing(reply.status):
            raise refusal(reply)
        return reply

    def _name(self, name: str) -> None:
        self.cluster_identity = name
        self._store.put_meta(f"identity:{self.name}", name)

    def _know(self, evidence: Evidence) -> None:
        if evidence != self._known:
            self._known = evidence
            self._store.put_meta(self._evidence, dict(evidence))

    def _connected(self) -> None:
        if self.state is ConnectionState.CONNECTED:
            return
        if self._was_connected:
            self.reconnects += 1
            self.pace = Pace()  # the line may be another one
            self._observer.reconnect(self.name, str(self.state))
        self._was_connected = True
        self._set(ConnectionState.CONNECTED, None, "")
        self.down.clear()
        self.up_since = asyncio.get_running_loop().time()
        self.up.set()

    def _note(self) -> None:
        """Have a later agent know when the side last answered."""
        self._noted_at = self._heard_at
        self._store.put_meta(f"last-ok:{self.name}", self.last_ok)

    def _down(self, state: ConnectionState, error: str, hint: str) -> None:
        if self._heard_at > self._noted_at:
            self._note()
        self.up.clear()
        self.down.set()
        self._set(state, error, hint)

    def _set(self, state: ConnectionState, error: str | None, hint: str) -> None:
        if state is not self.state:
            self.since = self._clock()
            log.info("%s is %s%s", self.name, state, f": {error}" if error else "")
        self.state, self.error, self.hint = state, error, hint


def _revision(reply: Reply) -> int:
    text = str((reply.body.get("metadata") or {}).get("resourceVersion") or "")
    return int(text) if text.isdigit() else 0
