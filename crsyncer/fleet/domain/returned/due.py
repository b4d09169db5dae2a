"""What follows from an event for the statuses that robots return: the Fleet takes up each event first."""

from dataclasses import dataclass, field

from crsyncer.core.model import Key
from crsyncer.fleet.domain.values import ReplicaKey, SourceKey


@dataclass(slots=True)
class Due:
    """What may have changed. Placements are called NAMESPACE/NAME."""

    ready: set[tuple[str, str]] = field(default_factory=set)
    """Placement and robot: whether `readyWhen` holds there has to be asked again."""
    combined: set[Key] = field(default_factory=set)
    """CombinedStatuses that may have to be written or deleted, each at most every 5 s."""
    singletons: set[SourceKey] = field(default_factory=set)
    """Sources whose status may have to be written or removed."""
    read: set[ReplicaKey] = field(default_factory=set)
    """Replicas that have to be read from the API server, and shown again: no status of theirs is kept."""

    def add(self, other: "Due") -> "Due":
        """Take up what follows from another event as well."""
        self.ready |= other.ready
        self.combined |= other.combined
        self.singletons |= other.singletons
        self.read |= other.read
        return self
