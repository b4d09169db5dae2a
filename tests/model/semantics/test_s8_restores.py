"""S8.3 and S8.4 on virtual time: what is done when a cluster went back in time, to the last request."""

import math

import pytest

from crsyncer.core.content.annotations import ROBOT_LABEL
from crsyncer.core.model import Side
from crsyncer.ports import Reply
from tests.model.simulation.answers import FORBIDDEN
from tests.model.simulation.life import ROBOT
from tests.model.simulation.plane import GROUP
from tests.model.simulation.scene import (
    SOURCES,
    changes,
    copy,
    define,
    full_lists,
    holds,
    original,
    refuse_lists,
    release,
    restart,
    roles,
    scene,
    synced,
)
from tests.model.simulation.weather import Fate
from tests.model.simulation.world import World
from tests.system.bed import crd


@pytest.mark.fault_19
@pytest.mark.parametrize("overtaken_by", [-1, 40])
@pytest.mark.parametrize("running", [True, False], ids=["running", "stopped"])
def test_S8_3_a_restored_cloud_gets_lost_statuses_again_within_90_s_and_costs_no_copy(
    running: bool, overtaken_by: int
) -> None:
    with scene() as world:
        world.begin("a", "b", "d")
        world.report("a", {"phase": "RUNNING"})
        backup = world.cloud.snapshot()
        world.cloud.create("later", spec={"x": 1})
        for number in range(2, 50):
            world.cloud.set("b", spec={"x": number})
        for name in "ab":
            world.robot.set_status(name, {"phase": "DONE"})
        world.remove("d")
        with world.down(not running):
            world.cloud.restore(backup, overtaken_by=overtaken_by)
        world.pass_time(90)
        assert [original(world, name)["status"] for name in "ab"] == [{"phase": "DONE"}] * 2
        assert (copy(world, "b")["spec"], set(world.robot.objects())) == ({"x": 1}, {"a", "b", "d", "later"})
        assert holds(world) == [("Restored", 1)]
        before = world.status()["holds"][0]["id"]
        restart(world, kill=True)
        assert (holds(world), world.status()["holds"][0]["id"]) == ([("Restored", 1)], before)
        # Another object: its copy would be replaced, so that is held too. What is new is copied.
        world.cloud.create("later", spec={"x": 3})
        world.add("new", seconds=60)
        assert (copy(world, "later")["spec"], "new" in world.robot.objects()) == ({"x": 1}, True)


@pytest.mark.parametrize("running", [True, False], ids=["running", "stopped"])
def test_S8_3_a_copy_that_went_with_its_status_is_made_again_from_what_the_restored_cloud_has(running: bool) -> None:
    with synced() as world:
        world.report("a", {"n": 1})
        backup = world.cloud.snapshot()
        world.report("a", {"n": 2})
        with world.down(not running):
            world.cloud.restore(backup)
            world.robot.delete("a")
        world.pass_time(90)
        assert copy(world)["status"] == original(world)["status"]


@pytest.mark.parametrize("running", [True, False], ids=["running", "stopped"])
def test_S8_3_a_restored_cloud_gets_the_robots_own_objects_again(running: bool) -> None:
    """There the cloud is downstream: it holds nothing back, and copies are made again."""
    with World(kinds={"goals": {"source": "robot"}}) as world:
        world.begin("a", "b", "dropped", source="robot")
        world.cloud.set_status("a", {"phase": "RUNNING"})
        world.settle()
        backup = world.cloud.snapshot()
        world.robot.set("a", spec={"x": 2})
        world.robot.create("made", spec={"x": 1})
        world.robot.delete("dropped")
        world.settle()
        for name in ("made", "b"):
            world.cloud.set_status(name, {"phase": "DONE"})
        world.settle()
        with world.down(not running):
            world.cloud.restore(backup)
        world.pass_time(120)
        found = world.cloud.objects()
        assert set(found) == {"a", "b", "made"}
        assert (found["a"]["spec"], found["a"]["status"]) == ({"x": 2}, {"phase": "RUNNING"})
        assert (found["made"]["spec"], found["made"]["status"]) == ({"x": 1}, {"phase": "DONE"})
        # The copy that had no status at the time of the backup takes none away.
        assert world.robot.objects()["b"]["status"] == {"phase": "DONE"}
        assert (holds(world), world.status()["health"]) == ([], "healthy")


