"""Objects in Shared mode, as an agent meets them: marked ones in the cloud, and the statuses of its own (F10.3)."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import yaml

from crsyncer.cli.fleet.fleet_crds import SCHEMAS
from crsyncer.core.content.annotations import SHARED
from crsyncer.core.content.object_content import digest
from crsyncer.core.model import Json
from tests.model.scenes.statuses import sent
from tests.model.simulation.check import Checker, specs
from tests.model.simulation.journal import Request
from tests.model.simulation.life import ROBOT
from tests.model.simulation.plane import GROUP
from tests.model.simulation.scene import original
from tests.model.simulation.shared_judge import OWN_STATUSES
from tests.model.simulation.world import World

PART = "/robotobjectstatuses"
PLACEMENT = "11111111-2222-3333-4444-555555555555"


def crd_of_statuses() -> Json:
    """The CRD of RobotObjectStatus."""
    found: Json = yaml.safe_load((SCHEMAS / "robotobjectstatuses.yaml").read_text())
    return found


def mark(world: World, name: str = "a", *, marked: bool = True) -> None:
    """The controller begins, or ends, to govern an object in Shared mode."""
    world.cloud.annotate(name, {SHARED: PLACEMENT if marked else None})


def own_name(
    name: str = "a", robot: str = ROBOT, *, resource: str = f"goals.{GROUP}", namespace: str = "default"
) -> str:
    """What the robot's own object is called."""
    return f"{digest([resource, namespace, name])}-{robot}"


def own_statuses(world: World, namespace: str = "default") -> dict[str, Json]:
    """The objects with statuses in the cloud, of whichever robot, by name."""
    found = world.cloud.server.storage.of(OWN_STATUSES)
    return {name: raw for (place, name), raw in found.items() if place == namespace}


def own_status(world: World, name: str = "a", robot: str = ROBOT, *, namespace: str = "default") -> Json | None:
    """The robot's own object."""
    return own_statuses(world, namespace).get(own_name(name, robot))


def returned(world: World, name: str = "a", robot: str = ROBOT) -> Any:
    """The status that it has; None: there is none."""
    found = own_status(world, name, robot)
    return None if found is None else found["spec"].get("returned")


def asked(world: World, *, verb: str = "", since: float = 0.0) -> list[Request]:
    """The requests about the robot's own objects."""
    return world.journal.asked("cloud", verb=verb, part=PART, since=since)


@contextmanager
def sharing(*, served: bool = True, marked: bool = True, **goals: Any) -> Iterator[World]:
    """The agent runs, and has made the copy of a marked object."""
    with World(kinds={"goals": goals}) as world:
        checker = Checker(world, specs(world.kinds))
        if served:
            world.cloud.apply(crd_of_statuses())
        world.cloud.create("a", spec={"x": 1})
        if marked:
            mark(world)
        world.start()
        world.settle()
        yield world
        assert checker.violations + world.troubles == []


def is_untouched(world: World) -> bool:
    """Whether no status was written to upstream's object."""
    return "status" not in original(world) and sent(world) == []
