"""C6.1 to C6.3 on virtual time: a robot's finalizer keeps upstream's object until the copy has gone."""

import math
from contextlib import nullcontext

import pytest

from crsyncer.core.content.annotations import ROBOT_LABEL, SPEC_SOURCE
from tests.model.scenes.blocking import LOCAL, MINE, block, blocking, finalizer_rows, finalizers, patches
from tests.model.scenes.policies import delete_policy, drop_policies, serve_policies
from tests.model.simulation.answers import INTERNAL_ERROR, invalid
from tests.model.simulation.scene import SOURCES, full_lists, out_of_sight, roles
from tests.model.simulation.weather import Fate
from tests.model.simulation.world import World

BOTH = pytest.mark.parametrize("source", SOURCES)


def order(world: World) -> list[str]:
    """The writes about a, oldest first."""
    return [f"{write.side}: {write.verb}" for write in world.writes if write.name == "a" and write.status < 300]


@BOTH
def test_C6_1_the_finalizer_is_upstream_before_the_copy_is_made(source: str) -> None:
    with blocking(source=source) as world:
        up, down = roles(world, source)
        world.begin()
        world.inject(up.side.value, INTERNAL_ERROR, verb="patch", part="/goals/a", times=3)
        world.add("a", source=source, finalizers=[LOCAL], seconds=2)
        assert (finalizers(up), down.objects()) == ([LOCAL], {})
        world.settle()
        world.pass_time(60)
        assert finalizers(up) == [LOCAL, MINE]
        assert finalizers(down) == []
        assert order(world) == [f"{up.side}: patch", f"{down.side}: create"]


def test_C6_1_where_the_end_of_the_policy_has_removed_the_finalizer_no_copy_is_made_without_it() -> None:
    with blocking() as world:
        world.begin("a")
        delete_policy(world.robot)
        world.robot.annotate_kind({SPEC_SOURCE: None})
        world.pass_time(7)
        assert finalizers(world.cloud) == []
        world.robot.annotate_kind({SPEC_SOURCE: "cloud"})
        block(world)
        world.silence("cloud")
        world.pass_time(120)
        world.robot.delete("a")
        world.pass_time(60)
        assert world.robot.objects() == {}
        world.heal("cloud")
        assert (finalizers(world.cloud), set(world.robot.objects())) == ([MINE], {"a"})


def test_C6_1_older_objects_get_the_finalizer_and_terminating_ones_never() -> None:
    with blocking() as world:
        block(world, mode="async")
        world.cloud.create("a", spec={"x": 1})
        world.begin("b", finalizers=[LOCAL])
        world.robot.finalize("b", LOCAL)
        world.remove("b")
        assert (finalizers(world.cloud), finalizers(world.cloud, "b")) == ([], [LOCAL])
        block(world)
        world.settle()
        assert (finalizers(world.cloud), finalizers(world.cloud, "b")) == ([MINE], [LOCAL])
        assert set(world.robot.objects()) == {"a", "b"}
        world.cloud.create("c", spec={"x": 1}, finalizers=[LOCAL])
        world.remove("c")
        assert (finalizers(world.cloud, "c"), "c" in world.robot.objects()) == ([LOCAL], False)


@BOTH
def test_C6_3_upstreams_object_goes_when_the_copy_has_gone_and_its_last_status_is_up(source: str) -> None:
    with blocking(source=source) as world:
        up, down = roles(world, source)
        world.begin("a", source=source)
        down.finalize("a", LOCAL)
        world.settle()
        world.remove("a", source=source, seconds=600)
        assert (finalizers(up), finalizers(down)) == ([MINE], [LOCAL])
        world.cut(up.side.value)
        down.set_status("a", {"n": 7, "of": up.objects()["a"]["metadata"]["uid"]})
        down.finalize("a")
        world.pass_time(600)
        assert down.objects() == {}
        assert finalizers(up) == [MINE]
        made = len(order(world))
        world.heal(up.side.value)
        assert up.objects() == {}
        assert order(world)[made:] == [f"{up.side}: status", f"{up.side}: patch"]
        last = [write for write in world.writes if write.verb == "patch"][-1]
        assert (last.before or {})["status"]["n"] == 7


def test_S7_2_what_happened_during_a_cut_does_not_wait_for_the_end_of_a_grace_period() -> None:
    with blocking(grace="720h") as world:
        world.begin("a", "b")
        world.robot.finalize("a", LOCAL)
        world.remove("a", seconds=60)
        world.cut("robot")
        world.report("b", {"phase": "DONE"}, seconds=30)
        world.heal("robot", seconds=60)
        assert world.cloud.objects()["b"]["status"] == {"phase": "DONE"}


