"""Brings statuses back: writes CombinedStatuses and singletons, and reads statuses that are not kept (F6.2, F7)."""

import asyncio
from collections.abc import Callable
from typing import assert_never

from crsyncer.core.model import Json, Key
from crsyncer.core.watching.queue import Priority
from crsyncer.core.watching.watch import newer
from crsyncer.errors import Never, NotAllowed, NotLeading, SyncError, Unsure
from crsyncer.fleet.controllers.own_objects import OwnObjects, try_again
from crsyncer.fleet.controllers.state import REFUSED_SECONDS, FleetState, Work
from crsyncer.fleet.domain import fleet_calls
from crsyncer.fleet.domain.change import Change, Input
from crsyncer.fleet.domain.fleet_calls import COLLECTORS, COMBINED, STRIPS, objects_of
from crsyncer.fleet.domain.names import SOURCE
from crsyncer.fleet.domain.returned.combined_objects import (
    STATUS_COLLECTORS,
    CombinedObjects,
    Drop,
    Put,
)
from crsyncer.fleet.domain.returned.due import Due
from crsyncer.fleet.domain.returned.evaluations import Evaluations
from crsyncer.fleet.domain.returned.singletons import Read, Record, Singletons
from crsyncer.fleet.domain.rollout.robot_states import Fault
from crsyncer.fleet.domain.rollout.tries import WriteTimes
from crsyncer.fleet.domain.transport.keys import ROOT, at, split
from crsyncer.fleet.domain.values import Blocked, Nothing, Patch, Placement, Reason, ReplicaKey, SourceKey, Wait
from crsyncer.runtime.dispatcher import Dispatcher, Job
from crsyncer.runtime.event_loop import give_way, in_parts
from crsyncer.runtime.list_objects import objects
from crsyncer.runtime.waits import chance

COMBINE, COPY, READ, TELL = "combine", "copy", "read", "tell"
"""The jobs: a CombinedStatus, the status of a singleton, the replicas of a source, the status of a StatusCollector."""
JOBS = (COMBINE, COPY, READ, TELL)
_PACE_SECONDS = 5.0
"""CombinedStatuses and the statuses of StatusCollectors are written at most so often (F6.3)."""
_SOON_SECONDS = 0.1
"""Changes are gathered for so long."""
_SLICE = 20
"""So many replicas are evaluated before everything else has its turn: some 3 ms."""
_ROBOTS = 500
"""So many robots are asked for a CombinedStatus before everything else has its turn: some 5 ms."""
_PAGE = 500


