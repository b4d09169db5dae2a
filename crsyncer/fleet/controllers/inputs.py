"""The informers of a leader: its inputs, and on each shard the objects of every kind that may be placed (F1.1)."""

import asyncio
import logging
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice

from crsyncer.core.content.object_content import key_of
from crsyncer.core.model import Freshness, Key
from crsyncer.core.requests import calls
from crsyncer.core.requests.calls import CRD_COLLECTION, CRD_PAGE, SYNC_POLICIES, Call, Collection
from crsyncer.core.watching.pages import FIRST
from crsyncer.errors import SyncError
from crsyncer.fleet.controllers.alive import REPORTS
from crsyncer.fleet.controllers.intake import Handlers, Intake
from crsyncer.fleet.controllers.kind_catalog import Kinds, is_watched
from crsyncer.fleet.controllers.state import FleetState
from crsyncer.fleet.domain.change import Change, Input
from crsyncer.fleet.domain.fleet_calls import (
    COLLECTORS,
    COMBINED,
    DECISIONS,
    OBJECT_STATUSES,
    PLACEMENTS,
    PROPERTIES,
    STRIPS,
    SYNC_STATES,
    objects_of,
    revision,
)
from crsyncer.fleet.domain.names import SOURCE
from crsyncer.fleet.domain.returned.combined_objects import COMBINED_STATUSES, STATUS_COLLECTORS
from crsyncer.fleet.domain.transport.keys import ROOT, at, on_shard
from crsyncer.fleet.domain.transport.transports import watch
from crsyncer.fleet.domain.values import GROUP, PlacedKind, Verdict
from crsyncer.runtime.collection_state import Rewind
from crsyncer.runtime.connection import Connection
from crsyncer.runtime.event_loop import give_way
from crsyncer.runtime.list_objects import objects
from crsyncer.runtime.listwatch import Phase
from crsyncer.runtime.object_informer import ObjectInformer

log = logging.getLogger(__name__)

_OWN: Mapping[str, Collection] = {
    Input.PLACEMENTS: PLACEMENTS,
    Input.DECISIONS: DECISIONS,
    Input.STRIPS: STRIPS,
    Input.PROPERTIES: PROPERTIES,
    STATUS_COLLECTORS: COLLECTORS,
    COMBINED_STATUSES: COMBINED,
}
_PAGE = 500


@dataclass(slots=True)
class _Watched:
    """A collection that is watched. `collection`: as of when its informer began."""

    collection: Collection
    task: asyncio.Task[None]
    informer: ObjectInformer | None = None
    is_outdated: bool = False
    """Its CRD is gone: those of the next one are listed, which shows what is missing."""


