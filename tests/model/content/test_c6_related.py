"""C6.3 on virtual time: the deletion of primaries, and of the copies that go with them."""

from typing import Any

import pytest

from crsyncer.core.model import Side
from crsyncer.core.pair.actions import Until
from tests.model.scenes.blocking import MINE, codes, finalizer_rows, finalizers
from tests.model.scenes.config_maps import annotate_map, data, maps, put_map, strip_map
from tests.model.scenes.policies import apply_policy, edit_policy
from tests.model.scenes.related import BOTH, EDGE, ends, entry, explained, refer, related, said
from tests.model.simulation.answers import INTERNAL_ERROR
from tests.model.simulation.scene import SOURCES, holds, out_of_sight, restart, roles
from tests.model.simulation.world import World

MODES = pytest.mark.parametrize("mode", ["async", "blocking"])
LOCAL = "example.com/wait"


def delete_mode(world: World, origin: str, mode: str, **more: Any) -> None:
    """The policy of goals, with a deletion like that."""
    own = {"gracePeriod": more.pop("grace")} if "grace" in more else {}
    edit_policy(world, related=[entry(origin, **more)], deletion={"mode": mode, **own})


def deletions(world: World, since: int) -> list[str]:
    """The names of the copies that were deleted, in order."""
    return [write.name for write in world.writes[since:] if write.verb == "delete" and write.status < 300]


def delete_goal(world: World, origin: str) -> None:
    """A goal that refers to a ConfigMap is deleted, and a finalizer keeps the copy of that."""
    here, there = ends(world, origin)
    refer(world, here, "m")
    annotate_map(there, "m", {}, finalizers=[LOCAL])
    world.cloud.delete("g")


@MODES
@pytest.mark.parametrize("source", ["cloud", "robot"])
@BOTH
def test_C6_3_related_copies_are_deleted_first(origin: str, source: str, mode: str) -> None:
    with related(origin, source=source) as world:
        here, there = ends(world, origin)
        up, down = roles(world, source)
        delete_mode(world, origin, mode)
        for name in ("m", "n"):
            put_map(here, name, x="1")
        world.add("g", source=source, spec={"maps": ["m", "n"]})
        assert (set(data(there)), set(down.objects())) == ({"m", "n"}, {"g"})
        made = len(world.writes)
        world.remove("g", source=source, seconds=5)
        assert sorted(deletions(world, made)[:2]) == ["m", "n"]
        assert deletions(world, made)[2:] == ["g"]
        assert (up.objects(), down.objects(), data(there), set(data(here))) == ({}, {}, {}, {"m", "n"})
        assert holds(world) == []


@BOTH
@pytest.mark.parametrize("meanwhile", ["nothing happens", "the agent is killed", "another subtree is named"])
def test_C6_3_with_async_a_related_copy_that_stays_delays_the_copy_for_30_s(origin: str, meanwhile: str) -> None:
    with related(origin) as world:
        here, there = ends(world, origin)
        delete_goal(world, origin)
        world.pass_time(5)
        if meanwhile == "the agent is killed":
            restart(world, kill=True)
        elif meanwhile == "another subtree is named":
            apply_policy(world.robot, related=[entry(origin)], subtree="robot")
        world.pass_time(20)
        assert (set(world.robot.objects()), set(data(there))) == ({"g"}, {"m"})
        assert maps(there)["m"]["metadata"]["deletionTimestamp"]
        world.pass_time(20)
        assert (world.robot.objects(), set(data(there))) == ({}, {"m"})
        annotate_map(there, "m", {}, finalizers=[])
        world.settle()
        assert (data(there), set(data(here))) == ({}, {"m"})


@MODES
@BOTH
def test_C6_3_explain_says_that_the_copy_waits_for_its_related_copies(origin: str, mode: str) -> None:
    with related(origin) as world:
        delete_mode(world, origin, mode)
        delete_goal(world, origin)
        world.pass_time(10)
        found = explained(world, "goals", "g")
        assert (None, f"nothing is written to the robot until {Until.RELATED_GONE}") in said(found, "C6.3")
        assert said(found, "S5.5") == []


