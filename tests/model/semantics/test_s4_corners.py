"""S4 where it is awkward: PUT in place of PATCH, objects given away, odd statuses, subtrees, the audit."""

import math
from dataclasses import replace
from typing import Any

import pytest

from crsyncer.core.content.annotations import OURS, ROBOT_LABEL
from crsyncer.core.model import Json, Side
from crsyncer.core.requests.calls import PARTIAL_LIST
from tests.model.scenes.statuses import generation, observed, sent
from tests.model.simulation.answers import FORBIDDEN, INTERNAL_ERROR
from tests.model.simulation.life import ROBOT
from tests.model.simulation.plane import GROUP
from tests.model.simulation.scene import SOURCES, changes, copy, original, restart, roles, scene
from tests.model.simulation.weather import Fate
from tests.model.simulation.world import World
from tests.system.bed import crd

DAY = 24 * 3600.0
COMPLETING: Json = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": True,
            "properties": {"speed": {"type": "string", "default": "slow"}},
        },
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}
BOTH = pytest.mark.parametrize("source", SOURCES)
SHAPES = pytest.mark.parametrize("subresource", [True, False], ids=["subresource", "main"])


def refuse_patches(world: World) -> None:
    """The account may update statuses, and not patch them."""
    world.inject("cloud", FORBIDDEN, verb="patch", part="/goals/", times=1_000_000)


@SHAPES
def test_S4_2_a_put_is_guarded_like_the_patch_and_made_again_after_a_conflict(subresource: bool) -> None:
    with scene(goals={"status": subresource}) as world:
        refuse_patches(world)
        world.begin("a")
        world.report("a", {"n": 1})
        world.weather[Side.CLOUD].latency = 1.0
        world.report("a", {"n": 2}, seconds=0.5)
        world.cloud.set("a", spec={"x": 2})
        world.cloud.label("a", new="1")
        world.settle()
        assert [request.status for request in sent(world)] == [403, 200, 409, 200]
        found = original(world)
        assert (found["status"], found["spec"], found["metadata"]["labels"]) == ({"n": 2}, {"x": 2}, {"new": "1"})


def test_S4_2_a_put_without_the_subresource_carries_the_whole_object() -> None:
    with scene(goals={"status": False}) as world:
        refuse_patches(world)
        world.begin(
            "a", data={"k": "v"}, labels={"zone": "b"}, annotations={"note": "kept"}, finalizers=["example.com/f"]
        )
        before = original(world)
        for number in range(3):
            world.report("a", {"n": number})
        found = original(world)
        drop = ("resourceVersion", "generation")
        kept = [{k: v for k, v in each["metadata"].items() if k not in drop} for each in (before, found)]
        assert kept[0] == kept[1]
        assert (found["status"], found["spec"], found["data"]) == ({"n": 2}, {"x": 1}, {"k": "v"})


@pytest.mark.parametrize("subtree", [None, "robot"], ids=["whole", "subtree"])
def test_S4_3_an_adopted_copy_keeps_its_status_and_sends_it(subtree: str | None) -> None:
    with scene(goals={"subtree": subtree}) as world:
        world.robot.create("a", spec={"x": 0}, labels={"theirs": "1"})
        world.robot.set_status("a", {"robot": {"k": 5}})
        world.cloud.create("a", spec={"x": 1})
        world.cloud.set_status("a", {"robot": {"k": 4}, "cloud": {"m": 1}})
        made = copy(world)["metadata"]["uid"]
        world.begin()
        found = copy(world)
        assert (found["metadata"]["uid"], found["metadata"]["labels"]) == (made, {"theirs": "1"})
        assert found["metadata"]["annotations"][OURS + "upstream-uid"] == original(world)["metadata"]["uid"]
        assert (found["spec"], found["status"]) == ({"x": 1}, {"robot": {"k": 5}})
        assert original(world)["status"] == {"robot": {"k": 5}, **({"cloud": {"m": 1}} if subtree else {})}
        assert [write.verb for write in world.writes] == ["update", "status"], "the copy's own status is not written"


