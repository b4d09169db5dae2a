"""What `crsyncer door split` decides, pure: what a clone is, what may be removed, and which step may be taken."""

from dataclasses import replace
from typing import Any

import pytest

from crsyncer.core.content.annotations import SPEC_SOURCE
from crsyncer.core.content.object_content import ROBOT
from crsyncer.core.requests.calls import Collection
from crsyncer.door.domain.split_objects import (
    ROBOT_FINALIZER,
    Place,
    SplitKind,
    StoredObject,
    clone_difference,
    delete_stored,
    read_stored,
    served_kinds,
    why_it_stays,
    without_robot_finalizers,
)
from crsyncer.door.domain.split_plan import (
    AskedDoor,
    SplitFacts,
    State,
    blocker,
    going,
    is_awaited,
    judge_split,
    split_document,
)

GOALS = SplitKind("lab.example.com", "goals", ("v1",), is_custom=True)
ONE = StoredObject("u1", "7", "c", "l", "a")
OWN = replace(ONE, by_robot=True)
DELETED = replace(ONE, is_deleted=True)


def place(robot: str, name: str = "o") -> Place:
    return Place("goals.lab.example.com", f"robot-{robot}", name)


CLONES: dict[str, tuple[StoredObject | None, StoredObject | None, str | None]] = {
    "none": (None, None, None),
    "the same": (ONE, ONE, None),
    "another version: its status differs": (ONE, replace(ONE, resource_version="9"), None),
    "a finalizer more": (ONE, replace(ONE, finalizers=("x",)), None),
    "made after the snapshot": (ONE, None, "is at a alone: it was made there after the snapshot"),
    "removed after the snapshot": (None, ONE, "is at b alone: it was removed at a after the snapshot"),
    "made anew": (ONE, replace(ONE, uid="u2"), "has another uid: it was made anew"),
    "written": (ONE, replace(ONE, content="d"), "differs in its content: it was written after the snapshot"),
    "labelled": (
        replace(ONE, labels="x", annotations="y"),
        ONE,
        "differs in its labels and annotations: it was written after the snapshot",
    ),
    "deleted at the shard": (DELETED, ONE, "is deleted at a alone"),
    "deleted at the clone": (ONE, DELETED, "is deleted at b alone"),
    "deleted at both": (DELETED, DELETED, None),
    "the robot's own, written": (OWN, replace(OWN, content="d"), None),
    "the robot's own, made anew": (OWN, replace(OWN, uid="u2"), None),
    "the robot's own, new": (OWN, None, None),
    "the robot's own, removed": (None, OWN, None),
    "the robot's own at one alone": (OWN, replace(ONE, content="d"), "differs in its content: it was written after"),
}


@pytest.mark.parametrize("case", CLONES)
def test_G7_2_a_clone_has_the_same_objects_whatever_their_statuses(case: str):
    one, other, why = CLONES[case]
    found = clone_difference("a", "b", one, other)
    assert found == why if why is None else (found or "").startswith(why)


GOES: dict[str, tuple[StoredObject, StoredObject | None, str | None]] = {
    "the same": (ONE, ONE, None),
    "the clone has not": (
        ONE,
        None,
        "is at a alone: it was made there after the snapshot, or removed at b",
    ),
    "deleted, and gone at the clone": (DELETED, None, None),
    "deleted at the clone": (ONE, replace(DELETED, content="d"), None),
    "deleted at both": (DELETED, DELETED, None),
    "deleted at the shard alone": (DELETED, ONE, None),
    "made anew": (ONE, replace(ONE, uid="u2"), "has another uid: it was made anew"),
    "another one is deleted": (ONE, replace(DELETED, uid="u2"), "has another uid: it was made anew"),
    "written at either": (ONE, replace(ONE, content="d"), "differs in its content: it was written after the snapshot"),
    "the robot's own": (OWN, replace(OWN, uid="u2", content="d"), None),
    "the robot's own is still to come": (OWN, None, "is not at b yet, where its robot makes it anew"),
}


@pytest.mark.parametrize("case", GOES)
def test_G7_2_nothing_is_removed_at_the_shard_that_the_clone_has_not(case: str):
    one, other, why = GOES[case]
    assert why_it_stays("a", "b", one, other) == why


