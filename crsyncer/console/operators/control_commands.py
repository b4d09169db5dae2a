"""Answers the control commands of operators: a request from the control socket in, an answer out."""

import asyncio
import contextlib
from collections.abc import Iterator

from crsyncer.console.explained.explain_policy import ON
from crsyncer.console.explained.explanation import ObjectFacts, explain
from crsyncer.console.explained.related import with_related
from crsyncer.console.explained.target import find_key, find_resource, synced_resource
from crsyncer.console.screens.gather import kind_row, kind_rows, policy_rows
from crsyncer.console.screens.report import (
    event_row,
    hold_row,
    object_fields,
    pending_finalizer,
    pending_status,
    rejected_row,
)
from crsyncer.console.screens.stopped import notes, notes_on_object
from crsyncer.core.content.object_content import digest
from crsyncer.core.holds.agent_list_reason import AgentListReason
from crsyncer.core.holds.hold_list import DELETION_HOLDS, HeldGroup
from crsyncer.core.model import Json, Key, Side
from crsyncer.core.pair.actions import HoldReason
from crsyncer.core.reports.text import duration, rfc3339
from crsyncer.engine.context import EngineContext
from crsyncer.engine.kinds.kind import Kind
from crsyncer.engine.kinds.kinds import Kinds
from crsyncer.engine.pairs.outcomes import CONTENT, FINALIZER, STATUS
from crsyncer.errors import SyncError
from crsyncer.runtime.connection import Connection, ConnectionState
from crsyncer.runtime.dispatcher import Job

_READS = ("status", "explain", "events", "pending", "progress")
_CHANGES = ("hold", "release", "retry", "drop")
_ENDS_WAITS = ("release", "retry", "resync")
"""These commands end every wait for a server, also one that the server asked for (S9.1)."""
_LIST_HINT = "crsyncer pending list shows all that is pending"
_RESYNC_SECONDS = 600.0
_LAST_WRITES_SECONDS = 10.0
_POLL_SECONDS = 0.05
_UNDER_WAY_SECONDS = 3.0
"""Less than the time that `crsyncer` waits for an answer."""
_RESYNCS = 16
"""How many resyncs are remembered: a client may stop asking before its resync is over."""


_Resync = dict[str, tuple[str, str | None]]
"""The progress of a resync by kind: its state (listing, comparing, done, failed) and a message."""


def changes(request: Json) -> bool:
    """Whether a request changes something, or may: whoever may only look cannot make it."""
    is_dry_run = request.get("command") == "release" and request.get("dryRun") is True
    return request.get("command") not in _READS and not is_dry_run


