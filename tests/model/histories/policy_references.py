"""What primaries refer to, now and before, and where the copies of that may be (C5), as a judge sees it."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from crsyncer.core.model import Json, Side
from tests.model.histories.policy_history import (
    FORMS,
    IN_CLOUD,
    PLACES,
    RESOURCES,
    SETS,
    Setup,
    name_of_form,
    resource_of,
)
from tests.model.scenes.projected import FLEET
from tests.model.simulation.check import labels
from tests.model.simulation.life import ROBOT
from tests.model.simulation.plane import GROUP, Plane
from tests.model.simulation.scene import roles
from tests.model.simulation.storage import Change, Where
from tests.model.simulation.world import World

if TYPE_CHECKING:
    from tests.model.histories.policy_check import PolicyChecker

GOALS = f"goals.{GROUP}"
_IN_CLOUD = {kind if kind in RESOURCES else f"{kind}.{GROUP}": f"{plural}.{FLEET}" for kind, plural in IN_CLOUD.items()}
_BEHIND_SECONDS = 120.0
"""How far one watch may be behind another."""
_ON_ROBOT = {there: here for here, there in _IN_CLOUD.items()} | {name_of_form(form): GOALS for form in FORMS if form}
_OF_GOALS = {GOALS, *map(name_of_form, FORMS)}
"""What goals may be called in the cloud."""


class PolicyReferences:
    """What the primaries of one world refer to. What they are is known by `checker`."""

    def __init__(self, world: World, setup: Setup, checker: "PolicyChecker") -> None:
        self._world = world
        self._setup = setup
        self._checker = checker
        self._up, self._down = roles(world, setup.source)
        self.origins = {resource_of(each): Side(each["origin"]) for each in setup.entries}
        """The side of the originals, by resource."""
        self.entries = setup.entries
        """Those of `related` in the policy at the moment."""
        self.changed: list[float] = []
        """When entries were taken out of the policy or put back."""
        self.free: dict[tuple[str, Where], float] = {}
        """By resource and place, when last nothing referred to an original."""
        self.needed: dict[tuple[str, Where], float] = {}
        """By resource and place, when last something referred to an original by an entry that there is."""
        self.places: dict[tuple[str, Where], set[Where]] = defaultdict(set)
        """By resource and place of an original, where its copy may ever have been wanted."""

        self.users: dict[tuple[str, Where], set[str]] = defaultdict(set)
        """By resource and place of an original, the primaries (uids, upstream's) that ever referred to it."""
        self._ghosts: dict[str, tuple[Where, Json]] = {}
        """By uid of a primary, its copy as it was when it was last there, and where."""
        self._gone: dict[str, tuple[tuple[Where, Json], float]] = {}
        """By uid of a primary that was deleted upstream or given away, where and as what it was there, until when."""
        self.last: dict[str, set[tuple[str, Where]]] = {}
        """By uid of a primary, what it referred to when it was last synced: resources and places."""
        self.specs: dict[str, Json] = {}
        """By uid, upstream's spec of a primary as it was then."""
        self._former: dict[tuple[Side, str], list[tuple[Json, float]]] = defaultdict(list)
        """By side and uid of a primary: the specs that it had before its present one, and until when each."""

    def change_entries(self, entries: Iterable[Json]) -> None:
        """Somebody changes the entries of the policy, or deletes it."""
        self.entries = tuple(entries)
        self.changed.append(self._world.clock.now)
        self.note()

    def of(self, resource: str) -> list[Json]:
        """The entries about a kind that the policy may have."""
        return [each for each in self._setup.entries if resource_of(each) == resource]

    def places_of(self, resource: str, name: str) -> list[Where]:
        """Where copies of the originals of a name may ever have been wanted."""
        found = [places for (kind, where), places in self.places.items() if (kind, where[1]) == (resource, name)]
        return sorted({place for places in found for place in places})

    def wanted(self, resource: str, entries: Iterable[Json], *, copied: bool = False) -> dict[Where, set[Where]]:
        """The originals that primaries refer to by these entries, there or not, and where their copies may be.

        `copied`: only by primaries that are on both sides.
        """
        found: dict[Where, set[Where]] = {}
        for _, original, place in self._references(resource, entries, copied=copied):
            found.setdefault(original, set()).add(place)
        return found

    def _references(
        self, resource: str, entries: Iterable[Json], *, copied: bool = False, lost: bool = False, before: bool = False
    ) -> Iterator[tuple[str, Where, Where]]:
        """The uid of a primary, what it refers to, and where the copy of that may be.

        `lost`: also those whose copies said so last, and are gone, or whose copies are there, and upstream has gone:
        that comes to be known late; and those that are being deleted, once an agent has lost its store: what they
        referred to before somebody edited them is forgotten. `before`: as they were a moment ago.
        """
        side = self.origins[resource]
        plane, checker = self._world.planes[side], self._checker
        uids = {checker.of(each) for each in objects_of(self._down, GOALS).values()}
        found = [*objects_of(plane, GOALS).items()]
        if lost:  # also what the policy does not mean any more
            found += [((place, name), each) for (_, place, name), each in elsewhere(plane).items()]
        if side is self._down.side:
            self._ghosts |= {checker.of(primary): (where, primary) for where, primary in found}
            found += [each for uid, each in self._ghosts.items() if lost and uid not in uids]
        elif before:
            found += [each for each, until in self._gone.values() if self._world.clock.now - until < _BEHIND_SECONDS]
        for where, primary in found:
            known = bool(checker.of(primary)) or not checker.projections.is_meant(primary)
            there = "deletionTimestamp" not in primary["metadata"] and known
            there |= checker.forgot and checker.is_selected(primary)
            if not (checker.is_synced(primary, side) or (lost and there)):
                continue
            if copied and not self._is_copied(primary, side, uids):
                continue
            uid = checker.of(primary) if side is self._down.side else primary["metadata"]["uid"]
            for entry in entries:
                if resource_of(entry) == resource:
                    for spec in self._specs_before(side, primary) if before else [primary["spec"]]:
                        for original in _originals(entry, where, spec, objects_of(plane, resource)):
                            for naming in self._setup.namings or ({},):
                                yield uid, original, _place(entry, original, naming)

    def _specs_before(self, side: Side, primary: Json) -> list[Json]:
        """The specs that a primary had until a moment ago, and has: a watch may be behind that of the originals."""
        former = self._former[side, primary["metadata"]["uid"]]
        return [primary["spec"], *(s for s, until in former if self._world.clock.now - until < _BEHIND_SECONDS)]

    def changed_primary(self, side: Side, change: Change) -> None:
        """Somebody changed a primary."""
        before, after = change.before, change.after
        if before is not None and after is not None and before["spec"] != after["spec"]:
            self._former[side, after["metadata"]["uid"]].append((before["spec"], self._world.clock.now))
        if before is not None and side is self._up.side and self._checker.is_synced(before, side):
            metadata = before["metadata"]
            if after is None or not self._checker.is_synced(after, side):
                where = (metadata.get("namespace", ""), metadata["name"])
                self._gone[metadata["uid"]] = (where, before), self._world.clock.now

    def note(self) -> None:
        """Note which originals something refers to now, and which nothing does by any entry that there ever was."""
        originals, up = objects_of(self._up, GOALS).values(), self._up.side
        synced = [each for each in originals if self._checker.is_synced(each, up)]
        self.specs |= {each["metadata"]["uid"]: each["spec"] for each in synced}
        last: dict[str, set[tuple[str, Where]]] = {each["metadata"]["uid"]: set() for each in synced}
        now = self._world.clock.now
        for resource, side in self.origins.items():
            for _, where, _ in self._references(resource, self.entries, before=True):
                self.needed[resource, where] = now
            wanted = {where for _, where, _ in self._references(resource, self._setup.entries)}
            for uid, where, place in self._references(resource, self._setup.entries, lost=True):
                self.places[resource, where].add(place)
                self.users[resource, where].add(uid)
                if uid in last:
                    last[uid].add((resource, where))
            for _, where, place in self._references(resource, self._setup.entries, lost=True, before=True):
                self.places[resource, where].add(place)
            for where in objects_of(self._world.planes[side], resource).keys() - wanted:
                self.free[resource, where] = now
        self.last |= last

    def _is_copied(self, primary: Json, side: Side, uids: set[str]) -> bool:
        """Whether a primary is on both sides, and no duplicate may be in place of it (C2.6)."""
        of = self._checker.of(primary)
        return of not in self._checker.twins if side is self._down.side else primary["metadata"]["uid"] in uids


def spec_of(maps: int, secrets: int, n: int) -> Json:
    """The spec of a primary that refers to these."""
    return {
        "maps": [*SETS[maps]],
        "configmaps": [*SETS[maps]],
        "parts": [*SETS[maps]],
        "secrets": [*SETS[secrets]],
        "n": n,
        "home": PLACES[maps % 3],
    }


def objects_of(plane: Plane, resource: str) -> dict[Where, Json]:
    """A cluster's objects of a kind, which the robot calls so, under the name that it has there at present."""
    return {**plane.server.storage.of(plane.names.get(resource, resource))}


def elsewhere(plane: Plane) -> dict[tuple[str, str, str], Json]:
    """A cluster's objects of kinds that could be goals and are not at present, by kind, namespace and name."""
    others = sorted(_OF_GOALS - {plane.names.get(GOALS, GOALS)})
    return {(kind, *where): each for kind in others for where, each in plane.server.storage.of(kind).items()}


def on_robot(resource: str) -> str:
    """What the robot calls a kind, wherever it is."""
    return _ON_ROBOT.get(resource, resource)


def _originals(entry: Json, primary: Where, spec: Json, originals: dict[Where, Json]) -> set[Where]:
    """What a primary at a place refers to by an entry (C5.1)."""
    place, name = primary
    rule = entry["object"]
    if "namespace" in rule:
        made = rule["namespace"].replace("{/spec/home}", spec.get("home", ""))
        if not made:
            return set()
        place = made
    elif not place:
        return set()  # a cluster-scoped primary has no namespace: that is `RelatedFailed`
    match rule:
        case {"reference": _}:
            return {(place, each) for each in spec.get(entry["resource"]["resource"]) or ()}
        case {"name": _}:
            return {(place, f"{name}-{spec['n']}")} if "n" in spec else set()
        case _:
            edge = {"tier": "edge"}.items()
            return {where for where, each in originals.items() if where[0] == place and edge <= labels(each).items()}


def _place(entry: Json, original: Where, of_kind: Json) -> Where:
    """Where the copy of an original is made, by an entry of a policy with this naming (C5.2)."""
    values = {"{namespace}": original[0], "{name}": original[1], "{robot}": ROBOT}
    own, made = entry.get("naming") or {}, []
    default = {"namespace": of_kind.get("namespace", "{namespace}"), "name": "{name}"}
    for key in ("namespace", "name"):
        text = own.get(key, default[key])
        for placeholder, value in values.items():
            text = text.replace(placeholder, value)
        made.append(text)
    return made[0], made[1]
