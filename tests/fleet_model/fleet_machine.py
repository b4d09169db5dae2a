"""Takes the steps of a history of a fleet, then has everything heal: what is wrong with it, if anything."""

from collections.abc import Callable, Mapping

from crsyncer.core.model import Json
from tests.fleet_model.cloud_steps import (
    OWN,
    back_up,
    define_kinds,
    delete_kind,
    delete_namespace,
    dying_namespaces,
    mark_kinds,
    restore,
    sweep_namespaces,
    unmark_kind,
)
from tests.fleet_model.controlling import control
from tests.fleet_model.fleet_history import KINDS, ROBOTS, FleetHistory
from tests.fleet_model.fleet_world import FleetWorld
from tests.fleet_model.judged_objects import is_replica
from tests.fleet_model.link_steps import LINK_STEPS, heal_links, led_anew
from tests.fleet_model.oracle import FLEET, lives
from tests.fleet_model.return_steps import collect, return_all, return_status, uncollect
from tests.fleet_model.world_parts import INVENTORY_KIND, PLACEMENTS, PROPERTIES, STRIPS
from tests.model.simulation.answers import FORBIDDEN, INTERNAL_ERROR, NOT_SERVED
from tests.model.simulation.plane import GROUP
from tests.model.simulation.storage import Snapshot

RELEASE = f"{FLEET}/release"
HELD = "example.com/wait"
_DENIALS = (FORBIDDEN, INTERNAL_ERROR, NOT_SERVED)


_REFUSED_SECONDS = 3700.0
"""What the server has refused is tried again within this time."""


class Violation(AssertionError):
    """Something happened that must never happen."""


