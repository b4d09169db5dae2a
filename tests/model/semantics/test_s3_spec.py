"""S3.1 to S3.4 and S3.7 on virtual time: content travels downwards, whole, and nothing else does."""

from typing import Any

import pytest

from crsyncer.core.content.annotations import OURS, ROBOT_LABEL, SYNCER
from crsyncer.core.model import Json
from tests.model.simulation.life import ROBOT
from tests.model.simulation.scene import SOURCES, copy, original, restart, roles, scene, synced
from tests.model.simulation.world import World
from tests.system.bed import crd

UID, APPLIED, SIGNATURE = OURS + "upstream-uid", OURS + "applied", OURS + "robot"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
BOTH = pytest.mark.parametrize("source", SOURCES)


def owner(uid: str) -> list[Json]:
    """An owner reference."""
    return [{"apiVersion": "v1", "kind": "ConfigMap", "name": f"owner-{uid}", "uid": uid}]


@BOTH
def test_S3_1_content_is_every_top_level_field_but_status_and_what_upstream_drops_is_dropped(source: str) -> None:
    with scene(goals={"source": source}) as world:
        up, down = roles(world, source)
        fields: dict[str, Any] = {
            "spec": {"x": 1, "gone": {"y": [1, 2]}},
            "data": {"key": "value"},
            "roleRef": {"name": "someone"},
            "unheardOf": [{"deep": None, "kept": False}, 3],
        }
        up.create("a", **fields)
        world.begin()
        assert {k: v for k, v in down.objects()["a"].items() if k != "metadata"} == fields
        down.set_status("a", {"n": 1})
        world.edit("a", spec={"x": 1}, data=None, late={"field": "too"}, unheardOf=None, source=source)
        found = {k: v for k, v in down.objects()["a"].items() if k != "metadata"}
        assert found == {
            "spec": {"x": 1},
            "roleRef": {"name": "someone"},
            "late": {"field": "too"},
            "status": {"n": 1},
        }
        world.edit("a", spec=None, roleRef=None, late=None, source=source)
        assert {*down.objects()["a"]} == {"metadata", "status"}


def test_S3_1_a_kind_whose_schema_prunes_downstream_settles_with_one_request() -> None:
    pruning = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"x": {"type": "integer"}}}}}
    with scene() as world:
        world.robot.apply(crd("lab.example.com", schema=pruning))
        world.begin("a", spec={"x": 1, "unknown": "there"}, data={"k": "v"}, seconds=600)
        restart(world)
        assert (copy(world)["spec"], "data" in copy(world)) == ({"x": 1}, False)
        assert [request.verb for request in world.journal.asked(verb="write", kind="goals")] == ["create"]


@BOTH
def test_S3_2_an_agreed_pair_costs_no_request_not_even_after_a_restart(source: str) -> None:
    with scene(goals={"source": source}) as world:
        up, down = roles(world, source)
        world.begin("a", source=source, labels={"zone": "b"})
        world.report("a", {"phase": "DONE"}, source=source)
        begun = world.clock.now
        down.label("a", theirs="1")
        up.set_status("a", {"phase": "DONE", "note": "somebody upstream"})
        world.pass_time(600)
        restart(world)
        assert world.journal.asked(verb="write", kind="goals", since=begun) == []


@BOTH
def test_S3_2_each_change_is_one_update_guarded_by_uid_and_resource_version(source: str) -> None:
    with scene(goals={"source": source}) as world:
        _, down = roles(world, source)
        world.begin("a", source=source)
        for number in (2, 3):
            before = down.objects()["a"]["metadata"]
            begun = world.clock.now
            world.edit("a", spec={"x": number}, source=source)
            (put,) = world.journal.asked(verb="write", kind="goals", since=begun)
            assert (put.side, put.call.method) == (down.side, "PUT")
            guards = {key: put.call.body["metadata"][key] for key in ("uid", "resourceVersion")}
            assert guards == {key: before[key] for key in guards}
            assert down.objects()["a"]["spec"] == {"x": number}


def test_S3_2_a_change_that_meets_another_writer_is_decided_anew_and_loses_nothing(world: World) -> None:
    world.weather[world.robot.side].lag = 3.0  # the agent has not heard of the other writer yet
    world.robot.label("a", theirs="1")
    begun = world.clock.now
    world.edit("a", spec={"x": 2})
    puts = world.journal.asked("robot", verb="update", kind="goals", since=begun)
    assert {put.status for put in puts[:-1]} == {409}
    assert puts[-1].status == 200
    assert (copy(world)["spec"], copy(world)["metadata"]["labels"]) == ({"x": 2}, {"theirs": "1"})


@BOTH
def test_S3_3_what_belongs_to_one_object_alone_is_not_copied_and_the_copys_own_is_kept(source: str) -> None:
    with scene(goals={"source": source}) as world:
        up, down = roles(world, source)
        world.begin("a", source=source, finalizers=["up/one"], ownerReferences=owner("up"), generateName="gen-")
        metadata = down.objects()["a"]["metadata"]
        assert not metadata.keys() & {"finalizers", "ownerReferences", "generateName"}
        assert metadata["uid"] != up.objects()["a"]["metadata"]["uid"]
        assert metadata["annotations"][UID] == up.objects()["a"]["metadata"]["uid"]
        assert metadata["annotations"].get(SIGNATURE) == (ROBOT if source == "robot" else None)
        own = {"finalizers": ["down/one"], "ownerReferences": owner("down")}
        down.set("a", metadata=metadata | own)
        world.edit("a", spec={"x": 2}, source=source)
        assert down.objects()["a"]["spec"] == {"x": 2}
        assert {key: down.objects()["a"]["metadata"][key] for key in own} == own