@pytest.mark.parametrize("overtakes", [False, True])
@pytest.mark.parametrize("source", SOURCES)
def test_S8_3_a_restore_is_noticed_by_an_agent_that_was_killed_during_its_first_list(
    source: str, overtakes: bool
) -> None:
    met = 0
    for steps in range(10, 90, 4):
        with World(steps, kinds={"goals": {"source": source}}) as world:
            up, down = roles(world, source)
            backup = up.snapshot()
            names = {f"g{number:02}" for number in range(12)}
            for name in names:
                up.create(name, spec={"x": 1})
            uids = {each["metadata"]["uid"] for each in up.objects().values()}
            world.begin()
            with world.down():
                world.lose_database()
            world.crash_after(steps)
            world.pass_time(5)
            world.crash()
            up.restore(backup)
            if overtakes:
                up.others_write(100)
            if world.disk.known(0.0).uids & uids:
                met += 1
                world.begin(seconds=120)
                assert set(down.objects()) == names
                assert holds(world) == [("Restored", 12)]
    assert met


def test_S8_3_a_restore_is_noticed_by_an_agent_that_was_killed_when_its_cursor_had_expired() -> None:
    for seed in range(4):
        with synced(seed) as world:
            backup = world.cloud.snapshot()
            world.add("b")
            world.inject("cloud", Reply(410, {"message": "too old resource version"}), verb="watch", part="/goals")
            watches = len(world.journal.asked("cloud", verb="watch", kind="goals"))
            while len(world.journal.asked("cloud", verb="watch", kind="goals")) == watches:
                world.pass_time(0.5)
            world.pass_time(0.5)
            with world.down(kill=True):
                world.cloud.restore(backup)
            world.pass_time(120)
            assert set(world.robot.objects()) == {"a", "b"}
            assert holds(world) == [("Restored", 1)]


def test_S8_3_a_restore_that_cost_no_copy_leaves_no_hold_behind(world: World) -> None:
    world.add("b")
    backup = world.cloud.snapshot()
    for number in range(2, 32):
        world.cloud.set("a", spec={"x": number})
    world.settle()
    world.cloud.restore(backup)
    world.pass_time(120)
    assert (copy(world)["spec"], holds(world)) == ({"x": 1}, [])
    world.remove("b")
    assert (set(world.robot.objects()), world.status()["health"]) == ({"a"}, "healthy")


@pytest.mark.parametrize("kill", [False, True], ids=["running", "killed"])
def test_S8_3_a_hold_ends_when_nothing_is_left_to_hold(world: World, kill: bool) -> None:
    world.add("b")
    backup = world.cloud.snapshot()
    world.add("lost", "too")
    world.cloud.restore(backup)
    world.pass_time(120)
    assert holds(world) == [("Restored", 2)]
    if kill:
        restart(world, kill=True)
        assert holds(world) == [("Restored", 2)]
    world.robot.delete("lost")  # somebody decides one by one
    world.settle()
    assert holds(world) == [("Restored", 1)]
    world.remove("b")  # meanwhile every deletion waits (S5.5c)
    assert holds(world) == [("Restored", 2)]
    assert world.journal.asked(verb="delete", kind="goals") == []
    for name in ("too", "b"):
        world.robot.delete(name)
        world.settle()
    assert holds(world) == []
    world.remove("a")
    assert (world.robot.objects(), world.status()["health"]) == ({}, "healthy")


def test_S8_3_a_crash_before_a_restored_cloud_was_listed_makes_nothing_look_newer_than_it() -> None:
    for seed in range(4, 16):
        with synced(seed) as world:
            backup = world.cloud.snapshot()
            world.cloud.create("later", spec={"x": 1})
            for number in (2, 3, 4):
                world.cloud.set("a", spec={"x": number})
            world.settle()
            with world.down():
                world.cloud.restore(backup)
                refuse_lists(world, Fate.LOST)
            world.pass_time(seed)
            with world.down(kill=True):
                world.mend("cloud")
            world.pass_time(120)
            assert (copy(world)["spec"], holds(world)) == ({"x": 1}, [("Restored", 1)]), seed
            assert set(world.robot.objects()) == {"a", "later"}