def door(*, at_a: frozenset[str] = frozenset(), at_b: frozenset[str] = frozenset(), **more: Any) -> AskedDoor:
    """A door with streams at the shards; `routed` otherwise as the streams."""
    streams = {"a": at_a, "b": at_b}
    return AskedDoor("127.0.0.1:1", **{"streams": streams, "routed": streams, **more})


BEFORE = SplitFacts(
    "a",
    "b",
    ("r1", "r2"),
    labels={"r1": "a", "r2": "a", "r3": "a", "r4": "c"},
    identities=("i", "i"),
    at_shard={place("r1"): ONE, place("r2"): ONE},
    at_new={place(name): ONE for name in ("r1", "r2", "r3", "r4")},
    doors=(door(at_a=frozenset({"r1", "r2", "r3"})),),
)
MOVED = {"r1": "b", "r2": "b", "r3": "a", "r4": "c"}
SWITCHED = replace(BEFORE, labels=MOVED, doors=(door(at_a=frozenset({"r3"}), at_b=frozenset({"r1", "r2"})),))
CLEARED = replace(SWITCHED, at_shard={})
FINISHED = replace(CLEARED, at_new={place(name): ONE for name in ("r1", "r2", "r4")})
SILENT = AskedDoor("127.0.0.1:2", "does not answer")
D, T, W, F = State.DONE, State.OPEN, State.WAITS, State.FAILED  # T is to do

STATES: dict[str, tuple[SplitFacts, tuple[State, ...]]] = {
    "before": (BEFORE, (D, T, T, T, T)),
    "half of the labels": (replace(BEFORE, labels=MOVED | {"r2": "a"}), (D, T, T, T, T)),
    "switched": (SWITCHED, (D, D, D, T, T)),
    "their objects are gone": (CLEARED, (D, D, D, D, T)),
    "finished": (FINISHED, (D, D, D, D, D)),
    "another cluster": (replace(BEFORE, identities=("i", "j")), (F, T, T, T, T)),
    "a stale clone": (replace(BEFORE, at_new={place("r1"): ONE}), (F, T, T, T, D)),
    "an object that was removed": (replace(BEFORE, at_shard={place("r1"): ONE}), (F, T, T, T, T)),
    "others' objects do not count for a clone": (replace(BEFORE, at_new=FINISHED.at_new), (D, T, T, T, D)),
    "a robot of another shard": (replace(BEFORE, labels={**BEFORE.labels, "r2": "c"}), (D, F, T, T, T)),
    "a door is silent before the switch": (replace(BEFORE, doors=(*BEFORE.doors, SILENT)), (D, F, F, T, T)),
    "the clone is down": (replace(BEFORE, doors=(door(down=frozenset({"b"})),)), (D, F, D, T, T)),
    "the shard is down": (replace(BEFORE, doors=(door(down=frozenset({"a"})),)), (D, T, D, T, T)),
    "a door is silent after it": (replace(SWITCHED, doors=(*SWITCHED.doors, SILENT)), (D, D, F, T, T)),
    "a stream is left": (replace(SWITCHED, doors=(*SWITCHED.doors, door(at_a=frozenset({"r2"})))), (D, D, F, T, T)),
    "a map leads there": (
        replace(SWITCHED, doors=(*SWITCHED.doors, door(routed={"a": frozenset({"r2"})}))),
        (D, D, F, T, T),
    ),
    "nobody is seen": (replace(SWITCHED, doors=(door(),)), (D, D, D, W, T)),
    "one is seen": (replace(SWITCHED, doors=(door(at_b=frozenset({"r1"})),)), (D, D, D, T, T)),
    "who has nothing need not be seen": (replace(CLEARED, doors=(door(),)), (D, D, D, D, T)),
    "the clone has not": (replace(SWITCHED, at_new={place("r1"): ONE}), (D, D, D, F, D)),
    "kept by others": (
        replace(SWITCHED, at_shard={place("r1"): replace(DELETED, finalizers=("x",))}, at_new={place("r1"): DELETED}),
        (D, D, D, W, D),
    ),
    "deleted, with a robot's finalizer": (
        replace(
            SWITCHED,
            at_shard={place("r1"): replace(DELETED, finalizers=(f"{ROBOT_FINALIZER}r1",))},
            at_new={place("r1"): DELETED},
        ),
        (D, D, D, T, D),
    ),
    "another robot is at the clone": (
        replace(CLEARED, doors=(door(at_b=frozenset({"r3"})),)),
        (D, D, D, D, F),
    ),
    "others' objects are kept": (
        replace(FINISHED, at_new={place("r3"): replace(DELETED, finalizers=("x",))}),
        (D, D, D, D, W),
    ),
}


