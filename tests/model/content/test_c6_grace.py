"""C6.4 on virtual time: the deletion of an object is never stuck."""

import math

import pytest

from crsyncer.core.model import Side
from tests.model.scenes.blocking import LOCAL, MINE, block, blocking, codes, finalizer_rows, finalizers
from tests.model.simulation.answers import INTERNAL_ERROR
from tests.model.simulation.scene import SOURCES, restart, roles
from tests.model.simulation.world import World

BOTH = pytest.mark.parametrize("source", SOURCES)


def stuck(world: World, source: str = "cloud") -> None:
    """An object is deleted, and somebody's finalizer keeps its copy."""
    up, down = roles(world, source)
    world.begin("a", source=source)
    down.finalize("a", LOCAL)
    world.settle()
    up.delete("a")


@BOTH
def test_C6_4_the_finalizer_goes_when_the_grace_period_is_over_and_it_is_shown_until_the_copy_has_gone(
    source: str,
) -> None:
    with blocking(source=source, grace="10m") as world:
        up, down = roles(world, source)
        stuck(world, source)
        world.pass_time(590)
        assert (finalizers(up), "DeletionOverdue" in codes(world)) == ([MINE], False)
        world.pass_time(20)
        assert up.objects() == {}
        assert codes(world)["DeletionOverdue"].startswith("goals.lab.example.com: 1 copy is not deleted within")
        assert (world.status()["health"], finalizer_rows(world)) == ("degraded", [])
        restart(world, kill=True)
        world.pass_time(600)
        assert "DeletionOverdue" in codes(world)
        assert set(down.objects()) == {"a"}
        down.finalize("a")
        world.settle()
        assert (down.objects(), codes(world)) == ({}, {})


@pytest.mark.parametrize(("ahead", "gone"), [(0.0, False), (400.0, True), (-4000.0, False)])
def test_C6_4_the_grace_period_is_measured_by_the_servers_clock(ahead: float, gone: bool) -> None:
    with blocking(grace="10m") as world:
        world.weather[Side.CLOUD].clock_offset = ahead
        stuck(world)
        world.pass_time(300)
        assert (world.cloud.objects() == {}) is gone


@pytest.mark.parametrize("way", ["the cloud is away", "the agent is down", "a longer period"])
def test_C6_4_the_grace_period_goes_on_whatever_happens_meanwhile(way: str) -> None:
    with blocking(grace="10m") as world:
        stuck(world)
        world.pass_time(60)
        if way == "the agent is down":
            world.crash()
        elif way == "the cloud is away":
            world.cut("cloud")
        else:
            block(world, grace="20m")
        world.pass_time(700)
        assert finalizers(world.cloud) == [MINE]
        if way == "the agent is down":
            world.begin(seconds=30)
        elif way == "the cloud is away":
            world.heal("cloud", seconds=60)
        else:
            world.pass_time(600)
        assert (world.cloud.objects(), set(world.robot.objects())) == ({}, {"a"})
        assert "DeletionOverdue" in codes(world)


def test_C6_4_a_robot_whose_own_server_is_away_holds_nobody_up() -> None:
    with blocking(grace="10m") as world:
        world.begin("a")
        world.cut("robot", seconds=60)
        world.remove("a", seconds=500)
        assert finalizers(world.cloud) == [MINE]
        world.pass_time(200)
        assert world.cloud.objects() == {}
        assert "DeletionOverdue" in codes(world)
        world.heal("robot")
        assert (world.robot.objects(), codes(world)) == ({}, {})


def test_C6_4_a_held_deletion_and_a_status_that_is_not_taken_end_with_the_grace_period_too() -> None:
    with blocking(grace="10m") as world:
        world.begin("a", "b")
        world.order("hold", resource="goals")
        world.inject("cloud", INTERNAL_ERROR, verb="patch", part="/goals/b/status", times=math.inf)
        world.report("b", {"n": 1}, seconds=5)
        for name in ("a", "b"):
            world.cloud.delete(name)
        world.pass_time(500)
        assert set(world.cloud.objects()) == {"a", "b"}
        world.pass_time(200)
        assert (world.cloud.objects(), set(world.robot.objects())) == ({}, {"a", "b"})


def test_C6_4_an_object_made_anew_beside_an_overdue_copy_gets_its_own_copy_when_that_has_gone() -> None:
    with blocking(grace="10m") as world:
        stuck(world)
        world.pass_time(700)
        world.add("a", spec={"x": 2}, seconds=60)
        assert (finalizers(world.cloud), "DeletionOverdue" in codes(world)) == ([MINE], True)
        world.robot.finalize("a")
        world.settle()
        assert (world.robot.objects()["a"]["spec"], codes(world)) == ({"x": 2}, {})
        world.remove("a")
        assert (world.cloud.objects(), world.robot.objects()) == ({}, {})
