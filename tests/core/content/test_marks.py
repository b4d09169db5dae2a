"""The marks of copies (C2)."""

import hashlib
from dataclasses import replace

import pytest

from crsyncer.core.content.annotations import OURS
from crsyncer.core.content.marks import Marks
from crsyncer.core.content.object_content import synced_annotations, synced_labels
from crsyncer.core.content.shape import AS_RECEIVED, Shape, changes_content
from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.kinds.namespaces import Namespaces
from crsyncer.core.model import Key, Observation, Record, Side
from crsyncer.core.pair.actions import Update, Why
from crsyncer.core.pair.compose import compose_copy
from crsyncer.core.pair.decide import decide
from crsyncer.core.pair.project import view_of
from tests.core.builders import copy_of, goal, policy, stored

KEYS = [f"{OURS}upstream-{what}" for what in ("cluster", "namespace", "name")]
MARKED = Shape(marks=Marks, identity="c1")


def kind(upstream: Side = Side.CLOUD, **changes) -> KindPolicy:
    return policy(upstream, **{"shape": MARKED, **changes})


def texts(raw, field):
    return {key: raw["metadata"][field][key] for key in KEYS if key in raw["metadata"].get(field, {})}


def labels_of(*values):
    return {key: hashlib.sha256(value.encode()).hexdigest()[:32] for key, value in zip(KEYS, values, strict=True)}


@pytest.mark.parametrize("side", Side)
def test_C2_1_a_copy_has_digests_as_labels_and_plain_values_as_annotations(side):
    up = goal(metadata={"name": "a" * 253})
    copy = copy_of(up, kind(side))
    values = ("c1", "default", "a" * 253)
    assert texts(copy, "annotations") == dict(zip(KEYS, values, strict=True))
    assert texts(copy, "labels") == labels_of(*values)
    assert copy["metadata"]["annotations"][f"{OURS}upstream-uid"] == "u-1"


def test_C2_1_the_marks_name_the_namespace_as_upstream_calls_it():
    places = Namespaces(("cloudy",), ("default",))
    copy = copy_of(goal(metadata={"namespace": "cloudy"}), kind(namespaces=places))
    assert copy["metadata"]["namespace"] == "default"
    assert texts(copy, "annotations")[KEYS[1]] == "cloudy"
    assert not view_of(copy, kind(namespaces=places), Side.ROBOT).unmarked


@pytest.mark.parametrize("shape", [AS_RECEIVED, replace(MARKED, identity="")])
def test_C2_1_without_a_policy_or_an_identity_a_copy_has_no_marks(shape):
    copy = copy_of(goal(), kind(shape=shape))
    assert (texts(copy, "annotations"), texts(copy, "labels")) == ({}, {})
    assert not view_of(copy, kind(shape=shape), Side.ROBOT).unmarked


@pytest.mark.parametrize(
    ("key", "copied"),
    [
        ("app", True),
        ("cloudrobotics.com/robot-name", True),
        ("notkcp.io/a", True),
        ("kcp.io.example.com/a", True),
        (f"{OURS}upstream-uid", False),
        ("cr-syncer.cloudrobotics.com/a", False),
        ("kcp.io/cluster", False),
        ("tenancy.kcp.io/type", False),
    ],
)
def test_C2_1_our_labels_and_those_of_kcp_are_never_copied(key, copied):
    raw = goal(metadata={"labels": {key: "1"}, "annotations": {key: "1"}})
    assert (key in synced_labels(raw), key in synced_annotations(raw)) == (copied, copied)
    assert (key in copy_of(raw, policy())["metadata"]["labels"]) is copied


@pytest.mark.parametrize("keep_local", [False, True])
def test_C2_1_marks_are_no_content(keep_local):
    own = kind(shape=replace(MARKED, keep_local=keep_local))
    up = goal(metadata={"labels": {"app": "1"}})
    views = [view_of(up, own, Side.CLOUD), view_of(copy_of(up, own), own, Side.ROBOT)]
    assert views[1].stamp is not None
    assert (views[1].stamp.digest, views[1].stamp.labels) == (views[0].content, ("app",))
    assert keep_local or views[1].content == views[0].content
    assert decide(Observation(views[0]), Observation(views[1]), own, Record()).content is None
    again = compose_copy(up, views[0], own, downstream=copy_of(up, own))
    assert again["metadata"]["labels"] == copy_of(up, own)["metadata"]["labels"]


