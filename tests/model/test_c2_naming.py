"""C2 on virtual time: copies with names of their own."""

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from crsyncer.core.annotations import OURS, ROBOT_LABEL
from crsyncer.core.calls import Call
from crsyncer.core.model import Json, Side
from crsyncer.core.namespaces import Namespaces
from crsyncer.core.pages import FIRST
from crsyncer.ports import Reply
from tests.model.life import ROBOT, AgentSettings
from tests.model.plane import Plane
from tests.model.policies import apply_policy, delete_policy, serve_policies
from tests.model.scene import SOURCES, full_lists, holds, restart, roles, row, state
from tests.model.weather import Rule
from tests.model.world import World

BOTH = pytest.mark.parametrize("source", SOURCES)
PREFIXED: Json = {"name": "{robot}-{name}"}
ELSEWHERE: Json = {"namespace": "copies", "name": "{namespace}-{name}"}
UID = f"{OURS}upstream-uid"


@contextmanager
def named(
    naming: Mapping[str, str] = PREFIXED, *, namespaces: Namespaces | None = None, **kind: Any
) -> Iterator[World]:
    """A world with one kind, goals, whose copies have names of their own; `kind` are keywords of `bed.crd`."""
    settings = AgentSettings() if namespaces is None else AgentSettings(namespaces=namespaces)
    with World(kinds={"goals": kind}, settings=settings) as world:
        serve_policies(world.robot)
        rename(world, naming)
        yield world
        assert world.troubles == []


def rename(world: World, naming: Mapping[str, str] | None) -> None:
    """Copies that are made from now on are called so."""
    spec: dict[str, Any] = {} if naming is None else {"naming": dict(naming)}
    apply_policy(world.robot, **spec)


def written(world: World) -> list[str]:
    """What the agent has written of goals so far: verb and name."""
    return [f"{write.verb} {write.name}" for write in world.writes if write.resource.startswith("goals.")]


def uid(plane: Plane, name: str, namespace: str = "") -> str:
    """An object's uid."""
    return str(plane.objects(namespace=namespace)[name]["metadata"]["uid"])


# --- the name of a copy


@BOTH
def test_C2_3_a_copy_with_a_name_of_its_own_is_synced_both_ways(source: str) -> None:
    with named(source=source) as world:
        up, down = roles(world, source)
        up.create("a", spec={"x": 1}, labels={"app": "1"})
        world.start()
        world.settle()
        copy = f"{ROBOT}-a"
        assert {name: each["spec"] for name, each in down.objects().items()} == {copy: {"x": 1}}
        down.set_status(copy, {"n": 1})
        up.set("a", spec={"x": 2})
        world.settle()
        assert (down.objects()[copy]["spec"], up.objects()["a"]["status"]) == ({"x": 2}, {"n": 1})
        down.set(copy, spec={"x": 9})
        world.pass_time(2)
        assert down.objects()[copy]["spec"] == {"x": 2}
        down.delete(copy)
        world.settle()
        assert (down.objects()[copy]["spec"], down.objects()[copy]["status"]) == ({"x": 2}, {"n": 1})
        up.delete("a")
        world.settle()
        assert (up.objects(), down.objects(), holds(world)) == ({}, {}, [])


@BOTH
def test_C2_3_a_copy_lives_in_the_namespace_that_its_template_makes(source: str) -> None:
    with named(ELSEWHERE, source=source) as world:
        up, down = roles(world, source)
        up.make_namespace("shop")
        for place in ("default", "shop"):
            up.create("a", namespace=place, spec={"in": place})
        world.start()
        world.settle()
        assert {name: each["spec"]["in"] for name, each in down.objects(namespace="copies").items()} == {
            "default-a": "default",
            "shop-a": "shop",
        }
        assert down.objects() == {}
        down.set_status("shop-a", {"n": 1}, namespace="copies")
        up.delete("a")
        world.settle()
        assert up.objects(namespace="shop")["a"]["status"] == {"n": 1}
        assert set(down.objects(namespace="copies")) == {"shop-a"}


@BOTH
def test_C2_3_cluster_scoped_copies_have_names_of_their_own_too(source: str) -> None:
    with named({"name": "{name}-{hash}"}, source=source, cluster=True) as world:
        up, down = roles(world, source)
        up.create("a", spec={"x": 1})
        world.start()
        world.settle()
        [copy] = down.objects()
        down.set_status(copy, {"n": 1})
        world.settle()
        assert (len(copy), up.objects()["a"]["status"]) == (12, {"n": 1})


