"""One kind as it is configured: what `status` has a row for."""

import asyncio
from collections.abc import Callable, Iterable, Mapping

from crsyncer.agent_ports import Store
from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.model import Key, Pending, Side
from crsyncer.core.pair import object_calls
from crsyncer.core.reports.facts import KIND_RULES, Action, Fact
from crsyncer.core.requests import calls
from crsyncer.engine.kinds.kind import Kind
from crsyncer.engine.kinds.negotiation import Disagreement
from crsyncer.runtime.listwatch import Phase

_NOT_SERVED = (Phase.MISSING, Phase.FORBIDDEN)


class KindEntry:
    """One kind that is to be synced, as its CRD is annotated or by a SyncPolicy, valid or not.

    `uid` is that of its CRD, "" for a kind without one.
    """

    def __init__(self, policy: KindPolicy, generation: object, *, source: str, uid: str) -> None:
        self.policy = policy
        """As configured; `kind.policy` has the version that was agreed on."""
        self.uid = uid
        self.source = source
        """What is configured as spec-source, whatever it is."""
        self.generation = generation
        """Of the CRD: another schema may be behind another one."""
        self.policy_names: tuple[str, ...] = ()
        """The SyncPolicies for the kind."""
        self.obstacle: Disagreement | None = None
        """Why a kind without a CRD is not known."""
        self.waits = False
        """Whether it waits until the SyncPolicies are known: there may be one for it."""
        self.kind: Kind | None = None
        self.error: Disagreement | None = None
        """Why the kind is not synced."""
        if policy.problem:
            self.error = Disagreement("misconfigured", policy.problem, policy.rule)
        self.task: asyncio.Task[None] | None = None
        self.version_served = False
        """Whether the cloud still serves the negotiated version, by its latest answer."""
        self.answered = -1
        """How many reasons there were when the cloud was asked for its versions and answered; -1: never."""
        self.wake = asyncio.Event()
        self._stored: Mapping[Key, Pending] = {}
        """The statuses that wait in the store while the kind is not synced."""

    @property
    def pending(self) -> Mapping[Key, Pending]:
        """The statuses that wait for upstream; those of a kind that is not synced wait until it is again (S6.3)."""
        return self._stored if self.kind is None else self.kind.cache.pending

    async def read_pending(self, store: Store, report: Callable[[], None]) -> None:
        """Read which statuses wait while the kind is not synced."""
        self._stored = (await store.load(self.policy.resource, only_outbox=True)).pending
        report()

    @property
    def problem(self) -> str:
        """Why it is misconfigured, by itself or together with what the cloud serves; empty: it is not."""
        error = self.error
        return error.message if error is not None and error.state == "misconfigured" else self.policy.problem

    def refusal(self, error: Disagreement) -> Fact:
        """The report that the kind is not synced, and why."""
        rule = error.rule or KIND_RULES[error.state]
        return Fact(Side.ROBOT, self.policy.resource, None, Action.REFUSED, rule, error.message)

    def reasons(self) -> int:
        """How often something suggested that the cloud's CRD has changed; that CRD is not watched."""
        if self.kind is None:
            return 0
        reconciler, expiries = self.kind.reconciler, sum(each.state.expiries for each in self.kind.on(Side.CLOUD))
        if self.policy.upstream is Side.CLOUD:
            return expiries + reconciler.outbox.suspicions + self.kind.hold_driver.suspicions
        return expiries + reconciler.outcomes.suspicions

    def may_have_moved(self) -> bool:
        """Whether the cloud may serve upstream's objects in another version: it was not asked since they vanished.

        Its collection in the version that is spoken answers as one of a deleted kind does (404).
        """
        is_cloud, kind = self.policy.upstream is Side.CLOUD, self.kind
        unseen = kind is not None and kind.hold_driver.is_presumed_absent
        return is_cloud and unseen and self.reasons() > self.answered

    def is_missing(self) -> bool:
        """Whether the cloud does not serve the kind."""
        watches = self.kind.on(Side.CLOUD) if self.kind is not None else []
        return any(each.listwatch.phase is Phase.MISSING for each in watches)


def probe_calls(entries: Iterable[KindEntry], side: Side) -> list[calls.Call]:
    """The requests of a probe: the lists of kinds that were listed, then one that every client may send.

    Kinds that were missing or forbidden are asked for only where there are no others: one may be back by now.
    """
    running = [entry.kind for entry in entries if entry.kind is not None]
    known = [kind for kind in running if all(each.was_listed for each in kind.on(side))]
    well = [kind for kind in known if all(each.listwatch.phase not in _NOT_SERVED for each in kind.on(side))]
    lists = [object_calls.revision(kind.policy, side) for kind in well or known]
    return [*lists, calls.VERSION if side is Side.CLOUD else calls.CRD_REVISION]
