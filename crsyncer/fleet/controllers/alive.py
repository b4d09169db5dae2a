"""Asks discovery whether the cloud serves the inputs and kinds that a removal depends on (S5.5a, F5.2)."""

import asyncio
from collections.abc import Callable, Iterable

from crsyncer.core.holds.kind_served import is_alive
from crsyncer.core.requests import calls
from crsyncer.core.requests.calls import Collection
from crsyncer.errors import SyncError
from crsyncer.fleet.controllers.state import FleetState
from crsyncer.fleet.domain.change import Change, Input
from crsyncer.fleet.domain.fleet_calls import PLACEMENTS, STRIPS, SYNC_STATES, objects_of
from crsyncer.fleet.domain.transport.keys import ROOT, at

REPORTS = "RobotSyncStates"
"""Under which name reports are asked for: while their kind is not alive, no robot is begun (F8.5)."""


class Liveness:
    """Answers `ask`, of one shard: each name is asked for once, by a request that begins after it was asked.

    `take` is given what follows from an answer. What is forbidden or not answered is asked again, with a back-off.
    """

    def __init__(self, state: FleetState, *, take: Callable[[Change], None], shard: str = ROOT) -> None:
        self._state = state
        self._connection = state.connection_to(shard)
        self._reports = at(shard, REPORTS)
        self._take = take
        self._asked: dict[str, None] = {}
        self._wake = asyncio.Event()
        self.dead: set[str] = set()
        """The names that were not served when they were asked for last."""

    def ask(self, names: Iterable[str]) -> None:
        """Have discovery asked for these inputs and kinds."""
        for name in names:
            self._asked[name] = None
            self._wake.set()

    def doubt_reports(self) -> None:
        """A report is gone: until discovery says that their kind is there, no robot is begun (F8.5)."""
        self.dead |= {self._reports}
        self.ask([self._reports])

    async def run(self) -> None:
        """Ask, forever."""
        failures = 0
        while True:
            await self._wake.wait()
            self._wake.clear()
            await self._connection.up.wait()
            names, self._asked = list(self._asked), {}
            unanswered = [name for name in names if not await self._answered(name)]
            failures = failures + 1 if unanswered else 0
            if unanswered:
                await self._connection.waits.back_off(failures - 1)
                self.ask(unanswered)

    async def _answered(self, name: str) -> bool:
        began = self._state.now
        place = self._collection(name)
        if place is None:  # a kind without a version is not served
            self._tell(name, is_served=False, began=began)
            return True
        try:
            reply = await self._connection.request(calls.discovery(place.group, place.version))
        except SyncError:
            return False
        is_served = is_alive(place.plural, reply.status, reply.body)
        if is_served is not None:
            self._tell(name, is_served=is_served, began=began)
        return is_served is not None

    def _tell(self, name: str, *, is_served: bool, began: float) -> None:
        self.dead = self.dead - {name} if is_served else self.dead | {name}
        if name == self._reports:
            self._take(Change(placements=set(self._state.fleet.index.placements)))
            return
        self._state.losses.served(name, is_served=is_served, now=began)
        self._take(self._state.fleet.served(name, is_served=is_served))

    def _collection(self, name: str) -> Collection | None:
        match name:
            case Input.PLACEMENTS:
                return PLACEMENTS
            case Input.STRIPS:
                return STRIPS
            case _ if name == self._reports:
                return SYNC_STATES
        resource = self._state.settings.robots if name == Input.ROBOTS else name
        kind = self._state.fleet.index.kinds.get(resource)
        return objects_of(kind) if kind is not None and kind.version else None