def test_S4_4_a_seed_that_a_crash_interrupts_is_still_given() -> None:
    for steps in range(1, 60):
        with scene(steps) as world:
            world.cloud.create("a", spec={"x": 1})
            world.cloud.set_status("a", {"k": "old"})
            world.start()
            world.crash_after(steps)
            world.pass_time(5)
            restart(world, kill=True)
            assert (copy(world)["status"], original(world)["status"]) == ({"k": "old"}, {"k": "old"}), steps


def test_S4_1_S6_3_a_status_that_waits_behind_an_acknowledged_one_outlives_a_crash_and_its_copy() -> None:
    for cut in range(16):
        with scene() as world:
            world.begin("a")
            for number in (1, 2):
                world.robot.set_status("a", {"n": number})
            while original(world).get("status") != {"n": 1}:
                world.pass_time(0.001)
            world.pass_time(0.03)  # the answer has come
            rows, durable = list(world.disk.rows), world.disk.durable
            world.crash()
            world.disk.rows = rows[: durable + cut]  # what had reached the disk by then
            world.disk.durable = len(world.disk.rows)
            waits = [row[3] for row in world.disk.rows if row[0] == "pending"][-1:]
            world.robot.delete("a")
            world.start()
            world.settle()
            assert not any(waits) or original(world)["status"]["n"] >= waits[0].value["n"], cut


@pytest.mark.parametrize("value", [[1, 2], "text", 7, False, {"deep": {"er": None}}], ids=str)
def test_S4_5_a_subtree_may_be_any_value(value: Any) -> None:
    with World(kinds={"goals": {"subtree": "robot"}}) as world:
        world.begin("a")
        world.report("a", {"robot": value})
        assert original(world)["status"] == copy(world)["status"] == {"robot": value}
        restart(world)
        assert len(sent(world)) == 1


@pytest.mark.parametrize("put", [False, True], ids=["patch", "put"])
@SHAPES
def test_S4_5_a_subtree_that_goes_is_removed_alone_and_the_neighbours_stay(put: bool, subresource: bool) -> None:
    with World(kinds={"goals": {"subtree": "robot", "status": subresource}}) as world:
        if put:
            refuse_patches(world)
        world.begin("a")
        world.cloud.set_status("a", {"cloud": {"plan": 1}})
        world.report("a", {"robot": {"k": 1}, "local": 1})
        assert original(world)["status"] == {"cloud": {"plan": 1}, "robot": {"k": 1}}
        world.cloud.set_status("a", {"cloud": {"plan": 2}, "robot": {"k": 1}})
        world.report("a", {"local": 1})
        assert (original(world)["status"], original(world)["spec"]) == ({"cloud": {"plan": 2}}, {"x": 1})


def reasons(world: World) -> list[str]:
    """What `status` says is wrong."""
    return [reason["code"] for reason in world.status()["reasons"]]


@pytest.mark.parametrize("subtree", [None, "robot"], ids=["whole", "subtree"])
def test_S4_5_a_downstream_status_that_is_no_object_is_reported_and_not_sent(subtree: str | None) -> None:
    with World(kinds={"goals": {"subtree": subtree, "status": False}}) as world:
        world.begin("a")
        world.report("a", {"robot": {"k": 1}})
        world.report("a", "just text")
        assert (reasons(world), world.status()["health"]) == (["StatusNotAnObject"], "attention")
        world.edit("a", spec={"x": 2})
        assert (copy(world)["spec"], copy(world)["status"]) == ({"x": 2}, "just text")
        assert original(world)["status"] == {"robot": {"k": 1}}
        assert reasons(world) == ["StatusNotAnObject"]
        world.report("a", {"robot": {"k": 3}})
        assert (original(world)["status"], world.status()["health"]) == ({"robot": {"k": 3}}, "healthy")


def test_S4_5_an_upstream_status_that_is_no_object_has_no_place_for_a_subtree() -> None:
    with World(kinds={"goals": {"subtree": "robot", "status": False}}) as world:
        world.begin("a", status="just text")
        world.report("a", {"robot": {"k": 1}}, seconds=600)
        assert (sent(world), world.status()["health"]) == ([], "attention")
        assert original(world)["status"] == "just text"
        world.cloud.set_status("a", {"cloud": 1})
        world.settle()
        assert (original(world)["status"], world.status()["health"]) == ({"cloud": 1, "robot": {"k": 1}}, "healthy")


