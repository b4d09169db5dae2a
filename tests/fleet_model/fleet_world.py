"""The controller's world in plain verbs: `world.robots(3)`, `world.place("p")`, `world.start("a")`, `world.cut("a")`.

As in `tests/model/simulation`, nothing moves between two verbs, and the same seed and verbs give the same history.
"""

import asyncio
import logging
import math
import random
from collections.abc import Callable, Mapping
from random import Random
from types import TracebackType
from typing import Any

from crsyncer.cli.fleet.fleet_crds import INVENTORY, KINDS
from crsyncer.core.model import Json, Side
from crsyncer.core.requests.calls import Call
from crsyncer.ports import Reply
from tests.fleet_model.fleet_judge import FleetJudge
from tests.fleet_model.judged_objects import is_replica
from tests.fleet_model.process import Process, Work
from tests.fleet_model.world_parts import (
    DECISIONS,
    HOME,
    INVENTORY_KIND,
    LEASES,
    PLACEMENTS,
    PROPERTIES,
    STRIPS,
    Write,
    called,
    fleet_crd,
    is_lease_lost,
    placing,
)
from tests.model.simulation.api_server import CRDS, ApiServer
from tests.model.simulation.clock import Clock
from tests.model.simulation.connection import Signal
from tests.model.simulation.journal import Journal
from tests.model.simulation.life import Complaints
from tests.model.simulation.plane import GROUP, Plane
from tests.model.simulation.storage import Storage, copied
from tests.model.simulation.weather import Fate, Rule, Weather
from tests.system.bed import crd

_SETTLE_SECONDS = 2.0


