"""Hazards: short histories, written by hand, in each of which something once went wrong, or easily would."""

import pytest

from crsyncer.core.model import Side
from crsyncer.ports import Reply
from tests.model.histories.history import History, Step
from tests.model.histories.machine import Machine
from tests.model.simulation.scene import changes, copy, original, restart, scene, synced
from tests.model.simulation.weather import Fate
from tests.model.simulation.world import World

UNAUTHORIZED = Reply(401, {"message": "Unauthorized"})


def test_S9_2_a_first_watch_that_is_refused_leaves_what_is_absent_known() -> None:
    with scene() as world:
        world.inject("robot", UNAUTHORIZED, verb="watch", part="/goals", times=2)
        world.begin(seconds=30)
        world.add("a")
        assert set(world.robot.objects()) == {"a"}


def test_S8_3_a_restore_that_loses_what_no_event_has_told_of_is_noticed(world: World) -> None:
    world.weather[Side.CLOUD].lag = 20.0
    backup = world.cloud.snapshot()
    world.report("a", {"phase": "DONE"}, seconds=1)
    assert original(world)["status"] == {"phase": "DONE"}
    world.cloud.restore(backup)
    world.heal("cloud", seconds=30)
    world.settle()
    assert original(world)["status"] == {"phase": "DONE"}


def test_S5_2_a_copy_whose_end_is_heard_of_before_the_answer_that_made_it_is_made_again(world: World) -> None:
    world.cloud.create("b", spec={"x": 1})
    for _ in range(2000):
        world.pass_time(0.001)
        if "b" in world.robot.objects():
            break
    world.robot.delete("b")
    world.settle()
    assert set(world.robot.objects()) == {"a", "b"}


@pytest.mark.parametrize("side", ["cloud", "robot"])
def test_S6_2_a_crash_in_the_middle_of_a_deletion_that_is_told_twice_does_not_undo_it(side: str) -> None:
    for steps in range(1, 40):
        with synced(steps) as world:
            world.weather[Side(side)].repeats = 5
            world.crash_after(steps)
            (world.cloud if side == "cloud" else world.robot).delete("a")
            world.pass_time(1)
            restart(world, kill=True, seconds=20)
            world.settle()
            assert set(world.robot.objects()) == set(world.cloud.objects()) == (set() if side == "cloud" else {"a"})


def test_S9_2_a_cursor_that_is_too_old_is_listed_anew_and_what_vanished_meanwhile_goes(world: World) -> None:
    with world.down():
        world.cloud.delete("a")
        world.cloud.create("b", spec={"x": 1})
        world.cloud.restart()
    world.settle()
    assert set(world.robot.objects()) == {"b"}


def test_S6_3_an_ack_that_comes_after_a_newer_status_does_not_remove_it() -> None:
    for seed in range(12):
        with synced(seed) as world:
            world.robot.set_status("a", {"n": 1})
            for _ in range(3000):
                world.pass_time(0.001)
                if "status" in original(world):
                    break
            world.robot.set_status("a", {"n": 2})  # the acknowledgement of the first is on its way
            world.settle()
            assert original(world)["status"] == {"n": 2}


def test_S5_nothing_is_deleted_while_the_cloud_has_not_been_seen(world: World) -> None:
    with world.down(kill=True):
        world.lose_database()
        world.cut("cloud")
    world.pass_time(3600)
    assert set(world.robot.objects()) == {"a"}


def test_S3_3_a_finalizer_of_a_copy_survives_a_change_upstream(world: World) -> None:
    world.robot.finalize("a", "example.com/wait")
    world.edit("a", spec={"x": 2})
    assert copy(world)["spec"] == {"x": 2}
    assert copy(world)["metadata"]["finalizers"] == ["example.com/wait"]


