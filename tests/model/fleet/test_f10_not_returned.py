"""F10.3, the agent's part: what becomes of statuses where no object of the robot's own is taken, and of bad answers."""

import math
from dataclasses import replace

import pytest

from crsyncer.core.content.annotations import SPEC_SOURCE
from crsyncer.core.content.object_content import ROBOT as ROBOT_ANNOTATION
from crsyncer.ports import Reply
from tests.model.scenes.shared import (
    PART,
    asked,
    crd_of_statuses,
    is_untouched,
    mark,
    own_name,
    own_status,
    own_statuses,
    returned,
    sharing,
)
from tests.model.simulation.answers import CONFLICT, FORBIDDEN, INTERNAL_ERROR, NOT_SERVED, UNAUTHORIZED, invalid
from tests.model.simulation.life import AgentSettings
from tests.model.simulation.plane import GROUP
from tests.model.simulation.scene import copy, original
from tests.model.simulation.shared_judge import OWN_STATUSES
from tests.model.simulation.weather import Fate
from tests.model.simulation.world import World

HOUR = 3600.0
REASON = "StatusNotReturned"
MISSING = Reply(404, {"kind": "Status", "code": 404, "reason": "NotFound", "message": 'namespaces "fleet" not found'})


def reasons(world: World) -> dict[str, str]:
    """The reasons in `status`, with their messages."""
    return {each["code"]: each["message"] for each in world.status()["reasons"]}


def restarted(world: World, report_namespace: str | None) -> None:
    """The agent goes on with another setting."""
    with world.down():
        world.settings = replace(AgentSettings(), report_namespace=report_namespace)
    world.settle()


@pytest.mark.parametrize("refusal", [NOT_SERVED, FORBIDDEN, MISSING])
def test_F10_3_where_none_is_taken_the_status_waits_and_one_request_an_hour_asks(refusal: Reply) -> None:
    with sharing() as world:
        world.inject("cloud", refusal, part=PART, times=math.inf)
        for number in range(40):
            world.report("a", {"n": number}, seconds=5 * 60)
        assert len(asked(world)) in (3, 4)
        assert is_untouched(world)
        said = reasons(world)
        assert list(said) == [REASON]
        assert "1 status of shared objects" in said[REASON]
        world.heal("cloud", seconds=1.3 * HOUR)
        assert returned(world) == {"n": 39}
        assert reasons(world) == {}


def test_F10_3_one_refusal_spares_the_requests_of_all_objects() -> None:
    with sharing(served=False) as world:
        for number in range(1, 20):
            world.cloud.create(f"a{number}", spec={"x": 1})
            mark(world, f"a{number}")
        world.settle()
        for name in world.robot.objects():
            world.report(name, {"n": 1}, seconds=1)
        world.pass_time(60)
        assert len(asked(world)) == 1
        world.cloud.apply(crd_of_statuses())
        world.order("retry", resource=f"goals.{GROUP}", name="a")
        world.settle()
        assert len(own_statuses(world)) == 20


def test_F10_3_what_was_taken_before_and_is_refused_is_tried_again_in_minutes() -> None:
    with sharing() as world:
        world.report("a", {"n": 1})
        world.inject("cloud", FORBIDDEN, part=PART, times=1)
        world.report("a", {"n": 2}, seconds=10)
        assert REASON in reasons(world)
        world.pass_time(200)
        assert returned(world) == {"n": 2}


def test_F10_3_a_status_that_waits_keeps_no_copy_from_being_made_again() -> None:
    with sharing(served=False) as world:
        world.report("a", {"n": 1}, seconds=60)
        world.robot.delete("a")
        world.pass_time(60)
        assert copy(world)["status"] == {"n": 1}
        world.cloud.apply(crd_of_statuses())
        world.pass_time(1.3 * HOUR)
        assert returned(world) == {"n": 1}


def test_F10_3_with_off_statuses_are_kept_and_the_robots_objects_go_until_it_is_on_again() -> None:
    with sharing() as world:
        world.report("a", {"n": 1})
        restarted(world, None)
        world.pass_time(60)
        assert own_statuses(world) == {}
        world.robot.set_status("a", {"n": 2})
        begun = world.clock.now
        world.pass_time(5 * HOUR)
        assert (is_untouched(world), asked(world, since=begun)) == (True, [])
        assert "reportNamespace is off" in reasons(world)[REASON]
        restarted(world, "default")
        assert returned(world) == {"n": 2}


