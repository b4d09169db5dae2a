"""A kind from start to end: its tasks end with it, and only one generation of it runs at a time (S1.1, S1.8)."""

import gc

import pytest

from crsyncer.core.model import Side
from crsyncer.engine.kinds.kind import Kind
from tests.model.simulation.connection import Connection
from tests.model.simulation.plane import GROUP
from tests.model.simulation.scene import copy, define, scene, synced
from tests.model.simulation.weather import Fate
from tests.model.simulation.world import World
from tests.system.bed import crd


def watches(world: World) -> dict[Side, int]:
    """How many watches of goals are open on each side."""
    assert world.life is not None
    counts = {}
    for side, connection in world.life.engine.connections.items():
        cluster = connection.cluster
        assert isinstance(cluster, Connection)
        counts[side] = sum(count for path, count in cluster.watched.items() if path.endswith("/goals"))
    return counts


@pytest.mark.parametrize("fate", [Fate.LOST, Fate.SNAPPED])
def test_S1_1_a_kind_that_is_annotated_anew_while_a_list_is_awaited_goes_on(fate: Fate) -> None:
    for moment in (0.05, 0.3, 5.0):
        with synced() as world:
            world.add(*(f"g{number}" for number in range(24)))
            world.inject("cloud", fate, verb="list", part="/goals")
            for number in range(24):
                world.cloud.delete(f"g{number}")
            world.pass_time(moment)
            world.robot.apply(crd(GROUP, drift="keep"))
            world.add("b", seconds=200)
            assert set(world.robot.objects()) == {"a", "b"}, moment
            assert watches(world) == {Side.CLOUD: 1, Side.ROBOT: 1}


@pytest.mark.parametrize("again", [True, False])
def test_S1_1_a_kind_that_is_annotated_anew_while_it_renegotiates_runs_once(again: bool) -> None:
    for moment in range(0, 40, 5):
        with scene(goals={"versions": ("v1", "v2"), "storage": "v1"}) as world:
            world.cloud.apply(crd(GROUP))
            world.begin("a")
            world.weather[Side.CLOUD].closing = 0.5
            world.cloud.restart()
            world.cloud.apply(crd(GROUP, versions=("v2",)))  # the cursor has expired: a reason to negotiate anew
            world.pass_time(0.02 * moment)
            world.robot.apply(crd(GROUP, versions=("v1", "v2"), storage="v1", source=None))
            if again:
                world.pass_time(0.003)
                world.robot.apply(crd(GROUP, versions=("v1", "v2"), storage="v1", drift="keep"))
            world.pass_time(120)
            assert watches(world) == dict.fromkeys(Side, int(again)), moment
            assert [kind["state"] for kind in world.status()["kinds"]] == ["syncing"] * again, moment


def test_S1_8_a_kind_that_is_annotated_again_waits_until_its_old_generation_has_ended(world: World) -> None:
    world.weather[Side.CLOUD].closing = 0.5
    for _ in range(20):
        define(world, "robot", source=None, seconds=0.05)
        define(world, "robot", seconds=0.3)
        assert max(watches(world).values()) <= 1
    world.edit("a", spec={"x": 2})
    assert copy(world)["spec"] == {"x": 2}
    assert watches(world) == {Side.CLOUD: 1, Side.ROBOT: 1}


def test_S1_1_a_resync_keeps_nothing_of_a_kind_that_has_ended(world: World) -> None:
    for number in range(10):
        world.order("resync")
        world.pass_time(0.1)
        define(world, "robot", drift="keep" if number % 2 else "revert", seconds=20)
    gc.collect()
    assert sum(isinstance(each, Kind) for each in gc.get_objects()) == 1


def test_S1_1_a_resync_that_its_kind_has_not_lived_to_see_says_so(world: World) -> None:
    world.inject("cloud", Fate.LOST, verb="list", part="/goals")
    begun = world.order("resync")
    world.pass_time(0.1)
    define(world, "robot", drift="keep", seconds=10)
    answer = world.order("progress", resync=begun["resync"])
    assert [kind["state"] for kind in answer["kinds"]] == ["failed"]
    assert "was restarted" in answer["kinds"][0]["message"]