def test_C2_1_a_copy_that_becomes_an_original_does_not_pass_its_marks_on():
    former = stored(copy_of(goal(), kind()), uid="u-2")
    copy = copy_of(former, kind(Side.ROBOT, shape=replace(MARKED, identity="c2")))
    assert texts(copy, "labels") == labels_of("c2", "default", "a")


@pytest.mark.parametrize("field", ["labels", "annotations"])
@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("value", [None, "wrong"])
@pytest.mark.parametrize("keep_drift", [False, True])
def test_C2_4_a_missing_or_wrong_mark_is_repaired(field, key, value, keep_drift):
    own = kind(keep_drift=keep_drift)
    up = view_of(goal(), own, Side.CLOUD)
    copy = copy_of(goal(), own)
    copy["metadata"][field] = {k: v for k, v in copy["metadata"][field].items() if k != key}
    copy["metadata"][field] |= {} if value is None else {key: value}
    found = view_of(copy, own, Side.ROBOT)
    plan = decide(Observation(up), Observation(found), own, Record())
    assert plan.content == Update("c-1", "10", Why.MARKS)
    assert view_of(Marks(Key("default", "a"), "c1").put_on(copy), own, Side.ROBOT).unmarked is False


def test_C2_4_marks_are_put_on_a_copy_and_all_else_stays():
    raw = goal(status={"n": 1}, metadata={"finalizers": ["f"], "labels": {"app": "1"}})
    found = Marks(Key("default", "a"), "c1").put_on(raw)
    assert raw == goal(status={"n": 1}, metadata={"finalizers": ["f"], "labels": {"app": "1"}})
    metadata = raw["metadata"] | {
        "labels": {"app": "1", **labels_of("c1", "default", "a")},
        "annotations": dict(zip(KEYS, ("c1", "default", "a"), strict=True)),
    }
    assert found == raw | {"metadata": metadata}


def test_C2_4_the_store_is_looked_through_again_when_other_marks_are_wanted():
    shapes = [
        AS_RECEIVED,
        MARKED,
        replace(MARKED, identity="c2"),
        replace(MARKED, keep_local=True),
        Shape(keep_local=True),
    ]
    signatures = [each.signature for each in shapes]
    assert len(set(signatures)) == len(shapes)
    assert [changes_content(each) for each in signatures] == [False, False, False, True, True]


@pytest.mark.parametrize(
    ("metadata", "foreign"),
    [
        ({}, False),
        ({"annotations": None, "ownerReferences": None}, False),
        ({"annotations": {KEYS[0]: "c1"}, "ownerReferences": [{"uid": "u"}]}, False),
        ({"annotations": {KEYS[0]: "c2"}}, True),
        ({"ownerReferences": [{"uid": "u"}, {"uid": "v", "controller": True}]}, True),
    ],
)
def test_C2_5_what_has_a_controller_or_the_marks_of_another_cluster_is_somebody_elses(metadata, foreign):
    assert Marks(Key("default", "a"), "c1").are_foreign_to({"metadata": metadata}) is foreign


def test_C9_1_a_copy_names_the_path_of_its_originals_workspace_where_that_is_known():
    key, kcps = f"{OURS}upstream-path", {"annotations": {"kcp.io/path": "root:own"}}

    def path(made, raw):
        return copy_of(raw, kind(shape=replace(MARKED, path=made)))["metadata"]["annotations"].get(key)

    assert path(lambda: "root:a", goal(metadata=kcps)) == "root:a"
    assert path(lambda: "", goal(metadata=kcps)) == "root:own"
    assert path(lambda: "", goal()) is None
    assert path(None, goal(metadata=kcps)) is None
    assert replace(MARKED, path=lambda: "x") == MARKED
