"""What controllers must never do, whatever befalls them. Each FleetWorld has this judge."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from crsyncer.core.requests.calls import Call
from crsyncer.fleet.domain.lease import TIMEOUT_SECONDS
from tests.model.storage import Change

if TYPE_CHECKING:
    from tests.fleet_model.fleet_world import FleetWorld, Write
    from tests.fleet_model.process import Process

LEASES = "leases.coordination.k8s.io"
_TAMPERED_SECONDS = 40.0
"""After somebody else wrote the Lease, two controllers may lead for a while."""


@dataclass(slots=True)
class FleetJudge:
    """Watches the controllers of one world. Violations are collected; the world raises them at its end."""

    world: "FleetWorld"
    violations: list[str] = field(default_factory=list)
    _writing: bool = False
    """A controller's request is being carried out."""
    _tampered: float = -_TAMPERED_SECONDS
    """When somebody else wrote the Lease."""

    def __post_init__(self) -> None:
        self.world.server.storage.listeners.append(self._changed)

    def _changed(self, change: Change) -> None:
        if change.resource == LEASES and not self._writing:
            self._tampered = self.world.clock.now

    # The Lease (F1.2)

    def sends(self, name: str, call: Call) -> None:
        """A controller sends a request."""
        process = self.world.processes.get(name)
        if call.method == "GET" or process is None:
            return
        if call.timeout > TIMEOUT_SECONDS:
            self._say(f"{name} waits {call.timeout} s for {call.verb} {call.path} (F1.2)")
        if not is_lease(call):
            self._holds(process, call, "sends")

    def arrives(self, process: "Process", call: Call, *, late: bool) -> None:
        """A request reaches the server, which carries it out next."""
        self._writing = True
        if not late and not is_lease(call):
            self._holds(process, call, "has sent")

    def _holds(self, process: "Process", call: Call, does: str) -> None:
        leaders = [each.name for each in self.world.processes.values() if each.leads()]
        if len(leaders) > 1:
            self._say(f"{' and '.join(leaders)} lead at the same time (F1.2)")
        lease = self.world.lease
        holder = "" if lease is None else lease["spec"].get("holderIdentity")
        tampered = self.world.clock.now < self._tampered + _TAMPERED_SECONDS
        if holder != process.identity and not tampered:
            self._say(f"{process.name} {does} {call.verb} {call.path}, and {holder or 'nobody'} leads (F1.2)")

    # What was written

    def look(self, write: "Write") -> None:  # noqa: ARG002
        """Look at a write that was carried out."""
        self._writing = False

    def _say(self, what: str) -> None:
        self.violations.append(f"{self.world.clock.now:.2f} {what}")


def is_lease(call: Call) -> bool:
    """Whether a request is about Leases."""
    return call.path.startswith("/apis/coordination.k8s.io/")
