"""A world with several API servers: the root, which is judged as in FleetWorld, and shards that are judged here."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from crsyncer.core.model import Json, Side
from crsyncer.core.requests.calls import Call
from crsyncer.fleet.controllers.controller import FleetController
from crsyncer.ports import Reply
from tests.fleet_model import oracle
from tests.fleet_model.controlling import SETTINGS, Counted
from tests.fleet_model.fleet_world import FleetWorld
from tests.fleet_model.judged_objects import content_of, differences, is_replica, owned
from tests.fleet_model.leading import Meta
from tests.fleet_model.oracle import FLEET, ROBOT_LABEL, ROBOTS
from tests.fleet_model.process import Process
from tests.fleet_model.protection import Protection
from tests.fleet_model.world_parts import HOME, Write, fleet_crd
from tests.model.simulation.api_server import CRDS, ApiServer
from tests.model.simulation.connection import Connection
from tests.model.simulation.journal import Journal
from tests.model.simulation.life import Hand
from tests.model.simulation.plane import GROUP, Plane
from tests.model.simulation.storage import Storage, copied
from tests.model.simulation.weather import Weather
from tests.system.bed import crd

SHARD_LABEL = f"{FLEET}/shard"
SYNC_STATES = f"robotsyncstates.{FLEET}"
GOALS = f"goals.{GROUP}"
_INPUTS = (ROBOTS, oracle.PLACEMENTS, f"robotplacementdecisions.{FLEET}", oracle.STRIPS, "configmaps", GOALS)


@dataclass(slots=True)
class Shard:
    """One API server beside the root. What a controller writes there is judged; `wrong` is what it must never do."""

    world: FleetWorld
    name: str
    server: ApiServer
    cloud: Plane
    wrong: list[str] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)
    protection: Protection = field(default_factory=Protection)
    _listed: dict[str, set[str]] = field(default_factory=dict)
    """By the identity of a controller: the kinds of which it has had a whole list here."""

    def __post_init__(self) -> None:
        self.world.server.storage.listeners.append(self._root_changed)

    def lost(self, why: str) -> None:
        """Something was lost other than by an edit: the replicas here that nobody wants now must stay (F5.2)."""
        wanted, there = self._wanted(), self.server.storage.of(GOALS).items()
        found = {(GOALS, *where): raw for where, raw in there if is_replica(raw) and (GOALS, *where) not in wanted}
        self.protection.protect(found, why, [self.world.processes[name].identity for name in self.world.leaders])

    def _root_changed(self, _: object) -> None:
        if self.protection.kept:
            self.protection.seen(self._wanted())

    def _wanted(self) -> dict[oracle.Place, oracle.Expected]:
        return oracle.expected(self.world.server.storage.snapshot().objects, home=HOME, shard=self.name)

    @property
    def link(self) -> str:
        """What the link of the controller a to this shard is called in the world: `world.cut(shard.link)`."""
        return f"a@{self.name}"

    def serve(self, definition: Json) -> None:
        """Apply a CRD, which is then established."""
        self.cloud.apply(definition)
        where = ("", definition["metadata"]["name"])
        found = copied(self.server.storage.of(CRDS)[where])
        found["status"] = {"conditions": [{"type": "Established", "status": "True"}]}
        self.server.storage.put(CRDS, where, found)
        self.world.signal.ring()

    def specs(self) -> dict[str, Any]:
        """The specs of the replicas here, by NAMESPACE/NAME."""
        found = self.server.storage.of(GOALS).items()
        return {"/".join(where): raw.get("spec") for where, raw in found if is_replica(raw)}

    def verbs(self, since: float = 0.0) -> list[str]:
        """The verbs of what a controller has changed of replicas here."""
        return [each.verb for each in self.writes if each.time >= since and each.resource == GOALS]

    def connect(self, process: Process) -> Connection:
        """The way of a controller to this server."""
        hand = Hand(Side.CLOUD, process, lambda _, call, *, late: self._perform(process, call, late=late))
        weather = self.world.weather.setdefault(f"{process.name}@{self.name}", Weather(self.world.chance))
        return Connection(
            Side.CLOUD, self.server, weather=weather, signal=self.world.signal, wire=hand, journal=Journal()
        )

    def differing(self) -> Iterator[tuple[str, Json | None, str]]:
        """What differs here from what shall be there: its name, the object of that name, and how."""
        objects, wanted = self.server.storage.of(GOALS), self._wanted()
        for place in wanted.keys() | {(GOALS, *where) for where, raw in objects.items() if is_replica(raw)}:
            found, each = objects.get(place[1:]), wanted.get(place)
            if each is None:
                yield place[2], found, f"shard {self.name}: {place} is left"
            elif found is None or not is_replica(found):
                yield place[2], found, f"shard {self.name}: {place} is missing"
            elif wrong := differences(found, each):
                yield place[2], found, f"shard {self.name}: {place}: {wrong}"

    def disagreements(self) -> list[str]:
        """What differs here from what shall be there."""
        return [each for _, _, each in self.differing()]

    def _perform(self, process: Process, call: Call, *, late: bool) -> Reply:
        if call.method == "GET":
            reply = self.server.answer(call)
            listed = self.server.address(call.path) if call.verb == "list" else None
            whole = reply.status == 200 and not (reply.body.get("metadata") or {}).get("continue")
            if whole and listed is not None:
                self._listed.setdefault(process.identity, set()).add(listed.kind.resource)
            return reply
        address = self.server.address(call.path)
        if address is None:
            return self.server.answer(call)
        where = (address.namespace, address.name or call.body["metadata"]["name"])
        before = self.server.storage.of(address.kind.resource).get(where)
        reply = self.server.answer(call)
        after = self.server.storage.of(address.kind.resource).get(where)
        write = Write(
            self.world.clock.now, f"{process.name}@{self.name}", call.verb, address.kind.resource, *where,
            call, reply.status, before, after, late,
        )  # fmt: skip
        self.world.writes.append(write)
        self.writes.append(write)
        if reply.status < 300:
            self.wrong += [f"shard {self.name}: {write}: {each}" for each in self._judge(process, write)]
        self.world.signal.ring()
        return reply

    def _judge(self, process: Process, write: Write) -> Iterator[str]:
        """What is wrong about a write that was carried out (F1.1, F5, F10.2)."""
        missing = set(_INPUTS) - self.world.judge.listed.get(process.identity, set())
        missing |= {GOALS} - self._listed.get(process.identity, set())
        if missing:
            yield f"before {', '.join(sorted(missing))} was listed (F1.1)"
        if write.resource == "namespaces" and write.verb == "create":
            return
        seen = [each for each in (write.before, write.after) if each is not None and is_replica(each)]
        if write.resource != GOALS or not seen:
            yield "it is no replica (F3.2)"
            return
        raw = seen[0]
        moments = self.world.judge.window(patient=True)
        robot, place = oracle.texts(raw, "labels").get(ROBOT_LABEL), (GOALS, write.namespace, write.name)
        robots = [moment.objects.get(ROBOTS, {}).get(("default", str(robot))) for moment in moments]
        if robot and not any(each is None or oracle.shard_of(each) == self.name for each in robots):
            yield "its robot is on another shard (F10.2)"
        before, after = write.before, write.after
        is_same = before is not None and after is not None and content_of(before) == content_of(after)
        views = self.world.judge.views(GOALS, patient=True)
        wanted = (oracle.expected(view.objects, home=HOME, shard=self.name).get(place) for view in views)
        if after is None or not is_replica(after):
            if all(each is not None for each in wanted):
                yield "it is wanted (F5.1, F5.4)"
            why = self.protection.forbids(place, raw, process.identity)
            if why and not write.late and not self.world.judge.was_edited(raw):
                yield f"{why}, and nobody has released it (F5.2)"
        elif before is not None and is_replica(before) and owned(before) == owned(after):
            yield "it was so already (F3.4)"
        elif not any(each is not None and (is_same or not differences(after, each, is_new=True)) for each in wanted):
            yield "not as rendered, or not wanted (F4)"


@dataclass(slots=True)
class Sharded:
    """The root's world, and the shards by name."""

    world: FleetWorld
    shards: dict[str, Shard]

    def __getitem__(self, name: str) -> Shard:
        return self.shards[name]

    def enrol(self, robot: str, shard: str, **labels: str) -> None:
        """Make a Robot on a shard."""
        labels |= {} if shard == "root" else {SHARD_LABEL: shard}
        self.world.robots(robot, **labels)

    def move(self, robot: str, shard: str) -> None:
        """Set the label of a Robot alone."""
        self.world.cloud.label(robot, kind=ROBOTS, namespace="", **{SHARD_LABEL: None if shard == "root" else shard})

    def agree(self, *names: str) -> None:
        """Let time pass until the root, and these or all shards, have what they shall have."""
        self.world.agree()
        for _ in range(20):
            chosen = [self.shards[name] for name in names or self.shards]
            wrong = [each for shard in chosen for each in shard.disagreements()]
            if not wrong:
                return
            self.world.settle()
        raise AssertionError("\n".join(wrong))

    def wrong(self) -> Iterable[str]:
        """What a controller did on the shards that it must never do."""
        return [each for shard in self.shards.values() for each in shard.wrong]


