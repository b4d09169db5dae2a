"""C7 and S6.3 on virtual time: what is stored of a kind when one edit of its policy follows another."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from crsyncer.core.model import Side
from crsyncer.ports import Reply
from tests.model.scenes.policies import EDGE, apply_policy, delete_policy, edit_policy, serve_policies, with_policy
from tests.model.scenes.projected import FLEET, JOB_KIND, JOBS, NONES, PROJECTION, TASKS, projected, tasks
from tests.model.simulation.answers import FORBIDDEN, GARBAGE, NO_LISTS, invalid
from tests.model.simulation.plane import GROUP
from tests.model.simulation.scene import SOURCES, restart, roles
from tests.model.simulation.weather import Fate
from tests.model.simulation.world import World
from tests.system.bed import crd

BLOCKING: dict[str, Any] = {"deletion": {"mode": "blocking"}}


def refuse_lists(world: World, *sides: str) -> None:
    """Objects cannot be listed for ten seconds: a kind that begins anew has no cursor until then."""
    for side in sides or ("cloud", "robot"):
        part = "/tasks" if side == "cloud" else "/goals"
        world.inject(side, Reply(503, {}), verb="list", part=part, times=math.inf, seconds=10)


def test_C7_C6_3_finalizers_go_also_where_one_edit_follows_another() -> None:
    with tasks("cloud", "a", **BLOCKING) as world:
        refuse_lists(world)
        edit_policy(world, projection=PROJECTION, subtree="part", **BLOCKING, seconds=5)
        edit_policy(world, projection=JOBS, **BLOCKING, seconds=120)
        assert not world.cloud.objects(TASKS)["a"]["metadata"].get("finalizers")


def test_C7_S5_5a_the_crd_that_a_projection_named_before_is_known_when_it_names_it_again() -> None:
    with tasks("cloud", "a", "b") as world:
        world.inject("cloud", Reply(503, {}), verb="list", part="/jobs", times=math.inf, seconds=10)
        edit_policy(world, projection=JOBS, seconds=5)
        with world.down(kill=True):
            world.cloud.delete_kind(TASKS)
            assert world.cloud.sweep("tasks", group=FLEET)
            world.cloud.apply(crd(FLEET, plural="tasks", source=None))
            apply_policy(world.robot, projection=PROJECTION)
        world.pass_time(600)
        assert set(world.robot.objects()) == {"a", "b"}
        assert [each["reason"] for each in world.status()["holds"]] == ["KindMissing"]


def test_C7_C6_2_a_finalizer_is_looked_for_with_two_requests_where_its_object_never_was() -> None:
    filtered: dict[str, Any] = {"filter": {"byRobotName": True}, **BLOCKING}
    with tasks("cloud", **filtered) as world:
        for name in "abcde":
            world.cloud.create(name, kind=TASKS, spec={"x": 1}, labels={"cloudrobotics.com/robot-name": "robot-1"})
            world.cloud.create(name, kind=JOB_KIND, spec={"x": 2}, labels={"cloudrobotics.com/robot-name": "robot-2"})
        world.pass_time(60)
        edit_policy(world, projection=JOBS, **filtered, seconds=120)
        assert [each["metadata"].get("finalizers") for each in world.cloud.objects(TASKS).values()] == [None] * 5
        assert len(world.journal.asked("cloud", verb="patch", kind="jobs")) <= 2 * 5


def test_S6_3_a_status_that_waits_is_of_the_subtree_that_it_was_read_for() -> None:
    with projected() as world:
        world.begin("a", kind=TASKS, labels={"cloudrobotics.com/robot-name": "robot-1"})
        world.cut("cloud")
        world.report("a", {"n": 1, "part": {"n": 1}}, seconds=5)
        refuse_lists(world, "robot")
        edit_policy(world, projection=PROJECTION, filter={"byRobotName": True}, seconds=2)
        apply_policy(world.robot, projection=PROJECTION, filter={"byRobotName": True}, subtree="part")
        world.robot.delete("a")
        world.pass_time(2)
        world.heal("cloud", seconds=120)
        found = [write.after["status"] for write in world.writes if write.verb == "status" and write.after is not None]
        assert {"part": {"n": 1, "part": {"n": 1}}} not in found


@pytest.mark.parametrize("running", [True, False])
@pytest.mark.parametrize(
    ("subtree", "status", "left"),
    [("part", {"n": 2}, {"n": 1}), ("part", None, {"n": 1, "part": {"n": 1}}), (None, None, None)],
)
def test_S4_3_S4_5_what_goes_from_a_status_as_its_part_is_named_goes_upstream_too(
    subtree: str | None, status: Any, left: Any, running: bool
) -> None:
    with with_policy(subtree=None if subtree else "part") as world:
        world.begin("a")
        world.report("a", {"n": 1, "part": {"n": 1}})
        with world.down(not running):
            apply_policy(world.robot, subtree=subtree)
            world.robot.set_status("a", status)
        world.settle()
        assert world.cloud.objects()["a"].get("status") == left


@pytest.mark.parametrize("subtree", ["part", None])
@pytest.mark.parametrize("seconds", [0.0, 2.0, 31.0])
def test_S4_1_S10_an_older_status_that_lands_when_another_part_goes_up_is_answered(
    subtree: str | None, seconds: float
) -> None:
    with with_policy(subtree=None if subtree else "part") as world:
        world.begin("a")
        world.inject("cloud", Fate.LATE, verb="patch", part="/goals/a/status")
        world.report("a", {"n": 1, "part": {"n": 1}}, seconds=1)
        world.report("a", {"n": 2, "part": {"n": 2}}, seconds=seconds)
        edit_policy(world, subtree=subtree, seconds=120)
        assert any(write.late for write in world.writes)
        assert world.cloud.objects()["a"]["status"]["part"] == {"n": 2}
        world.cloud.set_status("a", {"part": {"n": 8}})  # which may be what was sent, and landed late
        world.pass_time(60)
        made = len(world.writes)
        world.cloud.set_status("a", {"part": {"n": 9}})
        world.pass_time(60)
        assert len(world.writes) == made  # that is answered once: it is somebody else's (S4.8)


def test_C6_3_C7_a_finalizer_is_looked_for_where_it_was_put_whatever_the_kind_has_become() -> None:
    with projected(source=None, spec=BLOCKING | {"specSource": "cloud"}) as world:
        world.begin("a", kind=TASKS)
        world.cut("cloud")
        edit_policy(world, projection=PROJECTION, specSource="robot", **BLOCKING, seconds=30)
        world.add("b", source="robot", seconds=30)
        delete_policy(world.robot)
        world.pass_time(30)
        world.heal("cloud", seconds=120)
        assert not world.cloud.objects(TASKS)["a"]["metadata"].get("finalizers")
        assert not world.robot.objects()["b"]["metadata"].get("finalizers")


@contextmanager
def reported(how: str) -> Iterator[World]:
    """The copy of a, a task of the cloud, reports that it is done at the moment when tasks come to be jobs."""
    with tasks("robot", "a") as world:
        if how == "the cloud is away":
            world.cut("cloud", seconds=60)
        elif how == "the agent is stopped":
            world.stop()
        elif how == "the watch is late":
            world.weather[Side.CLOUD].lag = 5.0
        elif how == "all deletions are held":
            world.order("hold", resource="goals")
        world.cloud.set_status("a", {"n": 1}, kind=TASKS)
        apply_policy(world.robot, projection=JOBS)
        yield world


@pytest.mark.parametrize(
    "how", ["all is well", "the cloud is away", "the agent is stopped", "the watch is late", "all deletions are held"]
)
def test_C1_7_S5_2_the_last_status_of_a_copy_goes_upstream_before_it_is_made_in_its_new_place(how: str) -> None:
    with reported(how) as world:
        if how == "the agent is stopped":
            world.start()
        world.pass_time(60)
        world.heal("cloud", seconds=60)
        assert world.robot.objects()["a"]["status"] == {"n": 1}
        assert world.cloud.objects(JOB_KIND)["a"]["status"] == {"n": 1}
        made = [str(write) for write in world.writes if write.name == "a" and write.before != write.after]
        gone = "cloud: delete a (200)"
        assert [each for each in made[1:] if each != gone] == [
            "robot: status a (200)",
            "cloud: create a (201)",
            "cloud: status a (200)",
        ]
        assert (gone in made) is (how != "all deletions are held")
        world.cloud.set_status("a", {"n": 2}, kind=JOB_KIND)
        if how == "all deletions are held":
            world.cloud.set_status("a", {"n": 3}, kind=TASKS)  # that is nobody's copy any more
        world.pass_time(60)
        restart(world, seconds=60)
        assert world.robot.objects()["a"]["status"] == {"n": 2}


def test_C1_7_S4_1_the_last_status_of_a_copy_goes_upstream_also_where_somebody_else_has_its_name_in_its_new_place() -> (
    None
):
    with reported("the agent is stopped") as world:
        world.cloud.create("a", kind=JOB_KIND, spec={"x": "own"})
        world.begin(seconds=60)
        assert world.robot.objects()["a"]["status"] == {"n": 1}
        assert (world.cloud.objects(TASKS), world.cloud.objects(JOB_KIND)["a"]["spec"]) == ({}, {"x": "own"})


@pytest.mark.parametrize("answer", [FORBIDDEN, Reply(404, {}, "404 page not found")])
def test_C1_7_a_former_place_that_cannot_be_read_keeps_no_copy_from_its_new_place(answer: Reply) -> None:
    with reported("the agent is stopped") as world:
        world.inject("cloud", answer, verb="list", part="/tasks", times=math.inf)
        world.begin(seconds=60)
        assert set(world.cloud.objects(JOB_KIND)) == {"a"}


def test_C1_7_a_former_place_is_asked_for_again_where_no_answer_says_what_is_there() -> None:
    with reported("the agent is stopped") as world:
        world.inject("cloud", Reply(503, {}), verb="list", part="/tasks", times=math.inf, seconds=60)
        world.begin(seconds=50)
        assert set(world.cloud.objects(JOB_KIND)) == set()
        world.pass_time(90)
        assert world.cloud.objects(JOB_KIND)["a"]["status"] == {"n": 1}


@pytest.mark.parametrize("seconds", [0.0, 0.001, 0.01, 0.1])
def test_C1_7_copies_go_also_from_a_place_that_was_left_again_before_it_was_listed(seconds: float) -> None:
    with tasks("robot", "a") as world:
        for projection in (NONES, PROJECTION, JOBS):
            apply_policy(world.robot, projection=projection | {"scope": "Namespaced"})  # without a look at discovery
            world.pass_time(seconds)
        world.pass_time(60)
        assert (set(world.cloud.objects(TASKS)), set(world.cloud.objects(JOB_KIND))) == (set(), {"a"})


def test_C1_7_a_copy_goes_also_from_its_former_place_that_was_on_its_way_at_the_edit() -> None:
    with tasks("robot") as world:
        world.inject("cloud", Fate.REPLY_LOST, verb="create", part="/tasks")
        world.weather[Side.CLOUD].lag = 5.0
        world.add("a", source="robot", seconds=0.3)
        assert set(world.cloud.objects(TASKS)) == {"a"}
        edit_policy(world, projection=JOBS, seconds=120)
        assert (set(world.cloud.objects(TASKS)), set(world.cloud.objects(JOB_KIND))) == (set(), {"a"})


@pytest.mark.parametrize("answer", NO_LISTS)
def test_C1_7_C7_an_answer_that_is_no_list_does_not_show_that_no_copy_is_left(answer: Reply) -> None:
    with tasks("robot", "a") as world:
        assert set(world.cloud.objects(TASKS)) == {"a"}
        world.inject("cloud", answer, verb="list", part="/tasks", times=1)
        edit_policy(world, projection=JOBS, seconds=60)
        assert set(world.cloud.objects(TASKS)) == set()


def test_C1_7_C7_a_deletion_that_somebody_else_answers_is_asked_for_again() -> None:
    with tasks("robot", "a") as world:
        world.inject("cloud", GARBAGE, verb="delete", part="/tasks", times=2)
        edit_policy(world, projection=JOBS, seconds=120)
        assert set(world.cloud.objects(TASKS)) == set()


@pytest.mark.parametrize("source", SOURCES)
def test_C1_7_copies_are_left_behind_also_where_one_edit_follows_another(source: str) -> None:
    naming: dict[str, Any] = {"naming": {"name": "{name}-{hash}"}}
    with with_policy(kinds={"goals": {"source": source}}) as world:
        up, down = roles(world, source)
        up.create("on", spec={"x": 1}, labels={"tier": "edge"})
        world.begin("off", source=source)
        apply_policy(world.robot, **naming)
        edit_policy(world, filter=EDGE, **naming, seconds=120)
        assert set(down.objects()) == {"on"}
        assert world.troubles == []


def test_C1_7_an_edit_that_a_crash_cut_short_and_that_was_undone_deletes_no_copy() -> None:
    for moment in range(1, 40):
        with tasks("robot", "a") as world:
            made = world.cloud.objects(TASKS)["a"]["metadata"]["uid"]
            world.crash_after(moment)
            edit_policy(world, projection=NONES, seconds=60)
            with world.down(kill=True):
                apply_policy(world.robot, projection=PROJECTION)
            world.pass_time(60)
            assert world.cloud.objects(TASKS)["a"]["metadata"]["uid"] == made, moment


@pytest.mark.parametrize("answer", [FORBIDDEN, Reply(500, {"message": "a webhook"}), invalid("not that one")], ids=str)
def test_S9_5_C1_7_a_copy_that_cannot_be_deleted_where_it_was_keeps_no_other_one_there(answer: Reply) -> None:
    with tasks("robot", "a", "b", "c") as world:
        world.inject("cloud", answer, verb="delete", part="/tasks/a", times=math.inf)
        edit_policy(world, projection=JOBS, seconds=60)
        assert set(world.cloud.objects(TASKS)) == {"a"}
        world.mend("cloud")
        world.pass_time(90)
        assert world.cloud.objects(TASKS) == {}


@pytest.mark.parametrize("is_told", [True, False])
def test_C1_7_copies_without_marks_go_from_their_former_place_as_the_first_policy_comes(is_told: bool) -> None:
    with World(kinds={"goals": {"source": "robot"}}) as world:
        world.cloud.apply(crd(FLEET, plural="jobs", source=None))
        serve_policies(world.robot)
        world.begin("a", "b", source="robot")
        if not is_told:
            world.inject("cloud", FORBIDDEN, verb="list", part="/goals", times=math.inf)
        world.cloud.create("local", spec={})
        edit_policy(world, projection=JOBS, seconds=60)
        assert (set(world.cloud.objects()), set(world.cloud.objects(JOB_KIND))) == ({"local"}, {"a", "b"})


@pytest.mark.parametrize("answer", [FORBIDDEN, Reply(500, {"message": "a webhook"}), None], ids=str)
def test_S1_8_C1_7_a_copy_that_cannot_be_deleted_where_it_was_is_shown_until_it_is_gone(answer: Reply | None) -> None:
    """None: a finalizer of somebody else keeps it."""
    with tasks("robot", "a", "b") as world:
        if answer is None:
            world.cloud.finalize("a", "example.com/mine", kind=TASKS)
            world.settle()
        else:
            world.inject("cloud", answer, verb="delete", part="/tasks/a", times=math.inf)
        edit_policy(world, projection=JOBS, seconds=30)
        early = world.status()["reasons"]
        assert bool(early) is (answer is FORBIDDEN), "what heals by itself soon is no news"
        world.pass_time(700)
        restart(world, kill=True, seconds=700)
        [copy] = world.status()["formerCopies"]
        [reason] = world.status()["reasons"]
        health = "attention" if answer is FORBIDDEN else "degraded"
        assert (reason["code"], world.status()["health"]) == ("CopyNotDeleted", health)
        assert (copy["resource"], copy["side"], copy["kind"]) == (f"goals.{GROUP}", "cloud", TASKS)
        why = "example.com/mine" if answer is None else answer.body["message"]
        assert f"in the cloud, {TASKS} default/a, is not deleted: " in reason["message"]
        assert why in reason["message"]
        explained = world.order("explain", resource="goals", name="a")
        assert (explained["state"], explained["summary"]) == (
            "waiting",
            f"its former copy in the cloud, {TASKS} default/a, is not deleted: {copy['message']}",
        )
        assert world.order("explain", resource="goals", name="b")["state"] == "in-sync"
        world.cloud.finalize("a", kind=TASKS) if answer is None else world.mend("cloud")
        world.pass_time(90)
        assert (world.status()["formerCopies"], world.status()["health"]) == ([], "healthy")
