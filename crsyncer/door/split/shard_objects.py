"""Reads what a shard has of robots: which kinds it serves, the objects in robots' namespaces, and one object again."""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping
from dataclasses import dataclass, field

from crsyncer.core.content.object_content import key_of
from crsyncer.core.model import Json
from crsyncer.core.requests import calls
from crsyncer.core.requests.answers import shown
from crsyncer.core.requests.calls import Call
from crsyncer.door.domain.split_objects import (
    Place,
    SplitKind,
    StoredObject,
    delete_stored,
    read_stored,
    served_kinds,
    without_robot_finalizers,
)
from crsyncer.door.robots import PAGE
from crsyncer.errors import Conflict, SyncError, TooLarge
from crsyncer.ports import Reply, Send
from crsyncer.runtime.list_objects import objects

_KUBE_SYSTEM = Call("get", "GET", "/api/v1/namespaces/kube-system", accept=calls.PARTIAL)
_AT_ONCE = 8
"""Kinds that are listed at the same time."""


@dataclass(slots=True)
class ShardObjects:
    """One shard. Every method raises SyncError, which names the shard."""

    name: str
    request: Send
    kinds: Mapping[str, SplitKind] = field(default_factory=dict)
    """As they were read last."""
    versions: dict[str, str] = field(default_factory=dict)
    """In which version the objects of each kind are read: the same at both shards."""

    async def read_identity(self) -> str:
        """The uid of its kube-system."""
        return str(shown(await self._ask(_KUBE_SYSTEM))["uid"])

    async def read_kinds(self) -> None:
        """Read which kinds it serves."""
        listed = await self._ask(Call("discover", "GET", "/apis", timeout=10.0))
        groups = {"": ["v1"], **{str(each["name"]): _versions(each) for each in listed.get("groups") or ()}}
        places = [(group, version) for group, versions in groups.items() for version in versions]
        answers = await asyncio.gather(*(self._ask(calls.discovery(*place)) for place in places))
        listed_crds = self._listed(calls.CRD_COLLECTION, page=calls.CRD_PAGE, accept=calls.PARTIAL_LIST)
        crds = {raw["metadata"]["name"]: raw["metadata"] async for raw in listed_crds}
        self.kinds = served_kinds(groups, dict(zip(places, answers, strict=True)), crds)

    async def read_objects(self, namespaces: Collection[str]) -> dict[Place, StoredObject]:
        """What it has in these namespaces of robots."""
        kinds = [kind for kind in self.kinds.values() if kind.resource in self.versions]
        found: dict[Place, StoredObject] = {}
        limit = asyncio.Semaphore(_AT_ONCE)

        async def read_kind(kind: SplitKind) -> None:
            async with limit:
                async for raw in self._listed(kind.collection(self.versions[kind.resource])):
                    key = key_of(raw)
                    if key.namespace in namespaces and (stored := read_stored(raw, kind)) is not None:
                        found[Place(kind.resource, key.namespace, key.name)] = stored

        await asyncio.gather(*map(read_kind, kinds))
        return found

    async def read_again(self, place: Place) -> StoredObject | None:
        """One object as it is now; None: it is gone, or its kind is not served."""
        kind = self.kinds.get(place.resource)
        if kind is None:
            return None
        path = f"{self._collection(place).path}/{place.name}"
        try:
            return read_stored(await self._ask(Call("get", "GET", path)), kind)
        except Conflict:
            return None

    async def remove(self, place: Place, stored: StoredObject) -> None:
        """Remove robots' finalizers from this very version of an object, and delete it. One that is gone is no error.

        Raises Conflict where it has changed since.
        """
        collection, version = self._collection(place), stored.resource_version
        patch = without_robot_finalizers(collection, place, stored)
        try:
            if patch is not None:
                version = str(shown(await self._ask(patch, patch=True), stored.uid)["resourceVersion"])
            if not stored.is_deleted:
                await self._ask(delete_stored(collection, place, stored.uid, version))
        except Conflict:
            if await self.read_again(place) is not None:
                raise

    def _collection(self, place: Place) -> calls.Collection:
        return self.kinds[place.resource].collection(self.versions[place.resource], place.namespace)

    async def _listed(
        self, collection: calls.Collection, *, page: int = PAGE, accept: str = calls.JSON
    ) -> AsyncIterator[Json]:
        """The objects of a collection."""
        try:
            async for raw in objects(self.request, collection, page=page, accept=accept):
                yield raw
        except SyncError as error:
            raise self._named(error, collection.resource) from None

    async def _ask(self, call: Call, *, patch: bool = False) -> Json:
        try:
            reply = await self.request(call)
        except SyncError as caught:
            raise self._named(caught, call.path) from None
        error = reply.error(patch=patch)
        if error is not None:
            raise self._named(error, call.path)
        return reply.body

    def _named(self, error: SyncError, what: str) -> SyncError:
        kind = Conflict if isinstance(error, Conflict) else SyncError
        return kind(f"shard {self.name}: {what}: {error}", hint=error.hint)


def named(shard: str, send: Send) -> Send:
    """Requests to a shard whose errors name it; an answer that is too large stays what it is, for whoever lists."""

    async def request(call: Call) -> Reply:
        try:
            return await send(call)
        except TooLarge:
            raise
        except SyncError as error:
            raise SyncError(f"shard {shard}: {error}", hint=error.hint) from None

    return request


def choose_versions(one: ShardObjects, other: ShardObjects) -> None:
    """Choose the version in which both shards show the objects of each kind: else nothing could be compared."""
    for resource in one.kinds.keys() | other.kinds.keys():
        served = [each.kinds[resource].versions for each in (one, other) if resource in each.kinds]
        version = next((name for name in served[0] if all(name in names for names in served)), None)
        if version is None:
            raise SyncError(
                f"shards {one.name} and {other.name} serve {resource} in no common version",
                hint="a clone has the same CRDs: restore a new snapshot",
            )
        for each in (one, other):
            if resource in each.kinds:
                each.versions[resource] = version


def _versions(group: Json) -> list[str]:
    names = [str(each["version"]) for each in group.get("versions") or ()]
    preferred = (group.get("preferredVersion") or {}).get("version")
    return sorted(names, key=lambda name: name != preferred)
