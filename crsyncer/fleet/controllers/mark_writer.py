"""Sets and removes the mark of each source that robots share: one write when that begins, and one when it ends."""

from dataclasses import dataclass

from crsyncer.core.model import Key
from crsyncer.errors import Conflict, Never, NotAllowed, NotGranted, Unsure
from crsyncer.fleet.controllers.own_objects import OwnObjects
from crsyncer.fleet.controllers.state import REFUSED_SECONDS, FleetState
from crsyncer.fleet.domain.rollout.robot_states import Fault
from crsyncer.fleet.domain.shared.source_marks import UNWRITTEN, decide_mark, left_marks
from crsyncer.fleet.domain.transport.transports import apply
from crsyncer.fleet.domain.values import Patch, Placement, Reason, SourceKey

_UNSURE_SECONDS = 30.0
"""So long after a write its mark is waited for: the server has not answered, or the watch has not shown it."""
_SEEN_SECONDS = 1.0
"""How often it is looked whether the watch has shown what was written."""


@dataclass(frozen=True, slots=True)
class _Refusal:
    placement: str
    """The uid of the one that writes the mark, or removes it."""
    fault: Fault


class SourceMarks:
    """The marks of all sources."""

    def __init__(self, state: FleetState) -> None:
        self._state = state
        self._own = OwnObjects(state)
        self._refused: dict[SourceKey, _Refusal] = {}
        self._sent: dict[SourceKey, tuple[str, float]] = {}
        """The version of a source over which its mark was written, and when it is written over that again."""

    def faults(self, placement: Placement) -> list[Fault]:
        """The marks of a placement that the server refuses."""
        return [each.fault for each in self._refused.values() if each.placement == placement.uid]

    def are_left(self, placement: Placement) -> bool:
        """Whether a source has the mark of a placement, whose finalizer waits for that."""
        return any(True for _ in left_marks(self._state.fleet, placement))

    async def write(self, placement: Placement) -> float | None:
        """Write the marks that are due of a placement's sources, and of those that were.

        When to come again, in event loop time: until each mark is seen as it was written. Raises SyncError.
        """
        fleet, times = self._state.fleet, list[float]()
        if not placement.shared and not placement.terminating:  # an older CRD has dropped its mode: marks are left
            return None
        keys = {*fleet.index.sources_of(placement.text), *left_marks(fleet, placement)}
        for key in [key for key, each in self._refused.items() if each.placement == placement.uid and key not in keys]:
            del self._refused[key]  # the source is gone, or nobody's any more
        for key in sorted(keys):
            plan = decide_mark(fleet, key)
            if not isinstance(plan, Patch):
                self._refused.pop(key, None)
                self._sent.pop(key, None)
                continue
            version = fleet.index.sources[key].body["metadata"]["resourceVersion"]
            sent, until = self._sent.get(key, ("", 0.0))
            if sent != version or self._state.now >= until:
                self._sent[key] = version, self._state.now + _UNSURE_SECONDS
                await self._send(key, plan, placement)
            times.append(self._sent[key][1] if key in self._refused else self._state.now + _SEEN_SECONDS)
        return min(times, default=None)

    async def _send(self, key: SourceKey, plan: Patch, placement: Placement) -> None:
        self._refused.pop(key, None)
        kind = self._state.fleet.index.kinds[key.resource]
        call = apply(kind, plan, Key(key.namespace, key.name)).call
        try:
            await self._own.send(key.resource, call)
        except Conflict:
            return  # it has changed, which the watch shows
        except (Never, NotAllowed, Unsure) as error:
            message = "the server refuses the mark" if kind.sensitive else str(error)
            fault = Fault("", key.text, Reason.REFUSED, f"{UNWRITTEN}: {message}")
            self._refused[key] = _Refusal(placement.uid, fault)
            if not isinstance(error, (Never, NotGranted)):
                raise  # all else of the placement goes on in the next try, without this source
            again = error.again if isinstance(error, NotGranted) else self._state.now + REFUSED_SECONDS
            self._sent[key] = self._sent[key][0], again