def test_S4_6_without_the_subresource_a_status_is_no_content() -> None:
    """A status in the main resource changes the generation, but is neither drift downstream nor a change upstream."""
    with World(kinds={"goals": {"status": False}}) as world:
        world.begin("a")
        before = len(world.journal.asked("robot", verb="write", kind="goals"))
        for number in range(5):
            world.report("a", {"k": number})
        world.cloud.set_status("a", {"by": "somebody"})
        world.settle()
        assert len(world.journal.asked("robot", verb="write", kind="goals")) == before


# S4.7


def test_S4_7_map_knows_content_that_downstreams_schema_has_completed() -> None:
    with scene(goals={"observed_generation": "map"}) as world:
        world.robot.apply(crd(GROUP, observed_generation="map", schema=COMPLETING))
        world.begin("a")
        first = generation(copy(world))
        for number in (2, 3):
            world.edit("a", spec={"x": number})
        assert copy(world)["spec"] == {"x": 3, "speed": "slow"}
        assert [observed(world, g) for g in (first, generation(copy(world)))] == [1, 3]


@pytest.mark.parametrize("stopped", [False, True], ids=["running", "restarted"])
def test_S4_7_map_corrects_what_was_reported_before_its_own_write_was_answered(stopped: bool) -> None:
    with scene(goals={"observed_generation": "map"}) as world:
        world.robot.apply(crd(GROUP, observed_generation="map", schema=COMPLETING))
        world.begin("a")
        world.inject("robot", Fate.REPLY_LOST, verb="update", part="/goals/a")
        world.edit("a", spec={"x": 2}, seconds=1)
        world.report("a", {"observedGeneration": generation(copy(world))}, seconds=5)
        assert original(world)["status"] == {"observedGeneration": 0}, "only the answer tells whose content that is"
        if stopped:
            restart(world)
        world.pass_time(120)
        assert original(world)["status"] == {"observedGeneration": 2}


def test_S4_7_map_leaves_a_subtree_alone() -> None:
    with scene(goals={"observed_generation": "map", "subtree": "robot"}) as world:
        world.begin("a")
        world.report("a", {"robot": {"observedGeneration": 1000}, "observedGeneration": 1})
        assert original(world)["status"] == {"robot": {"observedGeneration": 1000}}


def test_S4_7_a_mapped_status_settles() -> None:
    with scene(goals={"observed_generation": "map"}) as world:
        world.begin("a")
        assert observed(world, 1000) == 0
        restart(world)
        world.pass_time(600)
        assert (len(sent(world)), world.status()["outbox"]["depth"]) == (1, 0)


def test_S4_7_a_copy_that_was_made_anew_counts_its_own_generations() -> None:
    with scene(goals={"observed_generation": "map"}) as world:
        world.begin("a")
        for number in (2, 3):
            world.edit("a", spec={"x": number})
        assert observed(world, 2) == 2
        world.robot.delete("a")
        world.settle()
        world.robot.set("a", spec={"x": 9})
        world.settle()
        assert observed(world, 2) == 0, "its second generation was somebody else's"
        assert observed(world, generation(copy(world))) == 3


# S4.8, S4.4


def test_S4_8_a_status_removed_upstream_comes_back_with_the_next_change(world: World) -> None:
    world.report("a", {"n": 1})
    world.cloud.set_status("a", None)
    world.pass_time(600)
    assert ("status" in original(world), copy(world)["status"], len(sent(world))) == (False, {"n": 1}, 1)
    world.report("a", {"n": 2})
    assert original(world)["status"] == {"n": 2}


def test_S4_8_S9_4_an_audit_that_finds_nothing_lists_versions_and_writes_nothing(world: World) -> None:
    world.report("a", {"n": 1})
    since, before = world.clock.now, changes(world)
    relists = world.status()["kinds"][0]["relists"]
    world.pass_time(2 * DAY)
    assert changes(world) == before
    for side in ("cloud", "robot"):
        lists = [r for r in world.journal.asked(side, verb="list", kind="goals", since=since) if "limit" in r.query]
        audits = [r for r in lists if r.query["limit"] != "1"]
        assert 6 <= len(audits) <= 10, "every six hours"
        assert {r.call.accept for r in audits} == {PARTIAL_LIST}
    assert (world.status()["kinds"][0]["relists"], world.status()["health"]) == (relists, "healthy")


