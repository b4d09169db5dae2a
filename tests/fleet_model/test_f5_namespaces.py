"""A robot's namespace is deleted while the controller runs, and made anew: nothing else stops (F5.5, section 7)."""

import pytest

from crsyncer.core.model import Json
from tests.fleet_model.asking import Asked
from tests.fleet_model.controlling import fleet
from tests.fleet_model.fleet_world import FleetWorld
from tests.fleet_model.rolling import rolling
from tests.fleet_model.world_parts import PLACEMENTS
from tests.model.simulation.answers import failure

NEW = {"x": 2}
MISSING = failure(404, "NotFound", 'namespaces "robot-r7" not found')
ROLLOUT = {"readyWhen": "true", "rollout": {"maxConcurrency": "100%"}}


def creates(world: FleetWorld, since: float, name: str = "r2") -> int:
    """How many requests there were for something new in a robot's namespace, whatever came of them."""
    found = (each for each in world.writes if each.verb == "create" and each.time >= since)
    return sum(f"/robot-{name}/" in each.call.path for each in found)


@pytest.mark.parametrize("spec", [{}, ROLLOUT], ids=["at once", "rollout"])
def test_F5_5_a_robots_namespace_that_is_being_deleted_stops_nothing_else_and_is_told(spec: Json) -> None:
    with fleet(robots=3) as world:
        world.source("lift")
        world.edit(**spec)
        world.agree()
        began = world.clock.now
        world.cloud.finalize("lift", "lab/waits", namespace="robot-r2")
        world.cloud.delete_namespace("robot-r2")
        assert not world.cloud.sweep_namespace("robot-r2")
        world.pass_time(20)
        world.cloud.set("dock", spec=NEW)
        world.pass_time(600)
        assert [world.specs()[f"robot-{robot}/dock"] for robot in ("r1", "r3")] == [NEW, NEW]
        assert creates(world, began) <= 6 + 20
        assert (world.status()["counts"]["blocked"], world.status()["counts"]["selected"]) == (1, 3)
        [error] = world.status()["errors"]
        assert (error["robot"], error["source"], error["reason"]) == ("r2", "default/dock", "Refused")
        assert "because it is being terminated" in error["message"]
        assert "manifests" not in error["message"]
        assert [each["code"] for each in Asked(world).status()["reasons"]] == ["RobotsBlocked"]
        world.cloud.finalize("lift", namespace="robot-r2")
        assert world.cloud.sweep_namespace("robot-r2")
        world.pass_time(70)
        assert [world.specs()[f"robot-{robot}/dock"] for robot in ("r1", "r2", "r3")] == [NEW, NEW, NEW]
        assert "robot-r2/lift" in world.specs()
        world.agree()
        assert world.status()["errors"] == []
        assert Asked(world).status()["reasons"] == []


def test_F5_5_a_robots_namespace_that_somebody_makes_anew_gets_its_replicas() -> None:
    with fleet(robots=3) as world:
        for _ in range(3):
            world.cloud.delete_namespace("robot-r2")
            world.pass_time(3)
            assert world.cloud.sweep_namespace("robot-r2")
            world.cloud.make_namespace("robot-r2")
            world.pass_time(70)
            assert len(world.specs()) == 3
        world.agree()


@pytest.mark.parametrize("is_begun", [False, True])
def test_F8_1_a_rollout_goes_on_without_the_robot_whose_namespace_is_being_deleted_and_with_it_later(
    is_begun: bool,
) -> None:
    with rolling(4, delay=5.0, maxFailures=1) as fleet:
        world = fleet.world
        if is_begun:
            fleet.change(2, seconds=3.0)
        world.cloud.finalize("dock", "lab/waits", namespace="robot-o2")
        world.cloud.delete_namespace("robot-o2")
        assert not world.cloud.sweep_namespace("robot-o2")
        world.pass_time(10)
        fleet.change(3)
        fleet.settle()
        assert fleet.with_content(3) >= {"o1", "o3", "o4"}
        assert {fleet.states()[robot] for robot in ("o1", "o3", "o4")} == {"Ready"}
        assert fleet.states()["o2"] != "Ready"
        world.cloud.finalize("dock", namespace="robot-o2")
        assert world.cloud.sweep_namespace("robot-o2")
        fleet.settle()
        assert fleet.with_content(3) == {"o1", "o2", "o3", "o4"}
        assert set(fleet.states().values()) == {"Ready"}


def test_F5_3_a_placement_goes_whose_robots_namespaces_are_being_deleted() -> None:
    with fleet(robots=2) as world:
        world.cloud.finalize("dock", "lab/waits", namespace="robot-r1")
        world.cloud.delete_namespace("robot-r1")
        assert not world.cloud.sweep_namespace("robot-r1")
        world.unplace()
        world.pass_time(60)
        assert world.stored(PLACEMENTS) == {}


def test_F5_3_a_placement_goes_whose_own_namespace_is_being_deleted() -> None:
    with fleet(robots=2, start=False) as world:
        world.server.make_namespace("site")
        world.source("hall", namespace="site")
        world.place("q", namespace="site", statusCollectors=["none"])
        world.start()
        world.agree()
        world.cloud.delete_namespace("site")
        world.cloud.sweep_namespace("site")
        for _ in range(20):
            world.pass_time(5)
            if ("", "site") in world.stored("namespaces"):
                world.cloud.sweep_namespace("site")
        assert ("", "site") not in world.stored("namespaces")
        assert [place for place in world.specs() if place.endswith("/hall")] == []


def test_F5_5_a_namespace_that_is_there_for_some_requests_and_not_for_others_is_asked_for_with_waits_that_grow() -> (
    None
):
    with fleet(robots=2) as world:
        missing = world.inject(MISSING, verb="create", part="/goals", times=1e6)
        world.robots("r7")
        world.pass_time(55)
        assert 4 <= missing.met <= 8
        missing.times = 0
        world.pass_time(65)
        assert "robot-r7/dock" in world.specs()
