"""F10.3, the agent's part: the status of a marked object's copy goes to an object of the robot's own."""

import pytest

from crsyncer.core.content.annotations import ROBOT_LABEL
from crsyncer.core.content.object_content import ROBOT as ROBOT_ANNOTATION
from crsyncer.core.model import Json, Side
from crsyncer.fleet.domain.names import source_id
from crsyncer.fleet.domain.values import SourceKey
from tests.model.scenes.shared import asked, is_untouched, mark, own_name, own_status, own_statuses, returned, sharing
from tests.model.scenes.statuses import sent
from tests.model.simulation.life import ROBOT, AgentSettings
from tests.model.simulation.plane import GROUP
from tests.model.simulation.scene import copy, original, restart, settle
from tests.model.simulation.world import World


def test_F10_3_the_status_goes_to_an_object_of_the_robots_own_and_none_to_the_source() -> None:
    with sharing() as world:
        world.report("a", {"phase": "Running"})
        found = own_status(world)
        assert found is not None
        assert found["metadata"]["labels"] == {ROBOT_LABEL: ROBOT}
        assert found["metadata"]["annotations"] == {ROBOT_ANNOTATION: ROBOT}
        spec = dict(found["spec"])
        assert spec.pop("lastUpdate").endswith("Z")
        uid = original(world)["metadata"]["uid"]
        source = {"group": GROUP, "resource": "goals", "namespace": "default", "name": "a", "uid": uid}
        assert spec == {"source": source, "returned": {"phase": "Running"}}
        assert is_untouched(world)


def test_F10_3_its_name_is_what_the_controller_takes_it_for() -> None:
    assert own_name() == f"{source_id(SourceKey(f'goals.{GROUP}', 'default', 'a'))}-{ROBOT}"


def test_F10_3_a_change_is_one_request_and_what_has_not_changed_none_nor_a_restart() -> None:
    with sharing() as world:
        for number in range(3):
            world.report("a", {"n": number})
        world.pass_time(48 * 3600)
        restart(world)
        restart(world, kill=True)
        world.pass_time(600)
        writes = [request.verb for request in asked(world, verb="write")]
        assert writes == ["create", "update", "update"]
        world.report("a", {"n": 3})
        assert returned(world) == {"n": 3}
        assert [request.verb for request in asked(world, verb="write")] == [*writes, "update"]
        assert is_untouched(world)


def test_F10_3_an_agent_that_has_lost_its_store_writes_no_status_that_is_there() -> None:
    with sharing() as world:
        world.report("a", {"n": 1})
        before = own_status(world)
        restart(world, lost=True)
        assert own_status(world) == before
        world.report("a", {"n": 2})
        assert returned(world) == {"n": 2}


def test_F10_3_only_the_part_that_moves_is_returned_as_a_replica_would_show_it() -> None:
    with sharing(subtree="robot") as world:
        world.report("a", {"robot": {"n": 1}, "cloud": {"n": 2}})
        assert returned(world) == {"robot": {"n": 1}}


def test_F10_3_a_status_that_was_taken_away_is_returned_no_more() -> None:
    with sharing() as world:
        world.report("a", {"n": 1})
        world.report("a", None)
        found = own_status(world)
        assert found is not None
        assert "returned" not in found["spec"]


def test_F10_3_each_robot_has_its_own_object_and_one_edit_reaches_both() -> None:
    with sharing() as world, World(beside=world, settings=AgentSettings(robot="robot-2")) as other:
        other.start()
        settle(world, other)
        world.robot.set_status("a", {"of": 1})
        other.robot.set_status("a", {"of": 2})
        world.cloud.set("a", spec={"x": 2})
        settle(world, other)
        assert set(own_statuses(world)) == {own_name(), own_name(robot="robot-2")}
        assert (returned(world), returned(world, robot="robot-2")) == ({"of": 1}, {"of": 2})
        assert (copy(world)["spec"], copy(other)["spec"]) == ({"x": 2}, {"x": 2})
        assert is_untouched(world)


@pytest.mark.parametrize("kill", [False, True])
def test_F10_3_a_status_survives_an_outage_and_the_end_of_the_agent(kill: bool) -> None:
    with sharing() as world:
        world.cut("cloud", seconds=10)
        for number in range(5):
            world.report("a", {"n": number}, seconds=8 * 3600)
        world.crash() if kill else world.stop()
        world.start()
        world.heal("cloud")
        assert returned(world) == {"n": 4}
        assert [request.verb for request in asked(world, verb="write")] == ["create"]


@pytest.mark.parametrize("steps", range(1, 40, 3))
def test_F10_3_an_agent_that_is_killed_while_it_writes_goes_on(steps: int) -> None:
    with sharing() as world:
        world.crash_after(steps)
        world.report("a", {"n": 1}, seconds=5)
        if world.life is None:
            world.start()
        elif world.life is not None:
            world.life.fuse = None
        world.settle()
        assert returned(world) == {"n": 1}
        world.remove("a")
        assert own_statuses(world) == {}