@pytest.mark.parametrize(
    "answer",
    [None, UNAUTHORIZED, FORBIDDEN, invalid("no")],
    ids=["taken", "expired token", "forbidden", "refused for good"],
)
def test_F10_3_the_objects_follow_the_report_namespace_although_the_former_may_not_be_deleted(
    answer: Reply | None,
) -> None:
    with sharing() as world:
        world.cloud.make_namespace("fleet")
        world.report("a", {"n": 1})
        if answer is not None:
            world.inject("cloud", answer, verb="delete", part=PART)
        restarted(world, "fleet")
        assert set(own_statuses(world, "fleet")) == {own_name()}
        world.pass_time(600)
        assert own_statuses(world) == {} or answer in (FORBIDDEN, invalid("no"))


def test_F10_3_S10_a_deletion_that_is_refused_for_good_is_asked_for_hourly_and_keeps_no_status_back() -> None:
    with sharing() as world:
        world.robot.set_status("a", {"n": 1})
        world.settle()
        world.inject("cloud", invalid("no"), verb="delete", part=PART, times=2)
        mark(world, marked=False)
        for number in (2, 3):
            world.robot.set_status("a", {"n": number})
            world.pass_time(10)
            assert original(world)["status"] == {"n": number}
        world.pass_time(3 * HOUR)
        assert (own_status(world), len(asked(world, verb="delete"))) == (None, 3)


def test_F10_3_an_object_that_was_deleted_or_changed_by_others_is_put_right_at_the_next_change() -> None:
    with sharing() as world:
        world.report("a", {"n": 1})
        world.cloud.delete(own_name(), kind=OWN_STATUSES)
        world.report("a", {"n": 2})
        assert returned(world) == {"n": 2}
        found = own_status(world)
        assert found is not None
        labels = found["metadata"]["labels"] | {"team": "blue"}
        world.cloud.set(own_name(), kind=OWN_STATUSES, metadata=found["metadata"] | {"labels": labels}, spec={})
        for number in (3, 4):
            world.report("a", {"n": number})
        found = own_status(world)
        assert found is not None
        assert (found["metadata"]["labels"], returned(world)) == (labels, {"n": 4})
        world.stop()
        world.start()
        world.report("a", {"n": 5})
        found = own_status(world)
        assert found is not None
        assert (found["metadata"]["labels"], returned(world)) == (labels, {"n": 5})
        assert found["metadata"]["annotations"][ROBOT_ANNOTATION]


def test_F10_3_an_object_with_labels_of_others_that_was_deleted_is_made_again() -> None:
    with sharing() as world:
        world.report("a", {"n": 1})
        world.cloud.label(own_name(), kind=OWN_STATUSES, team="blue")
        world.report("a", {"n": 2})
        world.cloud.delete(own_name(), kind=OWN_STATUSES)
        world.report("a", {"n": 3})
        assert returned(world) == {"n": 3}


def test_F10_3_S4_8_the_audit_finds_an_object_that_was_deleted() -> None:
    with sharing() as world:
        world.report("a", {"n": 1})
        world.remove(own_name(), kind=OWN_STATUSES, seconds=10 * HOUR)
        assert returned(world) == {"n": 1}


@pytest.mark.parametrize("refusal", [NOT_SERVED, FORBIDDEN])
def test_F10_3_S4_8_where_none_may_be_listed_the_audit_compares_all_else(refusal: Reply) -> None:
    with sharing() as world:
        world.inject("cloud", refusal, part=PART, times=math.inf)
        world.add("b")
        world.report("b", {"n": 1})
        world.cloud.set_status("b", {"n": 0})
        world.pass_time(10 * HOUR)
        assert original(world, "b")["status"] == {"n": 1}
        assert reasons(world) == {}


