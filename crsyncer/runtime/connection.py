"""The connection to one cluster: one state machine for all kinds, one probe while it is down (S9.1, S8.1, S8.2)."""

import asyncio
import contextlib
import logging
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import TypeVar

from crsyncer.core.requests import calls
from crsyncer.core.requests.answers import is_inconclusive, without_words
from crsyncer.core.requests.calls import Call
from crsyncer.core.watching.backoff import Backoff, capped
from crsyncer.core.watching.pace import Pace
from crsyncer.core.watching.watch import probe_wait
from crsyncer.errors import NotAllowed, NotTrusted, SyncError, Throttled, Unsure
from crsyncer.ports import Cluster, MetaStore, Observer, Reply, Send
from crsyncer.runtime.cluster_identity import ClusterIdentity
from crsyncer.runtime.known_history import KnownHistory
from crsyncer.runtime.probe import Probe
from crsyncer.runtime.waits import RetryAfter, Waits, chance, first_of

T = TypeVar("T")
log = logging.getLogger(__name__)

_UNAUTHORIZED_RETRY_SECONDS = 15.0
"""The longest wait while the credential is not accepted: a new one may come without a change of a file."""
_SAVE_SECONDS = 60.0
_SILENCE_SECONDS = 35.0
"""A server that was silent for so long is probed, so that a dead connection is noticed within a minute (S9.1)."""
_BUSY_SECONDS = 1.0
"""A probe without an answer proves nothing if another request was answered so long after the probe began."""
_FRESH_SECONDS = 2.0
"""The result of a probe is used again for so long: a cluster takes longer to be restored."""
_INCOMPLETE = Backoff(0.5, 8.0)
"""The waits between probes of a server that answers, but does not show its present resourceVersion."""


class ConnectionState(StrEnum):
    """The state of a connection, as `status` shows it."""

    CONNECTING = "connecting"
    CONNECTED = "connected"
    OFFLINE = "offline"
    UNAUTHORIZED = "unauthorized"
    IDENTITY_CHANGED = "identity-changed"


