"""Takes the steps of a history in the made-up world, then has everything heal: what is wrong with it, if anything."""

from typing import Any

from crsyncer.core.content.annotations import ROBOT_LABEL
from crsyncer.core.model import Json, Side
from crsyncer.core.requests.calls import Call
from crsyncer.ports import Reply
from tests.model.histories.agreement import needless, open_ends
from tests.model.histories.environment import Environment
from tests.model.histories.history import KINDS, History
from tests.model.histories.operators import Operators
from tests.model.histories.promises import Promises
from tests.model.simulation.check import Checker, Spec, Violation, specs
from tests.model.simulation.judge import stamp
from tests.model.simulation.life import ROBOT
from tests.model.simulation.plane import Plane
from tests.model.simulation.storage import Snapshot
from tests.model.simulation.world import World

HOUR = 3600.0


class Machine:
    """Takes the steps of a history, and looks after each whether something happened that must not."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.world = World(
            history.seed, kinds={name: KINDS[name] for name in history.kinds}, settings=history.settings, by_chance=True
        )
        self.specs = specs({name: dict(KINDS[name]) for name in history.kinds})
        self.checker = Checker(self.world, self.specs)
        self.promises = Promises(self.world, self.checker)
        self.operators = Operators(self)
        self.environment = Environment(self.world)
        self._went_back: set[Side] = set()
        self._by_plural = {spec.plural: spec for spec in self.specs.values()}
        self._number = 0
        self._snapshots: dict[Side, Snapshot] = {}
        self._unmet: set[tuple[Side, str]] = set()
        """What an agent without a memory has not seen again: that it is older, or another, would be no news to it."""

    def run(self) -> None:
        """The whole history, and the healing after it; raises Violation."""
        with self.world:
            self.world.listeners.append(self._heard)
            self.world.start()
            for step in self.history.steps:
                handlers = (self.operators, self.environment, self)
                handler = next(each for each in handlers if hasattr(each, step.what))
                getattr(handler, step.what)(*step.arguments)
                self._look()
            self.heal()

    def _look(self) -> None:
        self.promises.read_outbox()
        found = self.checker.violations + self.world.troubles
        if found:
            raise Violation(found[0])

    # Users and controllers

    def create(self, kind: str, name: str, x: int, fancy: int) -> None:
        """Somebody creates an object upstream."""
        plane, spec = self._upstream(kind)
        if plane is None or name in plane.objects(kind):
            return
        labelled = kind == "flips" or (spec.filtered and fancy % 4)
        wanted: dict[str, str] = {ROBOT_LABEL: ROBOT} if labelled else {}
        if fancy % 3 == 0:
            wanted["l"] = str(x)
        status: dict[str, Any] = {} if spec.subresource or fancy % 2 else {"status": self._status(spec, "")}
        plane.create(name, kind=kind, spec={"x": x}, labels=wanted, **status)
        if fancy % 5 == 0:
            self._rival(plane, spec, name)

    def change(self, kind: str, name: str, x: int) -> None:
        """Somebody changes the content upstream."""
        plane, _ = self._upstream(kind)
        if plane is not None and name in plane.objects(kind):
            plane.set(name, kind=kind, spec={"x": x})

    def remove(self, kind: str, name: str) -> None:
        """Somebody deletes it upstream."""
        plane, _ = self._upstream(kind)
        if plane is not None and name in plane.objects(kind):
            plane.delete(name, kind=kind)

    def replace(self, kind: str, name: str, x: int) -> None:
        """Somebody deletes it upstream, and at once creates another of that name."""
        self.remove(kind, name)
        self.create(kind, name, x, 1)

    def relabel(self, kind: str, name: str, to: str) -> None:
        """Somebody gives it to another robot, or back."""
        plane, _ = self._upstream(kind)
        if kind != "flips" and plane is not None and name in plane.objects(kind):
            plane.label(name, kind=kind, robot=to or None)

    def keep(self, kind: str, name: str, which: str, on: int) -> None:
        """Somebody's finalizer keeps an object upstream or downstream, or does no more."""
        plane, _ = self._upstream(kind) if which == "upstream" else self._downstream(kind)
        if plane is not None and name in plane.objects(kind):
            plane.finalize(name, *(["example.com/wait"] if on else []), kind=kind)

    def rival(self, kind: str, name: str) -> None:
        """Somebody else writes the status upstream."""
        plane, spec = self._upstream(kind)
        if plane is not None and name in plane.objects(kind):
            self._rival(plane, spec, name)

    def report(self, kind: str, name: str) -> None:
        """The controller downstream writes its status."""
        plane, spec = self._downstream(kind)
        copy = None if plane is None else plane.objects(kind).get(name)
        if plane is not None and copy is not None:
            plane.set_status(name, self._status(spec, stamp(copy)), kind=kind)
            self.checker.stories[stamp(copy)].rivalled = False

    def blank(self, kind: str, name: str, whole: int) -> None:
        """The controller downstream takes its status away; in subtree mode, or (`whole`) more than that."""
        plane, spec = self._downstream(kind)
        copy = None if plane is None else plane.objects(kind).get(name)
        if plane is None or copy is None or spec.moving(copy) is None:
            return
        if spec.subtree is None or not whole:
            self.checker.stories[stamp(copy)].cleared = True
        self.promises.forgive(stamp(copy))
        kept = spec.neighbours(copy) if spec.subtree is not None and not whole else None
        plane.set_status(name, kept or None, kind=kind)

    def drift(self, kind: str, name: str, x: int) -> None:
        """Somebody changes the content of a copy."""
        plane, _ = self._downstream(kind)
        if plane is not None and name in plane.objects(kind):
            plane.set(name, kind=kind, spec={"x": x})

    def lose_copy(self, kind: str, name: str) -> None:
        """Somebody deletes a copy."""
        plane, _ = self._downstream(kind)
        if plane is not None and name in plane.objects(kind):
            plane.delete(name, kind=kind)

    def by_hand(self, kind: str, name: str, labelled: int) -> None:
        """Somebody makes an object downstream by hand."""
        plane, _ = self._downstream(kind)
        if plane is not None and name not in plane.objects(kind):
            wanted = {ROBOT_LABEL: ROBOT} if labelled or kind == "flips" else {}
            plane.create(name, kind=kind, spec={"x": -1}, labels=wanted)

    # The agent and the clusters

    def lose_database(self) -> None:
        """The agent is killed, and its state directory is emptied."""
        self.world.crash()
        self.world.lose_database()
        self.checker.released |= set(self.specs)  # that there is something to be held is among what is forgotten
        self.promises.manual.clear()
        self.promises.forgive()
        self.operators.may_forget()
        self.forget_clusters()
        self.environment.start()

    def forget_clusters(self) -> None:
        """The agent's memory is gone, or older: that a cluster goes back now is nothing that it could notice."""
        self._unmet = {(side, plural) for side in Side for plural in self._by_plural}

    # The clusters

    def snapshot(self, side: str) -> None:
        """A backup of a cluster is made."""
        self._snapshots[Side(side)] = self.world.planes[Side(side)].snapshot()

    def restore(self, side: str) -> None:
        """A cluster is restored from its backup. The robot's goes back at a power cut, which the agent shares."""
        snapshot = self._snapshots.get(Side(side))
        if snapshot is None or any(side == unmet for unmet, _ in self._unmet) or not self.operators.may_forget():
            return
        self._went_back.add(Side(side))
        if Side(side) is Side.ROBOT:
            self.world.crash()
            self.world.boots += 1
        before = self._uids(Side(side))
        self.world.planes[Side(side)].restore(snapshot)
        self.checker.went_back(Side(side), before)

    def rebuild(self, side: str, revision: int) -> None:
        """A cluster is set up anew, empty; nobody is so quick that no connection breaks."""
        if any(side == unmet for unmet, _ in self._unmet) or not self.operators.may_forget():
            return
        weather = self.world.weather[Side(side)]
        was_cut, weather.cut = weather.cut, True
        self.world.signals[Side(side)].ring()
        self.world.pass_time(1.0)
        while self.world.life is not None and self.world.life.engine.connections[Side(side)].up.is_set():
            self.world.pass_time(1.0)  # no request was under way: the next probe notices
        self._went_back.add(Side(side))
        before = self._uids(Side(side))
        self.world.planes[Side(side)].rebuild(revision=revision)
        weather.cut = was_cut
        self.world.signals[Side(side)].ring()
        self.checker.went_back(Side(side), before)
        self._snapshots.pop(Side(side), None)

    # Healing

    def heal(self) -> None:
        """Everything works again and everybody waits: both sides must come to agree, and then be left alone."""
        world = self.world
        for side in Side:
            world.mend(str(side))
        world.disk.refuses = False
        self.operators.undo_edits()
        for spec in self.specs.values():
            for side, plane in world.planes.items():
                self.operators.define_kind(spec.plural, str(side))
                for name in plane.objects(spec.plural):
                    plane.finalize(name, kind=spec.plural)
        self.environment.start()
        if world.life is not None:
            world.life.fuse = None
        world.pass_time(30.0)  # an event that was late already still comes late
        deadline = world.clock.now + 3 * HOUR
        human, honest = world.clock.now + 150, world.clock.now + 900
        while True:
            world.pass_time(15.0)
            self._look()
            if world.life is None:
                world.start()
            left = open_ends(self.world, self.checker)
            if not left and world.at_rest() and world.all_run():
                break
            if world.clock.now > human:
                self._must_be(self.promises.needless_holds(self.operators, went_back=self._went_back))
                self.operators.release()  # what waits for a human waits no longer
                human = world.clock.now + 600
                left = open_ends(self.world, self.checker)
            if left and world.clock.now > honest and world.status()["health"] == "healthy":
                raise Violation(f"it says that it is healthy, and {left}")
            if world.clock.now > deadline:
                raise Violation(f"not in agreement: {left or 'the agent does not come to rest'}; {world.status()}")
        self._must_be(self.promises.lost() + self.promises.generations())
        done = len(world.writes)
        rivalled = {uid for uid, story in self.checker.stories.items() if story.rivalled}
        dead = self._dead_letters()
        world.pass_time(HOUR)
        self._look()
        wrote = needless(world, self.checker, world.writes[done:], rivalled)
        if more := [str(w) for w in wrote if (w.resource, w.name) not in dead]:
            raise Violation(f"both sides agreed, and then the agent wrote: {more[:5]}")
        if left := open_ends(self.world, self.checker):
            raise Violation(f"agreement was lost: {left}")

    def _must_be(self, wrong: list[str]) -> None:
        if wrong:
            raise Violation(wrong[0])

    def _dead_letters(self) -> set[tuple[str, str]]:
        """Resource and name of the objects whose content was refused for good: it is tried again hourly (S3.6)."""
        assert self.world.life is not None
        kinds = [row.kind for row in self.world.life.engine.kinds.entries.values() if row.kind is not None]
        return {(kind.policy.resource, key.name) for kind in kinds for key in kind.reconciler.outcomes.rejected}

    # Help

    def spec_of(self, kind: str) -> Spec:
        """How a kind is synced."""
        return self._by_plural[kind]

    def _upstream(self, kind: str) -> tuple[Plane | None, Spec]:
        spec = self._by_plural[kind]
        return self.plane(spec.upstream, spec), spec

    def _downstream(self, kind: str) -> tuple[Plane | None, Spec]:
        spec = self._by_plural[kind]
        return self.plane(spec.downstream, spec), spec

    def plane(self, side: Side, spec: Spec) -> Plane | None:
        """The cluster, if users can do something with the kind there."""
        plane = self.world.planes[side]
        served = any(k.plural == spec.plural and not k.dying for k in plane.server.kinds())
        return plane if served else None

    def _heard(self, side: Side, call: Call, reply: Reply) -> None:
        if call.verb == "list" and reply.status == 200 and ("limit", "1") not in call.query:
            self._unmet.discard((side, call.path.rpartition("/")[2]))

    def _status(self, spec: Spec, of: str) -> Json:
        self._number += 1
        status = {"of": of, "n": self._number}
        return status if spec.subtree is None else {spec.subtree: status, "other": self._number}

    def _rival(self, plane: Plane, spec: Spec, name: str) -> None:
        uid = plane.objects(spec.plural)[name]["metadata"]["uid"]
        status = self._status(spec, uid)
        self.checker.stories[uid].rivalled = True
        plane.set_status(name, status, kind=spec.plural)

    def _uids(self, side: Side) -> dict[str, set[str]]:
        plane = self.world.planes[side]
        return {
            resource: {o["metadata"]["uid"] for o in plane.objects(spec.plural).values()}
            for resource, spec in self.specs.items()
        }
