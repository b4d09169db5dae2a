"""The metrics of the front door's upkeep for Prometheus. HAProxy has an exporter of its own."""

from collections.abc import Mapping

from prometheus_client import Counter, Gauge

from crsyncer import __version__
from crsyncer.adapters.metrics.connection_metrics import ConnectionMetrics, Family


class DoorMetrics:
    """Every `crsyncer_door_*` metric, in a registry of its own. No label names a robot.

    `connections` has those methods of ports.Observer that `runtime` calls.
    """

    def __init__(self, *shards: str) -> None:
        self._family = Family("crsyncer_door")
        self.connections = ConnectionMetrics(self._family, label="shard")
        make = self._family.make
        self._robots = make(Gauge, "robots", "Robots in the map, by shard.", "shard")
        self._writes = make(Counter, "map_writes", "Changes of a map: done, or failed.", "result")
        self._ended = make(
            Counter, "ended_streams", "Streams that were ended: of robots that moved or are gone, or at a lost shard."
        )
        self._up = make(Gauge, "shard_up", "1 while HAProxy finds the shard healthy.", "shard")
        make(Gauge, "build_info", "1, with the version as a label.", "version").labels(__version__).set(1)
        for result in ("done", "failed"):
            self._writes.labels(result)
        for shard in shards:
            self.connections.expect(shard)

    def wrote(self, result: str) -> None:
        """A map was changed; `result`: done or failed."""
        self._writes.labels(result).inc()

    def ended(self, number: int) -> None:
        """Streams were ended."""
        self._ended.inc(number)

    def render(self, robots: Mapping[str, int], up: Mapping[str, bool]) -> bytes:
        """The text for Prometheus, with the robots by shard, and which shards are up."""
        self._robots.clear()
        self._up.clear()
        for shard, number in robots.items():
            self._robots.labels(shard).set(number)
            self._up.labels(shard).set(up.get(shard, False))
        return self._family.text()
