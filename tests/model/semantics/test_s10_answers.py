"""S10 on virtual time: did it happen? How often is asked again, to the last request."""

import math
from typing import Any

import pytest

from crsyncer.core.content.annotations import ROBOT_LABEL
from crsyncer.core.model import Json, Side
from crsyncer.core.requests.calls import Call
from crsyncer.ports import Reply
from tests.model.scenes.policies import edit_policy, with_policy
from tests.model.simulation.answers import (
    FORBIDDEN,
    GARBAGE,
    INTERNAL_ERROR,
    NAMESPACE_TERMINATING,
    UNAUTHORIZED,
    UNAVAILABLE,
    invalid,
    too_many,
)
from tests.model.simulation.journal import Request
from tests.model.simulation.life import ROBOT
from tests.model.simulation.scene import copy, original, restart, scene, state, synced
from tests.model.simulation.weather import Fate, Rule
from tests.model.simulation.world import World, Write

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
    world.report("a", {"phase": "DONE"}, seconds=10.0)
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
    world.add("b")
    world.inject("cloud", reply, verb="patch", part="/goals/a", times=math.inf)
    since = world.clock.now
    world.report("a", {"n": 1}, seconds=3000.0)
    assert len(status_writes(world, since)) == 1
    assert world.status()["outbox"]["deadLetters"] == 1
    world.report("b", {"n": 1}, seconds=2.0)
    assert original(world, "b")["status"] == {"n": 1}
    changed = world.clock.now
    world.report("a", {"n": 2}, seconds=60.0)
    assert len(status_writes(world, changed)) == 1
    world.pass_time(4 * 3600.0)
    assert 4 <= len(status_writes(world, changed)) <= 6
    world.heal("cloud", seconds=2 * 3600.0)
    assert original(world)["status"] == {"n": 2}
    assert world.status()["outbox"]["deadLetters"] == 0


@pytest.mark.fault_32
def test_S10_a_request_that_is_too_large_again_and_again_is_a_dead_letter_and_once_is_a_mistake(world: World) -> None:
    world.inject("cloud", TOO_LARGE, verb="patch", times=1)
    world.report("a", {"n": 1})
    assert original(world)["status"] == {"n": 1}
    world.inject("cloud", TOO_LARGE, verb="patch", times=math.inf)
    since = world.clock.now
    world.report("a", {"n": 2}, seconds=1800.0)
    assert world.status()["outbox"]["deadLetters"] == 1
    assert 2 <= len(status_writes(world, since)) <= 6


@pytest.mark.fault_31
def test_S10_a_storm_of_500_for_ten_minutes_buries_nothing_and_is_backed_off_from(world: World) -> None:
    names = [f"g{number}" for number in range(20)]
    world.add(*names)
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
@pytest.mark.parametrize("fate", list(Fate))
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
    world.report("a", {"n": 0})
    world.inject("cloud", FORBIDDEN, part="/goals/a/status", times=math.inf)
    since = world.clock.now
    world.report("a", {"n": 1}, seconds=60.0)
    patches = [request for request in status_writes(world, since) if request.call.method == "PATCH"]
    puts = [request for request in status_writes(world, since) if request.call.method == "PUT"]
    assert 2 <= max(len(patches), len(puts)) <= 6
    assert set(world.robot.objects()) == {"a"}
    world.heal("cloud", seconds=120.0)
    assert original(world)["status"] == {"n": 1}


@pytest.mark.parametrize("body", [GARBAGE, Reply(200, {}), Reply(200, {"metadata": []})], ids=["html", "{}", "odd"])
def test_S10_a_200_that_does_not_show_the_object_is_no_acknowledgement(world: World, body: Reply) -> None:
    world.inject("cloud", body, verb="patch", times=2)
    world.report("a", {"phase": "DONE"}, seconds=30.0)
    assert original(world)["status"] == {"phase": "DONE"}
    assert world.status()["outbox"] == {"depth": 0, "oldestSeconds": None, "deadLetters": 0}