class FleetWorld:
    """One cloud and any number of controllers. `kinds`: what may be placed, by plural, with the keywords of `bed.crd`.

    Each world is judged: it raises AssertionError at its end if a controller did what it must never do
    (`fleet_judge`), or if no request met a fault that was injected, unless faults come `by_chance`.
    """

    def __init__(
        self,
        work: Work,
        seed: int = 0,
        *,
        kinds: Mapping[str, Mapping[str, Any]] | None = None,
        by_chance: bool = False,
        only_lease: bool = False,
    ) -> None:
        self._work = work
        self._by_chance = by_chance
        self.chance = Random(seed)
        random.seed(seed)  # the controllers' jitter
        self.clock = Clock()
        self.server = ApiServer(Storage("cloud", revision=5000, now=lambda: self.clock.now))
        self.signal = Signal(asyncio.Event())
        self.cloud = Plane(Side.CLOUD, self.server, self.signal)
        self.journals: dict[str, Journal] = {}
        """By process name: what it asked for, in all its lives."""
        self.weather: dict[str, Weather] = {}
        self.processes: dict[str, Process] = {}
        """Those that run."""
        self.writes: list[Write] = []
        self.witnesses: list[Callable[[Write], None]] = []
        self._starts = 0
        self._complaints = Complaints()
        self.ends: list[tuple[str, BaseException]] = []
        """The processes that ended by themselves, with the errors."""
        for name in (*KINDS, INVENTORY):
            self.serve(fleet_crd(name))
        for plural, keywords in (kinds or {"goals": {}}).items():
            self.serve(crd(GROUP, plural=plural, **{"filtered": "true", **keywords}))
        for name in (HOME, PROPERTIES):
            self.server.make_namespace(name)
        self.judge = FleetJudge(self, only_lease=only_lease)

    @property
    def home(self) -> str:
        """The controller's namespace."""
        return HOME

    def __enter__(self) -> "FleetWorld":
        logging.getLogger("crsyncer").addHandler(self._complaints)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        logging.getLogger("crsyncer").removeHandler(self._complaints)
        wrong = [*self.judge.violations, *self.troubles] if kind is None else []
        if not self._by_chance:
            unmet = [(name, each) for name, weather in self.weather.items() for each in weather.unmet()]
            wrong += [f"no request of {name} met it: {each}" for name, each in unmet]
        for name in list(self.processes):
            self.kill(name)
        self.clock.close()
        if kind is None and wrong:
            raise AssertionError("\n".join(wrong))

    @property
    def troubles(self) -> list[str]:
        """What must never come up: errors that a controller logs, tasks that fail, ends that are no lost Lease."""
        self._bury()
        ends = [f"{name} has ended: {error!r}" for name, error in self.ends if not is_lease_lost(error)]
        return self._complaints.messages + self.clock.troubles + ends

    # Time

    def pass_time(self, seconds: float) -> None:
        """Let everybody go on for so long."""
        self.clock.pass_time(seconds)
        self._bury()

    def settle(self, *, quiet: float = 40.0, seconds: float = 1200.0) -> None:
        """Let time pass until no controller has written for so long; raises AssertionError."""
        deadline, last = self.clock.now + seconds, self.clock.now
        while self.clock.now < last + quiet:
            assert self.clock.now < deadline, f"not settled within {seconds} s: {self.writes[-5:]}"
            done = len(self.written())
            self.pass_time(_SETTLE_SECONDS)
            last = self.clock.now if len(self.written()) > done else last
            assert self.troubles == [], "\n".join(self.troubles)

    def agree(self, *, seconds: float = 600.0) -> None:
        """Let time pass until all replicas are as they shall be, and nothing more is written."""
        deadline = self.clock.now + seconds
        self.settle()
        while wrong := self.judge.disagreements():
            assert self.clock.now < deadline, "\n".join(wrong)
            self.settle()

    # The controllers

    def start(self, name: str = "a", work: Work | None = None) -> Process:
        """Start a controller; its identity is its name and how often it was started."""
        assert name not in self.processes, "it runs already"
        weather = self.weather.setdefault(name, Weather(self.chance))
        if name not in self.journals:
            self.journals[name] = Journal(listeners=[lambda request: self.judge.sends(name, request.call)])
        journal = self.journals[name]
        self._starts += 1

        async def begin() -> Process:
            return Process(
                name,
                f"{name}-{self._starts}",
                work or self._work,
                server=self.server,
                weather=weather,
                signal=self.signal,
                chance=self.chance,
                clock=self.clock.unix,
                perform=self._perform,
                journal=journal,
            )

        self.processes[name] = self.clock.run(begin())
        return self.processes[name]

    def kill(self, name: str = "a") -> None:
        """Kill a controller, here and now."""
        if (process := self.processes.pop(name, None)) is not None:
            if process.ended is not None:
                self.ends.append((name, process.ended))
            process.die()
            process.buried = True
            process.still.end()
            while tasks := [task for task in process.tasks if not task.done()]:
                for task in tasks:
                    task.cancel()  # what cleans up may wait once more
                self.clock.run(asyncio.wait(tasks, timeout=0.001))
            _ = process.ended  # it may have ended by itself meanwhile: that is no trouble

    def kill_after(self, messages: int, name: str = "a") -> None:
        """Kill it after it has sent or received so many more messages."""
        self.processes[name].fuse = messages

    def terminate(self, name: str = "a", *, seconds: float = 10.0) -> None:
        """SIGTERM: it ends within so many seconds, or is killed."""
        process = self.processes[name]
        process.task.cancel()
        self.clock.run(asyncio.wait([process.task], timeout=seconds))
        self.kill(name)

    def stand_still(self, name: str = "a") -> None:
        """SIGSTOP."""
        self.judge.trouble()
        self.clock.run(called(self.processes[name].stand_still))

    def go_on(self, name: str = "a") -> None:
        """SIGCONT."""
        self.judge.well()
        self.clock.run(called(self.processes[name].go_on))

    def runs(self, name: str = "a") -> bool:
        """Whether a controller has not ended."""
        self._bury()
        return name in self.processes

    @property
    def leaders(self) -> list[str]:
        """The controllers that would let a write pass now."""
        return self.clock.run(called(lambda: [name for name, each in self.processes.items() if each.leads()]))

    def _bury(self) -> None:
        for name, process in list(self.processes.items()):
            if process.dead or process.task.done():
                self.kill(name)

    # Users

    def robots(self, *names: str, **labels: str) -> None:
        """Make Robots."""
        for name in names:
            self.cloud.create(name, kind=INVENTORY_KIND, labels=labels, spec={})

    def lose_robots(self, *names: str) -> None:
        """Delete Robots."""
        for name in names:
            self.cloud.delete(name, kind=INVENTORY_KIND)

    def source(self, name: str = "dock", *, kind: str = "goals", namespace: str = "", **fields: Any) -> None:
        """Make a source: `source("dock", spec={"x": 1}, labels={...})`."""
        self.cloud.create(name, kind=kind, namespace=namespace, **{"spec": {"x": 1}, **fields})

    def place(self, name: str = "p", *, namespace: str = "", **spec: Any) -> None:
        """Make a placement; without more, of all goals of its namespace for all robots."""
        self.cloud.create(name, kind=PLACEMENTS, namespace=namespace, spec={**placing("goals"), **spec})

    def edit(self, name: str = "p", *, namespace: str = "", **spec: Any) -> None:
        """Change fields of a placement's spec; None removes one."""
        found = self.placement(name, namespace=namespace)["spec"] | spec
        kept = {key: value for key, value in found.items() if value is not None}
        self.cloud.set(name, kind=PLACEMENTS, namespace=namespace, spec=kept)

    def unplace(self, name: str = "p", *, namespace: str = "") -> None:
        """Delete a placement."""
        self.cloud.delete(name, kind=PLACEMENTS, namespace=namespace)

    def strip(self, name: str, *paths: str, kind: str = "goals") -> None:
        """Make a FieldStrip."""
        self.cloud.create(name, kind=STRIPS, spec={"group": GROUP, "resource": kind, "remove": list(paths)})

    def set_properties(self, robot: str, **data: str) -> None:
        """Make or replace the ConfigMap with a robot's properties."""
        if robot in self.cloud.objects("configmaps", PROPERTIES):
            self.cloud.set(robot, kind="configmaps", namespace=PROPERTIES, data=data)
        else:
            self.cloud.create(robot, kind="configmaps", namespace=PROPERTIES, data=data)

    # The links

    def cut(self, name: str = "a") -> None:
        """Connections of a controller are refused, and those that stand break."""
        self.judge.trouble()
        self.weather[name].cut = True
        self.signal.ring()

    def silence(self, name: str = "a") -> None:
        """Its connections stand, and nothing comes through any more."""
        self.judge.trouble()
        self.weather[name].silent = True

    def mend(self, name: str = "a") -> None:
        """The link is as good as new."""
        self.weather[name].clear()
        self.judge.well()
        self.signal.ring()

    def inject(
        self,
        fate: Fate | Reply,
        *,
        name: str = "a",
        verb: str = "",
        part: str = "",
        times: float = 1,
        seconds: float = math.inf,
        standing: bool = False,
    ) -> Rule:
        """Let this befall the next requests of a controller: those of a verb, whose path contains a part."""
        self.judge.trouble()

        def matches(call: Call) -> bool:
            return (not verb or call.verb == verb) and part in call.path

        weather = self.weather.setdefault(name, Weather(self.chance))
        return weather.add(Rule(matches, fate, times, self.clock.now + seconds, standing=standing))

    # What is stored

    def stored(self, resource: str) -> dict[tuple[str, str], Json]:
        """The objects of a kind, by its full name, by namespace and name."""
        return dict(self.server.storage.of(resource))

    def placement(self, name: str = "p", *, namespace: str = "") -> Json:
        """A placement as it is stored."""
        found = self.cloud.get(name, kind=PLACEMENTS, namespace=namespace)
        assert found is not None, f"there is no placement {name}"
        return found

    def status(self, name: str = "p") -> Json:
        """A placement's status."""
        return self.placement(name).get("status") or {}

    def condition(self, kind: str, name: str = "p") -> tuple[str, str]:
        """Status and reason of a placement's condition; two empty texts: it has none."""
        found = {each["type"]: each for each in self.status(name).get("conditions") or []}
        return (found[kind]["status"], found[kind].get("reason", "")) if kind in found else ("", "")

    def holds(self, name: str = "p") -> dict[str, int]:
        """How many objects a placement's holds keep back, by reason."""
        return {each["reason"]: each["objects"] for each in self.status(name).get("holds") or []}

    def replicas(self, kind: str = "goals") -> dict[str, Json]:
        """The replicas of a kind, by NAMESPACE/NAME."""
        resource = kind if "." in kind or kind in ("configmaps", "secrets") else f"{kind}.{GROUP}"
        return {"/".join(where): raw for where, raw in self.stored(resource).items() if is_replica(raw)}

    def specs(self, kind: str = "goals") -> dict[str, Any]:
        """The specs of the replicas of a kind, by NAMESPACE/NAME."""
        return {place: raw.get("spec") for place, raw in self.replicas(kind).items()}

    def decided(self, name: str = "p") -> dict[str, str]:
        """What the Decisions of a placement say of each robot."""
        uid = self.placement(name)["metadata"]["uid"]
        decisions = [each for each in self.stored(DECISIONS).values() if each["placement"]["uid"] == uid]
        return {robot["name"]: robot["state"] for each in decisions for robot in each["robots"]}

    def written(self, since: float = 0.0, *, resource: str = "") -> list[Write]:
        """What controllers have changed since a time, but for the Lease."""
        changed = (each for each in self.writes if each.status < 300 and each.resource != LEASES)
        return [each for each in changed if each.time >= since and resource in each.resource]

    @property
    def lease(self) -> Json | None:
        """The Lease of the controllers."""
        return self.server.storage.of(LEASES).get((HOME, "crsyncer-fleet"))

    def serve(self, definition: Json) -> None:
        """Apply a CRD, which is then established."""
        self.cloud.apply(definition)
        self.establish(definition["metadata"]["name"])

    def establish(self, kind: str) -> None:
        """A CRD that was applied is established."""
        where = ("", kind if "." in kind else f"{kind}.{GROUP}")
        found = copied(self.server.storage.of(CRDS)[where])
        found["status"] = {"conditions": [{"type": "Established", "status": "True"}]}
        self.server.storage.put(CRDS, where, found)
        self.signal.ring()

    def definition(self, kind: str) -> Json:
        """The CRD of a kind, as it may be applied again."""
        found = copied(self.server.storage.of(CRDS)["", kind if "." in kind else f"{kind}.{GROUP}"])
        metadata = {key: found["metadata"][key] for key in ("name", "annotations") if key in found["metadata"]}
        return {"metadata": metadata, "spec": found["spec"]}

    def _perform(self, process: Process, call: Call, *, late: bool) -> Reply:
        if call.method == "GET":
            reply = self.server.answer(call)
            listed = self.server.address(call.path) if call.verb == "list" else None
            whole = reply.status == 200 and not (reply.body.get("metadata") or {}).get("continue")
            if whole and listed is not None:
                self.judge.listed.setdefault(process.identity, set()).add(listed.kind.resource)
            return reply
        address = self.server.address(call.path)
        if address is None:
            return self.server.answer(call)
        name = address.name or call.body["metadata"]["name"]
        where, objects = (address.namespace, name), self.server.storage.of(address.kind.resource)
        before = objects.get(where)
        self.judge.arrives(process, call, late=late)
        reply = self.server.answer(call)
        after = self.server.storage.of(address.kind.resource).get(where)
        verb = "status" if call.verb != "create" and address.subresource else call.verb
        write = Write(
            self.clock.now, process.name, verb, address.kind.resource, *where, call, reply.status, before, after, late
        )
        self.writes.append(write)
        self.judge.look(process, write)
        for witness in self.witnesses:
            witness(write)
        self.signal.ring()
        return reply
