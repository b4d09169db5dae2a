"""Hazards of whole kinds: a CRD that is deleted or made anew takes its objects along, and nobody may have meant it."""

import pytest

from crsyncer.core.model import Side
from crsyncer.core.requests import calls
from crsyncer.ports import Reply
from tests.model.simulation.plane import GROUP
from tests.model.simulation.scene import copy, define, holds, out_of_sight, redefine, restart, scene, synced
from tests.model.simulation.weather import Fate, Rule
from tests.model.simulation.world import World
from tests.system.bed import crd

_DENIED = Reply(403, {"message": "denied"})


@pytest.mark.parametrize("slowly", [False, True])
def test_S5_5_a_kind_that_is_deleted_upstream_costs_no_copy(world: World, slowly: bool) -> None:
    world.cloud.delete_kind()
    if slowly:
        for name in list(world.cloud.objects()):
            world.cloud.delete(name)
        world.pass_time(20)
    world.cloud.sweep()
    world.pass_time(3600)
    assert set(world.robot.objects()) == {"a"}


@pytest.mark.parametrize("objects", [1, 12])
def test_S5_5_a_kind_that_is_being_deleted_when_it_is_met_and_made_anew_costs_no_copy(objects: int) -> None:
    with scene() as world:
        for number in range(objects):
            world.cloud.create(f"a{number}", spec={"x": 1})
        world.cloud.delete_kind()
        world.begin()
        world.cloud.sweep()
        define(world, "cloud", seconds=3600)
        assert len(world.robot.objects()) == objects
        assert holds(world) == [("KindMissing", objects)]


@pytest.mark.parametrize("lost", [False, True])
@pytest.mark.parametrize("hundredths", range(2, 60, 2))
def test_S5_5_a_kind_whose_deletion_begins_while_it_is_met_costs_no_copy(hundredths: int, lost: bool) -> None:
    """Each answer may be the first one that shows it; `lost`: none about the CRD comes."""
    with scene() as world:
        world.cloud.create("a", spec={"x": 1})
        world.weather[Side.CLOUD].latency = 0.04
        if lost:
            world.weather[Side.CLOUD].add(Rule(lambda call: "/customresourcedefinitions/" in call.path, Fate.LOST, 1))
        world.begin(seconds=hundredths / 100)
        world.cloud.delete_kind()
        world.pass_time(10)
        world.cloud.sweep()
        define(world, "cloud", seconds=600)


@pytest.mark.parametrize("compacted", [False, True])
@pytest.mark.parametrize("how", ["cut", "down"])
def test_S5_5_a_kind_that_was_made_anew_out_of_sight_costs_no_copy(world: World, how: str, compacted: bool) -> None:
    world.add("b")
    with out_of_sight(world, how):
        redefine(world, "b")
        if compacted:
            world.cloud.compact()
    world.pass_time(600)
    assert set(world.robot.objects()) == {"a", "b"}
    assert holds(world) == [("KindMissing", 1)]
    restart(world, kill=True, seconds=600)
    assert holds(world) == [("KindMissing", 1)]
    world.add("a", spec={"x": 2})
    assert (holds(world), copy(world)["spec"]) == ([], {"x": 2})
    world.remove("a")
    assert set(world.robot.objects()) == {"b"}


def test_S5_5_a_kind_that_was_made_anew_within_a_moment_costs_no_copy(world: World) -> None:
    redefine(world)
    world.pass_time(600)
    assert set(world.robot.objects()) == {"a"}
    assert holds(world) == [("KindMissing", 1)]


