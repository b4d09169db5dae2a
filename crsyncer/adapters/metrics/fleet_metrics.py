"""The metrics of the fleet controller for Prometheus.

Counters are kept here; gauges are set from the status document at each scrape.
"""

from collections import Counter as Tally
from collections.abc import Mapping
from types import MappingProxyType

from prometheus_client import Counter, Gauge

from crsyncer import __version__
from crsyncer.adapters.metrics.connection_metrics import ConnectionMetrics, Family
from crsyncer.core.model import Json

_REPORTS = ("online", "offline", "unreported")
_STATES = ("ready", "inFlight", "waiting", "stamped", "deferred", "failed", "blocked")
_NONE: Mapping[str, int] = MappingProxyType({})


class FleetMetrics(ConnectionMetrics):
    """Every `crsyncer_fleet_*` metric, in a registry of its own. No label names a robot or a placement.

    A connection's name is that of its shard.
    """

    def __init__(self, *shards: str) -> None:
        self._family = Family("crsyncer_fleet")
        super().__init__(self._family, label="shard")
        make = self._family.make
        self._writes = make(Counter, "writes", "Writes to objects.", "resource verb result")
        self._leader = make(Gauge, "leader", "1 while this controller leads.")
        self._robots = make(Gauge, "robots", "Robots, by what is known of their agents.", "state")
        self._placed = make(Gauge, "placed_robots", "Robots by state, summed over all placements.", "state")
        self._placements = make(Gauge, "placements", "RobotPlacements.")
        self._replicas = make(Gauge, "replicas", "Objects that placements have made.", "resource")
        self._due = make(Gauge, "due", "Replicas that are missing or not up to date.")
        self._holds = make(Gauge, "holds", "Removals that wait for a human.")
        self._errors = make(Gauge, "errors", "Errors in the statuses of placements.")
        self._reasons = make(Gauge, "reasons", "Reasons that `crsyncer fleet status` shows.", "code level")
        self._build = make(Gauge, "build_info", "1, with the version as a label.", "version")
        self._build.labels(__version__).set(1)
        for shard in shards:
            self.expect(shard)

    def write(self, resource: str, verb: str, result: str) -> None:
        """A write was answered; `result`: done, or the name of the error."""
        self._writes.labels(resource, verb, result).inc()

    def render(self, document: Json | None, *, replicas: Mapping[str, int] = _NONE, due: int = 0) -> bytes:
        """The text for Prometheus, with the fleet as in a `crsyncer.fleet-status/v1` document; None: of a standby.

        `replicas` are counted by kind.
        """
        self._leader.set(document is not None)
        for gauge in (self._robots, self._placed, self._replicas, self._reasons):
            gauge.clear()
        placements = document["placements"] if document is not None else []
        if document is not None:
            for report in _REPORTS:
                self._robots.labels(report).set(document["robots"][report] or 0)
            for state in _STATES:
                self._placed.labels(state).set(sum((each["counts"] or {}).get(state, 0) for each in placements))
            for (code, level), number in Tally((e["code"], e["level"]) for e in document["reasons"]).items():
                self._reasons.labels(code, level).set(number)
        for resource, number in replicas.items():
            self._replicas.labels(resource).set(number)
        self._placements.set(len(placements))
        self._due.set(due)
        self._holds.set(sum(len(each["holds"]) for each in placements))
        self._errors.set(sum(each["errorCount"] or 0 for each in placements))
        return self._family.text()