@dataclass(slots=True)
class Inputs:
    """Starts and stops the informers of one shard. Each cares for itself: one that is refused stops no other.

    The root has the inputs and the sources, another shard kinds, replicas and reports alone; `root`: the former's.
    """

    state: FleetState
    intake: Intake
    shard: str = ROOT
    root: "Inputs | None" = None
    _watched: dict[str, _Watched] = field(default_factory=dict)
    _tasks: asyncio.TaskGroup = field(default_factory=asyncio.TaskGroup)
    _unlisted: set[str] = field(default_factory=set)
    """The collections that have to be listed anew after a restore."""
    _shown: set[str] = field(default_factory=set)
    """The kinds of which the sources were shown."""
    _news: asyncio.Event = field(default_factory=asyncio.Event)
    """Set, and replaced, when there may be more of these."""
    kinds: Kinds = field(init=False)
    connection: Connection = field(init=False)

    def __post_init__(self) -> None:
        self.connection = self.state.connection_to(self.shard)
        robots = self.state.settings.robots
        self.kinds = Kinds(self.connection, inventory=robots, shown=self._kind_shown, gone=self._kind_gone)
        self.intake.listeners.append(self._placements_changed)

    async def run(self) -> None:
        """Watch, forever."""
        async with self._tasks as tasks:
            crds = Handlers(
                lambda _, raw: self.kinds.crd_shown(raw),
                lambda key: self.kinds.crd_gone(key.name),
                self._crds_listed,
            )
            self._watch("CRDs", CRD_COLLECTION, crds, page=CRD_PAGE)
            policies = Handlers(
                lambda _, raw: self.kinds.policy_shown(raw), lambda key: self.kinds.policy_gone(key.name), lambda: None
            )
            self._watch("SyncPolicies", SYNC_POLICIES, policies)
            self._watch(REPORTS, SYNC_STATES, self.intake.reports(self.shard))
            self._watch("RobotObjectStatuses", OBJECT_STATUSES, self.intake.object_statuses(self.shard))
            if self.shard == ROOT:
                handlers = self.intake.inputs()
                for name, collection in _OWN.items():
                    self._watch(name, collection, handlers[name])
            else:
                tasks.create_task(self._follow_connection())
            tasks.create_task(self.kinds.run())
            tasks.create_task(self.intake.liveness[self.shard].run())

    async def _follow_connection(self) -> None:
        """Tell when the shard is away, and when it is back, forever."""
        while True:
            await self.connection.up.wait()
            self.intake.shard_changed(self.shard)
            await self.connection.down.wait()
            self.intake.shard_changed(self.shard)

    async def inputs_listed(self) -> None:
        """Return once all inputs are listed: before, nothing is known to be wanted."""
        while not self.state.fleet.listed.issuperset(Input):
            await self._news.wait()

    async def sources_shown(self, resource: str) -> None:
        """Return once the sources of a kind were shown, or it is known that there are none."""
        while resource not in self._shown and (resource in self._watched or not self.kinds.are_listed):
            await self._news.wait()

    def missing(self) -> set[str]:
        """The kinds of inputs, those with a CRD, that are not served."""
        named = {each: kind.resource for each, kind in _OWN.items() if isinstance(each, Input) and kind.group}
        named[Input.ROBOTS] = self.state.settings.robots
        return {name for each, name in named.items() if each in self.state.fleet.dead or self._lack(name)}

    def _lack(self, resource: str) -> bool:
        """Whether the CRDs show that a kind is not served."""
        kind = self.state.fleet.index.kinds.get(at(self.shard, resource))
        return self.kinds.are_listed if kind is None else kind.verdict is Verdict.NOT_SERVED

    def _tell(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    def _crds_listed(self) -> None:
        self.kinds.crds_listed()
        self.intake.shard_read(self.shard)
        self._tell()

    def probes(self) -> list[Call]:
        """The requests of a probe: a few consistent lists of what was listed, and one that every server answers.

        What is missing or forbidden is asked for only where nothing else is listed: it may be back by now.
        """
        found = ((each.collection, each.informer) for each in self._watched.values() if each.informer is not None)
        known = [
            (collection, informer)
            for collection, informer in found
            if informer.cursor is not None and informer.cursor.is_finished
        ]
        well = [collection for collection, informer in known if informer.listwatch.phase not in _REFUSED]
        lists = map(revision, well or [collection for collection, _ in known])
        return [*islice(lists, _PROBED), calls.VERSION]

    def _placements_changed(self) -> None:
        """Kinds that placements name are looked for, also where they have no CRD, and watched."""
        named = self.state.fleet.index.named_kinds()
        self.kinds.named(named)
        for kind in list(self.state.fleet.index.kinds.values()):
            if kind.shard == self.shard:
                self._adapt(kind, named)

    def _kind_shown(self, kind: PlacedKind) -> None:
        if self.shard != ROOT:
            kind = kind.at_shard(self.shard)
        self.intake.kind_shown(kind)
        self._adapt(kind, self.state.fleet.index.named_kinds())
        if self.shard != ROOT:
            return
        if kind.resource == self.state.settings.robots and kind.version and kind.verdict is not Verdict.NOT_SERVED:
            self._watch_robots(objects_of(kind, self.state.settings.robots_namespace))

    def _watch_robots(self, collection: Collection) -> None:
        watched = self._watched.get(Input.ROBOTS)
        if watched is None or watched.collection != collection or watched.is_outdated:
            self._stop(Input.ROBOTS)
            known = [Key(collection.namespace, name) for name in self.state.fleet.index.robots]
            self._watch(Input.ROBOTS, collection, self.intake.inputs()[Input.ROBOTS], known=known)

    def _kind_gone(self, resource: str) -> None:
        self._stop(resource)
        self.intake.kind_gone(at(self.shard, resource))
        if self.shard == ROOT and resource == self.state.settings.robots:
            self.intake.robots_gone()
            if (watched := self._watched.get(Input.ROBOTS)) is not None:
                watched.is_outdated = True

    def _adapt(self, kind: PlacedKind, named: set[str]) -> None:
        """Watch all objects of a kind that may be placed, and only replicas of one that may not but is named."""
        if not is_watched(kind, named=kind.resource in named):
            if kind.verdict is Verdict.NOT_PLACEABLE and kind.resource in self._watched:
                self._stop(kind.resource)
                self.intake.sources_gone(kind)
            return
        collection = watch(kind)
        if (watched := self._watched.get(kind.resource)) is not None and watched.collection == collection:
            return
        self._stop(kind.resource)
        self.intake.unlisted(kind.name)
        handlers = self.intake.objects(kind)
        task = self._tasks.create_task(self._run_kind(kind, collection, handlers))
        self._watched[kind.resource] = _Watched(collection, task)

    async def _run_kind(self, kind: PlacedKind, collection: Collection, handlers: Handlers) -> None:
        """List the sources of a kind after the inputs, then list and watch all of it.

        So it shows at once whether a replica has drifted while nobody led (F3.5).
        """
        await (self.root or self).inputs_listed()
        if self.root is not None:
            await self.root.sources_shown(kind.resource)
        elif not collection.selector:
            await self._list_sources(kind, handlers)
        self._shown.add(kind.resource)
        self._tell()
        known = self.state.fleet.places(kind.name)
        informer = self._informer(kind.resource, collection, handlers, known=known)
        self._watched[kind.resource].informer = informer
        await informer.run()

    async def _list_sources(self, kind: PlacedKind, handlers: Handlers) -> None:
        """Show all objects of a kind that are no replicas. What fails is left to the list that follows."""
        await self.connection.up.wait()
        with suppress(SyncError):
            async for raw in objects(self.connection.request, objects_of(kind, selector=f"!{SOURCE}"), page=_PAGE):
                handlers.shown(key_of(raw), raw | {"apiVersion": kind.api_version, "kind": kind.kind})
                await give_way()  # each may have thousands of replicas

    def _watch(
        self,
        name: str,
        collection: Collection,
        handlers: Handlers,
        *,
        page: int = FIRST,
        known: Iterable[Key] = (),
    ) -> None:
        informer = self._informer(name, collection, handlers, page=page, known=known)
        self._watched[name] = _Watched(collection, self._tasks.create_task(informer.run()), informer)

    def _informer(
        self,
        name: str,
        collection: Collection,
        handlers: Handlers,
        *,
        page: int = FIRST,
        known: Iterable[Key] = (),
    ) -> ObjectInformer:
        """`known`: the objects that an informer before this one has shown."""
        before = set(known)
        logged = ""

        def listed() -> None:
            nonlocal logged
            logged = ""
            for key in before - informer.objects.keys():
                handlers.gone(key)  # it went while nobody was looking
            before.clear()
            handlers.listed()
            self._tell()
            if informer.freshness is Freshness.CONFIRMED:
                self.intake.confirmed(at(self.shard, name))
            self._listed_again(name)

        def phase_changed() -> None:
            nonlocal logged
            seen, what = informer.listwatch, on_shard(at(self.shard, name))
            if seen.phase is Phase.FORBIDDEN and collection.resource.endswith(GROUP):
                self.state.refuse(f"list of {what}", name)
            else:
                self.state.not_refused(f"list of {what}", name)
            if seen.phase in _REFUSED and seen.message != logged:
                logged = seen.message
                log.warning("%s cannot be listed: %s", what, logged)

        informer = ObjectInformer(
            self.connection,
            collection,
            page=page,
            watch_timeout=self.state.settings.watch_timeout,
            shown=handlers.shown,
            gone=handlers.gone,
            listed=listed,
            phase_changed=phase_changed,
            rewound=lambda how: self._rewound(name, how),
            observer=self.state.observer,
        )
        return informer

    def _rewound(self, name: str, how: Rewind) -> None:
        """The shard went back, or is another one: what is missing until all is listed again is held (F5.2, S8).

        A collection that is not served shows nothing, before and after: nothing waits for its list.
        """
        watched = self._watched.get(name)
        informer = None if watched is None else watched.informer
        is_missing = informer is not None and informer.listwatch.phase is Phase.MISSING
        if how is not Rewind.REBOOTED and not is_missing:
            self._unlisted.add(name)
            self.intake.rewound(name, self.shard)

    def _listed_again(self, name: str) -> None:
        if name in self._unlisted:
            self._unlisted.discard(name)
            if not self._unlisted:
                self.state.losses.restored(is_restored=False, shard=self.shard)
                self.intake.take(Change())

    def _stop(self, name: str) -> None:
        watched = self._watched.pop(name, None)
        self._unlisted.discard(name)
        if watched is not None:
            watched.task.cancel()
            self._tell()


_PROBED = 3
"""How many lists a probe asks for: what cannot be listed at the moment does not matter then."""
_REFUSED = (Phase.MISSING, Phase.FORBIDDEN)
