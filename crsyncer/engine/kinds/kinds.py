"""Watches the robot's CRDs and keeps one kind running for each kind that they ask for (S1)."""

import asyncio
import json
import logging
from collections import defaultdict
from dataclasses import replace

from crsyncer.core.content.annotations import SPEC_SOURCE
from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.kinds.namespaces import Namespaces
from crsyncer.core.kinds.read_kind import is_terminating, reduced_crd
from crsyncer.core.model import Json, Key, Side
from crsyncer.core.reports.facts import Action, Fact
from crsyncer.core.requests import calls
from crsyncer.core.requests.calls import SYNC_POLICIES
from crsyncer.engine.context import EngineContext
from crsyncer.engine.kinds.catalog import Catalog
from crsyncer.engine.kinds.kind import Kind
from crsyncer.engine.kinds.kind_entry import KindEntry
from crsyncer.engine.kinds.negotiation import UNKNOWN, Disagreement, negotiate, stored_negotiation, to_store
from crsyncer.engine.kinds.reselection import reselect
from crsyncer.engine.kinds.reshape import reshape
from crsyncer.engine.kinds.stopped_kinds import StoppedKinds
from crsyncer.engine.pairs.unseen_finalizers import Removals
from crsyncer.errors import Unsure
from crsyncer.ports import Reply
from crsyncer.runtime.dispatcher import Job
from crsyncer.runtime.listwatch import ListWatch, Phase
from crsyncer.runtime.object_informer import ObjectInformer

log = logging.getLogger(__name__)

_SCHEMA_SECONDS = 3.0
_NO_CRD = '{"metadata": {}}'


