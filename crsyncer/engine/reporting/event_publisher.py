"""Writes Kubernetes Events on the robot about what needs somebody's attention; best effort, and never in the way."""

import asyncio
import logging

from crsyncer.core.model import Side
from crsyncer.core.reports.event_ring import Event
from crsyncer.core.reports.kubernetes_events import Regarding, count_event, create_event, reason_of
from crsyncer.engine.engine import Engine
from crsyncer.errors import Conflict, NotServed, SyncError

log = logging.getLogger(__name__)

_MOST_WAITING = 50
_BETWEEN_SECONDS = 0.2
_REFUSED_SECONDS = 60.0


class EventPublisher:
    """Publishes the news of an engine's recorder, which are few whatever repeats.

    Its requests bypass the connection, so they count as no traffic of the sync: an answer, or the lack of one, does
    not change what the agent does. What cannot be published is dropped; `crsyncer events` has it anyway.
    """

    def __init__(self, engine: Engine, *, instance: str) -> None:
        self._kinds = engine.kinds
        self._connection = engine.connections[Side.ROBOT]
        self._instance = instance
        self._waiting: asyncio.Queue[Event] = asyncio.Queue(_MOST_WAITING)
        self._silent_until = 0.0
        """Event loop time: the robot has refused an Event shortly before."""
        engine.recorder.listeners.append(self._note)

    async def run(self) -> None:
        """Publish, forever."""
        while True:
            await self._publish(await self._waiting.get())
            await asyncio.sleep(_BETWEEN_SECONDS)

    def _note(self, event: Event) -> None:
        if reason_of(event.fact) is not None and not self._waiting.full():
            self._waiting.put_nowait(event)

    async def _publish(self, event: Event) -> None:
        loop = asyncio.get_running_loop()
        try:
            regarding = self._regarding(event)
            if regarding is None or not self._connection.up.is_set() or loop.time() < self._silent_until:
                log.debug("no Event is written on the robot: %s", event.fact)
                return
            create, count = create_event(event, regarding, instance=self._instance), count_event(event, regarding)
            # An Event is gone an hour after its last change, and may be there from before a restart.
            for call in (create, count) if event.count == 1 else (count, create):
                reply = await self._connection.cluster.request(call)
                refusal = reply.error()
                if not isinstance(refusal, Conflict) or isinstance(refusal, NotServed):
                    break
        except SyncError as error:
            log.debug("no Event is written on the robot: %s", error)
            return
        if refusal is not None:
            log.debug("no Event is written on the robot: %s", reply.body.get("message") or reply.status)
            self._silent_until = loop.time() + _REFUSED_SECONDS

    def _regarding(self, event: Event) -> Regarding | None:
        """The object on the robot that a fact is about, or its kind's CRD; None: the kind is not synced any more.

        Raises Conflict where the object has no place on the robot.
        """
        key, entry = event.fact.key, self._kinds.entries.get(event.fact.resource)
        if entry is None:
            return None
        if key is None:
            return Regarding("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", event.fact.resource, entry.uid)
        if entry.kind is None:
            return None
        view = entry.kind.cache.views[Side.ROBOT].get(key)
        endpoint = entry.kind.policy.on_robot
        there, uid = entry.kind.cache.name_on(Side.ROBOT, key), "" if view is None else view.uid
        return Regarding(endpoint.api_version, endpoint.kind, there.namespace, there.name, uid)
