"""A cloud with a fleet, as a robot's agent meets it: replicas for it, and the reports that it writes."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import yaml

from crsyncer.cli.fleet.fleet_crds import SCHEMAS
from crsyncer.core.content.annotations import ROBOT_LABEL
from crsyncer.core.content.replica_mark import REPLICA, SOURCE
from crsyncer.core.kinds.namespaces import Namespaces
from crsyncer.core.model import Json
from crsyncer.core.reports.robot_report import applied_digest
from tests.model.simulation.check import Checker, specs
from tests.model.simulation.journal import Request
from tests.model.simulation.life import ROBOT, AgentSettings
from tests.model.simulation.world import World

STATES = "robotsyncstates.fleet.crsyncer.cloudrobotics.com"
PART = "/fleet.crsyncer.cloudrobotics.com/"
PLACEMENT = "11111111-2222-3333-4444-555555555555"
REPORTING = AgentSettings(reports=True)
OWN = f"robot-{ROBOT}"
MAPPED = replace(REPORTING, namespaces=Namespaces((OWN,), ("default",)))
"""The robot's own namespace in the cloud is `default` on the robot."""
HOUR = 3600.0


def crd_of_reports() -> Json:
    """The CRD of RobotSyncState."""
    found: Json = yaml.safe_load((SCHEMAS / "robotsyncstates.yaml").read_text())
    return found


@contextmanager
def fleet(
    settings: AgentSettings = REPORTING,
    *,
    kinds: Mapping[str, Mapping[str, Any]] | None = None,
    served: bool = True,
    by_chance: bool = False,
) -> Iterator[World]:
    """A world whose cloud has a fleet, if it is `served`; the agent has not been started."""
    with World(settings=settings, kinds=kinds or {"goals": {"filtered": "true"}}, by_chance=by_chance) as world:
        checker = Checker(world, specs(world.kinds))
        if served:
            world.cloud.apply(crd_of_reports())
        yield world
        assert checker.violations + world.troubles == []


def marks(name: str, number: int, placement: str = PLACEMENT) -> dict[str, str]:
    """The annotation that the fleet controller puts on a replica."""
    content = {"stamp": "s", "n": number, "source": f"default/{name}", "placement": placement}
    return {REPLICA: json.dumps(content | {"labels": [], "annotations": []})}


def place(world: World, name: str, *, placement: str = PLACEMENT, number: int = 1, kind: str = "goals") -> str:
    """Create a replica beside its source, as the controller does; its uid."""
    made = world.cloud.create(
        f"{name}-{ROBOT}",
        kind=kind,
        spec={"x": number},
        labels={ROBOT_LABEL: ROBOT, SOURCE: "0" * 24},
        annotations=marks(name, number, placement),
    )
    return str(made["metadata"]["uid"])


def placed(world: World) -> str:
    """The agent runs, and has had half a minute for a first replica; its uid."""
    world.start()
    uid = place(world, "dock")
    world.pass_time(30)
    return uid


def rewrite(world: World, name: str, number: int, *, placement: str = PLACEMENT, **fields: Any) -> None:
    """Write a replica as the controller does: its content, if given, and its marks with one request."""
    found = world.cloud.get(f"{name}-{ROBOT}")
    assert found is not None
    metadata = found["metadata"] | {"annotations": marks(name, number, placement)}
    world.cloud.set(f"{name}-{ROBOT}", metadata=metadata, **fields)


def report(world: World, namespace: str = "default") -> Json | None:
    """The robot's report in the cloud."""
    found = world.cloud.server.storage.of(STATES)
    assert [key for key in found if key != (namespace, ROBOT)] == []
    return found.get((namespace, ROBOT))


def spec_of(world: World, namespace: str = "default") -> Json:
    """What is in it."""
    found = report(world, namespace)
    assert found is not None
    spec: Json = found["spec"]
    return spec


def acked(world: World, *replicas: tuple[str, int], placement: str = PLACEMENT) -> bool:
    """Whether the robot has acknowledged these replicas of a placement, by uid and number, and no others."""
    return bool(spec_of(world)["applied"].get(placement) == applied_digest(replicas))


def requests(world: World, *, verb: str = "", since: float = 0.0) -> list[Request]:
    """The requests about the fleet."""
    return world.journal.asked("cloud", verb=verb, part=PART, since=since)


def writes(world: World, since: float = 0.0) -> list[float]:
    """When the report was written."""
    return [write.time for write in world.writes if write.resource == STATES and write.time >= since]


def beats(world: World) -> list[int]:
    """The beat of each report that was stored, in order."""
    found = [write for write in world.writes if write.resource == STATES and write.status < 300 and write.after]
    return [write.after["spec"]["beat"] for write in found if write.after is not None]