@pytest.mark.fault_04
@pytest.mark.parametrize("passed", [True, False], ids=["passed", "behind"])
def test_S8_4_what_the_robots_cluster_lost_is_applied_again(passed: bool) -> None:
    """Behind: its revision tells. Passed: only the boot does, for by now the revision is beyond what was known."""
    with World() as world:
        world.begin("a", "b", "c", "d", "quiet")
        for name in "abcd":
            world.robot.set_status(name, {"phase": "RUNNING"})
        world.settle()
        backup = world.robot.snapshot()
        world.cloud.set("a", spec={"x": 2})
        world.cloud.delete("b")
        world.add("later")
        for name in ("c", "later", "quiet"):
            world.robot.set_status(name, {"phase": "DONE"})
        world.settle()
        with world.down():
            world.robot.restore(backup, overtaken_by=40 if passed else -1)
            world.boots += 1
        world.pass_time(120)
        assert set(world.robot.objects()) == set(world.cloud.objects()) == {"a", "c", "d", "quiet", "later"}
        assert copy(world)["spec"] == {"x": 2}
        # A copy that is made again goes on where it was, and that another has no status yet blanks nothing.
        assert copy(world, "later")["status"] == {"phase": "DONE"}
        assert original(world, "quiet")["status"] == {"phase": "DONE"}
        assert original(world, "c")["status"] == {"phase": "RUNNING"}, "its controller goes on from there"
        assert (holds(world), world.status()["health"]) == ([], "healthy")


def test_S8_2_S8_4_a_restored_robot_that_has_overtaken_the_cursor_is_noticed_without_a_boot(world: World) -> None:
    world.add("b", "c", "gone")
    backup = world.robot.snapshot()
    for number in range(2, 52):
        world.cloud.set("b", spec={"x": number})
    world.cloud.create("later", spec={"x": 1})
    world.remove("gone")
    world.cut("robot", seconds=5)
    world.robot.restore(backup, overtaken_by=40)
    world.robot.set("c", spec={"x": 7})
    world.robot.set_status("c", {"phase": "MEANWHILE"})
    world.heal("robot", seconds=120)
    assert original(world, "c")["status"] == {"phase": "MEANWHILE"}
    assert {name: each["spec"]["x"] for name, each in world.robot.objects().items()} == {
        "a": 1,
        "b": 51,
        "c": 1,
        "later": 1,
    }
    assert holds(world) == []


@pytest.mark.parametrize("source", SOURCES)
def test_S8_4_an_ordinary_boot_lists_the_robot_and_changes_nothing_and_holds_no_deletion(source: str) -> None:
    with scene(goals={"source": source}) as world:
        up, down = roles(world, source)
        world.begin("a", "b", source=source)
        for name in "ab":
            down.set_status(name, {"phase": "RUNNING"})
        world.settle()
        with world.down():
            since, before = world.clock.now, changes(world)
            world.boots += 1
        world.settle()
        assert changes(world) == before
        assert [len(full_lists(world, side, since)) for side in ("cloud", "robot")] == [0, 1]
        with world.down():
            up.delete("a")
            world.boots += 1
        world.settle()
        assert (set(down.objects()), holds(world)) == ({"b"}, [])


@pytest.mark.parametrize("boots", [0, 1])
@pytest.mark.parametrize("again", [0, 2])
def test_S8_4_S5_5a_what_went_with_the_robots_crd_is_held_although_the_robot_boots_meanwhile(
    boots: int, again: int
) -> None:
    with scene(goals={"source": "robot"}) as world:
        world.begin("a", "b", "c", source="robot")
        with world.down(kill=True):
            world.robot.drop_kind()
            world.boots += boots
            world.robot.apply(crd(GROUP, source="robot"))
            for name in "ab"[:again]:
                world.robot.create(name, spec={"x": 2})
        world.pass_time(120)
        assert (set(world.cloud.objects()), holds(world)) == ({"a", "b", "c"}, [("KindMissing", 3 - again)])
        release(world)
        world.pass_time(30)
        assert (set(world.cloud.objects()), holds(world)) == ({*"ab"[:again]}, [])


