"""Makes the writes of replicas, each guarded, and takes up what the API server answers (F3.3, F3.7, section 7)."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import NamedTuple, Protocol, assert_never

from crsyncer.core.model import Json, Key
from crsyncer.core.pair.revert_limit import RevertLimit
from crsyncer.core.requests.answers import shown
from crsyncer.core.requests.calls import Call
from crsyncer.errors import Conflict, Never, NotAllowed, SyncError, Throttled, Unsure
from crsyncer.fleet.controllers.state import REFUSED_SECONDS, FleetState, Sent
from crsyncer.fleet.domain.fleet_calls import get_object
from crsyncer.fleet.domain.replica_plan import Removal, decide_replica, is_drifted, is_due, met_row
from crsyncer.fleet.domain.rollout.robot_states import Fault
from crsyncer.fleet.domain.rollout.tries import ForbiddenWrites
from crsyncer.fleet.domain.transport.keys import ROOT, on_shard
from crsyncer.fleet.domain.transport.transports import TRANSPORTS, Request, apply, remove
from crsyncer.fleet.domain.values import (
    Blocked,
    Create,
    Delete,
    Nothing,
    Patch,
    PlacedKind,
    Reason,
    RenderFailed,
    ReplicaKey,
    ReplicaPlan,
    Row,
    Wait,
    Wanted,
)
from crsyncer.ports import Reply
from crsyncer.runtime.waits import chance

_FORBIDDEN = "grant the controller what `crsyncer fleet manifests` prints"


class Again(NamedTuple):
    """When a replica is to be written again, apart from what events ask for."""

    back_off: bool = False
    pause: float | None = None
    """The server asks for a pause of so many seconds."""
    after: float | None = None
    """Seconds."""
    written: bool = False
    """The write was carried out: what it has changed is shown by its answer, or by the watch."""


_DONE = Again()
_WRITTEN = Again(written=True)


@dataclass(frozen=True, slots=True)
class _Refusal:
    """What the server refused: a stamp, over an object of this version ("": none)."""

    stamp: str
    version: str
    fault: Fault
    until: float


class Answers(Protocol):
    """Takes up what the API server answers."""

    def object_written(self, resource: str, raw: Json) -> None:
        """The answer to a write of ours shows a replica."""
        ...

    def object_shown(self, resource: str, raw: Json) -> None:
        """An object is as it is shown."""
        ...

    def object_gone(self, resource: str, key: Key) -> None:
        """There is no such object."""
        ...


class ReplicaWriter:
    """Writes one replica at a time. `answers()` takes up the answers."""

    def __init__(self, state: FleetState, *, answers: Callable[[], Answers]) -> None:
        self._state = state
        self._answers = answers
        self._refused: dict[ReplicaKey, _Refusal] = {}
        self._forbidden: dict[str, ForbiddenWrites[ReplicaKey]] = {}
        """By kind: what the server has answered with 403."""
        self._reverts: dict[str, RevertLimit] = defaultdict(RevertLimit)
        """By kind."""
        self._homeless: set[ReplicaKey] = set()
        """Those whose namespace was made, or was there, after the server had said that it is missing."""

    def fault(self, key: ReplicaKey, wanted: Wanted | None, plan: ReplicaPlan, now: float) -> Fault | None:
        """What stands against a write that is planned: the server refused just that, or somebody fights over it."""
        if not isinstance(plan, (Create, Patch)) or wanted is None:
            self._refused.pop(key, None)
            self._homeless.discard(key)
            if isinstance(plan, (Nothing, Blocked)):
                if key.kind in self._forbidden:
                    self._forbidden[key.kind].forget(key)
                if self._state.refused:
                    self._state.not_refused(_removal(key), key)
            return None
        row = self._state.fleet.rows.get(key)
        refusal = self._refused.get(key)
        if refusal is not None:
            is_kept = now < refusal.until or (refusal.fault.reason is Reason.REFUSED and not wanted.placement.rollout)
            if (refusal.stamp, refusal.version) == _try(wanted, row) and is_kept:
                return refusal.fault  # while it is tried again, it is what it was
            del self._refused[key]
        if row is not None and isinstance(plan, Patch):
            wait = self._reverts[key.kind].wait(Key(row.namespace, row.name), now)
            if wait > 0:
                message = "somebody keeps changing the replica in the cloud; it is rewritten once a minute"
                fault = _fault(key, wanted, Reason.CONTESTED, message)
                self._refused[key] = _Refusal(*_try(wanted, row), fault, now + wait)
                return fault
        return None

    def next_try(self, key: ReplicaKey) -> float | None:
        """When a write that was refused is tried again, in event loop time."""
        refusal = self._refused.get(key)
        return None if refusal is None else refusal.until

    @property
    def next_forbidden(self) -> float:
        """When a write is tried that the server has forbidden, in event loop time; infinity: there is none."""
        return min((each.next_try for each in self._forbidden.values()), default=math.inf)

    def due(self) -> Iterator[ReplicaKey]:
        """The writes that the server has forbidden and that are tried now: one of each kind for all (S10)."""
        for each in self._forbidden.values():
            for key in each.due(self._state.now, chance()):
                if key in self._refused:
                    self._refused[key] = replace(self._refused[key], until=self._state.now)
                yield key

    async def write(self, key: ReplicaKey, wanted: Wanted | None, plan: ReplicaPlan) -> Again:
        """Make the write of a plan, if it has one. Raises NotLeading."""
        row = self._state.fleet.rows.get(key)
        kind = self._state.fleet.index.kinds[key.kind]
        match plan:
            case Create() if wanted is not None:
                if self._state.fleet.is_handed_over(wanted):
                    return await self._meet(key, wanted)
                return await self._send(key, wanted, row, apply(kind, plan, Key(wanted.namespace, wanted.name)))
            case Patch() if row is not None:
                if wanted is not None and is_drifted(wanted, row):
                    self._reverts[key.kind].reverted(Key(row.namespace, row.name), self._state.now)
                return await self._send(key, wanted, row, apply(kind, plan, Key(row.namespace, row.name)))
            case Delete() if row is not None:
                return await self._send(key, wanted, row, remove(kind, row))
            case Create() | Patch() | Delete() | Nothing() | Wait() | Blocked():
                return _DONE
            case _:
                assert_never(plan)

    async def _send(self, key: ReplicaKey, wanted: Wanted | None, row: Row | None, request: Request) -> Again:
        """Send a write and take up the answer."""
        shard, call = request
        was_forbidden = key in self._forbidden.get(key.kind, ())  # the watch may show the write before it is answered
        sent = await self._state.send(key.resource, call, shard)
        if sent.error is not None:
            return await self._failed(key, wanted, row, sent, sent.error, is_missing=_is_missing_namespace(call, sent))
        self._refused.pop(key, None)
        if wanted is None:
            self._state.answered(_removal(key), key, None)
        if was_forbidden:
            self._forbidden[key.kind].allowed(key, self._state.now)
        if call.method != "DELETE":
            self._answers().object_written(key.kind, sent.body)
            self._note_useless(key, wanted)
        return _WRITTEN

    def _note_useless(self, key: ReplicaKey, wanted: Wanted | None) -> None:
        """A write after which the replica is still due counts as one that somebody reverts: admission changes it."""
        row = self._state.fleet.rows.get(key)
        if wanted is not None and row is not None and is_due(wanted, row):
            self._reverts[key.kind].reverted(Key(row.namespace, row.name), self._state.now)

    async def _failed(
        self,
        key: ReplicaKey,
        wanted: Wanted | None,
        row: Row | None,
        sent: Sent,
        error: SyncError,
        *,
        is_missing: bool = False,
    ) -> Again:
        match error:
            case Conflict() if is_missing and wanted is not None:
                return await self._make_namespace(key, wanted)
            case Conflict():
                return await self._look(key, wanted, row)
            case Throttled():
                return Again(pause=error.retry_after)
            case Unsure() if sent.status == HTTPStatus.FORBIDDEN:  # the namespace is being deleted
                return self._refuse(key, wanted, row, error, is_forbidden=True)
            case Unsure():
                return Again(back_off=True)
            case NotAllowed(status=401):
                return Again(back_off=True)
            case _:
                return self._refuse(key, wanted, row, error, is_forbidden=isinstance(error, NotAllowed))

    def _refuse(
        self, key: ReplicaKey, wanted: Wanted | None, row: Row | None, error: SyncError, *, is_forbidden: bool = False
    ) -> Again:
        """The server refuses a write: it is tried again on a change and hourly, what it forbids also soon (S10)."""
        message = "the server refuses it" if self._state.fleet.index.kinds[key.kind].sensitive else str(error)
        if is_forbidden:
            forbidden = self._forbidden.setdefault(key.kind, ForbiddenWrites())
            forbidden.forbidden(key, self._state.now, chance())
        if wanted is None:
            self._state.answered(_removal(key), key, error, message=message)
            return Again(after=REFUSED_SECONDS)
        hint = f"; {_FORBIDDEN}" if isinstance(error, NotAllowed) else ""
        fault = _fault(key, wanted, Reason.REFUSED, message + hint)
        self._refused[key] = _Refusal(*_try(wanted, row), fault, self._state.now + REFUSED_SECONDS)
        return _DONE

    async def _make_namespace(self, key: ReplicaKey, wanted: Wanted) -> Again:
        """Make the namespace of a robot (F5.5). Another one, of a source, is its users' to make."""
        request = TRANSPORTS[key.target].prepare(wanted.robot, key.shard)
        if request is None:
            if key.shard == ROOT:
                return Again(back_off=True)  # it was there when the source was seen
            return self._refuse(key, wanted, None, Never(f"shard {key.shard} has no namespace {wanted.namespace}"))
        sent = await self._state.send("namespaces", request.call, request.shard)
        if sent.error is not None and not isinstance(sent.error, Conflict):
            return await self._failed(key, wanted, None, sent, sent.error)
        if key in self._homeless:
            return Again(back_off=True)
        self._homeless.add(key)
        return _DONE

    async def _look(self, key: ReplicaKey, wanted: Wanted | None, row: Row | None) -> Again:
        """The object is not as it was seen: look at it, and decide anew. One that is as it was is tried again later."""
        kind = self._state.fleet.index.kinds[key.kind]
        if row is not None:
            place = Key(row.namespace, row.name)
        elif wanted is not None:
            place = Key(wanted.namespace, wanted.name)
        else:
            return _DONE
        reply = await self._get(kind, place)
        if reply is None or _is_as_seen(reply, row):
            return Again(back_off=True)
        if reply.status == HTTPStatus.NOT_FOUND:
            self._answers().object_gone(key.kind, place)
        else:
            self._answers().object_shown(key.kind, reply.body)
        return _DONE

    async def _meet(self, key: ReplicaKey, wanted: Wanted) -> Again:
        """Update an object that was handed over by its label, like a replica without a stamp (F3.7)."""
        place = Key(wanted.namespace, wanted.name)
        reply = await self._get(wanted.kind, place)
        if reply is None:
            return Again(back_off=True)
        if reply.status == HTTPStatus.NOT_FOUND:
            self._answers().object_gone(key.kind, place)
            return _DONE
        row = met_row(reply.body, wanted)
        if isinstance(row, Blocked):
            self._answers().object_shown(key.kind, reply.body)
            return _DONE
        plan = decide_replica(wanted=wanted, row=row, listed=True, removal=Removal.UNKNOWN, may_write=True)
        if not isinstance(plan, Patch):
            return _DONE
        return await self._send(key, wanted, row, apply(wanted.kind, plan, place))

    async def _get(self, kind: PlacedKind, place: Key) -> Reply | None:
        """The object of a name, or that there is none; None: the server does not say."""
        call = get_object(kind, place.namespace, place.name)
        try:
            reply = await self._state.connection_to(kind.shard).request(call)
            if reply.status == HTTPStatus.NOT_FOUND and reply.body:
                return reply
            if reply.status == HTTPStatus.OK:
                shown(reply.body)
                return reply
        except SyncError:
            pass
        return None


