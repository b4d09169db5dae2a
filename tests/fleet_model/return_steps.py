"""Steps of histories about returned statuses: robots return them, and people write what collects them (F6.2, F7)."""

from typing import TYPE_CHECKING

from tests.fleet_model.oracle import FLEET
from tests.fleet_model.returned_judge import COLLECTORS

if TYPE_CHECKING:
    from tests.fleet_model.fleet_machine import FleetMachine

PHASES = ("Ready", "Ready", "Driving")
_KIND = f"statuscollectors.{FLEET}"


def return_status(machine: "FleetMachine", kind: str, which: int, phase: str) -> None:
    """The agent of a robot brings a status up; with an empty phase it says nothing of it."""
    if (place := machine.replica(kind, which)) is not None:
        status = {"phase": phase, "n": which} if phase else {"n": which}
        machine.world.cloud.set_status(place[1], status, kind=kind, namespace=place[0])


def return_all(machine: "FleetMachine", phase: str) -> None:
    """All agents do."""
    for which in range(machine.count("goals")):
        return_status(machine, "goals", which, phase)


def collect(machine: "FleetMachine", name: str) -> None:
    """Somebody makes a StatusCollector."""
    if machine.served(_KIND) and name not in machine.world.cloud.objects(_KIND):
        machine.world.cloud.create(name, kind=_KIND, spec={**COLLECTORS[name], "limit": 20})


def uncollect(machine: "FleetMachine", name: str) -> None:
    """Somebody deletes it."""
    if machine.served(_KIND) and name in machine.world.cloud.objects(_KIND):
        machine.world.cloud.delete(name, kind=_KIND)