class Connection:
    """The state machine of one API server. Its users wait for `up` and report failed requests to it.

    `name` stands in logs, metrics and the store. `probe_calls` returns the requests of a probe: the cheapest consistent
    lists at hand, and last one that every server answers. `crds` returns the names of the CRDs whose uids may identify
    the cluster. `clock` is Unix time in seconds. `boot` identifies the present boot of the server's machine; "" where
    it is not known (S8.4). `admit` raises NotAllowed where the server must not be used with these credentials.
    `gate` is called right before each request that writes; what it raises goes up, and nothing is sent. `or_accept`
    ends the hint about another cluster: how an operator accepts it (`accept_identity`).
    """

    def __init__(
        self,
        name: str,
        *,
        cluster: Cluster,
        store: MetaStore,
        observer: Observer,
        probe_calls: Callable[[], Sequence[Call]],
        crds: Callable[[], Mapping[str, Call | None]],
        clock: Callable[[], float],
        boot: str = "",
        admit: Callable[[Send], Awaitable[None]] | None = None,
        gate: Callable[[Call], None] | None = None,
        or_accept: str = "",
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
        self.revision = 0
        """The cluster's resourceVersion at the last probe that showed one; 0 when none does."""
        self.first_connected_at = math.inf
        """When this process first connected, by the server's clock (Unix time, seconds)."""
        self.active_at = self.up_since = math.inf
        """When the last request or answer was, and since when it is up, in event loop time; for `/livez`."""
        self.pace = Pace()
        """How many writes at a time the server takes."""
        self._under_way = 0
        self.waits = Waits()
        """Everything that waits for a time before it sends the next request to this server."""
        self.up = asyncio.Event()
        self.down = asyncio.Event()
        self.store = store
        self.history = KnownHistory(name, store)
        self._observer = observer
        self._probe_calls = probe_calls
        self._admit = admit
        self._gate = gate
        self._or_accept = or_accept
        self._probe = Probe(self._send)
        self._complete = True
        """Whether the last probe showed all that the server can show; if not, `wait_probed` waits for the next."""
        self._clock = clock
        self._probe_due = asyncio.Event()
        self._identity_due = True
        """Whether another cluster may answer now: a request has failed."""
        self.identity = ClusterIdentity(name, cluster=cluster, store=store, send=self._send, own_crds=crds)
        self._answers_errors = False
        self._saved_at = self._answered_at = 0.0
        """Event loop time, in seconds: Unix time may jump."""
        self._last_probe = (-math.inf, -math.inf)
        """When the last successful probe began and ended, in event loop time."""
        self._retry_after = RetryAfter(self.waits)
        self._callers: list[tuple[float, asyncio.Future[None]]] = []
        """The callers of `wait_probed`: each waits for a probe that began after its time."""

    async def run(self) -> None:
        """Connect, and reconnect whenever the connection is lost; never returns."""
        loop = asyncio.get_running_loop()
        incomplete, errors, lost_at = 0, 0, loop.time()
        while True:
            ended = self.waits.ended
            if await self._try():
                incomplete = 0 if self._complete else incomplete + 1
                if incomplete:
                    await self._wait(_INCOMPLETE.wait(incomplete - 1, chance()), ended)
                await self._until_probe_due()
                errors, lost_at = 0, loop.time()
                continue
            errors = errors + 1 if self._answers_errors else 0
            wait = probe_wait(outage=loop.time() - lost_at, errors=errors, chance=chance())
            if self.state is ConnectionState.UNAUTHORIZED:
                wait = min(wait, _UNAUTHORIZED_RETRY_SECONDS)
            await self._wait(wait, ended)

    async def _wait(self, seconds: float, ended: int) -> None:
        """Wait before the next probe: for as long as the server asked for, and this back-off on top of it.

        Not at all when an operator has ended the waits (`ended`, as of when the last probe began) since.
        """
        if self.waits.ended == ended:
            await self.waits.sleep(self._retry_after.left + seconds)

    def retry_now(self) -> None:
        """End every wait for this server: an operator gave a command, or the settings were read again (S9.1)."""
        self.waits.end()

    @property
    def cluster_identity(self) -> str | None:
        """The identity of the cluster at the first connection; None before it."""
        return self.identity.recorded

    @property
    def history_identity(self) -> str:
        """The identity of the cluster and of its history, which a restore changes; "" before the first connection."""
        return self.history.identity(self.cluster_identity)

    def note_answer(self) -> None:
        """An answer of the server, or a part of one, has arrived."""
        self.last_ok = self._clock()
        self._answered_at = self.active_at = asyncio.get_running_loop().time()
        if self._answered_at > self._saved_at + _SAVE_SECONDS:
            self._save_last_ok()

    def probe_soon(self, reason: str) -> None:
        """A request failed: probe the server."""
        log.debug("%s: a probe is due: %s", self.name, reason)
        self._identity_due = True
        self._probe_due.set()

    async def wait_probed(self, *, since: float) -> None:
        """Return when a probe that began after `since` has just succeeded (S8.2).

        `since` is event loop time, in seconds.
        """
        loop = asyncio.get_running_loop()
        began, ended = self._last_probe
        # At start there may be no kind to list yet, and only the list of a kind shows the revision.
        has_revision = self.up.is_set() and self.revision > 0
        if has_revision and began >= since and loop.time() - ended < _FRESH_SECONDS:
            return
        answer: asyncio.Future[None] = loop.create_future()
        self._callers.append((since, answer))
        self._probe_due.set()
        await answer

    async def while_up(self, work: Awaitable[T]) -> T:
        """Return the result of the work; raise Unsure when the connection goes down, rather than wait for that long."""
        found = await first_of(work, self.down)
        if isinstance(found, asyncio.Event):
            raise Unsure(f"the {self.name} is {self.state}")
        return found

    async def request(self, call: Call) -> Reply:
        """Send a request; where the answer is missing, have the server probed and raise Unsure.

        Raises what the gate raises.
        """
        loop = asyncio.get_running_loop()
        began, writes = loop.time(), call.method != "GET"
        if writes and self._gate is not None:
            self._gate(call)
        self._under_way += writes
        try:
            reply = await self.cluster.request(call, progress=self.note_answer)
        except Unsure as error:
            self.probe_soon(str(error))
            raise
        finally:
            self._under_way -= writes
        if call.sensitive and reply.status >= 300:
            reply = replace(reply, body=without_words(reply.body), text="")
        if writes and not is_inconclusive(reply.status):
            asked, now = f"{call.verb} {calls.kind_of(call)}", loop.time()
            self.pace.answered(asked, now - began, under_way=self._under_way + 1, now=now)
        if reply.status in (401, 502, 503, 504):
            self.probe_soon(str(reply.body.get("message") or f"answered {reply.status}"))
        else:
            self.note_answer()
        return reply

    def accept_identity(self) -> None:
        """An operator accepts the cluster: its identity becomes the known one (S8.3)."""
        if self.state is ConnectionState.IDENTITY_CHANGED:
            self.identity.accept()
            self.retry_now()

    async def _until_probe_due(self) -> None:
        loop = asyncio.get_running_loop()
        while (silent_at := self._answered_at + _SILENCE_SECONDS) > loop.time():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(silent_at):
                    await self._probe_due.wait()
                    return

    async def _try(self) -> bool:
        """Probe once and set the state accordingly; whether the server is connected."""
        loop = asyncio.get_running_loop()
        began = self.active_at = loop.time()
        self._probe_due.clear()
        try:
            if not await self._probe_once():
                return False
        except (NotAllowed, NotTrusted) as error:  # a human has to correct something
            self._down(ConnectionState.UNAUTHORIZED, str(error), error.hint)
            return False
        except SyncError as error:
            busy = isinstance(error, Throttled)  # an answer: a connected server stays connected (S9.1)
            slow = not self._answers_errors and self._answered_at > began + _BUSY_SECONDS  # the link is full, not down
            if self.up.is_set() and (busy or slow):
                log.debug("%s: %s: %s", self.name, "busy" if busy else "slow", error)
                self._complete = not busy
                if busy or self._callers:
                    self._probe_due.set()
                return True
            self._down(ConnectionState.OFFLINE, str(error) or "no answer", error.hint)
            return False
        if not self._complete:
            if self._callers:
                self._probe_due.set()
            return True
        self._last_probe = (began, loop.time())
        for since, answer in self._callers:
            if since <= began and not answer.done():
                answer.set_result(None)
        self._callers = [asking for asking in self._callers if not asking[1].done()]
        return True

    async def _probe_once(self) -> bool:
        """Whether the server is the known cluster. Raises Unsure when it did not answer, or with an error.

        A revision below what was known shows a restore also where no watch has ended, as one from a revision that the
        server does not have yet stays open and shows nothing (S8.2).
        """
        known, was_up = self.history.highest_revision(self.history_identity), self.state is ConnectionState.CONNECTED
        reply, self._complete = await self._probe.send(self._probe_calls())
        if self._complete:
            self.revision = _revision(reply)
        is_older = was_up and self._complete and 0 < self.revision < known
        same = await self.identity.is_same(again=self._identity_due or is_older or not was_up)
        self._identity_due = False
        self.note_answer()
        if not same:
            self._down(
                ConnectionState.IDENTITY_CHANGED,
                f"this is another cluster than before ({self.identity.found}, was {self.identity.strongest})",
                "point the kubeconfig back" + self._or_accept,
            )
            return False
        if self._admit is not None:
            await self._admit(self._send)
        self.identity.remember()
        if is_older:
            self.history.restored()
        if self.up_since == math.inf:
            self.first_connected_at = self._clock() if reply.date is None else reply.date
        self._connected()
        return True

    async def _send(self, call: Call) -> Reply:
        self._answers_errors = False
        try:
            reply = await self.cluster.request(call)
        except NotTrusted:
            if not self.cluster.refresh_credentials():
                raise
            reply = await self.cluster.request(call)
        if reply.status == 401 and self.cluster.refresh_credentials():
            reply = await self.cluster.request(call)
        self._answers_errors = is_inconclusive(reply.status)
        if self._answers_errors:
            self._retry_after.obey(capped(reply.retry_after))
        return reply

    def _connected(self) -> None:
        if self.state is ConnectionState.CONNECTED:
            return
        if self.up_since < math.inf:
            self.reconnects += 1
            self.pace = Pace()  # the network path may be another one
            self._observer.reconnect(self.name, str(self.state))
        self._set(ConnectionState.CONNECTED, None, "")
        self.down.clear()
        self.up_since = asyncio.get_running_loop().time()
        self.up.set()

    def _save_last_ok(self) -> None:
        """Save for the next start when the server last answered."""
        self._saved_at = self._answered_at
        self.store.put_meta(f"last-ok:{self.name}", self.last_ok)

    def _down(self, state: ConnectionState, error: str, hint: str) -> None:
        if self._answered_at > self._saved_at:
            self._save_last_ok()
        self.up.clear()
        self.down.set()
        self.history.doubt()
        self._set(state, error, hint)

    def _set(self, state: ConnectionState, error: str | None, hint: str) -> None:
        if state is not self.state:
            self.since = self._clock()
            log.info("%s is %s%s", self.name, state, f": {error}" if error else "")
        self.state, self.error, self.hint = state, error, hint


def _revision(reply: Reply) -> int:
    text = str((reply.body.get("metadata") or {}).get("resourceVersion") or "")
    return int(text) if text.isdigit() else 0
