"""S9 on virtual time: how often a server is asked, what a watch that ends costs, and that nobody waits for another."""

import itertools
import math

import pytest

from crsyncer.core.model import Side
from tests.model.simulation.answers import EXPIRED, INTERNAL_ERROR, too_many
from tests.model.simulation.scene import changes, copy, full_lists, original, scene, synced, travels
from tests.model.simulation.weather import Fate

SIDES = pytest.mark.parametrize("side", ["cloud", "robot"])


@SIDES
def test_S9_1_while_a_side_is_down_one_question_at_a_time_is_asked_for_all_kinds(side: str) -> None:
    with scene(goals={}, tasks={}, notes={}, plans={}) as world:
        world.begin()
        world.cut(side, seconds=10.0)
        since = world.clock.now
        world.pass_time(800.0)  # within the first 15 min of an outage the longest wait is 8 s
        asked = world.journal.asked(side, since=since)
        assert 100 <= len(asked) <= 800
        assert all(later.sent - first.sent <= 10.0 for first, later in itertools.pairwise(asked))


@pytest.mark.fault_14
@SIDES
def test_S9_1_storage_that_is_initialized_is_waited_for_and_takes_nothing_away(side: str) -> None:
    with synced() as world:
        world.inject(side, too_many(1.0), times=math.inf, seconds=120)
        world.planes[Side(side)].restart()
        before = changes(world)
        world.pass_time(120.0)
        assert changes(world) == before
        world.settle()
        travels(world, 1)
        assert set(world.robot.objects()) == {"a", "b"}


@SIDES
@pytest.mark.parametrize("end", ["cut", "clean", "garbage"])
def test_S9_2_a_watch_goes_on_from_its_cursor_whatever_ended_it(side: str, end: str) -> None:
    with synced() as world:
        since = world.clock.now
        if end == "cut":
            world.cut(side, seconds=5.0)
            world.mend(side)
        elif end == "clean":
            world.weather[Side(side)].ends = 3
        else:
            world.weather[Side(side)].garbage = 3
        travels(world, 1, seconds=60.0)
        assert full_lists(world, side, since) == []


@SIDES
@pytest.mark.parametrize("how", ["status", "line"])
def test_S9_2_a_410_costs_one_list_of_that_kind_and_side(side: str, how: str) -> None:
    with scene(goals={}, tasks={}) as world:
        world.begin("a")
        since, plane = world.clock.now, world.planes[Side(side)]
        if how == "status":
            world.inject(side, EXPIRED, verb="watch", part="/goals")
            plane.restart()
        else:
            world.cut(side, seconds=1.0)
            plane.create("of-another-kind", kind="goals", spec={"x": 1})
            plane.delete("of-another-kind", kind="goals")
            plane.compact()
            world.mend(side)
        world.pass_time(60.0)
        assert [len(full_lists(world, each, since)) for each in (side, str(Side(side).other))] == [1, 0]


def test_S9_2_a_server_that_says_410_to_everything_is_asked_now_and_then() -> None:
    with synced() as world:
        world.inject("cloud", EXPIRED, verb="watch", part="/goals", times=math.inf, seconds=600)
        since = world.clock.now
        world.cloud.restart()
        world.pass_time(600.0)
        assert 5 <= len(world.journal.asked("cloud", kind="goals", since=since)) <= 300
        world.settle()
        travels(world, 1)


@pytest.mark.parametrize("count", [4, 10])
@pytest.mark.parametrize("trouble", [Fate.LOST, INTERNAL_ERROR], ids=["no answer", "500"])
def test_S9_5_a_few_objects_in_trouble_delay_no_other(trouble: Fate, count: int) -> None:
    with synced() as world:
        world.cloud.create("b", spec={"x": 0})
        names = [f"bad-{number}" for number in range(count)]
        world.add(*names)
        for side in ("cloud", "robot"):
            world.inject(side, trouble, part="/bad-", times=math.inf)
        for name in names:
            world.cloud.set(name, spec={"x": 2})
            world.robot.set_status(name, {"phase": "DONE"})
        world.pass_time(0.2)
        for number in range(1, 6):
            travels(world, number, seconds=8.0)
            world.pass_time(12.0 * number)
        for side in ("cloud", "robot"):
            world.weather[Side(side)].rules.clear()
        world.pass_time(120.0)
        assert [copy(world, name)["spec"] for name in names] == [{"x": 2}] * count
        assert [original(world, name)["status"] for name in names] == [{"phase": "DONE"}] * count


@SIDES
def test_S9_5_a_kind_whose_list_hangs_delays_no_other_kind(side: str) -> None:
    with scene(goals={}, tasks={}) as world:
        world.inject(side, Fate.LOST, verb="list", part="/goals", times=math.inf)
        world.begin(seconds=10.0)
        for number in range(1, 4):
            travels(world, number, kind="tasks")
        world.mend(side)
        world.add("a")
        assert copy(world)["spec"] == {"x": 1}


def test_S9_5_the_lists_of_both_sides_and_all_kinds_are_asked_for_at_the_same_time() -> None:
    with scene(goals={}, tasks={}, notes={}, plans={}) as world:
        for weather in world.weather.values():
            weather.latency = 1.0
        world.begin(seconds=60.0)
        lists = [full_lists(world, side, 0.0, kind=kind)[0] for side in ("cloud", "robot") for kind in world.kinds]
        assert max(each.sent for each in lists) < min(each.answered or math.inf for each in lists)