def test_S5_3_copies_of_other_robots_in_the_cloud_are_neither_changed_nor_deleted() -> None:
    with scene(goals={"source": "robot"}) as world:
        theirs = {"crsyncer.cloudrobotics.com/upstream-uid": "u", "crsyncer.cloudrobotics.com/robot": "robot-2"}
        for name in ("a", "b"):
            world.cloud.create(name, spec={"x": 9}, annotations=theirs)
        world.begin("a", "c", source="robot", seconds=600)
        assert changes(world) == ["cloud: create c (201)"]


def test_S4_4_a_controller_that_is_quicker_than_the_seed_wins() -> None:
    for seed in range(8):
        with scene(seed) as world:
            world.start()
            world.cloud.create("a", spec={"x": 1})
            world.cloud.set_status("a", {"phase": "OLD"})
            for _ in range(3000):
                world.pass_time(0.001)
                if "a" in world.robot.objects():
                    break
            world.report("a", {"phase": "NEW"})
            assert (copy(world)["status"], original(world)["status"]) == ({"phase": "NEW"}, {"phase": "NEW"})


def test_S5_3_an_orphan_by_the_name_of_what_a_silent_watch_has_not_told_of_is_adopted(world: World) -> None:
    world.weather[Side.CLOUD].lag = 20.0
    world.cloud.create("b", spec={"x": 1})
    world.robot.create("b", spec={"x": 1})
    uid = world.robot.objects()["b"]["metadata"]["uid"]
    world.settle()
    assert world.robot.objects()["b"]["metadata"]["uid"] == uid


def test_S5_4_a_late_deletion_of_an_orphan_does_not_meet_the_copy_that_it_has_become() -> None:
    for seed in range(20):
        with synced(seed) as world:
            world.inject("robot", Fate.LATE, verb="delete")
            world.robot.create("b", spec={"x": 1})
            uid = world.robot.objects()["b"]["metadata"]["uid"]
            world.pass_time(29.0)  # it is still waited for, and lands 20 s after that
            world.add("b", seconds=60.0)
            world.settle()
            assert world.robot.objects()["b"]["metadata"]["uid"] == uid


def test_S9_4_what_happened_before_an_acknowledged_status_is_not_taken_for_known_by_a_digest(world: World) -> None:
    for name in "bcdef":
        world.cloud.create(name, spec={"x": 1})
    world.cloud.finalize("b", "example.com/kept")
    world.settle()
    world.weather[Side.CLOUD].lag = 20.0
    world.cloud.set("a", spec={"x": 2})
    world.cloud.delete("b")
    for name in "ab":
        world.robot.set_status(name, {"phase": "DONE"})
    world.pass_time(5)
    assert [world.cloud.objects()[name]["status"] for name in "ab"] == [{"phase": "DONE"}] * 2
    world.cut("cloud", seconds=60)
    world.cloud.compact()
    world.heal("cloud")
    assert set(world.robot.objects()) == {"a", "c", "d", "e", "f"}
    assert copy(world)["spec"] == {"x": 2}


def test_S5_5_a_list_that_is_put_off_is_asked_for_again(world: World) -> None:
    world.inject("cloud", Reply(429, {"message": "slow"}, retry_after=5.0), verb="list", part="/goals", times=3)
    world.cloud.delete("a")
    world.cloud.create("a", spec={"x": 2})
    world.robot.create("orphan", spec={"x": 1})
    world.settle()
    assert set(world.robot.objects()) == {"a"}
    assert copy(world)["spec"] == {"x": 2}


def test_S8_3_a_list_that_is_older_than_what_is_known_is_of_another_history() -> None:
    for seed in range(12):
        with synced(seed) as world:
            world.cloud.restart()
            world.pass_time(0.1 + seed / 4)  # between the question for the revision and the list that follows
            world.cloud.rebuild(revision=10)
            world.pass_time(300)
            assert set(world.robot.objects()) == {"a"}
            assert (world.status()["health"], len(world.status()["holds"])) == ("attention", 1)


