"""Writes the controller's own objects: Decisions and CombinedStatuses, statuses, finalizers. Raises what went wrong."""

from crsyncer.core.model import Json, Key
from crsyncer.core.requests.answers import judge, shown
from crsyncer.core.requests.calls import Call, Collection
from crsyncer.core.watching.watch import newer
from crsyncer.errors import Conflict, NotLeading, SyncError
from crsyncer.fleet.controllers.state import FleetState
from crsyncer.fleet.domain import fleet_calls


class OwnObjects:
    """Knows uid and version of what it has written or was shown, so that each write is guarded."""

    def __init__(self, state: FleetState) -> None:
        self._state = state
        self._versions: dict[Key, tuple[str, str]] = {}
        """uid and resourceVersion."""

    def seen(self, key: Key, metadata: Json) -> bool:
        """An object was shown or written; False: what is known is newer."""
        uid, version = self._versions.get(key, ("", ""))
        if uid == metadata["uid"] and newer(version, metadata["resourceVersion"]):
            return False
        self._versions[key] = metadata["uid"], metadata["resourceVersion"]
        return True

    def gone(self, key: Key) -> None:
        """An object is gone."""
        self._versions.pop(key, None)

    def uid(self, key: Key) -> str:
        """The uid of an object; "": it is not there."""
        return self._versions.get(key, ("", ""))[0]

    async def put(self, collection: Collection, key: Key, body: Json) -> None:
        """Create an object, or replace it as it was seen. Raises SyncError."""
        uid, version = self._versions.get(key, ("", ""))
        call = fleet_calls.put_own(collection, body, uid=uid, resource_version=version)
        self.seen(key, shown(await self.send(collection.resource, call)))

    async def delete(self, collection: Collection, key: Key) -> None:
        """Delete an object as it was seen; the watch shows that it is gone. Raises SyncError."""
        uid, version = self._versions.get(key, ("", ""))
        if uid:
            call = fleet_calls.delete_own(collection, key, uid=uid, resource_version=version)
            await self.send(collection.resource, call)

    async def send(self, resource: str, call: Call) -> Json:
        """Send a write; the body of the answer. Raises SyncError."""
        error: SyncError | None
        try:
            reply = await self._state.connection.request(call)
            error = judge(
                reply.status, reply.body, text=reply.text, retry_after=reply.retry_after, patch=call.method == "PATCH"
            )
        except NotLeading:
            raise
        except SyncError as failure:
            self._state.observer.write(resource, call.verb, type(failure).__name__)
            raise
        self._state.observer.write(resource, call.verb, "done" if error is None else type(error).__name__)
        if isinstance(error, Conflict) and call.method == "DELETE":
            return {}  # it has changed or is gone, which the watch shows
        if error is not None:
            raise error
        return reply.body
