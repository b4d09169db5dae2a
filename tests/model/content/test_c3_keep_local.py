"""C3 on virtual time, `conflict: keepLocal`: upstream's changes are merged into copies, whose other fields stay."""

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from crsyncer.core.content.annotations import OURS, ROBOT_LABEL
from crsyncer.core.content.object_content import LAST_DESIRED
from crsyncer.core.model import Json, Side
from tests.model.scenes.shapes import reshape, shaped, unshape
from tests.model.simulation.plane import GROUP, Plane
from tests.model.simulation.scene import SOURCES, full_lists, restart, rival, roles
from tests.model.simulation.world import World
from tests.system.bed import crd

BOTH = pytest.mark.parametrize("source", SOURCES)
HOUR = 3600.0
KEEP = "keepLocal"


def spec(plane: Plane, name: str = "a") -> Any:
    """An object's spec."""
    return plane.objects()[name]["spec"]


def annotations(plane: Plane, name: str = "a") -> dict[str, str]:
    """An object's annotations."""
    found: dict[str, str] = plane.objects()[name]["metadata"].get("annotations", {})
    return found


def labels(plane: Plane) -> Any:
    """The labels of a, without marks."""
    return {key: text for key, text in plane.objects()["a"]["metadata"]["labels"].items() if not key.startswith(OURS)}


def puts(world: World) -> int:
    """How often the agent has put a copy."""
    return sum(write.verb == "update" for write in world.writes)


