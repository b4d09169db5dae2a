"""One kind as it is configured: what `status` has a row for."""

import asyncio

from crsyncer.core.kind_policy import KindPolicy
from crsyncer.engine.kind import Kind
from crsyncer.engine.negotiation import Disagreement


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
        self.obstacle: tuple[str, str] | None = None
        """Why a kind without a CRD is not known: the state, and the sentence."""
        self.waits = False
        """Whether it waits until the SyncPolicies are known: there may be one for it."""
        self.kind: Kind | None = None
        self.error: Disagreement | None = Disagreement("misconfigured", policy.problem) if policy.problem else None
        """Why the kind is not synced."""
        self.task: asyncio.Task[None] | None = None
        self.confirmed = False
        """Whether the cloud still serves the negotiated version, by its latest answer."""
        self.wake = asyncio.Event()
