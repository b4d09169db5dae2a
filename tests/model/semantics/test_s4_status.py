"""S4.1 to S4.10: a status goes up once, guarded by uid, is never blanked, and nobody is fought over it."""

from typing import Any

import pytest

from crsyncer.core.content.annotations import OURS
from crsyncer.core.model import Side
from crsyncer.core.requests.calls import JSON_PATCH, PARTIAL
from tests.model.scenes.statuses import generation, observed, sent
from tests.model.simulation.answers import FORBIDDEN
from tests.model.simulation.life import AgentSettings
from tests.model.simulation.plane import GROUP
from tests.model.simulation.scene import SOURCES, copy, original, restart, roles, scene, settle
from tests.model.simulation.world import World
from tests.system.bed import crd

BOTH = pytest.mark.parametrize("source", SOURCES)
SHAPES = pytest.mark.parametrize("subresource", [True, False], ids=["subresource", "main"])


def test_S4_1_a_status_that_came_back_to_what_upstream_has_is_not_sent(world: World) -> None:
    world.report("a", {"step": 1})
    world.cut("cloud", seconds=5)
    begun = world.clock.now
    world.report("a", {"step": 2}, seconds=5)
    assert world.status()["outbox"]["depth"] == 1
    world.robot.set_status("a", {"step": 1})
    world.heal("cloud", seconds=120)
    assert (sent(world, since=begun), world.status()["outbox"]["depth"]) == ([], 0)


def test_S4_1_a_status_that_flips_while_it_is_being_sent_ends_as_downstream_has_it(world: World) -> None:
    world.report("a", {"step": 1})
    world.weather[Side.CLOUD].latency = 0.7
    begun = world.clock.now
    world.report("a", {"step": 2}, seconds=0.3)
    assert len(sent(world, since=begun)) == 1
    world.report("a", {"step": 1})
    assert original(world)["status"] == {"step": 1}
    assert len(sent(world, since=begun)) == 2


@BOTH
def test_S4_1_a_status_that_is_on_its_way_cannot_land_on_a_re_created_object(source: str) -> None:
    with scene(goals={"source": source}) as world:
        up, _ = roles(world, source)
        world.begin("a", source=source)
        world.weather[up.side].latency = 2.0
        world.report("a", {"phase": "OLD"}, source=source, seconds=1)
        up.delete("a")
        world.add("a", source=source, spec={"x": 2})
        assert "status" not in up.objects()["a"]
        assert [request.status for request in sent(world, source)[:1]] == [422]


@BOTH
@SHAPES
def test_S4_2_it_is_a_json_patch_that_first_tests_the_uid_and_asks_for_metadata_back(
    source: str, subresource: bool
) -> None:
    with scene(goals={"source": source, "status": subresource}) as world:
        up, _ = roles(world, source)
        world.begin("a", source=source)
        world.report("a", {"phase": "DONE"}, source=source)
        (request,) = sent(world, source)
        call = request.call
        suffix = "/status" if subresource else ""
        assert (call.method, call.path) == ("PATCH", f"/apis/{GROUP}/v1/namespaces/default/goals/a{suffix}")
        assert (call.content_type, call.accept, request.status) == (JSON_PATCH, PARTIAL, 200)
        uid = up.objects()["a"]["metadata"]["uid"]
        assert call.body[0] == {"op": "test", "path": "/metadata/uid", "value": uid}
        assert [operation["path"] for operation in call.body[1:]] == ["/status"]


def test_S4_2_where_patch_is_refused_a_put_of_the_bare_status_is_made_and_remembered() -> None:
    with World() as world:
        world.begin("a")
        world.inject("cloud", FORBIDDEN, verb="patch", part="/goals/", times=1000)
        before = original(world)
        for phase in ("ONE", "TWO", None):
            world.report("a", None if phase is None else {"phase": phase})
            assert original(world).get("status") == (None if phase is None else {"phase": phase})
        with world.down():
            world.robot.set_status("a", {"phase": "THREE"})
        world.settle()
        assert original(world)["status"] == {"phase": "THREE"}
        assert [request.call.method for request in sent(world)] == ["PATCH", "PUT", "PUT", "PUT", "PUT"]
        identity = {key: before["metadata"][key] for key in ("name", "namespace", "uid", "resourceVersion")}
        whole = {"apiVersion": f"{GROUP}/v1", "kind": "Goal", "metadata": identity}
        assert sent(world)[1].call.body == whole | {"status": {"phase": "ONE"}}