@pytest.mark.parametrize("restarted", [False, True])
@BOTH
def test_C6_3_with_blocking_the_primary_waits_for_its_related_copies(origin: str, restarted: bool) -> None:
    with related(origin) as world:
        here, there = ends(world, origin)
        delete_mode(world, origin, "blocking")
        delete_goal(world, origin)
        world.pass_time(60)
        if restarted:
            world.crash()
            world.start()
        world.pass_time(60)
        assert (set(world.robot.objects()), finalizers(world.cloud, "g")) == ({"g"}, [MINE])
        assert maps(there)["m"]["metadata"]["deletionTimestamp"]
        world.robot.delete("g")
        world.pass_time(60)
        assert (world.robot.objects(), finalizers(world.cloud, "g")) == ({}, [MINE])
        annotate_map(there, "m", {}, finalizers=[])
        world.pass_time(3)
        assert (world.cloud.objects(), data(there), set(data(here))) == ({}, {}, {"m"})


@BOTH
def test_C6_4_the_grace_period_ends_the_wait_for_related_copies(origin: str) -> None:
    with related(origin) as world:
        _, there = ends(world, origin)
        delete_mode(world, origin, "blocking", grace="2m")
        delete_goal(world, origin)
        world.pass_time(115)
        assert (set(world.robot.objects()), set(world.cloud.objects())) == ({"g"}, {"g"})
        world.pass_time(60)
        assert (world.robot.objects(), world.cloud.objects(), set(data(there))) == ({}, {}, {"m"})
        assert "DeletionOverdue" not in codes(world)


@MODES
@BOTH
def test_C6_3_copies_that_another_primary_needs_and_kept_ones_are_not_waited_for(origin: str, mode: str) -> None:
    cases: list[dict[str, Any]] = [{}, {"cleanup": "keep"}]
    for more in cases:
        with related(origin, **more) as world:
            here, there = ends(world, origin)
            delete_mode(world, origin, mode, **more)
            put_map(here, "m", x="1")
            world.add("g", "h", spec={"maps": ["m"]})
            world.remove("g", seconds=5)
            assert (set(world.cloud.objects()), set(world.robot.objects())) == ({"h"}, {"h"})
            world.remove("h", seconds=5)
            assert (world.cloud.objects(), world.robot.objects()) == ({}, {})
            assert set(data(there)) == ({"m"} if more else set())


@MODES
def test_C6_3_what_a_selector_selected_goes_first_too(mode: str) -> None:
    with related(object=EDGE) as world:
        delete_mode(world, "cloud", mode, object=EDGE)
        put_map(world.cloud, "m", labels={"tier": "edge"}, x="1")
        world.add("g", spec={})
        annotate_map(world.robot, "m", {}, finalizers=[LOCAL])
        world.remove("g", seconds=10)
        if mode == "blocking":
            world.stop()
            world.start()
        world.pass_time(10)
        assert set(world.robot.objects()) == {"g"}
        annotate_map(world.robot, "m", {}, finalizers=[])
        world.pass_time(3)
        assert (world.robot.objects(), world.cloud.objects(), data(world.robot)) == ({}, {}, {})


@MODES
@BOTH
def test_C6_3_a_primary_that_is_made_anew_keeps_its_related_copies(origin: str, mode: str) -> None:
    with related(origin) as world:
        here, there = ends(world, origin)
        delete_mode(world, origin, mode)
        refer(world, here, "m")
        [uid] = [each["metadata"]["uid"] for each in maps(there).values()]
        if mode == "async":
            with out_of_sight(world, "cut"):
                world.cloud.delete("g")
                world.cloud.create("g", spec={"maps": ["m"]})
        else:
            world.cloud.set("g", spec={"maps": ["m"], "x": 2})
        world.settle()
        assert (set(world.robot.objects()), data(there)) == ({"g"}, {"m": {"x": "1"}})
        world.robot.delete("g")
        world.settle()
        assert set(world.robot.objects()) == {"g"}
        assert [each["metadata"]["uid"] for each in maps(there).values()] == [uid]


