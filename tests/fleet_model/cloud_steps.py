"""Steps of histories that befall the cloud itself: its kinds are deleted and made anew, and it goes back in time."""

from typing import TYPE_CHECKING

from tests.fleet_model.oracle import CRDS, FLEET
from tests.fleet_model.world_parts import DECISIONS, INVENTORY_KIND, PLACEMENTS, STRIPS
from tests.model.simulation.plane import GROUP

if TYPE_CHECKING:
    from tests.fleet_model.fleet_machine import FleetMachine

OWN = (
    *(PLACEMENTS, DECISIONS, STRIPS, INVENTORY_KIND),
    *(f"{plural}.{FLEET}" for plural in ("robotsyncstates", "statuscollectors", "combinedstatuses")),
)
"""The kinds of the fleet that somebody may delete."""
_MARK = "cr-syncer.cloudrobotics.com/spec-source"
_UNMARKED = ("goals", "plans")


def delete_kind(machine: "FleetMachine", kind: str) -> None:
    """Somebody deletes a CRD, and all its objects go."""
    if machine.served(kind):
        world, before = machine.world, machine.world.judge.moment()
        world.cloud.delete_kind(kind)
        world.pass_time(0.3)
        _sweep(machine, kind)
        world.judge.lost(before, f"it was lost with the CRD of {kind}")


def define_kinds(machine: "FleetMachine", *, by_force: bool = False) -> None:
    """The CRDs that were deleted are applied again. `by_force`: finalizers keep none of the former objects."""
    world = machine.world
    for kind, definition in machine.definitions.items():
        before = world.judge.moment()
        if by_force and kind == PLACEMENTS and _is_there(machine, kind) and not machine.served(kind):
            for namespace, name in world.stored(kind):
                world.cloud.finalize(name, kind=kind, namespace=namespace)
                machine.has_lost_placements = True
        _sweep(machine, kind)
        if not _is_there(machine, kind):
            world.serve(definition)
        world.judge.lost(before, f"it was lost with the CRD of {kind}")


def unmark_kind(machine: "FleetMachine", kind: str) -> None:
    """A CRD says that it is not to be placed."""
    _mark(machine, kind, "robot")


def mark_kinds(machine: "FleetMachine") -> None:
    """All CRDs say again that they may be placed."""
    for kind in _UNMARKED:
        _mark(machine, kind, "cloud")


def delete_namespace(machine: "FleetMachine", robot: str) -> None:
    """Somebody deletes the namespace of a robot: all in it goes, what finalizers keep later."""
    name = f"robot-{robot}"
    if ("", name) in machine.world.stored("namespaces") and name not in dying_namespaces(machine):
        machine.world.cloud.delete_namespace(name)


def sweep_namespaces(machine: "FleetMachine") -> None:
    """The deletion of namespaces is carried on."""
    for name in dying_namespaces(machine):
        machine.world.cloud.sweep_namespace(name)


def dying_namespaces(machine: "FleetMachine") -> list[str]:
    """The namespaces that are being deleted."""
    found = machine.world.stored("namespaces").items()
    return [name for (_, name), raw in found if "deletionTimestamp" in raw["metadata"]]


def back_up(machine: "FleetMachine") -> None:
    """Somebody makes a backup of the cloud's etcd."""
    machine.backup = machine.world.cloud.snapshot()


def restore(machine: "FleetMachine", overtaken_by: int) -> None:
    """The cloud goes back to the backup; with `overtaken_by`, others have written so much since that it is ahead."""
    if machine.backup is not None:
        world, before = machine.world, machine.world.judge.moment()
        world.cloud.restore(machine.backup, overtaken_by=overtaken_by)
        world.judge.rewound()
        world.judge.lost(before, "the cloud was restored", is_restored=True)


def _mark(machine: "FleetMachine", kind: str, source: str) -> None:
    found = machine.world.stored(CRDS).get(("", f"{kind}.{GROUP}"))
    if machine.served(kind) and found is not None and found["metadata"]["annotations"][_MARK] != source:
        machine.world.cloud.annotate_kind({_MARK: source}, kind=kind)
        machine.world.establish(kind)


def _is_there(machine: "FleetMachine", kind: str) -> bool:
    resource = kind if "." in kind else f"{kind}.{GROUP}"
    return any(each.resource == resource for each in machine.world.server.kinds())


def _sweep(machine: "FleetMachine", kind: str) -> None:
    plural, _, group = kind.partition(".")
    machine.world.cloud.sweep(plural, group=group or GROUP)
