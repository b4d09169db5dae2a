"""The steps of a history that operators take: commands, edits of CRDs, and what they do to the state directory."""

import contextlib
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from crsyncer.core.model import Json, Side
from crsyncer.errors import SyncError
from crsyncer.ports import Reply
from tests.model.histories.history import KINDS
from tests.model.simulation.answers import FORBIDDEN, INTERNAL_ERROR, NOT_SERVED, UNAUTHORIZED, UNAVAILABLE, invalid
from tests.model.simulation.api_server import CRDS
from tests.model.simulation.disk import Disk
from tests.model.simulation.judge import stamp
from tests.model.simulation.plane import GROUP
from tests.model.simulation.weather import Fate
from tests.system.bed import crd

if TYPE_CHECKING:
    from tests.model.histories.machine import Machine

_ANNOTATIONS: tuple[dict[str, Any], ...] = ({}, {"source": None}, {"drift": "keep"}, {"orphans": "keep"})
_VERSIONS = (("v1",), ("v1", "v2"), ("v2",))
_HIDDEN: tuple[Fate | Reply, ...] = (FORBIDDEN, UNAUTHORIZED, NOT_SERVED, INTERNAL_ERROR, UNAVAILABLE, Fate.LOST)
_SPOILT: tuple[Fate | Reply, ...] = (Fate.LOST, Fate.SNAPPED, FORBIDDEN, UNAUTHORIZED, Reply(503, {}))


