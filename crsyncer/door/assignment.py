"""Gives Robots without a shard one: by a label, written only where nobody else has set it meanwhile."""

from collections.abc import Sequence
from dataclasses import dataclass

from crsyncer.core.accounts.robot_account import is_robot_name
from crsyncer.core.content.annotations import SHARD_LABEL
from crsyncer.core.model import Json
from crsyncer.core.requests.answers import shown
from crsyncer.core.requests.calls import MERGE_PATCH, Call, Collection
from crsyncer.door.domain.door_report import chosen_shard
from crsyncer.door.robots import PAGE
from crsyncer.errors import Conflict, NotAllowed, SyncError
from crsyncer.ports import Send
from crsyncer.runtime.list_objects import objects

_TRIES = 10
_RIGHT = "it takes the right to patch Robots: the door's own account may only read them"


@dataclass(frozen=True, slots=True)
class Assignment:
    """A Robot and the shard that is chosen for it."""

    name: str
    shard: str
    resource_version: str
    """The version of the Robot that has no shard."""


async def unassigned(
    send: Send, collection: Collection, names: Sequence[str], shards: Sequence[str]
) -> list[Assignment]:
    """The Robots without a shard, of these or (none: of all), each with its choice. Raises SyncError for unknown ones.

    A Robot whose name is unusable is left out: no shard would serve it.
    """
    known = {raw["metadata"]["name"]: raw async for raw in objects(send, collection, page=PAGE)}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise SyncError(f"there is no robot {unknown[0]}", hint=f"robots are the {collection.resource} of the root")
    return [
        Assignment(name, chosen_shard(name, shards), known[name]["metadata"]["resourceVersion"])
        for name in dict.fromkeys(names or sorted(known))
        if is_robot_name(name) and not _has_shard(known[name])
    ]


async def assign(send: Send, collection: Collection, chosen: Assignment) -> bool:
    """Set the label; whether it was set: the Robot may be gone, or have a shard by now. Raises SyncError.

    A Robot that has changed since it was read, such as its status, is read again.
    """
    path, version = f"{collection.path}/{chosen.name}", chosen.resource_version
    for _ in range(_TRIES):
        metadata = {"resourceVersion": version, "labels": {SHARD_LABEL: chosen.shard}}
        reply = await send(Call("patch", "PATCH", path, body={"metadata": metadata}, content_type=MERGE_PATCH))
        error = reply.error()
        if error is None:
            return True
        if isinstance(error, Conflict):
            reply = await send(Call("get", "GET", path))
            error = reply.error()
            if isinstance(error, Conflict) or (error is None and _has_shard(reply.body)):
                return False
        if error is not None:
            hint = _RIGHT if isinstance(error, NotAllowed) else "repeat the command"
            raise SyncError(f"robot {chosen.name}: {error}", hint=error.hint or hint)
        version = shown(reply.body)["resourceVersion"]
    raise SyncError(f"robot {chosen.name}: it changes all the time", hint="repeat the command")


def _has_shard(robot: Json) -> bool:
    return bool((robot["metadata"].get("labels") or {}).get(SHARD_LABEL))
