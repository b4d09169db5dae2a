"""Durations and JSON, as an API server reads them. What else is read of fields is shown with SyncPolicies."""

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crsyncer.core.content.fields import json_problem, seconds, wrong


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("1h", 3600.0),
        ("1h30m", 5400.0),
        ("1.5h", 5400.0),
        (".5m", 30.0),
        ("1.s", 1.0),
        ("+90s", 90.0),
        ("-1m", -60.0),
        ("100ms", 0.1),
        ("1us", 1e-6),
        ("1µs", 1e-6),
        ("1000000000ns", 1.0),
        ("0", 0.0),
        *((text, None) for text in ("", "1", "h", "1d", "1h 30m", "one hour", "--1m", ".h", "1h30")),
    ],
)
def test_durations_are_those_of_Go(text, found):
    assert seconds(text) == (found if found is None else pytest.approx(found))


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"a": [1, {"b": 2**63}]}, "x/a/1/b is a number over 64 bits"),
        (-(2**63) - 1, "x is a number over 64 bits"),
        ([float("nan")], "x/0 is no finite number"),
        (float("-inf"), "x is no finite number"),
        ({1: 2}, "x has a key that is no text"),
        ({"a": datetime.date(2026, 1, 1)}, "x/a is a date, which JSON does not have"),
        ([b"a"], "x/0 is a bytes"),
    ],
)
def test_C4_what_is_not_JSON_is_named(value, said):
    assert json_problem(value, "x").startswith(said)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(json_values)
def test_C4_JSON_has_no_problem(value):
    assert json_problem(value, "x") == ""


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (True, "true"),
        ("a" * 70, f'"{"a" * 60}..."'),
        (5, "5"),
        ({"a": 1}, "an object"),
        ([1], "a list of 1"),
        (None, "nothing"),
        (b"", "a bytes"),
    ],
)
def test_a_wrong_value_is_shown_shortly(value, shown):
    assert str(wrong("spec.x", value, "y")) == f"spec.x is {shown}; allowed: y"