def test_C2_3_with_restricted_namespaces_a_copy_stays_in_its_namespace() -> None:
    with named(namespaces=Namespaces(("robot-r1",), ("default",))) as world:
        world.cloud.create("a", spec={"x": 1})
        world.start()
        world.settle()
        assert set(world.robot.objects()) == {f"{ROBOT}-a"}
        assert world.order("explain", resource="goals", name="a")["copy"] == {
            "namespace": "default",
            "name": f"{ROBOT}-a",
        }
        rename(world, ELSEWHERE)
        world.pass_time(10)
        assert state(world) == "misconfigured"
        assert "is confined to namespaces" in (row(world) or {})["message"]


@BOTH
@pytest.mark.parametrize("lost", [False, True])
def test_C2_3_changed_templates_restarts_and_a_lost_store_move_no_copy(source: str, lost: bool) -> None:
    with named(source=source) as world:
        up, down = roles(world, source)
        for name in "abcdefg":
            up.create(name, spec={"x": 1})
        world.start()
        world.settle()
        copies = {name: each["metadata"]["uid"] for name, each in down.objects().items()}
        made = len(written(world))
        for naming in (ELSEWHERE, {"name": "{name}"}, None, {"name": "new-{name}"}):
            rename(world, naming)
            world.settle()
            restart(world, kill=True)
            if lost:
                world.stop()
                world.lose_database()
                world.start()
                world.settle()
            else:
                world.order("resync")
                world.settle()
            assert {name: each["metadata"]["uid"] for name, each in down.objects().items()} == copies
            assert written(world)[made:] == []
        up.set("a", spec={"x": 2})
        up.create("h", spec={"x": 1})
        down.set_status(f"{ROBOT}-b", {"n": 1})
        up.delete("c")
        world.settle()
        assert down.objects()[f"{ROBOT}-a"]["spec"] == {"x": 2}
        assert up.objects()["b"]["status"] == {"n": 1}
        assert set(down.objects()) == {*copies, "new-h"} - {f"{ROBOT}-c"}


@BOTH
def test_C2_3_a_restart_lists_nothing_and_writes_nothing(source: str) -> None:
    with named(source=source) as world:
        up, down = roles(world, source)
        for name in "abcdefg":
            up.create(name, spec={"x": 1})
        world.start()
        world.settle()
        since, made = world.clock.now, len(written(world))
        down.set(f"{ROBOT}-a", spec={"x": 7})
        restart(world)
        restart(world, kill=True)
        assert [full_lists(world, str(side), since) for side in Side] == [[], []]
        world.order("resync")
        world.settle()
        assert written(world)[made:] == [f"update {ROBOT}-a"]
        for side in Side:
            digests = [each.call.accept for each in full_lists(world, str(side), since)]
            assert digests == ["application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"]


def test_C2_3_a_digest_asks_for_what_has_changed_by_the_name_that_it_has_there() -> None:
    with named() as world:
        for number in range(20):
            world.cloud.create(f"n{number}", spec={"x": 1})
        world.robot.create("local", spec={"x": 5})
        world.start()
        world.settle()
        world.cut("robot")
        world.pass_time(10)
        world.robot.set(f"{ROBOT}-n3", spec={"x": 9})
        world.robot.delete(f"{ROBOT}-n4")
        world.robot.compact()
        since = world.clock.now
        world.mend("robot")
        world.settle()
        assert world.robot.objects()[f"{ROBOT}-n3"]["spec"] == {"x": 1}
        assert len(world.robot.objects()) == 21
        asked = [dict(each.call.query).get("fieldSelector") for each in full_lists(world, "robot", since)]
        assert asked == [None, f"metadata.name={ROBOT}-n3"]


@BOTH
def test_C2_3_copies_stay_what_they_are_when_their_policy_is_gone(source: str) -> None:
    with named(source=source) as world:
        up, down = roles(world, source)
        for name in "abcdefg":
            up.create(name, spec={"x": 1})
        world.start()
        world.settle()
        copies = set(down.objects())
        delete_policy(world.robot)
        world.settle()
        up.set("a", spec={"x": 2})
        down.set_status(f"{ROBOT}-b", {"n": 1})
        up.delete("c")
        world.settle()
        assert set(down.objects()) == copies - {f"{ROBOT}-c"}
        assert (down.objects()[f"{ROBOT}-a"]["spec"], up.objects()["b"]["status"]) == ({"x": 2}, {"n": 1})
        world.stop()
        world.lose_database()
        world.start()
        world.settle()
        assert set(down.objects()) == copies - {f"{ROBOT}-c"}


