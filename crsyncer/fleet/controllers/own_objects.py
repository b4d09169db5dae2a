"""Writes the controller's own objects: Decisions and CombinedStatuses, statuses, finalizers. Raises what went wrong."""

from collections import defaultdict
from collections.abc import Hashable
from http import HTTPStatus

from crsyncer.core.model import Json, Key
from crsyncer.core.requests.calls import Call, Collection
from crsyncer.core.watching.watch import newer
from crsyncer.errors import Conflict, NotAllowed, NotGranted, SyncError, Throttled, Unsure
from crsyncer.fleet.controllers.state import FleetState, Sent, Work
from crsyncer.fleet.domain import fleet_calls
from crsyncer.fleet.domain.rollout.tries import ForbiddenWrites
from crsyncer.fleet.domain.values import GROUP
from crsyncer.runtime.dispatcher import Dispatcher, Job
from crsyncer.runtime.waits import chance

_STATUS = "/status"


class OwnObjects:
    """Knows uid and version of what it has written or was shown, so that each write is guarded.

    What the server forbids (403) is tried by one write of each right for all (S10).
    """

    def __init__(self, state: FleetState) -> None:
        self._state = state
        self._versions: dict[Key, tuple[str, str]] = {}
        """uid and resourceVersion."""
        self._doubted: set[Key] = set()
        """Those whose version belongs to a past that the server may have lost."""
        self._forbidden: dict[str, ForbiddenWrites[Hashable]] = defaultdict(ForbiddenWrites)
        """By right."""

    def seen(self, key: Key, metadata: Json) -> bool:
        """An object was shown or written; False: what is known is newer."""
        uid, version = self._versions.get(key, ("", ""))
        if key not in self._doubted and uid == metadata["uid"] and newer(version, metadata["resourceVersion"]):
            return False
        self._doubted.discard(key)
        self._versions[key] = metadata["uid"], metadata["resourceVersion"]
        return True

    def rewound(self) -> None:
        """The server may show older objects than are known: the next that it shows counts as newer (S8.3)."""
        self._doubted = set(self._versions)

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
        self.seen(key, (await self.send(collection.resource, call))["metadata"])

    async def delete(self, collection: Collection, key: Key) -> None:
        """Delete an object as it was seen; the watch shows that it is gone. Raises SyncError."""
        uid, version = self._versions.get(key, ("", ""))
        if uid:
            await self.send(collection.resource, fleet_calls.delete(fleet_calls.item(collection, key), uid, version))

    async def send(self, resource: str, call: Call) -> Json:
        """Send a write; the body of the answer. Raises SyncError; NotGranted also where nothing is sent for now."""
        right = f"{call.verb} {resource.removesuffix(_STATUS)}{_STATUS * call.path.endswith(_STATUS)}"
        target = call.path, call.body["metadata"]["name"] if call.method == "POST" else ""
        sent = await self._try(right, target, resource, call)
        if resource.endswith(GROUP):
            self._state.answered(right, target, sent.error)
        if isinstance(sent.error, Conflict) and call.method == "DELETE":
            return {}  # it has changed or is gone, which the watch shows
        if sent.error is not None:
            raise sent.error
        return sent.body

    async def _try(self, right: str, target: Hashable, resource: str, call: Call) -> Sent:
        """Send a write, unless the server forbids it and it is another one's turn."""
        forbidden, now = self._forbidden[right], self._state.now
        if (message := forbidden.refusal(target, now, chance())) is not None:
            return Sent(NotGranted(message, again=forbidden.next_try), {})
        sent = await self._state.send(resource, call)
        if isinstance(sent.error, NotAllowed) and sent.error.status == HTTPStatus.FORBIDDEN:
            forbidden.forbidden(target, now, chance(), str(sent.error))
            return Sent(NotGranted(str(sent.error), again=forbidden.next_try), {})
        if target in forbidden and not isinstance(sent.error, (NotAllowed, Unsure)):
            forbidden.allowed(target, self._state.now)
        return sent


def try_again(dispatcher: Dispatcher[Work], job: Job[Work], error: SyncError) -> None:
    """Have a job run again that failed to write an own object: in its turn, after a pause, or after a back-off."""
    if isinstance(error, NotGranted):
        dispatcher.at(job, error.again)
        return
    if isinstance(error, Throttled):
        dispatcher.slow_down(error.retry_after)
    dispatcher.back_off(job)
