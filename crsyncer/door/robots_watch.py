"""Watches the Robots at the root, so that the map follows their labels."""

import asyncio
import time
from collections.abc import Callable, Mapping

from crsyncer.adapters.kube import KubeCluster
from crsyncer.adapters.memory_meta import MemoryMeta
from crsyncer.core.content.annotations import ROOT
from crsyncer.core.holds.kind_served import is_alive
from crsyncer.core.model import Json, Key
from crsyncer.core.requests.calls import VERSION, Collection, discovery
from crsyncer.door.domain.known_robots import KnownRobots
from crsyncer.door.domain.robots_map import shard_label
from crsyncer.door.robots import PAGE, RIGHTS, robots_collection
from crsyncer.errors import Never, NotAllowed, NotServed, SyncError, Unsure
from crsyncer.ports import Observer
from crsyncer.runtime.connection import Connection, ConnectionState
from crsyncer.runtime.listwatch import Phase
from crsyncer.runtime.object_informer import ObjectInformer

_RETRY_SECONDS = 5.0
_GATHER_SECONDS = 0.05
"""Changes that come together are told together."""
_ALIVE_SECONDS = 1.0
"""After a Robot has vanished its kind is asked for: discovery shows by then that it is being deleted."""


class RobotsWatch:
    """The root, and the shard that each of its Robots asks for.

    `changed(labels)` is called with all of them, once they are known and whenever they are others. While the root is
    away nothing is called: what was told last holds (G4.1).
    """

    def __init__(
        self, cluster: KubeCluster, observer: Observer, *, changed: Callable[[Mapping[str, str]], None]
    ) -> None:
        self.robots = KnownRobots()
        self.is_listed = False
        self._trouble: SyncError | None = None
        self.informer: ObjectInformer | None = None
        self.connection = Connection(
            ROOT,
            cluster=cluster,
            store=MemoryMeta(),
            observer=observer,
            probe_calls=lambda: [VERSION],
            crds=dict,
            clock=time.time,
        )
        self._observer = observer
        self._changed = changed
        self._timer: asyncio.TimerHandle | None = None
        self._vanished = asyncio.Event()

    @property
    def trouble(self) -> SyncError | None:
        """Why the Robots cannot be watched now."""
        connection, watch = self.connection, None if self.informer is None else self.informer.listwatch
        why = connection.error or str(connection.state)
        if connection.state is ConnectionState.OFFLINE:
            return Unsure(why, hint=connection.hint)
        if connection.state is ConnectionState.UNAUTHORIZED:
            return NotAllowed(why, status=401, hint=connection.hint)
        if connection.state is ConnectionState.IDENTITY_CHANGED:
            return Never(why, hint=connection.hint)
        if watch is not None and watch.phase is Phase.FORBIDDEN:
            return NotAllowed(watch.message, status=403, hint=RIGHTS)
        if watch is not None and watch.phase is Phase.MISSING:
            return NotServed(watch.message)
        return self._trouble

    async def run(self, resource: str, namespace: str, *, watch_timeout: int) -> None:
        """Connect and watch, for ever."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.connection.run())
            while True:
                await self.connection.up.wait()
                try:
                    collection = await robots_collection(self.connection.request, resource, namespace)
                    break
                except SyncError as error:
                    self._trouble = error
                    await asyncio.sleep(_RETRY_SECONDS)
            self._trouble = None
            self.informer = ObjectInformer(
                self.connection,
                collection,
                page=PAGE,
                watch_timeout=watch_timeout,
                shown=self._shown,
                gone=self._gone,
                listed=self._listed,
                phase_changed=lambda: None,
                observer=self._observer,
            )
            tasks.create_task(self.informer.run())
            tasks.create_task(self._judge_vanished(collection))

    async def _judge_vanished(self, collection: Collection) -> None:
        """Find out of each Robot that vanishes whether its kind is alive (F5.2)."""
        while True:
            await self._vanished.wait()
            self._vanished.clear()
            await asyncio.sleep(_ALIVE_SECONDS)
            names = frozenset(self.robots.vanished)
            try:
                reply = await self.connection.request(discovery(collection.group, collection.version))
                found = is_alive(collection.plural, reply.status, reply.body)
            except SyncError:
                found = None
            if found is None:
                await asyncio.sleep(_RETRY_SECONDS)
                self._vanished.set()
                continue
            self.robots.judge(names, is_alive=found)
            self._tell_soon()

    def _shown(self, key: Key, robot: Json) -> None:
        if self.robots.shown(key.name, shard_label(robot)):
            self._tell_soon()

    def _gone(self, key: Key) -> None:
        self.robots.vanish(key.name)
        self._vanished.set()

    def _listed(self) -> None:
        if not self.is_listed:
            self.is_listed = True
            self._tell_soon()

    def _tell_soon(self) -> None:
        if self.is_listed and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_GATHER_SECONDS, self._tell)

    def _tell(self) -> None:
        self._timer = None
        self._changed(dict(self.robots.labels))
