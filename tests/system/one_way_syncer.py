"""The Go cr-syncer of one robot, as API servers see it: spec down, status up, deletions down, in `default` alone.

A stand-in written from what that program does on the wire (googlecloudrobotics/core, src/go/cmd/cr-syncer).
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from crsyncer.sandbox.resource import Resource
from tests.api import Api, ApiError, Object
from tests.system.bed import LABEL, SYNCER

REMOTE_VERSION = f"{SYNCER}remote-resource-version"
_NAMESPACE = "default"
_RETRY_SECONDS = 0.2


def finalizer(robot: str) -> str:
    """What its earlier versions kept on the cloud's objects of a robot, and this one takes off them."""
    return f"robot-{robot}.synced.cr-syncer.cloudrobotics.com"


class OneWaySyncer:
    """One kind of one robot. A status without the subresource is written with the whole object and an annotation."""

    def __init__(self, cloud: Api, robot_api: Api, resource: Resource, *, robot: str, subresource: bool) -> None:
        self._cloud = cloud
        self._robot_api = robot_api
        self._resource = resource
        self._robot = robot
        self._subresource = subresource
        self._above: dict[str, Object] = {}
        self._below: dict[str, Object] = {}
        self._due: asyncio.Queue[tuple[bool, str]] = asyncio.Queue()
        """Whether it is the status that goes up, and the name."""

    async def run(self) -> None:
        """Sync until this is cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follow(self._cloud, self._above, is_up=False))
            tasks.create_task(self._follow(self._robot_api, self._below, is_up=True))
            tasks.create_task(self._work())

    async def _follow(self, api: Api, cache: dict[str, Object], *, is_up: bool) -> None:
        selector = {"labelSelector": f"{LABEL}={self._robot}"}
        listed = await api.list(self._resource, namespace=_NAMESPACE, **selector)
        for obj in listed["items"]:
            cache[obj["metadata"]["name"]] = obj
            self._due.put_nowait((is_up, obj["metadata"]["name"]))
        since = listed["metadata"]["resourceVersion"]
        async for kind, obj in api.watch(self._resource, since=since, namespace=_NAMESPACE, **selector):
            name = obj["metadata"]["name"]
            if kind == "DELETED":
                cache.pop(name, None)
            else:
                cache[name] = obj
            self._due.put_nowait((is_up, name))

    async def _work(self) -> None:
        while True:
            is_up, name = await self._due.get()
            try:
                await (self._status_up(name) if is_up else self._spec_down(name))
            except ApiError:  # most often 409: its cache is behind
                asyncio.get_running_loop().call_later(_RETRY_SECONDS, self._due.put_nowait, (is_up, name))

    async def _spec_down(self, name: str) -> None:
        source, copy = self._above.get(name), self._below.get(name)
        if source is not None:
            await self._take_off_finalizer(source)
        if source is None or "deletionTimestamp" in source["metadata"]:
            if copy is not None:
                await self._delete(copy)
            return
        metadata = source["metadata"]
        notes = {key: text for key, text in metadata.get("annotations", {}).items() if key != REMOTE_VERSION}
        carried = {"labels": metadata["labels"], "annotations": notes}
        wanted: Object = {**(copy or self._resource.object(name)), "spec": source.get("spec")}
        wanted["metadata"] = {**(copy["metadata"] if copy else {"name": name, "namespace": _NAMESPACE}), **carried}
        if copy is not None:
            await self._robot_api.replace(wanted)
        else:
            await self._robot_api.create({**wanted, "status": source.get("status")})

    async def _status_up(self, name: str) -> None:
        source, copy = self._above.get(name), self._below.get(name)
        if copy is None:
            self._due.put_nowait((False, name))
        elif source is None:
            await self._delete(copy)
        else:
            metadata = source["metadata"]
            notes = {**metadata.get("annotations", {}), REMOTE_VERSION: copy["metadata"]["resourceVersion"]}
            sent = {**source, "metadata": {**metadata, "annotations": notes}, "status": _returned(source, copy)}
            await (self._cloud.replace_status(sent) if self._subresource else self._cloud.replace(sent))

    async def _delete(self, copy: Object) -> None:
        with contextlib.suppress(ApiError):  # it is gone
            await self._robot_api.delete(copy)

    async def _take_off_finalizer(self, source: Object) -> None:
        own, found = finalizer(self._robot), source["metadata"].get("finalizers", [])
        if own in found:
            kept = [each for each in found if each != own]
            await self._cloud.replace({**source, "metadata": {**source["metadata"], "finalizers": kept}})


def _returned(source: Object, copy: Object) -> Any:
    """The status as it goes up: an observed generation is that of the cloud's object, or 0."""
    status = copy.get("status")
    if isinstance(status, dict) and "observedGeneration" in status:
        is_current = status["observedGeneration"] == copy["metadata"]["generation"]
        return {**status, "observedGeneration": source["metadata"]["generation"] if is_current else 0}
    return {} if status is None else status


@contextlib.asynccontextmanager
async def one_way_syncers(
    cloud: Api, robot_api: Api, resource: Resource, *robots: str, subresource: bool
) -> AsyncIterator[None]:
    """Each of these robots has one; they share the robot's plane."""
    made = [OneWaySyncer(cloud, robot_api, resource, robot=robot, subresource=subresource) for robot in robots]
    tasks = [asyncio.create_task(each.run()) for each in made]
    try:
        yield
        for task in tasks:
            assert not task.done(), task.exception()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
