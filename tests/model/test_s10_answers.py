"""S10 on virtual time: did it happen? How often is asked again, to the last request."""

import math

import pytest

from crsyncer.core.model import Side
from crsyncer.ports import Reply
from tests.model.answers import (
    FORBIDDEN,
    GARBAGE,
    INTERNAL_ERROR,
    NAMESPACE_TERMINATING,
    UNAUTHORIZED,
    UNAVAILABLE,
    invalid,
    too_many,
)
from tests.model.journal import Request
from tests.model.scene import copy, original, restart, state, synced
from tests.model.weather import Fate
from tests.model.world import World, Write

CONFLICT = Reply(409, {"kind": "Status", "code": 409, "reason": "Conflict", "message": "it has changed"})
NOT_FOUND = Reply(404, {"kind": "Status", "code": 404, "reason": "NotFound", "message": "there is none"})
TOO_LARGE = Reply(500, {"kind": "Status", "code": 500, "message": "etcdserver: request is too large"})


def status_writes(world: World, since: float) -> list[Request]:
    """The tries to send a status."""
    return world.journal.asked("cloud", verb="status", since=since)


@pytest.mark.parametrize("reply", [CONFLICT, NOT_FOUND, invalid()], ids=["409", "404", "failed uid test"])
def test_S10_what_did_not_happen_is_decided_anew_within_seconds(world: World, reply: Reply) -> None:
    if reply.status == 422:
        reply = Reply(422, {**reply.body, "details": {}})
    world.inject("cloud", reply, verb="patch", times=2)
    since = world.clock.now
    world.robot.set_status("a", {"phase": "DONE"})
    world.pass_time(10.0)
    assert original(world)["status"] == {"phase": "DONE"}
    assert [request.status for request in status_writes(world, since)] == [reply.status, reply.status, 200]
    assert world.status()["outbox"]["deadLetters"] == 0


@pytest.mark.fault_30
@pytest.mark.parametrize(
    "reply", [Reply(400, {"message": "bad"}), Reply(413, {}), invalid()], ids=["400", "413", "422"]
)
def test_S10_what_is_refused_for_good_is_asked_once_an_hour_and_again_when_it_changes(
    world: World, reply: Reply
) -> None:
    world.cloud.create("b", spec={"x": 1})
    world.settle()
    world.inject("cloud", reply, verb="patch", part="/goals/a", times=math.inf)
    since = world.clock.now
    world.robot.set_status("a", {"n": 1})
    world.pass_time(3000.0)
    assert len(status_writes(world, since)) == 1
    assert world.status()["outbox"]["deadLetters"] == 1
    world.robot.set_status("b", {"n": 1})
    world.pass_time(2.0)
    assert original(world, "b")["status"] == {"n": 1}
    changed = world.clock.now
    world.robot.set_status("a", {"n": 2})
    world.pass_time(60.0)
    assert len(status_writes(world, changed)) == 1
    world.pass_time(4 * 3600.0)
    assert 4 <= len(status_writes(world, changed)) <= 6
    world.mend("cloud")
    world.pass_time(2 * 3600.0)
    assert original(world)["status"] == {"n": 2}
    assert world.status()["outbox"]["deadLetters"] == 0


@pytest.mark.fault_32
def test_S10_a_request_that_is_too_large_again_and_again_is_a_dead_letter_and_once_is_a_mistake(world: World) -> None:
    world.inject("cloud", TOO_LARGE, verb="patch", times=1)
    world.robot.set_status("a", {"n": 1})
    world.settle()
    assert original(world)["status"] == {"n": 1}
    world.inject("cloud", TOO_LARGE, verb="patch", times=math.inf)
    since = world.clock.now
    world.robot.set_status("a", {"n": 2})
    world.pass_time(1800.0)
    assert world.status()["outbox"]["deadLetters"] == 1
    assert 2 <= len(status_writes(world, since)) <= 6


@pytest.mark.fault_31
def test_S10_a_storm_of_500_for_ten_minutes_buries_nothing_and_is_backed_off_from(world: World) -> None:
    names = [f"g{number}" for number in range(20)]
    for name in names:
        world.cloud.create(name, spec={"x": 1})
    world.settle()
    world.inject("cloud", INTERNAL_ERROR, verb="patch", times=math.inf, seconds=600)
    since = world.clock.now
    for name in names:
        world.robot.set_status(name, {"phase": "DONE"})
    world.pass_time(600.0)
    outbox = world.status()["outbox"]
    assert (outbox["depth"], outbox["deadLetters"]) == (20, 0)
    assert len(status_writes(world, since)) <= 20 * 40
    world.pass_time(70.0)
    assert [original(world, name)["status"] for name in names] == [{"phase": "DONE"}] * 20


