"""What goals are called in the cloud (C7), and how that is edited, in random histories."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.model import Json, Side
from crsyncer.core.requests.calls import Call
from crsyncer.ports import Reply
from tests.model.histories.policy_followed import Followed
from tests.model.histories.policy_history import FORMS, IN_CLOUD, RESOURCES, Setup, name_of_form, projection
from tests.model.histories.policy_references import GOALS, elsewhere, objects_of, on_robot, spec_of
from tests.model.scenes.blocking import MINE
from tests.model.scenes.projected import FLEET
from tests.model.simulation.check import Violation, is_marked, is_of_finalizer, signed
from tests.model.simulation.plane import GROUP, Plane
from tests.model.simulation.world import World, Write
from tests.system.bed import crd

if TYPE_CHECKING:
    from tests.model.histories.policy_check import PolicyChecker
    from tests.model.histories.policy_machine import PolicyMachine

_UNSERVED = FORMS[-1]
_RACE_SECONDS = 120.0


class ProjectionJudge:
    """Watches what an agent does while it is edited what goals are in the cloud."""

    def __init__(self, world: World, setup: Setup, checker: "PolicyChecker") -> None:
        self._world = world
        self._setup = setup
        self._checker = checker
        self._followed: Followed[str] = Followed(world, _name_in_cloud)
        self._listed: dict[str, float] = {}
        """By kind of the cloud, when the agent was told last which objects there are."""
        self._own: dict[str, str] = {}
        """By uid, the kind of an object of the cloud."""
        self._edited = -_RACE_SECONDS
        self._forgot = -1.0
        """When the agent lost its store: it does not know where copies that it made before were left."""
        if setup.edits_projection:
            checker.watch(self._look)
            world.listeners.append(self._answered)
            world.journal.listeners.append(lambda _: self._followed.look())

    def is_meant(self, obj: Json) -> bool:
        """Whether an object, of whichever side, is of the kind that the policy means there."""
        kind = self._world.cloud.names.get(GOALS, GOALS)
        return self._own.get(obj["metadata"]["uid"], kind) == kind

    def was_edited(self) -> bool:
        """Whether it was edited a moment ago what goals are in the cloud."""
        return self._world.clock.now - self._edited < _RACE_SECONDS

    def is_out_of_sight(self, uid: str) -> bool:
        """Whether the agent follows a kind that an object is not of, and was told which objects there are of that."""
        own = self._own.get(uid, "")
        return any(
            kind != own and self._listed.get(kind, -1.0) >= since
            for kind, since in self._followed.in_force().items()
            if own
        )

    def is_left_behind(self, kind: str) -> bool:
        """Whether copies of a kind of the cloud are to go because the agent follows another one (C1.7)."""
        in_force = self._followed.in_force()
        return self._setup.source == Side.ROBOT and any(each != kind for each in in_force)

    def forget(self) -> None:
        """The agent has lost its store."""
        self._forgot = self._world.clock.now

    def leave(self) -> None:
        """Goals are another kind of the cloud now."""
        self._edited = self._world.clock.now

    def note(self, kind: str, metadata: Json) -> None:
        """There is an object of a kind of the cloud."""
        self._own[metadata["uid"]] = kind

    def open_ends(self) -> Iterator[str]:
        """The objects of other kinds of the cloud that are kept (C6.3), or are left there (C1.7)."""
        for (kind, _, name), each in elsewhere(self._world.cloud).items():
            kept = MINE in (each["metadata"].get("finalizers") or []) and not self._checker.forgot
            if self._setup.source == Side.CLOUD and kept:
                yield f"{kind} {name} is not released"
            if self._checker.born(each) <= self._forgot:
                continue
            asked = "deletionTimestamp" in each["metadata"] or each["metadata"]["uid"] in self._checker.late
            if self._setup.source == Side.ROBOT and signed(each) and is_marked(each) and not asked:
                yield f"{kind} {name} is left behind"

    def _answered(self, side: Side, call: Call, reply: Reply) -> None:
        if side is Side.CLOUD and call.verb == "list" and reply.status == 200 and ("limit", "1") not in call.query:
            parts = call.path.split("/")
            self._listed[f"{parts[-1]}.{parts[2]}"] = self._world.clock.now

    def _look(self, write: Write) -> None:
        if write.side is not Side.CLOUD or on_robot(write.resource) != GOALS or write.status >= 300 or write.late:
            return
        if write.resource in self._followed.in_force():
            return
        if write.verb == "delete" and self.is_left_behind(write.resource):
            return
        if write.verb == "patch" and write.before == write.after:
            return  # it only asks whether the object has our finalizer (C6.2)
        had = (write.before or {"metadata": {}})["metadata"].get("finalizers") or []
        if not (MINE in had and is_of_finalizer(write.before, write.after)):
            raise Violation(f"{write}: the policy means {[*self._followed.in_force()]}, not {write.resource} (C7)")


class Projections:
    """The kinds of the cloud in one world. `project` and `behind` are steps of a history."""

    def __init__(self, machine: "PolicyMachine") -> None:
        self._machine = machine
        self._cloud = machine.world.cloud
        self._forms = machine.setup.forms
        self._form = self._forms[0] if self._forms else {}

    def project(self, which: int) -> None:
        """Somebody edits what goals are in the cloud."""
        form = self._forms[which % len(self._forms)]
        if form == self._form:
            return
        machine, checker = self._machine, self._machine.checker
        before = objects_of(machine.up, GOALS).values()
        self._form = form
        self._cloud.names[GOALS] = name_of_form(form)
        checker.projections.leave()
        for each in (*before, *objects_of(machine.up, GOALS).values()):
            checker.deletions.changed(each)
        checker.references.note()
        machine.apply()

    def behind(self, name: str, which: int, x: int, *refers: int) -> None:
        """Somebody creates an object of another kind of the cloud, changes or deletes it."""
        form, kind = self._forms[which % len(self._forms)], name_of_form(self._forms[which % len(self._forms)])
        if kind == self._cloud.names.get(GOALS, GOALS) or form == _UNSERVED:
            return
        found = self._cloud.objects(kind)
        if name not in found:
            edits = self._machine.edits
            edits.create(self._cloud, name, x, *refers, wanted=self._machine.wanted(x), kind=kind)
        elif x % 3:
            self._cloud.delete(name, kind=kind)
        elif self._machine.up is self._cloud:
            self._cloud.set(name, kind=kind, spec={"x": x, **spec_of(*refers)})
        else:
            self._cloud.set(name, kind=kind, spec=found[name]["spec"] | self._machine.drifted(x))

    def serves(self, plane: Plane) -> bool:
        """Whether a cluster has the kind that the policy means."""
        return plane.side is Side.ROBOT or self._form != _UNSERVED

    def release(self) -> None:
        """A human lets the deletions go on that are held because an edit leaves many copies behind (C1.7)."""
        life = self._machine.world.life
        groups = life.engine.holds.groups() if life is not None and self._forms else ()
        for group in groups:
            if group.resource == GOALS and group.reason == "SelectionChanged":
                self._machine.world.order("release", id=group.id)

    def let_go(self) -> None:
        """Nobody else keeps copies that an edit has left where they were."""
        if self._machine.down is self._cloud:
            for kind, namespace, name in elsewhere(self._cloud):
                self._cloud.finalize(name, kind=kind, namespace=namespace)

    def settle(self) -> None:
        """The cloud serves what the policy means."""
        if self._form == _UNSERVED:
            self.project(0)

    def put_back(self) -> bool:
        """What it was at first goals are again; whether that is another kind."""
        before = self._form
        if self._forms:
            self.project(0)
        return self._form != before

    def specification(self) -> Json:
        """What the policy says of it."""
        setup = self._machine.setup
        scope = {"scope": "Cluster" if Side.CLOUD in setup.clusters else "Namespaced"} if setup.says_scope else {}
        if not self._forms:
            return {"projection": projection("goals") | scope} if "goals" in setup.projected else {}
        if not self._form:
            return {}
        resource = {"group": GROUP, "resource": "goals", "version": "v1"}
        both = {"resource": resource} if "version" in self._form else {}
        return {"projection": self._form | scope, **both}

    def prepare(self) -> None:
        """The cloud has other names for kinds that are projected."""
        cloud, setup = self._cloud, self._machine.setup
        if "goals" in setup.projected:
            cloud.drop_kind()
        for kind in {*setup.projected} - {"parts"}:
            self._apply(IN_CLOUD[kind], is_goals=kind == "goals")
        for form in self._forms:
            if form and form != _UNSERVED:
                self._apply(form["resource"], is_goals=True)
        for kind in setup.projected:
            cloud.names[kind if kind in RESOURCES else f"{kind}.{GROUP}"] = f"{IN_CLOUD[kind]}.{FLEET}"

    def _apply(self, plural: str, *, is_goals: bool) -> None:
        cluster = is_goals and Side.CLOUD in self._machine.setup.clusters
        versions = ("v1", "v2") if plural == "jobs" else ("v1",)
        raw = crd(FLEET, plural=plural, source=None, status=is_goals, cluster=cluster, versions=versions, storage="v1")
        self._cloud.apply(raw)


def _name_in_cloud(policy: KindPolicy) -> str:
    return policy.in_cloud.resource
