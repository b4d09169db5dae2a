"""What controllers must never do, whatever befalls them. Each FleetWorld has this judge.

It knows what is stored, and what was stored a while ago: a controller may act on what it has seen in the last
`_SEEN_SECONDS`, and no earlier, but for what befell its link.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import islice, product
from typing import TYPE_CHECKING

from crsyncer.core.model import Json
from crsyncer.core.requests.calls import Call
from crsyncer.fleet.domain.lease import TIMEOUT_SECONDS
from tests.fleet_model import oracle, returned_judge
from tests.fleet_model.judged_objects import (
    Moment,
    content_of,
    differences,
    distinct,
    has_guards,
    is_lease,
    is_replica,
    marks,
    owned,
    unmarked,
    without_status,
)
from tests.fleet_model.oracle import PLACEMENTS, ROBOT_LABEL, ROBOTS, SHARED, SOURCE, Expected, Place
from tests.fleet_model.protection import Protection
from tests.model.simulation.schema import admitted
from tests.model.simulation.storage import Change

if TYPE_CHECKING:
    from tests.fleet_model.fleet_world import FleetWorld
    from tests.fleet_model.process import Process
    from tests.fleet_model.world_parts import Write

LEASES = "leases.coordination.k8s.io"
DECISIONS = f"robotplacementdecisions.{oracle.FLEET}"
FINALIZER = f"{oracle.FLEET}/placement"
_INPUTS = (ROBOTS, PLACEMENTS, DECISIONS, oracle.STRIPS, "configmaps")
"""What must be listed before anything is written (F1.1)."""
_TAMPERED_SECONDS = 40.0
"""After somebody else wrote the Lease, two controllers may lead for a while."""
_SEEN_SECONDS = 10.0
_WELL_SECONDS = 60.0
"""So long after a trouble of a link everything is seen again."""
_MOST_VIEWS = 3000
_COMBINED, _COLLECTORS = f"combinedstatuses.{oracle.FLEET}", f"statuscollectors.{oracle.FLEET}"
"""What is said of a StatusCollector depends on nothing else."""
_OWN = (LEASES, DECISIONS, _COMBINED, f"robotsyncstates.{oracle.FLEET}")
"""Nothing that shall be there depends on these."""


@dataclass(slots=True)
class FleetJudge:
    """Watches the controllers of one world. Violations are collected; the world raises them at its end."""

    world: "FleetWorld"
    only_lease: bool = False
    returned: bool = False
    """What is made of returned statuses is judged too: all robots are unreported, and nobody else writes statuses."""
    """The controllers are none: they lead, and write anything."""
    violations: list[str] = field(default_factory=list)
    listed: dict[str, set[str]] = field(default_factory=dict)
    """By identity: the kinds of which a process has had a whole list."""
    _writing: bool = False
    """A controller's request is being carried out."""
    _tampered: float = -_TAMPERED_SECONDS
    """When somebody else wrote the Lease."""
    _moments: deque[Moment] = field(default_factory=deque)
    _trouble: tuple[float, float] | None = None
    """When a link was ill first, and last."""
    _ill: bool = False
    _former: deque[tuple[float, Json]] = field(default_factory=lambda: deque(maxlen=50))
    """Decisions before they were changed, and when: a write may be on its way that they announced."""

    protection: Protection = field(default_factory=Protection)

    def __post_init__(self) -> None:
        self.world.server.storage.listeners.append(self._changed)

    def _changed(self, change: Change) -> None:
        if change.resource == LEASES and not self._writing:
            self._tampered = self.world.clock.now
        raw = change.after or change.before
        if change.resource == DECISIONS and change.before is not None:
            self._former.append((self.world.clock.now, change.before))
        if raw is None or change.resource in _OWN or (change.resource not in _INPUTS and is_replica(raw)):
            return
        self._moments.append(Moment(self.world.clock.now, self.world.server.storage.snapshot().objects))
        if self.protection.kept:
            self.protection.seen(self._moments[-1].expected(self.world.home))
        while len(self._moments) > 1 and self._moments[1].time < self._since(patient=True) - 600.0:
            self._moments.popleft()

    def lost(self, before: Moment, why: str, *, is_restored: bool = False) -> None:
        """Something was lost other than by an edit: what was there `before`, and is wanted no more, must stay (F5.2).

        After a restore that is all: nobody knows why it is not wanted.
        """
        now = self.moment()
        self._moments.append(now)
        expected, former = now.expected(self.world.home), before.expected(self.world.home)
        found = {
            (resource, *where): raw
            for resource in oracle.placeable(now.objects)
            for where, raw in now.objects.get(resource, {}).items()
            if is_replica(raw) and (place := (resource, *where)) not in expected and (is_restored or place in former)
        }
        self.protection.protect(found, why, [self.world.processes[name].identity for name in self.world.leaders])

    def moment(self) -> Moment:
        """What is stored now."""
        return Moment(self.world.clock.now, self.world.server.storage.snapshot().objects)

    def rewound(self) -> None:
        """The cloud went back: so did the Lease."""
        self._tampered = self.world.clock.now

    # Links

    def trouble(self) -> None:
        """Something befalls a link from now on."""
        now = self.world.clock.now
        began = self._trouble[0] if self._trouble is not None and self._recent(now) else now
        self._trouble, self._ill = (began, now), True

    def well(self) -> None:
        """Nothing befalls any link any more."""
        if self._ill and self._trouble is not None:
            self._trouble, self._ill = (self._trouble[0], self.world.clock.now), False

    def _recent(self, now: float) -> bool:
        return self._ill or (self._trouble is not None and now < self._trouble[1] + _WELL_SECONDS)

    def _since(self, *, patient: bool) -> float:
        """From when on a controller may have seen last what it acts on."""
        now = self.world.clock.now
        since = self._trouble[0] if patient and self._trouble is not None and self._recent(now) else now
        return since - _SEEN_SECONDS

    def window(self, *, patient: bool) -> list[Moment]:
        """What was stored in the time that a controller may act on, latest first."""
        since, found = self._since(patient=patient), []
        for moment in reversed(self._moments):
            found.append(moment)
            if moment.time <= since:
                break
        return found

    def views(self, resource: str, *, patient: bool) -> Iterator[Moment]:
        """What a controller may have seen: every collection as it was at some time, and not all at the same time."""
        window = self.window(patient=patient)
        yield from window
        names = (ROBOTS, PLACEMENTS, oracle.STRIPS, "configmaps", oracle.CRDS, oracle.POLICIES, resource)
        states = [distinct(moment.objects.get(name, {}) for moment in window) for name in dict.fromkeys(names)]
        for mixed in islice(product(*states), _MOST_VIEWS):
            yield Moment(window[0].time, dict(zip(names, mixed, strict=False)))

    # The Lease (F1.2)

    def sends(self, name: str, call: Call) -> None:
        """A controller sends a request."""
        process = self.world.processes.get(name)
        if call.method == "GET" or process is None:
            return
        if call.timeout > TIMEOUT_SECONDS:
            self._say(f"{name} waits {call.timeout} s for {call.verb} {call.path} (F1.2)")
        if not is_lease(call):
            self._holds(process, call, "sends")

    def arrives(self, process: "Process", call: Call, *, late: bool) -> None:
        """A request reaches the server, which carries it out next."""
        self._writing = True
        if not late and not is_lease(call):
            self._holds(process, call, "has sent")

    def _holds(self, process: "Process", call: Call, does: str) -> None:
        leaders = [each.name for each in self.world.processes.values() if each.leads()]
        tampered = self.world.clock.now < self._tampered + _TAMPERED_SECONDS
        if len(leaders) > 1 and not tampered:
            self._say(f"{' and '.join(leaders)} lead at the same time (F1.2)")
        lease = self.world.lease
        holder = "" if lease is None else lease["spec"].get("holderIdentity")
        if holder != process.identity and not tampered:
            self._say(f"{process.name} {does} {call.verb} {call.path}, and {holder or 'nobody'} leads (F1.2)")

    # What is written

    def look(self, process: "Process", write: "Write") -> None:
        """Look at a write that was carried out."""
        self._writing = False
        if write.resource in (LEASES, _COLLECTORS) or self.only_lease:
            return
        if not has_guards(write.call):
            self._say(f"{write}: without its guards: {write.call.body}")
        if wrong := returned_judge.look(self.world, write):
            self._say(wrong)
        if write.status >= 300:
            return
        self._ready(process, write)
        if write.resource in (ROBOTS, oracle.STRIPS, PLACEMENTS, oracle.CRDS, "namespaces", DECISIONS, _COMBINED):
            self._own(write)
            return
        for raw in (write.before, write.after):
            if raw is not None and is_replica(raw):
                self._replica(process, write)
                return
        is_changed = write.before is not None and without_status(write.before) != without_status(write.after or {})
        if is_changed and not self._is_mark(write):
            self._say(f"{write}: it is no replica (F3.2)")

    def _is_mark(self, write: "Write") -> bool:
        """Whether a write sets the mark of a Shared placement on a source of its, or removes one (F10.3)."""
        after = write.after or {"metadata": {}}
        mark, place = oracle.texts(after, "annotations").get(SHARED), (write.resource, write.namespace, write.name)
        moments = self.window(patient=True)
        copies = [oracle.expected(moment.objects, home=self.world.home, shard="any").get(place) for moment in moments]
        uids = [None if each is None else each.placement for each in copies]
        return mark in uids and unmarked(write.before or {}) == unmarked(after)

    def _ready(self, process: "Process", write: "Write") -> None:
        needed = {*_INPUTS, *([] if write.resource in (PLACEMENTS, DECISIONS, "namespaces") else [write.resource])}
        missing = needed - self.listed.get(process.identity, set()) - {oracle.STRIPS, "namespaces", ROBOTS, PLACEMENTS}
        served = {each for each in (oracle.STRIPS, ROBOTS, PLACEMENTS) if self._is_served(each)}
        missing |= (needed & served) - self.listed.get(process.identity, set())
        if missing:
            self._say(f"{write}: before it had listed {', '.join(sorted(missing))} (F1.1)")

    def _is_served(self, resource: str) -> bool:
        return oracle.is_served(self._moments[-1].objects, resource) if self._moments else False

    def _own(self, write: "Write") -> None:
        match write.resource:
            case "namespaces" if write.verb != "create":
                self._say(f"{write}: a namespace is changed (F5.5)")
            case "robotplacements.fleet.crsyncer.cloudrobotics.com" if write.verb not in ("patch", "update", "status"):
                self._say(f"{write}: a placement is made or deleted")
            case str(resource) if resource in (ROBOTS, oracle.CRDS):
                self._say(f"{write}: it is somebody else's")
            case str(resource) if resource == DECISIONS and write.before is None and write.after is not None:
                placement = self._placement(write.after["placement"]["uid"])
                if placement is not None and FINALIZER not in (placement["metadata"].get("finalizers") or []):
                    self._say(f"{write}: before the finalizer of its placement (F6.3)")

    def _replica(self, process: "Process", write: "Write") -> None:
        place = (write.resource, write.namespace, write.name)
        if write.verb == "delete":
            assert write.before is not None
            self._deletion(process, write, place, write.before)
        elif write.after is not None and is_replica(write.after):
            self._content(write, place, write.after)
        elif write.before is not None:
            self._deletion(process, write, place, write.before)  # KeepReplicas

    def _deletion(self, process: "Process", write: "Write", place: Place, before: Json) -> None:
        """Nothing goes that is wanted, or because something could not be seen (F5)."""
        window, home = self.window(patient=False), self.world.home
        why = self.protection.forbids(place, before, process.identity)
        if why and not write.late and not self.was_edited(before):
            self._say(f"{write}: {why}, and nobody has released it (F5.2)")
        source_id = before["metadata"]["labels"][SOURCE]
        wanted = (view.expected(home).get(place) for view in self.views(place[0], patient=False))
        if all(each is not None and each.source_id == source_id for each in wanted):
            self._say(f"{write}: its source, its robot and its placement are there, and select it (F5.1)")
        for resource in (place[0], ROBOTS, PLACEMENTS):
            is_known = "." not in resource or before["metadata"]["uid"] in self.protection.released
            if not is_known and not any(oracle.is_served(moment.objects, resource) for moment in window):
                self._say(f"{write}: {resource} is not served (F5.2)")
        placement = self._placement(marks(before)["placement"])
        going = placement is None or not oracle.lives(placement)
        if not going and not any(place[0] in oracle.placeable(moment.objects) for moment in window):
            self._say(f"{write}: {place[0]} is not placeable (F2.3)")

    def was_edited(self, before: Json) -> bool:
        """Whether the placement of a replica was edited or deleted so shortly ago that nothing else need be seen."""
        uid, seen = marks(before)["placement"], set()
        for moment in self.window(patient=False):
            found = moment.objects.get(PLACEMENTS, {}).values()
            raw = next((each for each in found if each["metadata"]["uid"] == uid), None)
            seen.add(None if raw is None else (raw["metadata"]["generation"], oracle.lives(raw)))
        return len(seen) > 1

    def _content(self, write: "Write", place: Place, after: Json) -> None:
        """What is written is wanted, is no repetition, and comes after finalizer and Decision (F3, F6.3)."""
        if write.before is not None and is_replica(write.before) and owned(write.before) == owned(after):
            self._say(f"{write}: it was so already (F3.4)")
        changed = write.before is None or content_of(write.before) != content_of(after)
        kept = write.before is not None and is_replica(write.before)
        wrong = "nobody wants it (F2)"
        for view in self.views(place[0], patient=True):
            each = self._admitted(view, place)
            if each is None:
                continue
            if changed and kept and each.create_only:
                wrong = "the content of a CreateOnly replica (F3.6)"
            elif not changed or not differences(after, each, is_new=True):
                break
            else:
                wrong = f"not as rendered: {differences(after, each, is_new=True)} (F4)"
        else:
            self._say(f"{write}: {wrong}")
            return
        uid = marks(after)["placement"]
        placement = self._placement(uid)
        if placement is None or not oracle.lives(placement):
            return
        if FINALIZER not in (placement["metadata"].get("finalizers") or []):
            self._say(f"{write}: before the finalizer of its placement (F6.3)")
        is_drift = kept and marks(write.before or {})["stamp"] == marks(after)["stamp"]  # it was announced (F3.5)
        if changed and not is_drift and after["metadata"]["labels"][ROBOT_LABEL] not in self._decided(uid):
            self._say(f"{write}: before the Decision (F6.3)")

    def _admitted(self, moment: Moment, place: Place) -> Expected | None:
        """What should be there, as the server stores it."""
        found = moment.expected(self.world.home).get(place)
        kind = next((each for each in self.world.server.kinds() if each.resource == place[0]), None)
        if found is None or found.content is None or kind is None:
            return found
        return replace(found, content=admitted(kind.schema, found.content))

    def _placement(self, uid: str) -> Json | None:
        found = self.world.stored(PLACEMENTS).values()
        return next((each for each in found if each["metadata"]["uid"] == uid), None)

    def _decided(self, uid: str) -> set[str]:
        """The robots that a placement's Decisions list."""
        stored = [*self.world.stored(DECISIONS).values()]
        stored += [each for time, each in self._former if time > self.world.clock.now - _SEEN_SECONDS]
        decisions = [each for each in stored if each["placement"]["uid"] == uid]
        return {robot["name"] for each in decisions for robot in each["robots"]}

    # What is there in the end

    def disagreements(self) -> list[str]:
        """What differs from what shall be there, once the controller has nothing more to do."""
        moment = self.moment()
        returned = returned_judge.disagreements(moment.objects, home=self.world.home) if self.returned else ()
        return [*self._missing(moment), *self._left(moment), *returned]

    def _missing(self, moment: Moment) -> Iterator[str]:
        blocked = self._blocked(moment)
        for place in moment.expected(self.world.home):
            each = self._admitted(moment, place)
            assert each is not None
            if each.robot in blocked and self._has_rollout(each.placement):
                continue  # it is not begun (F8.1)
            found = moment.objects.get(place[0], {}).get(place[1:])
            if each.content is None or (found is not None and not is_replica(found)):
                continue  # blocked: its rendering fails, or its name is taken
            if found is None:
                yield f"{place} is missing"
            elif oracle.lives(found):
                if wrong := differences(found, each):
                    yield f"{place} differs: {wrong}"
                if marks(found)["placement"] != each.placement:
                    yield f"{place} is not governed by the oldest placement (F2.4)"
                if each.robot not in self._decided(each.placement):
                    yield f"no Decision of its placement lists {each.robot}"

    def _left(self, moment: Moment) -> Iterator[str]:
        expected, kinds = moment.expected(self.world.home), oracle.placeable(moment.objects)
        blocked = self._blocked(moment)
        for resource in kinds:
            for where, found in moment.objects.get(resource, {}).items():
                if not is_replica(found) or (resource, *where) in expected or not oracle.lives(found):
                    continue
                uid, robot = marks(found)["placement"], oracle.texts(found, "labels")[ROBOT_LABEL]
                placement = self._placement(uid)
                if robot in blocked and self._has_rollout(uid):
                    continue  # it comes after what is due, which never comes (F8.1)
                if placement is not None and not (placement.get("status") or {}).get("holds"):
                    yield f"{(resource, *where)} is left over, and not held"

    def _blocked(self, moment: Moment) -> set[str]:
        """The robots of which a rendering fails, or a name is somebody else's."""
        found = set()
        for place, each in moment.expected(self.world.home).items():
            there = moment.objects.get(place[0], {}).get(place[1:])
            if each.content is None or (there is not None and not is_replica(there)):
                found.add(each.robot)
        return found

    def _has_rollout(self, uid: str) -> bool:
        placement = self._placement(uid)
        return placement is not None and "rollout" in placement["spec"]

    def _say(self, what: str) -> None:
        self.violations.append(f"{self.world.clock.now:.2f} {what}")
