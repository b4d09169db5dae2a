"""What an agent must never do whatever its reasons, looked at when it sends a request, and what it must have done.

`check` judges what servers carried out; here is what is forbidden to be sent at all, and what must not stay undone.
"""

from collections import defaultdict, deque
from typing import TYPE_CHECKING, Any

from crsyncer.core.model import Json, Pending, Side
from tests.model.simulation.check import Checker
from tests.model.simulation.connection import Connection
from tests.model.simulation.journal import WRITES, Request
from tests.model.simulation.plane import GROUP
from tests.model.simulation.world import World

if TYPE_CHECKING:
    from tests.model.histories.operators import Operators

_RATE_SECONDS, _RATE = 10.0, 30
"""No object is written so often in so short a time, whoever interferes (S3.5, S10)."""


class Promises:
    """Watches one world."""

    def __init__(self, world: World, checker: Checker) -> None:
        self._world = world
        self._checker = checker
        self._times: dict[tuple[Side, str, str], deque[float]] = defaultdict(lambda: deque(maxlen=_RATE + 1))
        self._owed: dict[str, int] = {}
        """The highest number of a status that was durable in the outbox, by the uid of its upstream object."""
        self._rows: list[Any] = []
        self._read = 0
        self.manual: set[str] = set()
        """Kinds whose deletions a human holds back."""
        world.journal.listeners.append(self._sent)

    # At every request

    def _sent(self, request: Request) -> None:
        resource = f"{request.kind}.{GROUP}"
        if request.verb not in WRITES or resource not in self._checker.kinds or self._world.life is None:
            return
        row = self._world.life.engine.kinds.entries.get(resource)
        if row is None or row.kind is None:
            self._wrong(request, "the kind is stopped (S1.8)")
        if request.verb == "delete" and resource in self.manual:
            self._wrong(request, "a human holds the deletions of this kind back (S5.5)")
        times = self._times[request.side, request.verb, request.name]
        times.append(request.sent)
        if len(times) > _RATE and request.sent - times[0] < _RATE_SECONDS:
            self._wrong(request, f"it is repeated {_RATE} times within {_RATE_SECONDS:.0f} s (S10)")

    def _wrong(self, request: Request, why: str) -> None:
        self._checker.violations.append(f"{request} was sent at {request.sent:.3f}: {why}")

    # The outbox

    def read_outbox(self) -> None:
        """Remember which statuses no crash can take any more (S6.3)."""
        disk = self._world.disk
        if self._rows is not disk.rows:
            self._rows, self._read = disk.rows, 0
        for part, _, _, value in disk.rows[self._read : disk.durable]:
            if part == "pending" and isinstance(value, Pending) and isinstance(value.value, dict):
                uid = value.upstream_uid
                self._owed[uid] = max(self._owed.get(uid, 0), value.value.get("n", 0))
        self._read = disk.durable

    def forgive(self, uid: str = "") -> None:
        """The status for this upstream object, or every one, is not owed any more."""
        if uid:
            self._owed.pop(uid, None)
        else:
            self._owed.clear()

    def lost(self) -> list[str]:
        """Statuses that were durable, whose upstream object is there, and which it never got."""
        found = []
        for spec in self._checker.kinds.values():
            for name, obj in self._world.planes[spec.upstream].objects(spec.plural).items():
                uid = obj["metadata"]["uid"]
                story, owed = self._checker.stories[uid], self._owed.get(uid, 0)
                excused = story.leaving or story.cleared or story.rivalled or not spec.sees(obj)
                if not excused and max(story.sent, _number(spec.moving(obj))) < owed:
                    found.append(f"status {owed} of {spec.plural} {name} was durable in the outbox and never arrived")
        return found

    # In the end

    def needless_holds(self, operators: "Operators", *, went_back: set[Side]) -> list[str]:
        """What is held for a human although nothing has happened that only a human can judge (S5.5).

        `went_back`: sides that were restored or rebuilt.
        """
        status = self._world.status()
        is_other = status["sides"]["robot"]["state"] == "identity-changed"
        causes = {resource: {"Manual"} for resource in self._checker.kinds}
        for resource, spec in self._checker.kinds.items():
            if resource in operators.replaced or spec.upstream in went_back:
                causes[resource] |= {"KindMissing", "MassDeletion"}
            if resource in operators.gone_from_robot and is_other:
                # Nothing is read of another cluster that no human has accepted yet (S8.3), so no agent can know that
                # the CRD, which was gone from the one before (S1.8), is on this one.
                causes[resource].add("KindMissing")
            if went_back:
                causes[resource].add("Restored")
        holds = [h for h in status.get("holds", []) if h["resource"] in causes]
        wanted = ("Manual", "KindMissing", "MassDeletion", "Restored")
        return [
            f"{hold['resource']} is held for {hold['reason']} without a cause"
            for hold in holds
            if hold["reason"] in wanted and hold["reason"] not in causes[hold["resource"]]
        ]

    def generations(self) -> list[str]:
        """Kinds of which more than one generation runs: each watches a side once."""
        life, found = self._world.life, []
        for side, connection in life.engine.connections.items() if life is not None else ():
            cluster = connection.cluster
            assert isinstance(cluster, Connection)
            for spec in self._checker.kinds.values():
                count = sum(n for path, n in cluster.watched.items() if path.endswith(f"/{spec.plural}"))
                if count > 1:
                    found.append(f"{side}: {count} watches of {spec.plural}")
        return found


def _number(status: Json | None) -> int:
    return int(status.get("n", 0)) if isinstance(status, dict) else 0