class StatusReturn:
    """One job for each object that is written or read.

    `ready_changed(placement, robot)` and `status_changed(placement)` are called where these have to be looked at again.
    """

    def __init__(
        self,
        state: FleetState,
        *,
        dispatcher: Dispatcher[Work],
        is_acked: Callable[[str, str], bool],
        is_online: Callable[[str], bool],
        ready_changed: Callable[[str, str], None],
        status_changed: Callable[[str], None],
    ) -> None:
        self.evaluations = Evaluations(
            state.fleet, expressions=state.settings.expressions, is_acked=is_acked, is_online=is_online
        )
        self.singletons = Singletons(state.fleet)
        self._combined = CombinedObjects(state.fleet, self.evaluations)
        self._state = state
        self._dispatcher = dispatcher
        self._ready_changed = ready_changed
        self._status_changed = status_changed
        self._own = OwnObjects(state)
        self._times: WriteTimes[Key | str] = WriteTimes()
        """Of each CombinedStatus, and of the statuses of StatusCollectors and FieldStrips."""
        self._collectors: dict[str, Json] = {}
        """uid, generation and status of each StatusCollector, as of its metadata."""
        self._strips: dict[str, Json] = {}
        """The same of each FieldStrip."""
        self._collectors_listed = False
        self._faults: dict[SourceKey, Fault] = {}
        self._stale = asyncio.Event()

    # Events

    def changed(self, change: Change) -> None:
        """The fleet has taken up an event."""
        self._take(self.evaluations.changed(change).add(self.singletons.changed(change)))

    def object_shown(self, resource: str, key: Key, raw: Json) -> None:
        """An object of a placed kind that the fleet has taken up."""
        replica = self._state.fleet.replica_at(resource, key)
        if replica is not None:
            self._replica_shown(replica, raw)
        elif split(resource)[0] == ROOT:
            self._take(self.singletons.source_shown(raw, resource))

    def object_gone(self, resource: str, key: Key) -> None:
        """An object of a placed kind is gone."""
        self._take(self.singletons.source_gone(SourceKey(resource, *key)))

    def robot_changed(self, robot: str) -> None:
        """A Robot, its properties or its report changed."""
        self.evaluations.robot_changed(robot)
        self._take(Due())

    def acked_changed(self, placement: str, robot: str) -> None:
        """Whether a robot has applied what a placement has written for it changed."""
        self.evaluations.acked_changed(placement, robot)
        self._take(Due())

    def collector_shown(self, key: Key, raw: Json) -> None:
        """A StatusCollector was added or changed."""
        metadata = raw["metadata"]
        old = self._collectors.get(key.name)
        self._collectors[key.name] = _of_status(raw)
        if old is None or (old["uid"], old["generation"]) != (metadata["uid"], metadata.get("generation") or 0):
            self._take(self.evaluations.collector_shown(raw))
            self._all_changed()
        self._dispatcher.later(Job(COLLECTORS.resource, TELL, key.name), _SOON_SECONDS)

    def collector_gone(self, key: Key) -> None:
        """A StatusCollector is gone."""
        del self._collectors[key.name]
        self._take(self.evaluations.collector_gone(key.name))
        self._all_changed()

    def strip_shown(self, key: Key, raw: Json) -> None:
        """A FieldStrip was added or changed: others of its kind may have to warn, too."""
        self._strips[key.name] = _of_status(raw)
        self._tell_strips()

    def strip_gone(self, name: str) -> None:
        """A FieldStrip is gone."""
        self._strips.pop(name, None)
        self._tell_strips()

    def _tell_strips(self) -> None:
        for name in self._strips:
            self._dispatcher.later(Job(STRIPS.resource, TELL, name), _SOON_SECONDS)

    def collectors_listed(self) -> None:
        """StatusCollectors are listed."""
        self._collectors_listed = True
        self.listed(STATUS_COLLECTORS)
        self._all_changed()

    def combined_shown(self, key: Key, raw: Json) -> None:
        """A CombinedStatus was added or changed, by us or by somebody else."""
        if self._own.seen(key, raw["metadata"]):
            self._take(self._combined.shown(raw))

    def combined_gone(self, key: Key) -> None:
        """A CombinedStatus is gone."""
        self._own.gone(key)
        self._times.forget(key)
        self._take(self._combined.gone(*key))

    def rewound(self) -> None:
        """The cloud was restored or is another one: the CombinedStatuses that it shows count, however old they are."""
        self._own.rewound()

    def listed(self, name: str) -> None:
        """An input, a kind or the like is listed."""
        self._take(self._combined.listed(name).add(self.singletons.listed()))

    def collected(self, placement: str) -> tuple[bool, str, str] | None:
        """The condition `Collected`: status, reason and message; None: there is none, or it is not known."""
        return self.evaluations.collected(placement) if self._collectors_listed else None

    def faults(self, placement: Placement) -> list[Fault]:
        """The sources of a Singleton placement whose status is refused."""
        sources = self._state.fleet.index.sources_of(placement.text) if placement.singleton else ()
        return [self._faults[each] for each in sources if each in self._faults]

    def _all_changed(self) -> None:
        for text, placement in self._state.fleet.index.placements.items():
            if placement.collectors:
                self._status_changed(text)

    def _replica_shown(self, key: ReplicaKey, raw: Json) -> None:
        self._take(self.singletons.replica_shown(key, raw).add(self.evaluations.replica_shown(key, raw)))

    def _take(self, due: Due) -> None:
        for text, robot in due.ready:
            self._ready_changed(text, robot)
        for key in due.combined:
            self._dispatcher.later(Job(COMBINED.resource, COMBINE, key), _SOON_SECONDS)
        for source in due.singletons:
            self._dispatcher.add(Job(source.resource, COPY, source), Priority.FINAL_STATUS)
        for replica in due.read:
            self._read_soon(replica)
        if self.evaluations.is_stale:
            self._stale.set()

    def _read_soon(self, key: ReplicaKey) -> None:
        self._dispatcher.later(Job(key.resource, READ, key.source_id), _SOON_SECONDS)

    # Work

    async def run(self) -> None:
        """Evaluate what is stale, forever."""
        while True:
            await self._stale.wait()
            self._stale.clear()
            self._take(self.evaluations.evaluate_stale(_SLICE))
            await give_way()

    async def write(self, job: Job[Work]) -> None:
        """Do one job."""
        try:
            if isinstance(job.key, Key):
                await self._combine(job, job.key)
            elif isinstance(job.key, SourceKey):
                await self._copy(job.key)
            elif job.work == READ:
                await self._read(job.resource, str(job.key))
            else:
                await self._tell(job, str(job.key))
        except NotLeading:
            return
        except Never:
            self._dispatcher.later(job, REFUSED_SECONDS)
            return
        except SyncError as error:
            try_again(self._dispatcher, job, error)
            return
        self._dispatcher.succeeded(job)

    def _is_time(self, job: Job[Work], what: Key | str) -> bool:
        """Whether an object may be written again; if not, the job comes back."""
        if left := self._times.left(what, self._state.now, pace=_PACE_SECONDS):
            self._dispatcher.later(job, left)
        return not left

    async def _combine(self, job: Job[Work], key: Key) -> None:
        if not self._is_time(job, key):
            return
        self._times.looked(key, self._state.now)  # a plan asks what every robot says
        match plan := await in_parts(self._combined.plan(key, most=_ROBOTS)):
            case Nothing() | Wait():
                return
            case Put(body):
                with self._times.trying(key, self._state.now, chance()):
                    await self._own.put(COMBINED, key, body)
                self._take(self._combined.shown(body))
            case Drop():
                await self._own.delete(COMBINED, key)
            case _:
                assert_never(plan)

    async def _copy(self, source: SourceKey) -> None:
        plan = self.singletons.plan(source)
        self._refuse(source, plan.message if isinstance(plan, Blocked) else "")
        match plan:
            case Nothing() | Wait() | Blocked():
                return
            case Record(text):
                self._status_changed(text)
            case Read(key):
                self.evaluations.unread.add(key)
                self._read_soon(key)
            case Patch(operations):
                kind = self._state.fleet.index.kinds[source.resource]
                path = fleet_calls.item(objects_of(kind), Key(source.namespace, source.name))
                call = fleet_calls.patch(f"{path}/status", list(operations))  # the answer says what is left of it
                try:
                    raw = await self._own.send(f"{source.resource}/status", call)
                except (Never, NotAllowed) as error:
                    self._refuse(source, str(error))
                    raise
                is_removal = operations[-1]["op"] == "remove"
                tell = self.singletons.removed if is_removal else self.singletons.source_shown
                self._take(tell(raw, source.resource))
                for text in self._state.fleet.index.placements_of(source) | self.singletons.listing(source):
                    self._status_changed(text)
            case _:
                assert_never(plan)

    def _refuse(self, source: SourceKey, message: str) -> None:
        """Note why the status of a source is refused; "": it is not."""
        old = self._faults.get(source)
        if (old.message if old is not None else "") == message:
            return
        if message:
            self._faults[source] = Fault("", source.text, Reason.REFUSED, message)
        else:
            del self._faults[source]
        for text in self._state.fleet.index.placements_of(source):
            self._status_changed(text)

    async def _tell(self, job: Job[Work], name: str) -> None:
        """Write the status of a StatusCollector or FieldStrip, where it differs."""
        is_strip = job.resource == STRIPS.resource
        collection, known = (STRIPS, self._strips) if is_strip else (COLLECTORS, self._collectors)
        if (found := known.get(name)) is None:
            return
        if not self._state.fleet.listed.issuperset(Input):
            self._dispatcher.later(job, _SOON_SECONDS)
            return
        field, texts = (
            ("warnings", self._state.fleet.strip_warnings(name))
            if is_strip
            else ("errors", list(self.evaluations.collector_errors(name)))
        )
        status = {"observedGeneration": found["generation"], field: texts}
        stored = {"observedGeneration": 0, field: [], **found["status"]}
        if stored != status and self._is_time(job, what := f"{job.resource}/{name}"):
            path = fleet_calls.item(collection, Key("", name))
            with self._times.trying(what, self._state.now, chance()):
                await self._own.send(collection.resource, fleet_calls.put_status(path, found["uid"], status))
            found["status"] = status

    async def _read(self, resource: str, identity: str) -> None:
        """Read the replicas of a source of which the status is needed and not kept. Raises SyncError."""
        problem: SyncError | None = None
        for shard in sorted({each.shard for each in self.evaluations.unread if each.source_id == identity}):
            try:
                await self._read_shard(shard, resource, identity)
            except SyncError as error:  # a shard that is away does not keep the others from being read
                problem = error
        if problem is not None:
            raise Unsure(f"not every status could be read: {problem}")  # asked again soon, whatever it was

    async def _read_shard(self, shard: str, resource: str, identity: str) -> None:
        connection, name = self._state.connection_to(shard), at(shard, resource)
        if not connection.up.is_set():
            raise Unsure(f"shard {shard} is {connection.state}")
        replicas = objects_of(self._state.fleet.index.kinds[name], selector=f"{SOURCE}={identity}")
        async for raw in objects(connection.request, replicas, page=_PAGE):
            self._show(name, raw)

    def _show(self, resource: str, raw: Json) -> None:
        """Show a replica that is unread, unless the watch has shown a newer one."""
        metadata = raw["metadata"]
        key = self._state.fleet.replica_at(resource, Key(metadata.get("namespace") or "", metadata["name"]))
        if key in self.evaluations.unread and not newer(
            self._state.fleet.rows[key].resource_version, metadata["resourceVersion"]
        ):
            self._replica_shown(key, raw)


def _of_status(raw: Json) -> Json:
    """What is needed of an object to write its status."""
    metadata = raw["metadata"]
    return {"uid": metadata["uid"], "generation": metadata.get("generation") or 0, "status": raw.get("status") or {}}
