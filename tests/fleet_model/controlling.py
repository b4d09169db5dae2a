"""The real controller in the simulated world."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from crsyncer.adapters.expressions import Expressions
from crsyncer.fleet.controllers.controller import FleetController
from crsyncer.fleet.controllers.state import ControllerSettings
from tests.fleet_model.fleet_world import FleetWorld
from tests.fleet_model.leading import Meta
from tests.fleet_model.process import Process
from tests.fleet_model.world_parts import HOME, INVENTORY_KIND

SETTINGS = ControllerSettings(
    namespace=HOME,
    robots=INVENTORY_KIND,
    robots_namespace="default",
    watch_timeout=300,
    expressions=Expressions,
)


class Counted:
    """Counts what happened (state.FleetObserver)."""

    def __init__(self) -> None:
        self.relists: Counter[tuple[str, str]] = Counter()
        self.writes: Counter[tuple[str, str, str]] = Counter()

    def relist(self, connection: str, resource: str, reason: str) -> None:  # noqa: ARG002
        """A full list was started."""
        self.relists[resource, reason] += 1

    def resume(self, connection: str, resource: str) -> None:
        """Not counted."""

    def event(self, connection: str, resource: str, event_type: str) -> None:
        """Not counted."""

    def reconnect(self, connection: str, reason: str) -> None:
        """Not counted."""

    def write(self, resource: str, verb: str, result: str) -> None:
        """A write was answered."""
        self.writes[resource, verb, result] += 1


async def control(process: Process) -> None:
    """Run the controller; SIGTERM gives the Lease back."""
    observer = Counted()
    controller = FleetController(
        process.cluster,
        settings=SETTINGS,
        store=Meta(),
        observer=observer,
        clock=process.clock,
        identity=process.identity,
    )
    process.leads = lambda: controller.leader.leads
    process.parts |= {"controller": controller, "observer": observer}
    try:
        await controller.run()
    finally:
        await controller.release()


@contextmanager
def fleet(seed: int = 0, *, robots: int = 3, start: bool = True, **given: Any) -> Iterator[FleetWorld]:
    """A world with Robots r1 to rN, the source dock, the placement p of all goals for all, and a controller a."""
    with FleetWorld(control, seed, **given) as world:
        world.robots(*(f"r{number}" for number in range(1, robots + 1)))
        world.source("dock")
        world.place("p")
        if start:
            world.start("a")
            world.agree()
        yield world
