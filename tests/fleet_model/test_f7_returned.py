"""What the controller makes of the statuses that robots return, on virtual time (F6.2, F7)."""

from itertools import pairwise
from typing import Any

import pytest

from crsyncer.core.model import Json
from crsyncer.fleet.controllers import placements
from crsyncer.fleet.domain.returned.combined_objects import CombinedObjects
from tests.fleet_model.controlling import fleet
from tests.fleet_model.fleet_world import FleetWorld
from tests.fleet_model.world_parts import PLACEMENTS
from tests.model.simulation.answers import FORBIDDEN, INTERNAL_ERROR
from tests.model.simulation.plane import GROUP

FLEET = "fleet.crsyncer.cloudrobotics.com"
COLLECTORS, COMBINED = f"statuscollectors.{FLEET}", f"combinedstatuses.{FLEET}"
GOALS = f"goals.{GROUP}"
READY = "returned.status.phase == 'Ready'"
PHASES: Json = {
    "select": [{"name": "robot", "def": "inventory.name"}, {"name": "phase", "def": "returned.status.phase"}],
    "limit": 20,
}
COUNT: Json = {"combinedFields": [{"name": "n", "type": "COUNT"}], "filter": READY, "limit": 20}


def returns(world: FleetWorld, robot: str, phase: str, *, name: str = "dock") -> None:
    """A robot reports a status, as its agent brings it up."""
    world.cloud.set_status(name, {"phase": phase}, namespace=f"robot-{robot}")


def states(world: FleetWorld) -> dict[str, str]:
    """The robots of the placement that are ready, and the others."""
    return dict(sorted(world.decided().items()))


def collector(world: FleetWorld, name: str = "c", **spec: Any) -> None:
    world.cloud.create(name, kind=COLLECTORS, spec=spec or PHASES)


def rows(world: FleetWorld, place: int = 0) -> list[list[Any]]:
    """What one collector shows of the only source."""
    (found,) = world.stored(COMBINED).values()
    return [[cell.get("value") for cell in row] for row in found["results"][place]["rows"]]


def source_status(world: FleetWorld, name: str = "dock") -> Any:
    return (world.cloud.get(name) or {}).get("status")


def listed(world: FleetWorld, name: str = "p") -> list[str]:
    return [each["source"] for each in world.status(name).get("singletons") or []]


def test_F7_1_an_unreported_robot_is_ready_while_ready_when_holds():
    with fleet(robots=2) as world:
        world.edit(readyWhen=READY)
        returns(world, "r1", "Ready")
        returns(world, "r2", "Driving")
        world.settle()
        assert states(world) == {"r1": "Ready", "r2": "Stamped"}
        returns(world, "r2", "Ready")
        returns(world, "r1", "Driving")
        world.settle()
        assert states(world) == {"r1": "Stamped", "r2": "Ready"}
        world.edit(readyWhen="returned.status.phase == 'Driving'")
        world.settle()
        assert states(world) == {"r1": "Ready", "r2": "Stamped"}


def test_F7_1_a_bad_expression_is_a_condition_and_replicas_go_on():
    with fleet(robots=1) as world:
        world.edit(readyWhen="returned.")
        world.settle()
        assert world.condition("Resolved") == ("False", "BadExpression")
        world.cloud.set("dock", spec={"x": 2})
        world.agree()
        world.edit(readyWhen=READY)
        world.settle()
        assert world.condition("Resolved") == ("True", "Resolved")


def test_F7_2_F7_3_statuses_are_combined_beside_the_placement_and_a_restart_writes_nothing():
    with fleet(robots=3) as world:
        collector(world)
        collector(world, "d", **COUNT)
        world.edit(statusCollectors=["c", "d"])
        returns(world, "r1", "Ready")
        returns(world, "r3", "Ready")
        world.settle()
        assert rows(world) == [["r1", "Ready"], ["r2", 'Key not found in map : "phase"'], ["r3", "Ready"]]
        assert rows(world, 1) == [["2"]]
        assert world.condition("Collected") == ("True", "Collected")
        world.kill()
        began = world.clock.now
        world.start("b")
        world.settle()
        assert world.written(began) == []
        returns(world, "r2", "Ready")
        world.settle()
        assert rows(world, 1) == [["3"]]
        world.unplace()
        world.settle()
        assert world.stored(COMBINED) == {}


def test_F6_3_S8_what_the_controller_wrote_itself_is_written_again_after_a_restore():
    with fleet(robots=2) as world:
        collector(world)
        world.edit(statusCollectors=["c"])
        world.settle()
        world.robots("r3")
        returns(world, "r1", "Ready")
        backup = world.cloud.snapshot()  # nothing was made of either yet
        world.settle()
        expected = [["r1", "Ready"], *([robot, 'Key not found in map : "phase"'] for robot in ("r2", "r3"))]
        assert (sorted(world.decided()), rows(world)) == (["r1", "r2", "r3"], expected)
        world.cloud.restore(backup)
        world.judge.rewound()
        world.agree()
        assert (sorted(world.decided()), rows(world)) == (["r1", "r2", "r3"], expected)


