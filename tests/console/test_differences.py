"""What differs in a pair, row by row of `difference`'s table."""

import json
from functools import partial

import pytest
from hypothesis import given

from crsyncer.console.compare import differences
from crsyncer.console.compare.differences import Difference
from crsyncer.core.content.object_content import APPLIED, ROBOT, UPSTREAM_UID
from crsyncer.core.content.shape import Shape
from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.model import Key, Side
from crsyncer.core.related.relate import related_entries, related_policy
from tests.core.builders import copy_of, crd, goal, policies, policy, some, spoken, upstream_goals
from tests.core.policy_objects import merged_of, policy_object

KIND = policy()
difference = partial(differences.difference, key=Key("default", "a"))
CLOUD, ROBOT_SIDE = Side.CLOUD, Side.ROBOT


def related_goals(*, status: bool) -> KindPolicy:
    """Goals that are related objects, from the cloud."""
    entry = {"id": "x", "origin": "cloud", "resource": {"group": "", "resource": "goals"}, "object": {"name": "a"}}
    own = merged_of(crd({}), policy_object(specSource="cloud", related=[{**entry, "status": status}]))
    return spoken(related_policy(crd({}), related_entries(own), "robot-1"))


def shown(found: Difference | None) -> Difference:
    assert found is not None
    return found


@some
@given(upstream_goals(), policies)
def test_an_object_and_the_copy_that_the_agent_makes_of_it_do_not_differ(upstream, kind):
    assert difference(upstream, copy_of(upstream, kind), kind) is None


def test_an_object_that_should_be_there_is_shown_whole_without_what_is_its_servers():
    upstream = goal(
        status={"phase": "DONE"},
        metadata={
            "labels": {"a": "b"},
            "annotations": {APPLIED: "x", "kept": "y"},
            "finalizers": ["f"],
            "managedFields": [{}],
        },
    )
    whole = {
        "apiVersion": "lab.example.com/v1",
        "kind": "Goal",
        "metadata": {"namespace": "default", "name": "a", "labels": {"a": "b"}, "annotations": {"kept": "y"}},
        "spec": {"x": 1},
        "status": {"phase": "DONE"},
    }
    assert shown(difference(upstream, None, KIND)) == {CLOUD: whole, ROBOT_SIDE: None}
    assert shown(difference(upstream, None, policy(Side.ROBOT))) == {CLOUD: None, ROBOT_SIDE: whole}


