"""The parts of the engine that all kinds share."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from crsyncer.agent_ports import EngineObserver, SecretStore, Store
from crsyncer.core.content.mutation import Expressions
from crsyncer.core.holds.hold_list import HeldGroup, Holds
from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.model import Key, Side
from crsyncer.core.pair.actions import Hold
from crsyncer.core.pair.other_agents import DuplicateAgents
from crsyncer.engine.pairs.own_statuses import StatusPlace
from crsyncer.engine.reporting.recorder import Recorder
from crsyncer.runtime.connection import Connection
from crsyncer.runtime.dispatcher import Dispatcher

ISSUED = "holds-issued"
"""The name under which the store keeps the number of holds so far."""


@dataclass(frozen=True, slots=True)
class EngineContext:
    """What all kinds share. `clock` is Unix time in seconds, `watch_timeout` a watch's length in seconds,
    `audit_interval` the seconds between two audits of a kind, more or less. `expressions` is called for policies with
    steps, `trust` is what SyncPolicies that are copies may ask for (C1.6).
    `vault` is the store that has bodies in memory only, the same one at each call, and `digest_key` is the key of their
    digests (C5.6).
    """

    connections: dict[Side, Connection]
    dispatchers: dict[Side, Dispatcher[Key]]
    store: Store
    observer: EngineObserver
    holds: Holds
    other_agents: DuplicateAgents
    recorder: Recorder
    clock: Callable[[], float]
    watch_timeout: int
    audit_interval: float
    report_changed: Callable[[], None]
    expressions: Callable[[], Expressions]
    trust: tuple[str, ...]
    vault: Callable[[], SecretStore]
    digest_key: Callable[[], bytes]
    status_place: StatusPlace

    def save_issued(self) -> None:
        """A hold may be new: its id is never given to another one."""
        if self.store.get_meta(ISSUED) != self.holds.issued:
            self.store.put_meta(ISSUED, self.holds.issued)

    def hold_kind(self, resource: str, hold: Hold, *, since: float, hold_id: str) -> HeldGroup:
        """Hold back a kind, or its CRD, under the id ("": a new one) and since when it was held before a restart."""
        group = self.holds.add_kind(resource, hold, now=since, hold_id=hold_id)
        self.save_issued()
        return group

    def storing(self, policy: KindPolicy) -> "EngineContext":
        """The same with the store for the objects of a kind: that of Secrets is in memory only (C5.6)."""
        return replace(self, store=self.vault()) if policy.sensitive else self

    def forget_bodies(self, former: KindPolicy, policies: Iterable[KindPolicy]) -> None:
        """Have no body in memory of a kind that is no Secret by any of the present policies any more (C5.6)."""
        if former.sensitive and not any(each.sensitive and each.resource == former.resource for each in policies):
            self.vault().forget_bodies(former.resource)

    def identified(self, policy: KindPolicy) -> KindPolicy:
        """The policy with what copies say of upstream's cluster: its identity where they have marks, and its path.

        The steps of the policy may use the identity, too.
        """
        upstream = self.connections[policy.upstream]
        if upstream.identity.is_logical:
            policy = replace(policy, shape=replace(policy.shape, path=lambda: upstream.identity.path))
        if policy.shape.marks is None:
            return policy
        shape = replace(policy.shape, identity=upstream.cluster_identity or "")
        return replace(policy, shape=shape, digest_key=self.digest_key() if policy.sensitive else b"")
