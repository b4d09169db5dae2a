"""Nothing is removed because something could not be seen: the whole table, on virtual time (F1.1, F5.2, S8)."""

import pytest

from crsyncer.core.model import Json
from crsyncer.ports import Reply
from tests.fleet_model.cloud_steps import OWN
from tests.fleet_model.controlling import control, fleet
from tests.fleet_model.fleet_world import FleetWorld
from tests.fleet_model.sharded import sharded
from tests.fleet_model.world_parts import INVENTORY_KIND, placing
from tests.model.simulation.answers import FORBIDDEN, INTERNAL_ERROR, NOT_SERVED
from tests.model.simulation.plane import GROUP
from tests.model.simulation.weather import Fate

INPUTS = {
    "Robots": "/robots",
    "placements": "/robotplacements",
    "Decisions": "/robotplacementdecisions",
    "strips": "/fieldstrips",
    "properties": "/namespaces/crsyncer-properties/configmaps",
    "sources": "/goals",
}
ANSWERS: dict[str, Reply | Fate] = {"403": FORBIDDEN, "404": NOT_SERVED, "500": INTERNAL_ERROR, "nothing": Fate.LOST}
EMPTY = Reply(200, {"metadata": {"resourceVersion": "99999"}, "items": []})


def removed(world: FleetWorld) -> list[str]:
    """The removals of replicas so far."""
    return [str(each) for each in world.written(resource=GROUP) if each.verb == "delete"]


@pytest.mark.parametrize("restart", [False, True], ids=["seen", "by a new leader"])
@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("name", INPUTS)
def test_F1_1_F5_2_what_cannot_be_listed_removes_nothing(name: str, answer: str, restart: bool) -> None:
    with fleet() as world:
        if restart:
            world.kill()
        for verb in ("list", "watch"):
            world.inject(ANSWERS[answer], verb=verb, part=INPUTS[name], times=1e6, seconds=200, standing=True)
        world.cloud.others_write(5)
        world.cloud.restart()
        if restart:
            world.start()
        world.source("lift")
        world.robots("r4")
        world.pass_time(190)
        assert removed(world) == []
        assert len(world.replicas()) >= 3
        world.agree()
        assert len(world.replicas()) == 8


@pytest.mark.parametrize("restart", [False, True], ids=["seen", "by a new leader"])
@pytest.mark.parametrize("name", INPUTS)
def test_F1_1_F5_2_an_empty_list_removes_nothing(name: str, restart: bool) -> None:
    with fleet() as world:
        if restart:
            world.kill()
        world.inject(EMPTY, verb="list", part=INPUTS[name])
        world.cloud.others_write(5)
        world.cloud.restart()
        if restart:
            world.start()
        world.pass_time(200)
        assert removed(world) == []
        assert len(world.replicas()) == 3


@pytest.mark.parametrize("kind", ["goals", *OWN])
def test_F5_2_a_crd_that_is_deleted_removes_nothing_of_what_stays(kind: str) -> None:
    with FleetWorld(control, kinds={"goals": {}, "plans": {}}) as world:
        world.robots("r1", "r2")
        world.source("dock")
        world.source("hall", kind="plans")
        world.place("p", **placing("goals", "plans"))
        world.start()
        world.agree()
        definition = world.definition(kind)
        plural, _, group = kind.partition(".")
        world.cloud.delete_kind(kind)
        world.pass_time(1)
        for _ in range(20):
            world.cloud.sweep(plural, group=group or GROUP)
            world.pass_time(10)
        world.kill()
        world.start()
        world.pass_time(100)
        assert len(world.replicas("plans")) == 2
        world.serve(definition)
        world.pass_time(60)
        assert len(world.replicas("plans")) == 2


@pytest.mark.parametrize("seconds", [0.0, 0.05, 0.5, 5.0, 50.0])
@pytest.mark.parametrize("dying", [0.0, 0.3])
def test_F5_2_what_robots_had_that_went_with_their_crd_is_held_however_soon_it_is_applied_again(
    dying: float, seconds: float
) -> None:
    with fleet(robots=2) as world:
        world.edit(robotSelectors=[], robotNames=["r1"])
        world.place("q", robotSelectors=[], robotNames=["r2"])
        world.agree()
        definition = world.definition(INVENTORY_KIND)
        world.cloud.delete_kind(INVENTORY_KIND)
        world.pass_time(dying)
        assert world.cloud.sweep("robots", group="registry.cloudrobotics.com")
        world.pass_time(seconds)
        world.serve(definition)
        world.robots("r2")
        world.pass_time(100)
        assert sorted(world.specs()) == ["robot-r1/dock", "robot-r2/dock"]
        assert world.holds() == {"KindNotServed": 1}
        world.robots("r1")
        world.pass_time(60)
        assert world.holds() == {}
        world.lose_robots("r1")
        world.pass_time(60)
        assert sorted(world.specs()) == ["robot-r2/dock"]


@pytest.mark.parametrize("overtaken_by", [-1, 3], ids=["behind", "overtaken"])
def test_F5_2_S8_a_cloud_that_went_back_in_time_removes_nothing(overtaken_by: int) -> None:
    with fleet(robots=4) as world:
        world.cloud.delete("dock")
        world.pass_time(1)
        backup = world.cloud.snapshot()  # the source is gone, and its replicas are still there
        world.agree()
        assert world.replicas() == {}
        world.source("dock")
        world.agree()
        world.cloud.restore(backup, overtaken_by=overtaken_by)
        world.judge.rewound()
        world.pass_time(300)
        assert len(world.replicas()) == 4
        assert world.holds() == {"Restored": 4}
        world.kill()
        world.start()
        world.pass_time(100)
        assert sum(world.holds().values()) == 4
        world.source("dock")
        world.agree()
        assert world.holds() == {}
        assert len(world.replicas()) == 4


@pytest.mark.parametrize("seed", [0, 2, 7])  # when discovery is asked, and so whether it shows the same, is by chance
@pytest.mark.parametrize("is_restarted", [False, True])
@pytest.mark.parametrize("spec", [{}, {"filtered": None, "mode": "Shared"}], ids=["Replica", "Shared"])
def test_F5_2_S5_5_what_the_roots_new_CRD_lacks_is_held_on_the_shards_also_by_a_new_leader(
    spec: Json, is_restarted: bool, seed: int
) -> None:
    with sharded(seed=seed, **spec) as fleet:
        for name in ("lift", "door"):
            fleet.world.source(name)
        fleet.agree()
        definition, before = fleet.world.definition("goals"), fleet["b"].specs()
        fleet.world.cloud.delete_kind()
        fleet.world.cloud.sweep()
        fleet.world.pass_time(60)
        assert fleet.world.condition("Resolved") == ("False", "NotServed")
        if is_restarted:
            fleet.world.kill()
            fleet.world.start()
            fleet.world.pass_time(120)
        fleet.world.serve(definition)
        for name in ("dock", "lift"):
            fleet.world.source(name)
        fleet.world.pass_time(300)
        assert fleet["b"].specs() == before
        assert fleet.world.holds() == {"KindNotServed": 2}
