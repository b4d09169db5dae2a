"""Who plays which part: the rules speak of upstream and downstream, the bed of cloud and robot."""

import asyncio
import contextlib
import json
import secrets
from typing import Any

from tests.link.faults import Request
from tests.system.bed import SECONDS, Bed, SideBed, eventually

UID = "crsyncer.cloudrobotics.com/upstream-uid"
APPLIED = "crsyncer.cloudrobotics.com/applied"
ROBOT_KEY = "crsyncer.cloudrobotics.com/robot"
FINALIZER = "lab.example.com/wait"


def roles(bed: Bed, source: str) -> tuple[SideBed, SideBed]:
    """Upstream and downstream of a kind whose spec comes from `source`."""
    return (bed.cloud, bed.robot) if source == "cloud" else (bed.robot, bed.cloud)


async def touched(bed: Bed, side: SideBed, *, seconds: float = SECONDS) -> None:
    """Wait until the agent has certainly seen, and acted on, everything that happened on a side before this call.

    A marker object's whole way is the proof: events of one kind and side arrive in order.
    """
    await side.create(f"marker-{secrets.token_hex(4)}")
    await bed.settled(seconds=seconds)


def status_writes(side: SideBed, name: str) -> list[Request]:
    """The requests through a side's link that wrote an object's status, or the object where that is one."""
    path = side.resource.path(namespace="default", name=name)
    return [r for r in side.link.requests if r.method in ("PATCH", "PUT") and r.path in (path, f"{path}/status")]


def decoded(request: Request) -> Any:
    """What was sent."""
    return json.loads(request.body)


async def answered(side: SideBed, name: str, count: int = 1) -> list[Request]:
    """Wait until so many status writes were answered, and return all there are."""

    async def check() -> list[Request] | None:
        found = [r for r in status_writes(side, name) if r.status]
        return found if len(found) >= count else None

    found: list[Request] = await eventually(check, what=f"{count} status writes of {name}")
    return found


class Rival:
    """Somebody who sets an object back as soon as it is changed, by watch; counts how often it had to.

    An async context manager; it stops after `limit` times.
    """

    def __init__(self, side: SideBed, name: str, change: dict[str, Any], *, limit: int = 1000) -> None:
        self.count = 0
        self._side = side
        self._name = name
        self._change = change
        self._limit = limit
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "Rival":
        since = (await self._side.api.list(self._side.resource))["metadata"]["resourceVersion"]
        self._task = asyncio.create_task(self._run(since))
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _run(self, since: str) -> None:
        await self._set()
        async for kind, obj in self._side.api.watch(self._side.resource, since=since):
            if obj["metadata"]["name"] != self._name or kind == "DELETED" or self.count >= self._limit:
                continue
            if any(obj.get(field) != value for field, value in self._change.items()):
                await self._set()

    async def _set(self) -> None:
        self.count += 1
        await self._side.patch(self._name, self._change)
