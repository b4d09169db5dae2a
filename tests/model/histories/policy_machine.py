"""Takes the steps of a history of policies in the made-up world, then has everything heal: what is wrong with it."""

from typing import Any

from crsyncer.core.content.annotations import ROBOT_LABEL
from crsyncer.core.model import Json, Side
from tests.model.histories.environment import Environment
from tests.model.histories.policy_agreement import generations, open_ends
from tests.model.histories.policy_apis import Apis
from tests.model.histories.policy_check import PolicyChecker
from tests.model.histories.policy_deletion import Rule
from tests.model.histories.policy_edits import Edits
from tests.model.histories.policy_history import NAMES, PLACES, PolicyHistory
from tests.model.histories.policy_projection import Projections
from tests.model.histories.policy_references import GOALS, objects_of, spec_of
from tests.model.histories.policy_statuses import RelatedStatuses
from tests.model.histories.policy_subtree import Subtree
from tests.model.scenes.policies import apply_policy, delete_policy, policies, serve_policies
from tests.model.simulation.check import Violation, labels, tear
from tests.model.simulation.life import ROBOT
from tests.model.simulation.plane import Plane
from tests.model.simulation.scene import roles
from tests.model.simulation.storage import Where
from tests.model.simulation.world import World

HOUR = 3600.0


