"""The kinds that SyncPolicies name and that have no CRD on the robot, as its discovery shows them (C1.4)."""

import asyncio
import json
import logging
from collections.abc import Callable, Mapping

from crsyncer.core.kinds import built_in_kind
from crsyncer.core.kinds.kind_name import Resource
from crsyncer.core.model import Json, Side
from crsyncer.core.watching.backoff import UNSERVED
from crsyncer.engine.context import EngineContext
from crsyncer.engine.kinds.negotiation import UNKNOWN, Disagreement
from crsyncer.errors import SyncError
from crsyncer.runtime.discovery import discover

log = logging.getLogger(__name__)


class BuiltInKinds:
    """Knows each wanted kind as its CRD would describe it. `changed(resource)` is called when there is news of one.

    What discovery has shown is remembered, so that the agent starts while the robot's API server is away. It is asked
    for at each connection, and with back-off for kinds that the robot does not serve.
    """

    def __init__(
        self, context: EngineContext, *, changed: Callable[[str], None], spawn: Callable[..., asyncio.Task[None]]
    ) -> None:
        self._connection = context.connections[Side.ROBOT]
        self._store = context.store
        self._changed = changed
        self._spawn = spawn
        self._wanted: dict[str, Resource] = {}
        self._found: dict[str, str] = {}
        """By kind, its description as JSON."""
        self._obstacles: dict[str, Disagreement] = {}
        """By kind, why it is not known."""
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def want(self, wanted: Mapping[str, Resource]) -> None:
        """Look for these kinds, and for no others."""
        before, self._wanted = self._wanted, dict(wanted)
        for name in before.keys() - wanted.keys():
            self._tasks.pop(name).cancel()
            self._found.pop(name, None)
            self._obstacles.pop(name, None)
            self._changed(name)
        for name in wanted.keys() - before.keys():
            known = self._store.get_meta(_meta_name(name))
            if known:
                self._found[name] = json.dumps(known)
            else:
                text = "the robot has not shown yet whether it serves the kind"
                self._obstacles[name] = Disagreement(UNKNOWN, text)
            self._tasks[name] = self._spawn(self._keep(name, wanted[name]))
            self._changed(name)

    def description(self, name: str) -> str | None:
        """The kind as its CRD would describe it, as JSON; None: it is not wanted."""
        if name not in self._wanted:
            return None
        return self._found.get(name) or json.dumps(built_in_kind.unknown(self._wanted[name]))

    def obstacle(self, name: str) -> Disagreement | None:
        """Why the kind is not known; None: it is known, or not wanted."""
        return self._obstacles.get(name)

    async def _keep(self, name: str, resource: Resource) -> None:
        failures = 0
        while True:
            await self._connection.up.wait()
            try:
                found = await discover(resource, self._connection.request)
            except SyncError as error:
                log.info("discovery of %s is tried again: %s", name, error)
                await self._connection.waits.back_off(failures)
                failures += 1
                continue
            self._take(name, found, resource)
            if found is None:
                await self._connection.waits.back_off(failures, UNSERVED)
                failures += 1
            else:
                failures = 0
                await self._connection.down.wait()

    def _take(self, name: str, found: Json | None, resource: Resource) -> None:
        if found is None:
            news = Disagreement("kind-missing", built_in_kind.not_served(resource))
            if name in self._found or self._obstacles.get(name) == news:
                return  # a kind that runs sees for itself that it is not served any more
            self._obstacles[name] = news
        else:
            text = json.dumps(found)
            if self._found.get(name) == text:
                return
            self._store.put_meta(_meta_name(name), found)
            self._found[name] = text
            self._obstacles.pop(name, None)
        self._changed(name)


def _meta_name(name: str) -> str:
    return f"built-in:{name}"
