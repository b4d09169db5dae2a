"""Takes the steps of a history of shared sources, then has everything heal: what is wrong with it, if anything (F10.3).

`python -m tests.fleet_model.sharing_machine SEED [--shrink]` tells one history, `... --to 500` runs so many.
"""

from collections.abc import Iterator

from crsyncer.core.model import Json
from tests.fleet_model import oracle
from tests.fleet_model.fleet_machine import Violation
from tests.fleet_model.judged_objects import is_replica, marks
from tests.fleet_model.link_steps import LINK_STEPS, heal_links, led_anew
from tests.fleet_model.oracle import PLACEMENTS, ROBOTS, SHARED, Objects
from tests.fleet_model.sharded import GOALS, Sharded, sharded
from tests.fleet_model.sharing import STATUSES, returned
from tests.fleet_model.sharing_history import SHARDS, SOURCES, SharingHistory, sharing_history_of
from tests.fleet_model.world_parts import HOME
from tests.model.histories import running
from tests.model.simulation.plane import Plane
from tests.model.simulation.storage import Snapshot

RELEASE = f"{oracle.FLEET}/release"
HELD = "example.com/wait"
FILTER = "cr-syncer.cloudrobotics.com/filter-by-robot-name"
_DECISIONS = f"robotplacementdecisions.{oracle.FLEET}"
_REFUSED_SECONDS = 3700.0
"""What the server has refused is tried again within this time."""