def test_C6_3_a_dead_letter_is_waited_for_until_an_operator_drops_it() -> None:
    with blocking() as world:
        world.begin("a")
        world.inject("cloud", invalid(), verb="patch", part="/status", times=math.inf)
        world.report("a", {"n": 1})
        world.remove("a", seconds=600)
        assert (world.robot.objects(), finalizers(world.cloud)) == ({}, [MINE])
        assert finalizer_rows(world) == []
        world.order("drop", resource="goals.lab.example.com", name="default/a", confirmed=True)
        world.settle()
        assert world.cloud.objects() == {}


def test_C6_3_the_last_status_of_a_copy_that_went_while_the_agent_was_down_is_up_first() -> None:
    with blocking() as world:
        world.begin("a")
        world.robot.finalize("a", LOCAL)
        world.settle()
        uid = world.cloud.objects()["a"]["metadata"]["uid"]
        world.cut("cloud")
        world.report("a", {"n": 3, "of": uid}, seconds=5)
        with world.down(kill=True):
            world.cloud.delete("a")
            world.robot.finalize("a")
            world.robot.delete("a")
        world.pass_time(60)
        assert finalizers(world.cloud) == [MINE]
        world.heal("cloud")
        assert world.cloud.objects() == {}
        patched = [write for write in world.writes if write.side == "cloud" and write.verb in ("status", "patch")]
        assert [write.verb for write in patched][-2:] == ["status", "patch"]


@BOTH
@pytest.mark.parametrize("kill", [False, True])
def test_C6_3_a_removal_waits_in_the_outbox_without_the_link_and_through_kill_9(source: str, kill: bool) -> None:
    with blocking(source=source) as world:
        up, down = roles(world, source)
        world.begin("a", source=source)
        world.inject(up.side.value, INTERNAL_ERROR, verb="patch", part="/goals/a", times=math.inf)
        world.remove("a", source=source, seconds=30)
        assert down.objects() == {}
        (waiting,) = finalizer_rows(world)
        assert (waiting["to"], waiting["name"], waiting["dead"]) == (up.side.value, "a", False)
        assert waiting["attempts"] > 0
        assert (waiting["error"], waiting["nextTry"] is not None) == ("storm", True)
        world.cut(up.side.value)
        if kill:
            world.pass_time(5)
            world.crash()
            world.start()
        world.pass_time(60)
        if source == "cloud" or not kill:  # else the agent does not know yet which kinds there are
            assert [row["since"] for row in finalizer_rows(world)] == [waiting["since"]]
        world.heal(up.side.value)
        assert (up.objects(), finalizer_rows(world)) == ({}, [])


def test_C6_3_the_finalizer_goes_when_the_cloud_is_back_although_the_robots_server_is_away() -> None:
    with blocking() as world:
        world.begin("a")
        world.robot.finalize("a", LOCAL)
        world.settle()
        world.remove("a", seconds=10)
        world.cut("cloud", seconds=10)
        world.robot.finalize("a")
        world.pass_time(10)
        world.cut("robot", seconds=10)
        world.heal("cloud", seconds=60)
        assert world.cloud.objects() == {}


def test_C6_3_the_end_of_blocking_mode_removes_the_finalizers_and_no_copy() -> None:
    with blocking() as world:
        world.begin("a", "b", finalizers=["one/a", "two/b"])
        world.cloud.finalize("b", "one/a", MINE, "two/b")
        world.settle()
        block(world, mode="async")
        world.settle()
        assert finalizers(world.cloud, "a") == finalizers(world.cloud, "b") == ["one/a", "two/b"]
        assert set(world.robot.objects()) == {"a", "b"}
        made = len(world.writes)
        world.pass_time(4000)
        assert len(world.writes) == made


@pytest.mark.parametrize("end", ["policy", "policy and annotations", "annotation", "CRD of policies", "wrong policy"])
@pytest.mark.parametrize("when", ["seen", "offline", "while the agent was killed"])
def test_C6_3_the_end_of_the_policy_or_of_the_annotation_removes_the_finalizers(end: str, when: str) -> None:
    with blocking() as world:
        world.begin("a", finalizers=["one/a"])
        assert finalizers(world.cloud) == ["one/a", MINE]
        if when == "while the agent was killed":
            world.crash()
        if when == "offline":
            world.cut("cloud", seconds=60)
        if end in ("policy", "policy and annotations"):
            delete_policy(world.robot)
        if end == "CRD of policies":
            drop_policies(world)
        if end in ("annotation", "policy and annotations"):
            world.robot.annotate_kind({SPEC_SOURCE: None})
        if end == "wrong policy":
            block(world, grace="soon")
        if when == "while the agent was killed":
            world.start()
        if when == "offline":
            world.pass_time(60)
            assert [row["name"] for row in finalizer_rows(world)] == ["a"]
            world.mend("cloud")
        world.pass_time(120)
        assert finalizers(world.cloud) == ["one/a"]
        assert finalizer_rows(world) == []
        assert set(world.robot.objects()) == {"a"}


