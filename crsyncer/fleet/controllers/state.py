"""What the controllers of one leader share: the fleet as it was seen, what was lost, and the way to the API server."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from crsyncer.core.content.mutation import Expressions
from crsyncer.core.model import Key
from crsyncer.fleet.domain.fleet import Fleet
from crsyncer.fleet.domain.losses import Losses
from crsyncer.fleet.domain.values import ReplicaKey, SourceKey
from crsyncer.runtime.connection import Connection

Work = ReplicaKey | SourceKey | Key | str
"""What a job is about: a replica, a source, a CombinedStatus, a StatusCollector by its name, a SOURCEID, or a placement
as NAMESPACE/NAME ("": those that are gone)."""


@dataclass(frozen=True, slots=True)
class ControllerSettings:
    """What the controller runs with."""

    namespace: str
    """Its own: only placements there may select cluster-scoped kinds."""
    robots: str
    """The kind whose objects are the robots, RESOURCE.GROUP."""
    robots_namespace: str
    watch_timeout: int
    """Seconds."""
    expressions: Callable[[], Expressions]
    """Called for placements and StatusCollectors with expressions; what it returns raises ConfigError without the
    extra."""


class FleetObserver(Protocol):
    """Counts events of the runtime and the controller, for its metrics. Every call is cheap and never fails."""

    def relist(self, connection: str, resource: str, reason: str) -> None:
        """A full list was started."""
        ...

    def resume(self, connection: str, resource: str) -> None:
        """A watch went on from a cursor."""
        ...

    def event(self, connection: str, resource: str, event_type: str) -> None:
        """A watch delivered an event."""
        ...

    def reconnect(self, connection: str, reason: str) -> None:
        """A lost connection stands again."""
        ...

    def write(self, resource: str, verb: str, result: str) -> None:
        """A write was answered; `result`: done, or the name of the error."""
        ...


@dataclass(slots=True)
class FleetState:
    """All that was seen since this leader began. `clock`: Unix time in seconds, by the API server's clock."""

    settings: ControllerSettings
    connection: Connection
    observer: FleetObserver
    clock: Callable[[], float]
    fleet: Fleet = field(init=False)
    losses: Losses = field(init=False)

    def __post_init__(self) -> None:
        self.fleet = Fleet(home=self.settings.namespace)
        self.losses = Losses(self.fleet)

    @property
    def now(self) -> float:
        """Event loop time, in seconds: what losses are dated by."""
        return asyncio.get_running_loop().time()
