"""The metrics of the agent for Prometheus.

Counters are kept here; gauges are set from the status document at each scrape.
"""

from collections import Counter as Tally
from collections.abc import Iterable
from datetime import datetime

from prometheus_client import Counter, Gauge, Histogram

from crsyncer.adapters.metrics.connection_metrics import ConnectionMetrics, Family
from crsyncer.core.model import Json, Side

_LATENCIES = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3600)
_COMMITS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5)


class Metrics(ConnectionMetrics):
    """Every `crsyncer_*` metric, in a registry of its own. Every label has few values.

    Implements ports.Observer, which says when each of its methods is called. `reasons` are the codes of the reasons
    that `status` can show.
    """

    def __init__(self, reasons: Iterable[str] = ()) -> None:
        self._family = Family("crsyncer")
        super().__init__(self._family, label="side")
        self.done: dict[Side, Tally[str]] = {side: Tally() for side in Side}
        """How many writes of each verb were done, for `status`."""
        make = self._family.make
        self._writes = make(Counter, "writes", "Writes to objects.", "side resource verb result")
        self._noops = make(Counter, "noops", "Looks at a pair that agreed already.")
        self._latency = make(
            Histogram, "sync_latency_seconds", "From an event's arrival to the acknowledged write.", "direction",
            buckets=_LATENCIES,
        )  # fmt: skip
        self._commit = make(Histogram, "store_commit_seconds", "Duration of commits to disk.", buckets=_COMMITS)
        self._connected = make(Gauge, "side_connected", "1 while the side's API server answers.", "side")
        self._last_ok = make(Gauge, "side_last_ok_timestamp_seconds", "Unix time of its last good answer.", "side")
        self._clock = make(
            Gauge, "side_clock_offset_seconds", "By how much its clock is ahead of this machine's.", "side"
        )
        self._depth = make(Gauge, "outbox_depth", "Statuses that wait for the cloud.")
        self._oldest = make(Gauge, "outbox_oldest_seconds", "For how long the oldest has waited; 0: none waits.")
        self._dead = make(Gauge, "dead_letters", "Writes that were refused for good.")
        self._holds = make(Gauge, "holds", "Decisions that wait for a human.")
        self._store = make(Gauge, "store_bytes", "Size of the store on disk.")
        self._reasons = make(Gauge, "reasons", "Reasons that `crsyncer status` shows.", "code")
        self._codes = tuple(reasons)
        self._build = make(Gauge, "build_info", "1, with the version as a label.", "version")
        for side in Side:
            self.expect(side)
        for direction in ("spec", "status"):
            self._latency.labels(direction)

    def write(self, side: Side, resource: str, verb: str, result: str) -> None:
        self._writes.labels(side, resource, verb, result).inc()
        self.done[side][verb] += result == "done"

    def noop(self) -> None:
        self._noops.inc()

    def latency(self, direction: str, seconds: float) -> None:
        self._latency.labels(direction).observe(seconds)

    def commit(self, seconds: float) -> None:
        """The store committed."""
        self._commit.observe(seconds)

    def render(self, document: Json) -> bytes:
        """The text for Prometheus, with the state as in a status document (core.report)."""
        for side in Side:
            known = document["sides"][side]
            self._connected.labels(side).set(known["state"] == "connected")
            if known["lastOk"]:
                self._last_ok.labels(side).set(datetime.fromisoformat(known["lastOk"]).timestamp())
            self._clock.labels(side).set(known["clockOffsetSeconds"] or 0)
            for kind in document["kinds"]:
                self.expect_resumes(side, kind["resource"])
        self._depth.set(document["outbox"]["depth"])
        self._oldest.set(document["outbox"]["oldestSeconds"] or 0)
        self._dead.set(document["outbox"]["deadLetters"])
        self._holds.set(len(document["holds"]))
        self._store.set(document["store"]["bytes"])
        shown = Tally(reason["code"] for reason in document["reasons"])
        for code in self._codes:
            self._reasons.labels(code).set(shown[code])
        self._build.labels(document["version"]).set(1)
        return self._family.text()
