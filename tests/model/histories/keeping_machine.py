"""Takes the steps of a history of what keeps copies (`keeping_history`), then has everything heal, without a human."""

import contextlib
from typing import Any

from crsyncer.core.content.annotations import ROBOT_LABEL
from crsyncer.core.kinds.sync_policy import Reference
from crsyncer.core.model import Json, Side
from crsyncer.core.related.relate import related_entries
from crsyncer.engine.kinds.kind import Kind
from crsyncer.errors import SyncError
from tests.model.histories.environment import Environment
from tests.model.histories.keeping_clusters import Clusters
from tests.model.histories.keeping_history import KeepingHistory
from tests.model.histories.keeping_judge import KeepingJudge
from tests.model.histories.policy_history import NAMINGS, PLACES
from tests.model.histories.policy_references import GOALS
from tests.model.scenes.config_maps import delete_map, put_map
from tests.model.scenes.policies import apply_policy, serve_policies
from tests.model.scenes.projected import FLEET, PROJECTION, TASKS
from tests.model.simulation.check import Violation
from tests.model.simulation.judge import stamp
from tests.model.simulation.life import ROBOT
from tests.model.simulation.plane import Plane
from tests.model.simulation.scene import roles
from tests.model.simulation.storage import Where
from tests.model.simulation.world import World
from tests.system.bed import crd

_REFERENCES = ("/spec/maps/*", "/spec/mpas/*")
"""What the entry says, and with a typo."""
_STEPS: tuple[list[Json], ...] = (
    [],
    [{"path": "/spec/mode", "set": {"value": "m"}}],
    [{"path": "/spec/mode", "set": {"value": "n"}}],
)
_REST_SECONDS = 600.0


