"""A rollout in the fleet's simulated world: its robots, and what must never happen to them (F8)."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from crsyncer.core.model import Json
from tests.fleet_model.controlling import control
from tests.fleet_model.fleet_agents import GOALS, OFFLINE_SECONDS, READY, Agents
from tests.fleet_model.fleet_world import FleetWorld
from tests.fleet_model.judged_objects import content_of, is_replica, marks
from tests.fleet_model.oracle import ROBOT_LABEL, digest, texts
from tests.fleet_model.world_parts import DECISIONS, Write

QUICK: Json = {"maxConcurrency": 2, "minReadySeconds": 10, "progressDeadlineSeconds": 120}
_WRITTEN = ("InFlight", "Stamped", "Failed")


def entries(world: FleetWorld, name: str = "p") -> dict[str, Json]:
    """What the Decisions of a placement say of each robot, in full."""
    uid = world.placement(name)["metadata"]["uid"]
    found = [each for each in world.stored(DECISIONS).values() if each["placement"]["uid"] == uid]
    return {robot["name"]: robot for each in found for robot in each["robots"]}


@dataclass(slots=True)
class RolloutWatch:
    """What the controllers wrote for robots. With a rollout: only what the stored Decision had announced."""

    world: FleetWorld
    content: list[tuple[float, str, Any]] = field(default_factory=list)
    """When which robot was given which `x`."""
    most: int = 0
    """The most robots that were InFlight at a time."""
    begun: list[tuple[str, str]] = field(default_factory=list)
    """Which robots were begun with which stamp."""
    listeners: list[Callable[[str, Json, Json, list[Json]], None]] = field(default_factory=list)
    """Told of each robot that is begun: what its Decision had said, what it says, and all that Decisions say."""
    _contents: dict[tuple[str, str, str], dict[str, str]] = field(default_factory=lambda: defaultdict(dict))
    """By placement, robot and stamp of the Decision: the content of each replica that it had announced."""

    def __post_init__(self) -> None:
        self.world.witnesses.append(self.look)

    @property
    def robots(self) -> list[str]:
        """The robots that were given something, in order, each at its first time."""
        return list(dict.fromkeys(robot for _, robot, _ in self.content))

    def look(self, write: Write) -> None:
        """Look at a write."""
        if write.status >= 300:
            return
        if write.resource == DECISIONS:
            self._decided(write)
        elif write.resource == GOALS and write.after is not None and is_replica(write.after):
            self._written(write, write.before, write.after)

    def _decided(self, write: Write) -> None:
        before, begun = {each["name"]: each for each in (write.before or {}).get("robots", [])}, []
        for each in (write.after or {}).get("robots", []):
            old, stamp = before.get(each["name"], {}), each.get("stamp", "")
            is_begun = each["state"] in ("InFlight", "Stamped") and stamp
            if is_begun and (old.get("state") not in _WRITTEN or old.get("stamp") != stamp):
                begun.append((old, each))
        stored = [each for raw in self.world.stored(DECISIONS).values() for each in raw["robots"]]
        self.most = max(self.most, sum(each["state"] == "InFlight" for each in stored))
        for old, each in begun:
            self.begun.append((each["name"], each["stamp"]))
            for listener in self.listeners:
                listener(each["name"], old, each, stored)

    def _written(self, write: Write, before: Json | None, after: Json) -> None:
        said, robot = marks(after), texts(after, "labels")[ROBOT_LABEL]
        if before is not None and content_of(before) == content_of(after):
            return
        self.content.append((write.time, robot, (after.get("spec") or {}).get("x")))
        placement = next(
            (raw for raw in self.world.stored(_PLACEMENTS).values() if raw["metadata"]["uid"] == said["placement"]),
            None,
        )
        is_drift = before is not None and is_replica(before) and marks(before)["stamp"] == said["stamp"]
        if placement is None or "rollout" not in placement["spec"] or is_drift:
            return
        found = [
            each for each in self.world.stored(DECISIONS).values() if each["placement"]["uid"] == said["placement"]
        ]
        entry = next((item for each in found for item in each["robots"] if item["name"] == robot), None)
        if entry is None or entry["state"] not in _WRITTEN or not entry.get("stamp"):
            self._say(f"{write}: its Decision says {entry} (F8.2)")
            return
        known = self._contents[said["placement"], robot, entry["stamp"]]
        if known.setdefault(write.name, digest(content_of(after))) != digest(content_of(after)):
            self._say(f"{write}: the stamp {entry['stamp']} had announced another content (F8.2)")

    def _say(self, what: str) -> None:
        self.world.judge.violations.append(f"{self.world.clock.now:.2f} {what}")


_PLACEMENTS = "robotplacements.fleet.crsyncer.cloudrobotics.com"


@dataclass(slots=True)
class Rolling:
    """A world with a rollout."""

    world: FleetWorld
    agents: Agents
    watch: RolloutWatch

    def change(self, x: Any, *, seconds: float = 0.0) -> None:
        """Somebody edits the source; what was written before counts no more."""
        self.watch.content.clear()
        self.watch.begun.clear()
        self.watch.most = 0
        self.world.cloud.set("dock", spec={"x": x})
        if seconds:
            self.world.pass_time(seconds)

    def settle(self, seconds: float = 6000.0) -> None:
        """Let the rollout come to its end, or stop."""
        self.world.settle(quiet=150.0, seconds=seconds)

    def with_content(self, x: Any) -> set[str]:
        """The robots whose replica has this `x`."""
        return {
            texts(raw, "labels")[ROBOT_LABEL] for raw in self.world.replicas().values() if raw.get("spec") == {"x": x}
        }

    def states(self) -> dict[str, str]:
        """The states of the robots, as the Decisions have them."""
        return dict(sorted(self.world.decided().items()))


@contextmanager
def rolling(
    online: int = 4,
    *,
    offline: int = 0,
    silent: int = 0,
    delay: float = 2.0,
    ready_when: str = READY,
    labels: Mapping[str, Mapping[str, str]] | None = None,
    begin: bool = True,
    seed: int = 0,
    by_chance: bool = False,
    **rollout: Any,
) -> Iterator[Rolling]:
    """A fleet with x = 1: o1, o2... online, f1... offline, s1... silent. Then the placement p gets a rollout."""
    with FleetWorld(control, seed, by_chance=by_chance) as world:
        on = [f"o{number}" for number in range(1, online + 1)]
        off = [f"f{number}" for number in range(1, offline + 1)]
        for name in (*on, *off, *(f"s{number}" for number in range(1, silent + 1))):
            world.robots(name, **(labels or {}).get(name, {}))
        world.source("dock")
        world.place("p", readyWhen=ready_when)
        agents = Agents(world, [*on, *off], delay=delay)
        world.start()
        world.agree()
        if off:
            agents.cut(*off)
            world.pass_time(OFFLINE_SECONDS)
        if begin:
            world.edit("p", rollout={**QUICK, **rollout})
            world.settle()
        yield Rolling(world, agents, RolloutWatch(world))
