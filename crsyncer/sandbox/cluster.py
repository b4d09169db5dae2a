"""The objects of one API server, by the official client: what a person with kubectl would do in the demo."""

import asyncio
from pathlib import Path
from types import TracebackType
from typing import Any

from kubernetes.aio.client import ApiClient
from kubernetes.aio.config import new_client_from_config
from kubernetes.aio.dynamic import DynamicClient
from kubernetes.aio.dynamic.exceptions import NotFoundError, TooManyRequestsError

from crsyncer.sandbox.resource import CRD, Resource

Json = dict[str, Any]

_PATIENCE = 60.0  # seconds
_POLL = 0.05


class Cluster:
    """One API server, as the user of a kubeconfig. An async context manager.

    Kinds are given and not discovered: discovery asks a dozen requests and keeps the answers in a shared file. Verbs
    raise kubernetes' ApiException, and wait while the server answers 429: it does after a start and after a CRD's
    change.
    """

    def __init__(self, kubeconfig: Path) -> None:
        self._kubeconfig = kubeconfig
        self._api: ApiClient | None = None

    async def __aenter__(self) -> "Cluster":
        self._api = await new_client_from_config(str(self._kubeconfig))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._api is not None:
            await self._api.close()

    async def version(self) -> str:
        """Of the API server, such as "v1.36.3"."""
        return str((await self._send("GET", "/version"))["gitVersion"])

    async def create(self, resource: Resource, obj: Json) -> Json:
        """POST; returns what the server made of it."""
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

    async def add_crd(self, crd: Json) -> None:
        """Create a CRD, and return when its kind is served."""
        await self.create(CRD, crd)
        async with asyncio.timeout(_PATIENCE):
            while not await self.serves(Resource.of_crd(crd)):  # noqa: ASYNC110 - nothing tells us but the server
                await asyncio.sleep(_POLL)

    async def serves(self, resource: Resource) -> bool:
        """Does it answer lists of a kind?"""
        try:
            await self._send("GET", resource.path(), query_params=[("limit", "1")])
        except NotFoundError:
            return False
        return True

    async def _send(self, method: str, path: str, **options: Any) -> Json:
        async with asyncio.timeout(_PATIENCE):
            while True:
                try:
                    reply = await DynamicClient(self._api).request(method, path, serialize=False, **options)
                    return dict(await reply.json())
                except TooManyRequestsError:
                    await asyncio.sleep(_POLL)


def _path(resource: Resource, obj: Json, subresource: str = "") -> str:
    metadata = obj["metadata"]
    return resource.path(namespace=metadata.get("namespace"), name=metadata["name"], subresource=subresource)