@pytest.mark.parametrize("verb", ["create", "update", "delete"])
@pytest.mark.parametrize("fate", [Fate.LOST, Fate.REPLY_LOST, Fate.SNAPPED], ids=["lost", "reply lost", "snapped"])
def test_S10_a_write_whose_answer_is_lost_leaves_what_was_meant(world: World, verb: str, fate: Fate) -> None:
    world.inject("robot", fate, verb=verb, part="/goals", times=2)
    match verb:
        case "create":
            world.cloud.create("b", spec={"x": 5})
        case "update":
            world.cloud.set("a", spec={"x": 5})
        case "delete":
            world.cloud.delete("a")
    world.pass_time(120.0)
    assert set(world.robot.objects()) == {"create": {"a", "b"}, "update": {"a"}, "delete": set()}[verb]
    if verb == "update":
        assert copy(world)["spec"] == {"x": 5}


def test_S10_a_403_on_one_object_is_tried_at_most_six_times_a_minute(world: World) -> None:
    world.robot.set_status("a", {"n": 0})
    world.settle()
    world.inject("cloud", FORBIDDEN, part="/goals/a/status", times=math.inf)
    since = world.clock.now
    world.robot.set_status("a", {"n": 1})
    world.pass_time(60.0)
    patches = [request for request in status_writes(world, since) if request.call.method == "PATCH"]
    puts = [request for request in status_writes(world, since) if request.call.method == "PUT"]
    assert 2 <= max(len(patches), len(puts)) <= 6
    assert set(world.robot.objects()) == {"a"}
    world.mend("cloud")
    world.pass_time(120.0)
    assert original(world)["status"] == {"n": 1}


@pytest.mark.parametrize("body", [GARBAGE, Reply(200, {}), Reply(200, {"metadata": []})], ids=["html", "{}", "odd"])
def test_S10_a_200_that_does_not_show_the_object_is_no_acknowledgement(world: World, body: Reply) -> None:
    world.inject("cloud", body, verb="patch", times=2)
    world.robot.set_status("a", {"phase": "DONE"})
    world.pass_time(30.0)
    assert original(world)["status"] == {"phase": "DONE"}
    assert world.status()["outbox"] == {"depth": 0, "oldestSeconds": None, "deadLetters": 0}


@pytest.mark.fault_34
def test_S10_a_storm_of_429_is_answered_no_faster_than_it_asks(world: World) -> None:
    names = [f"g{number}" for number in range(10)]
    for name in names:
        world.cloud.create(name, spec={"x": 1})
    world.settle()
    world.inject("cloud", too_many(30.0), verb="patch", times=math.inf, seconds=300)
    since = world.clock.now
    for name in names:
        world.robot.set_status(name, {"phase": "DONE"})
    world.pass_time(300.0)
    tries = [request.sent for request in status_writes(world, since)]
    rounds = [first for first, later in zip(tries, [*tries[1:], math.inf], strict=True) if later - first > 15.0]
    assert 5 <= len(rounds) <= 11
    world.settle()
    assert [original(world, name)["status"] for name in names] == [{"phase": "DONE"}] * 10


@pytest.mark.fault_30
def test_S10_a_conflict_over_an_object_that_does_not_change_is_a_dead_letter_and_ends_with_it(world: World) -> None:
    world.cloud.create("b", spec={"x": 1})
    world.settle()
    world.inject("cloud", CONFLICT, verb="patch", part="/goals/a", times=math.inf)
    since = world.clock.now
    for name in "ab":
        world.robot.set_status(name, {"phase": "DONE"})
    world.pass_time(1800.0)
    assert original(world, "b")["status"] == {"phase": "DONE"}
    assert (world.status()["outbox"]["deadLetters"], world.status()["health"]) == (1, "attention")
    assert 2 <= len(world.journal.asked("cloud", verb="status", part="/a/", since=since)) <= 6
    world.cloud.delete("a")
    world.settle()
    assert (world.status()["outbox"]["deadLetters"], world.status()["health"]) == (0, "healthy")


def test_S10_a_credential_that_is_refused_once_is_read_again_and_used_at_once(world: World) -> None:
    world.inject("cloud", UNAUTHORIZED, verb="patch", times=1)
    world.robot.set_status("a", {"phase": "DONE"})
    world.pass_time(8.0)
    assert (original(world)["status"], world.status()["health"]) == ({"phase": "DONE"}, "healthy")


def test_S10_403_for_one_object_is_reported_for_as_long_as_it_lasts_whoever_else_succeeds(world: World) -> None:
    world.cloud.create("b", spec={"x": 1})
    world.settle()
    world.inject("cloud", FORBIDDEN, part="/goals/a/status", times=math.inf)
    for name in "ab":
        world.robot.set_status(name, {"n": 1})
    for number in range(20):
        world.pass_time(30.0)
        world.robot.set_status("b", {"n": 2 + number})
        assert (state(world), [reason["code"] for reason in world.status()["reasons"]]) == ("forbidden", ["Forbidden"])
    world.cloud.delete("a")
    world.pass_time(90.0)
    assert (state(world), world.status()["health"]) == ("syncing", "healthy")