@pytest.mark.parametrize("case", STATES)
def test_G7_2_each_step_is_judged(case: str):
    facts, expected = STATES[case]
    steps = judge_split(facts)
    assert tuple(each.state for each in steps) == expected
    assert [each.number for each in steps] == [1, 2, 3, 4, 5]
    for each in steps:
        assert (each.message == "") == (each.state is State.DONE)
        assert each.details or each.state is State.DONE or each.number == 1


def test_G7_2_a_step_whose_predecessor_does_not_hold_is_not_taken():
    steps = judge_split(SWITCHED)
    assert [getattr(blocker(steps, number), "number", 0) for number in (1, 2, 3, 4, 5)] == [0, 0, 0, 0, 4]
    steps = judge_split(BEFORE)
    assert [getattr(blocker(steps, number), "number", 0) for number in (1, 2, 3, 4, 5)] == [0, 0, 2, 2, 2]
    waiting = judge_split(replace(SWITCHED, doors=(door(),)))
    assert blocker(waiting, 5) is None, "the other robots' objects go while some of these robots are away"


def test_G7_2_the_objects_of_a_robot_go_where_it_was_seen_at_the_clone():
    assert [*going(BEFORE, 4)] == []
    assert [*going(SWITCHED, 4)] == [("r1", place("r1"), ONE), ("r2", place("r2"), ONE)]
    assert [*going(replace(SWITCHED, doors=(door(at_b=frozenset({"r2"})),)), 4)] == [("r2", place("r2"), ONE)]
    assert [*going(SWITCHED, 5)] == [("r3", place("r3"), ONE)]
    kept = replace(SWITCHED, at_new={place("r3"): replace(DELETED, finalizers=("x",))})
    assert [*going(kept, 5)] == []


def test_G7_2_robots_that_are_on_their_way_are_waited_for():
    left = replace(SWITCHED, doors=(door(at_a=frozenset({"r2"})),))
    assert is_awaited(left, 3)
    assert not is_awaited(SWITCHED, 3)
    assert not is_awaited(replace(left, doors=(*left.doors, SILENT)), 3)
    assert is_awaited(replace(SWITCHED, doors=(door(),)), 4)
    assert not is_awaited(SWITCHED, 4)
    assert not is_awaited(replace(SWITCHED, at_new={}, doors=(door(),)), 4), "it has failed"
    assert not is_awaited(BEFORE, 2)


def test_the_messages_name_what_speaks_against_a_step():
    clone = judge_split(replace(BEFORE, at_new={place("r1"): ONE}))[0]
    why = "goals.lab.example.com/robot-r2/o is at a alone: it was made there after the snapshot"
    assert (clone.message, clone.details) == (f"the clone is stale, 1 object of these robots: {why}", (why,))
    many = tuple(f"m{number}" for number in range(7))
    labels = judge_split(replace(BEFORE, names=many, labels=dict.fromkeys(many, "a"), at_shard={}, at_new={}))[1]
    assert labels.message == "7 Robots to label: m0, m1, m2, m3, m4 and 2 more"
    away = judge_split(replace(SWITCHED, doors=(door(at_b=frozenset({"r1"})),)))[3]
    assert away.message == "1 object of 1 robot to remove at a"
    assert away.details == (str(place("r1")), "robot r2 has no stream at b yet")


def test_the_document_has_the_steps_and_what_was_done():
    content = split_document(FINISHED, judge_split(FINISHED)[1:2], ["robot r1: x"])
    assert content.pop("version")
    assert content == {
        "schema": "crsyncer.door-split/v1",
        "shard": "a",
        "new": "b",
        "robots": ["r1", "r2"],
        "steps": [
            {"number": 2, "title": "the Robots have the label of b", "state": "done", "message": "", "details": [],
             "hint": ""},
        ],
        "done": ["robot r1: x"],
    }  # fmt: skip


VERBS = ["create", "delete", "get", "list"]


def resource(name: str, *, namespaced: bool = True, verbs: list[str] | None = None) -> dict[str, Any]:
    return {"name": name, "namespaced": namespaced, "verbs": VERBS if verbs is None else verbs}


