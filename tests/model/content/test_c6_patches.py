"""C6.2 on virtual time: how finalizers are written, beside others who write them, too."""

import math

import pytest

from crsyncer.ports import Reply
from tests.model.scenes.blocking import LOCAL, MINE, block, blocking, codes, finalizer_rows, finalizers, patches
from tests.model.scenes.policies import delete_policy, edit_policy, serve_policies
from tests.model.scenes.projected import JOBS, TASKS, tasks
from tests.model.simulation.answers import FORBIDDEN, GARBAGE, UNAUTHORIZED, invalid
from tests.model.simulation.check import Checker, specs
from tests.model.simulation.journal import Request
from tests.model.simulation.life import AgentSettings
from tests.model.simulation.scene import roles, settle
from tests.model.simulation.weather import Fate, Rule
from tests.model.simulation.world import World

OTHERS = MINE.replace("robot-1", "robot-2")
FAILED_TEST = Reply(422, {"kind": "Status", "code": 422, "reason": "Invalid", "message": "the request has an error"})
FOR_GOOD = [FORBIDDEN, invalid("finalizers are forbidden here"), Reply(400, {"kind": "Status", "message": "bad"})]


def test_C6_2_adding_tests_uid_and_version_and_removing_tests_uid_and_place() -> None:
    with blocking() as world:
        world.start()
        made = world.cloud.create("a", spec={"x": 1}, finalizers=[LOCAL])["metadata"]
        world.settle()
        world.remove("a")
        added, removed = (each.call.body for each in patches(world))
        uid = {"op": "test", "path": "/metadata/uid", "value": made["uid"]}
        version = {"op": "test", "path": "/metadata/resourceVersion", "value": made["resourceVersion"]}
        assert added == [uid, version, {"op": "add", "path": "/metadata/finalizers/-", "value": MINE}]
        place = "/metadata/finalizers/1"
        assert removed == [uid, {"op": "test", "path": place, "value": MINE}, {"op": "remove", "path": place}]
        assert finalizers(world.cloud) == [LOCAL]


def test_C6_2_a_finalizer_that_was_not_put_there_is_not_looked_for_out_of_sight() -> None:
    with blocking(filtered="true") as world:
        world.begin()
        world.cloud.create("a", spec={"x": 1}, labels={"cloudrobotics.com/robot-name": "robot-1"})
        world.cloud.label("a", robot="robot-2")
        world.settle()
        assert len(world.journal.asked("cloud", verb="patch")) <= 1
        assert (finalizers(world.cloud), finalizer_rows(world)) == ([], [])


def test_C6_2_a_finalizer_that_an_edit_forestalls_is_not_looked_for_out_of_sight() -> None:
    blocked = {"mode": "blocking"}
    with tasks("cloud", deletion=blocked) as world:
        world.disk.commit_seconds = 10.0  # what says that it may be there has to be on it first
        world.add("a", kind=TASKS, seconds=0.5)
        assert patches(world) == []
        edit_policy(world, projection=JOBS, deletion=blocked)
        assert (patches(world), finalizer_rows(world)) == ([], [])


def test_S10_a_finalizer_for_what_has_gone_meanwhile_is_not_tried_again_and_again() -> None:
    with blocking() as world:
        block(world, mode="async")
        world.begin("a")
        world.weather[world.cloud.side].lag = 10.0  # the agent does not hear yet that the object is deleted
        world.cloud.delete("a")
        block(world)
        world.pass_time(9)
        assert 1 <= len(patches(world)) < 12
        world.settle()
        assert world.robot.objects() == {}


@pytest.mark.parametrize("source", ["cloud", "robot"])
def test_C6_3_an_object_that_left_our_sight_with_the_store_is_released(source: str) -> None:
    with blocking(source=source, filtered="true") as world:
        up, down = roles(world, source)
        world.begin("a", source=source, labels={"cloudrobotics.com/robot-name": "robot-1"}, finalizers=[LOCAL])
        down.finalize("a", LOCAL)
        with world.down():
            world.lose_database()
            up.label("a", robot="robot-2")
            world.cut(str(up.side))
        world.pass_time(10)
        world.report("a", {"n": 1}, source=source, seconds=10)
        world.mend(str(up.side))
        world.settle(seconds=60.0)
        made = len(patches(world))
        world.pass_time(300)
        assert (finalizers(up), len(patches(world))) == ([LOCAL], made)
        down.finalize("a")
        world.settle()
        assert (down.objects(), finalizer_rows(world), len(patches(world))) == ({}, [], made)