@pytest.mark.parametrize("back", [False, True], ids=["", "and-back"])
@pytest.mark.parametrize("restarted", [False, True], ids=["running", "killed"])
def test_S8_3_a_restore_is_noticed_although_objects_are_selected_in_another_way_since(
    restarted: bool, back: bool
) -> None:
    """The annotations are edited while the link is cut, and the cloud is restored meanwhile."""
    with scene() as world:
        world.start()
        backup = world.cloud.snapshot()
        world.add("a", labels={ROBOT_LABEL: ROBOT})
        world.cut("cloud", seconds=10)
        define(world, "robot", filtered="true", seconds=10)
        if restarted:
            restart(world, kill=True, seconds=10)
        if back:
            define(world, "robot", seconds=10)
        world.cloud.restore(backup)
        world.heal("cloud", seconds=120)
        assert (holds(world), set(world.robot.objects())) == ([("Restored", 1)], {"a"})


def test_S8_3_a_restore_that_one_kind_notices_holds_the_deletions_of_every_kind() -> None:
    """The edited kind has nothing left that the restored cloud could contradict: it has come further since."""
    with scene(goals={}, tasks={}) as world:
        world.start()
        backup = world.cloud.snapshot()
        world.cloud.create("b", kind="tasks", spec={"x": 1}, labels={ROBOT_LABEL: ROBOT})
        world.add("a")
        world.cut("cloud")
        define(world, "robot", plural="tasks", filtered="true", seconds=20)
        world.cloud.restore(backup, overtaken_by=40)
        world.heal("cloud", seconds=120)
        assert {"a"} == set(world.robot.objects()), "its deletion is held, too"
        assert set(world.robot.objects("tasks")) == {"b"}


@pytest.mark.parametrize("reconnected", [False, True], ids=["at once", "reconnected"])
def test_S8_3_a_kind_that_was_stopped_during_a_restore_is_listed_when_it_comes_back(reconnected: bool) -> None:
    """What the others see of the new history confirms nothing that it knows of the former one."""
    with scene(goals={}, tasks={}) as world:
        world.start()
        world.cloud.create("a", spec={"x": 1})
        world.add("c", kind="tasks")
        backup = world.cloud.snapshot()
        world.cloud.create("b", kind="tasks", spec={"x": 1})
        world.cloud.set("c", kind="tasks", spec={"x": 2})
        world.edit("a", spec={"x": 2})
        define(world, "robot", plural="tasks", source=None, seconds=30)
        world.cut("cloud")
        world.cloud.restore(backup, overtaken_by=40)
        world.heal("cloud", seconds=60)
        world.edit("a", spec={"x": 8}, seconds=10)
        if reconnected:
            world.cut("cloud", seconds=5)
            world.heal("cloud", seconds=10)
        define(world, "robot", plural="tasks", seconds=120)
        assert ("Restored", 1) in holds(world)
        assert {name: each["spec"]["x"] for name, each in world.robot.objects("tasks").items()} == {"b": 1, "c": 1}


def test_S8_3_no_status_is_a_dead_letter_because_the_restored_cloud_was_not_listed_yet() -> None:
    with synced() as world:
        world.inject("cloud", FORBIDDEN, verb="patch", part="/goals/", times=math.inf)
        world.report("a", {"phase": "ONE"})
        backup = world.cloud.snapshot()
        for number in range(9):
            world.cloud.set("a", spec={"x": number})
        world.settle()
        world.cloud.restore(backup)
        lists = refuse_lists(world)
        world.report("a", {"phase": "TWO"}, seconds=60)
        assert world.status()["outbox"]["deadLetters"] == 0
        world.weather[Side.CLOUD].rules.remove(lists)
        world.settle()
        assert original(world)["status"] == {"phase": "TWO"}


def test_S8_3_what_was_listed_after_a_restore_does_not_prove_that_there_was_none() -> None:
    with World(kinds={"goals": {"source": "robot"}}) as world:
        world.begin("a", source="robot")
        backup = world.robot.snapshot()
        world.add("b", source="robot", seconds=1)
        assert set(world.cloud.objects()) == {"a", "b"}
        world.crash()
        world.robot.restore(backup)
        world.robot.apply(crd(GROUP, plural="flips", source="cloud"))  # listed first: it is the newest object
        world.start()
        world.pass_time(60)
        assert set(world.cloud.objects()) == {"a", "b"}
        assert holds(world) == [("Restored", 1)]