def test_F10_3_the_last_status_is_delivered_before_the_copy_goes_and_then_the_object_goes_too() -> None:
    with sharing() as world:
        world.robot.finalize("a", "lab/park")
        world.cloud.finalize("a", "lab/wait")
        world.report("a", {"phase": "Running"})
        world.remove("a", seconds=5)
        world.robot.set_status("a", {"phase": "Parked"})
        world.robot.finalize("a")
        world.settle()
        assert "a" not in world.robot.objects()
        assert returned(world) == {"phase": "Parked"}
        world.cloud.finalize("a")
        world.settle()
        assert own_statuses(world) == {}
        world.pass_time(600)
        assert len(asked(world, verb="delete")) == 1


@pytest.mark.parametrize("kill", [False, True])
def test_F10_3_the_object_of_a_source_that_went_during_an_outage_goes(kill: bool) -> None:
    with sharing() as world:
        world.report("a", {"n": 1})
        world.cut("cloud", seconds=60)
        if kill:
            world.crash()
            world.start()
        world.remove("a", seconds=60)
        world.heal("cloud")
        assert ("a" in world.robot.objects(), own_statuses(world)) == (False, {})


def test_F10_3_while_the_deletion_of_copies_is_held_their_statuses_stay() -> None:
    with sharing() as world:
        world.report("a", {"n": 1})
        world.order("hold", resource=f"goals.{GROUP}")
        world.remove("a", seconds=600)
        assert ("a" in world.robot.objects(), returned(world)) == (True, {"n": 1})


def test_F10_3_a_status_is_never_returned_of_an_object_that_was_made_anew() -> None:
    with sharing() as world:
        world.report("a", {"n": 1})
        former = original(world)["metadata"]["uid"]
        world.cloud.delete("a")
        world.cloud.create("a", spec={"x": 2})
        mark(world)
        world.settle()
        assert own_statuses(world) == {}
        world.report("a", {"n": 2})
        found = own_status(world)
        assert found is not None
        assert found["spec"]["source"]["uid"] == original(world)["metadata"]["uid"] != former
        assert returned(world) == {"n": 2}
        assert is_untouched(world)


def test_F10_3_an_object_that_is_marked_later_gets_its_status_moved() -> None:
    with sharing(marked=False) as world:
        world.report("a", {"n": 1})
        assert original(world)["status"] == {"n": 1}
        mark(world)
        world.settle()
        assert returned(world) == {"n": 1}
        begun = world.clock.now
        world.report("a", {"n": 2})
        assert (returned(world), sent(world, since=begun)) == ({"n": 2}, [])
        assert original(world)["status"] == {"n": 1}


def test_F10_3_an_object_that_is_marked_no_more_gets_its_status_and_the_robots_own_goes() -> None:
    with sharing() as world:
        world.report("a", {"n": 1})
        mark(world, marked=False)
        world.settle()
        assert (original(world)["status"], own_statuses(world)) == ({"n": 1}, {})
        mark(world)
        world.settle()
        assert returned(world) == {"n": 1}


@pytest.mark.parametrize("kill", [False, True])
def test_F10_3_marks_that_come_and_go_during_an_outage_lose_no_status(kill: bool) -> None:
    for marked in (True, False):
        with sharing(marked=not marked) as world:
            world.report("a", {"n": 1})
            world.cut("cloud", seconds=60)
            mark(world, marked=marked)
            world.report("a", {"n": 2}, seconds=60)
            if kill:
                world.crash()
                world.start()
            world.heal("cloud")
            world.pass_time(60)
            found: Json = original(world).get("status") or {}
            assert (returned(world) if marked else found) == {"n": 2}
            assert marked or own_statuses(world) == {}


def test_F10_3_a_mark_that_the_watch_shows_late_is_known_from_the_answer_to_a_status() -> None:
    with sharing(marked=False) as world:
        world.report("a", {"n": 1})
        begun = world.clock.now
        world.weather[Side.CLOUD].lag = 100.0
        mark(world)
        for number in range(2, 6):
            world.report("a", {"n": number}, seconds=5)
        assert (original(world)["status"], returned(world)) == ({"n": 2}, {"n": 5})
        world.settle()
        assert (len(sent(world, since=begun)), returned(world)) == (1, {"n": 5})


def test_F10_3_an_object_that_is_marked_during_an_outage_gets_one_status_at_most() -> None:
    with sharing(marked=False) as world:
        world.report("a", {"n": 1})
        world.cut("cloud", seconds=60)
        mark(world)
        for number in range(2, 6):
            world.report("a", {"n": number}, seconds=60)
        begun = world.clock.now
        world.mend("cloud")
        for number in range(6, 9):
            world.report("a", {"n": number}, seconds=1)
        world.settle()
        assert returned(world) == {"n": 8}
        assert len(sent(world, since=begun)) <= 1