@BOTH
def test_S3_3_excluded_annotations_never_travel_and_nothing_of_ours_goes_upstream(source: str) -> None:
    with scene(goals={"source": source}) as world:
        up, down = roles(world, source)
        excluded = {LAST_APPLIED: "{}", SYNCER + "note": "x", OURS + "note": "y", UID: "not-ours", APPLIED: "junk"}
        plain = {"lab.example.com/note": "kept"}
        world.begin("a", source=source, annotations=excluded | plain)
        before = up.objects()["a"]["metadata"]
        annotations = down.objects()["a"]["metadata"]["annotations"]
        assert annotations.keys() & (excluded.keys() | plain.keys()) == {UID, APPLIED, *plain}
        assert annotations[UID] == before["uid"]
        assert annotations[APPLIED] != "junk"
        world.report("a", {"phase": "DONE"}, source=source)
        after = up.objects()["a"]
        assert (after["status"], after["metadata"]["annotations"]) == ({"phase": "DONE"}, excluded | plain)
        assert after["metadata"]["generation"] == before["generation"]
        begun = world.clock.now
        up.annotate("a", {LAST_APPLIED: '{"changed": 1}'})
        world.pass_time(60)
        assert world.journal.asked(verb="write", kind="goals", since=begun) == []


@BOTH
@pytest.mark.parametrize("field", ["labels", "annotations"])
def test_S3_4_labels_and_annotations_are_merged_three_ways(source: str, field: str) -> None:
    with scene(goals={"source": source}) as world:
        up, down = roles(world, source)

        def change(plane: Any, **keys: str | None) -> dict[str, str]:
            if field == "labels":
                plane.label("a", **keys)
            else:
                plane.annotate("a", keys)
            world.settle()
            found = down.objects()["a"]["metadata"].get(field) or {}
            return {k: v for k, v in found.items() if not k.startswith(OURS)}

        fields: dict[str, Any] = {"spec": {"x": 1}, field: {"keep": "1", "drop": "1", "both": "1"}}
        up.create("a", **fields)
        world.begin()
        # Downstream actors add keys of their own, and meddle with upstream's.
        found = change(down, added="1", keep="meddled", both=None)
        assert found == {"keep": "1", "drop": "1", "both": "1", "added": "1"}
        # Upstream drops, changes and adds, also a key that somebody downstream has added before.
        assert change(up, drop=None, keep="2", new="1") == {"keep": "2", "both": "1", "new": "1", "added": "1"}
        assert change(up, added="taken")["added"] == "taken"
        assert change(up, added=None) == {"keep": "2", "both": "1", "new": "1"}


def test_S3_4_which_keys_upstream_owns_is_remembered_on_the_copy_and_not_in_the_store(world: World) -> None:
    world.cloud.label("a", drop="1", keep="1")
    world.settle()
    world.robot.label("a", theirs="1")
    world.settle()
    with world.down():
        world.cloud.label("a", drop=None)
        world.lose_database()
    world.settle()
    assert copy(world)["metadata"]["labels"] == {"keep": "1", "theirs": "1"}


def test_S3_7_the_same_value_written_differently_is_not_sent_again(world: World) -> None:
    world.edit("a", spec={"z": 1.0, "a": 1e2, "o": {"y": 1, "x": 2}})
    begun = world.clock.now
    metadata = original(world)["metadata"] | {"annotations": {LAST_APPLIED: "as kubectl apply leaves it"}}
    world.edit("a", spec={"o": {"x": 2.0, "y": 1}, "a": 100, "z": 1}, metadata=metadata, seconds=60)
    assert world.journal.asked(verb="write", kind="goals", since=begun) == []


@pytest.mark.parametrize(
    ("one", "other"),
    [(2**53, 2**53 + 1), (2**63 - 1, 2**63 - 2), (1, 1.5), ([2.0, 1.5], [2.0, 1]), ("1", 1), ([], {})],
)
def test_S3_7_values_that_nearly_are_the_same_are_told_apart(one: Any, other: Any) -> None:
    with synced() as world:
        for value in (one, other, one):
            world.cloud.set("a", spec={"v": value})
            world.report("a", {"v": value})
            assert repr(copy(world)["spec"]["v"]) == repr(original(world)["status"]["v"]) == repr(value)


@pytest.mark.parametrize("cluster", [False, True], ids=["namespaced", "cluster"])
@BOTH
def test_S3_2_content_follows_in_both_scopes_filtered(source: str, cluster: bool) -> None:
    with scene(goals={"source": source, "cluster": cluster, "filtered": "true"}) as world:
        up, down = roles(world, source)
        world.start()
        up.create("a", spec={"x": 1}, labels={ROBOT_LABEL: ROBOT})
        up.create("b", spec={"x": 1}, labels={ROBOT_LABEL: "robot-2"})
        world.add("c", source=source)
        down.set_status("a", {"phase": "DONE"})
        world.edit("a", spec={"x": 2}, source=source)
        assert down.objects().keys() == {"a"}
        assert (down.objects()["a"]["spec"], up.objects()["a"]["status"]) == ({"x": 2}, {"phase": "DONE"})


def test_S3_2_objects_of_one_name_in_several_namespaces_do_not_mix() -> None:
    with scene() as world:
        spaces = ("default", "one", "two")
        for number, space in enumerate(spaces):
            world.cloud.make_namespace(space)
            world.cloud.create("a", namespace=space, spec={"n": number})
        world.begin()
        for space in spaces:
            world.robot.set_status("a", {"n": 0, "in": space}, namespace=space)
        world.settle()
        for number, space in enumerate(spaces):
            assert world.robot.objects(namespace=space)["a"]["spec"] == {"n": number}
            assert world.cloud.objects(namespace=space)["a"]["status"]["in"] == space