def test_F10_3_an_account_that_may_not_list_is_told_and_asks_no_more_than_hourly() -> None:
    with sharing() as world:
        world.report("a", {"n": 1})
        world.cloud.delete(own_name(), kind=OWN_STATUSES)
        world.inject("cloud", FORBIDDEN, verb="list", part=PART, times=math.inf)
        begun = world.clock.now
        world.report("a", {"n": 2}, seconds=HOUR)
        assert list(reasons(world)) == [REASON]
        assert len(asked(world, since=begun)) < 12
        world.heal("cloud", seconds=1.3 * HOUR)
        assert returned(world) == {"n": 2}


def test_F10_3_an_object_goes_from_the_cloud_when_the_robot_becomes_the_source_of_its_kind() -> None:
    with sharing() as world:
        world.report("a", {"n": 1})
        begun = world.clock.now
        world.robot.annotate_kind({SPEC_SOURCE: "robot"})
        world.pass_time(10 * HOUR)
        assert own_statuses(world) == {}
        assert world.journal.asked("robot", part=PART, since=begun) == []


def test_F10_3_a_robot_without_a_name_returns_nothing_and_says_why() -> None:
    with sharing() as world:
        with world.down():
            world.settings = replace(AgentSettings(), robot="")
        world.report("a", {"n": 1}, seconds=60)
        assert "the robot has no name" in reasons(world)[REASON]
        assert (is_untouched(world), asked(world)) == (True, [])


def test_F10_3_an_object_from_before_the_store_was_lost_goes_when_its_source_has_gone() -> None:
    with sharing() as world:
        world.cloud.create("b", spec={"x": 1})
        mark(world, "b")
        world.settle()
        for name in ("a", "b"):
            world.robot.set_status(name, {"n": 1})
        world.settle()
        with world.down():
            world.lose_database()
            world.cloud.delete("a")
        world.pass_time(10 * HOUR)
        assert set(own_statuses(world)) == {own_name("b")}


def test_F10_3_S8_3_a_cloud_that_was_restored_gets_the_status_again() -> None:
    with sharing() as world:
        backup = world.cloud.snapshot()
        world.report("a", {"n": 1})
        world.edit("a", spec={"x": 2})
        world.cut("cloud")
        world.cloud.restore(backup)
        world.heal("cloud", seconds=90)
        assert returned(world) == {"n": 1}
        assert is_untouched(world)


@pytest.mark.parametrize("fate", [Fate.LOST, Fate.REPLY_LOST, Fate.LATE, INTERNAL_ERROR, UNAUTHORIZED, CONFLICT])
@pytest.mark.parametrize("verb", ["create", "update", "delete"])
def test_F10_3_S10_an_answer_that_did_not_come_or_is_an_error_costs_a_try(fate: Fate | Reply, verb: str) -> None:
    with sharing() as world:
        if verb != "create":
            world.report("a", {"n": 1})
        world.inject("cloud", fate, verb=verb, part=PART, times=2)
        if verb == "delete":
            world.cloud.delete("a")
        else:
            world.robot.set_status("a", {"n": 2})
        world.pass_time(300)
        assert returned(world) == (None if verb == "delete" else {"n": 2})


def test_F10_3_S10_a_status_that_is_refused_for_good_is_a_dead_letter() -> None:
    with sharing() as world:
        world.inject("cloud", invalid(), verb="create", part=PART, times=1)
        world.report("a", {"n": 1}, seconds=60)
        assert list(reasons(world)) == ["DeadLetters"]
        world.report("a", {"n": 2})
        assert returned(world) == {"n": 2}


def test_F10_3_explain_and_pending_say_where_the_status_goes() -> None:
    with sharing() as world:
        world.report("a", {"n": 1})
        explained = world.order("explain", resource="goals", name="a")
        [text] = [step["text"] for step in explained["steps"] if step["rule"] == "F10.3"]
        assert own_name() in text
        assert (explained["state"], explained["differences"]) == ("in-sync", [])
        world.inject("cloud", FORBIDDEN, part=PART, times=1)
        world.report("a", {"n": 2}, seconds=10)
        [row] = world.order("pending")["pending"]
        assert row["error"] == "it is forbidden"
        assert original(world).get("status") is None
        world.pass_time(200)
