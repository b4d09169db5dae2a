"""Random histories of one rollout: content, robots, agents, leaders and links change at any time (F8).

`python -m tests.fleet_model.rollout_machine 0 500` runs the histories of these seeds.
"""

import sys
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from crsyncer.core.model import Json
from tests.fleet_model.fleet_agents import OFFLINE_SECONDS, SYNC_STATES
from tests.fleet_model.fleet_machine import Violation
from tests.fleet_model.link_steps import led_anew
from tests.fleet_model.oracle import FLEET
from tests.fleet_model.rolling import QUICK, Rolling, rolling
from tests.fleet_model.world_parts import DECISIONS, INVENTORY_KIND, PLACEMENTS
from tests.model.simulation.answers import CONFLICT, INTERNAL_ERROR, UNAVAILABLE
from tests.model.simulation.plane import GROUP
from tests.model.simulation.weather import Fate

_ROBOTS = tuple(f"o{number}" for number in range(1, 9))
_SOURCES = ("dock", "lift")
_FATES = (CONFLICT, INTERNAL_ERROR, UNAVAILABLE, Fate.LOST, Fate.REPLY_LOST, Fate.LATE, Fate.SNAPPED)
_SECONDS = (0.05, 0.15, 0.5, 1.0, 3.0, 8.0, 15.0, 40.0, 130.0, 300.0)
_SEEN_SECONDS = 15.0
"""So long after an edit a controller may act on what was before."""


