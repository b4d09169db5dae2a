"""C2 on virtual time: the marks that say whose copy an object is."""

import math
from typing import Any

import pytest

from crsyncer.core.content.annotations import OURS
from crsyncer.core.content.object_content import APPLIED, UPSTREAM_UID
from crsyncer.core.model import Json
from tests.model.scenes.named import UID, named
from tests.model.scenes.policies import apply_policy, delete_policy, edit_policy, policies, serve_policies
from tests.model.scenes.shapes import shaped
from tests.model.simulation.answers import INTERNAL_ERROR
from tests.model.simulation.plane import Plane
from tests.model.simulation.scene import SOURCES, full_lists, restart, roles, row, scene, state

BOTH = pytest.mark.parametrize("source", SOURCES)
KEYS = [f"{OURS}upstream-{what}" for what in ("cluster", "namespace", "name")]
DIGITS = set("0123456789abcdef")


def texts(plane: Plane, field: str, name: str = "a") -> dict[str, str]:
    """The marks of an object in its labels or annotations."""
    found: Json = plane.objects()[name]["metadata"].get(field) or {}
    return {key: found[key] for key in KEYS if key in found}


def is_marked(plane: Plane, name: str = "a") -> bool:
    """Whether an object has all marks, as far as that can be told."""
    annotations, labels = texts(plane, "annotations", name), texts(plane, "labels", name)
    sound = all(len(text) == 32 and set(text) <= DIGITS for text in labels.values())
    return set(labels) == set(KEYS) and annotations.get(KEYS[2]) == name and bool(annotations[KEYS[0]]) and sound


@BOTH
def test_C2_1_copies_have_marks_from_the_first_write_and_originals_have_none(source: str) -> None:
    with shaped(source=source) as world:
        up, down = roles(world, source)
        world.cut("cloud")
        world.begin("a", source=source, labels={"app": "1"}, seconds=60)
        world.heal("cloud")
        world.report("a", {"n": 1}, source=source)
        assert [write.verb for write in world.writes if write.name == "a"] == ["create", "status"]
        assert is_marked(down)
        assert up.objects()["a"]["metadata"]["labels"] == {"app": "1"}
        assert not up.objects()["a"]["metadata"].get("annotations")
        assert up.objects()["a"]["status"] == {"n": 1}
        made = len(world.writes)
        restart(world)
        restart(world, kill=True)
        restart(world, lost=True, seconds=3600)
        assert len(world.writes) == made


def test_C2_1_a_kind_whose_upstream_was_never_connected_waits_for_it() -> None:
    with shaped() as world:
        world.cut("cloud")
        world.begin(seconds=60)
        assert (state(world), row(world)["message"]) == ("waiting", "the cloud has never been connected")
        world.heal("cloud")
        assert state(world) == "syncing"
        world.cut("cloud", seconds=60)
        restart(world, seconds=10)
        assert row(world)["message"] == "the cloud is offline"
        world.cloud.create("a", spec={"x": 1})
        world.heal("cloud")
        assert is_marked(world.robot)


@BOTH
def test_C2_1_the_copies_of_before_get_their_marks_with_the_policy_and_keep_them_after_it(source: str) -> None:
    with scene(goals={"source": source}) as world:
        _, down = roles(world, source)
        serve_policies(world.robot)
        world.begin("a", source=source)
        assert (texts(down, "labels"), texts(down, "annotations")) == ({}, {})
        listed = len(full_lists(world, "cloud")) + len(full_lists(world, "robot"))
        edit_policy(world, seconds=2)
        assert is_marked(down)
        assert len(full_lists(world, "cloud")) + len(full_lists(world, "robot")) == listed
        marks = texts(down, "labels")
        delete_policy(world.robot)
        world.settle()
        world.edit("a", spec={"x": 2}, source=source)
        assert (down.objects()["a"]["spec"], texts(down, "labels"), policies(world.robot)) == ({"x": 2}, marks, {})
        world.add("b", source=source)
        assert texts(down, "labels", "b") == {}


def without(plane: Plane, field: str, key: str) -> None:
    """Somebody takes a mark away."""
    if field == "labels":
        gone: dict[str, Any] = {key: None}
        plane.label("a", **gone)
    else:
        plane.annotate("a", {key: None})


@BOTH
@pytest.mark.parametrize("conflict", ["upstream", "keepLocal"])
def test_C2_4_marks_are_repaired_within_2_s_by_one_write(source: str, conflict: str) -> None:
    with shaped(source=source, conflict=conflict) as world:
        _, down = roles(world, source)
        world.begin("a", source=source, labels={"app": "1"})
        if conflict == "keepLocal":
            down.set("a", spec={"x": 5})
            down.label("a", app="2")
            world.settle()
        sound = down.objects()["a"]
        for number, (field, key) in enumerate((("labels", KEYS[0]), ("annotations", KEYS[2]), ("labels", KEYS[2]))):
            made = len(world.writes)
            if number == 2:
                down.label("a", **{key: "wrong"})
            else:
                without(down, field, key)
            world.pass_time(2)
            assert [write.verb for write in world.writes[made:]] == ["update"]
            found = down.objects()["a"]
            assert (found["metadata"]["labels"], found["spec"]) == (sound["metadata"]["labels"], sound["spec"])
            assert found["metadata"]["annotations"] == sound["metadata"]["annotations"]
            assert found["metadata"]["generation"] == sound["metadata"]["generation"]
            world.pass_time(60)


