"""C2.2 on virtual time: whose copy an object is."""

import asyncio
from typing import Any

import pytest

from crsyncer.console.compare.cluster_diff import compare
from crsyncer.core.content.annotations import OURS
from crsyncer.core.model import Json, Side
from crsyncer.core.requests.calls import Call
from crsyncer.core.watching.pages import FIRST
from crsyncer.ports import Reply
from tests.model.scenes.named import BOTH, KEYS, UID, named, rename, written
from tests.model.scenes.policies import senders
from tests.model.simulation.life import ROBOT
from tests.model.simulation.scene import SOURCES, holds, restart, roles
from tests.model.simulation.weather import Rule
from tests.model.simulation.world import World


@BOTH
def test_C2_2_with_naming_local_objects_are_never_touched(source: str) -> None:
    with named(source=source) as world:
        up, down = roles(world, source)
        down.create("local", spec={"x": 5})
        down.create("a", spec={"x": 6})
        world.begin("a", source=source)
        up.set("a", spec={"x": 2})
        up.create("local", spec={"x": 3})
        world.order("resync")
        world.settle()
        world.remove("a", source=source)
        found = {name: each["spec"]["x"] for name, each in down.objects().items()}
        assert found == {"local": 5, "a": 6, f"{ROBOT}-local": 3}
        assert holds(world) == []


def test_C2_2_a_robot_without_its_store_keeps_its_copies_while_the_cloud_is_away() -> None:
    with named() as world:
        world.begin("a")
        restart(world, lost=True)
        copy = f"{ROBOT}-a"
        world.cut("cloud", seconds=10)
        world.robot.set_status(copy, {"n": 1})
        world.robot.set(copy, spec={"x": 9})
        world.pass_time(10)
        assert world.robot.objects()[copy]["spec"] == {"x": 1}
        world.heal("cloud")
        assert world.cloud.objects()["a"]["status"] == {"n": 1}


TORN: dict[str, Any] = {
    "everything": (None, None),
    "its annotations": (None, {}),
    "its labels": ({}, None),
    "its marks in annotations": ([UID], {}),
    "all marks": ([UID], None),
}


HELD_IN_THE_CLOUD = ("everything", "its annotations")
"""What takes this robot's name from a copy: in the cloud it is not changed any more (S5.3)."""
CASES = [
    (source, what, lost)
    for source in SOURCES
    for what in TORN
    for lost in (False, True)
    if not (source == "robot" and what in HELD_IN_THE_CLOUD) and not (what == "everything" and lost)
]


@pytest.mark.parametrize(("source", "what", "lost"), CASES)
def test_C2_2_a_copy_with_torn_marks_is_found_again(source: str, what: str, lost: bool) -> None:
    with named(source=source) as world:
        _, down = roles(world, source)
        world.begin("a", source=source)
        copy = f"{ROBOT}-a"
        kept_annotations, kept_labels = TORN[what]
        metadata = down.objects()[copy]["metadata"]
        world.stop()
        if kept_annotations != {}:
            kept = [*(kept_annotations or []), *([f"{OURS}robot"] if source == "robot" else [])]
            down.annotate(copy, {key: None for key in metadata["annotations"] if key not in kept})
        if kept_labels is None:
            no_labels: dict[str, Any] = dict.fromkeys(metadata["labels"])
            down.label(copy, **no_labels)
        if lost:
            world.lose_database()
        rename(world, {"name": "other-{name}"})
        world.begin()
        assert {name: each["metadata"]["uid"] for name, each in down.objects().items()} == {copy: metadata["uid"]}
        healed = down.objects()[copy]["metadata"]
        assert (healed["annotations"], healed["labels"]) == (metadata["annotations"], metadata["labels"])


def test_C2_2_an_object_whose_original_is_not_known_yet_waits_for_the_list() -> None:
    with named() as world:
        world.begin(*(f"n{number:04}" for number in range(FIRST + 1)))
        copy = f"{ROBOT}-n0000"
        world.stop()
        world.lose_database()
        marks = world.robot.objects()[copy]["metadata"]["annotations"]
        world.robot.annotate(copy, dict.fromkeys(marks, None))
        rename(world, {"name": "other-{name}"})
        before = world.robot.objects()[copy]["metadata"]

        def is_second_page(call: Call) -> bool:
            return call.verb == "list" and "continue" in dict(call.query) and "/goals" in call.path

        rule = Rule(is_second_page, Reply(503, {}, retry_after=5.0), 99)
        world.weather[Side.CLOUD].add(rule)
        made = len(written(world))
        world.begin(seconds=3)
        assert world.robot.objects()[copy]["metadata"] == before
        assert written(world)[made:] == []
        world.weather[Side.CLOUD].rules.remove(rule)
        world.settle()
        assert len(world.robot.objects()) == FIRST + 1
        assert world.robot.objects()[copy]["metadata"]["annotations"] == marks
        assert written(world)[made:] == [f"update {copy}"]


def compared(world: World) -> Json:
    """What `crsyncer diff` says of goals."""
    policy = next(iter(world.life.engine.kinds.entries.values())).policy if world.life else None
    assert policy is not None
    return asyncio.run(compare(policy, senders(world)))


@BOTH
def test_C2_2_diff_pairs_copies_with_their_originals(source: str) -> None:
    with named(source=source) as world:
        up, down = roles(world, source)
        for name in "abc":
            up.create(name, spec={"x": 1})
        down.create("local", spec={"x": 5})
        world.begin()
        told = compared(world)
        assert (told["differences"], told["error"]) == ([], None)
        assert told["objects"] == {"cloud": 3, "robot": 3}
        world.order("hold", resource="goals")
        world.cut(str(down.side), seconds=10)
        down.set(f"{ROBOT}-a", spec={"x": 7})
        no_marks: dict[str, Any] = dict.fromkeys(KEYS)
        down.label(f"{ROBOT}-b", **no_marks)
        down.annotate(f"{ROBOT}-b", no_marks)
        up.delete("c")
        found = {
            row["name"]: [(row[side] or {}).get("spec") for side in (source, down.side)]
            for row in compared(world)["differences"]
        }
        assert found == {"a": [{"x": 1}, {"x": 7}], "c": [None, {"x": 1}]}