@pytest.mark.fault_34
def test_S10_a_storm_of_429_is_answered_no_faster_than_it_asks(world: World) -> None:
    names = [f"g{number}" for number in range(10)]
    world.add(*names)
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
    world.add("b")
    world.inject("cloud", CONFLICT, verb="patch", part="/goals/a", times=math.inf)
    since = world.clock.now
    for name in "ab":
        world.robot.set_status(name, {"phase": "DONE"})
    world.pass_time(1800.0)
    assert original(world, "b")["status"] == {"phase": "DONE"}
    assert (world.status()["outbox"]["deadLetters"], world.status()["health"]) == (1, "attention")
    assert 2 <= len(world.journal.asked("cloud", verb="status", part="/a/", since=since)) <= 6
    world.remove("a")
    assert (world.status()["outbox"]["deadLetters"], world.status()["health"]) == (0, "healthy")


def test_S10_a_credential_that_is_refused_once_is_read_again_and_used_at_once(world: World) -> None:
    world.inject("cloud", UNAUTHORIZED, verb="patch", times=1)
    world.report("a", {"phase": "DONE"}, seconds=8.0)
    assert (original(world)["status"], world.status()["health"]) == ({"phase": "DONE"}, "healthy")


def test_S10_403_for_one_object_is_reported_for_as_long_as_it_lasts_whoever_else_succeeds(world: World) -> None:
    world.add("b")
    world.inject("cloud", FORBIDDEN, part="/goals/a/status", times=math.inf)
    for name in "ab":
        world.robot.set_status(name, {"n": 1})
    for number in range(20):
        world.pass_time(30.0)
        world.robot.set_status("b", {"n": 2 + number})
        assert (state(world), [reason["code"] for reason in world.status()["reasons"]]) == ("forbidden", ["Forbidden"])
    world.remove("a", seconds=90.0)
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
    world.remove("a", seconds=1.0)
    assert len(world.journal.asked("robot", verb="delete", kind="goals")) == 1
    world.robot.delete("a")
    world.settle()
    assert (world.robot.objects(), world.status()["health"]) == ({}, "healthy")


def test_S10_a_server_that_answers_503_to_everything_is_offline_and_nothing_is_lost(world: World) -> None:
    world.inject("cloud", UNAVAILABLE, times=math.inf)
    world.cloud.restart()
    world.pass_time(60.0)
    world.report("a", {"phase": "DONE"}, seconds=600.0)
    status = world.status()
    assert (status["health"], status["outbox"]["depth"], status["outbox"]["deadLetters"]) == ("offline", 1, 0)
    world.heal("cloud")
    assert original(world)["status"] == {"phase": "DONE"}
    assert set(world.robot.objects()) == {"a"}


@pytest.mark.parametrize("body", [Reply(200, {}), Reply(200, {"metadata": []}), GARBAGE], ids=["{}", "odd", "html"])
def test_S10_a_copy_whose_writing_is_answered_without_it_is_looked_at_again(world: World, body: Reply) -> None:
    for verb in ("create", "update", "delete"):
        world.inject("robot", body, verb=verb, part="/goals", times=2)
    world.cloud.create("b", spec={"x": 1})
    world.edit("a", spec={"x": 2}, seconds=60.0)
    assert [copy(world, name)["spec"] for name in "ab"] == [{"x": 2}, {"x": 1}]
    assert world.status()["health"] == "healthy"
    world.remove("a", "b", seconds=60.0)
    assert world.robot.objects() == {}


@pytest.mark.parametrize(
    "restarts", ["never", "before the newer one", "after it", "with another policy", "once the older one has landed"]
)
def test_S4_1_S10_an_older_status_of_an_agent_that_was_stopped_lands_and_is_followed_by_the_newest_one(
    restarts: str,
) -> None:
    with with_policy(specSource="cloud") as world:
        world.begin("a")
        late: list[Write] = []
        world.witnesses.append(lambda write: late.append(write) if write.late else None)
        world.inject("cloud", Fate.LATE, verb="patch", part="/goals/")
        world.report("a", {"n": 1}, seconds=1)
        if restarts == "before the newer one":
            with world.down(kill=True):
                world.robot.set_status("a", {"n": 2})
        else:
            world.report("a", {"n": 2}, seconds=1)
            if restarts == "after it":
                restart(world, kill=True)
            elif restarts == "with another policy":
                edit_policy(world, specSource="cloud", conflict="keepLocal", seconds=0.0)
        if restarts == "once the older one has landed":
            while not late:
                world.pass_time(1)
            restart(world, kill=True)
        if restarts != "never":  # else the newer one waits for the answer to the older one
            world.pass_time(3)
            assert original(world)["status"] == {"n": 2}
        world.pass_time(90)
        assert [write.call.body[-1]["value"] for write in late] == [{"n": 1}]
        assert original(world)["status"] == {"n": 2}
        writes = len(world.writes)
        world.cloud.set_status("a", {"n": 1})  # somebody else's: it is not answered before the audit
        world.pass_time(60)
        assert len(world.writes) == writes


