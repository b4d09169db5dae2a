"""Reads the Robots of the root: the only right that the door needs on an API server."""

from crsyncer.core.requests.calls import Collection, group_versions
from crsyncer.door.domain.robots_map import shard_label
from crsyncer.errors import NotServed
from crsyncer.ports import Send
from crsyncer.runtime.list_objects import objects

PAGE = 500
RIGHTS = "grant list and watch on Robots: crsyncer door manifests prints the Role"


async def robots_collection(send: Send, resource: str, namespace: str) -> Collection:
    """Where the Robots are, in the version that the server prefers. Raises SyncError."""
    plural, _, group = resource.partition(".")
    reply = await send(group_versions(group))
    error = reply.error()
    version = (reply.body.get("preferredVersion") or {}).get("version")
    if isinstance(error, NotServed) or (error is None and not version):
        raise NotServed(
            f"the root serves no {resource}", hint="crsyncer fleet crds --inventory prints a CRD for Robots"
        )
    if error is not None:
        raise error
    return Collection(group, str(version), plural, namespace)


async def robot_labels(send: Send, resource: str, namespace: str) -> dict[str, str]:
    """The shard that each Robot asks for, by the robot's name. Raises SyncError."""
    collection = await robots_collection(send, resource, namespace)
    return {raw["metadata"]["name"]: shard_label(raw) async for raw in objects(send, collection, page=PAGE)}