@pytest.mark.parametrize("last", [False, True], ids=["CRDs are listed", "CRDs cannot be listed for a while"])
@pytest.mark.parametrize("count", [3, 12])
def test_S8_1_a_robots_crd_made_anew_in_a_gap_of_its_watch_costs_no_copy_in_the_cloud(count: int, last: bool) -> None:
    with scene(goals={"source": "robot"}) as world:
        names = [f"g{number:02}" for number in range(count)]
        world.begin(*names, source="robot")
        world.cut("robot", seconds=60)
        world.robot.drop_kind()
        world.robot.apply(crd(GROUP, source="robot"))
        world.robot.create(names[0], spec={"x": 2})
        world.robot.compact()
        if last:
            rule = Rule(lambda call: call.path == calls.CRDS and "fieldSelector" not in dict(call.query), _DENIED, 50)
            world.weather[Side.ROBOT].rules.append(rule)
        world.heal("robot", seconds=600)
        assert set(world.cloud.objects()) == set(names)
        assert holds(world) == [("KindMissing", count - 1)]
        assert world.cloud.objects()[names[0]]["spec"] == {"x": 2}


@pytest.mark.parametrize("how", ["cut", "down"])
def test_S5_5_a_kind_that_was_made_anew_with_half_of_its_objects_keeps_the_others(world: World, how: str) -> None:
    world.add("b", "c", "d")
    with out_of_sight(world, how):
        redefine(world, "a", "b")
    world.pass_time(600)
    assert holds(world) == [("KindMissing", 2)]
    assert {name: copy(world, name)["spec"]["x"] for name in "abcd"} == {"a": 2, "b": 2, "c": 1, "d": 1}


@pytest.mark.parametrize("how", ["cut", "down"])
def test_S5_5_a_kind_that_was_made_anew_with_all_its_objects_holds_nothing_later(world: World, how: str) -> None:
    with out_of_sight(world, how):
        redefine(world, "a")
    world.settle()
    assert (holds(world), copy(world)["spec"]) == ([], {"x": 2})
    world.remove("a")
    assert set(world.robot.objects()) == set()


def test_S5_5_a_kind_that_was_made_anew_is_another_whenever_the_agent_is_killed() -> None:
    for steps in range(1, 60, 2):
        with synced(steps) as world:
            with world.down(kill=True):
                redefine(world)
            world.crash_after(steps)
            world.pass_time(5)
            restart(world, kill=True, seconds=100)
            assert (set(world.robot.objects()), holds(world)) == ({"a"}, [("KindMissing", 1)]), steps


@pytest.mark.parametrize("how", ["cut", "down"])
def test_S5_5_a_kind_made_anew_costs_no_copy_when_the_agent_is_killed_once_it_says_so(how: str) -> None:
    for moment in range(12):
        with synced(moment) as world:
            world.add(*(f"g{number}" for number in range(4)))
            with out_of_sight(world, how):
                redefine(world, "g0")
            deadline = world.clock.now + 120
            while holds(world) != [("KindMissing", 4)]:
                assert world.clock.now < deadline
                world.pass_time(0.01)
            world.pass_time(0.05 * moment)
            restart(world, kill=True, seconds=120)
            assert (len(world.robot.objects()), holds(world)) == (5, [("KindMissing", 4)]), moment


def test_S5_5_a_kind_made_anew_stays_held_when_the_link_breaks_before_both_sides_are_listed() -> None:
    with synced() as world:
        world.add("b")
        with out_of_sight(world, "down"):
            redefine(world)
            world.cut("robot")
        world.pass_time(60)
        world.cut("cloud", seconds=60)
        world.heal("cloud", seconds=60)
        world.heal("robot", seconds=600)
        assert set(world.robot.objects()) == {"a", "b"}
        assert holds(world) == [("KindMissing", 2)]


@pytest.mark.parametrize("reply", [Reply(403, {"message": "denied"}), Reply(404, {}, "404 page not found")])
def test_S5_5_where_crds_cannot_be_read_discovery_tells_of_a_kind(reply: Reply) -> None:
    with synced(crds=reply) as world:
        world.add("b")
        world.remove("b")
        assert set(world.robot.objects()) == {"a"}
        world.cloud.drop_kind()
        world.pass_time(600)
        assert holds(world) == [("KindMissing", 1)]