def _control(worlds: list[Sharded]) -> Any:
    async def control(process: Process) -> None:
        controller = FleetController(
            process.cluster,
            settings=SETTINGS,
            store=Meta(),
            observer=Counted(),
            clock=process.clock,
            identity=process.identity,
            shards={name: shard.connect(process) for name, shard in worlds[0].shards.items()},
        )
        process.leads = lambda: controller.leader.leads
        process.parts |= {"controller": controller}
        try:
            await controller.run()
        finally:
            await controller.release()

    return control


@contextmanager
def sharded(
    seed: int = 0,
    *,
    shards: Iterable[str] = ("b", "c"),
    start: bool = True,
    filtered: str | None = "true",
    by_chance: bool = False,
    **spec: Any,
) -> Iterator[Sharded]:
    """The source dock, the placement p of all goals for all robots; r0 on the root, rb on b, rc on c; a controller.

    `filtered`: of the goals, by robot name; `spec`: more of the placement's.
    """
    worlds: list[Sharded] = []
    with FleetWorld(_control(worlds), seed, kinds={"goals": {"filtered": filtered}}, by_chance=by_chance) as world:
        found: dict[str, Shard] = {}
        for number, name in enumerate(shards):
            server = ApiServer(Storage(name, revision=90_000 * (number + 1), now=lambda: world.clock.now))
            found[name] = Shard(world, name, server, Plane(Side.CLOUD, server, world.signal))
            found[name].serve(fleet_crd("robotsyncstates"))
            found[name].serve(fleet_crd("robotobjectstatuses"))
            found[name].serve(crd(GROUP, plural="goals", filtered=filtered))
        all_of_it = Sharded(world, found)
        worlds.append(all_of_it)
        all_of_it.enrol("r0", "root")
        for name in found:
            all_of_it.enrol(f"r{name}", name)
        world.source("dock")
        world.place("p", **spec)
        if start:
            world.start("a")
            all_of_it.agree()
        yield all_of_it
        assert list(all_of_it.wrong()) == [], "\n".join(all_of_it.wrong())