class PolicyMachine:
    """Takes the steps of a history, and looks after each whether something happened that must not."""

    def __init__(self, history: PolicyHistory) -> None:
        self.history = history
        self.setup = history.setup
        goals = {"source": None, "cluster": Side.ROBOT in self.setup.clusters}
        self.world = World(history.seed, kinds={"goals": goals}, settings=history.settings, by_chance=True)
        self.up, self.down = roles(self.world, self.setup.source)
        self.checker = PolicyChecker(self.world, self.setup)
        self.environment = Environment(self.world, part="")
        self.apis = Apis(self.world, self.setup, self.checker)
        self.statuses = RelatedStatuses(self)
        self.subtree = Subtree(self)
        self.edits = Edits()
        self.projections = Projections(self)
        self._number = 0
        self._naming = 0

    def run(self) -> None:
        """The whole history, and the healing after it; raises Violation."""
        with self.world:
            serve_policies(self.world.robot)
            self.projections.prepare()
            self.apis.prepare()
            self.statuses.prepare()
            for plane in self.world.planes.values():
                for place in PLACES:
                    plane.make_namespace(place)
            self.apply()
            self.world.start()
            if self.setup.api:
                self.world.pass_time(10)  # until both sides have the CRD
            for step in self.history.steps:
                handlers = (self.environment, self.apis, self.statuses, self.subtree, self.projections, self)
                handler = next(each for each in handlers if hasattr(each, step.what))
                getattr(handler, step.what)(*step.arguments)
                self._look()
            self.heal()

    def _look(self) -> None:
        self.checker.read_store()
        self.checker.deletions.look()
        found = self.checker.violations + self.world.troubles
        if found:
            raise Violation(found[0])

    # Primaries

    def create(self, name: str, x: int, *refers: int) -> None:
        """Somebody creates an object upstream."""
        if name not in self._originals() and self.projections.serves(self.up):
            self.edits.create(self.up, name, x, *refers, wanted=self.wanted(x))

    def change(self, name: str, x: int) -> None:
        """Somebody changes the content upstream."""
        self._set(name, {"x": x})

    def refer(self, name: str, *refers: int) -> None:
        """Somebody has an object refer to others."""
        self._set(name, spec_of(*refers))

    def remove(self, name: str) -> None:
        """Somebody deletes it upstream."""
        if name in self._originals():
            self.up.delete(name, kind=self.edits.kind(self.up))

    def replace(self, name: str, x: int, *refers: int) -> None:
        """Somebody deletes it upstream, and at once creates another of that name."""
        self.remove(name)
        self.create(name, x, *refers)

    def relabel(self, name: str, to: str) -> None:
        """Somebody gives it to another robot, or back."""
        if name not in self._originals():
            return
        if self.setup.filtered:
            self.up.label(name, kind=self.edits.kind(self.up), robot=to or None)
        elif self.setup.selected:
            self.up.label(name, kind=self.edits.kind(self.up), tier="edge" if to == ROBOT else None)

    # Copies

    def report(self, name: str) -> None:
        """The controller downstream writes its status."""
        for place, called in self.copies(name):
            self._number += 1
            copy = objects_of(self.down, GOALS)[place, called]
            of = self.checker.of(copy)
            self.checker.overtaken.discard(of)
            status = self.subtree.reported(of, {"of": of, "n": self._number})
            status |= {"observedGeneration": copy["metadata"]["generation"]} if self.setup.maps_generation else {}
            self.checker.reported[self._number] = self.edits.kind(self.down)
            self.down.set_status(called, status, kind=self.edits.kind(self.down), namespace=place)

    def drift(self, name: str, x: int) -> None:
        """Somebody changes the content of a copy."""
        for where in self.copies(name):

            def change(copy: Json) -> None:
                copy["spec"] = copy["spec"] | self.drifted(x)

            self.edits.edit(self.down, GOALS, where, change)

    def drifted(self, x: int) -> Json:
        """What somebody sets in the spec of a copy."""
        return {"local": x} if self.setup.keep_local else {"x": x, "maps": []}

    def lose_copy(self, name: str) -> None:
        """Somebody deletes a copy."""
        for place, called in self.copies(name):
            self.down.delete(called, kind=self.edits.kind(self.down), namespace=place)

    def keep_copy(self, name: str, on: int) -> None:
        """Somebody's finalizer keeps a copy, or does no more."""
        for place, called in self.copies(name):
            self.edits.finalize(self.down, GOALS, (place, called), ["example.com/wait"] if on else [])

    def tear(self, name: str, which: int) -> None:
        """Somebody takes marks away from a copy."""
        for where in self.copies(name):
            self.edits.edit(self.down, GOALS, where, lambda copy: tear(copy, which, self.down.side))

    def by_hand(self, name: str, which: int, labelled: int) -> None:
        """Somebody makes an object downstream by hand: under the name of a copy, or another."""
        place, called = self.checker.new_name(name, self.naming) if which else ("default", f"own-{name}")
        place = "" if self.down.side in self.setup.clusters else place
        if (place, called) not in objects_of(self.down, GOALS) and self.projections.serves(self.down):
            wanted = {ROBOT_LABEL: ROBOT, "tier": "edge"} if labelled else {}
            self.down.create(
                called, kind=self.edits.kind(self.down), namespace=place, spec={"x": -1, "maps": []}, labels=wanted
            )

    # Related objects

    def put(self, resource: str, name: str, x: int, edge: int, mine: int) -> None:
        """Somebody creates or changes an original."""
        self._number += 1
        origin = self.origin(resource)
        secret = resource == "secrets"
        data = {"x": self.checker.new_secret(self._number) if secret else str(x)}
        wanted = ({"tier": "edge"} if edge else {}) | ({ROBOT_LABEL: ROBOT} if mine else {})
        entries = self.checker.references.of(resource)
        anywhere = (origin is self.down and self.setup.namings) or any("namespace" in e["object"] for e in entries)
        places = PLACES if anywhere else PLACES[:1]
        self.edits.put(origin, resource, (places[x % len(places)], name), data, wanted)

    def unput(self, resource: str, name: str) -> None:
        """Somebody deletes an original."""
        origin = self.origin(resource)
        for where in _called(origin, resource, name):
            self.edits.delete(origin, resource, where)

    def drift_related(self, resource: str, name: str, x: int) -> None:
        """Somebody changes a related copy."""
        target = self.target(resource)
        for where in self._related_copies(resource, name):
            self.edits.put(target, resource, where, {"drift": str(x)}, labels(objects_of(target, resource)[where]))

    def lose_related(self, resource: str, name: str) -> None:
        """Somebody deletes a related copy."""
        for where in self._related_copies(resource, name):
            self.edits.delete(self.target(resource), resource, where)

    def keep_related(self, resource: str, name: str, on: int) -> None:
        """Somebody's finalizer keeps a related copy, or does no more."""
        for where in self._related_copies(resource, name):
            self.edits.finalize(self.target(resource), resource, where, ["example.com/wait"] if on else [])

    def tear_related(self, resource: str, name: str, which: int) -> None:
        """Somebody takes marks away from a related copy."""
        target = self.target(resource)
        for where in self._related_copies(resource, name):
            self.edits.edit(target, resource, where, lambda copy: tear(copy, which, target.side))

    def by_hand_related(self, resource: str, name: str, x: int, labelled: int) -> None:
        """Somebody makes an object where a related copy may be."""
        target = self.target(resource)
        places = PLACES if target is self.down and self.setup.namings else PLACES[:1]
        wanted = self.checker.references.places_of(resource, name)
        named = any("naming" in each or "namespace" in each["object"] for each in self.checker.references.of(resource))
        where = wanted[x % len(wanted)] if named and wanted else (places[x % len(places)], name)
        if where not in objects_of(target, resource):
            self.edits.put(target, resource, where, {"own": str(x)}, {ROBOT_LABEL: ROBOT} if labelled else {})

    # The policy and the state directory

    @property
    def naming(self) -> Json | None:
        """The templates of the policy at the moment."""
        namings = self.setup.namings
        return namings[self._naming % len(namings)] if namings else None

    def rename(self, which: int) -> None:
        """Somebody edits the templates of the policy."""
        if self.setup.namings:
            self._naming = which
            self.apply()

    def entries(self, which: int) -> None:
        """Somebody takes entries of `related` out of the policy, or puts them back."""
        if self.setup.entries:
            left = [each for number, each in enumerate(self.setup.entries) if not which >> number & 1]
            self.checker.references.change_entries(left)
            self.apply()

    def delete_by(self, blocking: int, grace: str, propagation: str) -> None:
        """Somebody edits what the policy says of deletion."""
        self.checker.deletions.rule = Rule(bool(blocking), grace, propagation)
        self.apply()

    def drop_policy(self) -> None:
        """Somebody deletes the policy, and after a while puts it back."""
        if policies(self.world.robot):
            delete_policy(self.world.robot)
        self.checker.references.change_entries(self.checker.references.entries)
        self.checker.deletions.ended = self.world.clock.now
        self.world.pass_time(7)
        self.apply()

    def travel(self, paused: int, allows: int) -> None:
        """Somebody edits what the policy says of the CRD that travels."""
        self.apis.paused, self.apis.allows = bool(paused), bool(allows)
        self.apis.loose |= self.apis.allows
        self.apply()

    def lose_store(self) -> None:
        """The agent is killed, and its state directory is emptied."""
        self.world.crash()
        self.world.lose_database()
        self.checker.forget()
        self.environment.start()

    def apply(self) -> None:
        setup = self.setup
        spec: dict[str, Any] = {"naming": self.naming} if self.naming else {"orphans": setup.orphans}
        spec |= self.checker.deletions.rule.specification()
        spec |= self.subtree.specification()
        spec |= {"conflict": "keepLocal"} if setup.keep_local else {}
        spec |= {"mutations": {"down": [*setup.steps], "up": [*setup.up]}} if setup.steps or setup.up else {}
        spec |= {"observedGeneration": "map"} if setup.maps_generation else {}
        entries = [self.statuses.specification(each) for each in self.checker.references.entries]
        spec |= {"related": entries} if entries else {}
        chosen: Json = {"byRobotName": True} if setup.filtered else {}
        chosen |= {"selector": {"matchLabels": {"tier": "edge"}}} if setup.selected else {}
        spec |= {"filter": chosen} if chosen else {}
        spec |= self.apis.specification()
        spec |= self.projections.specification()
        apply_policy(self.world.robot, specSource=setup.source, **spec)

    # Healing

    def heal(self) -> None:
        """Everything works again and everybody waits: both sides must come to agree, and then be left alone."""
        world = self.world
        for side in Side:
            world.mend(str(side))
        self.apis.paused = False
        self.projections.settle()
        self.apply()
        self.environment.start()
        if world.life is not None:
            world.life.fuse = None
        if self.checker.deletions.waiting():
            world.pass_time(600.0)
            self._look()
            if waiting := self.checker.deletions.waiting():
                raise Violation(f"the grace period is over, and {waiting} are not released (C6.4)")
        self._let_go()
        world.pass_time(30.0)  # an event that was late already still comes late
        self._agree()
        if self.projections.put_back():
            self._let_go()
            self._agree()
        if self.setup.keep_local:
            for name in self._originals():
                self._set(name, {"x": f"last {self._number}"})
            self._agree()
        if self.statuses.show_all():
            self._agree()
        if self.setup.maps_generation:
            for name in NAMES:
                self.report(name)
            self._agree()
            if wrong := generations(self):
                raise Violation(wrong[0])
        done = len(world.writes)
        world.pass_time(HOUR)
        self._look()
        late = {each.name for each in world.writes[done:] if each.late}  # and what puts right what that came to
        wrote = [each for each in world.writes[done:] if each.before != each.after and each.name not in late]
        wrote = [each for each in wrote if not self.apis.may_still(each)]
        if wrote:
            raise Violation(f"both sides agreed, and then the agent wrote: {[*map(str, wrote[:5])]}")
        if left := open_ends(self):
            raise Violation(f"agreement was lost: {left}")
        self.checker.read_texts()
        self._look()

    def _let_go(self) -> None:
        """Nobody else keeps copies."""
        self.projections.let_go()
        for where in objects_of(self.down, GOALS):
            self.edits.finalize(self.down, GOALS, where, [])
        for resource in self.checker.references.origins:
            for where in objects_of(self.target(resource), resource):
                self.edits.finalize(self.target(resource), resource, where, [])

    def _agree(self) -> None:
        world = self.world
        deadline, honest, human = world.clock.now + 3 * HOUR, world.clock.now + 900, world.clock.now + 150
        while True:
            world.pass_time(15.0)
            self._look()
            if world.life is None:
                world.start()
            left = open_ends(self)
            if not left and world.at_rest():
                return
            if left and world.clock.now > human:
                self.projections.release()  # what an edit leaves behind may wait for a human (C1.7)
            if left and world.clock.now > honest and world.status()["health"] == "healthy":
                raise Violation(f"it says that it is healthy, and {left}")
            if world.clock.now > deadline:
                raise Violation(f"not in agreement: {left or 'the agent does not come to rest'}; {world.status()}")

    # Help

    def _set(self, name: str, fields: Json) -> None:
        found = self._originals().get(name)
        if found is not None:
            self.up.set(name, kind=self.edits.kind(self.up), spec=found["spec"] | fields)

    def wanted(self, x: int) -> dict[str, str]:
        """The labels of a new object, most of which is to be synced."""
        robot = {ROBOT_LABEL: ROBOT} if self.setup.filtered and x % 4 else {}
        return robot | ({"tier": "edge"} if self.setup.selected and x % 5 else {})

    def _originals(self) -> dict[str, Json]:
        """Upstream's primaries by name."""
        return {name: each for (_, name), each in objects_of(self.up, GOALS).items()}

    def copies(self, name: str) -> list[Where]:
        """The objects of downstream that are copies of the original of a name."""
        return [
            where
            for where, each in objects_of(self.down, GOALS).items()
            if self.checker.name_of.get(self.checker.of(each)) == name
        ]

    def origin(self, resource: str) -> Plane:
        return self.world.planes[self.checker.references.origins.get(resource, Side.CLOUD)]

    def target(self, resource: str) -> Plane:
        return self.world.planes[self.origin(resource).side.other]

    def _related_copies(self, resource: str, name: str) -> list[Where]:
        """The objects where copies are that have the name of an original, or are the copies of such."""
        target, checker = self.target(resource), self.checker
        others = [
            where
            for where, each in objects_of(target, resource).items()
            if checker.place_of.get(checker.of(each), ("", ""))[1] == name != where[1]
        ]
        return [*_called(target, resource, name), *others]


def _called(plane: Plane, resource: str, name: str) -> list[Where]:
    """Where a cluster has objects of a kind that have this name."""
    return [where for where in objects_of(plane, resource) if where[1] == name]
