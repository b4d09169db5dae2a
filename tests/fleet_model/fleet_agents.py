"""The robots' agents in the fleet's simulated world, as the controller sees them: reports and statuses (F9).

An agent applies what is in its robot namespace a while after it was written: then it says so in its RobotSyncState, and
brings the statuses up. `x` in the spec of a replica says what comes of it: "bad" content is not Ready, and "fatal"
content kills the agent.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from crsyncer.core.model import Json
from crsyncer.core.reports.robot_report import applied_digest
from crsyncer.core.reports.text import rfc3339
from tests.fleet_model.fleet_world import FleetWorld
from tests.fleet_model.judged_objects import is_replica, marks
from tests.fleet_model.oracle import FLEET, OURS, ROBOT_LABEL, lives, texts
from tests.model.simulation.plane import GROUP
from tests.model.simulation.storage import Change

SYNC_STATES = f"robotsyncstates.{FLEET}"
GOALS = f"goals.{GROUP}"
READY = "returned.status.phase == 'Ready'"
BEAT_SECONDS = 300.0
OFFLINE_SECONDS = 665.0
"""So long after its last report a robot is offline (F9.4)."""


class Agents:
    """The agents of some robots, and what each has applied. `delay`: how long they need for what they see."""

    def __init__(self, world: FleetWorld, names: Iterable[str], *, delay: float = 2.0) -> None:
        self._world = world
        self.delay = delay
        self.online: set[str] = set()
        self.has: dict[str, dict[str, Any]] = defaultdict(dict)
        """By robot: the `x` of each object that it has."""
        self.ever: dict[str, set[Any]] = defaultdict(set)
        """By robot: each `x` that it ever had."""
        self._beats: dict[str, int] = defaultdict(int)
        world.server.storage.listeners.append(self._changed)
        self.connect(*names)

    def connect(self, *names: str) -> None:
        """Robots are online from now on."""
        for name in names:
            self.online.add(name)
            self._apply(name)
            self._later(BEAT_SECONDS, name, is_beat=True)

    def cut(self, *names: str) -> None:
        """Robots hear and say nothing any more."""
        self.online -= set(names)

    def _later(self, seconds: float, robot: str, *, is_beat: bool = False) -> None:
        self._world.clock.loop.call_later(seconds, self._wake, robot, is_beat)

    def _wake(self, robot: str, is_beat: bool) -> None:
        if robot in self.online:
            self._apply(robot)
            if is_beat:
                self._later(BEAT_SECONDS, robot, is_beat=True)

    def _changed(self, change: Change) -> None:
        raw = change.after or change.before
        if raw is not None and change.resource == GOALS and is_replica(raw):
            robot = texts(raw, "labels").get(ROBOT_LABEL, "")
            if robot in self.online:
                self._later(self.delay, robot)

    def _apply(self, robot: str) -> None:
        found = {
            where[1]: raw
            for where, raw in sorted(self._world.stored(GOALS).items())
            if where[0] == f"robot-{robot}" and is_replica(raw) and lives(raw)
        }
        self.has[robot] = {name: raw["spec"].get("x") for name, raw in found.items()}
        self.ever[robot] |= set(self.has[robot].values())
        if "fatal" in self.has[robot].values():
            self.cut(robot)
            return
        self.report(robot, found.values())
        for name, raw in found.items():
            phase = "Bad" if raw["spec"].get("x") == "bad" else "Ready"
            if (raw.get("status") or {}).get("phase") != phase:
                self._world.cloud.set_status(name, {"phase": phase}, namespace=f"robot-{robot}")

    def report(self, robot: str, applied: Iterable[Json] = ()) -> None:
        """A robot writes its report, if it is served."""
        if not any(each.resource == SYNC_STATES and not each.dying for each in self._world.server.kinds()):
            return
        pairs: dict[str, list[tuple[str, int]]] = defaultdict(list)
        for raw in applied:
            pairs[marks(raw)["placement"]].append((raw["metadata"]["uid"], marks(raw)["n"]))
        self._beats[robot] += 1
        self.put_report(
            robot,
            spec={
                "robot": robot,
                "beat": self._beats[robot],
                "applied": {uid: applied_digest(found) for uid, found in pairs.items()},
            },
        )

    def put_report(self, robot: str, *, spec: Json, namespace: str = "default", **other: Any) -> None:
        """Store a report as the API server does: with the time of `beat` in managedFields."""
        storage = self._world.server.storage
        old = storage.of(SYNC_STATES).get((namespace, robot))
        now = rfc3339(storage.unix)
        born = (
            {"uid": storage.new_uid(), "creationTimestamp": now, "generation": 1}
            if old is None
            else {key: old["metadata"][key] for key in ("uid", "creationTimestamp", "generation")}
        )
        metadata = {
            "namespace": namespace,
            "name": robot,
            "labels": {ROBOT_LABEL: robot},
            "annotations": {f"{OURS}robot": robot},
            "managedFields": [{"manager": "crsyncer", "time": now, "fieldsV1": {"f:spec": {"f:beat": {}}}}],
        }
        storage.put(SYNC_STATES, (namespace, robot), {"metadata": {**metadata, **born, **other}, "spec": spec})
        self._world.signal.ring()
