"""Events tried on a fleet that was loaded: the objects of a file are stored, a placement is deleted."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from crsyncer.cli.fleet.given import group_of, is_crd, is_of, is_plural
from crsyncer.cli.fleet.placed_kinds import PlacedKinds
from crsyncer.cli.fleet.stored import FAR_FUTURE, over, robots_place
from crsyncer.cli.fleet.whole_fleet import WholeFleet, load_kind, named_kinds, stored_placement
from crsyncer.core.kinds.sync_policy import KIND as SYNC_POLICY
from crsyncer.core.model import Json
from crsyncer.core.requests.calls import SYNC_POLICIES, Call, Collection
from crsyncer.errors import ConfigError, Never, SyncError
from crsyncer.fleet.domain.change import Change
from crsyncer.fleet.domain.fleet_calls import PLACEMENTS, PROPERTIES, STRIPS, objects_of
from crsyncer.fleet.domain.read_objects import placement_of
from crsyncer.fleet.domain.rendering import UNSHOWN
from crsyncer.fleet.domain.transport.keys import ROOT
from crsyncer.fleet.domain.values import PROPERTIES_NAMESPACE, PlacedKind, Placement, Verdict
from crsyncer.ports import Send

_DRY_RUN = (("dryRun", "All"),)


def given_placements(given: Sequence[Json]) -> list[Placement]:
    """The placements in a file. Raises ConfigError for one that cannot be followed."""
    found = [placement_of(_unstored(raw)) for raw in given if is_of(raw, PLACEMENTS.group, "RobotPlacement")]
    for each in found:
        if each.problem:
            raise ConfigError(f"RobotPlacement {each.text}: {each.problem}")
    return found


def try_deletion(found: WholeFleet, placement: str) -> None:
    """A placement is deleted. Raises SyncError where there is none."""
    raw = stored_placement(found, placement)
    deleted = {**raw["metadata"], "deletionTimestamp": raw["metadata"]["creationTimestamp"]}
    found.take(found.fleet.placement_shown({**raw, "metadata": deleted}))


async def try_objects(send: Send, found: WholeFleet, given: Sequence[Json]) -> list[str]:
    """The objects of a file are stored. What there is to say about them, a line each. Raises SyncError.

    Each is tried on the server as a dry run, which changes nothing: its defaults and refusals are those of the server.
    Where the account may not try, an object counts as it is written.
    """
    trial = _Trial(send, found)
    kinds = PlacedKinds(send, given, inventory=found.settings.robots)
    for kind in (await kinds.all(named_kinds(found.fleet.index.placements.values()))).values():
        await trial.kind(kind)
    robots = await robots_place(send, found.settings)
    for each in named_kinds(given_placements(given)):
        await trial.kind(await kinds.kind(each.group, each.resource))
    for raw in given:
        await trial.show(raw, robots)
    return trial.notes


@dataclass(slots=True)
class _Trial:
    send: Send
    found: WholeFleet
    notes: list[str] = field(default_factory=list)

    async def kind(self, kind: PlacedKind) -> None:
        """A kind is as the file says; its objects are loaded where they were not yet."""
        fleet = self.found.fleet
        is_known = kind.resource in fleet.listed or fleet.index.kinds.get(kind.resource) == kind
        self.found.take(fleet.kind_shown(kind))
        if not is_known and kind.verdict is not Verdict.NOT_SERVED:
            await load_kind(self.send, self.found, kind)

    async def show(self, raw: Json, robots: Collection | None) -> None:
        """One object is stored, as what it is."""
        fleet, changes = self.found.fleet, list[Change]()
        if is_crd(raw) or is_of(raw, SYNC_POLICIES.group, SYNC_POLICY):
            return
        namespace = raw["metadata"]["namespace"]
        if is_of(raw, PLACEMENTS.group, "RobotPlacement"):
            changes.append(fleet.placement_shown(await self._stored(raw, replace(PLACEMENTS, namespace=namespace))))
        elif is_of(raw, STRIPS.group, "FieldStrip"):
            changes.append(fleet.strip_shown(await self._stored(raw, STRIPS)))
        elif robots is not None and _is_robot(raw, robots):
            changes.append(fleet.robot_shown(await self._stored(raw, robots)))
        if is_of(raw, "", "ConfigMap") and namespace == PROPERTIES_NAMESPACE:
            changes.append(fleet.properties_shown(await self._stored(raw, PROPERTIES)))
        kinds = [each for each in fleet.index.kinds.values() if each.shard == ROOT]
        for kind in [each for each in kinds if is_of(raw, each.group, each.kind)]:
            stored = await self._stored(raw, objects_of(kind, namespace), is_sensitive=kind.sensitive)
            changes.append(fleet.object_shown(stored, kind.resource))
        for change in changes:
            self.found.take(change)
        if not changes:
            self.notes.append(f"{_named(raw)} changes no replica: its kind is no part of a fleet")

    async def _stored(self, raw: Json, place: Collection, *, is_sensitive: bool = False) -> Json:
        """An object as the server would store it. Raises SyncError where it would refuse it."""
        name = raw["metadata"]["name"]
        reply = await self.send(Call("get", "GET", f"{place.path}/{name}", sensitive=is_sensitive))
        old = reply.body if reply.status == 200 else None
        new = over(raw, old, place)
        method, path = ("POST", place.path) if old is None else ("PUT", f"{place.path}/{name}")
        verb = "create" if old is None else "update"
        tried = await self.send(Call(verb, method, path, _DRY_RUN, body=new, sensitive=is_sensitive))
        match tried.error():
            case None:
                return tried.body
            case Never() as error:
                words = UNSHOWN if is_sensitive else str(error)
                raise SyncError(f"the cloud refuses {_named(raw)}: {words}")
            case _:
                self.notes.append(f"{_named(raw)} counts as it is written: the cloud takes no dry run of it")
                return new if old is not None else _unstored(new)


def _is_robot(raw: Json, robots: Collection) -> bool:
    is_one = group_of(raw) == robots.group and is_plural(robots.plural, raw["kind"])
    return is_one and raw["metadata"]["namespace"] == robots.namespace


def _unstored(raw: Json) -> Json:
    metadata = raw["metadata"]
    made = {"uid": f"new {_named(raw)}", "resourceVersion": "0", "creationTimestamp": FAR_FUTURE}
    return {**raw, "metadata": {**made, **metadata}}


def _named(raw: Json) -> str:
    namespace = raw["metadata"].get("namespace")
    return (
        f"{raw['kind']} {namespace}/{raw['metadata']['name']}"
        if namespace
        else f"{raw['kind']} {raw['metadata']['name']}"
    )