class FleetMachine:
    """Takes the steps of a history, and looks after each whether something happened that must not."""

    def __init__(self, history: FleetHistory) -> None:
        self.history = history
        self.world = FleetWorld(control, history.seed, kinds=KINDS, by_chance=True)
        self.world.judge.returned = True
        self.backup: Snapshot | None = None
        """Of the cloud's etcd."""
        self.definitions = {kind: self.world.definition(kind) for kind in (*KINDS, *OWN)}
        """The CRDs, to be defined anew."""
        self.has_lost_placements = False
        """Placements went without their finalizer: nobody knows any more what was theirs."""

    def run(self) -> None:
        """The whole history, and the healing after it; raises Violation."""
        with self.world:
            for step in self.history.steps:
                if step.what in STEPS:
                    STEPS[step.what](self, *step.arguments)
                else:
                    getattr(self, step.what)(*step.arguments)
                self._look()
            self.heal()

    def _look(self) -> None:
        if found := [*self.world.judge.violations, *self.world.troubles]:
            raise Violation(found[0])

    def heal(self) -> None:
        """Everything is well again, and a human releases what is held: then all is as it shall be."""
        world = self.world
        self.free_replicas()
        sweep_namespaces(self)
        define_kinds(self, by_force=True)
        mark_kinds(self)
        heal_links(self)
        if not world.cloud.objects(INVENTORY_KIND):
            world.robots(*ROBOTS[:2])
        world.pass_time(100)
        self._look()
        for attempt in range(8):
            if attempt == 4:
                world.pass_time(_REFUSED_SECONDS)
            world.settle(quiet=45.0)
            self._look()
            self.release()
            wrong = world.judge.disagreements()
            if not wrong and not any(found["status"].get("holds") for found in self._placements() if "status" in found):
                break
        else:
            raise Violation("; ".join(wrong) or "holds are not released")
        done = world.clock.now
        world.pass_time(400)
        self._look()
        if more := [str(write) for write in world.written(done)]:
            raise Violation(f"all agreed, and then the controller wrote: {more[:5]}")
        more = led_anew(self, seconds=100.0, statuses=True)
        self._look()
        if more:
            raise Violation(f"all agreed, and then: {more[:5]}")

    # Users

    def add_robot(self, name: str, site: str) -> None:
        """A robot is enrolled."""
        if self.served(INVENTORY_KIND) and name not in self.world.cloud.objects(INVENTORY_KIND):
            self.world.robots(name, **({"site": site} if site else {}))

    def lose_robot(self, name: str) -> None:
        """A Robot is deleted."""
        if self.served(INVENTORY_KIND) and name in self.world.cloud.objects(INVENTORY_KIND):
            self.world.lose_robots(name)

    def lose_many_robots(self, number: int) -> None:
        """Somebody deletes many Robots."""
        for name in ROBOTS[:number]:
            self.lose_robot(name)

    def empty_inventory(self) -> None:
        """Somebody deletes all Robots."""
        self.lose_many_robots(len(ROBOTS))

    def move_robot(self, name: str, site: str) -> None:
        """A Robot is labelled otherwise."""
        if self.served(INVENTORY_KIND) and name in self.world.cloud.objects(INVENTORY_KIND):
            self.world.cloud.label(name, kind=INVENTORY_KIND, site=site or None)

    def add_source(self, kind: str, name: str, spec: Json, labels: Json) -> None:
        """Somebody makes a source."""
        if self.served(kind) and name not in self.world.cloud.objects(kind):
            self.world.source(name, kind=kind, spec=spec, labels=labels)

    def edit_source(self, kind: str, name: str, spec: Json, labels: Json) -> None:
        """Somebody edits a source, and its labels."""
        if self.served(kind) and name in self.world.cloud.objects(kind):
            self.world.cloud.set(name, kind=kind, spec=spec)
            self.world.cloud.label(name, kind=kind, use=labels.get("use"))

    def lose_source(self, kind: str, name: str) -> None:
        """Somebody deletes a source."""
        if self.served(kind) and name in self.world.cloud.objects(kind):
            self.world.cloud.delete(name, kind=kind)

    def replace_source(self, kind: str, name: str, spec: Json) -> None:
        """Somebody deletes a source, and at once makes another of the name."""
        self.lose_source(kind, name)
        self.add_source(kind, name, spec, {"use": "yes"})

    def hold_source(self, kind: str, name: str) -> None:
        """Somebody's finalizer keeps a source."""
        if self.served(kind) and name in self.world.cloud.objects(kind):
            self.world.cloud.finalize(name, HELD, kind=kind)

    def place(self, name: str, spec: Json) -> None:
        """Somebody makes a placement."""
        if self.served(PLACEMENTS) and name not in self.world.cloud.objects(PLACEMENTS):
            self.world.cloud.create(name, kind=PLACEMENTS, spec=_own_templates(name, spec))

    def edit(self, name: str, spec: Json) -> None:
        """Somebody replaces the spec of a placement."""
        found = self.world.cloud.objects(PLACEMENTS).get(name)
        if found is not None and self.served(PLACEMENTS):
            target = {"target": found["spec"].get("target", "PerRobot")}
            self.world.cloud.set(name, kind=PLACEMENTS, spec=_own_templates(name, spec) | target)

    def unplace(self, name: str) -> None:
        """Somebody deletes a placement."""
        if self.served(PLACEMENTS) and name in self.world.cloud.objects(PLACEMENTS):
            self.world.unplace(name)

    def replace_placement(self, name: str, spec: Json) -> None:
        """Somebody deletes a placement, and makes another of the name as soon as it is gone."""
        self.unplace(name)
        self.wait(3.0)
        self.place(name, spec)

    def strip(self, name: str, kind: str, path: str) -> None:
        """Somebody makes a FieldStrip."""
        if self.served(STRIPS) and name not in self.world.cloud.objects(STRIPS):
            self.world.strip(name, path, kind=kind)

    def unstrip(self, name: str) -> None:
        """Somebody deletes a FieldStrip."""
        if self.served(STRIPS) and name in self.world.cloud.objects(STRIPS):
            self.world.cloud.delete(name, kind=STRIPS)

    def set_properties(self, robot: str, data: Json) -> None:
        """Somebody writes the properties of a robot."""
        self.world.set_properties(robot, **data)

    def lose_properties(self, robot: str) -> None:
        """Somebody deletes them."""
        if robot in self.world.cloud.objects("configmaps", PROPERTIES):
            self.world.cloud.delete(robot, kind="configmaps", namespace=PROPERTIES)

    def drift(self, kind: str, which: int, x: int) -> None:
        """Somebody changes a replica."""
        if (place := self.replica(kind, which)) is not None:
            self.world.cloud.set(place[1], kind=kind, namespace=place[0], spec={"x": f"drift {x}"})

    def lose_replica(self, kind: str, which: int) -> None:
        """Somebody deletes a replica."""
        if (place := self.replica(kind, which)) is not None:
            self.world.cloud.delete(place[1], kind=kind, namespace=place[0])

    def keep_replica(self, kind: str, which: int) -> None:
        """A robot's finalizer keeps a replica."""
        if (place := self.replica(kind, which)) is not None:
            self.world.cloud.finalize(place[1], HELD, kind=kind, namespace=place[0])

    def free_replicas(self) -> None:
        """No finalizer of others keeps anything."""
        for kind in KINDS:
            for where, raw in list(self.world.stored(f"{kind}.{GROUP}").items()):
                if HELD in raw["metadata"].get("finalizers", []) and self.served(kind):
                    self.world.cloud.finalize(where[1], kind=kind, namespace=where[0])

    def rival(self, robot: str, name: str, labelled: int) -> None:
        """Somebody has made an object where a replica belongs."""
        world, namespace = self.world, f"robot-{robot}"
        world.server.make_namespace(namespace)
        is_free = namespace not in dying_namespaces(self) and (namespace, name) not in world.stored(f"goals.{GROUP}")
        if self.served("goals") and is_free:
            labels = {"cloudrobotics.com/robot-name": robot} if labelled else {}
            world.cloud.create(name, kind="goals", namespace=namespace, spec={"x": -1}, labels=labels)

    def release(self) -> None:
        """A human releases what is held."""
        for found in self._placements():
            for hold in (found.get("status") or {}).get("holds") or []:
                self.world.cloud.annotate(found["metadata"]["name"], {RELEASE: hold["id"]}, kind=PLACEMENTS)
                self.world.judge.protection.kept.clear()

    # Machines and links

    def wait(self, seconds: float) -> None:
        """Time passes."""
        self.world.pass_time(seconds)

    def deny(self, name: str, part: str, which: int, seconds: float) -> None:
        """For a while a collection is forbidden, broken or not served."""
        self.world.inject(_DENIALS[which], name=name, part=part or "/goals", times=1_000_000, seconds=seconds)

    def restart_server(self) -> None:
        """The API server is restarted."""
        self.world.cloud.restart()

    def compact(self) -> None:
        """The API server forgets its past."""
        self.world.cloud.compact()

    # Help

    def count(self, kind: str) -> int:
        """How many replicas of a kind there are."""
        return sum(map(is_replica, self.world.stored(f"{kind}.{GROUP}").values()))

    def _placements(self) -> list[Json]:
        return [raw for raw in self.world.cloud.objects(PLACEMENTS).values() if lives(raw)]

    def served(self, kind: str) -> bool:
        """Whether a kind is there, and does not go."""
        resource = kind if "." in kind else f"{kind}.{GROUP}"
        return any(each.resource == resource and not each.dying for each in self.world.server.kinds())

    def replica(self, kind: str, which: int) -> tuple[str, str] | None:
        """Namespace and name of a replica; None: there is none."""
        if not self.served(kind):
            return None
        found = [where for where, raw in sorted(self.world.stored(f"{kind}.{GROUP}").items()) if is_replica(raw)]
        return found[which % len(found)] if found else None


STEPS: Mapping[str, Callable[..., None]] = {
    **LINK_STEPS,
    "delete_namespace": delete_namespace,
    "sweep_namespaces": sweep_namespaces,
    "delete_kind": delete_kind,
    "define_kind": define_kinds,
    "unmark_kind": unmark_kind,
    "mark_kind": mark_kinds,
    "back_up": back_up,
    "restore": restore,
    "return_status": return_status,
    "return_all": return_all,
    "collect": collect,
    "uncollect": uncollect,
}
"""Those that are no methods."""


def _own_templates(name: str, spec: Json) -> Json:
    """A spec whose templates have names of their own: two templates of one name fight for it (F3.7)."""
    templates = [{**each, "name": f"{each['name']}-{name}"} for each in spec.get("templates", [])]
    return {**spec, "templates": templates}
