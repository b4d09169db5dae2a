"""The metrics for Prometheus. Counters are kept here; gauges are set from the status document at each scrape."""

from collections import Counter as Tally
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)

from crsyncer.core.model import Json, Side

_LATENCIES = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3600)
_LOST = ("offline", "unauthorized", "identity-changed")
"""The states of a side from which it comes back."""
_COMMITS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5)


class Metrics:
    """Every `crsyncer_*` metric, in a registry of its own. Every label has few values.

    Implements ports.Observer, which says when each of its methods is called. `reasons` are the codes of the reasons
    that `status` can show.
    """

    def __init__(self, reasons: Iterable[str] = ()) -> None:
        # The `_created` series would double the number of series, and its times are not used.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._registry = CollectorRegistry()
        self.done: dict[Side, Tally[str]] = {side: Tally() for side in Side}
        """How many writes of each verb were done, for `status`."""
        self._requests = self._make(
            Counter, "http_requests", "Answers to requests; code 0: none came.", "side verb code"
        )
        self._bytes = self._make(Counter, "transfer_bytes", "Bytes on the wire, TLS included.", "side direction")
        self._reconnects = self._make(Counter, "reconnects", "Times that a lost side came back.", "side reason")
        self._relists = self._make(Counter, "relists", "Lists of a kind.", "side resource reason")
        self._resumes = self._make(Counter, "resumes", "Watches resumed from the stored position.", "side resource")
        self._events = self._make(Counter, "events", "Watch events.", "side resource type")
        self._writes = self._make(Counter, "writes", "Writes to objects.", "side resource verb result")
        self._noops = self._make(Counter, "noops", "Looks at a pair that agreed already.")
        self._latency = self._make(
            Histogram, "sync_latency_seconds", "From an event's arrival to the acknowledged write.", "direction",
            buckets=_LATENCIES,
        )  # fmt: skip
        self._commit = self._make(Histogram, "store_commit_seconds", "Duration of commits to disk.", buckets=_COMMITS)
        self._connected = self._make(Gauge, "side_connected", "1 while the side's API server answers.", "side")
        self._last_ok = self._make(
            Gauge, "side_last_ok_timestamp_seconds", "Unix time of its last good answer.", "side"
        )
        self._clock = self._make(
            Gauge, "side_clock_offset_seconds", "By how much its clock is ahead of this machine's.", "side"
        )
        self._depth = self._make(Gauge, "outbox_depth", "Statuses that wait for the cloud.")
        self._oldest = self._make(Gauge, "outbox_oldest_seconds", "For how long the oldest has waited; 0: none waits.")
        self._dead = self._make(Gauge, "dead_letters", "Writes that were refused for good.")
        self._holds = self._make(Gauge, "holds", "Decisions that wait for a human.")
        self._store = self._make(Gauge, "store_bytes", "Size of the store on disk.")
        self._reasons = self._make(Gauge, "reasons", "Reasons that `crsyncer status` shows.", "code")
        self._codes = tuple(reasons)
        self._build = self._make(Gauge, "build_info", "1, with the version as a label.", "version")
        for side in Side:
            for direction in ("sent", "received"):
                self._bytes.labels(side, direction)
            for reason in _LOST:
                self._reconnects.labels(side, reason)
        for direction in ("spec", "status"):
            self._latency.labels(direction)

    def _make(self, type_: Any, name: str, help_: str, labels: str = "", **options: Any) -> Any:
        return type_(name, help_, labels.split(), namespace="crsyncer", registry=self._registry, **options)

    def exchange(self, side: Side, verb: str, code: int | None, bytes_up: int, bytes_down: int) -> None:
        """One request, with the code 0 where no answer came, or bytes of a running watch, with the code None."""
        if code is not None:
            self._requests.labels(side, verb, code).inc()
        self._bytes.labels(side, "sent").inc(bytes_up)
        self._bytes.labels(side, "received").inc(bytes_down)

    def reconnect(self, connection: str, reason: str) -> None:
        self._reconnects.labels(connection, reason).inc()

    def relist(self, connection: str, resource: str, reason: str) -> None:
        self._relists.labels(connection, resource, reason).inc()

    def resume(self, connection: str, resource: str) -> None:
        self._resumes.labels(connection, resource).inc()

    def event(self, connection: str, resource: str, change: str) -> None:
        self._events.labels(connection, resource, change).inc()

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
                self._resumes.labels(side, kind["resource"])  # a counter that exists from the start
        self._depth.set(document["outbox"]["depth"])
        self._oldest.set(document["outbox"]["oldestSeconds"] or 0)
        self._dead.set(document["outbox"]["deadLetters"])
        self._holds.set(len(document["holds"]))
        self._store.set(document["store"]["bytes"])
        shown = Tally(reason["code"] for reason in document["reasons"])
        for code in self._codes:
            self._reasons.labels(code).set(shown[code])
        self._build.labels(document["version"]).set(1)
        return generate_latest(self._registry)
