"""What robots report of themselves: who is online, and which writes each robot has applied (F9.1, F9.4 to F9.6).

A RobotSyncState is hostile input: whatever it says concerns its own robot alone. All times are Unix seconds by the
clock of the API server.
"""

import heapq
import math
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from sys import intern
from typing import Any

from crsyncer.core.content.annotations import ROBOT_LABEL
from crsyncer.core.content.object_content import ROBOT, key_of
from crsyncer.core.model import Json, Key
from crsyncer.core.reports.robot_report import MOST_PLACEMENTS
from crsyncer.core.reports.text import unix
from crsyncer.fleet.domain.names import is_robot_name, robot_namespace

ONLINE_SECONDS = 660.0


class Report(StrEnum):
    """What is known of a robot's agent (F9.4)."""

    ONLINE = "online"
    OFFLINE = "offline"
    UNREPORTED = "unreported"


@dataclass(frozen=True, slots=True)
class SyncState:
    """One RobotSyncState that counts."""

    uid: str
    beat: int
    raised: float
    """When `beat` was raised last."""
    applied: Mapping[str, str] = field(default_factory=dict)
    """By the uid of a placement: the digest of what the robot has applied."""


def sync_state(raw: Json, known: SyncState | None, *, robots_namespace: str, now: float) -> SyncState | None:
    """What a RobotSyncState says; None: it does not count, or it has no beat. `known`: the same object as seen before.

    beat             raised
    seen first       at the time of its field in managedFields, else at the object's creation
    higher           the same
    equal or lower   as before

    No time is in the future: a robot that writes such a one would be online for ever.
    """
    key, robot, beat = key_of(raw), raw["metadata"]["name"], _fields(raw.get("spec")).get("beat")
    if not is_of_robot(raw, robot) or key.namespace not in (robot_namespace(robot), robots_namespace):
        return None
    if not isinstance(beat, int) or isinstance(beat, bool):
        return None
    uid, applied = raw["metadata"]["uid"], _applied(raw["spec"].get("applied"))
    if known is not None and known.uid == uid and beat <= known.beat:
        return SyncState(uid, beat, known.raised, applied)
    return SyncState(uid, beat, min(_beat_time(raw["metadata"]), now), applied)


def is_of_robot(raw: Json, robot: str) -> bool:
    """Whether name, label and annotation of an object name one robot (F9.1)."""
    metadata = raw["metadata"]
    label, annotation = (
        _fields(metadata.get("labels")).get(ROBOT_LABEL),
        _fields(metadata.get("annotations")).get(ROBOT),
    )
    return is_robot_name(robot) and robot == label == annotation


def _applied(value: Any) -> Mapping[str, str]:
    return {intern(uid): text for uid, text in _fields(value).items() if isinstance(text, str)}