class Unmerged(logging.Handler):
    """The warnings that what was last applied is not known."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """See logging.Handler."""
        self.messages += [text for text in [record.getMessage()] if "last applied" in text]


@contextmanager
def unmerged() -> Iterator[list[str]]:
    """The warnings that are given inside."""
    handler = Unmerged()
    logging.getLogger("crsyncer").addHandler(handler)
    yield handler.messages
    logging.getLogger("crsyncer").removeHandler(handler)


@BOTH
def test_C3_2_upstreams_changes_win_and_all_other_fields_of_a_copy_stay(source: str) -> None:
    with shaped(source=source, conflict=KEEP) as world:
        up, down = roles(world, source)
        world.begin(
            "a",
            source=source,
            spec={"x": 1, "gone": 1, "deep": {"one": 1, "two": 2}, "list": [1]},
            labels={"zone": "b"},
        )
        local = {"x": 5, "gone": 5, "mine": 1, "deep": {"one": 9, "mine": 1}, "list": [1, 2]}
        down.set("a", spec=local, more={"mine": 1})
        down.label("a", zone="c", theirs="1")
        world.pass_time(HOUR)
        restart(world)
        restart(world, kill=True)
        assert (spec(down), labels(down), puts(world)) == (local, {"zone": "c", "theirs": "1"}, 0)
        world.edit("a", spec={"x": 1, "deep": {"one": 1, "two": 3}, "list": [1], "new": 1}, source=source)
        wanted = {"x": 5, "mine": 1, "deep": {"one": 9, "two": 3, "mine": 1}, "list": [1, 2], "new": 1}
        assert (spec(down), down.objects()["a"]["more"]) == (wanted, {"mine": 1})
        assert (labels(down), puts(world)) == ({"zone": "c", "theirs": "1"}, 1)
        up.set("a", spec={"x": 2, "list": [3]})
        up.label("a", zone="d", tier="t")
        world.settle()
        assert spec(down) == {"x": 2, "mine": 1, "list": [3]}
        assert labels(down) == {"zone": "d", "tier": "t", "theirs": "1"}
        up.label("a", tier=None)
        world.settle()
        assert labels(down) == {"zone": "d", "theirs": "1"}


@BOTH
def test_C3_2_a_change_upstream_while_nobody_looked_is_merged_as_well(source: str) -> None:
    with shaped(source=source, conflict=KEEP) as world:
        up, down = roles(world, source)
        world.begin("a", source=source, spec={"x": 1, "y": 1})
        for out in ("stop", "crash", "store"):
            world.crash() if out == "crash" else world.stop()
            if out == "store":
                world.lose_database()
            number = world.clock.now
            up.set("a", spec={"x": number})
            down.set("a", spec={"x": 7, "y": 2, "mine": number})
            world.begin()
            assert spec(down) == (
                {"x": number, "y": 2, "mine": number} if out != "stop" else {"x": number, "mine": number}
            )


@BOTH
def test_C3_2_a_deleted_copy_comes_back_as_upstream_has_it(source: str) -> None:
    with shaped(source=source, conflict=KEEP) as world:
        _, down = roles(world, source)
        world.begin("a", source=source)
        down.set("a", spec={"x": 2, "mine": 1})
        world.settle()
        down.delete("a")
        world.settle()
        assert spec(down) == {"x": 1}


def test_C3_2_the_label_of_the_filter_is_always_upstreams() -> None:
    with shaped(conflict=KEEP, filtered="true") as world:
        world.begin("a", labels={ROBOT_LABEL: "robot-1"})
        world.robot.set("a", spec={"x": 1, "mine": 1})
        world.robot.label("a", robot=None)
        world.settle()
        assert (spec(world.robot), labels(world.robot)) == ({"x": 1, "mine": 1}, {ROBOT_LABEL: "robot-1"})
        world.edit("a", spec={"x": 2})
        assert spec(world.robot) == {"x": 2, "mine": 1}


def test_C3_2_with_steps_it_is_their_result_that_is_merged() -> None:
    step: Json = {"path": "/spec/x", "cel": "value * 2"}
    with shaped(conflict=KEEP, down=[step]) as world:
        world.begin("a", spec={"x": 1, "y": 1})
        world.robot.set("a", spec={"x": 2, "y": 5})
        world.settle()
        reshape(world, conflict=KEEP, down=[step, step])
        world.settle()
        assert spec(world.robot) == {"x": 4, "y": 5}


@pytest.mark.parametrize(("source", "offline"), [("cloud", False), ("cloud", True), ("robot", False)])
def test_C3_3_what_was_applied_last_is_on_copies_only_with_keep_local(source: str, offline: bool) -> None:
    with shaped(source=source) as world:
        _, down = roles(world, source)
        world.begin("a", "b", source=source, labels={"zone": "b"}, annotations={"note": "1"})
        assert LAST_DESIRED not in annotations(down)
        begun = world.clock.now
        if offline:
            world.cut(source, seconds=30)
        reshape(world, conflict=KEEP)
        world.pass_time(60)
        applied = {"spec": {"x": 1}, "metadata": {"labels": {"zone": "b"}, "annotations": {"note": "1"}}}
        assert [json.loads(annotations(down, name)[LAST_DESIRED]) for name in "ab"] == [applied] * 2
        assert ": " not in annotations(down)[LAST_DESIRED]
        assert puts(world) == 2
        down.set("a", spec={"x": 2, "mine": 1})
        world.pass_time(60)
        assert spec(down) == {"x": 2, "mine": 1}
        unshape(world)
        world.pass_time(60)
        assert [LAST_DESIRED in annotations(down, name) for name in "ab"] == [False, False]
        assert (spec(down), puts(world)) == ({"x": 1}, 4)
        world.heal(source)
        assert ([full_lists(world, side, begun) for side in Side], puts(world)) == ([[], []], 4)


@pytest.mark.parametrize("broken", [None, "{", "[]", "7", '{"spec":{"x":1}}', "", '{"metadata":{"labels":3}}'])
def test_C3_3_without_it_upstreams_fields_are_set_and_the_others_stay(broken: str | None) -> None:
    with shaped(conflict=KEEP) as world:
        world.begin("a", spec={"x": 1, "y": 1})
        world.cut("robot")
        world.robot.annotate("a", {LAST_DESIRED: broken})
        world.robot.set("a", spec={"x": 2, "y": 2, "mine": 1})
        world.edit("a", spec={"x": 1}, seconds=5)
        with unmerged() as messages:
            world.heal("robot")
            assert spec(world.robot) == {"x": 1, "y": 2, "mine": 1}
            world.robot.annotate("a", {LAST_DESIRED: broken})
            world.robot.set("a", spec={"x": 2, "mine": 2})
            world.pass_time(2)
            assert spec(world.robot) == {"x": 1, "mine": 2}
        assert len(messages) == 1
        world.edit("a", spec={"x": 1, "z": 3})
        world.edit("a", spec={"x": 1})
        assert spec(world.robot) == {"x": 1, "mine": 2}


def test_C3_1_who_keeps_changing_a_copy_is_told_how_such_changes_may_stay() -> None:
    with shaped() as world:
        world.begin("a")
        for number in range(10):
            world.robot.set("a", spec={"x": 2 + number})
            world.pass_time(2)
        hint = "find who changes spec.x of default/a, or set spec.conflict: keepLocal in SyncPolicy p"
        assert [hold["hint"].partition(";")[0] for hold in world.status()["holds"]] == [hint]
        reshape(world, conflict=KEEP)
        world.pass_time(120)
        world.robot.set("a", spec={"x": 20})
        world.pass_time(60)
        assert (spec(world.robot), world.status()["holds"]) == ({"x": 20}, [])


def test_C3_3_who_keeps_removing_it_is_not_fought_without_end() -> None:
    with shaped(conflict=KEEP) as world:
        world.begin("a")
        for _ in range(60):
            world.robot.annotate("a", {LAST_DESIRED: None})
            world.pass_time(1)
        assert 5 <= puts(world) <= 7
        assert [hold["reason"] for hold in world.status()["holds"]] == ["Contested"]


def test_C3_3_more_than_128_KiB_are_not_kept() -> None:
    with shaped(conflict=KEEP) as world:
        world.begin("a", spec={"x": 1, "y": 1, "long": "x" * 131_072})
        assert LAST_DESIRED not in annotations(world.robot)
        world.robot.set("a", spec={"x": 2, "long": "", "mine": 1})
        world.pass_time(HOUR)
        assert (spec(world.robot)["x"], puts(world)) == (2, 0)
        with unmerged() as messages:
            for number in (3, 4):
                world.edit("a", spec={"x": number, "long": "x" * 131_072})
        assert (spec(world.robot)["x"], spec(world.robot)["mine"], puts(world)) == (4, 1, 2)
        assert len(messages) == 1
        world.edit("a", spec={"x": 5})
        assert LAST_DESIRED in annotations(world.robot)
        world.edit("a", spec={})
        assert spec(world.robot) == {"long": "x" * 131_072, "mine": 1}


def test_C3_3_a_copy_that_somebody_else_made_is_adopted_with_its_own_fields() -> None:
    with shaped(conflict=KEEP) as world:
        world.cloud.create("a", spec={"x": 1})
        world.robot.create("a", spec={"x": 2, "mine": 1})
        uid = world.robot.objects()["a"]["metadata"]["uid"]
        world.begin()
        found = world.robot.objects()["a"]
        assert (found["spec"], found["metadata"]["uid"]) == ({"x": 1, "mine": 1}, uid)


@BOTH
def test_C3_4_a_put_never_overwrites_a_local_change_that_the_agent_has_not_seen(source: str) -> None:
    with shaped(source=source, conflict=KEEP) as world:
        up, down = roles(world, source)
        world.begin("a", source=source)
        world.weather[down.side].lag = 1.0
        for number in range(2, 8):
            up.set("a", spec={"x": number})
            down.set("a", spec={"x": number - 1, "mine": number})
            world.pass_time(0.3)
            down.set("a", spec={**spec(down), "late": number})
            world.settle()
            assert spec(down) == {"x": number, "mine": number, "late": number}
        assert all(write.call.method == "PUT" for write in world.writes if write.verb == "update")


def test_C3_2_a_rival_is_not_fought() -> None:
    with shaped(conflict=KEEP) as world:
        world.begin("a")
        with rival(world, world.robot, seconds=1.0, spec={"x": 2}):
            world.pass_time(600)
            world.edit("a", spec={"x": 3}, seconds=60)
        assert (spec(world.robot), world.status()["holds"], puts(world)) == ({"x": 2}, [], 1)


def test_C3_2_observed_generations_are_mapped_although_local_fields_differ() -> None:
    with shaped(conflict=KEEP, observed_generation="map") as world:
        world.begin("a")
        world.robot.set("a", spec={"x": 1, "mine": 1})
        world.settle()
        generation = world.robot.objects()["a"]["metadata"]["generation"]
        world.report("a", {"observedGeneration": generation})
        assert world.cloud.objects()["a"]["status"] == {"observedGeneration": 1}


def test_C3_2_explain_does_not_call_local_fields_differences() -> None:
    with shaped(conflict=KEEP) as world:
        world.begin("a")
        world.robot.set("a", spec={"x": 2, "mine": 1})
        world.settle()
        found = world.order("explain", resource="goals", name="a")
        assert (found["state"], found["differences"]) == ("in-sync", [])
        assert "C3.2" in [step["rule"] for step in found["steps"]]


@BOTH
@pytest.mark.parametrize("conflict", ["upstream", "keepLocal"])
@pytest.mark.parametrize("endpoint", [True, False])
def test_C3_1_a_status_is_never_content(source: str, conflict: str, endpoint: bool) -> None:
    with shaped(source=source, conflict=conflict, status=endpoint) as world:
        if not endpoint:
            world.cloud.apply(crd(GROUP, status=False))
        up, down = roles(world, source)
        world.begin("a", source=source)
        annotations = down.objects()["a"]["metadata"]["annotations"]
        world.report("a", {"n": 1}, source=source)
        up.set_status("a", {"n": 7})
        world.settle()
        assert [write.verb for write in world.writes if write.side is down.side and write.name == "a"] == ["create"]
        copy = down.objects()["a"]
        assert (copy["status"], copy["metadata"]["annotations"]) == ({"n": 1}, annotations)
        world.edit("a", spec={"x": 2}, source=source)
        assert (down.objects()["a"]["spec"], down.objects()["a"]["status"]) == ({"x": 2}, {"n": 1})
