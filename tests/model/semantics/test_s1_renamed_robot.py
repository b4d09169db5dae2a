"""S1.8 on virtual time: what was synced for a robot of another name is never given up in silence."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from crsyncer.core.content.annotations import OURS, ROBOT_LABEL
from crsyncer.core.model import Json
from crsyncer.core.requests.calls import Call
from tests.model.simulation.answers import FORBIDDEN, UNAVAILABLE
from tests.model.simulation.life import ROBOT
from tests.model.simulation.scene import SOURCES, restart, roles
from tests.model.simulation.weather import Rule
from tests.model.simulation.world import World

MINE = {ROBOT_LABEL: ROBOT}
OTHER = "robot-2"
BOTH = pytest.mark.parametrize("source", SOURCES)


@contextmanager
def synced(source: str, *, filtered: bool = True) -> Iterator[World]:
    """Goals a, b and c on both sides; the agent runs."""
    with World(kinds={"goals": {"source": source, "filtered": str(filtered).lower()}}) as world:
        world.begin("a", "b", "c", source=source, labels=MINE)
        yield world
        assert world.troubles == []


def rename(world: World, robot: str, *, kill: bool = False, seconds: float = 60) -> None:
    """The agent is started anew, with another name for the robot."""
    with world.down(kill=kill):
        world.settings = replace(world.settings, robot=robot)
    world.pass_time(seconds)


def renamed(world: World) -> list[Json]:
    """What is shown of former names."""
    return [reason for reason in world.status()["reasons"] if reason["code"] == "RobotRenamed"]


@BOTH
@pytest.mark.parametrize("kill", [True, False])
def test_S1_8_a_former_name_is_shown_while_copies_belong_to_it(source: str, kill: bool) -> None:
    with synced(source) as world:
        _, down = roles(world, source)
        rename(world, OTHER, kill=kill)
        where = "on the robot" if source == "cloud" else "in the cloud"
        for _ in range(2):
            [reason] = renamed(world)
            assert (reason["level"], world.status()["health"]) == ("info", "healthy")
            assert reason["message"].startswith("the robot was called robot-1 and is called robot-2 now: 3 copies ")
            assert f"{where} belong to the former name" in reason["message"]
            assert "robotName back to robot-1" in reason["hint"]
            [row] = world.status()["formerNames"]
            assert (row["robot"], row["specSource"], row["copies"]) == (ROBOT, source, 3)
            assert row["resource"].startswith("goals.")
            steps = world.order("explain", resource="goals", name="a")["steps"]
            assert f"3 copies {where} belong to robot-1, the robot's former name" in [each["text"] for each in steps]
            restart(world, kill=True, seconds=60)
        assert set(down.objects()) == {"a", "b", "c"}
        assert [write for write in world.writes if write.verb == "delete"] == []
        down.delete("a")
        down.delete("b")
        world.pass_time(700)
        assert "1 copy " in renamed(world)[0]["message"]
        down.delete("c")
        world.pass_time(700)
        assert (renamed(world), world.status()["formerNames"]) == ([], [])


@BOTH
def test_S1_8_with_its_former_name_the_robot_has_its_copies_again(source: str) -> None:
    with synced(source) as world:
        up, down = roles(world, source)
        rename(world, OTHER)
        up.set("a", spec={"x": 2})
        up.delete("c")
        rename(world, ROBOT)
        assert (world.status()["reasons"], world.status()["formerNames"]) == ([], [])
        assert {name: each["spec"] for name, each in down.objects().items()} == {"a": {"x": 2}, "b": {"x": 1}}


@BOTH
def test_S1_8_a_status_that_waits_as_the_name_changes_is_told(source: str) -> None:
    with synced(source) as world:
        up, _ = roles(world, source)
        world.inject(str(up.side), UNAVAILABLE, verb="patch", times=1000)
        world.report("a", {"n": 1}, source=source, seconds=5)
        with world.down():
            world.mend(str(up.side))
            world.settings = replace(world.settings, robot=OTHER)
        world.pass_time(60)
        assert world.status()["formerNames"][0]["statuses"] == 1
        assert "; 1 status waited to be sent when the name changed" in renamed(world)[0]["message"]
        given_up = [each for each in world.order("events")["events"] if each["action"] == "status given up"]
        assert [each["message"] for each in given_up] == ["its upstream object is gone, or is not selected any more"]
        rename(world, ROBOT)
        assert up.objects()["a"]["status"] == {"n": 1}


def test_S1_8_where_the_cloud_is_away_the_store_says_how_many_copies_there_are() -> None:
    with synced("robot") as world:
        world.cut("cloud")
        rename(world, OTHER)
        assert world.status()["formerNames"][0]["copies"] == 3


def test_S1_8_where_the_account_may_not_look_any_more_the_line_ends_a_day_after_the_change() -> None:
    with synced("robot") as world:

        def asks_for_the_former_name(call: Call) -> bool:
            return call.verb == "list" and ROBOT in dict(call.query).get("labelSelector", "")

        refusal = world.weather[world.cloud.side].add(Rule(asks_for_the_former_name, FORBIDDEN, math.inf))
        rename(world, OTHER, seconds=7200)
        assert world.status()["formerNames"][0]["copies"] == 3
        assert 10 < refusal.met < 20, "it asks every ten minutes"
        world.pass_time(86400)
        assert world.status()["formerNames"] == []


def test_S1_8_copies_of_another_robot_that_has_the_former_name_now_are_not_counted() -> None:
    with synced("robot") as world:
        rename(world, OTHER)
        marks = {OURS + "upstream-uid": "another", OURS + "robot": ROBOT}
        world.cloud.create("theirs", spec={}, labels=MINE, annotations=marks)
        world.pass_time(700)
        assert world.status()["formerNames"][0]["copies"] == 3


def test_S1_8_originals_that_are_given_to_the_new_name_take_their_copies_with_them() -> None:
    with synced("cloud") as world:
        rename(world, OTHER)
        for name in "abc":
            world.cloud.label(name, robot=OTHER)
        world.pass_time(700)
        assert (renamed(world), world.status()["health"]) == ([], "healthy")
        assert {each["metadata"]["labels"][ROBOT_LABEL] for each in world.robot.objects().values()} == {OTHER}


def test_S1_8_where_the_name_selects_nothing_a_change_of_it_is_no_news_on_the_robot() -> None:
    with synced("cloud", filtered=False) as world:
        rename(world, OTHER)
        assert (world.status()["reasons"], world.status()["formerNames"]) == ([], [])


def test_S1_8_in_the_cloud_the_former_name_is_shown_beside_the_names_that_its_copies_take() -> None:
    with synced("robot", filtered=False) as world:
        rename(world, OTHER)
        codes = {reason["code"] for reason in world.status()["reasons"]}
        assert codes == {"NameTaken", "RobotRenamed"}
        world.robot.delete("a")
        world.pass_time(60)
        assert world.status()["formerNames"][0]["copies"] == 3
        for name in "abc":
            world.cloud.delete(name)
        world.pass_time(700)
        assert (world.status()["reasons"], set(world.cloud.objects())) == ([], {"b", "c"})


@BOTH
def test_S1_8_what_is_followed_without_a_name_belongs_to_no_former_one(source: str) -> None:
    with synced(source) as world:
        rename(world, OTHER)
        world.robot.annotate_kind({"cr-syncer.cloudrobotics.com/filter-by-robot-name": None})
        world.pass_time(60)
        assert len(world.status()["formerNames"]) == (0 if source == "cloud" else 1)