def test_S5_5_a_role_that_is_narrowed_to_read_no_crd_stops_no_deletion(world: World) -> None:
    world.inject("cloud", _DENIED, verb="get", part="/customresourcedefinitions/", times=10_000)
    world.remove("a", seconds=600)
    assert (set(world.robot.objects()), holds(world)) == (set(), [])


@pytest.mark.parametrize("count", [40, 215])
def test_S5_5_where_discovery_is_forbidden_what_is_deleted_one_by_one_waits_together(count: int) -> None:
    with synced(crds=_DENIED) as world:
        world.inject("cloud", _DENIED, verb="discover", part=f"/apis/{GROUP}/v1", times=10_000)
        names = [f"g{number}" for number in range(count)]
        world.add(*names)
        for name in names:
            world.remove(name, seconds=2.0 / count)
        world.pass_time(9.0)
        assert (set(world.robot.objects()), holds(world)) == ({"a"}, [])


def test_S8_3_a_cloud_that_was_built_anew_while_a_deletion_is_asked_about_is_no_kind_made_anew() -> None:
    for seed in range(12):
        with scene(seed) as world:
            world.begin("a", "b")
            world.remove("b", seconds=0.02 + seed / 100)
            world.cloud.rebuild(revision=10)
            world.pass_time(200)
            assert world.status()["sides"]["cloud"]["state"] == "identity-changed"
            world.order("release", id="cloud")
            world.pass_time(200)
            assert "a" in world.robot.objects()
            assert {reason for reason, _ in holds(world)} == {"Restored"}


def test_S5_5_a_verification_that_is_refused_a_few_times_is_no_answer_and_made_again() -> None:
    for status in (401, 403, 500, 503):
        for verb, part in (("list", "/goals"), ("discover", f"/apis/{GROUP}/v1")):
            for count in (1, 12):
                with synced(crds=_DENIED) as world:
                    world.add(*(f"g{number}" for number in range(count)))
                    if verb == "list" and count == 1:  # so that a list has to tell
                        world.inject("cloud", Reply(403, {}), verb="discover", part=f"/apis/{GROUP}/v1")
                    for number in range(count):
                        world.cloud.delete(f"g{number}")
                    world.inject("cloud", Reply(status, {}), verb=verb, part=part, times=2)
                    world.pass_time(120)
                    found = set(world.robot.objects()), holds(world), world.status()["health"]
                    assert found == ({"a"}, [], "healthy"), (status, verb, count)


@pytest.mark.parametrize("readable", [True, False])
def test_S5_5a_a_deletion_behind_a_gateway_that_lost_its_way_is_held_until_a_human_releases_it(readable: bool) -> None:
    for before in (0.0, 0.5, 3.0):
        with synced(crds=None if readable else _DENIED) as world:
            world.add("b")
            lost = world.lose_paths("cloud")
            world.pass_time(before)
            world.remove("b", seconds=6)
            assert set(world.robot.objects()) == {"a", "b"}
            world.weather[Side.CLOUD].rules.remove(lost)
            world.pass_time(60)
            assert (set(world.robot.objects()), holds(world)) == ({"a", "b"}, [("KindMissing", 1)]), before
            world.order("release", id=world.status()["holds"][0]["id"])
            world.settle()
            assert (set(world.robot.objects()), world.status()["health"]) == ({"a"}, "healthy"), before


def test_S5_5a_a_release_deletes_no_copy_whose_original_a_watch_shows_again(world: World) -> None:
    world.add("b")
    uid = copy(world)["metadata"]["uid"]
    lost = world.lose_paths("cloud")
    world.remove("b", seconds=20)
    world.inject("cloud", Reply(503, {}), verb="discover", part=f"/apis/{GROUP}/v1", times=10_000)
    world.weather[Side.CLOUD].rules.remove(lost)
    world.pass_time(60)
    assert holds(world) == [("KindMissing", 2)]  # whether the kind is back is not known
    world.order("release", id=world.status()["holds"][0]["id"])
    world.settle()
    assert {name: each["metadata"]["uid"] for name, each in world.robot.objects().items()} == {"a": uid}