@pytest.mark.parametrize("when", ["seen", "offline", "while the agent was killed"])
@pytest.mark.parametrize("change", ["another robot", "no label"])
def test_C6_3_an_object_that_no_longer_matches_loses_copy_and_finalizer(change: str, when: str) -> None:
    with blocking(filtered="true") as world:
        world.begin("a", labels={ROBOT_LABEL: "robot-1"}, finalizers=["one/a", "two/b"])
        assert finalizers(world.cloud) == ["one/a", "two/b", MINE]
        world.cloud.finalize("a", "one/a", MINE, "two/b")
        world.settle()
        with out_of_sight(world, "cut" if when == "offline" else "kill") if when != "seen" else nullcontext():
            world.cloud.label("a", robot="robot-2" if change == "another robot" else None)
        world.settle()
        assert (world.robot.objects(), finalizers(world.cloud)) == ({}, ["one/a", "two/b"])
        assert finalizer_rows(world) == []
        probes = [op["path"] for each in patches(world, op="remove") for op in each.call.body if op["op"] == "remove"]
        assert probes == ["/metadata/finalizers/0", "/metadata/finalizers/1"]


def test_C6_3_the_policys_selector_is_a_label_too() -> None:
    with World() as world:  # the checker knows no selectors
        serve_policies(world.robot)
        block(world, filter={"selector": {"matchLabels": {"tier": "edge"}}})
        world.begin("a", "b", labels={"tier": "edge"})
        world.cloud.label("a", tier="core")
        world.settle()
        assert (set(world.robot.objects()), finalizers(world.cloud), finalizers(world.cloud, "b")) == (
            {"b"},
            [],
            [MINE],
        )
        block(world, filter={"selector": {"matchLabels": {"tier": "core"}}})
        world.settle()
        assert (finalizers(world.cloud), finalizers(world.cloud, "b")) == ([MINE], [])


def test_C6_3_an_object_that_is_gone_or_that_somebody_else_has_released_costs_no_row() -> None:
    with blocking(filtered="true") as world:
        world.begin("a", "b", labels={ROBOT_LABEL: "robot-1"})
        with world.down(kill=True):
            for name in ("a", "b"):
                world.cloud.finalize(name)
                world.cloud.label(name, robot="robot-2")
            world.cloud.delete("a")
        world.settle()
        assert finalizer_rows(world) == []
        assert finalizers(world.cloud, "b") == []


def test_C6_3_the_end_of_the_direction_removes_the_finalizers_from_what_was_upstream() -> None:
    with World() as world:  # the checker knows one direction
        serve_policies(world.robot)
        block(world)
        world.begin("a", finalizers=[LOCAL])
        assert finalizers(world.cloud) == [LOCAL, MINE]
        world.robot.annotate_kind({SPEC_SOURCE: "robot"})
        world.pass_time(60)
        assert (finalizers(world.cloud), finalizers(world.robot)) == ([LOCAL], [MINE])
        assert finalizer_rows(world) == []


@BOTH
@pytest.mark.parametrize(("count", "lists"), [(1, 0), (100, 4)])
def test_S5_5_objects_that_wait_for_their_copies_are_verified_together(source: str, count: int, lists: int) -> None:
    with blocking(source=source) as world:
        up, down = roles(world, source)
        names = [f"a{number:03}" for number in range(100)]
        world.begin(*names, source=source)
        begun = world.clock.now
        for name in names[:count]:
            up.delete(name)
        world.pass_time(10)
        assert (set(up.objects()), set(down.objects())) == (set(names[count:]), set(names[count:]))
        assert len(full_lists(world, up.side.value, begun)) <= lists


@BOTH
@pytest.mark.parametrize(("fate", "lag"), [(Fate.SNAPPED, 10.0), (Fate.LATE, 0.0)])
def test_C6_3_the_finalizer_waits_for_a_copy_whose_create_was_not_answered(source: str, fate: Fate, lag: float) -> None:
    with blocking(source=source) as world:
        up, down = roles(world, source)
        world.begin()
        world.weather[down.side].lag = lag
        world.inject(down.side.value, fate, verb="create", part="/goals")
        world.add("a", source=source, seconds=2)
        world.remove("a", source=source, seconds=5)
        assert finalizers(up) == [MINE]
        world.pass_time(120)
        assert (up.objects(), down.objects()) == ({}, {})
        assert [step for step in order(world) if "patch" in step or "delete" in step] == [
            *(f"{up.side}: patch",),
            f"{down.side}: delete",
            f"{up.side}: patch",
        ]