DENIED = Reply(403, {"message": "denied", "reason": "Forbidden"})


def made_again(world: World, side: str) -> Json:
    """Somebody deletes the copy and soon creates the same again, of which the watch tells late."""
    plane = world.planes[Side(side)]
    before = plane.objects()["a"]
    world.weather[Side(side)].lag = 19.0
    plane.delete("a")
    world.pass_time(0.2)  # the watch tells of the one before the other
    labels = {ROBOT_LABEL: ROBOT} if ROBOT_LABEL in (before["metadata"].get("labels") or {}) else {}
    return plane.create("a", spec={"x": 1}, annotations=before["metadata"]["annotations"], labels=labels)


@pytest.mark.parametrize(
    ("side", "kind", "most"),
    [("cloud", {"source": "robot"}, 20), ("robot", {}, 1), ("robot", {"filtered": "true"}, 1)],
)
def test_S10_a_create_of_what_the_watch_has_not_shown_yet_is_refused_and_backs_off(
    side: str, kind: dict[str, Any], most: int
) -> None:
    with scene(goals=kind) as world:
        world.start()
        upstream = world.planes[Side(side).other]
        upstream.create("a", spec={"x": 1}, labels={ROBOT_LABEL: ROBOT} if kind.get("filtered") else {})
        world.settle()
        made = made_again(world, side)
        known = len(world.writes)
        world.pass_time(39)
        posts = [write for write in world.writes[known:] if write.call.method == "POST"]
        assert {write.status for write in posts} == {409}
        assert len(posts) <= most
        world.heal(side)
        assert world.planes[Side(side)].objects()["a"]["metadata"]["uid"] == made["metadata"]["uid"]


def denied(world: World, methods: str, *, standing: bool = False) -> list[tuple[float, str]]:
    """When the cloud refused which status writes, from now on."""
    sent: list[tuple[float, str]] = []

    def matches(call: Call) -> bool:
        hit = call.method in methods.split() and call.path.endswith("/status")
        if hit:
            sent.append((world.clock.now, call.method))
        return hit

    world.weather[Side.CLOUD].add(Rule(matches, DENIED, math.inf, standing=standing))
    return sent


def test_S10_a_status_that_may_not_be_written_is_tried_at_most_six_times_in_the_first_minute() -> None:
    for seed in range(10):
        with synced(seed) as world:
            sent = denied(world, "PATCH PUT")
            world.report("a", {"phase": "DONE"}, seconds=1)
            begun = sent[0][0]
            world.pass_time(begun + 60 - world.clock.now)
            assert len({round(at, 1) for at, _ in sent}) <= 6
            assert len(sent) <= 7  # a try is a PATCH and, once for the kind, the PUT instead
            world.mend("cloud")
            world.pass_time(75)  # the longest wait
            assert original(world)["status"] == {"phase": "DONE"}


@pytest.mark.parametrize("granted", ["PATCH", "PUT"])
def test_S4_2_whichever_right_is_granted_after_both_were_refused_is_used(granted: str) -> None:
    with synced() as world:
        denied(world, "PATCH PUT")
        world.report("a", {"phase": "DONE"}, seconds=20)
        world.weather[Side.CLOUD].rules.clear()
        denied(world, "PUT" if granted == "PATCH" else "PATCH", standing=True)
        world.pass_time(180)
        assert original(world)["status"] == {"phase": "DONE"}
        assert copy(world)["status"] == {"phase": "DONE"}
