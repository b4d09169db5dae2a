"""What is counted of connections to API servers, whoever has them: requests, bytes, lists, watches."""

from functools import cache
from typing import Any

from prometheus_client import CollectorRegistry, Counter, disable_created_metrics, generate_latest

_LOST = ("offline", "unauthorized", "identity-changed")
"""The states of a connection from which it comes back."""


class Family:
    """Metrics whose names have a prefix, in a registry of their own."""

    def __init__(self, prefix: str) -> None:
        # The `_created` series would double the number of series, and its times are not used.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._registry = CollectorRegistry()
        self._prefix = prefix

    def make(self, type_: Any, name: str, help_: str, labels: str = "", **options: Any) -> Any:
        """A metric of a type of prometheus_client; `labels` are separated by blanks."""
        made = type_(name, help_, labels.split(), namespace=self._prefix, registry=self._registry, **options)
        if type_ is Counter:  # it is never cleared, so that a child stays; each write and each event counts some
            made.labels = cache(made.labels)
        return made

    def text(self) -> bytes:
        """All of them, as Prometheus reads them."""
        return generate_latest(self._registry)


class ConnectionMetrics:
    """Counts what connections do. `label` is the name of the label that tells them apart.

    Has those methods of ports.Observer that `runtime` calls.
    """

    def __init__(self, family: Family, *, label: str) -> None:
        make = family.make
        self._requests = make(Counter, "http_requests", "Answers to requests; code 0: none came.", f"{label} verb code")
        self._bytes = make(Counter, "transfer_bytes", "Bytes on the wire, TLS included.", f"{label} direction")
        self._reconnects = make(Counter, "reconnects", f"Times that a lost {label} came back.", f"{label} reason")
        self._relists = make(Counter, "relists", "Lists of a kind.", f"{label} resource reason")
        self._resumes = make(Counter, "resumes", "Watches resumed from the stored position.", f"{label} resource")
        self._events = make(Counter, "events", "Watch events.", f"{label} resource type")

    def expect(self, connection: str) -> None:
        """Count from zero: else the first time is no increase, for Prometheus."""
        for direction in ("sent", "received"):
            self._bytes.labels(connection, direction)
        for reason in _LOST:
            self._reconnects.labels(connection, reason)

    def expect_resumes(self, connection: str, resource: str) -> None:
        """Count resumed watches of a kind from zero."""
        self._resumes.labels(connection, resource)

    def exchange(self, connection: str, verb: str, code: int | None, bytes_up: int, bytes_down: int) -> None:
        """One request, with the code 0 where no answer came, or bytes of a running watch, with the code None."""
        if code is not None:
            self._requests.labels(connection, verb, code).inc()
        self._bytes.labels(connection, "sent").inc(bytes_up)
        self._bytes.labels(connection, "received").inc(bytes_down)

    def reconnect(self, connection: str, reason: str) -> None:
        """As ports.Observer says, like the others."""
        self._reconnects.labels(connection, reason).inc()

    def relist(self, connection: str, resource: str, reason: str) -> None:
        """A full list was started."""
        self._relists.labels(connection, resource, reason).inc()

    def resume(self, connection: str, resource: str) -> None:
        """A watch went on from a cursor."""
        self._resumes.labels(connection, resource).inc()

    def event(self, connection: str, resource: str, event_type: str) -> None:
        """A watch delivered an event."""
        self._events.labels(connection, resource, event_type).inc()
