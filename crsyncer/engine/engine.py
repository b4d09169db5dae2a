"""The two-cluster engine, put together: connections, dispatchers and the kinds that are synced."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from crsyncer.agent_ports import EngineObserver, SecretStore, Store
from crsyncer.core.accounts.robot_account import is_robot_name
from crsyncer.core.content.mutation import Expressions
from crsyncer.core.holds.hold_list import Holds
from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.kinds.namespaces import Namespaces
from crsyncer.core.model import Key, Side
from crsyncer.core.pair.object_calls import first_object
from crsyncer.core.pair.other_agents import DuplicateAgents
from crsyncer.core.reports.robot_report import report_place
from crsyncer.core.requests.calls import Call
from crsyncer.engine.context import ISSUED, EngineContext
from crsyncer.engine.kinds.account_check import AccountCheck
from crsyncer.engine.kinds.kind_entry import probe_calls
from crsyncer.engine.kinds.kinds import Kinds
from crsyncer.engine.pairs.own_statuses import StatusPlace
from crsyncer.engine.reporting.recorder import Recorder
from crsyncer.ports import Cluster
from crsyncer.runtime.connection import Connection
from crsyncer.runtime.dispatcher import Dispatcher


class Engine:
    """The whole engine of one agent. It works the same with real clusters and with simulated ones.

    `clock` is Unix time in seconds, `watch_timeout` and `audit_interval` are in seconds. `report_changed` is called
    when there is news for `status`. `boot` names this boot of the robot, "" where it is not known; `name` is the
    agent's, as API servers note it. With `require_confinement` the cloud is not used by an account that may do too
    much. `expressions` is called for policies with steps, `trust` is what SyncPolicies that are copies may ask for.
    `vault` and `digest_key` are as of EngineContext, `report_namespace` is as of RobotReporter.
    """

    def __init__(
        self,
        clusters: Mapping[Side, Cluster],
        *,
        store: Store,
        observer: EngineObserver,
        robot: str,
        namespaces: Namespaces,
        watch_timeout: int,
        audit_interval: float,
        clock: Callable[[], float],
        report_changed: Callable[[], None],
        expressions: Callable[[], Expressions],
        vault: Callable[[], SecretStore],
        digest_key: Callable[[], bytes],
        trust: tuple[str, ...] = (),
        boot: str = "",
        name: str = "crsyncer",
        require_confinement: bool = False,
        report_namespace: str | None = "default",
    ) -> None:
        self.holds = Holds(store.get_meta(ISSUED) or 0)
        self.other_agents = DuplicateAgents(name)
        self.recorder = Recorder(store, clock=clock)
        self.confinement = AccountCheck(self._policies, robot=robot, namespaces=namespaces.on(Side.CLOUD))
        self._require_confinement = require_confinement
        self.connections = {
            side: Connection(
                side,
                cluster=clusters[side],
                store=store,
                observer=observer,
                probe_calls=partial(self._probe_calls, side),
                crds=partial(self._crds, side),
                clock=clock,
                boot=boot if side is Side.ROBOT else "",
                admit=self.confinement.check if require_confinement and side is Side.CLOUD else None,
                or_accept=f", or accept the new cluster with: crsyncer holds release {side}",
            )
            for side in Side
        }
        self.dispatchers: dict[Side, Dispatcher[Key]] = {
            side: Dispatcher(connection, lambda job: self.kinds.start(job))
            for side, connection in self.connections.items()
        }
        self.context = EngineContext(
            connections=self.connections,
            dispatchers=self.dispatchers,
            store=store,
            observer=observer,
            holds=self.holds,
            other_agents=self.other_agents,
            recorder=self.recorder,
            clock=clock,
            watch_timeout=watch_timeout,
            audit_interval=audit_interval,
            report_changed=report_changed,
            expressions=expressions,
            trust=trust,
            vault=vault,
            digest_key=digest_key,
            status_place=StatusPlace(
                self.connections[Side.CLOUD],
                report_place(robot, namespaces, report_namespace),
                is_named=is_robot_name(robot),
            ),
        )
        self.kinds = Kinds(self.context, robot=robot, namespaces=namespaces)

    async def run(self) -> None:
        """Keep both sides in agreement, forever."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self.kinds.run())
                for side in Side:
                    tasks.create_task(self.connections[side].run())
                    tasks.create_task(self.dispatchers[side].run())
                if self._require_confinement:
                    tasks.create_task(self.confinement.keep(self.connections[Side.CLOUD]))
        finally:
            self.recorder.save()

    def refresh_credentials(self) -> None:
        """Credentials, and with them what they may do, can have changed: read them again, and wait no longer."""
        self.confinement.expire()
        for connection in self.connections.values():
            connection.cluster.refresh_credentials()
            connection.retry_now()

    def _probe_calls(self, side: Side) -> Sequence[Call]:
        return probe_calls(self.kinds.entries.values(), side)

    def _policies(self) -> Iterable[KindPolicy]:
        return (row.policy for row in self.kinds.entries.values() if not row.policy.problem)

    def _crds(self, side: Side) -> Mapping[str, Call | None]:
        """The CRDs of a side by name, each with a list of one of its objects, once its version is agreed on."""
        return {
            entry.policy.endpoint(side).resource: None if entry.kind is None else first_object(entry.kind.policy, side)
            for entry in self.kinds.entries.values()
            if entry.uid
        }
