"""C6: which finalizer is a robot's, whom it keeps, and the patch that removes it and nothing else."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crsyncer.core.model import Key
from crsyncer.core.pair import finalizer_calls
from crsyncer.core.pair.finalizer_calls import (
    KeptObject,
    add_finalizer,
    finalizer,
    kept_object,
    remove_finalizer,
    remove_finalizer_at,
)
from crsyncer.core.requests.calls import JSON_PATCH, Collection
from crsyncer.errors import ConfigError
from tests.model.simulation.json_patch import Conflict, patched

OURS = "crsyncer.cloudrobotics.com/robot-r1"
THEIRS = "crsyncer.cloudrobotics.com/robot-r10"
GOALS = Collection("lab.example.com", "v1", "goals")
KEPT = KeptObject(Key("n", "a"), "u1", (OURS,), 1000.0)


def raw(*finalizers: str, uid: str = "u1", deleted: str = "") -> dict:
    metadata: dict = {"name": "a", "namespace": "n", "uid": uid, "finalizers": list(finalizers)}
    return {"metadata": metadata | ({"deletionTimestamp": deleted} if deleted else {})}


def test_C6_1_a_robots_finalizer_is_a_name_that_servers_take():
    assert finalizer("r1") == OURS
    assert len(finalizer("r" * 57).partition("/")[2]) == 63


@pytest.mark.parametrize("name", ["", "R1", "r_1", "r.1", "-r", "r" * 58])
def test_C6_1_a_name_that_is_no_dns_label_of_57_characters_is_refused(name):
    with pytest.raises(ConfigError, match="at most 57 lower-case letters"):
        finalizer(name)


def test_C6_4_only_objects_with_the_finalizer_are_kept():
    assert kept_object(raw(THEIRS), OURS) is None
    assert kept_object({"metadata": {"name": "a", "uid": "u1"}}, OURS) is None
    found = kept_object(raw("x", OURS, deleted="1970-01-01T00:16:40Z"), OURS)
    assert found == KeptObject(Key("n", "a"), "u1", ("x", OURS), 1000.0)
    assert kept_object(raw(OURS), OURS) == replace(KEPT, deleted_at=None)


@pytest.mark.parametrize(
    ("deleted_at", "older_than", "living", "due"),
    [
        (900.0, 100.0, False, True),
        (901.0, 100.0, False, False),
        (901.0, 100.0, True, False),
        (1000.0, 0.0, False, True),
        (None, 0.0, False, False),
        (None, 100.0, True, True),
    ],
)
def test_C6_4_terminating_objects_are_due_by_their_age_and_living_ones_when_asked_for(
    deleted_at, older_than, living, due
):
    kept = replace(KEPT, deleted_at=deleted_at)
    assert kept.is_due(older_than=older_than, now=1000.0, living=living) is due


def test_C6_2_the_patch_tests_uid_and_place():
    call = remove_finalizer(GOALS, replace(KEPT, finalizers=("x", OURS, THEIRS)), OURS)
    assert (call.verb, call.method, call.content_type) == ("patch", "PATCH", JSON_PATCH)
    assert call.path == "/apis/lab.example.com/v1/namespaces/n/goals/a"
    assert call.body == [
        {"op": "test", "path": "/metadata/uid", "value": "u1"},
        {"op": "test", "path": "/metadata/finalizers/1", "value": OURS},
        {"op": "remove", "path": "/metadata/finalizers/1"},
    ]


def test_C6_4_an_object_of_the_core_group_or_without_a_namespace_has_its_own_path():
    maps = Collection("", "v1", "configmaps")
    assert remove_finalizer(maps, KEPT, OURS).path == "/api/v1/namespaces/n/configmaps/a"
    assert remove_finalizer(GOALS, replace(KEPT, key=Key("", "a")), OURS).path == "/apis/lab.example.com/v1/goals/a"
    assert (maps.resource, GOALS.resource) == ("configmaps", "goals.lab.example.com")


NAMES = st.lists(st.sampled_from([OURS, THEIRS, "x", "y"]), max_size=5)


@given(seen=NAMES, now=NAMES, same=st.booleans())
def test_C6_2_whatever_the_list_was_the_patch_removes_ours_in_order_or_fails(seen, now, same):
    kept = kept_object(raw(*seen), OURS)
    if kept is None:
        return
    stored = raw(*(seen if same else now), uid="u1" if same else "u2")
    call = remove_finalizer(GOALS, kept, OURS)
    if same:
        assert patched(stored, call.body)["metadata"]["finalizers"] == [name for name in seen if name != OURS]
        return
    with pytest.raises(Conflict):
        patched(stored, call.body)


@given(seen=NAMES, now=NAMES)
def test_C6_2_a_list_that_changed_loses_nothing_but_ours(seen, now):
    kept = kept_object(raw(*seen), OURS)
    if kept is None:
        return
    try:
        left = patched(raw(*now), remove_finalizer(GOALS, kept, OURS).body)["metadata"]["finalizers"]
    except Conflict:
        return
    assert [name for name in left if name != OURS] == [name for name in now if name != OURS]


@pytest.mark.parametrize("found", [None, [], ["x"], ["x", THEIRS]])
def test_C6_2_a_finalizer_is_added_at_the_end_of_the_very_version_that_is_known(found):
    metadata = {"name": "a", "namespace": "n", "uid": "u1", "resourceVersion": "7"}
    before = {"metadata": metadata | ({"finalizers": found} if found is not None else {})}
    call = add_finalizer(GOALS, Key("n", "a"), before["metadata"], OURS)
    assert (call.path, call.content_type) == ("/apis/lab.example.com/v1/namespaces/n/goals/a", JSON_PATCH)
    assert patched(before, call.body)["metadata"]["finalizers"] == [*(found or []), OURS]
    for other in ({"uid": "u2"}, {"resourceVersion": "8"}):
        with pytest.raises(Conflict):
            patched({"metadata": before["metadata"] | other}, call.body)


def test_C6_2_out_of_sight_a_finalizer_is_removed_from_its_place_or_not_at_all():
    before = raw("x", OURS, THEIRS)
    call = remove_finalizer_at(GOALS, Key("n", "a"), "u1", name=OURS, place=1)
    assert patched(before, call.body)["metadata"]["finalizers"] == ["x", THEIRS]
    for wrong in (raw(OURS, "x"), raw("x"), raw("x", OURS, uid="u2")):
        with pytest.raises(Conflict):
            patched(wrong, call.body)


def test_C6_2_whether_an_object_has_a_uid_is_asked_by_a_patch_that_changes_nothing():
    before = raw("x", OURS)
    call = finalizer_calls.test_uid(GOALS, Key("n", "a"), "u1")
    assert (call.verb, patched(before, call.body)) == ("patch", before)
    with pytest.raises(Conflict):
        patched(raw("x", OURS, uid="u2"), call.body)
