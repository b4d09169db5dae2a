"""Watches both planes past the links, as an administrator, and keeps every version of every object."""

import asyncio
from typing import Any

import aiohttp

from tests.api import Api, ApiError
from tests.faults.chaos.history import Seen
from tests.faults.chaos.kinds import KINDS, SIDES, Kind

Object = dict[str, Any]
_PAUSE_SECONDS = 0.2


class Recorder:
    """Every version of every object of the run. `gaps` says where a watch missed some, and it had to list anew."""

    def __init__(self, apis: dict[str, Api]) -> None:
        self.seen: list[Seen] = []
        self.gaps: list[str] = []
        self._apis = apis
        self._clock = asyncio.get_running_loop().time
        self._known: dict[tuple[str, str], dict[str, Object]] = {}

    async def run(self) -> None:
        """Watch, forever."""
        async with asyncio.TaskGroup() as tasks:
            for side in SIDES:
                for kind in KINDS.values():
                    tasks.create_task(self._follow(side, kind))

    async def final(self) -> dict[tuple[str, str], tuple[Seen, ...]]:
        """What is there now, by side and kind."""
        found = {}
        for side in SIDES:
            for kind in KINDS.values():
                items = (await self._apis[side].list(kind.resource))["items"]
                now = self._clock()
                found[side, kind.plural] = tuple(
                    Seen(now, now, side, kind.plural, False, {**_kind(kind), **item}) for item in items
                )
        return found

    async def _follow(self, side: str, kind: Kind) -> None:
        api, version, contact = self._apis[side], "", self._clock()
        while True:
            try:
                if not version:
                    listed = await api.list(kind.resource)
                    version = listed["metadata"]["resourceVersion"]
                    self._listed(side, kind, listed["items"], after=contact)
                async for event, obj in api.watch(kind.resource, since=version):
                    version = obj["metadata"]["resourceVersion"]
                    self._saw(side, kind, obj, gone=event == "DELETED", after=contact)
                    contact = self._clock()
            except ApiError as error:
                if error.status == 410:
                    self.gaps.append(f"{self._clock():.1f} {side} {kind.plural}: {error.message}")
                    version = ""
            except (aiohttp.ClientError, OSError, TimeoutError, ValueError):
                pass
            await asyncio.sleep(_PAUSE_SECONDS)

    def _listed(self, side: str, kind: Kind, items: list[Object], *, after: float) -> None:
        there = {item["metadata"]["uid"] for item in items}
        for uid, obj in list(self._known.get((side, kind.plural), {}).items()):
            if uid not in there:
                self._saw(side, kind, obj, gone=True, after=after)
        for item in sorted(items, key=lambda item: int(item["metadata"]["resourceVersion"])):
            known = self._known.get((side, kind.plural), {}).get(item["metadata"]["uid"])
            if known is None or known["metadata"]["resourceVersion"] != item["metadata"]["resourceVersion"]:
                self._saw(side, kind, item, gone=False, after=after)

    def _saw(self, side: str, kind: Kind, obj: Object, *, gone: bool, after: float) -> None:
        known = self._known.setdefault((side, kind.plural), {})
        if gone:
            known.pop(obj["metadata"]["uid"], None)
        else:
            known[obj["metadata"]["uid"]] = obj
        self.seen.append(Seen(self._clock(), after, side, kind.plural, gone, obj))


def _kind(kind: Kind) -> dict[str, str]:
    """Items of a list do not name their kind."""
    return {"apiVersion": kind.resource.api_version, "kind": kind.resource.kind}