@pytest.mark.parametrize("side", ["cloud", "robot"])
def test_S4_8_S9_4_an_audit_finds_what_the_watch_has_not_shown(world: World, side: str) -> None:
    world.add("gone")
    with world.down():
        here = world.planes[Side(side)]
        here.set("a", spec={"x": 2})
        here.delete("gone")
        here.create("new", spec={"x": 1})
        skip(world, side, here.server.storage.revision)
    world.pass_time(600)
    assert set(world.robot.objects()) != set(world.cloud.objects()), "nothing has told of it"
    world.pass_time(DAY)
    assert copy(world)["spec"] == original(world)["spec"]
    assert (set(world.cloud.objects()), set(world.robot.objects())) == {
        "cloud": ({"a", "new"}, {"a", "new", "gone"}),
        "robot": ({"a", "gone"}, {"a", "gone"}),
    }[side]
    # A cursor that is past what nobody has seen is one of another history: deletions are held (S8.3).
    assert [hold["reason"] for hold in world.status()["holds"]] == ["Restored"] * (side == "cloud")


def skip(world: World, side: str, revision: int) -> None:
    """Put the stored cursor of a side ahead, as if its watch had been silent about what came before."""
    rows = world.disk.rows
    place = (Side(side), "")
    last = next(row for row in reversed(rows) if (row[0], row[2]) == ("cursor", place))
    rows.append(("cursor", last[1], place, replace(last[3], resource_version=str(revision))))
    world.disk.durable = len(rows)


def test_S4_4_a_copy_that_is_made_while_the_last_status_is_acknowledged_gets_it() -> None:
    for seed in range(10):
        with scene(seed) as world:
            world.begin("a")
            world.weather[Side.ROBOT].latency = 2.0
            world.inject("cloud", INTERNAL_ERROR, verb="patch", part="/a/status")
            world.robot.set_status("a", {"phase": "Done"})
            world.robot.delete("a")
            world.settle()
            assert copy(world)["status"] == original(world)["status"] == {"phase": "Done"}, seed


@BOTH
@SHAPES
def test_S4_2_for_a_filtered_kind_the_patch_tests_the_robots_label_as_well(source: str, subresource: bool) -> None:
    with scene(goals={"source": source, "status": subresource, "filtered": "true"}) as world:
        _, down = roles(world, source)
        world.begin("a", source=source, labels={ROBOT_LABEL: ROBOT})
        down.set_status("a", {"phase": "DONE"})
        world.settle()
        (request,) = sent(world, source)
        label = {"op": "test", "path": "/metadata/labels/cloudrobotics.com~1robot-name", "value": ROBOT}
        assert [operation["op"] for operation in request.call.body] == ["test", "test", "add"]
        assert request.call.body[0]["path"] == "/metadata/uid"
        assert (request.call.body[1], request.status) == (label, 200)


@BOTH
@SHAPES
@pytest.mark.parametrize("method", ["PATCH", "PUT"])
@pytest.mark.parametrize("label", ["robot-2", None], ids=["another", "none"])
def test_S4_2_a_status_on_its_way_does_not_land_on_an_object_that_was_given_away(
    source: str, subresource: bool, method: str, label: str | None
) -> None:
    with scene(goals={"source": source, "status": subresource, "filtered": "true"}) as world:
        up, down = roles(world, source)
        world.begin("a", source=source, labels={ROBOT_LABEL: ROBOT})
        if method == "PUT":
            world.inject(source, FORBIDDEN, verb="patch", part="/goals/", times=math.inf)
        world.report("a", {"phase": "OLD"}, source=source)
        since, version = world.clock.now, up.objects()["a"]["metadata"]["resourceVersion"]
        world.weather[up.side].latency = 2.0
        world.report("a", {"phase": "NEW"}, source=source, seconds=1)
        up.label("a", robot=label)
        world.settle()
        assert up.objects()["a"]["status"] == {"phase": "OLD"}
        assert int(up.objects()["a"]["metadata"]["resourceVersion"]) == int(version) + 1
        (request,) = sent(world, source, since=since)
        assert (request.call.method, request.status) == (method, 422 if method == "PATCH" else 409)
        assert (down.objects(), world.status()["outbox"]["depth"]) == ({}, 0)
        assert world.status()["health"] == "healthy"
