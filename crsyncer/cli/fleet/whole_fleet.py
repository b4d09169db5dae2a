"""Loads a whole fleet once from the cloud, in the order in which the controller takes it up (F1.1)."""

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from crsyncer.adapters.config import FleetSettings
from crsyncer.cli.fleet.cloud import not_given
from crsyncer.cli.fleet.placed_kinds import PlacedKinds
from crsyncer.cli.fleet.stored import dead_kinds, no_robots, robots_place
from crsyncer.console.compare import lister
from crsyncer.core.kinds.kind_name import Resource
from crsyncer.core.model import Json
from crsyncer.errors import NotAllowed, NotServed, SyncError
from crsyncer.fleet.domain.change import Change, Input
from crsyncer.fleet.domain.fleet import Fleet
from crsyncer.fleet.domain.fleet_calls import DECISIONS, PLACEMENTS, PROPERTIES, STRIPS, objects_of
from crsyncer.fleet.domain.losses import Losses
from crsyncer.fleet.domain.names import SOURCE
from crsyncer.fleet.domain.read_objects import placement_of, row_of
from crsyncer.fleet.domain.resolution import is_built_in
from crsyncer.fleet.domain.rollout.decisions import Decision, decision_of
from crsyncer.fleet.domain.shown.fleet_reasons import SHARD_HINT
from crsyncer.fleet.domain.transport.keys import ROOT, on_shard
from crsyncer.fleet.domain.values import GROUP, PlacedKind, Placement
from crsyncer.ports import Send

if TYPE_CHECKING:
    from crsyncer.cli.fleet.cloud import Shards


@dataclass(slots=True)
class WholeFleet:
    """A fleet as a new leader would find it. Events may follow."""

    settings: FleetSettings
    fleet: Fleet
    losses: Losses
    now: float
    """Unix time by the API server's clock."""
    placements: dict[str, Json] = field(default_factory=dict)
    """The placements as they are stored, by NAMESPACE/NAME."""
    decisions: list[Decision] = field(default_factory=list)
    marked: list[tuple[str, str, str]] = field(default_factory=list)
    """Kind, namespace and name of what has our label and is no replica."""
    acted: set[str] = field(default_factory=set)
    """Kinds without a CRD of which something in the cloud has written the status of a source."""
    failures: list[SyncError] = field(default_factory=list)
    """What could not be listed; what depends on it is not known."""
    away: dict[str, SyncError] = field(default_factory=dict)
    """Why a shard could not be read, by its name."""

    def unknown(self, *robots: str) -> list[SyncError]:
        """What is not known of these robots (none: of all): one error for each shard, and all failures."""
        fleet = self.fleet
        fleet.unread |= {each.shard for each in fleet.index.robots.values()} - fleet.shards
        fleet.shards |= fleet.unread  # the controller may know them
        asked = {fleet.index.shard_of(name) for name in robots} if robots else fleet.unread
        return [*self.failures, *(self.away.get(each) or not_given(each) for each in sorted(asked & fleet.unread))]

    def take(self, change: Change) -> None:
        """Take up what follows from an event."""
        self.losses.changed(change, self.now)

    def listed(self, *resources: str) -> None:
        """These kinds are listed, and with them all that a decision about their replicas depends on."""
        self.take(self.fleet.inputs_listed(*resources))
        self.losses.started(self.now, set(resources))


async def load_fleet(
    send: Send, settings: FleetSettings, shards: "Shards", *, named: Sequence[Placement] = ()
) -> WholeFleet:
    """The fleet as the cloud and its shards have it. `named`: placements to come, whose kinds are loaded as well.

    Raises SyncError where the root does not answer, or where Robots or placements cannot be listed. A kind that
    cannot be listed is a failure of that kind alone, and a shard that cannot be read is `away`.
    """
    now = (await lister.first_answer(send)).date
    fleet = Fleet(home=settings.controller_namespace, shards=[ROOT, *shards])
    found = WholeFleet(settings, fleet, Losses(fleet), time.time() if now is None else now)
    await _load_inputs(send, found)
    placements = [*map(placement_of, found.placements.values()), *named]
    kinds = await PlacedKinds(send, (), inventory=settings.robots).all(named_kinds(placements))
    for kind in kinds.values():
        fleet.kind_shown(kind)
    for raw in found.placements.values():
        fleet.placement_shown(raw)
    await _load_objects(send, found, kinds, placements)
    await asyncio.gather(*(_load_shard(name, there, found, placements) for name, there in shards.items()))
    found.unknown()
    return found


