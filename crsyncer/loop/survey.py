"""What `status` shows, gathered from where it is known (interface: crsyncer.status/v1)."""

from collections.abc import Mapping
from dataclasses import replace
from heapq import nsmallest

from crsyncer.core.guard import HeldGroup, Holds
from crsyncer.core.model import Side
from crsyncer.core.report import HoldFacts, KindFacts, OutboxFacts, SideFacts
from crsyncer.loop.catalog import Row
from crsyncer.loop.custody import DELETION_HOLDS
from crsyncer.loop.dispatch import Dispatcher
from crsyncer.loop.listwatch import Phase
from crsyncer.loop.pair import Pair
from crsyncer.loop.side import SideLink, SideState
from crsyncer.loop.sink import Coverage
from crsyncer.loop.worker import CONTENT

_NAMES = 50


def side_facts(link: SideLink) -> SideFacts:
    """One side's connection."""
    return SideFacts(
        state=link.state,
        since=link.since,
        server=link.cluster.server,
        last_ok=link.last_ok,
        identity=link.identity,
        reconnects=link.reconnects,
        error=link.error,
        hint=link.hint,
        clock_offset=link.cluster.clock_offset,
    )


def outbox_facts(rows: Mapping[str, Row]) -> OutboxFacts:
    """All that waits for upstream, and all that was refused for good."""
    pairs = [row.pair for row in rows.values() if row.pair is not None]
    waiting = [pending for pair in pairs for pending in pair.mirror.pending.values()]
    return OutboxFacts(
        depth=len(waiting),
        oldest=min((row.since for row in waiting), default=None),
        dead_letters=sum(row.dead for row in waiting) + sum(len(pair.worker.refused) for pair in pairs),
    )


def hold_facts(holds: Holds, links: Mapping[Side, SideLink]) -> list[HoldFacts]:
    """All that waits for a human."""
    facts = [group_facts(group) for group in holds.groups()]
    for side, link in links.items():
        if link.state is SideState.IDENTITY_CHANGED:
            facts.append(HoldFacts(str(side), "", "IdentityChanged", 0, link.since, link.hint, link.error or ""))
    return facts


def group_facts(group: HeldGroup) -> HoldFacts:
    """One hold."""
    names = tuple(map(str, nsmallest(_NAMES, group.keys)))
    return HoldFacts(
        group.id, group.resource, group.reason, len(group.keys), group.since, group.hint, group.message, names
    )


def kind_facts(
    row: Row, *, links: Mapping[Side, SideLink], dispatchers: Mapping[Side, Dispatcher], holds: Holds
) -> KindFacts:
    """One annotated CRD."""
    policy, pair = row.policy, row.pair
    groups = holds.groups(policy.resource)
    deletions_held = any(g.keys and g.reason in DELETION_HOLDS for g in groups)
    state, message = _state(row, links, deletions_held=deletions_held)
    if message is None and groups:
        message = groups[0].message
    facts = KindFacts(
        resource=policy.resource,
        version=pair.policy.version if pair is not None else None,
        scope="Namespaced" if policy.namespaced else "Cluster",
        spec_source=row.source,
        state=state,
        filtered=policy.filtered,
        subtree=policy.subtree,
        message=message,
        held=sum(len(g.keys) for g in groups),
    )
    return facts if pair is None else _with_counts(facts, pair, dispatchers)


def _with_counts(facts: KindFacts, pair: Pair, dispatchers: Mapping[Side, Dispatcher]) -> KindFacts:
    mirror = pair.mirror
    for side in Side:
        watches = pair.on(side)
        versions = [cursor for r in watches if (cursor := r.cursor()) is not None]
        known = bool(versions) or mirror.coverage(side, "") is not Coverage.NONE
        facts.objects[side] = sum(r.known() for r in watches) if known else None
        facts.cursor[side] = ",".join(versions) or None
        facts.relists[side] = sum(r.relists for r in watches)
        facts.resumes[side] = sum(r.resumes for r in watches)
    # What was refused for good waits for somebody, and is counted as that.
    waiting = dispatchers[pair.policy.downstream].waiting(pair.policy.resource, CONTENT, but=pair.worker.refused)
    return replace(facts, pending_spec=waiting, pending_status=len(mirror.pending))


def _state(row: Row, links: Mapping[Side, SideLink], *, deletions_held: bool) -> tuple[str, str | None]:
    if row.trouble is not None:
        return row.trouble.state, row.trouble.message
    if row.pair is None:
        return "waiting", "starting"
    watches = [r.listwatch for r in row.pair.reflectors]
    by_phase = {watch.phase: watch.message for watch in reversed(watches)}
    if Phase.MISSING in by_phase:
        return "kind-missing", by_phase[Phase.MISSING]
    if row.pair.kind_missing:
        return "kind-missing", f"the {row.policy.upstream} does not serve the kind any more, or is about to delete it"
    if Phase.FORBIDDEN in by_phase:
        return "forbidden", by_phase[Phase.FORBIDDEN]
    if row.pair.worker.denied:
        return "forbidden", next(iter(row.pair.worker.denied.values()))
    if deletions_held:
        return "held", None
    for side, link in links.items():
        if link.state is not SideState.CONNECTED:
            return "waiting", f"the {side} is {link.state}"
    if Phase.LISTING in by_phase:
        return "listing", None
    if Phase.WAITING in by_phase:
        return "waiting", by_phase[Phase.WAITING] or None
    return "syncing", None