@BOTH
@pytest.mark.parametrize("subtree", [None, "robot"], ids=["whole", "subtree"])
@SHAPES
def test_S4_3_a_status_from_before_the_first_sync_is_never_replaced_by_nothing(
    source: str, subresource: bool, subtree: str | None
) -> None:
    with scene(goals={"source": source, "status": subresource, "subtree": subtree}) as world:
        up, down = roles(world, source)
        before = {"robot": {"phase": "DONE"}, "cloud": {"since": 1}}
        up.create("a", spec={"x": 1})
        up.set_status("a", before)
        if source == "cloud":  # a predecessor's copy, without our annotations, whose status is empty
            up.create("empty", spec={"x": 1})
            up.set_status("empty", before)
            down.create("empty", spec={"x": 0})
            down.set_status("empty", {})
        world.begin()
        world.edit("a", spec={"x": 2}, source=source)
        restart(world)
        assert down.objects()["a"]["status"]["robot"] == before["robot"]
        assert all(obj["status"] == before for obj in up.objects().values())
        assert sent(world, source) == []


@BOTH
@SHAPES
@pytest.mark.parametrize("down_meanwhile", [False, True])
def test_S4_3_a_status_that_was_there_and_is_gone_is_removed_upstream(
    source: str, subresource: bool, down_meanwhile: bool
) -> None:
    with World(kinds={"goals": {"source": source, "status": subresource}}) as world:
        up, down = roles(world, source)
        world.begin("a", source=source)
        world.report("a", {"phase": "DONE"}, source=source)
        with world.down(down_meanwhile):
            down.set_status("a", None)
        world.settle()
        assert "status" not in up.objects()["a"]
        assert len(sent(world, source)) == 2


@BOTH
@SHAPES
def test_S4_4_a_created_copy_gets_upstreams_status_once_and_no_seed_follows_later(
    source: str, subresource: bool
) -> None:
    with scene(goals={"source": source, "status": subresource}) as world:
        up, down = roles(world, source)
        world.begin("a", source=source)
        up.set_status("a", {"by": "upstream"})
        world.settle()
        assert "status" not in down.objects()["a"]
        down.delete("a")  # the robot is re-installed
        world.settle()
        assert down.objects()["a"]["status"] == {"by": "upstream"}
        up.set_status("a", {"n": 99})  # from then on downstream owns it
        world.settle()
        restart(world)
        assert down.objects()["a"]["status"] == {"by": "upstream"}
        assert sent(world, source) == []


@pytest.mark.parametrize("text", ["a/b~c", "robot"])
def test_S4_5_a_change_beside_the_subtree_is_not_sent_and_the_patch_names_the_key(text: str) -> None:
    with scene(goals={"subtree": text}) as world:
        world.begin("a")
        world.cloud.set_status("a", {"other": 1})
        world.report("a", {"local": 1}, seconds=60)
        assert sent(world) == []
        world.report("a", {text: {"n": 1}, "local": 1})
        world.report("a", {text: {"n": 1}, "local": 2}, seconds=60)
        assert original(world)["status"] == {"other": 1, text: {"n": 1}}
        assert [operation["op"] for operation in sent(world)[0].call.body] == ["test", "add"]
        assert len(sent(world)) == 1


def test_S4_5_neighbours_that_appear_while_the_status_is_made_survive() -> None:
    with scene(goals={"subtree": "robot"}) as world:
        world.begin("a")
        world.weather[Side.CLOUD].latency = 1.0
        world.report("a", {"robot": {"n": 1}}, seconds=0.5)
        world.cloud.set_status("a", {"cloud": {"plan": 1}})
        world.settle()
        assert original(world)["status"] == {"cloud": {"plan": 1}, "robot": {"n": 1}}


@BOTH
@pytest.mark.parametrize(("cloud_has", "robot_has"), [(False, False), (True, False), (False, True)])
def test_S4_6_status_works_without_the_subresource_on_either_side(
    source: str, cloud_has: bool, robot_has: bool
) -> None:
    with World(kinds={"goals": {"source": source, "status": robot_has}}) as world:
        up, down = roles(world, source)
        world.cloud.apply(crd(GROUP, status=cloud_has))
        up.create("a", spec={"x": 1})
        up.set_status("a", {"n": 0})
        world.begin()
        assert down.objects()["a"]["status"] == {"n": 0}
        world.report("a", {"n": 1}, source=source)
        up.set("a", spec={"x": 2})
        down.set("a", spec={"x": 9})
        world.settle()
        assert up.objects()["a"]["status"] == down.objects()["a"]["status"] == {"n": 1}
        assert down.objects()["a"]["spec"] == {"x": 2}
        (request,) = sent(world, source)
        assert request.call.path.endswith("/status") == (cloud_has if source == "cloud" else robot_has)
        assert request.call.body[0]["path"] == "/metadata/uid"
        made = world.journal.asked(down.side.value, verb="create", kind="goals")[0].call.body
        assert ("status" in made) is not (robot_has if source == "cloud" else cloud_has)


