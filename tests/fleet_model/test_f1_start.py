"""A leader writes nothing before it has seen all, and nothing of what it cannot see (F1.1)."""

import pytest

from crsyncer.fleet.domain.shown.fleet_facts import leader_of
from crsyncer.ports import Reply
from tests.fleet_model.controlling import control, fleet
from tests.fleet_model.fleet_world import FleetWorld
from tests.fleet_model.world_parts import INVENTORY_KIND, placing
from tests.model.simulation.answers import FORBIDDEN
from tests.model.simulation.weather import Fate

INPUTS = {
    "robots": "/robots",
    "placements": "/robotplacements",
    "decisions": "/robotplacementdecisions",
    "strips": "/fieldstrips",
    "properties": "/namespaces/crsyncer-properties/configmaps",
}


@pytest.mark.parametrize("answer", [FORBIDDEN, Fate.LOST], ids=["403", "no answer"])
@pytest.mark.parametrize("part", INPUTS.values(), ids=INPUTS)
def test_F1_1_without_a_list_of_an_input_a_new_leader_writes_neither_replicas_nor_strips(
    part: str, answer: Reply | Fate
) -> None:
    with fleet() as world:
        world.kill("a")
        world.lose_robots("r3")
        world.cloud.set("dock", spec={"x": 2})
        world.source("lift")
        world.strip("s", "/spec/text")
        rule = world.inject(answer, part=part, times=1_000_000, seconds=150)
        world.start("a")
        began = world.clock.now
        world.pass_time(145)
        assert rule.met
        assert [*world.written(began, resource="goals"), *world.written(began, resource="fieldstrips")] == []
        assert leader_of(world.lease).unlisted
        world.agree()
        assert not leader_of(world.lease).unlisted
        assert world.specs()["robot-r1/dock"] == {"x": 2}


def test_F1_1_a_kind_that_cannot_be_listed_stops_no_other() -> None:
    with FleetWorld(control, kinds={"goals": {}, "plans": {}}) as world:
        world.robots("r1")
        world.source("dock")
        world.source("dock", kind="plans")
        world.place("p", **placing("goals", "plans"))
        world.inject(FORBIDDEN, part="/plans", times=1_000_000, seconds=200)
        world.start("a")
        world.pass_time(100)
        assert list(world.replicas()) == ["robot-r1/dock"]
        assert world.replicas("plans") == {}
        assert world.status()["conditions"]
        world.agree()
        assert list(world.replicas("plans")) == ["robot-r1/dock"]


def test_F1_1_leftovers_of_a_kind_that_no_placement_names_are_found() -> None:
    with fleet() as world:
        world.kill("a")
        world.edit("p", **placing("plans"))
        world.start("a")
        world.settle()
        # To a new leader all that is missing is a loss: the sources of the kind are still there.
        assert set(world.specs()) <= {"robot-r1/dock", "robot-r2/dock", "robot-r3/dock"}
        assert world.judge.disagreements() == []


def test_F1_1_no_failed_look_up_shrinks_a_selection() -> None:
    with fleet(robots=6) as world:
        world.inject(Reply(200, {"metadata": {"resourceVersion": "1"}, "items": None}), verb="list", part="/robots")
        world.cloud.others_write(5)
        world.cloud.restart()
        world.robots("r7")
        world.settle()
        deleted = [each for each in world.written() if each.verb == "delete"]
        assert deleted == []
        assert INVENTORY_KIND not in {each.resource for each in world.written()}


def test_F1_1_a_restart_writes_nothing() -> None:
    with fleet(robots=5) as world:
        world.kill("a")
        began = world.clock.now
        world.start("a")
        world.settle()
        assert [str(each) for each in world.written(began)] == []
