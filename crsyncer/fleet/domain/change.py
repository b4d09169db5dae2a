"""What one event changes, and the inputs that events come from (F1.1, F2, F5)."""

from dataclasses import dataclass, field
from enum import StrEnum

from crsyncer.fleet.domain.values import ReplicaKey


class Input(StrEnum):
    """What must be listed before anything is written (F1.1)."""

    ROBOTS = "Robots"
    PROPERTIES = "properties"
    PLACEMENTS = "RobotPlacements"
    DECISIONS = "RobotPlacementDecisions"
    STRIPS = "FieldStrips"


ALL_INPUTS = frozenset(Input)
"""To pass over an Enum takes ten times as long."""


@dataclass(slots=True)
class Change:
    """What follows from one event."""

    keys: set[ReplicaKey] = field(default_factory=set)
    """The replicas to decide about anew."""
    placements: set[str] = field(default_factory=set)
    """The placements, as NAMESPACE/NAME, whose status may change."""
    rewritten: set[tuple[str, str]] = field(default_factory=set)
    """Placement, as NAMESPACE/NAME, and robot: the robot has to apply other writes of the placement (F9.6)."""
    edited: set[ReplicaKey] = field(default_factory=set)
    """Replicas that are not selected any more because a placement was edited or deleted (F5.1)."""
    returned: set[ReplicaKey] = field(default_factory=set)
    """What robots return of sources that they share, to be looked at anew (F10.3)."""
    lost_robots: set[str] = field(default_factory=set)
    """Robots that are gone."""
    left: set[tuple[str, str]] = field(default_factory=set)
    """Placement (its uid) and robot: the placement lost that robot, other than by an edit of itself."""
    lost_sources: set[tuple[str, str]] = field(default_factory=set)
    """Kind and SOURCEID: no placement selects the source any more, other than by an edit of one."""

    def add(self, other: "Change") -> "Change":
        """Take up what follows from another event as well."""
        self.keys |= other.keys
        self.placements |= other.placements
        self.rewritten |= other.rewritten
        self.edited |= other.edited
        self.returned |= other.returned
        self.lost_robots |= other.lost_robots
        self.left |= other.left
        self.lost_sources |= other.lost_sources
        return self
