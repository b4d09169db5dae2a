"""Takes what the informers show into the fleet, and hands on what follows from it."""

import logging
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import NamedTuple

from crsyncer.core.content.object_content import key_of
from crsyncer.core.model import Json, Key
from crsyncer.fleet.controllers.alive import Liveness
from crsyncer.fleet.controllers.placements import Placements
from crsyncer.fleet.controllers.replica_queue import Replicas
from crsyncer.fleet.controllers.state import FleetState
from crsyncer.fleet.controllers.status_return import StatusReturn
from crsyncer.fleet.domain.change import Change, Input
from crsyncer.fleet.domain.fleet_calls import OBJECT_STATUSES, STRIPS
from crsyncer.fleet.domain.returned.combined_objects import COMBINED_STATUSES, STATUS_COLLECTORS
from crsyncer.fleet.domain.transport.keys import ROOT, at, split
from crsyncer.fleet.domain.values import PlacedKind

log = logging.getLogger(__name__)

Shown = Callable[[Key, Json], None]
Gone = Callable[[Key], None]


class Handlers(NamedTuple):
    """What is done about the objects of one collection."""

    shown: Shown
    gone: Gone
    listed: Callable[[], None]


class Intake:
    """Feeds each event to the fleet and its losses, in the order in which the server showed them."""

    def __init__(
        self, state: FleetState, *, replicas: Replicas, placements: Placements, returned: StatusReturn
    ) -> None:
        self._state = state
        self._returned = returned
        self._replicas = replicas
        self._placements = placements
        self.liveness = {shard: Liveness(state, take=self._proven, shard=shard) for shard in (ROOT, *state.shards)}
        """By shard."""
        self.listeners: list[Callable[[], None]] = []
        """Called when the kinds that placements name may be others."""
        self._blindness = state.losses.blindness()
        self._deleted_strips: set[str] = set()
        """FieldStrips of which nobody knows yet whether they were deleted or went with their kind."""

    def ask(self, names: Iterable[str]) -> None:
        """Have discovery asked for these inputs and kinds, each at its shard."""
        for name in names:
            self.liveness[split(name)[0]].ask([name])

    def take(self, change: Change, *, listed: str = "") -> None:
        """Take up what follows from an event; `listed`: the input or kind of which a list has just ended."""
        losses = self._state.losses
        losses.changed(change, self._state.now, listed=listed)
        self._returned.changed(change)
        self._replicas.look(change.keys)
        self._placements.touch(change.placements)
        for placement, robot in change.rewritten:
            self._placements.total_changed(placement, robot)
        if (blindness := losses.blindness()) != self._blindness:
            self._blindness = blindness
            self._replicas.look(losses.lost())

    def _proven(self, change: Change) -> None:
        self.take(change)
        self._judge_strips()
        self._replicas.proven()

    def inputs(self) -> Mapping[str, Handlers]:
        """What is done about each input, StatusCollectors and CombinedStatuses."""
        returned = self._returned
        found: dict[Input, tuple[Shown, Gone]] = {
            Input.ROBOTS: (self._robot_shown, lambda key: self.take(self._state.fleet.robot_gone(key.name))),
            Input.PROPERTIES: (self._properties_shown, self._properties_gone),
            Input.PLACEMENTS: (self._placement_shown, self._placement_gone),
            Input.DECISIONS: (self._placements.decision_shown, self._placements.decision_gone),
            Input.STRIPS: (self._strip_shown, self._strip_gone),
        }
        return {name: Handlers(*each, partial(self._input_listed, name)) for name, each in found.items()} | {
            STATUS_COLLECTORS: Handlers(returned.collector_shown, returned.collector_gone, returned.collectors_listed),
            COMBINED_STATUSES: Handlers(
                returned.combined_shown, returned.combined_gone, partial(returned.listed, COMBINED_STATUSES)
            ),
        }

    def reports(self, shard: str) -> Handlers:
        """What is done about the reports of a shard's robots."""
        return Handlers(
            lambda _, raw: self._placements.reports.shown(raw, shard),
            lambda key: self._report_gone(key, shard),
            lambda: self._placements.reports_listed(shard),
        )

    def object_statuses(self, shard: str) -> Handlers:
        """What is done about the statuses that robots of a shard return of what they share (F10.3)."""
        statuses, place = self._state.fleet.statuses, self._state.settings.robots_namespace

        def listed() -> None:
            statuses.listed.add(shard)
            self._returned.listed(OBJECT_STATUSES.resource)
            self._placements.touch(set(self._state.fleet.index.placements))

        return Handlers(
            lambda _, raw: self.take(statuses.shown(raw, shard=shard, robots_namespace=place)),
            lambda key: self.take(statuses.gone(key, shard=shard)),
            listed,
        )

    def objects(self, kind: PlacedKind) -> Handlers:
        """What is done about the objects of a kind that is listed from the beginning."""
        name, state = kind.name, self._state

        def listed() -> None:
            is_first = name not in state.fleet.listed
            self.take(state.fleet.inputs_listed(name), listed=name)
            if is_first:
                self._begin()
            self._returned.listed(name)
            self._placements.shard_changed(kind.shard)

        def shown(key: Key, raw: Json) -> None:
            if not state.fleet.is_seen(name, key, raw["metadata"]):
                self.object_shown(name, raw)

        return Handlers(shown, lambda key: self.object_gone(name, key), listed)

    def object_shown(self, resource: str, raw: Json) -> None:
        """An object of a placed kind is as it is shown."""
        self.take(self._state.fleet.object_shown(raw, resource))
        self._returned.object_shown(resource, key_of(raw), raw)

    def object_gone(self, resource: str, key: Key) -> None:
        """An object of a placed kind is gone."""
        self.take(self._state.fleet.object_gone(resource, key.namespace, key.name))
        self._returned.object_gone(resource, key)

    def sources_gone(self, kind: PlacedKind) -> None:
        """The objects of a kind that may not be placed, and that no placement names, are held no longer."""
        for key in self._state.fleet.index.forget_sources(kind.name):
            self._returned.object_gone(kind.name, Key(key.namespace, key.name))

    def object_written(self, resource: str, raw: Json) -> None:
        """The answer to a write of ours shows a replica; the watch's event of it will tell nothing more."""
        fleet, place = self._state.fleet, key_of(raw)
        is_news = not fleet.is_seen(resource, place, raw["metadata"])
        self.take(fleet.written(raw, resource))
        if is_news and fleet.replica_at(resource, place) is not None:
            self._returned.object_shown(resource, place, raw)

    def confirmed(self, name: str) -> None:
        """A list has shown all of an input or a kind: one that was not served is served again, maybe."""
        if name in self._state.fleet.dead | self.liveness[split(name)[0]].dead:
            self.ask([name])

    def kind_shown(self, kind: PlacedKind) -> None:
        """A kind is as the cloud shows it."""
        self.take(self._state.fleet.kind_shown(kind))
        self._placements.shard_changed(kind.shard)
        self._doubt_strips(kind.name)

    def kind_gone(self, name: str) -> None:
        """The CRD of a kind is gone, and its objects with it."""
        self._state.losses.unlisted(name)
        self._state.losses.gone(name)
        self.take(self._state.fleet.kind_gone(name))
        self._placements.shard_changed(split(name)[0])
        self._doubt_strips(name)

    def robots_gone(self) -> None:
        """The CRD of the Robots is gone, and they went with it: what was lost is held, until they are listed anew."""
        self._state.losses.gone(Input.ROBOTS)
        self._state.losses.served(Input.ROBOTS, is_served=False, now=self._state.now)
        self.take(self._state.fleet.served(Input.ROBOTS, is_served=False))

    def _doubt_strips(self, crd: str) -> None:
        """The CRD of FieldStrips has changed, and may be about to go. Its watch would tell much later (F4.2)."""
        if crd == STRIPS.resource:
            self.ask([Input.STRIPS])

    def unlisted(self, name: str) -> None:
        """A kind is about to be listed from the beginning: until then nothing of it is written."""
        self._state.fleet.listed.discard(name)
        self._state.losses.unlisted(name)

    def shard_read(self, shard: str) -> None:
        """A shard has shown which kinds it serves."""
        self._state.fleet.unread.discard(shard)
        self._placements.shard_changed(shard)

    def shard_changed(self, shard: str) -> None:
        """A shard is away, or back."""
        self._placements.shard_changed(shard)

    def rewound(self, name: str, shard: str) -> None:
        """A shard was restored or is another one: until a collection is listed again its versions tell nothing."""
        self._state.fleet.rewound.add(at(shard, name))
        self._state.losses.restored(is_restored=True, shard=shard)
        if shard == ROOT:
            self._placements.rewound()
            self._returned.rewound()

    def _input_listed(self, name: Input) -> None:
        is_first = name not in self._state.fleet.listed
        self.take(self._state.fleet.inputs_listed(name), listed=name)
        if is_first:
            self._begin()
        self._returned.listed(name)
        if is_first and name in (Input.PLACEMENTS, Input.DECISIONS):
            self._placements.touch(set(self._state.fleet.index.placements))

    def _begin(self) -> None:
        """Take up the losses of the kinds that are listed now with all that they depend on."""
        fleet = self._state.fleet
        ready = {resource for resource in fleet.index.kinds if fleet.is_ready(resource)}
        self._state.losses.started(self._state.now, ready)

    def _robot_shown(self, key: Key, raw: Json) -> None:
        self.take(self._state.fleet.robot_shown(raw))
        self._returned.robot_changed(key.name)

    def _properties_shown(self, key: Key, raw: Json) -> None:
        self.take(self._state.fleet.properties_shown(raw))
        self._returned.robot_changed(key.name)

    def _properties_gone(self, key: Key) -> None:
        self.take(self._state.fleet.properties_gone(key.name))
        self._returned.robot_changed(key.name)

    def _placement_shown(self, key: Key, raw: Json) -> None:
        self._placements.shown(key, raw)
        self.take(self._state.fleet.placement_shown(raw))
        self._replicas.look(self._state.losses.lost(of=raw["metadata"]["uid"]))  # it may terminate now
        self._tell()

    def _placement_gone(self, key: Key) -> None:
        change = self._state.fleet.placement_gone(key.namespace, key.name)
        self._placements.gone(key)
        self.take(change)
        self._tell()

    def _tell(self) -> None:
        for listener in self.listeners:
            listener()

    def _strip_shown(self, key: Key, raw: Json) -> None:
        self._deleted_strips.discard(key.name)
        self.take(self._state.fleet.strip_shown(raw))
        self._returned.strip_shown(key, raw)

    def _strip_gone(self, key: Key) -> None:
        """Its kind may be about to go: until discovery says that it is there, nothing is rendered anew (F4.2)."""
        self._deleted_strips.add(key.name)
        self.take(self._state.fleet.served(Input.STRIPS, is_served=False))
        self.ask([Input.STRIPS])

    def _judge_strips(self) -> None:
        """A strip that was deleted goes. One that went with its kind stays in force, or its fields reach robots (F4.2).

        It does so until it is made again and deleted, or until another leader knows nothing of it.
        """
        if Input.STRIPS in self.liveness[ROOT].dead:
            for name in self._deleted_strips:
                log.warning("FieldStrip %s went with its kind: it stays in force until it is made again", name)
            self._deleted_strips.clear()
        elif Input.STRIPS not in self._state.fleet.dead:
            for name in self._deleted_strips:
                self.take(self._state.fleet.strip_gone(name))
                self._returned.strip_gone(name)
            self._deleted_strips.clear()

    def _report_gone(self, key: Key, shard: str) -> None:
        self.liveness[shard].doubt_reports()
        self._placements.reports.gone(key, shard)