def test_F6_3_a_combined_status_is_written_at_most_every_five_seconds():
    with fleet(robots=2) as world:
        collector(world)
        world.edit(statusCollectors=["c"])
        world.settle()
        began = world.clock.now
        for number in range(60):
            returns(world, "r1", f"phase-{number}")
            world.pass_time(0.5)
        written = world.written(began, resource=COMBINED)
        assert 5 <= len(written) <= 8
        gaps = [later.time - earlier.time for earlier, later in pairwise(written)]
        assert min(gaps) >= 4.9
        world.settle()
        assert rows(world) == [["r1", "phase-59"], ["r2", 'Key not found in map : "phase"']]


def counted(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> list[None]:
    """An item for each call from now on."""
    calls, function = list[None](), getattr(owner, name)

    def call(*arguments: Any, **options: Any) -> Any:
        calls.append(None)
        return function(*arguments, **options)

    monkeypatch.setattr(owner, name, call)
    return calls


def test_F6_3_what_every_robot_says_is_asked_at_most_every_five_seconds(monkeypatch):
    with fleet(robots=2) as world:
        collector(world)
        world.edit(statusCollectors=["c"], readyWhen="returned.status.phase != ''")
        world.settle()
        plans, statuses = (
            counted(monkeypatch, *each) for each in ((CombinedObjects, "plan"), (placements, "placement_status"))
        )
        for number in range(150):
            returns(world, "r1", ("Ready", "")[number % 2])
            world.pass_time(0.2)
        assert 5 <= len(plans) <= 8
        assert 5 <= len(statuses) <= 8


def test_F7_4_missing_and_bad_collectors_are_told():
    with fleet(robots=1) as world:
        world.edit(statusCollectors=["c", "d"])
        world.settle()
        assert world.condition("Collected") == ("False", "CollectorMissing")
        collector(world, "c", select=[{"name": "x", "def": "nobody"}])
        collector(world, "d", **COUNT)
        returns(world, "r1", "Ready")
        world.settle()
        assert world.condition("Collected") == ("False", "BadExpression")
        assert "undeclared reference to 'nobody'" in world.cloud.get("c", kind=COLLECTORS)["status"]["errors"][0]  # type: ignore[index]
        assert rows(world) == [["1"]]
        world.cloud.set("c", kind=COLLECTORS, spec=PHASES)
        world.settle()
        assert world.condition("Collected") == ("True", "Collected")
        assert world.cloud.get("c", kind=COLLECTORS)["status"]["errors"] == []  # type: ignore[index]
        assert rows(world) == [["r1", "Ready"]]


def test_F6_2_a_singleton_is_set_and_cleared_also_after_downtime():
    with fleet(robots=1) as world:
        world.edit(statusReturn="Singleton")
        returns(world, "r1", "Ready")
        world.settle()
        assert (source_status(world), listed(world)) == ({"phase": "Ready"}, [f"{GOALS}/dock"])
        world.kill()
        world.robots("r2")
        began = world.clock.now
        world.start("b")
        world.settle()
        assert (source_status(world), listed(world)) == (None, [])
        world.kill("b")
        assert [each.resource for each in world.written(began, resource=GOALS) if each.name == "dock"] != []


@pytest.mark.parametrize("fault", [INTERNAL_ERROR, FORBIDDEN])
def test_F6_2_a_singleton_is_listed_before_it_is_written(fault):
    with fleet(robots=1) as world:
        world.inject(fault, part="robotplacements", verb="patch", times=99, seconds=30)
        world.edit(statusReturn="Singleton")
        returns(world, "r1", "Ready")
        world.pass_time(25)
        assert source_status(world) is None
        world.pass_time(300)
        world.settle()
        assert (source_status(world), listed(world)) == ({"phase": "Ready"}, [f"{GOALS}/dock"])


def test_F5_3_a_placement_that_is_deleted_takes_its_singletons_with_it():
    with fleet(robots=1) as world:
        world.edit(statusReturn="Singleton")
        returns(world, "r1", "Ready")
        world.settle()
        assert source_status(world) == {"phase": "Ready"}
        world.unplace()
        world.settle()
        assert world.stored(PLACEMENTS) == {}
        assert source_status(world) is None


def test_F5_3_the_finalizer_waits_while_a_singleton_cannot_be_cleared():
    with fleet(robots=1) as world:
        world.edit(statusReturn="Singleton")
        returns(world, "r1", "Ready")
        world.settle()
        world.inject(INTERNAL_ERROR, verb="patch", part="/default/goals/dock/status", times=1000, seconds=60)
        world.unplace()
        world.pass_time(55)
        assert len(world.stored(PLACEMENTS)) == 1
        world.pass_time(120)
        world.settle()
        assert (world.stored(PLACEMENTS), source_status(world)) == ({}, None)


def test_F6_2_a_refused_status_is_a_fault_of_its_placement():
    with fleet(robots=1, kinds={"goals": {"status": False}}) as world:
        world.edit(statusReturn="Singleton")
        world.settle()
        (error,) = world.status()["errors"]
        assert (error["source"], error["reason"]) == ("default/dock", "Refused")
        assert error["message"] == f"{GOALS} has no status subresource"
