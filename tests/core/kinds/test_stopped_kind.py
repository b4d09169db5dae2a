"""What is remembered of a kind that is synced, and which annotations mean nothing (S1.8)."""

import json

import pytest

from crsyncer.core.content.annotations import DRIFT, OURS, SPEC_SOURCE, SYNCER
from crsyncer.core.kinds.stopped_kind import from_store, remembered, to_store, unknown_annotations
from crsyncer.core.model import Side
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
