"""What is stored of a fleet: the cloud's objects, with those of a file put over them."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from crsyncer.adapters.config import FleetSettings
from crsyncer.cli.fleet.given import group_of, is_of, is_plural
from crsyncer.cli.fleet.placed_kinds import PlacedKinds, read_crd
from crsyncer.console.compare import lister
from crsyncer.core.holds.kind_served import is_alive
from crsyncer.core.model import Json
from crsyncer.core.requests.calls import Collection, discovery
from crsyncer.errors import SyncError
from crsyncer.fleet.domain.fleet_calls import PLACEMENTS, PROPERTIES, STRIPS, objects_of
from crsyncer.fleet.domain.read_objects import kind_of
from crsyncer.fleet.domain.values import PlacedKind, Placement
from crsyncer.ports import Reply, Send

if TYPE_CHECKING:
    from crsyncer.cli.fleet.cloud import Shards

FAR_FUTURE = "9999-12-31T23:59:59Z"
"""The creationTimestamp of an object that is not stored yet: it is younger than everything."""
_ABSENT: Json = {"metadata": {"uid": "", "creationTimestamp": FAR_FUTURE}}
_SERVERS = ("uid", "resourceVersion", "creationTimestamp", "generation", "deletionTimestamp", "finalizers")
"""What of an object's metadata only the server sets."""


@dataclass(frozen=True, slots=True)
class Objects:
    """Objects that count as stored, each kind by its group and kind."""

    settings: FleetSettings
    send: Send | None = None
    """None: no server is asked."""
    given: tuple[Json, ...] = ()
    """The objects of the file."""
    shards: "Shards" = field(default_factory=dict)
    """Those that may be asked for the kinds that they serve."""

    @property
    def kinds(self) -> PlacedKinds:
        """The kinds that may be placed."""
        return PlacedKinds(self.send, self.given, inventory=self.settings.robots)

    async def placements(self, namespace: str) -> list[Json]:
        """The RobotPlacements of a namespace."""
        return await self._stored(replace(PLACEMENTS, namespace=namespace), "RobotPlacement")

    async def strips(self) -> list[Json]:
        """All FieldStrips."""
        return await self._stored(STRIPS, "FieldStrip")

    async def robot(self, name: str) -> Json | None:
        """A Robot of the inventory."""
        plural, _, group = self.settings.robots.partition(".")
        given = [each for each in self.given if group_of(each) == group and is_plural(plural, each["kind"])]
        place = Collection(group, "", plural, self.settings.robots_namespace, name=name)
        if self.send is not None:
            if (known := await robots_place(self.send, self.settings)) is None:
                raise no_robots(self.settings)
            place = replace(known, name=name)
        return next(iter(await self._with(place, given)), None)

    async def properties(self, robot: str) -> Json | None:
        """The ConfigMap with a robot's properties."""
        place = replace(PROPERTIES, name=robot)
        return next(iter(await self._stored(place, "ConfigMap")), None)

    async def sources(self, kind: PlacedKind, placement: Placement) -> list[Json]:
        """The objects of a kind that a placement may select: by their names where all its entries have some."""
        place = objects_of(kind, placement.namespace)
        entries = [entry for entry in placement.entries if entry.kind.full_name == kind.resource]
        if not all(entry.names for entry in entries):
            return await self._stored(place, kind.kind)
        names = sorted({name for entry in entries for name in entry.names})
        return [raw for name in names for raw in await self._stored(replace(place, name=name), kind.kind)]

    async def _stored(self, place: Collection, kind: str) -> list[Json]:
        return await self._with(place, [each for each in self.given if is_of(each, place.group, kind)])

    async def _with(self, place: Collection, given: Iterable[Json]) -> list[Json]:
        found: dict[str, Json] = {}
        if self.send is not None:
            found = {raw["metadata"]["name"]: raw async for raw in lister.objects(self.send, place)}
        for raw in given:
            namespace, name = raw["metadata"]["namespace"], raw["metadata"]["name"]
            if place.namespace in ("", namespace) and place.name in ("", name):
                found[name] = over(raw, found.get(name, _ABSENT), place)
        return [found[name] for name in sorted(found)]


def over(raw: Json, stored: Json | None, place: Collection) -> Json:
    """An object of the file with what only the server has of it."""
    metadata = {**raw["metadata"], "namespace": place.namespace}
    if not place.namespace:
        del metadata["namespace"]
    of_server = {} if stored is None else {key: each for key, each in stored["metadata"].items() if key in _SERVERS}
    return {**raw, "metadata": metadata | of_server}


async def robots_place(send: Send, settings: FleetSettings) -> Collection | None:
    """Where the Robots are, as their CRD says; None: there is no such kind. Raises SyncError."""
    if (crd := await read_crd(send, settings.robots)) is None:
        return None
    kind = kind_of(crd, {})
    return objects_of(kind, settings.robots_namespace)


async def dead_kinds(send: Send, *places: Collection) -> set[str]:
    """Those of these kinds that discovery does not show, or shows as being deleted: they list on (S5.5a)."""
    dead, answers = set[str](), dict[tuple[str, str], Reply]()
    for place in places:
        version = (place.group, place.version)
        if version not in answers:
            answers[version] = await send(discovery(*version))
        if is_alive(place.plural, answers[version].status, answers[version].body) is False:
            dead.add(place.resource)
    return dead


def no_robots(settings: FleetSettings) -> SyncError:
    """What is said where the kind of the Robots is not there."""
    return SyncError(f"the cloud has no kind {settings.robots}", hint="crsyncer fleet crds --inventory prints one")