class KeepingMachine:
    """Takes the steps of a history, and looks after each whether something happened that must not."""

    def __init__(self, history: KeepingHistory) -> None:
        self.history = history
        self.setup = history.setup
        self.world = World(history.seed, kinds={"goals": {"source": None}}, by_chance=True)
        self.up, self.down = roles(self.world, self.setup.source)
        self.origin = self.world.planes[Side(self.setup.origin or "cloud")]
        self.upstream_kinds = {GOALS, TASKS} if self.up.side is Side.CLOUD else {GOALS}
        self.downstream_kinds = {GOALS}
        self.judge = KeepingJudge(self)
        self.environment = Environment(self.world, part="")
        self.clusters = Clusters(self)
        self.pointed = True
        """The entry names the field that there is."""
        self._kind = "goals"
        self._edits: Json = {}
        self._chosen: Json = {}
        self._naming = 0

    def run(self) -> None:
        """The whole history, and the healing after it; raises Violation."""
        with self.world:
            serve_policies(self.world.robot)
            for plane in self.world.planes.values():
                for place in PLACES:
                    plane.make_namespace(place)
            self.world.cloud.apply(crd(FLEET, plural="tasks", source=None))
            self.apply()
            for number in range(self.setup.objects):
                self.put(number, number)
                self.create(number, number)
            self.world.start()
            self.world.settle()
            for step in self.history.steps:
                handler = next(each for each in (self, self.clusters, self.environment) if hasattr(each, step.what))
                getattr(handler, step.what)(*step.arguments)
                self._look()
            self.heal()

    def _look(self) -> None:
        found = self.judge.violations + self.world.judge.violations + self.world.troubles
        if found:
            raise Violation(found[0])
        self.judge.entry_known |= self.pointed and self.clusters.may_notice(self.world.robot) and self.follows_entry()

    def follows_entry(self) -> bool:
        """Whether the agent has heard which field the entry names."""
        kind = self._kind_in_sync()
        entries = related_entries(kind.policy) if kind is not None else ()
        return any(each.related.objects == Reference(_REFERENCES[0]) for each in entries)

    def holds_nothing(self) -> bool:
        """Whether the agent holds no deletion of all goals."""
        kind = self._kind_in_sync()
        return kind is not None and kind.hold_driver.holds.held_every() is None

    def _kind_in_sync(self) -> Kind | None:
        life = self.world.life
        row = None if life is None else life.engine.kinds.entries.get(GOALS)
        return None if row is None else row.kind

    # Objects

    def create(self, number: int, x: int) -> None:
        """Somebody creates a goal that refers to a ConfigMap of its own."""
        if self.serves(self.up) and f"g{number}" not in self.primaries():
            spec = {"x": x, "maps": [f"m{number}"] if self.setup.origin else []}
            labels = {ROBOT_LABEL: ROBOT} | ({} if x % 3 == 0 else {"tier": "edge"})
            self.up.create(f"g{number}", kind=self._on(self.up), spec=spec, labels=labels)

    def change(self, number: int, x: int) -> None:
        """Somebody changes a goal."""
        self._set(number, {"x": x})

    def refer(self, number: int, to: int) -> None:
        """Somebody has a goal refer to another ConfigMap, too."""
        if self.setup.origin:
            self._set(number, {"maps": sorted({f"m{number}", f"m{to}"})})

    def relabel(self, number: int, which: int) -> None:
        """Somebody takes labels of a goal away, or puts them back."""
        if f"g{number}" in self.primaries():
            labels = ({"tier": None}, {"tier": "edge"}, {"robot": ROBOT if number % 2 else "robot-2"})[which]
            self.up.label(f"g{number}", kind=self._on(self.up), **labels)

    def remove(self, number: int) -> None:
        """Somebody deletes a goal."""
        if f"g{number}" in self.primaries():
            self.up.delete(f"g{number}", kind=self._on(self.up))

    def replace(self, number: int, x: int) -> None:
        """Somebody deletes a goal and creates another of its name within the same second."""
        self.remove(number)
        self.create(number, x)

    def clear_out(self, count: int) -> None:
        """Somebody deletes many goals."""
        for number in range(count):
            self.remove(number)

    def report(self, number: int) -> None:
        """The controller downstream writes a status."""
        for (place, name), copy in self.copies().items():
            if name.endswith(f"g{number}") and stamp(copy):
                status = {"of": stamp(copy), "n": int(self.world.clock.now)}
                self.down.set_status(name, status, namespace=place)

    def drift(self, number: int, x: int) -> None:
        """Somebody changes a copy."""
        for (place, name), copy in self.copies().items():
            if name.endswith(f"g{number}"):
                self.down.set(name, namespace=place, spec={**copy["spec"], "x": x})

    def keep_copy(self, number: int, on: int) -> None:
        """Somebody's finalizer keeps a copy, or does no more."""
        for place, name in self.copies():
            if name.endswith(f"g{number}"):
                self.down.finalize(name, *(["example.com/wait"] if on else []), namespace=place)

    def put(self, number: int, x: int) -> None:
        """Somebody creates or changes a ConfigMap."""
        if self.setup.origin:
            put_map(self.origin, f"m{number}", x=str(x))

    def unput(self, number: int) -> None:
        """Somebody deletes a ConfigMap."""
        if self.setup.origin and ("default", f"m{number}") in self.maps_on(self.origin):
            delete_map(self.origin, f"m{number}")

    # Operators

    def hold(self) -> None:
        """A human holds every deletion of goals."""

        def placed() -> None:
            self.judge.held_since = self.world.clock.now

        self._order({"command": "hold", "resource": GOALS}, then=placed)

    def release(self) -> None:
        """A human lets everything go on."""
        life = self.world.life
        if life is None:
            return
        self.judge.release()
        for side in Side:
            self._order({"command": "release", "id": str(side)})
        for group in life.engine.holds.groups():
            self._order({"command": "release", "id": group.id})

    def _order(self, request: Json, *, then: Any = lambda: None) -> None:
        life = self.world.life
        if life is None:
            return
        self.world.judge.ordered(request["command"])

        async def ask() -> None:
            with contextlib.suppress(SyncError):
                await life.commands.answer(request)
                then()

        life.begin(ask())
        self.world.pass_time(1.0)

    # The policy

    def select(self, edge: int, robot: bool) -> None:
        """Somebody edits which goals are synced."""
        self._chosen = {"selector": {"matchLabels": {"tier": "edge"}}} if edge else {}
        self._chosen |= {"byRobotName": True} if robot else {}
        self.judge.reselected()
        self.apply()

    def mutate(self, which: int) -> None:
        """Somebody edits the steps."""
        self._edits["mutations"] = {"down": _STEPS[which]}
        self.apply()

    def name(self, which: int) -> None:
        """Somebody edits how new copies are called."""
        self._naming = which
        self.apply()

    def project(self, on: int) -> None:
        """Somebody edits what goals are in the cloud, where they come from there."""
        if self.up.side is Side.CLOUD:
            self._kind = TASKS if on else "goals"
            self.judge.reselected()
            self.apply()

    def point(self, wrong: int) -> None:
        """Somebody edits the reference, with a typo or without."""
        self.pointed = not wrong
        self.judge.entry_known = False
        self.apply()

    def apply(self) -> None:
        """Write the policy as it is meant to be."""
        spec: Json = {**self._edits}
        spec |= {"naming": NAMINGS[self._naming - 1]} if self._naming else {}
        spec |= {"filter": self._chosen} if self._chosen else {}
        spec |= {"projection": PROJECTION} if self._kind == TASKS else {}
        if self.setup.origin:
            entry = {
                "id": "maps",
                "origin": self.setup.origin,
                "resource": {"group": "", "resource": "configmaps"},
                "object": {"reference": _REFERENCES[not self.pointed], "namespace": "default"},
                "naming": {"namespace": "others"},
                "filterByRobotName": False,
                "cleanup": self.setup.cleanup,
            }
            spec["related"] = [entry]
        apply_policy(self.world.robot, specSource=self.setup.source, **spec)

    # Healing

    def heal(self) -> None:
        """Everything works again, and no human releases anything: what is kept is whole, and said. Then one does."""
        world = self.world
        for side in Side:
            world.mend(str(side))
        self.point(0)
        for plane in world.planes.values():
            self.clusters.define_kind(str(plane.side))
        for place, name in self.copies():
            self.down.finalize(name, namespace=place)
        self.environment.start()
        if world.life is not None:
            world.life.fuse = None
        self._rest()
        if wrong := list(self.judge.at_rest()):
            raise Violation(wrong[0])
        self.release()
        self._rest()
        self.release()
        self._rest()
        if wrong := [*self.judge.at_rest(), *self._disagreements()]:
            raise Violation(f"after the release: {wrong[0]}")

    def _rest(self) -> None:
        deadline = self.world.clock.now + _REST_SECONDS
        self.world.pass_time(120.0)
        while self.world.clock.now < deadline and not self.world.idle():
            self.world.pass_time(15.0)
        self.world.pass_time(60.0)
        self._look()

    def _disagreements(self) -> list[str]:
        """What the sides disagree on."""
        copies = list(self.copies().values())
        found = []
        for name, original in self.primaries().items():
            own = [each for each in copies if stamp(each) == original["metadata"]["uid"]]
            if self.is_selected(original) and len(own) != 1:
                found.append(f"{name} has {len(own)} copies; {self.world.status()['reasons']}")
            for copy in own:
                spec = {key: value for key, value in copy["spec"].items() if key != "mode"}
                if self.is_selected(original) and spec != original["spec"]:
                    found.append(f"{name}: {original['spec']} and {copy['spec']}")
        return found

    # What there is

    @property
    def meant(self) -> str:
        """The kind of upstream that the policy means."""
        return TASKS if self._on(self.up) == TASKS else GOALS

    def primaries(self) -> dict[str, Json]:
        """Upstream's objects of the kind that the policy means, by name."""
        return dict(self.up.objects(self._on(self.up)))

    def copies(self) -> dict[Where, Json]:
        """Downstream's goals, by place."""
        return dict(self.down.server.storage.of(GOALS))

    def maps_on(self, plane: Plane) -> dict[Where, Json]:
        """A cluster's ConfigMaps, by place."""
        return dict(plane.server.storage.of("configmaps"))

    def related_copies(self) -> dict[Where, Json]:
        """The copies of ConfigMaps, by place."""
        return self.maps_on(self.world.planes[self.origin.side.other])

    def map_of(self, uid: str) -> Where | None:
        """Where the ConfigMap of a uid is; None: there is none any more."""
        found = self.maps_on(self.origin).items()
        return next((where for where, each in found if each["metadata"]["uid"] == uid), None)

    def is_selected(self, primary: Json) -> bool:
        """Whether the policy selects an object of upstream."""
        labels = primary["metadata"].get("labels") or {}
        by_tier = "selector" not in self._chosen or labels.get("tier") == "edge"
        return by_tier and ("byRobotName" not in self._chosen or labels.get(ROBOT_LABEL) == ROBOT)

    def is_dying(self, resource: str) -> bool:
        """Whether a kind of upstream goes with its CRD."""
        return any(kind.resource == resource and kind.dying for kind in self.up.server.kinds())

    def _set(self, number: int, fields: Json) -> None:
        found = self.primaries().get(f"g{number}")
        if found is not None and self.serves(self.up):
            self.up.set(f"g{number}", kind=self._on(self.up), spec={**found["spec"], **fields})

    def _on(self, plane: Plane) -> str:
        return self._kind if plane.side is Side.CLOUD else "goals"

    def serves(self, plane: Plane) -> bool:
        """Whether a cluster has the kind that the policy means."""
        kind = self._on(plane) if plane is self.up and self._kind == TASKS else GOALS
        return any(each.resource == kind and not each.dying for each in plane.server.kinds())