def _fields(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _beat_time(metadata: Json) -> float:
    """When `spec.beat` was written last, as the API server noted it.

    Source: Kubernetes documentation, "Server-Side Apply": the time of an entry changes with the value of its fields.
    """
    entries = metadata.get("managedFields")
    times = [
        _time(entry.get("time"))
        for entry in (entries if isinstance(entries, list) else ())
        if isinstance(entry, dict) and "f:beat" in _fields(_fields(entry.get("fieldsV1")).get("f:spec"))
    ]
    return max(times, default=0.0) or _time(metadata.get("creationTimestamp"))


def _time(text: Any) -> float:
    """Unix seconds; 0: the text is no time."""
    try:
        return unix(text)
    except (TypeError, ValueError, OverflowError):
        return 0.0


OfPlacement = Callable[[str, str], tuple[Report, str | None]]
"""What a robot reports for a placement's uid: of its agent, and the digest of what it has applied (None: nothing)."""


class Reports:
    """The RobotSyncStates as they are seen. `robots_namespace` has the Robots.

    A robot that wrote one in both namespaces is judged by the one of which the beat was raised last.
    """

    def __init__(self, *, robots_namespace: str) -> None:
        self._robots_namespace = robots_namespace
        self._states: dict[str, dict[Key, SyncState]] = defaultdict(dict)
        """By robot and place."""
        self._ends: list[tuple[float, str]] = []
        """A heap of when robots turn offline, or earlier."""
        self._queued: dict[str, float] = {}
        """The one entry of each robot in the heap that counts."""

    def shown(self, raw: Json, *, now: float) -> set[str]:
        """A RobotSyncState was added or changed. The robots of which anything that matters has changed: one or none."""
        key = key_of(raw)
        state = sync_state(raw, self._at(key), robots_namespace=self._robots_namespace, now=now)
        return self._put(key, state, now)

    def gone(self, namespace: str, name: str, *, now: float) -> set[str]:
        """A RobotSyncState was deleted. The robots whose report has changed by it."""
        return self._put(Key(namespace, name), None, now)

    def report(self, robot: str, now: float) -> Report:
        """Whether a robot is online."""
        state = self._newest(robot)
        if state is None:
            return Report.UNREPORTED
        return Report.ONLINE if now <= state.raised + ONLINE_SECONDS else Report.OFFLINE

    def last(self, robot: str) -> float | None:
        """When a robot's beat was raised last; None: it has never reported."""
        state = self._newest(robot)
        return None if state is None else state.raised

    def of_placement(self, robot: str, placement: str, now: float) -> tuple[Report, str | None]:
        """What a robot reports for a placement's uid, and the digest of what it has applied; None: it reports none.

        A full report that lacks the placement says nothing: for that placement the robot is unreported (F9.6).
        """
        state = self._newest(robot)
        if state is None or (placement not in state.applied and len(state.applied) >= MOST_PLACEMENTS):
            return Report.UNREPORTED, None
        return self.report(robot, now), state.applied.get(placement)

    def turned(self, now: float) -> set[str]:
        """The robots that turned offline since this was asked last, because no beat came."""
        found = set()
        while (end := self._first_end()) is not None and end < now:
            _, robot = heapq.heappop(self._ends)
            del self._queued[robot]
            found.add(robot)
        return found

    def next_turn(self) -> float | None:
        """When `turned` finds a robot next, if no beat comes; None: no robot is online."""
        end = self._first_end()
        return None if end is None else math.nextafter(end, math.inf)

    def _first_end(self) -> float | None:
        """When the next robot turns offline. Entries in the heap that do not hold any more go."""
        while self._ends:
            end, robot = self._ends[0]
            state = self._newest(robot)
            if state is None or self._queued.get(robot) != end:
                heapq.heappop(self._ends)
            elif (later := state.raised + ONLINE_SECONDS) > end:
                self._queued[robot] = later
                heapq.heapreplace(self._ends, (later, robot))
            else:
                return end
        return None

    def _at(self, key: Key) -> SyncState | None:
        return self._states[key.name].get(key) if key.name in self._states else None

    def _newest(self, robot: str) -> SyncState | None:
        states = self._states.get(robot)
        return None if states is None else max(states.values(), key=lambda each: each.raised)

    def _put(self, key: Key, state: SyncState | None, now: float) -> set[str]:
        robot, old = key.name, self._at(key)
        if state == old:
            return set()
        before = self._meaning(robot, now)
        if state is not None:
            self._states[robot][key] = state
        else:
            del self._states[robot][key]
            if not self._states[robot]:
                del self._states[robot]
        self._queue(robot, now)
        return {robot} if self._meaning(robot, now) != before else set()

    def _queue(self, robot: str, now: float) -> None:
        """Have one entry in the heap of a robot that is online, not later than it turns offline."""
        state = self._newest(robot)
        if state is None or (end := state.raised + ONLINE_SECONDS) < now:
            self._queued.pop(robot, None)
        elif end < self._queued.get(robot, math.inf):
            self._queued[robot] = end
            heapq.heappush(self._ends, (end, robot))

    def _meaning(self, robot: str, now: float) -> tuple[Report, Mapping[str, str]]:
        state = self._newest(robot)
        return self.report(robot, now), {} if state is None else state.applied
