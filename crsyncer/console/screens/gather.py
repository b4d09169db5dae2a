"""Gathers the status document of a running agent from its engine."""

from collections.abc import Collection, Mapping
from operator import itemgetter

from crsyncer import __version__
from crsyncer.console.screens.reasons import hold_hint, with_health
from crsyncer.console.screens.report import SCHEMA, bare_kind, hold_row, outbox_row, writes_row
from crsyncer.console.screens.stopped import (
    former_copy_rows,
    former_name_rows,
    missing_rows,
    stopped_rows,
    unknown_annotation_rows,
)
from crsyncer.core.holds.hold_list import DELETION_HOLDS
from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.model import Freshness, Json, Side
from crsyncer.core.reports.facts import KIND_RULES
from crsyncer.core.reports.text import rfc3339
from crsyncer.engine.context import EngineContext
from crsyncer.engine.engine import Engine
from crsyncer.engine.kinds.catalog import Catalog
from crsyncer.engine.kinds.kind import Kind
from crsyncer.engine.kinds.kind_entry import KindEntry
from crsyncer.engine.kinds.kinds import Kinds
from crsyncer.engine.pairs.outcomes import CONTENT
from crsyncer.runtime.connection import Connection, ConnectionState
from crsyncer.runtime.listwatch import Phase

_MASS_DELETION_SECONDS = 3600.0


def gather(
    engine: Engine,
    *,
    robot: str,
    pid: int,
    since: float,
    store: Json,
    loop_time: float,
    store_message: str | None = None,
    writes: Mapping[Side, Mapping[str, int]] | None = None,
    config_error: str | None = None,
    tls_unverified: Collection[Side] = (),
) -> Json:
    """The status document. `since` is Unix time, `loop_time` that of the event loop, both in seconds.

    `store` is its row, `store_message` the reason why the disk fails, `config_error` the reason why the newest
    configuration is not used. `tls_unverified` are the sides whose server's certificate is not verified, by the setting
    insecureSkipTlsVerify.
    """
    context, rows = engine.context, engine.kinds.entries
    now = context.clock()
    kinds = [row.kind for row in rows.values() if row.kind is not None]
    other_clusters = [each for each in engine.connections.values() if each.state is ConnectionState.IDENTITY_CHANGED]
    content: Json = {
        "schema": SCHEMA,
        "version": __version__,
        "robot": robot,
        "agent": {"state": "running", "pid": pid, "since": rfc3339(since)},
        "health": "",
        "reasons": [],
        "sides": {side.value: _side_row(connection) for side, connection in engine.connections.items()},
        "kinds": sorted(kind_rows(engine.kinds, context).values(), key=itemgetter("resource")),
        "stoppedKinds": [*stopped_rows(engine.kinds)],
        "formerNames": [*former_name_rows(engine.kinds)],
        "formerCopies": [*former_copy_rows(engine.kinds)],
        "unknownAnnotations": [*unknown_annotation_rows(engine.kinds)],
        "policies": policy_rows(engine.kinds.catalog),
        "outbox": outbox_row(
            (waiting for row in rows.values() for waiting in row.pending.values()),
            now,
            rejected=sum(kind.reconciler.outcomes.dead for kind in kinds),
        ),
        "holds": [*map(hold_row, engine.holds.groups()), *map(_identity_hold, other_clusters)],
        "writes": writes_row(writes or {}),
        "store": store,
    }
    return with_health(
        content,
        now=now,
        ready=engine.kinds.has_synced,
        config_error=config_error,
        tls_unverified=tls_unverified,
        store_message=store_message,
        duplicate=engine.other_agents.current(now),
        unreturned=(sum(len(kind.reconciler.outbox.unreturned()) for kind in kinds), context.status_place.refusal),
        overdue={kind.policy.resource: _overdue(kind) for kind in kinds},
        pending_seconds={kind.policy.resource: kind.pending_ages(loop_time) for kind in kinds},
    )


def _overdue(kind: Kind) -> int:
    """How many copies have outlived the grace period of their deletion (C6.4)."""
    copies = kind.cache.views[kind.policy.downstream]
    return sum(row.overdue and key in copies for key, row in kind.cache.finalizers.items())


def _side_row(connection: Connection) -> Json:
    offset = connection.cluster.clock_offset
    return {
        "state": connection.state.value,
        "since": rfc3339(connection.since),
        "lastOk": rfc3339(connection.last_ok),
        "server": connection.cluster.server,
        "identity": connection.identity.strongest,
        "reconnects": connection.reconnects,
        "error": connection.error,
        "hint": connection.hint or None,
        "clockOffsetSeconds": None if offset is None else round(offset),
    }


