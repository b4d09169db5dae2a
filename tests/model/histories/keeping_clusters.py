"""Steps of `keeping_machine` about the clusters: backups, CRDs that go and are made anew, lists in vain."""

import contextlib
import math
from typing import TYPE_CHECKING, Any

from crsyncer.core.model import Side
from tests.model.histories.policy_references import GOALS
from tests.model.simulation.answers import INTERNAL_ERROR
from tests.model.simulation.plane import GROUP, Plane
from tests.model.simulation.storage import Snapshot
from tests.system.bed import crd

if TYPE_CHECKING:
    from tests.model.histories.keeping_machine import KeepingMachine


class Clusters:
    """What becomes of both clusters of a machine."""

    def __init__(self, machine: "KeepingMachine") -> None:
        self._machine = machine
        self._world = machine.world
        self._snapshots: dict[Side, Snapshot] = {}

    def snapshot(self, side: str) -> None:
        """A backup of a cluster is made."""
        if not any(kind.dying for kind in self._world.planes[Side(side)].server.kinds()):
            self._snapshots[Side(side)] = self._world.planes[Side(side)].snapshot()

    def restore(self, side: str, gap: str) -> None:
        """A cluster goes back to its backup; `gap`: what the agent sees of it. The robot's takes the agent along."""
        plane, snapshot = self._world.planes[Side(side)], self._snapshots.get(Side(side))
        if snapshot is None or not self.may_notice(plane):
            return
        before = {each["metadata"]["uid"] for each in self._machine.primaries().values()}
        if plane is self._world.robot:
            self._world.crash()
            self._world.boots += 1
        with self._out_of_sight(plane, gap):
            plane.restore(snapshot)
            if plane is self._world.robot:
                self._machine.apply()
        if plane is self._machine.up:
            self._machine.judge.restored(before)

    def make_anew(self, side: str, gap: str, again: int) -> None:
        """A CRD is deleted and made anew, and so many of its objects; `gap`: what the agent sees of it."""
        plane = self._world.planes[Side(side)]
        if not self._machine.serves(plane) or not self.may_notice(plane):
            return
        with self._out_of_sight(plane, gap):
            self._delete_kind(plane)
            while not plane.sweep():
                self._let_go(plane)
            self._define(plane)
            if plane is self._machine.up:
                for number in range(again):
                    self._machine.create(number, number + 1)

    def delete_kind(self, side: str) -> None:
        """Somebody deletes a CRD."""
        plane = self._world.planes[Side(side)]
        if self._machine.serves(plane):
            self._delete_kind(plane)
            plane.sweep()

    def define_kind(self, side: str) -> None:
        """Somebody puts a CRD back."""
        plane = self._world.planes[Side(side)]
        if not self._machine.serves(plane):
            self._world.pass_time(10.0)
            while not plane.sweep():
                self._let_go(plane)
            self._define(plane)

    def refuse_lists(self, seconds: float) -> None:
        """Upstream lists goals in vain for a while: no mass deletion can be verified."""
        self._world.inject(
            str(self._machine.up.side), INTERNAL_ERROR, verb="list", part="/goals", times=math.inf, seconds=seconds
        )

    def may_notice(self, plane: Plane) -> bool:
        """Whether the agent knows the cluster as it is now, so that it can notice what changes."""
        life = self._world.life
        return life is not None and life.engine.connections[plane.side].up.is_set() and self._world.idle()

    @contextlib.contextmanager
    def _out_of_sight(self, plane: Plane, gap: str) -> Any:
        """What happens inside, the agent finds afterwards, with its past forgotten, or sees at once."""
        side, was_up = str(plane.side), self._world.life is not None
        if gap == "cut":
            self._world.cut(side)
            self._world.pass_time(30.0)
        elif gap == "stopped":
            self._world.stop()
        yield
        if gap != "seen":
            plane.compact()
            self._world.mend(side)
        if was_up or plane is self._world.robot:
            self._machine.environment.start()

    def _delete_kind(self, plane: Plane) -> None:
        if any(each.resource == GOALS and not each.dying for each in plane.server.kinds()):
            plane.delete_kind()

    def _define(self, plane: Plane) -> None:
        plane.apply(crd(GROUP, source=None))

    def _let_go(self, plane: Plane) -> None:
        for place, name in list(plane.server.storage.of(GOALS)):
            plane.finalize(name, namespace=place)