class Operators:
    """Whoever runs the robot and the clusters. Each public method is a step (`history`)."""

    def __init__(self, machine: "Machine") -> None:
        self._machine = machine
        self._world = machine.world
        self._edits: dict[tuple[Side, str], dict[str, Any]] = {}
        self._store: Disk | None = None
        """A backup of the state directory, as long as nothing has happened that must not be forgotten."""
        self._releases = 0
        """How often everything was released."""
        self.replaced: set[str] = set()
        """Kinds whose CRDs were deleted, or served in other versions only."""
        self.gone_from_robot: set[str] = set()
        """Kinds whose CRDs somebody has deleted on the robot."""

    # Commands

    def hold(self, kind: str) -> None:
        """A human holds back every deletion of a kind."""
        if not self._world.disk.refuses:
            given = self._releases
            self._order({"command": "hold", "resource": kind}, then=lambda: self._held(f"{kind}.{GROUP}", given))

    def _held(self, resource: str, given: int) -> None:
        """The hold, given after so many releases, is answered. It promises nothing if it was released meanwhile."""
        if given == self._releases:
            self._machine.promises.manual.add(resource)
        self._store = None

    def release(self) -> None:
        """A human lets everything go on, and accepts clusters that are not those of before."""
        life = self._world.life
        if life is None:
            return
        self._releases += 1
        for side in Side:
            self._order({"command": "release", "id": str(side)})
        for group in life.engine.holds.groups():
            self._machine.checker.released.add(group.resource)
            if group.reason == "Manual":
                self._machine.promises.manual.discard(group.resource)
            self._order({"command": "release", "id": group.id})

    def resync(self, kind: str) -> None:
        """A human has a kind listed and compared anew."""
        self._order({"command": "resync", "resource": kind})

    def retry(self, kind: str) -> None:
        """A human has what was refused tried again."""
        self._order({"command": "retry", "resource": kind})

    def drop(self, kind: str, name: str) -> None:
        """A human gives up a status that upstream refuses."""
        spec, checker = self._machine.spec_of(kind), self._machine.checker
        copy = self._world.planes[spec.downstream].objects(kind).get(name)

        def dropped(uid: str) -> None:
            checker.stories[uid].rivalled = True
            self._machine.promises.forgive(uid)

        if copy is not None:
            order = {"command": "drop", "resource": kind, "name": name, "confirmed": True}
            self._order(order, then=lambda: dropped(stamp(copy)))

    def _order(self, request: Json, *, then: Callable[[], None] = lambda: None) -> None:
        """Have the agent carry an order out, and do something as soon as it has: the answer may take its time."""
        life = self._world.life
        if life is None:
            return
        self._world.judge.ordered(request["command"])

        async def ask() -> None:
            with contextlib.suppress(SyncError):
                await life.commands.answer(request)
                then()

        life.begin(ask())
        self._world.pass_time(1.0)

    # CRDs

    def annotate(self, kind: str, which: int) -> None:
        """Somebody edits the annotations of the robot's CRD, which stops the kind or starts it over."""
        self._edit(Side.ROBOT, kind, {"source": KINDS[kind].get("source", "cloud"), **_ANNOTATIONS[which]})

    def filter(self, kind: str, on: int) -> None:
        """Somebody has a kind filtered, or not any more: one of which every object bears the robot's label."""
        if kind == "flips":
            self._edit(Side.ROBOT, kind, {"filtered": "true" if on else "false"})

    def describe(self, kind: str, side: str, number: int) -> None:
        """Somebody edits a schema: nothing that concerns us, but watches end."""
        any_object = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        self._edit(Side(side), kind, {"schema": {**any_object, "description": str(number)}})

    def version(self, kind: str, side: str, which: int) -> None:
        """Somebody changes the versions that a side serves."""
        self._edit(Side(side), kind, {"versions": _VERSIONS[which], "storage": _VERSIONS[which][-1]})
        if which == 2:
            self.replaced.add(f"{kind}.{GROUP}")

    def delete_kind(self, kind: str, side: str, at_once: int) -> None:
        """Somebody deletes a CRD; its objects go with it, `at_once` or when somebody puts it back."""
        spec, checker = self._machine.spec_of(kind), self._machine.checker
        plane = self._machine.plane(Side(side), spec)
        if plane is None or not self.may_forget():
            return
        plane.delete_kind(kind)
        if Side(side) is Side.ROBOT:
            self.gone_from_robot.add(f"{kind}.{GROUP}")
        if Side(side) is spec.upstream:
            resource = f"{kind}.{GROUP}"
            self.replaced.add(resource)
            checker.noticed_kind.pop(resource, None)
            if self._world.disk.commit_seconds < 1.0:  # else what was released may only be carried out now
                checker.released.discard(resource)
        if at_once:
            plane.sweep(kind)

    def define_kind(self, kind: str, side: str) -> None:
        """Somebody puts a CRD back."""
        plane = self._world.planes[Side(side)]
        if not any(k.plural == kind and not k.dying for k in plane.server.kinds()):
            self._world.pass_time(10.0)  # nobody is so quick that it might as well never have been gone
        while not plane.sweep(kind):
            for name in plane.objects(kind):
                plane.finalize(name, kind=kind)
        plane.apply(crd(GROUP, plural=kind, **KINDS[kind]))

    def _edit(self, side: Side, kind: str, change: dict[str, Any]) -> None:
        plane = self._world.planes[side]
        found = plane.server.storage.of(CRDS).get(("", f"{kind}.{GROUP}"))
        if found is None or "deletionTimestamp" in found["metadata"]:
            return
        keywords = self._edits.setdefault((side, kind), dict(KINDS[kind]))
        keywords.update(change)
        plane.apply(crd(GROUP, plural=kind, **keywords))

    def undo_edits(self) -> None:
        """Every CRD is as it was in the beginning."""
        self._edits.clear()
        for side in Side:
            for kind in self._world.kinds:
                self._edit(side, kind, {})

    # The state directory

    def back_up_store(self) -> None:
        """A backup of the state directory is made."""
        self._store = self._world.disk.copied()

    def put_back_store(self) -> None:
        """The agent is killed, and its state directory is an older one when it starts again."""
        if self._store is None:
            return
        self._world.crash()
        self._world.put_back(self._store)
        self._machine.promises.manual.clear()
        self._machine.promises.forgive()
        self._machine.forget_clusters()
        self._machine.environment.start()

    def refuse_disk(self, on: int) -> None:
        """The disk refuses, or takes everything again."""
        if self._world.life is not None or not on:
            self._world.disk.refuses = bool(on)

    def may_forget(self) -> bool:
        """Something is about to happen that an older store knows nothing of; False: the present one could not either.

        A cluster that goes back while nobody can remember where it was is not noticed: that is no defect.
        """
        self._store = None
        return not self._world.disk.refuses

    # Many at once

    def crowd(self, kind: str, count: int) -> None:
        """Somebody creates many objects."""
        for number in range(count):
            self._machine.create(kind, f"g{number:02}", number, 1)

    def clear_out(self, kind: str, spoilt: int, times: int) -> None:
        """Somebody deletes many objects, and what verifies that is lost or refused a few times."""
        spec = self._machine.spec_of(kind)
        part, verb = (("", "get"), ("", "discover"), (f"/{kind}", "list"), (f"/{kind}", "list"))[spoilt % 4]
        if times:
            fate = _SPOILT[spoilt % len(_SPOILT)]
            self._world.inject(str(spec.upstream), fate, verb=verb, part=f"{GROUP}{'/v1' * bool(part)}", times=times)
        for name in list(self._world.planes[spec.upstream].objects(kind)):
            if name.startswith("g"):
                self._machine.remove(kind, name)

    def hide_kinds(self, side: str, which: int, seconds: float) -> None:
        """Discovery, or the CRDs, are refused for a while, or hidden by a gateway."""
        verb, part = (("discover", GROUP), ("get", CRDS.partition(".")[0]))[which % 2]
        fate = _HIDDEN[which // 2 % len(_HIDDEN)]
        self._world.inject(side, fate, verb=verb, part=part, times=math.inf, seconds=seconds)
        if fate is NOT_SERVED:
            self.replaced |= {f"{kind}.{GROUP}" for kind in self._world.kinds}

    def refuse_for_good(self, side: str, verb: int) -> None:
        """A schema, or an admission controller, refuses the next write."""
        self._world.inject(side, invalid(), verb=("create", "update", "patch")[verb], part=f"/{GROUP}/")