def _identity_hold(connection: Connection) -> Json:
    """The hold on a whole side that shows another cluster than before; it has the side's name as its id."""
    return {
        "id": connection.name,
        "resource": "",
        "reason": "IdentityChanged",
        "objects": 0,
        "since": rfc3339(connection.since),
        "hint": connection.hint or hold_hint("IdentityChanged", connection.name),
        "message": connection.error or "",
        "names": [],
    }


def policy_rows(catalog: Catalog) -> list[Json]:
    """Every SyncPolicy on the robot; its state is active or misconfigured."""
    return [
        {
            "name": name,
            "resource": resource,
            "state": "misconfigured" if problem else "active",
            "message": problem or None,
        }
        for name, resource, problem in catalog.rows()
    ]


def cloud_names(policy: KindPolicy) -> Json:
    """What the cloud calls a kind, and its scope there; None: as the robot does, for there is no projection (C7)."""
    if policy.projected is None:
        return {"cloudResource": None, "cloudScope": None}
    return {"cloudResource": policy.in_cloud.resource, "cloudScope": policy.in_cloud.scope}


def kind_rows(kinds: Kinds, context: EngineContext) -> dict[str, Json]:
    """The row of each kind that is synced, is to be, or was until its CRD was gone from the robot, by its name."""
    found = {name: kind_row(entry, context, catalog=kinds.catalog) for name, entry in kinds.entries.items()}
    for row in missing_rows(kinds):
        found[row["resource"]] = found.get(row["resource"], bare_kind(row["resource"])) | row
    return found


def kind_row(row: KindEntry, context: EngineContext, *, catalog: Catalog) -> Json:
    """One kind that an annotation or a SyncPolicy asks for, also wrongly.

    Its state is syncing, listing, waiting, misconfigured, kind-missing, version-mismatch, forbidden or held.
    """
    policy, kind = row.policy, row.kind
    groups, crd = context.holds.groups(policy.resource), catalog.lifecycle.crds.get(policy.resource)
    deletions_held = any(g.keys and g.reason in DELETION_HOLDS for g in groups)
    state, message = _state(row, context.connections, deletions_held=deletions_held)
    if message is None and groups:
        message = groups[0].message
    return {
        **bare_kind(policy.resource),
        "scope": policy.on_robot.scope,
        "specSource": row.source,
        "filterByRobotName": policy.filtered,
        "selector": policy.selector or None,
        "statusSubtree": policy.subtree,
        "state": state,
        "message": message,
        "rule": (row.error.rule if row.error is not None else "") or KIND_RULES.get(state),
        "held": sum(len(g.keys) for g in groups),
        "pending": {"spec": 0, "status": len(row.pending)},
        "aliases": list(policy.aliases),
        "policy": next(iter(row.policy_names), None),
        **cloud_names(policy if kind is None else kind.policy),
        "api": None if crd is None else crd.row,
        **({} if kind is None else _counts(kind, context)),
    }


def _counts(kind: Kind, context: EngineContext) -> Json:
    """The fields of a kind's row that only a kind that is synced has."""
    states = {side: [informer.state for informer in kind.on(side)] for side in Side}
    cursors = {side: [cursor for state in states[side] if (cursor := state.cursor()) is not None] for side in Side}
    listed = {side for side in Side if cursors[side] or kind.cache.freshness(side, "") is not Freshness.STORED}
    # Content that was rejected permanently is a dead letter, and counted as that.
    specs = context.dispatchers[kind.policy.downstream].waiting(
        kind.policy.resource, CONTENT, but=kind.reconciler.outcomes.rejected
    )
    return {
        "version": kind.policy.version,
        "objects": {
            side.value: sum(state.count() for state in states[side]) if side in listed else None for side in Side
        },
        "cursor": {side.value: ",".join(cursors[side]) or None for side in Side},
        "relists": {side.value: sum(state.relists for state in states[side]) for side in Side},
        "resumes": {side.value: sum(state.resumes for state in states[side]) for side in Side},
        "pending": {"spec": specs, "status": len(kind.cache.pending)},
        "massDeletion": _mass_deletion(kind, context.clock()),
    }


def _mass_deletion(kind: Kind, now: float) -> Json | None:
    """The last mass deletion that was carried out, for an hour (S5.5b)."""
    objects, time = kind.hold_driver.machine.mass_deletion
    return {"objects": objects, "time": rfc3339(time)} if now - time < _MASS_DELETION_SECONDS else None


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