class Kinds:
    """The kinds that are synced. A change of a CRD restarts only that kind, and only when it matters (S1.1)."""

    def __init__(self, context: EngineContext, *, robot: str, namespaces: Namespaces) -> None:
        self.entries: dict[str, KindEntry] = {}
        self.has_synced = False
        """Whether the robot's CRDs have been listed, and their kinds have been read from the store."""
        self._context = replace(context, report_changed=self._changed)
        self._status_changed = context.report_changed
        self._robot = robot
        self._namespaces = namespaces
        self._listed = False
        """Whether the CRDs have been listed since the start."""
        self.crds: dict[str, str] = {}
        """Every CRD by name, as JSON, without what does not concern us: a SyncPolicy may come for any of them."""
        self.catalog = self._new_catalog()
        """The robot's SyncPolicies."""
        self._catalog_task: asyncio.Task[None] | None = None
        """None: the robot has no CRD of SyncPolicies."""
        self._tasks = asyncio.TaskGroup()
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        """Locked while a kind runs, so that its successor starts when it has ended."""
        self.removals = Removals(self._context, spawn=self._tasks.create_task, lock=self._locks.__getitem__)
        """Of the finalizers of kinds that have stopped."""
        self.stopped = StoppedKinds(context, changed=context.report_changed)
        self._crd_watch = ObjectInformer(
            context.connections[Side.ROBOT],
            calls.CRD_COLLECTION,
            page=calls.CRD_PAGE,
            watch_timeout=context.watch_timeout,
            shown=self._crd_shown,
            gone=self._crd_gone,
            listed=self._crds_listed,
            phase_changed=lambda: None,  # the phase of this watch is not shown
        )

    @property
    def listwatches(self) -> list[ListWatch]:
        """Those of what configures the kinds."""
        return [self._crd_watch.listwatch, *self.catalog.listwatches]

    async def run(self) -> None:
        """Watch CRDs and keep their kinds running, forever."""
        async with self._tasks:
            self._tasks.create_task(self._crd_watch.run())
            self._tasks.create_task(self.stopped.run())

    def start(self, job: Job[Key]) -> asyncio.Task[None] | None:
        """Have a kind work on one object; None where it does not run."""
        entry = self.entries.get(job.resource)
        return entry.kind.start(job) if entry is not None and entry.kind is not None else None

    # What configures the kinds

    def _crd_shown(self, key: Key, raw: Json) -> None:
        name = key.name
        self.crds[name] = json.dumps(reduced_crd(raw))
        if self._listed:
            if name == SYNC_POLICIES.resource:
                self._open_catalog()
            self.catalog.crds_changed()
            self._show(name)

    def _crd_gone(self, key: Key) -> None:
        name = key.name
        self.crds.pop(name, None)
        self._remove(name)
        if name == SYNC_POLICIES.resource and self._catalog_task is not None:
            # Its objects went before it, and those that were not seen to go are gone as well.
            self.catalog.close()
            self._catalog_task.cancel()
            self.catalog, self._catalog_task = self._new_catalog(), None
            self._show_all()
        self.catalog.crds_changed()
        self._policies_concerned()
        self._report()

    def _crds_listed(self) -> None:
        """The CRDs are known as they are now. No kind starts before: its SyncPolicy would not have been looked for."""
        if not self._listed:
            self._listed = True
            if SYNC_POLICIES.resource in self.crds:
                self._open_catalog()
            self._show_all()
        self._report()

    def _new_catalog(self) -> Catalog:
        return Catalog(
            self._context,
            robot=self._robot,
            changed=self._policy_changed,
            listed=self._show_all,
            phase_changed=self._catalog_phase_changed,
            problem_of_kind=self._problem_of_kind,
            crds=self.crds,
            kinds=lambda: [entry.policy for entry in self.entries.values()],
        )

    def _open_catalog(self) -> None:
        if self._catalog_task is None:
            self._catalog_task = self._tasks.create_task(self.catalog.open())

    def _policy_changed(self, resource: str) -> None:
        """A SyncPolicy for a kind is new, has changed or is gone; so may be what becomes of others for that kind."""
        self._show(resource)
        self._policies_concerned()

    def _catalog_phase_changed(self) -> None:
        for entry in self.entries.values():
            if entry.waits:
                entry.error = self.catalog.obstacle
        self._report()

    def _problem_of_kind(self, resource: str) -> str | None:
        return self.entries[resource].problem if resource in self.entries else None

    def _policies_concerned(self) -> None:
        self.catalog.kinds_changed()
        self._status_changed()

    # The kinds

    def _show_all(self) -> None:
        for name in {**self.crds, **self.entries}:
            self._show(name)

    def _show(self, name: str) -> None:
        """Have a kind synced as its CRD and its SyncPolicy are now; a kind that runs waits for no SyncPolicies."""
        text, obstacle = self.crds.get(name), None
        if text is None:
            text, obstacle = self.catalog.kind_without_crd(name)
        crd = json.loads(text or _NO_CRD)
        policy = None
        if text is not None and not is_terminating(crd):
            policy = self.catalog.kind_policy(crd, self._robot, self._namespaces)
        waits = not self.catalog.is_listed
        entry = self.entries.get(name)
        if policy is None:
            if entry is not None:
                self._remove(name)
            return
        generation, uid = crd["metadata"].get("generation"), str(crd["metadata"]["uid"])
        same = entry is not None and entry.policy == policy and entry.uid == uid
        if entry is not None and same and entry.obstacle == obstacle and (waits or not entry.waits):
            if entry.generation != generation and entry.kind is not None:
                entry.kind.revive()
                # The API server applies the new schema after a moment, and may reject by the old one until then.
                entry.kind.spawn(entry.kind.revive_after(_SCHEMA_SECONDS))
            entry.generation = generation
            return
        before = None if entry is None else entry.policy
        if entry is not None:
            self._end(entry)
        source = crd["metadata"]["annotations"].get(SPEC_SOURCE) or ("" if policy.problem else policy.upstream.value)
        entry = self.entries[name] = KindEntry(policy, generation, source=source, uid=uid)
        entry.waits, entry.obstacle = waits, obstacle
        entry.policy_names = self.catalog.names(name) or tuple(each.policy for each in policy.related)
        if entry.error is not None:
            self._context.recorder.record(entry.refusal(entry.error))
            self._context.holds.clear(name)
        elif waits or obstacle is not None:
            entry.error = self.catalog.obstacle if waits else obstacle
        else:
            entry.task = self._tasks.create_task(self._run_kind(entry))
        if entry.task is None:
            self._tasks.create_task(entry.read_pending(self._context.storing(entry.policy).store, self._report))
        self._show_related(policy, before)
        self._policies_concerned()
        self._report()

    def _show_related(self, *policies: KindPolicy | None) -> None:
        """Show the kinds that are related to these, and those that these are related to (C5)."""
        for name in self.catalog.related_kinds([each for each in policies if each is not None]):
            self._show(name)

    def _remove(self, name: str) -> None:
        """The kind stops; its copies stay as they are (S1.8)."""
        entry = self.entries.pop(name, None)
        if entry is not None:
            self._context.recorder.record(Fact(Side.ROBOT, name, None, Action.STOPPED, "S1.8"))
            self._context.holds.clear(name)
            self._end(entry)
            self._context.forget_bodies(entry.policy, (each.policy for each in self.entries.values()))
            self._show_related(entry.policy)
            self._policies_concerned()
            self._report()

    async def _run_kind(self, entry: KindEntry) -> None:
        """Sync a kind as annotated; start again whenever a negotiation with the cloud has another result."""
        name = entry.policy.resource
        async with self._locks[name]:  # until the task before has ended
            await self._upstream_identified(entry)
            negotiated: KindPolicy | Disagreement
            policy = self._context.identified(entry.policy)
            negotiated, entry.version_served = stored_negotiation(policy, self._context.store)
            try:
                negotiated = await self._sync(entry, negotiated)
                while True:
                    negotiated = await self._sync(entry, negotiated, again=True)
            finally:
                self._context.forget_bodies(policy, (each.policy for each in self.entries.values()))
                if name not in self.entries or self.entries[name].task is None:
                    self._context.holds.clear(name)
                    self._context.other_agents.forget(name)
                    self._report()

    async def _sync(
        self, entry: KindEntry, negotiated: KindPolicy | Disagreement, *, again: bool = False
    ) -> KindPolicy | Disagreement:
        """Sync the kind as negotiated, until a negotiation has another result; that result."""
        try:
            async with asyncio.TaskGroup() as tasks:
                entry.error = negotiated if isinstance(negotiated, Disagreement) else None
                running = None
                if isinstance(negotiated, Disagreement):
                    await entry.read_pending(self._context.storing(entry.policy).store, self._report)
                    if negotiated.state != UNKNOWN:
                        self._context.recorder.record(entry.refusal(negotiated))
                else:
                    entry.kind = await self._load(negotiated)
                    running = tasks.create_task(entry.kind.run())
                    if again:
                        entry.kind.resend()
                self._policies_concerned()
                self._report()
                result = await self._renegotiate(entry, negotiated)
                self._stop(entry)
                if running is not None:
                    running.cancel()
            return result
        finally:
            self._stop(entry)
            for dispatcher in self._context.dispatchers.values():
                dispatcher.forget(entry.policy.resource)

    def _end(self, entry: KindEntry) -> None:
        """A kind stops, or starts over under another policy."""
        self._stop(entry)
        if entry.task is not None:
            entry.task.cancel()

    def _stop(self, entry: KindEntry) -> None:
        """Nothing is written for the kind any more, even before its tasks have ended (S1.8)."""
        if entry.kind is not None:
            entry.kind.reconciler.stopped = True
            self.catalog.related_objects.detach(entry.kind)
        entry.kind = None

    async def _load(self, policy: KindPolicy) -> Kind:
        context = self._context.storing(policy)
        loaded = await context.store.load(policy.resource)
        self.stopped.runs(policy, loaded)
        await reshape(loaded, policy, context.store)
        loaded = await reselect(policy, loaded, context)
        kind = Kind(policy, context=context, loaded=loaded)
        await self.catalog.related_objects.attach(kind)
        log.info("%s %s is synced, spec from the %s", policy.resource, policy.version, policy.upstream)
        return kind

    async def _renegotiate(self, entry: KindEntry, negotiated: KindPolicy | Disagreement) -> KindPolicy | Disagreement:
        """Negotiate whenever there is a reason to; return the first result that differs."""
        reasons, failures, entry.answered = 0, int(entry.error is not None), -1
        cloud = self._context.connections[Side.CLOUD]
        while True:
            await self._until_due(entry, known=reasons if entry.version_served else -1)
            if failures:
                await cloud.waits.back_off(failures)
            reasons = entry.reasons()
            try:
                result = await negotiate(self._context.identified(entry.policy), self._ask_cloud)
            except Unsure:
                failures += 1
                entry.version_served = False
                continue
            entry.version_served, entry.answered = not isinstance(result, Disagreement), reasons
            failures = 0 if entry.version_served and not entry.is_missing() else failures + 1
            if not isinstance(result, Disagreement):
                self._context.store.put_meta(f"negotiated:{result.resource}", to_store(result))
            if result != negotiated:
                return result
            if entry.kind is not None and not isinstance(result, Disagreement):
                entry.kind.negotiated(result)
            self._report()

    async def _upstream_identified(self, entry: KindEntry) -> None:
        """Return when upstream's cluster has an identity, where copies have marks: none is made without them."""
        upstream = entry.policy.upstream
        connection = self._context.connections[upstream]
        if entry.policy.shape.marks is not None and not connection.cluster_identity:
            entry.error = Disagreement("waiting", f"the {upstream} has never been connected")
            self._report()
            await connection.up.wait()

    async def _ask_cloud(self, call: calls.Call) -> Reply:
        """Send a request of a negotiation. Discovery of a group and version shows all of its kinds."""
        reply = await self._context.connections[Side.CLOUD].request(call)
        for entry in self.entries.values():
            if entry.kind is not None:
                entry.kind.cloud_answers(call, reply)
        return reply

    async def _until_due(self, entry: KindEntry, *, known: int) -> None:
        """Return when the cloud is connected, and there are more than `known` reasons, or the kind is missing."""
        while True:
            await self._context.connections[Side.CLOUD].up.wait()
            if entry.reasons() > known or entry.is_missing() or self._is_renamed(entry):
                return
            entry.wake.clear()
            await entry.wake.wait()

    def _is_renamed(self, entry: KindEntry) -> bool:
        """Whether upstream's cluster has another identity than the kind's steps use."""
        return entry.kind is not None and self._context.identified(entry.kind.policy) != entry.kind.policy

    def _report(self) -> None:
        if self._listed and all(entry.kind is not None or entry.error is not None for entry in self.entries.values()):
            self.has_synced = True
        if self._listed and self.catalog.is_listed:  # it is known which kinds are not synced any more
            self.stopped.update(self.entries, self.crds)
            self.removals.update(self._may_be_synced)
        self._status_changed()

    def _may_be_synced(self, name: str) -> bool:
        """Whether a kind is synced, or will be once more is known of it."""
        entry = self.entries.get(name)
        if entry is None:  # a kind without a CRD whose policy has just been seen
            return name not in self.crds and bool(self.catalog.names(name))
        if entry.obstacle is not None:
            return entry.obstacle.state != "kind-missing"
        return not entry.policy.problem

    def _changed(self) -> None:
        for entry in self.entries.values():
            entry.wake.set()
            for informer in entry.kind.informers if entry.kind is not None else ():
                side = informer.side
                missing = entry.kind is not None and entry.kind.kind_missing and side is entry.policy.upstream
                if missing or informer.listwatch.phase is Phase.MISSING:
                    self._context.connections[side].identity.forget_crd(entry.policy.endpoint(side).resource)
        self._report()