def test_what_is_being_deleted_upstream_need_not_be_there():
    dying = goal(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    assert difference(dying, None, KIND) is None
    assert difference(None, None, KIND) is None


@pytest.mark.parametrize(
    ("annotations", "kind", "differs"),
    [
        ({}, KIND, True),
        ({}, policy(keep_orphans=True), False),
        ({UPSTREAM_UID: "u-1"}, policy(keep_orphans=True), True),
        ({}, policy(Side.ROBOT), False),
        ({UPSTREAM_UID: "u-1", ROBOT: "robot-2"}, policy(Side.ROBOT), False),
        ({UPSTREAM_UID: "u-1", ROBOT: "robot-1"}, policy(Side.ROBOT), True),
    ],
)
def test_S5_3_what_should_not_be_there_differs_only_where_it_is_ours_to_delete(annotations, kind, differs):
    copy = goal(metadata={"annotations": annotations})
    found = difference(None, copy, kind)
    assert (found is not None) is differs
    if found is not None:
        assert found[kind.upstream] is None
        assert (found[kind.downstream] or {})["metadata"] == {"namespace": "default", "name": "a"}


def test_content_and_the_labels_and_annotations_that_upstream_owns_differ():
    before = goal(metadata={"labels": {"a": "1", "dropped": "x"}, "annotations": {"b": "1"}})
    copy = copy_of(before, KIND)
    copy["metadata"]["labels"]["local"] = "stays"
    copy["metadata"]["annotations"]["local"] = "stays"
    now = goal(metadata={"labels": {"a": "2"}, "annotations": {"b": "1"}}, spec={"x": 2}, data={"y": 1.0})
    found = shown(difference(now, copy, KIND))
    head = {"apiVersion": "lab.example.com/v1", "kind": "Goal"}
    place = {"namespace": "default", "name": "a", "annotations": {"b": "1"}}
    assert found == {
        CLOUD: {**head, "metadata": {**place, "labels": {"a": "2"}}, "spec": {"x": 2}, "data": {"y": 1}},
        ROBOT_SIDE: {**head, "metadata": {**place, "labels": {"a": "1", "dropped": "x"}}, "spec": {"x": 1}},
    }
    assert json.dumps(found[CLOUD]).count("1.0") == 0  # numbers of equal meaning look the same


def statuses(up, down, kind=KIND) -> tuple:
    """The statuses that are shown of a pair whose content agrees; () where nothing differs."""
    upstream = goal(status=up)
    copy = copy_of(upstream, kind)
    copy.pop("status", None)
    found = difference(upstream, copy if down is None else copy | {"status": down}, kind)
    return () if found is None else tuple((found[side] or {}).get("status") for side in Side)


def test_S4_3_a_status_differs_once_the_copy_has_one():
    assert statuses({"phase": "A"}, None) == ()
    assert statuses({"phase": "A"}, {}) == ()
    assert statuses({"phase": "A"}, {"phase": "A"}) == ()
    assert statuses({"phase": "A"}, {"phase": "B"}) == ({"phase": "A"}, {"phase": "B"})
    assert statuses(None, {"phase": "B"}) == (None, {"phase": "B"})
    assert statuses(None, ["odd"]) == (None, ["odd"])


def test_S4_5_only_the_subtree_of_a_status_differs():
    subtree = policy(subtree="robot")
    assert statuses({"cloud": 1, "robot": {"x": 1}}, {"cloud": 2, "robot": {"x": 1}}, subtree) == ()
    assert statuses({"cloud": 1}, {"robot": {"x": 1}}, subtree) == (None, {"robot": {"x": 1}})
    assert statuses({"robot": {"x": 1}}, {"cloud": 1}, subtree) == ({"robot": {"x": 1}}, None)


def test_S4_7_a_mapped_generation_is_no_difference():
    mapped = policy(map_generation=True)
    assert statuses({"observedGeneration": 4, "a": 1}, {"observedGeneration": 9, "a": 1}, mapped) == ()
    assert statuses({"observedGeneration": 4}, {"observedGeneration": 9}) == (
        {"observedGeneration": 4},
        {"observedGeneration": 9},
    )


def test_S5_4_a_copy_of_another_object_differs_by_its_uid_and_its_status_is_nobodys():
    copy = copy_of(goal(uid="old"), KIND) | {"status": {"phase": "OLD"}}
    found = shown(difference(goal(uid="new"), copy, KIND))
    assert [(document or {})["metadata"]["uid"] for document in found.values()] == ["new", "old"]
    assert not any("status" in (document or {}) for document in found.values())


def test_a_copy_that_was_not_adopted_yet_differs_by_its_content_alone():
    assert difference(goal(status={"phase": "A"}), goal(status={"phase": "B"}), KIND) is None
    assert difference(goal(spec={"x": 2}), goal(), KIND) is not None


def test_a_deletion_that_only_one_side_knows_of_is_a_difference():
    time = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    upstream = goal()
    copy = copy_of(upstream, KIND)
    dying = copy | {"metadata": copy["metadata"] | {"deletionTimestamp": "2026-01-02T00:00:00Z"}}
    found = shown(difference(goal(metadata=time), copy, KIND))
    assert (found[CLOUD] or {})["metadata"]["deletionTimestamp"] == "2026-01-01T00:00:00Z"
    assert (shown(difference(upstream, dying, KIND))[ROBOT_SIDE] or {})["metadata"]["deletionTimestamp"]
    assert difference(goal(metadata=time), dying, KIND) is None


def test_C3_2_a_copys_own_fields_do_not_differ_with_keep_local():
    local = policy(shape=Shape(keep_local=True))
    upstream = goal(spec={"x": 1, "y": 1}, metadata={"labels": {"a": "1"}})
    copy = copy_of(upstream, local)
    copy["spec"] = {"x": 2, "mine": 1}
    copy["metadata"]["labels"] = {"a": "2", "mine": "1"}
    assert difference(upstream, copy, local) is None
    later = goal(spec={"x": 3, "y": 1}, metadata={"labels": {"a": "1", "b": "1"}})
    found = shown(difference(later, copy, local))
    wanted, is_there = found[CLOUD], found[ROBOT_SIDE]
    assert wanted is not None
    assert is_there is not None
    assert (wanted["spec"], is_there["spec"]) == ({"x": 3, "mine": 1}, {"x": 2, "mine": 1})
    assert wanted["metadata"]["labels"] == {"a": "2", "b": "1", "mine": "1"}


def test_C4_1_objects_are_compared_after_their_steps():
    def add(raw, *_):
        return raw | {"more": 1}

    def number(raw, *_):
        return raw | {"status": {"n": 2}}

    shaped = policy(shape=Shape(steps="x", down=add, up=number))
    upstream = goal(spec={"x": 1}, status={"n": 2})
    assert difference(upstream, copy_of(add(upstream), shaped, status={"n": 1}), shaped) is None
    assert difference(upstream, copy_of(upstream, shaped, status={"n": 1}), shaped) is not None


def test_C5_5_the_statuses_of_related_objects_differ_where_they_are_copied():
    up = goal(metadata={"uid": "u"}, status={"n": 1})
    copy = goal(metadata={"annotations": {UPSTREAM_UID: "u"}})
    for status in ({"n": 2}, None):
        found = shown(difference(up, {**copy, "status": status}, related_goals(status=True)))
        assert [each and each.get("status") for each in found.values()] == [{"n": 1}, status]
        assert difference(up, {**copy, "status": status}, related_goals(status=False)) is None
    assert difference(up, {**copy, "status": {"n": 1}}, related_goals(status=True)) is None
    for copied in (True, False):
        new = shown(difference(up, None, related_goals(status=copied)))[CLOUD]
        assert new is not None
        assert ("status" in new) is copied
