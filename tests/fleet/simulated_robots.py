"""Simulated robots on virtual time: they apply what is written for them, report, fail, fall silent and come back."""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from random import Random

from crsyncer.core.content.annotations import ROBOT_LABEL
from crsyncer.core.content.object_content import ROBOT
from crsyncer.core.model import Json
from crsyncer.core.reports.robot_report import applied_digest
from crsyncer.core.reports.text import rfc3339

PLACEMENT_UID = "uid-all"


class Quality(StrEnum):
    """What content does to a robot."""

    GOOD = "good"
    UNREADY = "unready"
    """The robot has it, and is never ready with it."""
    KILLS = "kills"
    """The agent dies of it before it can report."""
    KILLS_LATE = "kills late"
    """The agent reports it, then dies, and was never ready."""


class Clock:
    """Virtual time: what is due happens in order."""

    def __init__(self, now: float) -> None:
        self.now = now
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._number = 0

    def after(self, seconds: float, do: Callable[[], None]) -> None:
        self._number += 1
        heapq.heappush(self._events, (self.now + seconds, self._number, do))

    def run(self, until: float) -> None:
        while self._events and self._events[0][0] <= until:
            self.now, _, do = heapq.heappop(self._events)
            do()
        self.now = until


@dataclass(slots=True)
class Replica:
    """An object in the cloud. `content` 0: it is missing."""

    content: int = 0
    number: int = 0


@dataclass
class SimulatedRobot:
    """One robot with its replicas. It knows nothing of the controller: `changed` says that the cloud has news of it."""

    name: str
    labels: dict[str, str]
    replicas: list[Replica]
    clock: Clock
    random: Random
    qualities: dict[int, Quality]
    changed: Callable[[str], None]
    reports: bool = True
    """Its agent is one that reports."""
    is_connected: bool = True
    is_alive: bool = True
    is_ready: bool = False
    """Its status in the cloud."""
    beat: int = 0
    beaten: float = 0.0
    reported: str = ""
    has: list[tuple[int, int]] = field(default_factory=list)
    """Content and number of each of its copies."""

    def start(self) -> None:
        self.has = [(0, 0)] * len(self.replicas)
        self._heartbeat()

    def pairs(self) -> list[tuple[str, int]]:
        """The [uid, n] of the replicas."""
        return [(f"{self.name}-{at}", each.number) for at, each in enumerate(self.replicas) if each.content]

    def written(self) -> None:
        """A replica was written in the cloud."""
        self.clock.after(self.random.uniform(0.1, 3), self._pull)

    def lost(self) -> None:
        """All its replicas were deleted in the cloud."""
        for each in self.replicas:
            each.content = 0
        self.written()

    def connect(self, *, is_connected: bool) -> None:
        self.is_connected = is_connected
        if is_connected:
            self.clock.after(self.random.uniform(0.1, 5), self._pull)

    def _pull(self) -> None:
        if not self.is_connected:
            return
        wanted = [(each.content, each.number) for each in self.replicas]
        kinds = {self.qualities[content] for content, _ in wanted if content}
        if not self.is_alive and not kinds & {Quality.KILLS, Quality.KILLS_LATE}:
            self.is_alive, self.has = True, []  # it starts again and again until the content lets it live
        if not self.is_alive or (wanted == self.has and self.reported):
            return
        if wanted != self.has:
            self.has = wanted
            if Quality.KILLS in kinds:
                self.is_alive = False
                return
            self.is_ready = False
            if kinds <= {Quality.GOOD}:
                self.clock.after(self.random.uniform(1, 30), lambda: self._become_ready(wanted))
        self.clock.after(self.random.uniform(0.1, 10), self._report)
        if Quality.KILLS_LATE in kinds:
            self.clock.after(11, lambda: self._die(wanted))

    def _die(self, wanted: list[tuple[int, int]]) -> None:
        if wanted == self.has:
            self.is_alive = False

    def _become_ready(self, wanted: list[tuple[int, int]]) -> None:
        if wanted != self.has:
            return
        if not self.is_connected or not self.is_alive:
            self.clock.after(30, lambda: self._become_ready(wanted))
            return
        self.is_ready = True
        self.changed(self.name)

    def _report(self) -> None:
        if self.is_connected and self.is_alive:
            if self.reports:
                self.beat += 1
                self.beaten = self.clock.now
                pairs = [(f"{self.name}-{at}", number) for at, (content, number) in enumerate(self.has) if content]
                self.reported = applied_digest(pairs)
            self.changed(self.name)

    def _heartbeat(self) -> None:
        self.clock.after(self.random.uniform(240, 360), self._heartbeat)
        self._pull()
        self._report()

    def sync_state(self) -> Json | None:
        """Its RobotSyncState in the cloud."""
        if not self.beat:
            return None
        metadata = {
            "name": self.name,
            "namespace": f"robot-{self.name}",
            "uid": f"report-{self.name}",
            "labels": {ROBOT_LABEL: self.name},
            "annotations": {ROBOT: self.name},
            "managedFields": [{"time": rfc3339(self.beaten), "fieldsV1": {"f:spec": {"f:beat": {}}}}],
        }
        return {"metadata": metadata, "spec": {"beat": self.beat, "applied": {PLACEMENT_UID: self.reported}}}
