"""Writes the statuses of shared objects to objects of the robot's own in the cloud, and deletes these (F10.3)."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from http import HTTPStatus
from typing import Any

from crsyncer.agent_ports import Store
from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.model import Json, Key, OwnStatus
from crsyncer.core.pair import own_status
from crsyncer.core.reports.text import rfc3339
from crsyncer.core.requests.answers import shown
from crsyncer.core.requests.calls import Call
from crsyncer.engine.caching.cache import Cache
from crsyncer.errors import Conflict, Never, NotAllowed, NotReturned, NotServed, SyncError
from crsyncer.ports import Reply
from crsyncer.runtime.connection import Connection
from crsyncer.runtime.list_objects import objects
from crsyncer.runtime.waits import RetryAfter

_REFUSED_SECONDS = 3600.0
_REFUSED_ONCE_SECONDS = 120.0
_OFF = "the setting reportNamespace is off"
_UNNAMED = "the robot has no name, or none that is a DNS label of at most 57 characters"


class StatusPlace:
    """The namespace of the cloud in which the robot's own objects are, and why nothing is taken there at present.

    All kinds share it, so that one refusal spares the requests of all. `namespace` None: there shall be no objects.
    """

    def __init__(self, connection: Connection, namespace: str | None, *, is_named: bool) -> None:
        self.namespace = namespace if is_named else None
        self.refusal = _UNNAMED if not is_named else _OFF if namespace is None else ""
        """Why nothing is taken; empty: nothing is known of that."""
        self._connection = connection
        self._pause = RetryAfter(connection.waits)
        self._history = ""
        self._taken = False
        """Whether anything was taken before: then a refusal may be over soon."""

    def check(self) -> str:
        """The namespace. Raises NotReturned while it is known that nothing is taken."""
        if self.namespace is None:
            raise NotReturned(self.refusal, retry_after=_REFUSED_SECONDS)
        if self._pause.left and self._history == self._connection.history_identity:
            raise NotReturned(self.refusal, retry_after=self._pause.left)
        return self.namespace

    def answered(self, error: SyncError | None) -> SyncError | None:
        """What an answer means: that nothing is taken concerns all objects."""
        if error is None:
            self.refusal, self._taken = "", True
            return None
        if not is_refusal(error):
            return error
        self.refusal = str(error)
        self._history = self._connection.history_identity
        self._pause.obey(_REFUSED_ONCE_SECONDS if self._taken else _REFUSED_SECONDS)
        self._taken = False
        return NotReturned(self.refusal, retry_after=self._pause.left)


def is_refusal(error: SyncError) -> bool:
    """Whether the cloud takes no such object, or not there, or not from this account; a 401 may end by itself."""
    return isinstance(error, NotServed) or (isinstance(error, NotAllowed) and error.status == HTTPStatus.FORBIDDEN)


class OwnStatuses:
    """The robot's own objects of one kind. What is known of each is in the record of its pair."""

    def __init__(
        self,
        connection: Connection,
        *,
        policy: KindPolicy,
        cache: Cache,
        store: Store,
        clock: Callable[[], float],
        place: StatusPlace,
    ) -> None:
        self._connection = connection
        self._policy = policy
        self._cache = cache
        self._store = store
        self._clock = clock
        self._place = place
        self._meta_name = f"own-statuses:{policy.resource}"
        self._metadata: dict[Key, Json] = {}
        """The metadata of objects that have others than ours."""
        self._writing: set[Key] = set()
        """Objects whose writes are under way: what a list shows of them may be older."""
        self._looks = 0
        self._looking = asyncio.Lock()

    @property
    def may_be_there(self) -> bool:
        """Whether there may be any: one was made once, or an upstream object is shared."""
        shared = (each.shared for each in self._cache.views[self._policy.upstream].values())
        return bool(self._store.get_meta(self._meta_name)) or any(shared)

    async def write(self, key: Key, upstream_uid: str, value: Any, *, status: str) -> None:
        """Have the object return a status with this digest, or (None) none. Raises SyncError."""
        place = self._place.check()
        own = self._cache.record_of(key, upstream_uid).own
        if own is not None and own.namespace != place:
            await self.remove(key, own)
            own = None
        if own is None:
            # Recorded before it exists: whatever becomes of the answer, it is deleted once nobody needs it.
            own = OwnStatus(place, upstream_uid)
            self._know(key, upstream_uid, own)
            self._store.put_meta(self._meta_name, True)
            await self._store.durable()
        if own.uid and not own.resource_version and key not in self._metadata:
            await self._look_here(place)
            raise Conflict("the object with the status was read again")
        call = own_status.write_own(
            self._policy,
            key,
            own._replace(upstream_uid=upstream_uid),
            value=value,
            metadata=self._metadata.get(key),
            last_update=rfc3339(self._clock()) or "",
        )
        self._writing.add(key)
        try:
            reply = await self._send(call)
            metadata = shown(reply.body, own.uid)
            self._seen(key, upstream_uid, own._replace(upstream_uid=upstream_uid, status=status), metadata)
        except Conflict:
            self._writing.discard(key)
            await self._look_here(place)
            raise
        finally:
            self._writing.discard(key)

    async def remove(self, key: Key, own: OwnStatus) -> None:
        """Delete the object. One that is where none shall be any more is left where that is refused. Raises SyncError.

        It is deleted where nothing is taken at present, too, unless that is known. A refusal for good says nothing of a
        status that waits.
        """
        here = own.namespace == self._place.namespace
        if here:
            self._place.check()
        try:
            if not own.uid:
                await self.look(own.namespace)
                raise Conflict("it was looked whether the object with the status is there")
            reply = await self._connection.request(own_status.delete_own(self._policy, key, own))
            error = reply.error()
            if reply.status == HTTPStatus.CONFLICT:
                await self.look(own.namespace)
            if error is not None and not (reply.status == HTTPStatus.NOT_FOUND and reply.body):
                raise error
        except (NotServed, NotAllowed) as error:
            if here:
                raise self._place.answered(error) or error from None
            if not is_refusal(error):
                raise
        except Never as error:
            if here:
                raise NotReturned(str(error), retry_after=_REFUSED_SECONDS) from None
        self._know(key, self._cache.record(key).upstream_uid, None)

    async def _look_here(self, place: str) -> None:
        try:
            await self.look(place)
        except SyncError as error:
            raise self._place.answered(error) or error from None

    async def look(self, namespace: str) -> None:
        """See which of the robot's own objects are there: for all pairs at once. Raises SyncError.

        One that is not known is from before the store was lost, or its creation came late: it may have to go.
        """
        looks = self._looks
        async with self._looking:
            if looks != self._looks:
                return
            known = set(self._cache.with_own_status)
            before = {key: self._cache.record(key).own for key in known - self._writing}
            collection = own_status.own_statuses(self._policy.robot, namespace)
            found = {raw["metadata"]["name"]: raw async for raw in objects(self._connection.request, collection)}
            self._looks += 1
        for key, own in before.items():
            record = self._cache.record(key)
            if own is None or own.namespace != namespace or own is not record.own or key in self._writing:
                continue
            raw = found.get(own_status.own_name(self._policy, key))
            if raw is None:
                self._know(key, record.upstream_uid, None)
            else:
                self._seen(key, record.upstream_uid, own_status.seen_status(raw, self._policy), raw["metadata"])
        for raw in found.values():
            other = own_status.own_key(raw, self._policy)
            if other is not None and other not in known | self._cache.with_own_status:  # else it was deleted meanwhile
                uid = self._cache.record(other).upstream_uid
                self._seen(other, uid, own_status.seen_status(raw, self._policy), raw["metadata"])

    async def _send(self, call: Call) -> Reply:
        reply = await self._connection.request(call)
        error = reply.error()
        if reply.status == HTTPStatus.NOT_FOUND and call.method == "POST":
            error = NotServed(str(error))  # of the namespace, too: that concerns all objects
        error = self._place.answered(error)
        if error is not None:
            raise error
        return reply

    def _seen(self, key: Key, upstream_uid: str, own: OwnStatus, metadata: Json) -> None:
        own = own_status.as_answered(own, metadata, self._policy.robot)
        self._metadata.pop(key, None)
        if not own.resource_version:
            self._metadata[key] = metadata
        self._know(key, upstream_uid, own)

    def _know(self, key: Key, upstream_uid: str, own: OwnStatus | None) -> None:
        record = self._cache.record_of(key, upstream_uid)
        if own is None:
            self._metadata.pop(key, None)
        if own is None and record.returned:  # what has acknowledged the status is gone
            record = replace(record, returned=False, acknowledged="", upstream_status="")
        self._cache.remember(key, replace(record, own=own))
