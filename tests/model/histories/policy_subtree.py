"""Which part of a status goes up (S4.5): who else writes it, and what an agent must never do, in random histories."""

from typing import TYPE_CHECKING

from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.model import Json
from tests.model.histories.policy_followed import Followed
from tests.model.histories.policy_references import GOALS, objects_of, on_robot
from tests.model.simulation.check import Violation
from tests.model.simulation.storage import copied
from tests.model.simulation.world import Write

if TYPE_CHECKING:
    from tests.model.histories.policy_machine import PolicyMachine

PART = "part"
"""The key of the status that goes up, or all of the status does."""


class Subtree:
    """The statuses of goals, and who writes them. Each public method up to `blank` is a step of a history."""

    def __init__(self, machine: "PolicyMachine") -> None:
        self._machine = machine
        self.key = ""
        """The policy's `subtree`; empty: it has none."""
        self._followed: Followed[str] = Followed(machine.world, _subtree_of)
        self._number = 0
        self.rivalled: set[str] = set()
        """The originals (uids) whose status somebody else has written since downstream's changed last (S4.8)."""
        self._cut: set[str] = set()
        """The originals whose copies had a status of which somebody took that part away."""
        self._blanked: set[str] = set()
        """The originals whose copies had a status that somebody took away."""
        if machine.setup.edits_subtree:
            machine.checker.watch(self._look)
            machine.world.journal.listeners.append(lambda _: self._followed.look())

    def resubtree(self, part: int) -> None:
        """Somebody edits which part of the status goes up."""
        self.key = PART if part else ""
        self._machine.apply()

    def neighbour(self, name: str) -> None:
        """Somebody else writes what stands beside that part upstream."""
        machine = self._machine
        for (place, called), found in objects_of(machine.up, GOALS).items():
            if called == name:
                self._number += 1
                self.rivalled.add(found["metadata"]["uid"])
                status = copied(found.get("status") or {}) | {"theirs": self._number}
                machine.up.set_status(name, status, kind=machine.edits.kind(machine.up), namespace=place)

    def blank(self, name: str, whole: int) -> None:
        """The controller downstream takes that part of its status away, or (`whole`) all of it."""
        machine, down = self._machine, self._machine.down
        for where in machine.copies(name):
            copy = objects_of(down, GOALS)[where]
            if PART in (copy.get("status") or {}):
                (self._blanked if whole else self._cut).add(machine.checker.of(copy))
                kept = None if whole else {key: value for key, value in copy["status"].items() if key != PART}
                down.set_status(where[1], kept, kind=machine.edits.kind(down), namespace=where[0])

    def specification(self) -> Json:
        """What the policy says of it."""
        return {"subtree": self.key} if self.key else {}

    def reported(self, of: str, status: Json) -> Json:
        """The status that the controller downstream writes, about the original with this uid."""
        self.rivalled.discard(of)
        return status | {PART: dict(status)} if self._machine.setup.edits_subtree else status

    def _look(self, write: Write) -> None:
        if on_robot(write.resource) != GOALS or write.side is not self._machine.up.side or write.status >= 300:
            return
        if write.before is None or write.after is None or write.late:
            return
        before, after = (each.get("status") or {} for each in (write.before, write.after))
        all_of_it = "" in self._followed.in_force()
        if not all_of_it and _neighbours(before) != _neighbours(after):
            raise Violation(f"{write}: {_neighbours(before)} beside the subtree has become {_neighbours(after)} (S4.5)")
        uid = write.after["metadata"]["uid"]
        if PART in before and PART not in after and not (uid in self._cut or (uid in self._blanked and all_of_it)):
            raise Violation(f"{write}: a status was blanked that no copy has ever taken away (S4.3, S4.5)")


def _neighbours(status: Json) -> Json:
    return {key: value for key, value in status.items() if key != PART}


def _subtree_of(policy: KindPolicy) -> str:
    return policy.subtree or ""
