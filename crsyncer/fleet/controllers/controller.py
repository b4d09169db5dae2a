"""One process of the fleet controller: it stands by, leads, and ends when it does not lead any more (F1)."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import cast

from crsyncer.core.requests import calls
from crsyncer.core.requests.calls import Call
from crsyncer.fleet.controllers.inputs import Inputs
from crsyncer.fleet.controllers.intake import Intake
from crsyncer.fleet.controllers.leader import Leader
from crsyncer.fleet.controllers.placements import WORK as OWN
from crsyncer.fleet.controllers.placements import Placements
from crsyncer.fleet.controllers.replica_queue import Replicas
from crsyncer.fleet.controllers.state import ControllerSettings, FleetObserver, FleetState, Work
from crsyncer.fleet.controllers.status_return import JOBS, StatusReturn
from crsyncer.fleet.domain.change import Input
from crsyncer.fleet.domain.lease import REFUSED, UNLISTED
from crsyncer.fleet.domain.resolution import all_listed
from crsyncer.fleet.domain.rollout.reports import Report
from crsyncer.fleet.domain.shown.fleet_facts import FleetFacts
from crsyncer.fleet.domain.shown.fleet_facts import Leader as LeaderFact
from crsyncer.fleet.domain.transport.keys import ROOT
from crsyncer.fleet.domain.values import ReplicaKey
from crsyncer.ports import Cluster, MetaStore
from crsyncer.runtime.connection import Connection
from crsyncer.runtime.dispatcher import Dispatcher, Job


class FleetController:
    """Keeps the replicas of all placements as they shall be, while it leads.

    `cluster` is the root, with Robots, placements and sources; `shards` are the API servers beside it, by name.
    `identity` is this process' own in the Lease. `clock` is Unix time in seconds. `store` need not outlive the process.
    """

    def __init__(
        self,
        cluster: Cluster,
        *,
        settings: ControllerSettings,
        store: MetaStore,
        observer: FleetObserver,
        clock: Callable[[], float],
        identity: str,
        shards: Mapping[str, Cluster] = MappingProxyType({}),
    ) -> None:
        self._settings = settings
        self._observer = observer
        self._clock = clock
        self._cluster = cluster
        self._store = store
        self.connection = self._connect(ROOT, cluster)
        self.shards = {name: self._connect(name, each) for name, each in shards.items()}
        self.leader = Leader(
            self.connection, namespace=settings.namespace, identity=identity, annotations=self._annotations, clock=clock
        )
        self.leading: Leading | None = None
        """What there is of it while this process leads."""

    async def run(self) -> None:
        """Stand by, then lead, forever. Raises NotLeading, in a group, when the Lease is lost."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.connection.run())
            await self.leader.acquire()
            state = FleetState(self._settings, self.connection, self._observer, self._server_clock, self.shards)
            self.leading = Leading(state)
            tasks.create_task(self.leader.keep())
            tasks.create_task(self.leading.run())

    def _connect(self, shard: str, cluster: Cluster) -> Connection:
        return Connection(
            shard,
            cluster=cluster,
            store=self._store,
            observer=self._observer,
            probe_calls=lambda: self._probe_calls(shard),
            crds=dict,
            clock=self._clock,
            gate=lambda call: self.leader.check(call),
        )

    def unready(self) -> str | None:
        """Why a leader does not know all inputs yet; None: it does, or this process stands by."""
        missing = self._unlisted()
        return f"not listed yet: {missing}" if missing else None

    def facts(self) -> FleetFacts | None:
        """The fleet as the leader knows it, for its page and metrics; None: this process stands by."""
        if self.leading is None:
            return None
        fleet, placements, now = self.leading.state.fleet, self.leading.placements, self._server_clock()
        return FleetFacts(
            placements=list(fleet.index.placements.values()),
            robots=fleet.index.robots,
            decisions=placements.decisions(),
            leader=LeaderFact(
                self.leader.holder,
                now if self.leader.leads else None,
                unlisted=self._unlisted(),
                refused=self.leading.state.refusals(),
            ),
            now=now,
            reports={name: placements.reports.robots.of(name) for name in fleet.index.robots},
            dead=self.leading.inputs[ROOT].missing(),
            edited=placements.edited,
            away={name: each.error or str(each.state) for name, each in self.shards.items() if not each.up.is_set()},
        )

    async def release(self) -> None:
        """Give the Lease back, after `run` has ended."""
        await self.leader.release()

    def _unlisted(self) -> str:
        return "" if self.leading is None else self.leading.unlisted()

    def _annotations(self) -> Mapping[str, str]:
        return {} if self.leading is None else {UNLISTED: self._unlisted(), REFUSED: self.leading.state.refusals()}

    def _server_clock(self) -> float:
        return self._clock() + (self._cluster.clock_offset or 0.0)

    def _probe_calls(self, shard: str) -> Sequence[Call]:
        return [calls.VERSION] if self.leading is None else self.leading.inputs[shard].probes()


