"""People and controllers on both sides, as real ones act: they read, then write guarded by what they have read."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp

from tests.api import Api, ApiError
from tests.faults.chaos.kinds import KINDS, Kind
from tests.system.bed import LABEL, OURS, ROBOT

_PATIENCE_SECONDS = 8.0
FINALIZER = "chaos.example.com/kept"
"""Keeps a finished object, so that its last status can be told from a lost one."""


class Writers:
    """Performs what the schedule asks of objects. Each returns "" or why it could not be done."""

    def __init__(self, apis: dict[str, Api]) -> None:
        self._apis = apis
        self._locks: dict[tuple[str, str], asyncio.Lock] = defaultdict(asyncio.Lock)

    async def perform(self, action: str, *, kind: str, name: str, number: int, away: bool = False) -> str:
        """One action on one object; those on the same object follow each other."""
        one = _Object(self._apis, KINDS[kind], name)
        steps: dict[str, Callable[[int], Awaitable[object]]] = {
            "create": one.create,
            "change": one.change,
            "report": one.report,
            "drift": one.drift,
            "lose": one.lose,
            "last_words": one.last_words,
            "delete": one.delete,
            "recreate": one.recreate,
            "finish": one.finish,
            "neighbour": one.neighbour,
        }
        async with self._locks[kind, name]:
            try:
                async with asyncio.timeout(_PATIENCE_SECONDS):
                    await (one.relabel(number, away=away) if action == "relabel" else steps[action](number))
            except ApiError as error:
                return f"{error.status} {error.reason}"
            except (aiohttp.ClientError, OSError, TimeoutError) as error:
                return f"no answer: {type(error).__name__}"
        return ""


class _Object:
    """One object and its copy. `number` is the schedule's: it grows, and says what came after what."""

    def __init__(self, apis: dict[str, Api], kind: Kind, name: str) -> None:
        self._kind = kind
        self._up, self._down = apis[kind.upstream], apis[kind.downstream]
        self._bare = kind.resource.object(name)
        self._copy = kind.resource.object(kind.prefix + name)

    async def create(self, number: int) -> None:
        labels = {LABEL: ROBOT} if self._kind.filtered else {"example.com/made": str(number)}
        name = self._bare["metadata"]["name"]
        spec = {"serial": number, "list": [number, {"deep": 2**53 + number}]}
        await self._up.create(self._kind.resource.object(name, labels=labels, spec=spec))

    async def change(self, number: int) -> None:
        found = await self._up.get(self._bare)
        note = {"example.com/note": str(number) if number % 3 else None}
        await self._patch(self._up, found, {"spec": {"serial": number}, "metadata": {"annotations": note}})

    async def relabel(self, number: int, *, away: bool) -> None:
        found = await self._up.get(self._bare)
        label = {LABEL: "robot-2" if away else ROBOT}
        await self._patch(self._up, found, {"spec": {"serial": number}, "metadata": {"labels": label}})

    async def delete(self, _number: int) -> None:
        found = await self._up.get(self._bare)
        await self._up.delete(self._bare, uid=found["metadata"]["uid"])

    async def recreate(self, number: int) -> None:
        await self.delete(number)
        await self.create(number)

    async def report(self, number: int, *, phase: str = "Running") -> str:
        """As a controller: the status is of the copy that was read. Returns that copy's uid."""
        copy = await self._down.get(self._copy)
        stamp = (copy["metadata"].get("annotations") or {}).get(f"{OURS}upstream-uid")
        status: dict[str, Any] = {"seq": number, "uid": stamp, "phase": phase}
        if self._kind.subtree:
            status = {self._kind.subtree: status}
        await self._patch(self._down, copy, {"status": status}, subresource="status")
        return str(copy["metadata"]["uid"])

    async def last_words(self, number: int) -> None:
        """A final status, and the copy is gone."""
        uid = await self.report(number, phase="Done")
        await self._down.delete(self._copy, uid=uid)

    async def lose(self, _number: int) -> None:
        copy = await self._down.get(self._copy)
        await self._down.delete(self._copy, uid=copy["metadata"]["uid"])

    async def finish(self, number: int) -> None:
        """A final status, and the object is deleted, but stays for its finalizer."""
        await self.report(number, phase="Done")
        found = await self._up.get(self._bare)
        await self._patch(self._up, found, {"metadata": {"finalizers": [FINALIZER]}})
        await self._up.delete(self._bare, uid=found["metadata"]["uid"])

    async def drift(self, number: int) -> None:
        copy = await self._down.get(self._copy)
        await self._patch(self._down, copy, {"spec": {"rival": number}})

    async def neighbour(self, number: int) -> None:
        """Somebody writes upstream's status, beside what we own of it."""
        found = await self._up.get(self._bare)
        await self._patch(self._up, found, {"status": {"cloud": {"seq": number}}}, subresource="status")

    async def _patch(self, api: Api, read: dict[str, Any], change: dict[str, Any], *, subresource: str = "") -> None:
        guard = {"resourceVersion": read["metadata"]["resourceVersion"]}
        guarded = {**change, "metadata": {**change.get("metadata", {}), **guard}}
        await api.patch(read, guarded, subresource=subresource)
