"""The client of tests and benchmarks: what a person with kubectl would do, on its own, so that no mistake of the
agent's client can hide in it.

Plain HTTP and not the official client, which the demo uses: tests send any header and look at any answer, where its
dynamic client sets Authorization itself and raises; and its watches ask again by themselves when a server ends them.
"""

import asyncio
import builtins
import json
import ssl
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import aiohttp

from crsyncer.core.requests.calls import PARTIAL_LIST
from crsyncer.sandbox.resource import CRD, NAMESPACE, SERVICE_ACCOUNT, Resource

Object = dict[str, Any]

USER_AGENT = "crsyncer-sandbox"
_PATIENCE = 60.0  # seconds that a verb waits to be connected and waits out 429, and apply_crd waits for the kind


class ApiError(Exception):
    """The API server refused: HTTP `status`, the Status object's `reason` and `message`."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status = status
        self.reason = reason
        self.message = message


class Api:
    """One API server, as the holder of a token. An async context manager.

    Objects are addressed by themselves: apiVersion, kind, name and namespace are enough of an object for `get`,
    `patch` and `delete`; lists and watches take a Resource. A kind becomes known by `apply_crd` or `learn`. Verbs
    raise ApiError, and wait while the server answers 429: it does after a start and after a CRD's change.
    """

    def __init__(self, server: str, *, ca_file: Path, token: str) -> None:
        self.server = server
        self._ca_file = ca_file
        self._token = token
        self._session: aiohttp.ClientSession | None = None
        self._known: dict[tuple[str, str], Resource] = {}

    async def __aenter__(self) -> "Api":
        context = ssl.create_default_context(cafile=str(self._ca_file))
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=context, limit=0),
            headers={"Authorization": f"Bearer {self._token}", "User-Agent": USER_AGENT},
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=_PATIENCE),
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()

    def learn(self, *resources: Resource) -> None:
        """Make kinds known whose plural is not the usual one."""
        self._known |= {(resource.api_version, resource.kind): resource for resource in resources}

    def path(self, obj: Object, *, subresource: str = "", name: bool = True) -> str:
        """Where an object lives, or with `name=False` the collection that it is created in."""
        metadata = obj.get("metadata", {})
        resource = _resource_of(obj, self._known)
        return resource.path(
            namespace=metadata.get("namespace"), name=metadata["name"] if name else "", subresource=subresource
        )

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        json: Any = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = 60.0,
    ) -> tuple[int, Any]:
        """One raw request, whatever its answer: (status, decoded JSON, or text where it is none). No retries.

        Raises aiohttp.ClientError or TimeoutError when there is no answer within `timeout` seconds.
        """
        async with asyncio.timeout(timeout):
            async with self._open().request(
                method, self.server + path, params=params, data=_encoded(json), headers=_typed(headers)
            ) as reply:
                return reply.status, _decoded(await reply.read())

    async def create(self, obj: Object) -> Object:
        """POST; returns what the server made of it."""
        return await self._verb("POST", self.path(obj, name=False), body=obj)

    async def get(self, obj: Object) -> Object:
        """The object as it is now."""
        return await self._verb("GET", self.path(obj))

    async def find(self, obj: Object) -> Object | None:
        """The object as it is now, None when there is none."""
        with suppress(KeyError):
            try:
                return await self.get(obj)
            except ApiError as error:
                if error.status != 404:
                    raise
        return None

    async def list(self, resource: Resource, *, namespace: str | None = None, **params: str) -> Object:
        """The list object: `metadata.resourceVersion` and `items`. All namespaces without `namespace`."""
        return await self._verb("GET", resource.path(namespace=namespace), params=params)

    async def replace(self, obj: Object) -> Object:
        """PUT; guarded by the resourceVersion where the object has one."""
        return await self._verb("PUT", self.path(obj), body=obj)

    async def replace_status(self, obj: Object) -> Object:
        """PUT on /status; the server takes nothing but the status from it."""
        return await self._verb("PUT", self.path(obj, subresource="status"), body=obj)

    async def patch(self, obj: Object, change: Object | builtins.list[Object], *, subresource: str = "") -> Object:
        """A merge patch, whose None removes a field; or, where `change` is a list, a JSON Patch."""
        kind = "json-patch" if isinstance(change, builtins.list) else "merge-patch"
        path = self.path(obj, subresource=subresource)
        return await self._verb("PATCH", path, body=change, content_type=f"application/{kind}+json")

    async def patch_status(self, obj: Object, status: Object | None) -> Object:
        """A merge patch of the status alone."""
        return await self.patch(obj, {"status": status}, subresource="status")

    async def delete(self, obj: Object, *, uid: str | None = None) -> Object:
        """DELETE, with `uid` only if it is still that object. Finalizers hold it back as always."""
        options = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": uid}} if uid else None
        return await self._verb("DELETE", self.path(obj), body=options)

    async def watch(
        self, resource: Resource, *, since: str, namespace: str | None = None, **params: str
    ) -> AsyncGenerator[tuple[str, Object], None]:
        """(type, object) of every event after the resourceVersion `since`, until the server ends the stream.

        Raises ApiError, also for an ERROR event in the stream (410 when `since` is too old).
        """
        query = {"watch": "true", "resourceVersion": since, **params}
        url = self.server + resource.path(namespace=namespace)
        async with self._open().get(url, params=query) as reply:
            if reply.status != 200:
                raise _error(reply.status, _decoded(await reply.read()))
            rest = b""
            async for chunk in reply.content.iter_any():
                *lines, rest = (rest + chunk).split(b"\n")
                for event in map(json.loads, filter(None, lines)):
                    if event["type"] == "ERROR":
                        raise _error(event["object"].get("code", 0), event["object"])
                    yield event["type"], event["object"]

    async def apply_crd(self, crd: Object) -> Resource:
        """Create or replace a CRD, and return its kind when it is served: listed and watched, without a 404 or 429."""
        resource = Resource.of_crd(crd)
        self.learn(resource)
        if await self.find(crd) is None:
            await self.create(crd)
            await self._backdate(crd)
        else:
            await self._replace_crd(crd)
        await self.until_served(resource)
        return resource

    async def _replace_crd(self, crd: Object) -> None:
        """PUT, and again where the API server has written conditions into it meanwhile."""
        while True:
            version = (await self.get(crd))["metadata"]["resourceVersion"]
            try:
                await self.replace(crd | {"metadata": crd["metadata"] | {"resourceVersion": version}})
            except ApiError as error:
                if error.status != 409:
                    raise
            else:
                return

    async def _backdate(self, crd: Object) -> None:
        """Let a CRD be established for long: the first create after that would else sleep for 2 s, in each test.

        Source: k8s.io/apiextensions-apiserver, pkg/apiserver/customresource_handler.go ("justCreated").
        """
        async with asyncio.timeout(_PATIENCE):
            while True:
                current = await self.get(crd)
                conditions = current.get("status", {}).get("conditions") or []
                if any(each["type"] == "Established" and each["status"] == "True" for each in conditions):
                    break
                await asyncio.sleep(0.02)
        for each in conditions:
            each["lastTransitionTime"] = "2020-01-01T00:00:00Z"
        await self.patch_status(crd, {"conditions": conditions})

    async def remove_crds(self, *crds: Object) -> None:
        """Delete CRDs, and wait until they and their objects are gone. What keeps an object is taken off it.

        Those that are gone already may be among them.
        """
        await self.remove_kinds(*map(Resource.of_crd, crds))

    async def remove_kinds(self, *resources: Resource) -> None:
        """As `remove_crds`, by their kinds."""
        self.learn(*resources)
        named = [(CRD.object(f"{resource.plural}.{resource.group}"), resource) for resource in resources]
        for name, _ in named:
            with suppress(ApiError):
                await self.delete(name)
        for name, resource in named:
            async with asyncio.timeout(_PATIENCE):
                while await self.find(name) is not None:
                    await self._let_go(resource)
                    await asyncio.sleep(0.05)
                # A server hears of it by watch, and answers lists of the kind until then.
                while (await self.request("GET", resource.path()))[0] != 404:  # noqa: ASYNC110 - as above
                    await asyncio.sleep(0.05)

    async def _let_go(self, resource: Resource) -> None:
        """Take all finalizers off the objects of a kind that is being deleted."""
        status, answer = await self.request("GET", resource.path(), headers={"Accept": PARTIAL_LIST})
        for metadata in [item["metadata"] for item in answer["items"] or ()] if status == 200 else ():
            if metadata.get("finalizers"):
                obj = resource.object(metadata["name"], namespace=metadata.get("namespace", ""))
                with suppress(ApiError):
                    await self.patch(obj, {"metadata": {"finalizers": None}})

    async def until_served(self, resource: Resource) -> None:
        """Wait until a kind is found by discovery, and answers lists and watches.

        Raises ApiError with its last answer after a minute.
        """
        deadline = time.monotonic() + _PATIENCE
        while True:
            status, answer = await self.request("GET", f"/apis/{resource.api_version}")
            if status == 200 and resource.plural not in [each["name"] for each in answer["resources"]]:
                status = 404
            if status == 200:
                status, answer = await self.request("GET", resource.path(), params={"limit": "1"})
            if status == 200:
                query = {
                    "watch": "true",
                    "timeoutSeconds": "1",
                    "resourceVersion": answer["metadata"]["resourceVersion"],
                }
                async with self._open().get(self.server + resource.path(), params=query) as reply:
                    status = reply.status
                if status == 200:
                    return
            if time.monotonic() > deadline:
                raise _error(status, answer)
            await asyncio.sleep(0.05)

    async def until_gone(self, obj: Object, *, seconds: float = _PATIENCE) -> None:
        """Wait until an object is really gone, finalizers and all. Raises TimeoutError."""
        async with asyncio.timeout(seconds):
            while await self.find(obj) is not None:  # noqa: ASYNC110 - nothing tells us but the server
                await asyncio.sleep(0.05)

    async def ensure_namespace(self, name: str) -> None:
        """Create a namespace unless it is there."""
        with suppress(ApiError):
            await self.create(NAMESPACE.object(name))
        await self.get(NAMESPACE.object(name))

    async def service_account_token(self, namespace: str, name: str) -> str:
        """A real token of a service account, made where it is missing, valid for an hour."""
        account = SERVICE_ACCOUNT.object(name, namespace=namespace)
        if await self.find(account) is None:
            await self.create(account)
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": 3600},
        }
        answer = await self._verb("POST", self.path(account, subresource="token"), body=request)
        return str(answer["status"]["token"])

    async def _verb(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = "application/json",
    ) -> Object:
        deadline = time.monotonic() + _PATIENCE
        while True:
            headers = {"Content-Type": content_type}
            status, answer = await self.request(method, path, params=params, json=body, headers=headers)
            if status < 300:
                return dict(answer)
            if status != 429 or time.monotonic() > deadline:
                raise _error(status, answer)
            await asyncio.sleep(0.1)

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise RuntimeError("an Api is used inside 'async with'")
        return self._session


def crd(resource: Resource, *, annotations: Mapping[str, str] | None = None, status: bool = True) -> Object:
    """A CRD that keeps any field, with a status subresource unless told otherwise."""
    version: Object = {
        "name": resource.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
    }
    if status:
        version["subresources"] = {"status": {}}
    return CRD.object(
        f"{resource.plural}.{resource.group}",
        annotations=dict(annotations or {}),
        spec={
            "group": resource.group,
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "names": {"plural": resource.plural, "singular": resource.kind.lower(), "kind": resource.kind},
            "versions": [version],
        },
    )


def _typed(headers: Mapping[str, str] | None) -> dict[str, str]:
    return {"Content-Type": "application/json", **(headers or {})}


def _encoded(body: Any) -> bytes | None:
    if body is None or isinstance(body, bytes):
        return body
    return json.dumps(body).encode()


def _decoded(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return body.decode(errors="replace")


def _error(status: int, answer: Any) -> ApiError:
    if isinstance(answer, dict):
        return ApiError(status, str(answer.get("reason", "")), str(answer.get("message", "")))
    return ApiError(status, "", str(answer).strip())


def _resource_of(obj: Mapping[str, Any], known: Mapping[tuple[str, str], Resource]) -> Resource:
    """The kind of an object: a known one, else guessed as English and Kubernetes form plurals.

    Guessed to be namespaced exactly if the object names a namespace.
    """
    api_version, kind = obj["apiVersion"], obj["kind"]
    if (api_version, kind) in known:
        return known[api_version, kind]
    group, _, version = api_version.rpartition("/")
    word = kind.lower()
    plural = (
        word[:-1] + "ies" if word[-1] == "y" and word[-2] not in "aeiou" else word + ("es" if word[-1] == "s" else "s")
    )
    return Resource(group, version, plural, kind, namespaced="namespace" in obj.get("metadata", {}))