async def _load_shard(shard: str, send: Send | SyncError, found: WholeFleet, placements: Iterable[Placement]) -> None:
    """The kinds and replicas of a shard. Until its kinds are known, nobody knows what its robots have."""
    try:
        if isinstance(send, SyncError):
            raise send
        placed = PlacedKinds(send, (), inventory=found.settings.robots)
        kinds = await placed.all(named_kinds(placements))
    except SyncError as error:
        found.away[shard] = SyncError(f"shard {shard} cannot be read: {error}", hint=error.hint or SHARD_HINT)
        return
    there = {name: kind.at_shard(shard) for name, kind in kinds.items()}
    for kind in there.values():
        found.fleet.kind_shown(kind)
    found.fleet.unread.discard(shard)
    await _load_objects(send, found, there, placements)


def stored_placement(found: WholeFleet, name: str) -> Json:
    """A placement, by NAMESPACE/NAME. Raises SyncError where there is none."""
    if name not in found.placements:
        namespace = name.partition("/")[0]
        known = ", ".join(sorted(each for each in found.placements if each.startswith(f"{namespace}/"))) or "none"
        raise SyncError(f"there is no RobotPlacement {name}", hint=f"those in {namespace}: {known}")
    return found.placements[name]


def named_kinds(placements: Iterable[Placement]) -> list[Resource]:
    """The kinds that placements name."""
    return list(dict.fromkeys(kind for each in placements for kind in each.named))


async def _load_inputs(send: Send, found: WholeFleet) -> None:
    """Robots, properties, strips and Decisions; the placements are shown when their kinds are known."""
    fleet, robots = found.fleet, await robots_place(send, found.settings)
    dead = await dead_kinds(send, PLACEMENTS, STRIPS, *(() if robots is None else (robots,)))
    if robots is None:
        found.failures.append(no_robots(found.settings))
    else:
        async for raw in lister.objects(send, robots):
            fleet.robot_shown(raw)
    inputs = {PLACEMENTS.resource: Input.PLACEMENTS, STRIPS.resource: Input.STRIPS, found.settings.robots: Input.ROBOTS}
    for name in dead if robots is not None else {found.settings.robots, *dead}:
        fleet.served(inputs[name], is_served=False)
    async for raw in lister.objects(send, PROPERTIES):
        fleet.properties_shown(raw)
    with suppress(NotServed):
        async for raw in lister.objects(send, STRIPS):
            fleet.strip_shown(raw)
    try:
        async for raw in lister.objects(send, PLACEMENTS):
            metadata = raw["metadata"]
            found.placements[f"{metadata['namespace']}/{metadata['name']}"] = raw
        async for raw in lister.objects(send, DECISIONS):
            found.decisions.append(decision_of(raw))
    except NotServed as error:
        raise SyncError(f"the cloud does not serve {GROUP}: {error}", hint="crsyncer fleet crds prints it") from None
    found.listed(*Input)


async def _load_objects(
    send: Send, found: WholeFleet, kinds: Mapping[str, PlacedKind], placements: Iterable[Placement]
) -> None:
    """The objects of each kind. One of which the CRD is being deleted has objects, and lists them."""
    named = {each.full_name for each in named_kinds(placements)}
    for name in sorted(kinds):
        if kinds[name].version:
            await load_kind(send, found, kinds[name], is_needed=name in named or not kinds[name].shared)


async def load_kind(send: Send, found: WholeFleet, kind: PlacedKind, *, is_needed: bool = True) -> None:
    """The objects of a kind, the sources before the replicas. Of a kind that is not served yet there are none.

    Not needed is a kind that all robots get and no placement names: who may not list it misses only what is left over.
    """
    try:
        await _show_objects(send, found, kind)
    except NotServed:
        found.listed(kind.name)
    except SyncError as error:
        if not is_needed and isinstance(error, NotAllowed):
            return
        found.failures.append(SyncError(f"{on_shard(kind.name)} cannot be listed: {error}", hint=error.hint))
    else:
        found.listed(kind.name)


async def _show_objects(send: Send, found: WholeFleet, kind: PlacedKind) -> None:
    for selector in (f"!{SOURCE}", SOURCE):
        async for raw in lister.objects(send, objects_of(kind, selector=selector)):
            metadata = raw["metadata"]
            # Items of lists of built-in kinds have neither (k8s.io/apiserver drops them): the list has.
            raw |= {"apiVersion": kind.api_version, "kind": kind.kind}
            found.fleet.object_shown(raw, kind.name)
            if selector == SOURCE and row_of(raw, kind.resource) is None:
                found.marked.append((kind.name, metadata.get("namespace") or "", metadata["name"]))
            if selector != SOURCE and kind.shard == ROOT and raw.get("status") and is_built_in(kind):
                found.acted.add(kind.resource)