class RolloutMachine:
    """Takes the steps of a history, and looks after each whether a limit was broken."""

    def __init__(self, fleet: Rolling, seed: int) -> None:
        self.fleet, self.world = fleet, fleet.world
        self.chance = Random(f"rollout-{seed}")
        self.numbers = 10
        self.definition = self.world.definition(SYNC_STATES)
        self.limits: list[tuple[float, Json]] = [(0.0, self._rollout())]
        self.cut_since: dict[str, float] = {}
        self.in_flight: set[str] = set()
        """The robots that were begun online, and are InFlight since."""
        self.wrong: list[str] = []
        fleet.watch.listeners.append(self._begun)

    def run(self) -> None:
        """A history, and the healing after it; raises Violation."""
        weights = {what: weight * self.chance.choice([0, 1, 1, 3]) for what, (weight, _) in STEPS.items()}
        weights |= {"wait": 30, "start": 6, "change": 10}
        for what in self.chance.choices(list(weights), list(weights.values()), k=self.chance.randint(10, 60)):
            STEPS[what][1](self)
            self._look()
        self._heal()

    def _look(self) -> None:
        if found := [*self.wrong, *self.world.judge.violations, *self.world.troubles]:
            raise Violation(found[0])

    # What must hold

    def _rollout(self) -> Json:
        return {"offline": "Defer", "maxFailures": 0, **self.world.placement()["spec"]["rollout"]}

    def _recent(self) -> list[Json]:
        since = self.world.clock.now - _SEEN_SECONDS
        return [each for time, each in self.limits if time >= since] or [self.limits[-1][1]]

    def _begun(self, robot: str, old: Json, new: Json, stored: list[Json]) -> None:
        """A robot was begun: not against the limits, and no robot that is offline and has what was Ready (F8)."""
        if not self._is_due(robot):
            return
        states = {each["name"]: each["state"] for each in stored}
        self.in_flight = {name for name in self.in_flight if states.get(name) == "InFlight"}
        last = [item for time, item in self.limits if time < self.world.clock.now - _SEEN_SECONDS][-1:]
        limits = [*last, *self._recent()]
        if new["state"] == "InFlight":
            self.in_flight.add(robot)
            most = max(each["maxConcurrency"] for each in limits)
            if len(self.in_flight) > most:
                self._say(f"{sorted(self.in_flight)} are in flight, and {most} may be (F8.2)")
        if all(each.get("paused") for each in limits):
            self._say(f"{robot} is begun, and the rollout is paused (F8.2)")
        cut = self.cut_since.get(robot)
        is_offline = cut is not None and self.world.clock.now > cut + OFFLINE_SECONDS + _SEEN_SECONDS
        was_proven = old.get("state") == "Ready" or (old.get("state") == "Deferred" and not old.get("stamp"))
        if is_offline and was_proven and all(each["offline"] == "Defer" for each in limits):
            self._say(f"{robot} is begun, and it is offline (F8.4)")

    def _is_due(self, robot: str) -> bool:
        found = self.world.stored(f"goals.{GROUP}")
        return any(
            found.get((f"robot-{robot}", name), {}).get("spec") != raw["spec"]
            for (namespace, name), raw in found.items()
            if namespace == "default"
        )

    def _say(self, what: str) -> None:
        self.wrong.append(f"{self.world.clock.now:.2f} {what}")

    def _heal(self) -> None:
        """All is well again, and the content is good: then all robots become Ready, and nothing more is written."""
        world = self.world
        self.define()
        for name in ("a", "b"):
            if name in world.processes:
                world.processes[name].fuse = None
            if name in world.weather:
                world.mend(name)
        if not any(world.runs(name) for name in ("a", "b")):
            world.start("a")
        for name in _SOURCES:
            if world.cloud.get(name) is not None:
                self.numbers += 1
                world.cloud.set(name, spec={"x": self.numbers})
        self._edit({**QUICK, "maxFailures": 100})
        for _ in range(4):
            self.connect(*world.cloud.objects(INVENTORY_KIND))
            world.pass_time(800.0)
            self._look()
        self.fleet.settle()
        self._look()
        if wrong := world.judge.disagreements():
            raise Violation("; ".join(wrong))
        states = self.fleet.states()
        if set(states.values()) - {"Ready"} or states.keys() != world.cloud.objects(INVENTORY_KIND).keys():
            raise Violation(f"all is well, and the states are {states}, {world.status()['conditions']}")
        more = led_anew(self, seconds=200.0)
        self._look()
        if more:
            raise Violation(f"all agreed, and then: {more[:5]}")

    # Steps

    def wait(self) -> None:
        self.world.pass_time(self.chance.choice(_SECONDS))

    def change(self) -> None:
        """Somebody edits a source: the content is good, bad or fatal, or what it was once."""
        name = self.chance.choice(_SOURCES)
        if self.world.cloud.get(name) is not None:
            self.numbers += 1
            x = self.chance.choice([self.numbers, self.numbers, "bad", "fatal", 1, 2])
            self.world.cloud.set(name, spec={"x": x})

    def source(self) -> None:
        if self.world.cloud.get("lift") is None:
            self.world.source("lift")
        else:
            self.world.cloud.delete("lift")

    def edit(self) -> None:
        """Somebody edits the rollout."""
        chance = self.chance
        groups: list[Json] = [{"matchLabels": {"canary": "yes"}}] if chance.random() < 0.5 else []
        rollout = {
            **QUICK,
            "maxConcurrency": chance.choice([1, 2, 3]),
            "maxFailures": chance.choice([0, 1, 3]),
            "offline": chance.choice(["Defer", "Defer", "Stamp"]),
            "paused": chance.random() < 0.2,
            "groups": groups,
        }
        self._edit(rollout)

    def _edit(self, rollout: Json) -> None:
        self.world.edit("p", rollout=rollout)
        self.limits.append((self.world.clock.now, self._rollout()))

    def label(self) -> None:
        name = self.chance.choice(_ROBOTS)
        if name in self.world.cloud.objects(INVENTORY_KIND):
            self.world.cloud.label(name, kind=INVENTORY_KIND, canary=self.chance.choice(["yes", None]))

    def robot(self) -> None:
        """A robot is enrolled, or its Robot is deleted."""
        name = self.chance.choice(_ROBOTS)
        if name not in self.world.cloud.objects(INVENTORY_KIND):
            self.world.robots(name)
            self.connect(name)
        elif len(self.world.cloud.objects(INVENTORY_KIND)) > 6:
            self.world.lose_robots(name)
            self.cut(name)

    def connect(self, *names: str) -> None:
        for name in names:
            if name not in self.fleet.agents.online:
                self.fleet.agents.connect(name)
            self.cut_since.pop(name, None)

    def cut(self, *names: str) -> None:
        for name in names:
            self.fleet.agents.cut(name)
            self.cut_since.setdefault(name, self.world.clock.now)

    def agent(self) -> None:
        """An agent is cut off, or comes back."""
        name = self.chance.choice(_ROBOTS)
        if name in self.world.cloud.objects(INVENTORY_KIND):
            (self.cut if name in self.fleet.agents.online else self.connect)(name)

    def be_away(self) -> None:
        self.world.pass_time(OFFLINE_SECONDS)

    def forget(self) -> None:
        """Somebody deletes a report."""
        found = sorted(self.world.stored(SYNC_STATES))
        if found:
            namespace, name = self.chance.choice(found)
            self.world.cloud.delete(name, kind=SYNC_STATES, namespace=namespace)

    def undefine(self) -> None:
        """Somebody deletes the CRD of the reports."""
        if any(each.resource == SYNC_STATES for each in self.world.server.kinds()):
            self.world.cloud.delete_kind(SYNC_STATES)
            self.world.cloud.sweep("robotsyncstates", group=FLEET)

    def define(self) -> None:
        if not any(each.resource == SYNC_STATES for each in self.world.server.kinds()):
            self.world.serve(self.definition)

    def drift(self) -> None:
        found = sorted(self.world.replicas())
        if found:
            namespace, name = self.chance.choice(found).split("/")
            self.world.cloud.set(name, namespace=namespace, spec={"x": "theirs"})

    def lose_replica(self) -> None:
        found = sorted(self.world.replicas())
        if found:
            namespace, name = self.chance.choice(found).split("/")
            self.world.cloud.delete(name, namespace=namespace)

    def lose_decision(self) -> None:
        found = sorted(self.world.stored(DECISIONS))
        if found:
            self.world.cloud.delete(found[0][1], kind=DECISIONS)

    def start(self) -> None:
        name = self.chance.choice("aab")
        if not self.world.runs(name):
            self.world.start(name)

    def kill(self) -> None:
        self.world.kill(self.chance.choice("aab"))

    def kill_after(self) -> None:
        name = self.chance.choice("aab")
        if self.world.runs(name):
            self.world.kill_after(self.chance.randrange(1, 60), name)

    def befall(self) -> None:
        part = self.chance.choice(["/goals", "/robotplacementdecisions", "/robotplacements", "/robotsyncstates"])
        times = self.chance.choice([1, 3, 20])
        verb = self.chance.choice(["update", "patch", "create", "list", "get"])
        self.world.inject(self.chance.choice(_FATES), verb=verb, part=part, times=times, seconds=30.0)

    def cut_link(self) -> None:
        if "a" in self.world.weather:
            self.world.cut("a")

    def mend(self) -> None:
        for name in self.world.weather:
            self.world.mend(name)

    def lag(self) -> None:
        if "a" in self.world.weather:
            self.world.judge.trouble()
            self.world.weather["a"].lag = self.chance.choice([0.0, 0.5, 3.0])

    def restart_server(self) -> None:
        self.world.cloud.restart()


