"""keepLocal: upstream's changes and removals win, everything else stays as it is on the copy."""

from copy import deepcopy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crsyncer.core.content.merge import keep_local, merge_patch, merged
from tests.core.builders import many


@pytest.mark.parametrize(
    ("applied", "desired", "live", "result"),
    [
        # Nobody changed anything, or only the copy changed.
        ({"a": 1}, {"a": 1}, {"a": 1}, {"a": 1}),
        ({"a": 1}, {"a": 1}, {"a": 2, "b": None}, {"a": 2, "b": None}),
        ({"a": 1}, {"a": 1.0}, {"a": 2}, {"a": 2}),
        ({"a": 1}, {"a": 1}, {}, {}),
        # Upstream changed: it wins, the others stay.
        ({"a": 1}, {"a": 2}, {"a": 5, "b": 3}, {"a": 2, "b": 3}),
        ({"a": 1}, {"a": True}, {"a": 1}, {"a": True}),
        ({"a": 1, "b": 1}, {"a": 1}, {"a": 5, "b": 7, "c": 3}, {"a": 5, "c": 3}),
        ({"a": {"x": 1, "y": 1}}, {"a": {"x": 2}}, {"a": {"y": 9, "z": 9}}, {"a": {"x": 2, "z": 9}}),
        ({"a": 1}, {"a": {"x": 1}}, {"a": {"z": 1}}, {"a": {"x": 1, "z": 1}}),
        ({"a": {"x": 1}}, {"a": 1}, {"a": {"x": 1, "z": 1}}, {"a": 1}),
        ({"a": {"x": 1}}, {}, {"a": {"x": 1, "z": 1}, "b": 1}, {"b": 1}),
        # The copy agrees already.
        ({"a": 1}, {"a": 2}, {"a": 2.0, "b": 1}, {"a": 2.0, "b": 1}),
        ({"a": 1}, {}, {"b": 1}, {"b": 1}),
        # A list is one value.
        ({"a": [1]}, {"a": [1, 2]}, {"a": [1, 9]}, {"a": [1, 2]}),
        ({"a": [1]}, {"a": [1]}, {"a": [1, 9]}, {"a": [1, 9]}),
        ({"a": []}, {"a": [None]}, {"a": []}, {"a": [None]}),
        # Null means absent.
        ({"a": 1}, {"a": None}, {"a": 1, "b": None}, {}),
        ({"a": None}, {}, {"a": 1}, {"a": 1}),
        ({}, {"a": {"x": None}}, {"b": 1}, {"a": {}, "b": 1}),
        # Labels and annotations are fields.
        (
            {"metadata": {"labels": {"a": "1", "b": "1"}}},
            {"metadata": {"labels": {"a": "2"}}},
            {"metadata": {"labels": {"a": "1", "b": "x", "mine": "1"}}},
            {"metadata": {"labels": {"a": "2", "mine": "1"}}},
        ),
        # Last applied is missing (C3.3).
        (None, {"a": 1}, {"a": 5, "b": 3}, {"a": 1, "b": 3}),
        (None, {"a": 1}, {"a": 1, "b": 3}, {"a": 1, "b": 3}),
    ],
)
def test_C3_2_the_changes_of_upstream_are_merged_into_the_copy(applied, desired, live, result):
    assert keep_local(applied, desired, live) == result


keys = st.sampled_from("abc")
values = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | st.lists(st.integers(0, 1), max_size=2),
    lambda inner: st.dictionaries(keys, inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(keys, values, max_size=3)


@many
@given(objects, objects)
def test_C3_2_a_patch_turns_the_one_object_into_the_other(old, new):
    before = deepcopy((old, new))
    patch = merge_patch(old, new)
    assert merge_patch(merged(old, patch), new) == {}
    assert (old, new) == before


@many
@given(objects)
def test_C3_2_an_empty_patch_changes_nothing(live):
    other = {"other": None}
    assert keep_local(live, live, other) is other
    assert merge_patch(live, live) == {}


@many
@given(objects, objects, objects)
def test_C3_2_a_second_merge_changes_nothing(applied, desired, live):
    first = keep_local(applied, desired, live)
    assert keep_local(applied, desired, first) == first