@pytest.mark.parametrize("conflict", ["upstream", "keepLocal"])
@pytest.mark.parametrize("running", [True, False])
@pytest.mark.parametrize(
    ("source", "uid"),
    [("cloud", None), *((source, uid) for source in SOURCES for uid in ("forged", "another's"))],
)
def test_C2_4_the_uid_of_the_original_is_repaired_and_the_copy_stays(
    source: str, conflict: str, uid: str | None, running: bool
) -> None:
    with shaped(source=source, conflict=conflict) as world:
        up, down = roles(world, source)
        world.begin("a", "b", source=source, labels={"app": "1"})
        down.set_status("a", {"n": 1})
        if conflict == "keepLocal":
            down.set("a", spec={"x": 5})
        world.settle()
        sound, made = down.objects()["a"], len(world.writes)
        with world.down(not running):
            down.annotate("a", {UPSTREAM_UID: up.objects()["b"]["metadata"]["uid"] if uid == "another's" else uid})
        world.pass_time(2 if running else 30)
        assert [write.verb for write in world.writes[made:]] == ["update"]
        found = down.objects()["a"]
        assert (found["metadata"]["uid"], found["spec"]) == (sound["metadata"]["uid"], sound["spec"])
        assert found["metadata"]["annotations"] == sound["metadata"]["annotations"]
        world.pass_time(3600)
        assert (len(world.writes), up.objects()["a"]["status"]) == (made + 1, {"n": 1})


@pytest.mark.parametrize("gone", [(UPSTREAM_UID,), (APPLIED,), (UPSTREAM_UID, APPLIED, *KEYS)])
@pytest.mark.parametrize("first", ["the original", "the marks"])
@pytest.mark.parametrize("subtree", ["", "part"])
def test_C2_2_the_status_of_a_copy_without_marks_is_never_that_of_an_object_made_after_its_original(
    gone: tuple[str, ...], first: str, subtree: str
) -> None:
    with shaped() as world:
        world.begin("a")
        former = world.robot.objects()["a"]["metadata"]["uid"]
        if first == "the original":
            world.cloud.delete("a")
        world.robot.annotate("a", dict.fromkeys(gone))
        world.robot.set_status("a", {"part": {"n": 1}})
        if first == "the marks":
            world.cloud.delete("a")
        if subtree:
            apply_policy(world.robot, subtree=subtree)  # what is known of statuses is forgotten
        world.add("a")
        assert world.robot.objects()["a"]["metadata"]["uid"] != former
        assert is_marked(world.robot)
        assert "status" not in world.cloud.objects()["a"]


@pytest.mark.parametrize("gone", [(UPSTREAM_UID,), (APPLIED,), (UPSTREAM_UID, APPLIED, *KEYS)])
@pytest.mark.parametrize("while_", ["all is well", "the robot is away", "the agent is stopped"])
def test_C2_2_a_copy_goes_with_its_original_whatever_marks_it_has_by_then(gone: tuple[str, ...], while_: str) -> None:
    with shaped(orphans="keep") as world:
        world.begin("a")
        if while_ == "the agent is stopped":
            world.stop()
        elif while_ == "the robot is away":
            world.cut("robot", seconds=60)
        world.cloud.delete("a")
        world.pass_time(60 if while_ == "the robot is away" else 0)
        world.robot.annotate("a", dict.fromkeys(gone))
        if while_ == "the agent is stopped":
            world.start()
        world.heal("robot")
        assert world.robot.objects() == {}


def test_C2_4_marks_are_repaired_although_drift_is_kept() -> None:
    with scene(goals={"drift": "keep"}) as world:
        serve_policies(world.robot)
        apply_policy(world.robot)
        world.begin("a")
        world.robot.set("a", spec={"x": 5})
        without(world.robot, "labels", KEYS[1])
        world.settle()
        assert (is_marked(world.robot), world.robot.objects()["a"]["spec"]) == (True, {"x": 5})


def test_C2_4_who_keeps_taking_marks_away_is_named_and_slowed_down() -> None:
    with shaped() as world:
        world.begin("a")
        for _ in range(20):
            without(world.robot, "labels", KEYS[0])
            world.pass_time(2)
        assert [hold["reason"] for hold in world.status()["holds"]] == ["Contested"]
        assert KEYS[0] in world.status()["holds"][0]["message"]
        assert sum(write.verb == "update" for write in world.writes) <= 7
        assert f"{KEYS[0]} of default/a; to see" in world.status()["holds"][0]["hint"]
        world.pass_time(180)
        assert (is_marked(world.robot), world.status()["holds"]) == (True, [])


def test_C2_4_marks_follow_the_cluster_that_an_operator_accepts() -> None:
    with shaped() as world:
        world.begin("a")
        cluster = texts(world.robot, "annotations")[KEYS[0]]
        world.cloud.rebuild()
        world.pass_time(120)
        assert world.status()["sides"]["cloud"]["state"] == "identity-changed"
        assert texts(world.robot, "annotations")[KEYS[0]] == cluster
        world.cloud.create("a", spec={"x": 1})
        world.order("release", id="cloud")
        world.settle()
        world.add("b")
        other = texts(world.robot, "annotations", "b")[KEYS[0]]
        assert other not in ("", cluster)


def test_C2_2_what_waits_for_a_decision_costs_a_row_of_its_own_and_no_look_at_the_others() -> None:
    with named() as world:
        for number in range(100):
            world.robot.create(f"x{number}", spec={"x": 1}, annotations={UID: f"u-{number}"})
        world.inject("cloud", INTERNAL_ERROR, verb="list", part="/goals", times=math.inf)
        world.begin(seconds=30)
        rows = [row for row in world.disk.rows if row[0] == "meta" and row[2].startswith("duplicates:")]
        assert rows == [], "before, each of them had the whole list of duplicates made, and stored"