def test_C6_2_two_robots_and_a_foreign_writer_touch_only_their_own_finalizers() -> None:
    with World() as one, World(1, beside=one, settings=AgentSettings("robot-2")) as two:
        checkers = [Checker(each, specs(each.kinds)) for each in (one, two)]
        for world in (one, two):
            serve_policies(world.robot)
            block(world)
        one.cloud.create("a", spec={"x": 1}, finalizers=["one/a", "two/b"])
        one.start()
        two.start()
        settle(one, two)
        assert sorted(finalizers(one.cloud)) == sorted(["one/a", "two/b", MINE, OTHERS])
        for world in (one, two):
            world.robot.finalize("a", LOCAL)
        settle(one, two)

        def meddle(request: Request) -> None:
            """A foreign writer changes the list between what an agent saw and what it sends."""
            found = finalizers(one.cloud)
            if request in patches(one, op="remove") and "new/c" not in found:
                one.cloud.finalize("a", "new/c", *[each for each in found if each not in ("one/a", OTHERS)], OTHERS)

        one.journal.listeners.append(meddle)
        one.cloud.delete("a")
        settle(one, two)
        one.robot.finalize("a")
        settle(one, two)
        assert finalizers(one.cloud) == ["new/c", "two/b", OTHERS]
        assert "a" not in one.robot.objects()
        two.robot.finalize("a")
        settle(one, two)
        assert finalizers(one.cloud) == ["new/c", "two/b"]
        assert [found for each in checkers for found in each.violations] == []


def test_C6_2_a_foreign_writer_that_never_rests_loses_nothing_and_stops_nobody() -> None:
    with blocking() as world:
        world.begin("a", finalizers=["one/a"])
        world.cloud.delete("a")
        for number in range(20):
            world.cloud.finalize("a", f"new/{number}", *finalizers(world.cloud)[:2])
            world.pass_time(0.05)
        world.settle()
        assert finalizers(world.cloud) == ["new/19", "new/18", "new/17"]


def test_C6_2_duplicates_that_somebody_made_go_as_well() -> None:
    with blocking(filtered="true") as world:
        world.start()
        for name in ("a", "b"):
            world.add(name, labels={"cloudrobotics.com/robot-name": "robot-1"})
            world.cloud.finalize(name, MINE, LOCAL, MINE)
        world.settle()
        world.cloud.delete("a")
        world.cloud.label("b", robot="robot-2")
        world.settle()
        assert (finalizers(world.cloud), finalizers(world.cloud, "b")) == ([LOCAL], [LOCAL])


@pytest.mark.parametrize("answer", FOR_GOOD, ids=["403", "422", "400"])
def test_C6_2_where_adding_is_refused_for_good_there_is_no_copy_but_a_dead_letter(answer: Reply) -> None:
    with blocking() as world:
        world.inject("cloud", answer, verb="patch", part="/goals/a", times=math.inf)
        world.begin("a", "b")
        world.pass_time(600)
        assert set(world.robot.objects()) == {"b"}
        (letter,) = finalizer_rows(world)
        assert (letter["name"], letter["dead"], letter["to"]) == ("a", True, "cloud")
        assert letter["error"] == answer.body["message"]
        assert "DeadLetters" in codes(world)
        assert len(patches(world)) == 2
        explained = world.order("explain", resource="goals", name="a")
        assert [step["rule"] for step in explained["steps"] if step["ok"] is False] == ["C6.2"]
        world.pass_time(3700)
        assert len(patches(world)) == 3
        world.mend("cloud")
        world.cloud.annotate("a", {"note": "changed"})
        world.settle()
        assert (set(world.robot.objects()), finalizer_rows(world)) == ({"a", "b"}, [])