class SharingMachine:
    """Takes the steps of a history, and looks after each whether something happened that must not."""

    def __init__(self, history: SharingHistory, fleet: Sharded) -> None:
        self.history, self.fleet, self.world = history, fleet, fleet.world
        self.clouds: dict[str, Plane] = {"root": fleet.world.cloud} | {name: fleet[name].cloud for name in SHARDS}
        self.definition = self.world.definition("goals")
        self.backups: dict[str, Snapshot] = {}

    def run(self) -> None:
        """The whole history, and the healing after it; raises Violation."""
        for step in self.history.steps:
            if step.what in LINK_STEPS:
                LINK_STEPS[step.what](self, *step.arguments)
            else:
                getattr(self, step.what)(*step.arguments)
            self.look()
        self.heal()

    def look(self) -> None:
        """Raise what has happened and must not."""
        if found := [*self.fleet.wrong(), *self.world.judge.violations, *self.world.troubles]:
            raise Violation(found[0])

    def heal(self) -> None:
        """Everything is well again, and a human releases what is held: then all is as it shall be."""
        world = self.world
        for name in SOURCES:
            if (found := world.cloud.get(name)) and not oracle.lives(found):
                world.cloud.finalize(name)
        self.define_kind()
        self.share_kind()
        heal_links(self)
        if not world.stored(ROBOTS):
            self.enrol("r0", "root")
        world.pass_time(100)
        self.look()
        for attempt in range(8):
            if attempt == 4:
                world.pass_time(_REFUSED_SECONDS)
            world.settle(quiet=45.0)
            self.look()
            self.release()
            wrong = list(self.disagreements())
            if not wrong:
                break
        else:
            raise Violation("; ".join(wrong))
        more = led_anew(self, seconds=100.0)
        self.look()
        if more:
            raise Violation(f"all agreed, and then: {more[:5]}")

    def disagreements(self) -> Iterator[str]:
        """What differs from what shall be there."""
        yield from (each for shard in self.fleet.shards.values() for each in self._on_shard(shard.name))
        objects = self.world.server.storage.snapshot().objects
        for where, raw in objects.get(GOALS, {}).items():
            wanted = oracle.expected(objects, home=HOME, shard="any").get((GOALS, *where))
            uid, mark = "" if wanted is None else wanted.placement, oracle.texts(raw, "annotations").get(SHARED, "")
            if mark != uid and (uid or oracle.SOURCE not in oracle.texts(raw, "labels")):
                yield f"{where} has the mark {mark}, and not {uid} (F10.3)"
        for placement in objects.get(PLACEMENTS, {}).values():
            name, status = placement["metadata"]["name"], placement.get("status") or {}
            if not oracle.lives(placement):
                yield f"{name} does not go (F5.3)"
            elif status.get("holds"):
                yield f"{name} holds {status['holds']}"
            else:
                yield from self._states(objects, placement)

    def _on_shard(self, shard: str) -> Iterator[str]:
        """What differs on a shard, but for what somebody else has made there, and what nobody knows any more."""
        uids = {raw["metadata"]["uid"] for raw in self.world.stored(PLACEMENTS).values()}
        for _, found, each in self.fleet[shard].differing():
            if found is None or (is_replica(found) and marks(found)["placement"] in uids):
                yield each

    def _states(self, objects: Objects, placement: Json) -> Iterator[str]:
        """The Decisions of a placement list its robots, and say who is Ready (F6.4, F8.5)."""
        name, uid = placement["metadata"]["name"], placement["metadata"]["uid"]
        decided = {
            robot["name"]: robot["state"]
            for raw in objects.get(_DECISIONS, {}).values()
            if raw["placement"]["uid"] == uid
            for robot in raw["robots"]
        }
        robots = {raw["metadata"]["name"]: oracle.shard_of(raw) for raw in oracle.robots_of(objects, placement)}
        if decided.keys() != robots.keys():
            yield f"the Decisions of {name} list {sorted(decided)}, not {sorted(robots)} (F2.1)"
        sources = [raw["metadata"]["name"] for raw, *_ in oracle.sources_of(objects, placement, home=HOME)]
        for robot in decided.keys() & robots.keys():
            phases = [self._phase(robot, robots[robot], source) for source in sources]
            is_ready = not sources or ("readyWhen" in placement["spec"] and set(phases) == {"Ready"})
            if decided[robot] not in ("Blocked", "Ready" if is_ready else "Stamped"):
                yield f"{robot} is {decided[robot]}, and {name} has {sources} with {phases} of it (F6.4)"

    def _phase(self, robot: str, shard: str, source: str) -> str:
        """What a robot has returned of the object that it has."""
        shared = self.clouds[shard].get(source)
        raw = self.clouds[shard].get(_status_name(robot, source), kind=STATUSES)
        if raw is None or shared is None or raw["spec"]["source"]["uid"] != shared["metadata"]["uid"]:
            return ""
        return str(raw["spec"]["returned"].get("phase", ""))

    # Robots and what they return

    def enrol(self, name: str, shard: str) -> None:
        """A robot is enrolled."""
        if ("default", name) not in self.world.stored(ROBOTS):
            self.fleet.enrol(name, shard)

    def lose_robot(self, name: str) -> None:
        """A Robot is deleted."""
        if ("default", name) in self.world.stored(ROBOTS):
            self.world.lose_robots(name)

    def move(self, name: str, shard: str) -> None:
        """The label of a Robot names another shard."""
        if ("default", name) in self.world.stored(ROBOTS):
            self.fleet.move(name, shard)

    def return_status(self, robot: str, source: str, phase: str) -> None:
        """The agent of a robot brings a status up."""
        raw = self.world.stored(ROBOTS).get(("default", robot))
        if raw is not None and self.served(shard := oracle.shard_of(raw)) and self.clouds[shard].get(source):
            returned(self.fleet, robot, {"phase": phase}, name=source, at=self.clouds[shard])

    def lose_status(self, robot: str, source: str) -> None:
        """The agent deletes it."""
        for cloud in self.clouds.values():
            if cloud.get(name := _status_name(robot, source), kind=STATUSES):
                cloud.delete(name, kind=STATUSES)

    # Users

    def add_source(self, name: str, x: int, labels: Json) -> None:
        """Somebody makes a source."""
        if self.served("root") and self.world.cloud.get(name) is None:
            self.world.source(name, spec={"x": x}, labels=labels)

    def edit_source(self, name: str, x: int, labels: Json) -> None:
        """Somebody edits a source, and its labels."""
        if self.served("root") and self.world.cloud.get(name):
            self.world.cloud.set(name, spec={"x": x, "y": x})
            self.world.cloud.label(name, use=labels.get("use"))

    def lose_source(self, name: str) -> None:
        """Somebody deletes a source."""
        if self.served("root") and self.world.cloud.get(name):
            self.world.cloud.delete(name)

    def replace_source(self, name: str, x: int) -> None:
        """Somebody deletes a source, and at once makes another of the name."""
        self.lose_source(name)
        self.add_source(name, x, {"use": "yes"})

    def own_source(self, name: str, robot: str | None) -> None:
        """Somebody labels a source for one robot: it is none then (F2.2)."""
        if self.served("root") and self.world.cloud.get(name):
            self.world.cloud.label(name, kind="goals", namespace="", **{oracle.ROBOT_LABEL: robot})

    def hold_source(self, name: str) -> None:
        """Somebody's finalizer keeps a source."""
        if self.served("root") and self.world.cloud.get(name):
            self.world.cloud.finalize(name, HELD)

    def place(self, name: str, spec: Json) -> None:
        """Somebody makes a placement."""
        if self.world.cloud.get(name, kind=PLACEMENTS) is None:
            self.world.cloud.create(name, kind=PLACEMENTS, spec=spec)

    def edit(self, name: str, spec: Json) -> None:
        """Somebody replaces the spec of a placement."""
        if self.world.cloud.get(name, kind=PLACEMENTS):
            self.world.cloud.set(name, kind=PLACEMENTS, spec=spec)

    def unplace(self, name: str) -> None:
        """Somebody deletes a placement."""
        if self.world.cloud.get(name, kind=PLACEMENTS):
            self.world.unplace(name)

    def replace_placement(self, name: str, spec: Json) -> None:
        """Somebody deletes a placement, and makes another of the name as soon as it is gone."""
        self.unplace(name)
        self.wait(3.0)
        self.place(name, spec)

    def strip(self) -> None:
        """Somebody makes a FieldStrip."""
        if self.world.cloud.get("s", kind=oracle.STRIPS) is None:
            self.world.strip("s", "/spec/y")

    def unstrip(self) -> None:
        """Somebody deletes it."""
        if self.world.cloud.get("s", kind=oracle.STRIPS):
            self.world.cloud.delete("s", kind=oracle.STRIPS)

    def release(self) -> None:
        """A human releases what is held."""
        for raw in self.world.stored(PLACEMENTS).values():
            for hold in (raw.get("status") or {}).get("holds") or []:
                self.world.cloud.annotate(raw["metadata"]["name"], {RELEASE: hold["id"]}, kind=PLACEMENTS)
                for shard in self.fleet.shards.values():
                    shard.protection.kept.clear()

    # Shards

    def drift(self, shard: str, name: str, x: int) -> None:
        """Somebody changes a copy."""
        if self.served(shard) and self.clouds[shard].get(name):
            self.clouds[shard].set(name, spec={"x": f"drift {x}"})

    def unmark(self, shard: str, name: str) -> None:
        """Somebody takes the mark of what robots share away."""
        if self.served(shard) and self.clouds[shard].get(name):
            self.clouds[shard].annotate(name, {SHARED: None})

    def lose_copy(self, shard: str, name: str) -> None:
        """Somebody deletes a copy, or what is there instead."""
        if self.served(shard) and self.clouds[shard].get(name):
            self.clouds[shard].delete(name)

    def rival(self, shard: str, name: str) -> None:
        """Somebody has made an object where a copy belongs."""
        if self.served(shard) and self.clouds[shard].get(name) is None:
            self.clouds[shard].create(name, spec={"x": -1})

    def drive(self, shard: str, name: str) -> None:
        """The agent of a robot that does not know the mark writes the status of a copy."""
        if self.served(shard) and self.clouds[shard].get(name):
            self.clouds[shard].set_status(name, {"phase": "Driving"})

    def served(self, shard: str) -> bool:
        """Whether goals are there, and do not go."""
        return any(each.resource == GOALS and not each.dying for each in self.clouds[shard].server.kinds())

    def delete_kind(self, shard: str) -> None:
        """Somebody deletes the CRD of goals, and all of them go."""
        if self.served(shard):
            self.clouds[shard].delete_kind()
            self.wait(0.3)
            self.clouds[shard].sweep()
            self._lost(shard, "it was lost with the CRD")

    def define_kind(self) -> None:
        """The CRDs that were deleted are applied again."""
        for shard, cloud in self.clouds.items():
            if not self.served(shard):
                had_any = bool(cloud.objects())
                cloud.sweep()
                if had_any:
                    self._lost(shard, "it was lost with the CRD")
            if not any(each.resource == GOALS for each in cloud.server.kinds()):
                (self.world if shard == "root" else self.fleet[shard]).serve(self.definition)

    def filter_kind(self, shard: str) -> None:
        """A CRD says that its objects are each for one robot: they must not be shared (F2.3)."""
        self._mark_kind(shard, "true")

    def share_kind(self) -> None:
        """All CRDs say again that they may be shared."""
        for shard in self.clouds:
            self._mark_kind(shard, None)

    def _mark_kind(self, shard: str, value: str | None) -> None:
        if self.served(shard):
            self.clouds[shard].annotate_kind({FILTER: value})

    def back_up(self, shard: str) -> None:
        """Somebody makes a backup of a shard's etcd."""
        self.backups[shard] = self.clouds[shard].snapshot()

    def restore(self, shard: str, overtaken_by: int) -> None:
        """A shard goes back to its backup."""
        if shard in self.backups:
            self.clouds[shard].restore(self.backups[shard], overtaken_by=overtaken_by)
            if shard == "root":
                self.world.judge.rewound()
            self._lost(shard, "the cloud was restored")

    def _lost(self, shard: str, why: str) -> None:
        for each in self.fleet.shards.values() if shard == "root" else [self.fleet[shard]]:
            each.lost(why)

    def restart_server(self, shard: str) -> None:
        """An API server is restarted."""
        self.clouds[shard].restart()

    def compact(self, shard: str) -> None:
        """An API server forgets its past."""
        self.clouds[shard].compact()

    # Machines and links

    def wait(self, seconds: float) -> None:
        """Time passes."""
        self.world.pass_time(seconds)


def _status_name(robot: str, source: str) -> str:
    return f"{oracle.digest([GOALS, 'default', source])}-{robot}"


PROGRAM = "tests.fleet_model.sharing_machine"


def run(history: SharingHistory) -> None:
    """Run a history; raises AssertionError."""
    with sharded(history.seed, filtered=None, by_chance=True, mode="Shared", start=False) as fleet:
        SharingMachine(history, fleet).run()


def failure(history: SharingHistory) -> str | None:
    """What is wrong with a history; None: nothing."""
    return running.failure_of(lambda: run(history))


def main() -> int:
    """The command."""
    given = running.parser(PROGRAM, __doc__, most=100).parse_args()
    if given.seed is None:
        seeds, again = range(given.first, given.last), f"python -m {PROGRAM}"
        return running.report(seeds, lambda seed: failure(sharing_history_of(seed)), again=again, stop=given.stop)
    history = sharing_history_of(given.seed)
    if given.shrink and failure(history) is not None:
        history = running.shrunk(history, failure)
    return running.tell(history, lambda: run(history), list)


if __name__ == "__main__":
    running.run_with_fixed_hashes(PROGRAM, main)
