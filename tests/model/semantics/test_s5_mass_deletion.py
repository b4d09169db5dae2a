"""S5.5b on virtual time: many deletions at once, what verifies them, and what a human releases."""

import math

import pytest

from crsyncer.core.model import Json, Side
from crsyncer.core.requests import calls
from tests.model.simulation.answers import INTERNAL_ERROR
from tests.model.simulation.scene import (
    copy,
    crowd,
    holds,
    identity,
    original,
    refuse_lists,
    restart,
    scene,
    state,
)
from tests.model.simulation.weather import Fate, Rule
from tests.model.simulation.world import World

FINALIZER = "example.com/wait"


def delete_as_one(world: World, names: list[str]) -> None:
    """Delete objects so that all deletions are known before any is verified: the first few alone would be no mass."""
    world.inject("cloud", INTERNAL_ERROR, verb="get", part=f"{calls.CRDS}/", times=math.inf, seconds=1.0)
    for name in names:
        world.cloud.delete(name)


def unverifiable(world: World, count: int = 12) -> tuple[list[str], Json, Rule]:
    """Many objects are deleted while the cloud answers no list: all of them, the hold, and what keeps it there."""
    names = crowd(world, count)
    rule = refuse_lists(world)
    delete_as_one(world, names)
    world.pass_time(180)
    (hold,) = world.status()["holds"]
    assert (hold["reason"], hold["objects"]) == ("MassDeletion", count)
    return names, hold, rule


def test_S5_5b_a_mass_deletion_whose_confirmation_the_link_cuts_off_is_confirmed_when_it_is_back() -> None:
    with scene() as world:
        names = crowd(world, 20)
        refuse_lists(world, Fate.LOST)
        delete_as_one(world, names)
        world.pass_time(10)
        world.cut("cloud", seconds=600)
        assert set(world.robot.objects()) == set(names)
        world.heal("cloud", seconds=60)
        assert (world.robot.objects(), holds(world), world.status()["health"]) == ({}, [], "healthy")


def test_S5_5b_a_mass_deletion_that_nobody_confirms_is_held_whole_and_every_answer_is_the_same() -> None:
    with scene() as world:
        names, hold, _ = unverifiable(world, 20)
        release = f"crsyncer holds release {hold['id']}"
        assert release in hold["hint"]
        assert any(release in reason["hint"] for reason in world.status()["reasons"])
        assert (world.status()["health"], state(world)) == ("attention", "held")
        explained = world.order("explain", resource="goals", name=names[7])
        assert (explained["state"], [each["id"] for each in explained["holds"]]) == ("held", [hold["id"]])
        before = identity(world)
        for kill in (False, True):
            restart(world, kill=kill)
            assert identity(world) == before
        world.pass_time(3600)
        assert (identity(world), set(world.robot.objects())) == (before, set(names))


def test_S5_5b_what_is_held_is_reported_from_the_first_moment_on_and_not_forgotten_before_it() -> None:
    for cut in (("cloud", "robot"), ("robot",), ()):
        with scene() as world:
            unverifiable(world)
            before = identity(world)
            with world.down():
                for side in cut:
                    world.cut(side)
            world.pass_time(30)
            with world.down(kill=True):
                for side in cut:
                    world.mend(side)
            while world.status()["kinds"] == []:
                world.pass_time(0.01)
            assert identity(world) == before


def test_S5_5b_objects_that_come_back_leave_the_hold_and_the_rest_is_released() -> None:
    with scene() as world:
        names, hold, rule = unverifiable(world)
        world.weather[Side.CLOUD].rules.remove(rule)
        world.add(*names[:4], spec={"x": 2}, seconds=120)
        assert [(each["id"], each["objects"]) for each in world.status()["holds"]] == [(hold["id"], 8)]
        assert [copy(world, name)["spec"] for name in names[:4]] == [{"x": 2}] * 4
        assert world.order("release", id=hold["id"])["objects"] == 8
        world.settle()
        assert (set(world.robot.objects()), world.status()["health"]) == (set(names[:4]), "healthy")


@pytest.mark.parametrize("robot", ["there", "away"])
def test_S5_5b_what_is_released_while_the_cloud_is_away_is_done_at_once_and_for_good(robot: str) -> None:
    with scene() as world:
        _, hold, _ = unverifiable(world)
        world.cut("cloud")
        if robot == "away":
            world.cut("robot")
        world.pass_time(60)
        world.order("release", id=hold["id"])
        if robot == "away":
            with world.down(kill=True):
                world.mend("robot")
        world.pass_time(30)
        assert world.robot.objects() == {}
        assert holds(world) == []
        world.heal("cloud")
        assert (world.robot.objects(), world.status()["health"]) == ({}, "healthy")


def test_S5_5_while_one_kind_is_held_everything_else_goes_on_at_once() -> None:
    with scene(goals={}, tasks={}) as world:
        for name in ("t1", "t2"):
            world.cloud.create(name, kind="tasks", spec={"x": 1})
        names, _, _ = unverifiable(world)
        world.cloud.create("kept", spec={"x": 1})
        world.cloud.delete("t1", kind="tasks")
        world.edit("t2", kind="tasks", spec={"x": 2}, seconds=2)
        world.report("kept", {"phase": "DONE"}, seconds=2)
        assert {name: each["spec"] for name, each in world.robot.objects("tasks").items()} == {"t2": {"x": 2}}
        assert original(world, "kept")["status"] == {"phase": "DONE"}
        assert set(world.robot.objects()) == {*names, "kept"}
        assert (state(world, "tasks"), state(world)) == ("syncing", "held")


def test_S5_5b_a_mass_of_terminating_objects_is_verified_and_deleted() -> None:
    with scene() as world:
        names = crowd(world, 12)
        for name in names:
            world.cloud.finalize(name, FINALIZER)
        world.settle()
        world.remove(*names)
        assert (world.robot.objects(), holds(world)) == ({}, [])
        for name in names:
            world.cloud.finalize(name)
        world.settle()
        assert (world.cloud.objects(), holds(world)) == ({}, [])


def test_S5_5_what_a_manual_hold_kept_back_is_verified_when_it_is_released() -> None:
    with scene() as world:
        names = crowd(world, 8)
        hold = world.order("hold", resource="goals")
        refuse_lists(world)
        for name in names:
            world.cloud.delete(name)
        world.pass_time(60)
        assert holds(world) == [("Manual", 8)]
        delete_as_one(world, [])
        world.order("release", id=hold["id"])
        world.pass_time(180)
        assert [reason for reason, _ in holds(world)] == ["MassDeletion"]
        assert world.robot.objects()
