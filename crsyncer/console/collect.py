"""Collects the facts of the status report from the running agent."""

from collections.abc import Mapping
from dataclasses import replace
from heapq import nsmallest

from crsyncer.console.report import HoldFacts, KindFacts, OutboxFacts, SideFacts
from crsyncer.core.holds import DELETION_HOLDS, HeldGroup, Holds
from crsyncer.core.model import Freshness, Side
from crsyncer.engine.kind import Kind
from crsyncer.engine.kinds import KindEntry
from crsyncer.engine.outcomes import CONTENT
from crsyncer.runtime.connection import Connection, ConnectionState
from crsyncer.runtime.dispatcher import Dispatcher
from crsyncer.runtime.listwatch import Phase

_NAMES = 50


def side_facts(connection: Connection) -> SideFacts:
    """One side's connection."""
    return SideFacts(
        state=connection.state,
        since=connection.since,
        server=connection.cluster.server,
        last_ok=connection.last_ok,
        identity=connection.identity.strongest,
        reconnects=connection.reconnects,
        error=connection.error,
        hint=connection.hint,
        clock_offset=connection.cluster.clock_offset,
    )


def outbox_facts(rows: Mapping[str, KindEntry]) -> OutboxFacts:
    """The statuses that wait for upstream, and all dead letters."""
    kinds = [row.kind for row in rows.values() if row.kind is not None]
    waiting = [pending for kind in kinds for pending in kind.cache.pending.values()]
    return OutboxFacts(
        depth=len(waiting),
        oldest=min((row.since for row in waiting), default=None),
        dead_letters=sum(row.dead for row in waiting) + sum(len(kind.reconciler.outcomes.rejected) for kind in kinds),
    )


def hold_facts(holds: Holds, connections: Mapping[Side, Connection]) -> list[HoldFacts]:
    """All holds."""
    facts = [group_facts(group) for group in holds.groups()]
    for side, connection in connections.items():
        if connection.state is ConnectionState.IDENTITY_CHANGED:
            facts.append(
                HoldFacts(
                    str(side), "", "IdentityChanged", 0, connection.since, connection.hint, connection.error or ""
                )
            )
    return facts


def group_facts(group: HeldGroup) -> HoldFacts:
    """One hold."""
    names = tuple(map(str, nsmallest(_NAMES, group.keys)))
    return HoldFacts(
        group.id, group.resource, group.reason, len(group.keys), group.since, group.hint, group.message, names
    )


def kind_facts(
    row: KindEntry,
    *,
    connections: Mapping[Side, Connection],
    dispatchers: Mapping[Side, Dispatcher],
    holds: Holds,
    now: float,
) -> KindFacts:
    """One annotated CRD; `now` is event loop time, in seconds."""
    policy, kind = row.policy, row.kind
    groups = holds.groups(policy.resource)
    deletions_held = any(g.keys and g.reason in DELETION_HOLDS for g in groups)
    state, message = _state(row, connections, deletions_held=deletions_held)
    if message is None and groups:
        message = groups[0].message
    facts = KindFacts(
        resource=policy.resource,
        version=kind.policy.version if kind is not None else None,
        scope="Namespaced" if policy.namespaced else "Cluster",
        spec_source=row.source,
        state=state,
        filtered=policy.filtered,
        subtree=policy.subtree,
        message=message,
        held=sum(len(g.keys) for g in groups),
        aliases=policy.aliases,
    )
    return facts if kind is None else _with_counts(facts, kind, dispatchers, now)


def _with_counts(facts: KindFacts, kind: Kind, dispatchers: Mapping[Side, Dispatcher], now: float) -> KindFacts:
    cache = kind.cache
    for side in Side:
        watches = kind.on(side)
        versions = [cursor for r in watches if (cursor := r.state.cursor()) is not None]
        known = bool(versions) or cache.freshness(side, "") is not Freshness.STORED
        facts.objects[side] = sum(r.state.count() for r in watches) if known else None
        facts.cursor[side] = ",".join(versions) or None
        facts.relists[side] = sum(r.state.relists for r in watches)
        facts.resumes[side] = sum(r.state.resumes for r in watches)
    # Content that was rejected permanently is a dead letter, and counted as that.
    waiting = dispatchers[kind.policy.downstream].waiting(
        kind.policy.resource, CONTENT, but=kind.reconciler.outcomes.rejected
    )
    return replace(
        facts, pending_spec=waiting, pending_status=len(cache.pending), pending_seconds=kind.pending_ages(now)
    )


def _state(row: KindEntry, connections: Mapping[Side, Connection], *, deletions_held: bool) -> tuple[str, str | None]:
    if row.error is not None:
        return row.error.state, row.error.message
    if row.kind is None:
        return "waiting", "starting"
    watches = [r.listwatch for r in row.kind.informers]
    by_phase = {watch.phase: watch.message for watch in reversed(watches)}
    if Phase.MISSING in by_phase:
        return "kind-missing", by_phase[Phase.MISSING]
    if row.kind.kind_missing:
        return "kind-missing", f"the {row.policy.upstream} no longer serves the kind, or is deleting its CRD"
    if Phase.FORBIDDEN in by_phase:
        return "forbidden", by_phase[Phase.FORBIDDEN]
    if row.kind.reconciler.outcomes.denied:
        return "forbidden", next(iter(row.kind.reconciler.outcomes.denied.values()))
    if deletions_held:
        return "held", None
    for side, connection in connections.items():
        if connection.state is not ConnectionState.CONNECTED:
            return "waiting", f"the {side} is {connection.state}"
    if Phase.LISTING in by_phase:
        return "listing", None
    if Phase.WAITING in by_phase:
        return "waiting", by_phase[Phase.WAITING] or None
    return "syncing", None
