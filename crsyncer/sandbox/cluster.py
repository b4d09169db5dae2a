"""Reads and writes the objects of one API server by the official client, as a user with kubectl does."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from kubernetes.aio.client import ApiClient
from kubernetes.aio.config import new_client_from_config
from kubernetes.aio.dynamic import DynamicClient
from kubernetes.aio.dynamic.exceptions import NotFoundError, TooManyRequestsError

from crsyncer.adapters.retries import retried, until_async
from crsyncer.sandbox.resource import CRD, SERVICE_ACCOUNT, Resource

Json = dict[str, Any]

_PATIENCE = 60.0  # seconds


class Cluster:
    """One API server, as the user of a kubeconfig. `connected` opens one.

    Kinds are given and not discovered: discovery sends a dozen requests and keeps the answers in a shared file. The
    verbs raise kubernetes' ApiException; a 429, the answer right after a start or a CRD's change, is retried.
    """

    def __init__(self, api: ApiClient) -> None:
        self._client = DynamicClient(api)

    async def version(self) -> str:
        """The API server's version, such as "v1.36.3"."""
        return str((await self._send("GET", "/version"))["gitVersion"])

    async def create(self, resource: Resource, obj: Json) -> Json:
        """POST; returns the object as the server stores it."""
        path = resource.path(namespace=obj["metadata"].get("namespace"))
        return await self._send("POST", path, body=obj)

    async def get(self, resource: Resource, obj: Json) -> Json:
        """The object as it is now."""
        return await self._send("GET", _path(resource, obj))

    async def find(self, resource: Resource, obj: Json) -> Json | None:
        """The object as it is now, None when there is none."""
        try:
            return await self.get(resource, obj)
        except NotFoundError:
            return None

    async def patch(self, resource: Resource, obj: Json, change: Json, *, subresource: str = "") -> Json:
        """A merge patch, whose None removes a field."""
        path = _path(resource, obj, subresource)
        return await self._send("PATCH", path, body=change, content_type="application/merge-patch+json")

    async def delete(self, resource: Resource, obj: Json) -> None:
        """DELETE."""
        await self._send("DELETE", _path(resource, obj))

    async def token(self, account: Json) -> str:
        """A token of a service account, for an hour."""
        body = {"spec": {"expirationSeconds": 3600}}
        made = await self._send("POST", _path(SERVICE_ACCOUNT, account, "token"), body=body)
        return str(made["status"]["token"])

    async def add_crd(self, crd: Json) -> None:
        """Create a CRD, and return when its kind is served."""
        await self.create(CRD, crd)
        if not await until_async(lambda: self.serves(Resource.of_crd(crd)), seconds=_PATIENCE):
            raise TimeoutError(f"{crd['metadata']['name']} is not served after {_PATIENCE:.0f} s")

    async def serves(self, resource: Resource) -> bool:
        """Whether the server serves a kind."""
        try:
            await self._send("GET", resource.path(), limit=1)
        except NotFoundError:
            return False
        return True

    @retried(TooManyRequestsError, seconds=_PATIENCE)
    async def _send(self, method: str, path: str, **options: Any) -> Json:
        async with asyncio.timeout(_PATIENCE):
            reply = await self._client.request(method, path, serialize=False, **options)
            return dict(await reply.json())


@asynccontextmanager
async def connected(kubeconfig: Path) -> AsyncIterator[Cluster]:
    """One API server, until the block ends."""
    async with await new_client_from_config(str(kubeconfig)) as api:
        yield Cluster(api)


def _path(resource: Resource, obj: Json, subresource: str = "") -> str:
    metadata = obj["metadata"]
    return resource.path(namespace=metadata.get("namespace"), name=metadata["name"], subresource=subresource)