@pytest.mark.parametrize("way", ["retry", "hour"])
def test_C6_2_a_dead_letter_is_tried_again_hourly_or_when_an_operator_asks(way: str) -> None:
    with blocking() as world:
        world.inject("cloud", FORBIDDEN, verb="patch", part="/goals/a", times=math.inf)
        world.begin("a")
        world.mend("cloud")
        if way == "retry":
            world.order("retry")
            world.pass_time(10)
        else:
            world.pass_time(4400)
        assert set(world.robot.objects()) == {"a"}


@pytest.mark.parametrize("answer", [FAILED_TEST, UNAUTHORIZED, GARBAGE, Fate.LOST, Fate.REPLY_LOST], ids=str)
def test_C6_2_what_is_not_for_good_is_tried_again_and_the_copy_waits(answer: Reply | Fate) -> None:
    with blocking() as world:
        world.inject("cloud", answer, verb="patch", part="/goals/a", times=2)
        world.start()
        world.add("a", seconds=300)
        assert (finalizers(world.cloud), set(world.robot.objects())) == ([MINE], {"a"})
        creates = list(world.journal.asked("robot", verb="create", kind="goals"))
        assert len(creates) == 1


@pytest.mark.parametrize("end", ["deleted", "relabelled", "policy deleted"])
def test_C6_3_an_answer_that_shows_no_object_removes_no_finalizer(end: str) -> None:
    with blocking(filtered="true") as world:
        world.begin("a", labels={"cloudrobotics.com/robot-name": "robot-1"}, finalizers=[LOCAL])
        world.inject("cloud", GARBAGE, verb="patch", part="/goals/a", times=2)
        if end == "deleted":
            world.cloud.delete("a")
        elif end == "relabelled":
            world.cloud.label("a", robot="robot-2")
        else:
            delete_policy(world.robot)
        world.pass_time(120)
        assert finalizers(world.cloud) == [LOCAL]


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_C6_2_whoever_kills_the_agent_at_the_patch_strands_nothing(late: bool, seed: int) -> None:
    with blocking(filtered="true", seed=seed) as world:
        world.disk.commit_seconds = 3.0
        world.begin()
        if late:
            world.witnesses.append(lambda write: world.crash_after(0) if write.verb == "patch" else None)
        else:
            world.inject("cloud", Fate.LOST, verb="patch", part="/goals/a", times=1)
        world.add("a", labels={"cloudrobotics.com/robot-name": "robot-1"}, seconds=10)
        if not late:
            world.crash()
        world.witnesses.clear()
        world.cloud.label("a", robot="robot-2")
        world.cloud.compact()
        world.begin()
        assert (finalizers(world.cloud), world.robot.objects(), finalizer_rows(world)) == ([], {}, [])


def test_C6_2_a_finalizer_that_is_anywhere_in_a_list_out_of_sight_is_removed_with_three_requests() -> None:
    with blocking(filtered="true") as world:
        world.begin("a", labels={"cloudrobotics.com/robot-name": "robot-1"})
        since = world.clock.now
        world.cloud.finalize("a", *[f"example.com/f{number}" for number in range(40)], MINE)
        world.cloud.label("a", robot="robot-2")
        world.pass_time(30)
        assert MINE not in finalizers(world.cloud)
        assert len(world.journal.asked("cloud", verb="patch", since=since)) == 3


def test_C6_2_the_list_of_an_object_that_may_not_be_shown_is_searched() -> None:
    with blocking(filtered="true") as world:
        world.begin("a", labels={"cloudrobotics.com/robot-name": "robot-1"})
        refused = Rule(lambda call: call.method == "PATCH" and len(call.body) == 1, FORBIDDEN, math.inf)
        world.weather[world.cloud.side].add(refused)  # the admission policy of `cloud-manifests`
        world.cloud.finalize("a", "example.com/f", LOCAL, MINE)
        world.cloud.label("a", robot="robot-2")
        world.pass_time(30)
        assert (finalizers(world.cloud), refused.met) == (["example.com/f", LOCAL], 1)