def test_G7_2_custom_resources_count_and_of_other_kinds_what_has_the_label_but_no_account():
    shown = {
        ("", "v1"): {
            "resources": [
                resource("configmaps"),
                resource("serviceaccounts"),
                resource("nodes", namespaced=False),
                resource("bindings", verbs=["create"]),
                resource("pods/log"),
            ]
        },
        ("rbac.authorization.k8s.io", "v1"): {"resources": [resource("roles")]},
        ("lab.example.com", "v2"): {"resources": [resource("goals"), resource("goals/status")]},
        ("lab.example.com", "v1"): {"resources": [resource("goals"), resource("findings")]},
        ("gone.example.com", "v1"): {},
    }
    groups = {
        "": ["v1"],
        "rbac.authorization.k8s.io": ["v1"],
        "lab.example.com": ["v2", "v1"],
        "gone.example.com": ["v1"],
    }
    crds = {
        "goals.lab.example.com": {"annotations": {SPEC_SOURCE: "cloud"}},
        "findings.lab.example.com": {"annotations": {SPEC_SOURCE: "robot"}},
    }
    found = served_kinds(groups, shown, crds)
    assert found == {
        "configmaps": SplitKind("", "configmaps", ("v1",), is_custom=False),
        "goals.lab.example.com": SplitKind("lab.example.com", "goals", ("v2", "v1"), is_custom=True),
        "findings.lab.example.com": SplitKind("lab.example.com", "findings", ("v1",), is_custom=True, by_robot=True),
    }
    assert found["configmaps"].collection("v1").selector == "cloudrobotics.com/robot-name"
    assert found["goals.lab.example.com"].collection("v2", "robot-a") == Collection(
        "lab.example.com", "v2", "goals", "robot-a"
    )


def raw(**metadata: Any) -> dict[str, Any]:
    base = {"name": "o", "namespace": "robot-r1", "uid": "u1", "resourceVersion": "7"}
    return {"metadata": base | metadata, "spec": {"a": 1}, "status": {"b": 2}}


def test_G7_2_of_an_object_digests_of_content_labels_and_annotations_are_kept():
    one = read_stored(raw(), GOALS)
    assert one is not None
    assert one == read_stored(raw() | {"status": {"b": 3}}, GOALS)
    assert one == read_stored(raw(labels=None, annotations={}), GOALS)
    changed = [
        read_stored(raw() | {"spec": {"a": 2}}, GOALS),
        read_stored(raw(labels={"x": "y"}), GOALS),
        read_stored(raw(annotations={"x": "y"}), GOALS),
    ]
    assert len({one, *changed}) == 4
    own = read_stored(raw(annotations={ROBOT: "r1"}), GOALS)
    foreign = read_stored(raw(annotations={ROBOT: "r2"}), GOALS)
    assert (own and own.by_robot, foreign and foreign.by_robot) == (True, False)
    kept = read_stored(raw(finalizers=["x"], deletionTimestamp="2026-01-01T00:00:00Z"), GOALS)
    assert kept is not None
    assert (kept.finalizers, kept.is_deleted, kept.is_kept) == (("x",), True, True)


def test_G7_2_the_token_of_an_account_stays():
    secrets = SplitKind("", "secrets", ("v1",), is_custom=False)
    assert read_stored(raw() | {"type": "kubernetes.io/service-account-token"}, secrets) is None
    assert read_stored(raw() | {"type": "Opaque"}, secrets) is not None


def test_G7_2_robots_finalizers_are_removed_and_the_object_deleted_in_this_version_alone():
    collection = GOALS.collection("v1", "robot-r1")
    stored = replace(ONE, finalizers=(f"{ROBOT_FINALIZER}r1", "x", f"{ROBOT_FINALIZER}r1"))
    patch = without_robot_finalizers(collection, place("r1"), stored)
    assert patch is not None
    assert patch.path == "/apis/lab.example.com/v1/namespaces/robot-r1/goals/o"
    assert patch.body == [
        {"op": "test", "path": "/metadata/uid", "value": "u1"},
        {"op": "test", "path": "/metadata/resourceVersion", "value": "7"},
        {"op": "remove", "path": "/metadata/finalizers/2"},
        {"op": "remove", "path": "/metadata/finalizers/0"},
    ]
    assert without_robot_finalizers(collection, place("r1"), replace(ONE, finalizers=("x",))) is None
    delete = delete_stored(collection, place("r1"), "u1", "8")
    assert (delete.method, delete.path) == ("DELETE", patch.path)
    assert delete.body["preconditions"] == {"uid": "u1", "resourceVersion": "8"}