@BOTH
def test_C6_3_a_primary_whose_copy_was_lost_and_cannot_be_made_again_is_released(origin: str) -> None:
    with related(origin) as world:
        delete_mode(world, origin, "blocking")
        here, there = ends(world, origin)
        refer(world, here, "m")
        world.inject("robot", INTERNAL_ERROR, verb="create", part="/goals", times=3)
        world.robot.delete("g")
        world.pass_time(0.5)
        world.remove("g", seconds=120)
        assert (set(world.cloud.objects()), set(world.robot.objects()), maps(there)) == (set(), set(), {})


@MODES
@pytest.mark.parametrize(("origin", "source"), [("cloud", "robot"), ("robot", "cloud")])
@pytest.mark.parametrize("how", ["crash", "policy edited", "copy changed"])
def test_C6_3_a_related_copy_that_went_first_is_not_made_again(origin: str, source: str, mode: str, how: str) -> None:
    with related(origin, source=source) as world:
        up, down = roles(world, source)
        delete_mode(world, origin, mode)
        put_map(down, "m", x="1")
        world.add("g", source=source, spec={"maps": ["m"]})
        made = len(world.writes)
        world.inject(origin, INTERNAL_ERROR, verb="delete", times=3)
        world.remove("g", source=source, seconds=1.4)
        assert (data(up), set(down.objects())) == ({}, {"g"})
        if how == "crash":
            world.crash()
            world.start()
        elif how == "policy edited":
            apply_policy(world.robot, related=[entry(origin)], deletion={"mode": mode, "propagation": "orphan"})
        else:
            down.annotate("g", {"example.com/x": "1"})
        world.pass_time(60)
        assert (deletions(world, made), data(up), set(down.objects())) == (["m", "g"], {}, set())
        assert "create" not in [write.verb for write in world.writes[made:]]


def test_C6_3_a_related_copy_that_is_not_made_again_after_all_holds_nobody_up() -> None:
    for seconds in (2.0, 5.0, 10.0):
        with related(source="robot") as world:
            delete_mode(world, "cloud", "blocking", naming={"name": "{robot}-{name}"})
            put_map(world.cloud, "m", x="1")
            world.add("g", source="robot", spec={"maps": ["m"]})
            world.disk.commit_seconds = seconds
            world.cut("robot")
            world.robot.delete("g")
            strip_map(world.robot, "robot-1-m")
            world.heal("robot")
            assert (world.robot.objects(), world.cloud.objects()) == ({}, {})


def test_C6_3_C5_4_a_finalizer_that_is_not_added_in_time_hides_no_primary_that_is_gone() -> None:
    with related("robot") as world:
        refer(world, world.robot, "m")
        world.robot.delete("g")
        apply_policy(world.robot, related=[entry("robot")], deletion={"mode": "blocking"})
        world.pass_time(0.01)
        world.weather[Side.CLOUD].latency = 0.6
        world.cloud.delete("g")
        world.pass_time(120)
        assert (data(world.cloud), world.robot.objects()) == ({}, {})


@pytest.mark.parametrize("late", SOURCES)
@pytest.mark.parametrize("source", SOURCES)
def test_C6_3_a_primary_that_lost_its_copy_with_the_store_waits_for_its_related_copies(source: str, late: str) -> None:
    with related(source, source=source) as world:
        up, down = roles(world, source)
        delete_mode(world, source, "blocking")
        put_map(up, "m", x="1")
        world.add("g", source=source, spec={"maps": ["m"]})
        with world.down():
            world.lose_database()
            up.delete("g")
            down.delete("g")
            annotate_map(down, "m", {}, finalizers=[LOCAL])
            world.weather[Side(late)].latency = 0.5
        world.pass_time(60)
        assert (finalizers(up, "g"), set(data(down))) == ([MINE], {"m"})
        assert maps(down)["m"]["metadata"]["deletionTimestamp"]
        annotate_map(down, "m", {}, finalizers=[])
        world.pass_time(10)
        assert (up.objects(), data(down), set(data(up))) == ({}, {}, {"m"})
        assert (holds(world), finalizer_rows(world)) == ([], [])