def test_S4_3_a_copy_that_lost_its_status_with_its_life_does_not_wipe_upstreams(world: World) -> None:
    world.report("a", {"phase": "DONE"})
    world.stop()
    annotations = copy(world)["metadata"]["annotations"]
    world.robot.delete("a")
    world.robot.create("a", spec={"x": 1}, annotations=annotations)
    world.begin()
    world.edit("a", spec={"x": 2})
    assert original(world)["status"] == {"phase": "DONE"}


@pytest.mark.parametrize("overtaken_by", [-1, 0, 1, 40])
def test_S8_3_what_a_restored_cloud_has_lost_is_held_and_what_it_has_changed_back_is_followed(
    world: World, overtaken_by: int
) -> None:
    backup = world.cloud.snapshot()
    world.cloud.create("b", spec={"x": 1})
    world.edit("a", spec={"x": 2})
    with world.down():
        world.cloud.restore(backup, overtaken_by=overtaken_by)
    world.pass_time(300)
    assert set(world.robot.objects()) == {"a", "b"}
    assert copy(world)["spec"] == {"x": 1}
    assert [hold["reason"] for hold in world.status()["holds"]] == ["Restored"]


def test_S4_5_a_subtree_leaves_its_neighbours_alone_and_stays_when_the_whole_status_goes() -> None:
    with scene(goals={"subtree": "robot"}) as world:
        world.start()
        world.cloud.create("a", spec={"x": 1})
        world.cloud.set_status("a", {"cloud": 1})
        world.settle()
        world.report("a", {"robot": {"n": 1}, "other": 1})
        world.report("a", None)
        assert original(world)["status"] == {"cloud": 1, "robot": {"n": 1}}


def test_S10_what_fails_is_tried_again(world: World) -> None:
    world.inject("robot", Reply(500, {"message": "storm"}), verb="create", times=4)
    world.add("b", seconds=120)
    assert set(world.robot.objects()) == {"a", "b"}
    world.inject("robot", Reply(500, {"message": "storm"}), verb="delete", times=4)
    world.remove("a", seconds=120)
    assert set(world.robot.objects()) == {"b"}


def test_S3_2_a_change_that_comes_while_the_last_one_is_written_follows_it(world: World) -> None:
    for number in range(2, 40):
        world.edit("a", spec={"x": number}, seconds=0.02)
    world.settle()
    assert copy(world)["spec"] == {"x": 39}


def test_S8_3_S5_5_a_robot_built_anew_that_has_the_same_names_replaces_nothing_unasked() -> None:
    with scene(goals={"source": "robot"}) as world:
        world.begin("a", source="robot")
        old = original(world)["metadata"]["uid"]
        world.robot.rebuild(revision=10)
        with world.down(kill=True):
            world.robot.create("a", spec={"x": 2})
        world.pass_time(30)
        world.order("release", id="robot")
        world.pass_time(120)
        assert original(world)["metadata"]["uid"] == old
        assert [h["reason"] for h in world.status()["holds"]] == ["Restored"]


def test_S6_1_a_copy_that_is_newer_than_what_a_crash_left_of_upstream_is_not_put_back() -> None:
    for steps in range(1, 30):
        with synced(steps) as world:
            world.crash_after(steps)
            world.edit("a", spec={"x": 2}, seconds=5)
            with world.down(kill=True):
                world.cut("cloud")
                before = copy(world)["spec"]["x"]
            world.pass_time(60)
            assert copy(world)["spec"]["x"] >= before
            world.heal("cloud")
            assert copy(world)["spec"] == {"x": 2}


def test_S5_5_a_job_that_has_its_answer_does_not_end_the_verification_that_another_waits_for() -> None:
    steps = (
        Step("wait", (1.0,)),
        Step("refuse_disk", (1,)),
        Step("delay", ("cloud", 0.0, 0.1)),
        Step("crowd", ("reports", 6)),
        Step("wait", (100.0,)),
        Step("clear_out", ("reports", 8, 0)),
        Step("kill"),
    )
    for seed in (151859, 151896, 151955):
        Machine(History(seed, ("reports",), steps)).run()
