"""What is remembered of a kind that is synced, and which annotations mean nothing (S1.8)."""

import json

import pytest

from crsyncer.core.content.annotations import DRIFT, OURS, SPEC_SOURCE, SYNCER
from crsyncer.core.kinds.stopped_kind import former_name, from_store, remembered, to_store, unknown_annotations
from crsyncer.core.model import Key, Loaded, Pending, Side, Stamp, View
from tests.core.builders import crd, policy
from tests.core.policy_objects import merged_of, policy_object

MARKS = {OURS + "upstream-uid": "u", OURS + "robot": "robot-1"}


@pytest.mark.parametrize("upstream", list(Side))
def test_S1_8_what_is_remembered_survives_the_store(upstream):
    kinds = {"goals.lab.example.com": remembered(policy(upstream))}
    assert from_store(json.loads(json.dumps(to_store(kinds)))) == kinds
    assert kinds["goals.lab.example.com"].downstream is upstream.other


def test_S1_8_how_a_kind_was_configured_is_remembered():
    by_policy = merged_of(crd({}), policy_object("orders", specSource="cloud"))
    assert [remembered(kind).policy for kind in (policy(), by_policy)] == ["", "orders"]


def test_S1_8_in_the_cloud_only_this_robots_copies_count():
    down, up = remembered(policy(Side.CLOUD, robot="robot-1")), remembered(policy(Side.ROBOT, robot="robot-1"))
    for annotations, on_robot, in_cloud in (
        (MARKS, True, True),
        (MARKS | {OURS + "robot": "robot-2"}, True, False),
        ({}, False, False),
        (None, False, False),
    ):
        raw = {"metadata": {"annotations": annotations}}
        assert (down.is_copy(raw), up.is_copy(raw)) == (on_robot, in_cloud)


def test_S1_8_an_earlier_version_remembered_no_former_names():
    kinds = {"goals.lab.example.com": remembered(policy(Side.CLOUD))}
    stored = to_store(kinds)
    for new in ("uids", "statuses"):
        del stored["goals.lab.example.com"][new]
    assert from_store(stored) == kinds


FILTERED = {"filtered": True}


@pytest.mark.parametrize(
    ("before", "now", "is_former"),
    [
        ((Side.CLOUD, "robot-1", FILTERED), (Side.CLOUD, "robot-2", FILTERED), True),
        ((Side.CLOUD, "robot-1", FILTERED), (Side.CLOUD, "robot-1", FILTERED), False),
        ((Side.CLOUD, "robot-1", {}), (Side.CLOUD, "robot-2", FILTERED), False),
        ((Side.CLOUD, "robot-1", FILTERED), (Side.CLOUD, "robot-2", {}), False),
        ((Side.CLOUD, "robot-1", FILTERED), (Side.ROBOT, "robot-2", FILTERED), False),
        ((Side.ROBOT, "robot-1", {}), (Side.ROBOT, "robot-2", FILTERED), True),
        ((Side.ROBOT, "robot-1", {}), (Side.ROBOT, "robot-1", {}), False),
    ],
)
def test_S1_8_copies_belong_to_a_former_name_where_the_name_says_whose_they_are(before, now, is_former):
    kinds = [remembered(policy(source, robot=robot, **how)) for source, robot, how in (before, now)]
    assert kinds[0].is_former(kinds[1]) is is_former


@pytest.mark.parametrize(
    ("source", "filtered", "uids", "statuses"),
    [
        (Side.CLOUD, True, ("mine", "theirs"), 1),
        (Side.ROBOT, False, ("mine",), 0),
        (Side.ROBOT, True, ("mine",), 1),
    ],
)
def test_S1_8_in_the_cloud_copies_of_other_robots_belong_to_no_former_name(source, filtered, uids, statuses):
    views = {
        Key("default", uid): View(uid, "1", 1, False, "", "", False, stamp=None if robot is None else Stamp("u", robot))
        for uid, robot in (("mine", "robot-1"), ("theirs", "robot-3"), ("local", None))
    }
    loaded = Loaded({source: {}, source.other: views}, pending={Key("default", "mine"): Pending(1, "u", "d", {}, 0.0)})
    kind = remembered(policy(source, robot="robot-1", filtered=filtered))
    former = former_name(kind, loaded)
    assert (former.robot, former.uids, former.statuses, former.has_crd) == ("robot-1", uids, statuses, False)
    assert former.copies == kind.copies


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        (SYNCER + "spec-sorce", SPEC_SOURCE),
        (OURS + "spec-source", SPEC_SOURCE),
        (OURS + "Drift", DRIFT),
        (OURS + "colour", ""),
    ],
)
def test_S1_8_an_unknown_annotation_comes_with_the_one_that_is_meant(name, meant):
    known = {SPEC_SOURCE: "cloud", "example.com/x": "1", SYNCER + "remote-resource-version": "7", **MARKS}
    assert unknown_annotations({**known, name: "x"}) == {name: meant}