def _is_as_seen(reply: Reply, row: Row | None) -> bool:
    """Whether an answer shows what was known of a replica: that there is none, or the one of that version."""
    if row is None or reply.status == HTTPStatus.NOT_FOUND:
        return row is None and reply.status == HTTPStatus.NOT_FOUND
    metadata = reply.body["metadata"]
    return (metadata["uid"], metadata.get("resourceVersion")) == (row.uid, row.resource_version)


def _removal(key: ReplicaKey) -> str:
    return f"removal of {on_shard(key.kind)}"


def _fault(key: ReplicaKey, wanted: Wanted, reason: Reason, message: str) -> Fault:
    """What a write has met. Of a copy, which is no robot's, the message names the shard."""
    is_named = bool(key.robot) or f"shard {key.shard}" in message
    return Fault(key.robot, wanted.source.text, reason, message if is_named else f"shard {key.shard}: {message}")


def _try(wanted: Wanted, row: Row | None) -> tuple[str, str]:
    """What a write would put, and over which version."""
    stamp = "" if isinstance(wanted.rendering, RenderFailed) else wanted.rendering.stamp
    return stamp, "" if row is None else row.resource_version


def _is_missing_namespace(call: Call, sent: Sent) -> bool:
    """A POST has no object that could be missing: a 404 is about the namespace."""
    return call.method == "POST" and sent.status == HTTPStatus.NOT_FOUND and bool(sent.body)