@pytest.mark.parametrize("value", [7, "7", 1.5, True, None, [1]])
def test_S4_7_it_is_copied_verbatim_by_default_and_what_is_no_integer_always(value: Any) -> None:
    for keywords in ({}, {} if type(value) is int else {"observed_generation": "map"}):
        with scene(goals=keywords) as world:
            world.begin("a")
            assert observed(world, value) == value


def test_S4_7_map_reports_the_generation_of_the_content_that_was_observed_and_never_more() -> None:
    with scene(goals={"observed_generation": "map"}) as world:
        world.begin("a")
        first = generation(copy(world))
        for number in range(3):  # drift and its revert: two downstream generations more, none upstream
            world.robot.set("a", spec={"x": 50 + number})
            drifted = generation(copy(world))
            world.settle()
        assert generation(copy(world)) > generation(original(world)) == 1
        assert [observed(world, g) for g in (first, drifted, generation(copy(world)), 1000)] == [1, 0, 1, 0]
        world.edit("a", spec={"x": 2})
        assert [observed(world, g) for g in (first, generation(copy(world)))] == [1, 2]
        restart(world)
        assert observed(world, first) == 1
        asked = [r.call.body[-1]["value"]["observedGeneration"] for r in sent(world)]
        assert max(asked) <= 2


@BOTH
def test_S4_8_a_status_written_upstream_stands_until_downstream_changes(source: str) -> None:
    with scene(goals={"source": source}) as world:
        up, _ = roles(world, source)
        world.begin("a", source=source)
        world.report("a", {"n": 1}, source=source)
        for number in range(10):
            up.set_status("a", {"by": "somebody", "n": number})
            world.pass_time(5)
        restart(world)
        assert (up.objects()["a"]["status"], len(sent(world, source))) == ({"by": "somebody", "n": 9}, 1)
        world.report("a", {"n": 2}, source=source)
        assert (up.objects()["a"]["status"], len(sent(world, source))) == ({"n": 2}, 2)


@pytest.mark.fault_29
def test_S4_8_the_audit_overrules_who_wrote_the_status_upstream_and_keeps_the_neighbours() -> None:
    with scene(goals={"subtree": "robot"}) as world:
        world.begin("a")
        world.report("a", {"robot": {"phase": "DONE"}})
        world.cloud.set_status("a", {"robot": {"phase": "WRONG"}, "cloud": {"seen": True}})
        world.pass_time(2 * 6 * 3600)
        assert original(world)["status"] == {"robot": {"phase": "DONE"}, "cloud": {"seen": True}}
        assert len(sent(world)) == 2


def test_S4_9_what_upstreams_schema_made_of_a_status_is_remembered_and_not_fought() -> None:
    fields = {"n": {"type": "integer"}, "level": {"type": "string", "default": "low"}}
    any_object = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {
        "type": "object",
        "properties": {"spec": any_object, "status": {"type": "object", "properties": fields}},
    }
    with World() as world:
        world.cloud.apply(crd(GROUP, schema=schema))
        world.begin("a")
        for number in (1, 2):
            world.report("a", {"n": number, "unknown": {"pruned": True}})
            assert original(world)["status"] == {"n": number, "level": "low"}
            world.edit("a", spec={"x": number + 1}, seconds=60)
            restart(world)
            assert len(sent(world)) == number


def test_S4_9_a_status_that_upstream_has_already_is_not_sent(world: World) -> None:
    world.cloud.set_status("a", {"n": 1, "m": [1.0, {"k": None}]})
    world.settle()
    world.report("a", {"m": [1, {"k": None}], "n": 1.0}, seconds=60)
    assert sent(world) == []


def test_S4_10_two_robots_that_write_one_status_do_not_play_ping_pong() -> None:
    with World() as one, World(1, beside=one, settings=AgentSettings("robot-2")) as two:
        one.start()
        two.start()
        one.cloud.create("a", spec={"x": 1})
        settle(one, two)
        for number in range(5):
            one.robot.set_status("a", {"robot": 1, "n": number})
            one.pass_time(3)
            two.robot.set_status("a", {"robot": 2, "n": number})
            one.pass_time(3)
        one.pass_time(3600)
        assert [len(sent(each)) for each in (one, two)] == [5, 5]
        assert original(one)["status"] == {"robot": 2, "n": 4}
        assert OURS + "upstream-uid" in copy(two)["metadata"]["annotations"]