class ControlCommands:
    """Answers requests such as `{"command": "release", "id": "h1"}`."""

    def __init__(self, kinds: Kinds, context: EngineContext) -> None:
        self._kinds = kinds
        self._context = context
        self._resyncs: dict[int, _Resync] = {}
        self._resyncs_begun = 0

    async def answer(self, request: Json) -> Json:
        """Carry a command out, durably. Raises SyncError where that is not possible."""
        given = {name: str(value) for name, value in request.items() if isinstance(value, str | int)}
        resource, name = given.get("resource", ""), given.get("name", "")
        match given.get("command"):
            case "hold":
                answer = await self._hold(resource)
            case "release":
                dry_run = request.get("dryRun") is True
                answer = self._release(given.get("id", ""), dry_run=dry_run, shown=given.get("shown"))
            case "events":
                rows = [event_row(event) for event in self._context.recorder.events]
                answer = {"events": rows, "kinds": self._aliases()}
            case "pending":
                answer = {"pending": list(self._pending())}
            case "retry":
                answer = self._retry(resource, name)
            case "drop":
                answer = self._drop(resource, name, confirmed=request.get("confirmed") is True)
            case "resync":
                answer = self._resync(resource)
            case "progress":
                answer = self._progress(given.get("resync", ""))
            case "explain":
                answer = await self._explain(resource, name)
            case unknown:
                hint = "crsyncer version and crsyncer status show whether the agent has another version"
                raise SyncError(f"the agent does not know the command {unknown!r}", hint=hint)
        if given["command"] in _ENDS_WAITS:
            for connection in self._context.connections.values():
                connection.retry_now()
        if given["command"] in _CHANGES:
            await self._context.store.durable()
        return answer

    # Holds

    async def _hold(self, resource: str) -> Json:
        kind = self._running_kind(resource)
        kind.hold_all()
        groups = self._context.holds.groups(kind.policy.resource)  # now: a kind that stops meanwhile shows it no more
        group = next(g for g in groups if g.kind_wide and g.reason is HoldReason.MANUAL)
        with contextlib.suppress(TimeoutError):  # a server that does not answer may still carry out what was sent
            async with asyncio.timeout(_UNDER_WAY_SECONDS):
                await kind.reconciler.writer.deletions_answered()
        saved = await self._context.store.durable()
        return {"id": group.id, "resource": group.resource, "reason": group.reason, "saved": saved}

    def _release(self, hold_id: str, *, dry_run: bool, shown: str | None) -> Json:
        """Release a hold, or with `dry_run` only name the copies that will be deleted.

        `shown` is the digest of the names that somebody has agreed to; None: to whatever is held.
        """
        if hold_id in list(Side):
            return self._accept(self._context.connections[Side(hold_id)], dry_run=dry_run)
        group = next((g for g in self._context.holds.groups() if g.id == hold_id), None)
        if group is None:
            raise SyncError(f"there is no hold {hold_id}", hint="crsyncer holds list shows all holds")
        if group.reason is HoldReason.API_HELD:
            return self._release_api(group, dry_run=dry_run)
        if group.resource in self._kinds.stopped.stopped:
            return self._acknowledge(group, dry_run=dry_run)
        if group.reason not in DELETION_HOLDS:
            raise SyncError(
                f"{hold_id} ({group.reason}) cannot be released: {group.message}",
                hint=f"{hold_row(group)['hint']}; then the hold ends",
            )
        kind, names = self._running_kind(group.resource), sorted(map(str, group.keys))
        if group.reason is HoldReason.KIND_MISSING and self._kinds.entries[group.resource].may_have_moved():
            raise SyncError(
                f"{hold_id} cannot be released before the cloud shows which versions it serves of {group.resource}",
                hint="crsyncer status shows whether the cloud is connected; then run the command again",
            )
        answer = {"id": hold_id, "resource": group.resource, "reason": group.reason, "objects": len(names)}
        if dry_run:
            return answer | {"names": names, "shown": digest(names)}
        if shown not in (None, digest(names)):
            raise SyncError(
                f"{hold_id} has changed since its objects were shown: there are {len(names)} now",
                hint="nothing is released; run the command again to see them",
            )
        self._context.holds.release(hold_id)
        kind.release(group.reason, group.keys)
        return answer | {"names": []}

    def _acknowledge(self, group: HeldGroup, *, dry_run: bool) -> Json:
        """Tell no more of a kind whose CRD is gone from the robot (S1.8)."""
        if not dry_run:
            self._kinds.stopped.acknowledge(group.resource)
        text = f"the robot's missing CRD {group.resource} is acknowledged; nothing is deleted"
        fields = {"id": group.id, "resource": group.resource, "reason": group.reason, "objects": 0}
        return {**fields, "names": [], "message": text}

    def _release_api(self, group: HeldGroup, *, dry_run: bool) -> Json:
        """Let a CRD follow the revision that is held, or with `dry_run` only name what this takes away (C8.3)."""
        crd = self._kinds.catalog.lifecycle.crds.get(group.resource)
        revision = crd.release(dry_run=dry_run) if crd is not None else ""
        fields = {"id": group.id, "resource": group.resource, "reason": group.reason, "objects": 0}
        return {**fields, "names": [], "revision": revision, "message": group.message}

    def _accept(self, connection: Connection, *, dry_run: bool) -> Json:
        if connection.state is not ConnectionState.IDENTITY_CHANGED:
            raise SyncError(
                f"the {connection.name} is not held: it is {connection.state}",
                hint="crsyncer holds list shows all holds",
            )
        if not dry_run:
            for kind in self._running_kinds(""):
                for informer in kind.on(Side(connection.name)):
                    informer.state.rebuilt()  # before the acceptance is stored: a crash between them is harmless
            connection.accept_identity()
        return {"id": connection.name, "resource": "", "reason": "IdentityChanged", "objects": 0, "names": []}

    # The outbox

    def _pending(self) -> Iterator[Json]:
        for kind in self._running_kinds(""):
            outcomes, cache = kind.reconciler.outcomes, kind.cache
            for key in dict.fromkeys((*cache.pending, *outcomes.rejected, *outcomes.unfinalized, *cache.finalizers)):
                fields = object_fields(kind.policy.resource, key)
                yield from (fields | row for row in self._pending_of(kind, key))
        for resource, entry in self._kinds.entries.items():
            for key, waiting in entry.pending.items() if entry.kind is None else ():
                yield object_fields(resource, key) | pending_status(waiting, None)
        for resource, rows in self._kinds.removals.rows.items():
            yield from (object_fields(resource, key) | pending_finalizer(row) for key, row in rows.items())

    def _pending_of(self, kind: Kind, key: Key) -> Iterator[Json]:
        policy, row = kind.policy, kind.cache.pending.get(key)
        if row is not None:
            yield pending_status(row, policy.upstream, next_try=self._next_try(kind, STATUS, key))
        if refusal := kind.reconciler.outcomes.rejected.get(key):
            yield rejected_row(CONTENT, refusal.message, policy.downstream, next_try=self._next_try(kind, CONTENT, key))
        next_try = self._next_try(kind, FINALIZER, key)
        if refusal := kind.reconciler.outcomes.unfinalized.get(key):
            yield rejected_row(FINALIZER, refusal.message, policy.upstream, next_try=next_try)
        finalizer = kind.cache.finalizers.get(key)
        if finalizer is not None and finalizer.since:
            yield pending_finalizer(finalizer, next_try=next_try)

    def _retry(self, resource: str, name: str) -> Json:
        revived = []
        for kind in self._running_kinds(resource):
            rows = kind.cache.pending
            outcomes = kind.reconciler.outcomes
            finalizers = (key for key, row in kind.cache.finalizers.items() if row.since and name)
            letters = {*outcomes.rejected, *outcomes.unfinalized, *finalizers}
            letters |= {key for key, row in rows.items() if row.dead or name}
            place = kind.policy.namespaced
            for key in [find_key(name, letters, namespaced=place)] if name else sorted(letters):
                if key not in letters:
                    raise SyncError(f"nothing of {key} of {kind.policy.resource} is pending", hint=_LIST_HINT)
                kind.retry(key)
                revived.append(object_fields(kind.policy.resource, key))
        return {"revived": revived}

    def _drop(self, resource: str, name: str, *, confirmed: bool) -> Json:
        kind = self._running_kind(resource)
        known = {*kind.cache.pending, *kind.reconciler.outcomes.rejected}
        key = find_key(name, known, namespaced=kind.policy.namespaced)
        row = kind.cache.pending.get(key)
        if row is None and key in kind.reconciler.outcomes.rejected:
            raise SyncError(
                f"the {kind.policy.downstream} rejects the content of {key}, and only a status can be dropped",
                hint=f"correct or delete the object {ON[kind.policy.upstream]}",
            )
        if row is None or not row.dead:
            raise SyncError(f"{key} of {kind.policy.resource} has no dead letter", hint=_LIST_HINT)
        if confirmed:
            kind.reconciler.outbox.drop(key)
            kind.reconciler.enqueue(key)
        lost = {
            "status": row.status,
            "since": rfc3339(row.since),
            "refusal": row.error,
            "to": str(kind.policy.upstream),
        }
        return {**object_fields(kind.policy.resource, key), "dropped": confirmed, **lost}

    # Resync

    def _resync(self, resource: str) -> Json:
        kinds = self._running_kinds(resource)
        run: _Resync = {kind.policy.resource: ("listing", None) for kind in kinds}
        for kind in kinds:
            kind.spawn(self._run_resync(kind, run))
        self._resyncs_begun += 1
        self._resyncs[self._resyncs_begun] = run
        self._resyncs.pop(self._resyncs_begun - _RESYNCS, None)
        return self._progress(str(self._resyncs_begun))

    async def _run_resync(self, kind: Kind, run: _Resync) -> None:
        resource = kind.policy.resource
        result: tuple[str, str | None] = ("failed", "the kind was restarted, so both sides are listed again anyway")
        work = self._compare(kind, run)
        for connection in self._context.connections.values():
            work = connection.while_up(work)
        try:
            async with asyncio.timeout(_RESYNC_SECONDS):
                await work
            result = ("done", None)
        except (SyncError, TimeoutError) as error:
            result = ("failed", str(error) or f"not finished within {duration(_RESYNC_SECONDS)}")
        finally:
            run[resource] = result

    async def _compare(self, kind: Kind, run: _Resync) -> None:
        await kind.informer_set.fresh(AgentListReason.RESYNC, *Side)
        run[kind.policy.resource] = ("comparing", None)
        kind.auditor.audit()
        # Differences are also written before the resync is done, unless other changes keep the kind busy.
        patience = _LAST_WRITES_SECONDS
        while kind.reconciler.to_audit or (patience > 0 and self._busy(kind)):
            await asyncio.sleep(_POLL_SECONDS)
            patience -= 0 if kind.reconciler.to_audit else _POLL_SECONDS

    def _busy(self, kind: Kind) -> bool:
        return any(dispatcher.active(kind.policy.resource) for dispatcher in self._context.dispatchers.values())

    def _progress(self, number: str) -> Json:
        run = self._resyncs.get(int(number)) if number.isdigit() else None
        if run is None:
            raise SyncError("the agent was restarted, so it lists and compares everything anyway")
        return {"resync": int(number), "kinds": [self._kind_progress(name, *run[name]) for name in sorted(run)]}

    def _kind_progress(self, resource: str, state: str, message: str | None) -> Json:
        entry = self._kinds.entries.get(resource)
        kind = None if entry is None else entry.kind
        objects = {side.value: 0 if kind is None else len(kind.cache.views[side]) for side in Side}
        unverified = 0 if kind is None else len(kind.reconciler.to_audit)
        left = {"comparing": unverified, "done": 0}.get(state)
        return {"resource": resource, "state": state, "message": message, "objects": objects, "left": left}

    # Explain

    async def _explain(self, resource: str, name: str) -> Json:
        entries = self._kinds.entries
        stopped = dict.fromkeys(self._kinds.stopped.stopped, ())
        resource = find_resource(resource, {**stopped, **self._aliases()})
        entry = entries.get(resource)
        if entry is None or entry.kind is None:
            key = find_key(name, ())
            document = kind_rows(self._kinds, self._context).get(resource)
            policies = tuple(row for row in policy_rows(self._kinds.catalog) if row["resource"] == resource)
            told = tuple(notes(self._kinds, resource))
            if document is None and not policies and not told:
                synced_resource(resource, self._aliases())  # raises
            return explain(
                ObjectFacts(
                    resource,
                    key,
                    kind=document,
                    annotated=tuple(sorted(entries)),
                    policies=policies,
                    notes=told,
                )
            )
        kind, cache = entry.kind, entry.kind.cache
        key = find_key(name, cache.known_keys(), namespaced=kind.policy.namespaced)
        bodies = {side: await cache.body(side, key) for side in Side}
        facts = ObjectFacts(
            resource,
            key,
            kind=kind_row(entry, self._context, catalog=self._kinds.catalog),
            policy=kind.policy,
            notes=tuple(notes_on_object(self._kinds, kind, key)),
            connections={side: connection.state.value for side, connection in self._context.connections.items()},
            observations={side: cache.observe(side, key).found for side in Side},
            bodies={side: body for side, body in bodies.items() if body is not None},
            plan=kind.reconciler.plan(key),
            record=cache.record(key),
            pending=tuple(self._pending_of(kind, key)),
            error=kind.reconciler.outcomes.errors.get(Job(resource, CONTENT, key), ""),
            next_try=self._next_try(kind, CONTENT, key),
            tombstone=cache.tombstones.get(key),
            holds=tuple(hold_row(group) for group in self._context.holds.groups(resource) if key in group.keys),
        )
        return explain(with_related(facts, kind, self._kinds, self._kinds.catalog.related_objects))

    # The kinds that a command names

    def _aliases(self) -> dict[str, tuple[str, ...]]:
        return {resource: entry.policy.aliases for resource, entry in self._kinds.entries.items()}

    def _running_kind(self, resource: str) -> Kind:
        entry = self._kinds.entries[synced_resource(resource, self._aliases())]
        if entry.kind is None:
            state = entry.error.state if entry.error is not None else "starting"
            raise SyncError(
                f"{resource} is not synced at the moment: {state}",
                hint="crsyncer status shows the reason; when that is put right, repeat the command",
            )
        return entry.kind

    def _running_kinds(self, resource: str) -> list[Kind]:
        """One kind, or ("") all that are synced."""
        if resource:
            return [self._running_kind(resource)]
        return [entry.kind for entry in self._kinds.entries.values() if entry.kind is not None]

    def _next_try(self, kind: Kind, work: str, key: Key) -> float | None:
        side = kind.policy.downstream if work == CONTENT else kind.policy.upstream
        seconds = self._context.dispatchers[side].next_try(Job(kind.policy.resource, work, key))
        return None if seconds is None else self._context.clock() + seconds
