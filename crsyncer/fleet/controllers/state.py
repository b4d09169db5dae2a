"""What the controllers of one leader share: the fleet as it was seen, what was lost, the ways to the API servers."""

import asyncio
import logging
import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from crsyncer.core.content.mutation import Expressions
from crsyncer.core.model import Json, Key
from crsyncer.core.requests.answers import shown
from crsyncer.core.requests.calls import Call
from crsyncer.errors import Never, NotAllowed, NotLeading, SyncError
from crsyncer.fleet.domain.fleet import Fleet
from crsyncer.fleet.domain.losses import Losses
from crsyncer.fleet.domain.rollout.tries import FORBIDDEN_SECONDS
from crsyncer.fleet.domain.transport.keys import ROOT
from crsyncer.fleet.domain.values import ReplicaKey, SourceKey
from crsyncer.ports import Observer
from crsyncer.runtime.connection import Connection

Work = ReplicaKey | SourceKey | Key | str
"""What a job is about: a replica, a source, a CombinedStatus, a StatusCollector by its name, a SOURCEID, or a placement
as NAMESPACE/NAME ("": those that are gone)."""
REFUSED_SECONDS = 3600.0
"""What the server refuses is tried again after so long, and at each change (section 7)."""
log = logging.getLogger(__name__)


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


class FleetObserver(Observer, Protocol):
    """Counts writes as well."""

    def write(self, resource: str, verb: str, result: str) -> None:
        """A write was answered; `result`: done, or the name of the error."""
        ...


class Sent(NamedTuple):
    """What became of a write. `error` is None where it was carried out."""

    error: SyncError | None
    body: Json
    """Of the answer; {} where none came."""
    status: int = 0
    """HTTP."""


@dataclass(slots=True)
class FleetState:
    """All that was seen since this leader began. `clock`: Unix time in seconds, by the API server's clock."""

    settings: ControllerSettings
    connection: Connection
    observer: FleetObserver
    clock: Callable[[], float]
    shards: Mapping[str, Connection] = field(default_factory=dict)
    """By name: those to the shards beside the root."""
    fleet: Fleet = field(init=False)
    losses: Losses = field(init=False)
    refused: dict[str, dict[Hashable, float]] = field(default_factory=dict)
    """Removals and writes of own objects that the server refuses: of which objects, and until when that counts."""

    def __post_init__(self) -> None:
        self.fleet = Fleet(home=self.settings.namespace, shards=[ROOT, *self.shards])
        self.losses = Losses(self.fleet)

    def connection_to(self, shard: str) -> Connection:
        """The connection to a shard."""
        return self.connection if shard == ROOT else self.shards[shard]

    def clock_of(self, shard: str) -> float:
        """Unix time in seconds, by the clock of a shard's API server."""
        root, own = self.connection.cluster.clock_offset, self.connection_to(shard).cluster.clock_offset
        return self.clock() + (own or 0.0) - (root or 0.0)

    async def send(self, resource: str, call: Call, shard: str = ROOT) -> Sent:
        """Send a write and count what became of it. Raises NotLeading where this process may not write any more."""
        reply = None
        try:
            reply = await self.connection_to(shard).request(call)
            error = reply.error(patch=call.method == "PATCH")
            if error is None and call.method != "DELETE":
                shown(reply.body)
        except NotLeading:
            raise
        except SyncError as failure:
            error = failure
        self.observer.write(resource, call.verb, "done" if error is None else type(error).__name__)
        return Sent(error, {}) if reply is None else Sent(error, reply.body, reply.status)

    def answered(self, what: str, target: Hashable, error: SyncError | None, *, message: str = "") -> None:
        """Keep what is refused of an object until it should have been tried again, and log the first of its kind."""
        if isinstance(error, (Never, NotAllowed)):
            if what not in self.refused:
                log.warning("the API server refuses the controller's %s: %s", what, message or error)
            again = REFUSED_SECONDS if isinstance(error, Never) else 0.0
            self.refuse(what, target, until=self.now + again + FORBIDDEN_SECONDS)
        elif error is None:
            self.not_refused(what, target)

    def refuse(self, what: str, target: Hashable, *, until: float = math.inf) -> None:
        """Something is refused, until it is not or that time, in event loop time."""
        self.refused.setdefault(what, {})[target] = until

    def not_refused(self, what: str, target: Hashable) -> None:
        """A write was carried out, or is not to be made any more."""
        targets = self.refused.get(what, {})
        targets.pop(target, None)
        if not targets:
            self.refused.pop(what, None)

    def refusals(self) -> str:
        """The removals and writes of own objects that the server refuses, separated by commas."""
        now = self.now
        for what, targets in list(self.refused.items()):
            for target in [target for target, until in targets.items() if until <= now]:
                self.not_refused(what, target)
        return ", ".join(sorted(self.refused))

    @property
    def now(self) -> float:
        """Event loop time, in seconds: what losses are dated by."""
        return asyncio.get_running_loop().time()
