"""Writes a status upstream, in the way that the credential allows, guarded by the uid (S4.2)."""

from http import HTTPStatus
from typing import Any

from crsyncer.agent_ports import Store
from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.model import Key, View
from crsyncer.core.pair import object_calls
from crsyncer.errors import Conflict, NotAllowed
from crsyncer.ports import Reply
from crsyncer.runtime.connection import Connection


class StatusWriter:
    """Writes statuses of one kind: by PATCH, or by PUT where only `update` is granted, as existing roles do."""

    def __init__(self, connection: Connection, *, policy: KindPolicy, store: Store) -> None:
        self._connection = connection
        self._policy = policy
        self._store = store
        self._meta_name = f"put-status:{policy.resource}"
        self._puts = bool(store.get_meta(self._meta_name))
        """Whether the next status is written by PUT instead of PATCH."""
        self._both_forbidden = False

    async def write(self, key: Key, uid: str, value: Any, *, upstream: View | None, exact: bool) -> Reply:
        """Write a status, or remove it (None); the answer shows the object's metadata. Raises SyncError.

        `upstream`: None if the object is out of sight. `exact`: only over the very version that it is. After the first
        403 of a kind the other method follows at once; once both are forbidden, each try is one request, by turns.
        """
        if not self._puts:
            call = object_calls.patch_status(self._policy, key, uid, value, upstream=upstream, exact=exact)
            try:
                reply = (await self._connection.request(call)).happened(patch=True)
            except NotAllowed as error:
                if error.status != HTTPStatus.FORBIDDEN:
                    raise
                self._puts = True
                if self._both_forbidden:
                    raise
            else:
                self._remember_puts(False)
                return reply
        body = await self._store.body(self._policy.upstream, self._policy.resource, key)
        if body is None or upstream is None:
            raise Conflict("upstream's object is not in the store")
        takes_metadata = object_calls.takes_metadata(self._policy, self._policy.upstream)
        if not takes_metadata and self._policy.subtree is None:
            # Only the status travels, so the newest version that is known will do. Elsewhere the body's own version
            # must guard what travels along with it: an older body never goes out under a newer version.
            body = {**body, "metadata": {**body["metadata"], "resourceVersion": upstream.resource_version}}
        call = object_calls.put_status(self._policy, key, uid, value, upstream=body)
        try:
            reply = (await self._connection.request(call)).happened()
        except NotAllowed as error:
            if error.status == HTTPStatus.FORBIDDEN:
                self._puts, self._both_forbidden = False, True
            raise
        self._remember_puts(True)
        return reply

    def _remember_puts(self, puts: bool) -> None:
        """Remember for the kind how upstream takes a status."""
        self._both_forbidden = False
        if bool(self._store.get_meta(self._meta_name)) != puts:
            self._store.put_meta(self._meta_name, puts)