def test_S10_a_namespace_that_is_being_deleted_is_no_matter_of_the_credential(world: World) -> None:
    world.inject("robot", NAMESPACE_TERMINATING, verb="create", part="/goals", times=math.inf, seconds=60)
    since = world.clock.now
    world.robot.delete("a")
    world.pass_time(55.0)
    assert (state(world), world.status()["health"]) == ("syncing", "healthy")
    assert 2 <= len(world.journal.asked("robot", verb="create", since=since)) <= 6
    world.pass_time(70.0)
    assert copy(world)["spec"] == original(world)["spec"]


def test_S10_a_gateway_that_knows_no_path_for_a_while_makes_no_status_a_dead_letter(world: World) -> None:
    rule = world.lose_paths("cloud")
    world.robot.set_status("a", {"phase": "DONE"})
    for _ in range(10):
        world.pass_time(2.0)
        outbox = world.status()["outbox"]
        assert (outbox["depth"], outbox["deadLetters"]) == (1, 0)
    world.weather[Side.CLOUD].rules.remove(rule)
    world.pass_time(60.0)
    assert (original(world)["status"], world.status()["health"]) == ({"phase": "DONE"}, "healthy")


def test_S10_a_delete_that_finds_nothing_is_done(world: World) -> None:
    world.inject("robot", NOT_FOUND, verb="delete", part="/goals/a")
    world.cloud.delete("a")
    world.pass_time(1.0)
    assert len(world.journal.asked("robot", verb="delete", kind="goals")) == 1
    world.robot.delete("a")
    world.settle()
    assert (world.robot.objects(), world.status()["health"]) == ({}, "healthy")


def test_S10_a_server_that_answers_503_to_everything_is_offline_and_nothing_is_lost(world: World) -> None:
    world.inject("cloud", UNAVAILABLE, times=math.inf)
    world.cloud.restart()
    world.pass_time(60.0)
    world.robot.set_status("a", {"phase": "DONE"})
    world.pass_time(600.0)
    status = world.status()
    assert (status["health"], status["outbox"]["depth"], status["outbox"]["deadLetters"]) == ("offline", 1, 0)
    world.mend("cloud")
    world.settle()
    assert original(world)["status"] == {"phase": "DONE"}
    assert set(world.robot.objects()) == {"a"}


@pytest.mark.parametrize("body", [Reply(200, {}), Reply(200, {"metadata": []}), GARBAGE], ids=["{}", "odd", "html"])
def test_S10_a_copy_whose_writing_is_answered_without_it_is_looked_at_again(world: World, body: Reply) -> None:
    for verb in ("create", "update"):
        world.inject("robot", body, verb=verb, part="/goals", times=2)
    world.cloud.create("b", spec={"x": 1})
    world.cloud.set("a", spec={"x": 2})
    world.pass_time(60.0)
    assert [copy(world, name)["spec"] for name in "ab"] == [{"x": 2}, {"x": 1}]
    assert world.status()["health"] == "healthy"


@pytest.mark.parametrize("body", [Reply(200, {}), Reply(200, {"metadata": []}), GARBAGE], ids=["{}", "odd", "html"])
def test_S10_a_copy_whose_deletion_is_answered_by_somebody_else_is_looked_at_again(world: World, body: Reply) -> None:
    world.inject("robot", body, verb="delete", part="/goals", times=2)
    world.cloud.delete("a")
    world.pass_time(60.0)
    assert world.robot.objects() == {}


@pytest.mark.parametrize("killed", [False, True], ids=["lives", "killed"])
def test_S10_an_older_status_that_lands_after_its_time_out_is_followed_by_the_newest_one(killed: bool) -> None:
    with synced() as world:
        world.inject("cloud", Fate.LATE, verb="patch", part="/goals/")
        world.robot.set_status("a", {"n": 1})
        world.pass_time(1)
        world.robot.set_status("a", {"n": 2})
        late: list[Write] = []
        world.witnesses.append(lambda write: late.append(write) if write.late else None)
        while not late:
            world.pass_time(1)
        assert late[0].call.body[-1]["value"] == {"n": 1}
        if killed:
            restart(world, kill=True)
        world.pass_time(10)
        assert original(world)["status"] == {"n": 2}
        writes = len(world.writes)
        world.cloud.set_status("a", {"n": 1})  # somebody else's: it is not answered before the audit
        world.pass_time(60)
        assert len(world.writes) == writes
