"""Sets and removes the mark of each source that robots share: one write when that begins, and one when it ends."""

from dataclasses import dataclass

from crsyncer.core.model import Key
from crsyncer.errors import Conflict, Never, NotAllowed
from crsyncer.fleet.controllers.own_objects import OwnObjects
from crsyncer.fleet.controllers.state import FleetState
from crsyncer.fleet.domain.rollout.robot_states import Fault
from crsyncer.fleet.domain.shared.source_marks import decide_mark, left_marks
from crsyncer.fleet.domain.transport.transports import apply
from crsyncer.fleet.domain.values import Patch, Placement, Reason, SourceKey

_REFUSED_SECONDS = 3600.0
"""What the server refuses is tried again after so long (section 7)."""


@dataclass(frozen=True, slots=True)
class _Refusal:
    fault: Fault
    until: float


class SourceMarks:
    """The marks of all sources."""

    def __init__(self, state: FleetState) -> None:
        self._state = state
        self._own = OwnObjects(state)
        self._refused: dict[SourceKey, _Refusal] = {}

    def faults(self, placement: Placement) -> list[Fault]:
        """The sources of a placement whose marks the server refuses."""
        sources = self._state.fleet.index.sources_of(placement.text) if self._refused else ()
        return [self._refused[each].fault for each in sources if each in self._refused]

    def are_left(self, placement: Placement) -> bool:
        """Whether a source has the mark of a placement, whose finalizer waits for that."""
        return any(True for _ in left_marks(self._state.fleet, placement))

    async def write(self, placement: Placement) -> None:
        """Write the marks that are due of a placement's sources, and of those that were. Raises SyncError."""
        fleet = self._state.fleet
        if not placement.shared:
            return
        for key in sorted({*fleet.index.sources_of(placement.text), *left_marks(fleet, placement)}):
            plan = decide_mark(fleet, key)
            if not isinstance(plan, Patch):
                self._refused.pop(key, None)
                continue
            refusal = self._refused.get(key)
            if refusal is None or self._state.now >= refusal.until:
                await self._send(key, plan)

    async def _send(self, key: SourceKey, plan: Patch) -> None:
        kind = self._state.fleet.index.kinds[key.resource]
        call = apply(kind, plan, Key(key.namespace, key.name)).call
        try:
            await self._own.send(key.resource, call)
        except Conflict:
            return  # it has changed, which the watch shows
        except (Never, NotAllowed) as error:
            if isinstance(error, NotAllowed) and error.status == 401:
                raise
            said = "the server refuses the mark" if kind.sensitive else str(error)
            fault = Fault("", key.text, Reason.REFUSED, f"it cannot be marked as shared: {said}")
            self._refused[key] = _Refusal(fault, self._state.now + _REFUSED_SECONDS)
