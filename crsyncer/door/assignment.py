"""Gives Robots without a shard one: by a label, written only where nobody else has set it meanwhile."""

from collections.abc import Sequence
from dataclasses import dataclass

from crsyncer.core.accounts.robot_account import is_robot_name
from crsyncer.core.content.annotations import SHARD_LABEL
from crsyncer.core.model import Json
from crsyncer.core.requests.answers import judge
from crsyncer.core.requests.calls import MERGE_PATCH, Call, Collection
from crsyncer.door.domain.door_report import chosen_shard
from crsyncer.door.robots import PAGE
from crsyncer.errors import SyncError
from crsyncer.ports import Send
from crsyncer.runtime.list_objects import objects


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


async def assign(send: Send, collection: Collection, chosen: Assignment) -> None:
    """Set the label; raises SyncError, also where the Robot has changed since it was read."""
    metadata = {"resourceVersion": chosen.resource_version, "labels": {SHARD_LABEL: chosen.shard}}
    call = Call(
        "patch", "PATCH", f"{collection.path}/{chosen.name}", body={"metadata": metadata}, content_type=MERGE_PATCH
    )
    reply = await send(call)
    error = judge(reply.status, reply.body, text=reply.text, retry_after=reply.retry_after)
    if error is not None:
        raise SyncError(f"robot {chosen.name}: {error}", hint=error.hint or "repeat the command")


def _has_shard(robot: Json) -> bool:
    return bool((robot["metadata"].get("labels") or {}).get(SHARD_LABEL))