class Leading:
    """The controllers of a leader, put together."""

    def __init__(self, state: FleetState) -> None:
        self.state = state
        shards = (ROOT, *state.shards)
        self.dispatchers: dict[str, Dispatcher[Work]] = {
            shard: Dispatcher(state.connection_to(shard), self._start, lane=self._lane) for shard in shards
        }
        dispatcher = self.dispatchers[ROOT]
        self.placements = Placements(state, dispatcher=dispatcher)
        self.replicas = Replicas(
            state,
            dispatchers=self.dispatchers,
            may_write=self.placements.may_write,
            totals_changed=self.placements.total_changed,
            ask=lambda names: self.intake.ask(names),
            answers=lambda: self.intake,
        )
        self.returned = StatusReturn(
            state,
            dispatcher=dispatcher,
            is_acked=self.placements.is_acked,
            is_online=lambda robot: self.placements.reports.robots.of(robot).report is Report.ONLINE,
            ready_changed=self.placements.total_changed,
            status_changed=lambda text: self.placements.touch([text]),
        )
        self.intake = Intake(state, replicas=self.replicas, placements=self.placements, returned=self.returned)
        self.placements.attach(self.replicas, self.intake.liveness, self.returned)
        root = Inputs(state, self.intake)
        self.inputs = {ROOT: root} | {shard: Inputs(state, self.intake, shard, root) for shard in state.shards}
        """By shard."""
        self._tasks = asyncio.TaskGroup()

    async def run(self) -> None:
        """Watch, look and write, forever."""
        async with self._tasks as tasks:
            for connection in self.state.shards.values():
                tasks.create_task(connection.run())
            for inputs in self.inputs.values():
                tasks.create_task(inputs.run())
            for dispatcher in self.dispatchers.values():
                tasks.create_task(dispatcher.run())
            tasks.create_task(self.replicas.run())
            tasks.create_task(self.placements.reports.run())
            tasks.create_task(self.returned.run())

    def unlisted(self) -> str:
        """The inputs that are not listed yet, separated by commas."""
        return ", ".join(sorted(set(Input) - self.state.fleet.listed))

    def settled_rows(self) -> int:
        """How many replicas are known, once everything is listed and each was looked at; until then 0."""
        if self.unlisted() or not all_listed(self.state.fleet) or not self.replicas.is_idle():
            return 0
        return len(self.state.fleet.rows)

    def _start(self, job: Job[Work]) -> asyncio.Task[None]:
        if job.work == OWN:
            return self._tasks.create_task(self.placements.write(job))
        if job.work in JOBS:
            return self._tasks.create_task(self.returned.write(job))
        return self._tasks.create_task(self.replicas.write(job))

    def _lane(self, job: Job[Work]) -> str:
        if job.work in JOBS:
            return job.work
        return "" if job.work == OWN else self.replicas.lane(cast(ReplicaKey, job.key))