def test_S5_5a_what_is_released_while_its_kind_is_missing_comes_back_with_the_kind() -> None:
    with World() as world:
        world.start()
        world.cloud.create("a", spec={"x": 1})
        world.cloud.label("a", touched="1")
        world.settle()
        lost = world.lose_paths("cloud")
        world.add("b", seconds=60)
        world.cut("cloud", seconds=60)
        world.order("release", id=world.status()["holds"][0]["id"])
        world.weather[Side.CLOUD].rules.remove(lost)
        world.heal("cloud", seconds=120)
        assert set(world.robot.objects()) == {"a", "b"}


@pytest.mark.parametrize("readable", [True, False])
def test_S5_5a_a_gateway_that_lost_its_way_and_hid_no_deletion_holds_nothing_later(readable: bool) -> None:
    with synced(crds=None if readable else _DENIED) as world:
        lost = world.lose_paths("cloud")
        world.edit("a", spec={"x": 2}, seconds=6)
        assert holds(world) == [("KindMissing", 1)]
        world.weather[Side.CLOUD].rules.remove(lost)
        world.pass_time(60)
        assert (world.status()["health"], holds(world)) == ("healthy", [])
        world.remove("a")
        assert world.robot.objects() == {}


@pytest.mark.parametrize("reply", [Reply(401, {}), Reply(403, {}), Reply(503, {})])
def test_S5_5a_an_answer_that_says_nothing_about_the_kind_ends_no_hold(reply: Reply) -> None:
    with synced(crds=_DENIED) as world:
        lost = world.lose_paths("cloud")
        world.edit("a", spec={"x": 2}, seconds=6)
        world.inject("cloud", reply, verb="discover", part=f"/apis/{GROUP}/v1", times=10_000)
        world.weather[Side.CLOUD].rules.remove(lost)
        world.pass_time(60)
        assert "KindMissing" in {reason for reason, _ in holds(world)}
        world.weather[Side.CLOUD].rules.clear()
        world.pass_time(200)
        assert (world.status()["health"], holds(world)) == ("healthy", [])


def test_S5_5_what_a_fresh_list_lacks_after_a_gateway_had_lost_its_way_is_held(world: World) -> None:
    world.add("b")
    lost = world.lose_paths("cloud")
    world.pass_time(3)
    world.cloud.delete("b")
    world.cloud.compact()
    world.pass_time(3)
    world.weather[Side.CLOUD].rules.remove(lost)
    world.pass_time(120)
    assert (set(world.robot.objects()), holds(world)) == ({"a", "b"}, [("KindMissing", 1)])


def test_S5_5_another_crd_behind_a_gateway_that_had_lost_its_way_is_another_kind(world: World) -> None:
    world.add("b")
    lost = world.lose_paths("cloud")
    lost.standing = True  # the watch ends before anything is asked for
    world.pass_time(3)
    redefine(world, "a")
    world.weather[Side.CLOUD].rules.remove(lost)
    world.pass_time(120)
    assert (set(world.robot.objects()), holds(world)) == ({"a", "b"}, [("KindMissing", 1)])


def test_S5_5_a_kind_made_anew_costs_no_copy_when_the_agent_is_killed_before_the_robot_is_listed() -> None:
    with synced() as world:
        with out_of_sight(world, "cut"):
            redefine(world, "b")
            world.cut("robot")
        world.pass_time(60)
        with world.down(kill=True):
            world.mend("robot")
            world.inject("cloud", Reply(429, {}), part="/customresourcedefinitions/")
        world.pass_time(600)
        assert (set(world.robot.objects()), holds(world)) == ({"a", "b"}, [("KindMissing", 1)])
