"""The CRDs that travel to the other side (C8)."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping
from functools import partial
from typing import Any

from crsyncer.core.kinds.sync_policy import Api
from crsyncer.engine.apis.travelling_crd import TravellingCrd
from crsyncer.engine.context import EngineContext
from crsyncer.runtime.listwatch import ListWatch


class Lifecycle:
    """All CRDs that travel. `spawn` starts a task, `changed(resource)` is called when a policy's problem is another."""

    def __init__(
        self,
        context: EngineContext,
        *,
        robot: str,
        spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
        changed: Callable[[str], None],
    ) -> None:
        self.crds: dict[str, TravellingCrd] = {}
        """Each by its name."""
        self._context = context
        self._robot = robot
        self._spawn = spawn
        self._changed = changed
        self._tasks: dict[str, asyncio.Task[None]] = {}

    @property
    def listwatches(self) -> Iterator[ListWatch]:
        """Those of all."""
        for each in self.crds.values():
            yield from each.listwatches

    def follow(self, wanted: Mapping[str, Api]) -> None:
        """Have these CRDs travel, and no others."""
        for resource, running in list(self.crds.items()):
            api = wanted.get(resource)
            before = running.api
            if api is None or (api.source, api.projection) != (before.source, before.projection):
                self._tasks.pop(resource).cancel()
                self.crds.pop(resource).forget()
            elif api != before:
                running.change(api)
        for resource in wanted.keys() - self.crds.keys():
            changed = partial(self._changed, resource)
            made = TravellingCrd(resource, wanted[resource], context=self._context, robot=self._robot, changed=changed)
            self.crds[resource] = made
            self._tasks[resource] = self._spawn(made.run())
            if made.problem:
                changed()
