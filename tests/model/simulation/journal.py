"""Every request that the agents of a world make, in order, with times and answers: reads, watches and writes."""

from collections.abc import Callable
from dataclasses import dataclass, field

from crsyncer.core.model import Side
from crsyncer.core.requests.calls import Call, kind_of

WRITES = ("create", "update", "status", "delete", "patch")


@dataclass(slots=True)
class Request:
    """One request. `sent` and `answered` are seconds since the world began; `status` is HTTP."""

    side: Side
    call: Call
    sent: float
    answered: float | None = None
    status: int | None = None
    """None: no answer came, or none yet."""

    @property
    def verb(self) -> str:
        """The Kubernetes verb; `status` for what writes a status."""
        return "status" if self.call.path.endswith("/status") and self.call.method != "GET" else self.call.verb

    @property
    def query(self) -> dict[str, str]:
        """The query's parameters."""
        return dict(self.call.query)

    @property
    def kind(self) -> str:
        """The plural of the kind that it is about; "" where it is about none."""
        return kind_of(self.call).rpartition("/")[2]

    @property
    def name(self) -> str:
        """The object's path, also where it is only about to be created."""
        made = self.call.body["metadata"]["name"] if self.call.verb == "create" else ""
        return f"{self.call.path}/{made}" if made else self.call.path

    @property
    def is_probe(self) -> bool:
        """Whether it only asks if what is known still holds (S8.2)."""
        return "1" in (self.query.get("limit"), self.query.get("timeoutSeconds"))

    def answer(self, status: int, now: float) -> None:
        """Note what came back."""
        self.status, self.answered = status, now

    def __str__(self) -> str:
        return f"{self.side}: {self.verb} {self.call.path} ({self.status})"


@dataclass(slots=True)
class Journal:
    """What was asked for, oldest first."""

    requests: list[Request] = field(default_factory=list)
    listeners: list[Callable[[Request], None]] = field(default_factory=list)
    """Told of every request when it is sent."""

    def note(self, side: Side, call: Call, now: float) -> Request:
        """Write a request down when it is sent; its answer is noted in what is returned."""
        request = Request(side, call, now)
        self.requests.append(request)
        for listener in self.listeners:
            listener(request)
        return request

    def asked(
        self, side: str = "", *, verb: str = "", kind: str = "", part: str = "", since: float = 0.0
    ) -> list[Request]:
        """The requests to a side, of a verb, about a kind, whose path contains a part, sent at `since` or later.

        `verb` is a Kubernetes verb, `status`, or `write` for everything that could change something.
        """
        verbs = WRITES if verb == "write" else (verb,)
        return [
            request
            for request in self.requests
            if side in ("", request.side)
            and (not verb or request.verb in verbs)
            and kind in ("", request.kind)
            and part in request.call.path
            and request.sent >= since
        ]

    def is_read_anew(self, side: Side, resource: str, *, since: float, until: float) -> bool:
        """Whether a side gave no answer all that time, and its kind is listed then: what happened is never shown."""
        answered = [each for each in self.asked(side, since=since) if each.status is not None]
        reads = [each for each in answered if each.kind == resource.partition(".")[0] and not each.is_probe]
        return bool(reads) and reads[0].verb == "list" and answered[0].sent > until