def test_C2_3_names_that_are_too_long_are_cut() -> None:
    long = "n" * 250
    with named({"namespace": "{namespace}" + "-" * 40 + "x" * 20, "name": "{robot}-{name}"}) as world:
        world.cloud.create(long, spec={"x": 1})
        world.start()
        world.settle()
        whole = f"default{'-' * 40}{'x' * 20}"
        namespace = f"{whole[:52]}-{hashlib.sha256(whole.encode()).hexdigest()[:10]}"
        [name] = world.robot.objects(namespace=namespace)
        assert (len(namespace), len(name)) == (63, 253)
        assert name.endswith("-" + hashlib.sha256(f"{ROBOT}-{long}".encode()).hexdigest()[:10])


def test_C2_3_a_name_that_is_none_is_a_dead_letter_until_the_template_is_right() -> None:
    with named({"name": "{name}_X"}) as world:
        world.cloud.create("a", spec={"x": 1})
        world.start()
        world.pass_time(600)
        assert (world.status()["outbox"]["deadLetters"], written(world)) == (1, [])
        told = world.order("explain", resource="goals", name="a")
        assert (told["state"], told["copy"]) == ("refused", None)
        assert 'the name "a_X", which spec.naming makes for the copy, is not valid' in told["summary"]
        rename(world, {"name": "{name}-x"})
        world.settle()
        assert set(world.robot.objects()) == {"a-x"}
        assert world.status()["outbox"]["deadLetters"] == 0


# --- local objects, and whose copy it is


@BOTH
def test_C2_2_with_naming_local_objects_are_never_touched(source: str) -> None:
    with named(source=source) as world:
        up, down = roles(world, source)
        down.create("local", spec={"x": 5})
        down.create("a", spec={"x": 6})
        up.create("a", spec={"x": 1})
        world.start()
        world.settle()
        up.set("a", spec={"x": 2})
        up.create("local", spec={"x": 3})
        world.order("resync")
        world.settle()
        up.delete("a")
        world.settle()
        found = {name: each["spec"]["x"] for name, each in down.objects().items()}
        assert found == {"local": 5, "a": 6, f"{ROBOT}-local": 3}
        assert holds(world) == []


def test_C2_2_a_robot_without_its_store_keeps_its_copies_while_the_cloud_is_away() -> None:
    with named() as world:
        world.cloud.create("a", spec={"x": 1})
        world.start()
        world.settle()
        world.stop()
        world.lose_database()
        world.start()
        world.settle()
        copy = f"{ROBOT}-a"
        world.cut("cloud")
        world.pass_time(10)
        world.robot.set_status(copy, {"n": 1})
        world.robot.set(copy, spec={"x": 9})
        world.pass_time(10)
        assert world.robot.objects()[copy]["spec"] == {"x": 1}
        world.mend("cloud")
        world.settle()
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
        up, down = roles(world, source)
        up.create("a", spec={"x": 1})
        world.start()
        world.settle()
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
        world.start()
        world.settle()
        assert {name: each["metadata"]["uid"] for name, each in down.objects().items()} == {copy: metadata["uid"]}
        healed = down.objects()[copy]["metadata"]
        assert (healed["annotations"], healed["labels"]) == (metadata["annotations"], metadata["labels"])


def test_C2_2_an_object_whose_original_is_not_known_yet_waits_for_the_list() -> None:
    with named() as world:
        for number in range(FIRST + 1):
            world.cloud.create(f"n{number:04}", spec={"x": 1})
        world.start()
        world.settle()
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
        world.weather[Side.CLOUD].rules.append(rule)
        made = len(written(world))
        world.start()
        world.pass_time(3)
        assert world.robot.objects()[copy]["metadata"] == before
        assert written(world)[made:] == []
        world.weather[Side.CLOUD].rules.remove(rule)
        world.settle()
        assert len(world.robot.objects()) == FIRST + 1
        assert world.robot.objects()[copy]["metadata"]["annotations"] == marks
        assert written(world)[made:] == [f"update {copy}"]


@BOTH
def test_C2_3_explain_and_diff_know_the_copy(source: str) -> None:
    with named(source=source, filtered="true") as world:
        up, down = roles(world, source)
        up.create("a", spec={"x": 1}, labels={ROBOT_LABEL: ROBOT})
        world.start()
        world.settle()
        told = world.order("explain", resource="goals", name="a")
        assert (told["state"], told["copy"], told["differences"]) == (
            "in-sync",
            {"namespace": "default", "name": f"{ROBOT}-a"},
            [],
        )
        assert told["objects"][str(down.side)]["object"]["metadata"]["name"] == f"{ROBOT}-a"
