"""C2.5 and C2.6 on virtual time: names that are taken, and second copies."""

from typing import Any

import pytest

from crsyncer.core.content.annotations import OURS, ROBOT_LABEL
from crsyncer.core.content.marks import UPSTREAM_NAME, Marks
from crsyncer.core.content.object_content import APPLIED
from crsyncer.core.model import Key, Side
from tests.model.scenes.named import BOTH, UID, named, rename, uid, written
from tests.model.scenes.related import diff
from tests.model.simulation.journal import Request
from tests.model.simulation.life import ROBOT
from tests.model.simulation.plane import Plane
from tests.model.simulation.scene import holds, restart, roles

CONTROLLER = {"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "x", "controller": True}


@BOTH
def test_C2_5_of_two_originals_with_one_name_the_later_waits(source: str) -> None:
    with named({"name": "same"}, source=source) as world:
        up, down = roles(world, source)
        world.begin("a", source=source)
        first = uid(down, "same")
        world.add("b", source=source, spec={"x": 2}, seconds=60)
        [hold] = world.status()["holds"]
        assert (hold["reason"], hold["names"]) == ("NameTaken", ["default/b"])
        told = world.order("explain", resource="goals", name="b")
        assert (told["state"], [step["rule"] for step in told["steps"] if step["ok"] is False]) == ("held", ["C2.5"])
        restart(world, kill=True)
        world.pass_time(60)
        world.edit("a", spec={"x": 3}, source=source, seconds=10)
        assert (uid(down, "same"), down.objects()["same"]["spec"]) == (first, {"x": 3})
        world.report("same", {"n": 1}, source=source, seconds=10)
        assert (up.objects()["a"]["status"], "status" in up.objects()["b"]) == ({"n": 1}, False)
        world.remove("a", source=source, seconds=10)
        assert down.objects()["same"]["spec"] == {"x": 2}
        assert holds(world) == []


@BOTH
def test_C2_5_with_naming_a_local_object_keeps_its_name(source: str) -> None:
    with named(source=source) as world:
        _, down = roles(world, source)
        down.create(f"{ROBOT}-a", spec={"x": 7})
        world.begin("a", source=source, seconds=60)
        assert holds(world) == [("NameTaken", 1)]
        assert down.objects()[f"{ROBOT}-a"]["spec"] == {"x": 7}
        down.delete(f"{ROBOT}-a")
        world.pass_time(2)
        assert (down.objects()[f"{ROBOT}-a"]["spec"], holds(world)) == ({"x": 1}, [])


@pytest.mark.parametrize("filtered", [False, True])
def test_C2_5_what_is_unowned_is_adopted_in_one_write_and_keeps_its_uid(filtered: bool) -> None:
    with named(filtered=str(filtered).lower()) as world:
        rename(world, None)
        labels = {ROBOT_LABEL: ROBOT}
        world.robot.create("a", spec={"x": 7, "mine": 1}, labels=labels)
        world.robot.create("b", spec={"x": 7}, labels=labels, ownerReferences=[CONTROLLER])
        for name in "ab":
            world.cloud.create(name, spec={"x": 1}, labels=labels)
        before = {name: uid(world.robot, name) for name in "ab"}
        world.begin(seconds=60)
        assert {name: uid(world.robot, name) for name in "ab"} == before
        assert {name: each["spec"] for name, each in world.robot.objects().items()} == {"a": {"x": 1}, "b": {"x": 7}}
        assert written(world) == ["update a"]
        [hold] = world.status()["holds"]
        assert (hold["reason"], hold["names"]) == ("NameTaken", ["default/b"])
        world.robot.set("b", metadata=world.robot.objects()["b"]["metadata"] | {"ownerReferences": []})
        world.pass_time(60)
        assert (world.robot.objects()["b"]["spec"], holds(world)) == ({"x": 1}, [])


def test_C2_5_a_copy_that_lost_its_label_and_its_uid_is_ours_by_its_marks() -> None:
    with named(filtered="true") as world:
        world.begin("a", labels={ROBOT_LABEL: ROBOT})
        copy = f"{ROBOT}-a"
        before = uid(world.robot, copy)
        with world.down():
            world.robot.annotate(copy, {UID: None})
            no_label: dict[str, Any] = {ROBOT_LABEL: None}
            world.robot.label(copy, **no_label)
        world.pass_time(60)
        assert uid(world.robot, copy) == before
        assert world.robot.objects()[copy]["metadata"]["labels"][ROBOT_LABEL] == ROBOT
        assert holds(world) == []


@BOTH
def test_C2_6_a_copy_of_another_upstream_is_never_touched(source: str) -> None:
    with named(source=source) as world:
        _, down = roles(world, source)
        marks = {f"{OURS}upstream-{what}": text for what, text in MARKS_OF_ANOTHER.items()}
        for name in ("theirs", f"{ROBOT}-a"):
            down.create(name, spec={"x": 5})
            down.annotate(name, marks)
        world.begin("a", source=source, seconds=600)
        world.order("resync")
        world.pass_time(60)
        assert written(world) == []
        assert {name: each["spec"]["x"] for name, each in down.objects().items()} == {"theirs": 5, f"{ROBOT}-a": 5}
        assert holds(world) == [("NameTaken", 1)]


MARKS_OF_ANOTHER = {"cluster": "kube-system:other", "namespace": "default", "name": "a", "uid": "other"}


def second_copy(plane: Plane, copy: str, name: str) -> None:
    """Somebody makes another object from the YAML of a copy."""
    metadata = plane.objects()[copy]["metadata"]
    plane.create(name, spec={"x": 5}, labels=metadata["labels"], annotations=metadata["annotations"])


@BOTH
def test_C2_6_of_two_copies_the_one_in_the_store_counts_and_the_other_is_held(source: str) -> None:
    with named(source=source) as world:
        _, down = roles(world, source)
        world.begin("a", source=source)
        copy = f"{ROBOT}-a"
        second_copy(down, copy, "a-second")
        world.settle()
        for kill in (False, True):
            [hold] = world.status()["holds"]
            assert (hold["reason"], hold["names"]) == ("Duplicate", ["default/a"])
            assert "default/a-second is the one that is not touched" in hold["message"]
            assert "Duplicate" in [reason["code"] for reason in world.status()["reasons"]]
            found = diff(world, "goals.lab.example.com")
            assert (found["differences"], found["error"]) == ([], "default/a cannot be compared: it has two copies")
            world.edit("a", spec={"x": 2 + kill}, source=source)
            assert down.objects()["a-second"]["spec"] == {"x": 5}
            assert down.objects()[copy]["spec"] == {"x": 2 + kill}
            restart(world, kill=kill)
        told = world.order("explain", resource="goals", name="a")
        assert (told["state"], told["copy"]["name"]) == ("held", copy)
        assert "C2.6" in [step["rule"] for step in told["steps"]]
        world.remove("a", source=source)
        restart(world, kill=True)
        world.order("resync")
        world.settle()
        assert set(down.objects()) == {"a-second"}
        down.delete("a-second")
        world.settle()
        assert holds(world) == []


def test_C2_6_a_second_copy_that_goes_away_while_nobody_looks_is_held_no_more() -> None:
    with named() as world:
        world.begin("a")
        second_copy(world.robot, f"{ROBOT}-a", "a-second")
        world.settle()
        assert holds(world) == [("Duplicate", 1)]
        with world.down():
            world.robot.delete("a-second")
            world.robot.compact()
        world.settle()
        assert holds(world) == []


@BOTH
def test_C2_6_the_second_copy_takes_the_place_of_the_first_when_that_is_gone(source: str) -> None:
    with named(source=source) as world:
        _, down = roles(world, source)
        world.begin("a", source=source)
        copy = f"{ROBOT}-a"
        second_copy(down, copy, "a-second")
        world.settle()
        down.delete(copy)
        world.settle()
        assert {name: each["spec"] for name, each in down.objects().items()} == {"a-second": {"x": 1}}
        assert holds(world) == []


@BOTH
@pytest.mark.parametrize("second", ["a-second", "z-second"])
def test_C2_6_without_a_store_the_older_copy_counts(source: str, second: str) -> None:
    with named(source=source) as world:
        _, down = roles(world, source)
        world.begin("a", source=source)
        copy = f"{ROBOT}-a"
        world.pass_time(60)
        with world.down():
            second_copy(down, copy, second)
            world.lose_database()
        world.settle()
        assert holds(world) == [("Duplicate", 1)]
        assert down.objects()[second]["spec"] == {"x": 5}
        world.edit("a", spec={"x": 2}, source=source)
        assert (down.objects()[copy]["spec"], down.objects()[second]["spec"]) == ({"x": 2}, {"x": 5})
        down.delete(second)
        world.settle()
        assert holds(world) == []


def test_C2_6_a_copy_that_is_shown_before_the_answer_of_a_create_counts() -> None:
    with named() as world:
        world.begin()
        world.weather[Side.ROBOT].latency = 0.5
        cluster = world.status()["sides"]["cloud"]["identity"]

        def make_another(request: Request) -> None:
            """A request of a former life of the agent, under a name of before, arrives just now."""
            if (request.side, request.verb, world.robot.get("old-a")) == (Side.ROBOT, "create", None):
                marks = Marks(Key("default", "a"), cluster)
                annotations = marks.annotations | {UID: uid(world.cloud, "a")}
                world.robot.create("old-a", spec={"x": 1}, labels=marks.labels, annotations=annotations)

        world.journal.listeners.append(make_another)
        world.add("a")
        world.edit("a", spec={"x": 2})
        found = {name: each["spec"]["x"] for name, each in world.robot.objects().items()}
        assert (found, holds(world)) == ({"old-a": 2, f"{ROBOT}-a": 1}, [("Duplicate", 1)])


@BOTH
@pytest.mark.parametrize("name", [f"{ROBOT}-ghost", "ghost"])
def test_C2_2_what_marks_alone_call_a_copy_is_never_deleted(source: str, name: str) -> None:
    with named(source=source) as world:
        _, down = roles(world, source)
        world.begin("a", source=source)
        forged = {
            key: text for key, text in down.objects()[f"{ROBOT}-a"]["metadata"]["annotations"].items() if key != APPLIED
        }
        down.create(name, spec={"x": 5}, annotations=forged | {UID: "made-up", UPSTREAM_NAME: "ghost"})
        world.settle()
        restart(world, kill=True)
        world.order("resync")
        world.settle()
        assert (down.objects()[name]["spec"], holds(world)) == ({"x": 5}, [])
        world.add("ghost", source=source, spec={"x": 2})
        assert (down.objects()[name]["spec"], holds(world)) == ({"x": 5}, [("NameTaken", 1)])
        down.delete(name)
        world.settle()
        assert (down.objects()[f"{ROBOT}-ghost"]["spec"], holds(world)) == ({"x": 2}, [])
