"""Statuses of related objects (C5.5): what people do to them, and what an agent must never do, in random histories."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from crsyncer.core.model import Json
from tests.model.histories.policy_history import PARTS, resource_of
from tests.model.histories.policy_references import objects_of, on_robot
from tests.model.simulation.check import Violation, without_status
from tests.model.simulation.plane import Plane
from tests.model.simulation.storage import Where
from tests.model.simulation.world import Write
from tests.system.bed import crd

if TYPE_CHECKING:
    from tests.model.histories.policy_machine import PolicyMachine

_RACE_SECONDS = 120.0


class RelatedStatuses:
    """The statuses of parts in one world. Each public method up to `drift_shown` is a step of a history."""

    def __init__(self, machine: "PolicyMachine") -> None:
        self._machine = machine
        self._world = machine.world
        self._origin, self._target = machine.origin(PARTS), machine.target(PARTS)
        self.followed = True
        """The policy says `status: true`."""
        self._switched = -_RACE_SECONDS
        """When that was edited last."""
        self._numbers = 0
        self._hidden: set[str] = set()
        """The originals whose status somebody took away."""
        self._theirs: set[str] = set()
        """The copies (uids) whose status somebody else has written since the agent did."""
        self._sent: dict[str, tuple[int, Write]] = {}
        """By uid of a copy, the highest number of a status that the agent has written to it, and its last write."""

    def follow(self, on: int) -> None:
        """Somebody edits `status` of the entries."""
        if self.followed is not bool(on):
            self.followed, self._switched = bool(on), self._world.clock.now
            self._machine.apply()

    def show(self, which: int) -> None:
        """The controller of an original writes its status."""
        for where, found in _one(which, objects_of(self._origin, PARTS)):
            self._show(where, found)

    def hide(self, which: int) -> None:
        """Somebody takes the status of an original away."""
        for where, found in _one(which, objects_of(self._origin, PARTS)):
            if "status" in found:
                self._hidden.add(found["metadata"]["uid"])
                self._set(self._origin, where, None)

    def drift_shown(self, which: int) -> None:
        """Somebody writes the status of a copy."""
        for where, copy in _one(which, objects_of(self._target, PARTS)):
            if self._machine.checker.of(copy):
                self._theirs.add(copy["metadata"]["uid"])
                self._set(self._target, where, {"n": -1})

    def prepare(self) -> None:
        """Both sides have parts."""
        if PARTS not in map(resource_of, self._machine.setup.entries):
            return
        for side, plane in self._world.planes.items():
            plural, _, group = self._machine.edits.kind(plane, PARTS).partition(".")
            plane.apply(crd(group, plural=plural, source=None, status=side not in self._machine.setup.bare))
        self._machine.checker.watch(self._look)

    def show_all(self) -> bool:
        """Every original gets a status that is new, after both sides have come to agree; whether there are any."""
        self._switched = -_RACE_SECONDS
        originals = sorted(objects_of(self._origin, PARTS).items())
        for where, found in originals:
            self._show(where, found)
        return bool(originals)

    def specification(self, entry: Json) -> Json:
        """An entry of the policy as it is at the moment."""
        return entry | {"status": self.followed} if "status" in entry else entry

    def open_ends(self, original: Json, copy: Json) -> Iterator[str]:
        """What the statuses of a pair disagree on.

        What somebody made of a copy's status stays until the audit, and what the original never had replaces nothing.
        That it had one is forgotten if the agent is killed before it is on disk that the copy is sent it.
        """
        if not self.followed or self._is_bare:
            return
        wanted, found, checker = original.get("status"), copy.get("status"), self._machine.checker
        if wanted == found or copy["metadata"]["uid"] in self._theirs:
            return
        _, write = self._sent.get(copy["metadata"]["uid"], (0, None))
        forgot = checker.forgot or (write is not None and checker.is_forgotten(write))
        if wanted is None and (forgot or original["metadata"]["uid"] not in self._hidden):
            return
        yield f"{PARTS} {copy['metadata']['name']}: the status {wanted} and {found}"

    def _look(self, write: Write) -> None:
        if on_robot(write.resource) != PARTS or write.side is not self._target.side or write.status >= 300:
            return
        before, after = write.before or {}, write.after
        if after is None or before.get("status") == after.get("status"):
            return
        if self._is_bare or write.before is None:
            raise Violation(f"{write}: a status was written where there is no /status (C5.5)")
        if without_status(write.before) != without_status(after):
            raise Violation(f"{write}: more than the status was written")
        if not self.followed and self._world.clock.now - self._switched > _RACE_SECONDS:
            raise Violation(f"{write}: the status was written, and nobody wants that (C5.5)")
        copy, of, status = after["metadata"]["uid"], self._machine.checker.of(after), after.get("status")
        self._theirs.discard(copy)
        if status is None:
            if of not in self._hidden:
                raise Violation(f"{write}: a status was blanked that nobody took away from its original")
            return
        if status["of"] != of:
            raise Violation(f"{write}: a status of {status['of']} has landed on the copy of {of}")
        before_it, _ = self._sent.get(copy, (0, write))
        if status["n"] < before_it and not write.late:
            raise Violation(f"{write}: status {status['n']} has followed status {before_it}")
        self._sent[copy] = max(status["n"], before_it), write

    @property
    def _is_bare(self) -> bool:
        return self._target.side in self._machine.setup.bare

    def _set(self, plane: Plane, where: Where, status: Json | None) -> None:
        place, name = where
        plane.set_status(name, status, kind=self._machine.edits.kind(plane, PARTS), namespace=place)

    def _show(self, where: Where, original: Json) -> None:
        self._numbers += 1
        self._set(self._origin, where, {"of": original["metadata"]["uid"], "n": self._numbers})


def _one(which: int, objects: dict[Where, Json]) -> list[tuple[Where, Json]]:
    """The object of a number; none, where there are none."""
    found = sorted(objects.items())
    return found[which % len(found) :][:1] if found else []
