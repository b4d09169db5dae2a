"""JSON Pointers: what they find, what a change leaves alone."""

from copy import deepcopy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crsyncer.core.content.pointer import changed, find, get, parse
from tests.core.builders import many

WHOLE = {"a": {"b": [1, {"c": "x"}, None]}, "x/y": {"~": 1}, "none": None, "-": "dash"}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/a/b/0", 1),
        ("/a/b/1/c", "x"),
        ("/a/b/2", None),
        ("/a/b/3", None),
        ("/a/b/-", None),
        ("/a/b/01", None),
        ("/a/b/+1", None),
        ("/a/b/²", None),
        ("/a/b/1/c/d", None),
        ("/x~1y/~0", 1),
        ("/-", "dash"),
        ("/none/deeper", None),
        ("/nowhere", None),
    ],
)
def test_what_is_there_is_found(path, found):
    assert get(WHOLE, parse(path)) == found


@pytest.mark.parametrize(
    ("value", "path", "new"),
    [
        ({}, "/a/b", {"a": {"b": 9}}),
        ({"a": None}, "/a/b", {"a": {"b": 9}}),
        ({"a": {"b": 1, "c": 2}}, "/a/b", {"a": {"b": 9, "c": 2}}),
        ({"a": [1, 2]}, "/a/0", {"a": [9, 2]}),
        ({"a": [1]}, "/a/-", {"a": [1, 9]}),
        ({}, "/a/-", {"a": [9]}),
        ({}, "/a/-/b", {"a": [{"b": 9}]}),
        ({"a": [{"b": 1}, {}]}, "/a/*/b", {"a": [{"b": 9}, {"b": 9}]}),
        ({"a": {"x": 1, "y": {}}}, "/a/*", {"a": {"x": 9, "y": 9}}),
        ({"a": {}}, "/a/*", {"a": {}}),
        ({}, "/a/*/b", {}),
    ],
)
def test_C4_2_a_set_makes_missing_parents_and_appends(value, path, new):
    assert changed(value, parse(path), lambda _: 9, create=True) == new


@pytest.mark.parametrize(
    ("path", "new"),
    [
        ("/a/b", {"a": {"c": [1, {"d": 1}, None]}}),
        ("/a/c/0", {"a": {"b": 1, "c": [{"d": 1}, None]}}),
        ("/a/c/1/d", {"a": {"b": 1, "c": [1, {}, None]}}),
        ("/a/c/*", {"a": {"b": 1, "c": [None]}}),
        ("/a/*", {"a": {}}),
        *(
            (path, None)
            for path in ("/b", "/b/c/d", "/a/c/2", "/a/c/7", "/a/c/-", "/a/b/c", "/a/b/*", "/b/*", "/a/c/x")
        ),
    ],
)
def test_C4_2_a_removal_skips_what_is_absent(path, new):
    value = {"a": {"b": 1, "c": [1, {"d": 1}, None]}}
    assert changed(value, parse(path), lambda _: None, create=False) == (value if new is None else new)


@pytest.mark.parametrize("path", ["/a/b", "/a/c/7", "/a/*/c"])
def test_what_is_absent_stays_absent_where_nothing_shall_be_made(path):
    value = {"a": {"c": [1]}, "x": None}
    expected = deepcopy(value)
    assert changed(value, parse(path), lambda _: 9, create=False) == expected


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/a/b/c", "the value before /c is neither an object nor a list"),
        ("/a/b/*", r"the value before /\* is neither"),
        ("/a/c/3", "there is no item 3 in a list of 1"),
        ("/a/c/x", "there is no item x"),
    ],
)
def test_what_cannot_be_set_is_an_error(path, said):
    with pytest.raises(ValueError, match=said):
        changed({"a": {"b": "text", "c": [1]}}, parse(path), lambda _: 9, create=True)


segments = st.sampled_from(["a", "b", "0", "1", "-", "*", "x/y", "~"])
values = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["", "x"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(segments.filter(lambda s: s != "*"), inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(segments.filter(lambda s: s != "*"), values, max_size=3)
pointers = st.lists(segments, min_size=1, max_size=4).map(tuple)


@many
@given(objects, pointers, st.booleans())
def test_the_old_value_stays_as_it_is(value, pointer, create):
    before = deepcopy(value)
    for change in (lambda _: 9, lambda _: None, lambda old: old):
        try:
            changed(value, pointer, change, create=create)
        except ValueError:
            assert create
    assert value == before


@many
@given(objects, pointers.filter(lambda pointer: not {"*", "-"} & {*pointer}))
def test_what_was_set_is_found(value, pointer):
    try:
        new = changed(value, pointer, lambda _: "new", create=True)
    except ValueError:
        return
    assert get(new, pointer) == "new"


@many
@given(objects, pointers.filter(lambda pointer: not {"*", "0", "1"} & {*pointer}))
def test_what_was_removed_is_gone(value, pointer):
    assert get(changed(value, pointer, lambda _: None, create=False), pointer) is None


@many
@given(objects, pointers)
def test_a_change_to_the_same_changes_nothing(value, pointer):
    assert changed(value, pointer, lambda old: old, create=False) == value


@given(st.lists(st.text(min_size=1), min_size=1))
def test_every_key_can_be_written_as_a_path(keys):
    path = "".join("/" + key.replace("~", "~0").replace("/", "~1") for key in keys)
    assert parse(path) == tuple(keys)


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/a/b/0", [1]),
        ("/a/b/*", [1, {"c": "x"}]),
        ("/a/b/*/c", ["x"]),
        ("/a/*/0", [1]),
        ("/none/*", []),
        ("/-/*", []),
        ("/nowhere", []),
        ("/x~1y/*", [1]),
    ],
)
def test_C5_1_all_that_is_at_a_path_is_found(path, found):
    assert [*find(WHOLE, parse(path))] == found