STEPS: Mapping[str, tuple[float, Callable[[RolloutMachine], Any]]] = {
    "wait": (30, RolloutMachine.wait),
    "change": (10, RolloutMachine.change),
    "source": (2, RolloutMachine.source),
    "edit": (5, RolloutMachine.edit),
    "label": (2, RolloutMachine.label),
    "robot": (2, RolloutMachine.robot),
    "agent": (6, RolloutMachine.agent),
    "be_away": (2, RolloutMachine.be_away),
    "forget": (0.5, RolloutMachine.forget),
    "undefine": (0.3, RolloutMachine.undefine),
    "define": (2, RolloutMachine.define),
    "drift": (2, RolloutMachine.drift),
    "lose_replica": (1, RolloutMachine.lose_replica),
    "lose_decision": (0.5, RolloutMachine.lose_decision),
    "start": (6, RolloutMachine.start),
    "kill": (3, RolloutMachine.kill),
    "kill_after": (4, RolloutMachine.kill_after),
    "befall": (4, RolloutMachine.befall),
    "cut_link": (1, RolloutMachine.cut_link),
    "mend": (4, RolloutMachine.mend),
    "lag": (1, RolloutMachine.lag),
    "restart_server": (1, RolloutMachine.restart_server),
}


def run(seed: int) -> None:
    """Run the history of a seed; raises AssertionError."""
    silent = 1 if seed % 3 == 0 else 0
    with rolling(6, silent=silent, by_chance=True, seed=seed) as fleet:
        assert fleet.world.stored(PLACEMENTS)
        RolloutMachine(fleet, seed).run()


if __name__ == "__main__":
    for each in range(int(sys.argv[1]), int(sys.argv[2])):
        try:
            run(each)
        except AssertionError as error:
            print(each, str(error)[:600], flush=True)
