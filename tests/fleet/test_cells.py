"""Typed cells: how results are kept, sorted and shown (F7.3)."""

import datetime
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crsyncer.fleet.domain.returned.cells import MOST_CELL_BYTES, cell_of, cut, order, shown, text_cell


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (None, {"type": "Null"}),
        (True, {"type": "Bool", "value": True}),
        (False, {"type": "Bool", "value": False}),
        ("Ready", {"type": "String", "value": "Ready"}),
        ("", {"type": "String", "value": ""}),
        (0, {"type": "Number", "value": "0"}),
        (-(2**63), {"type": "Number", "value": "-9223372036854775808"}),
        (2**64 - 1, {"type": "Number", "value": "18446744073709551615"}),
        (1.5, {"type": "Number", "value": "1.5"}),
        (2.0, {"type": "Number", "value": "2"}),
        (-0.0, {"type": "Number", "value": "0"}),
        (1e300, {"type": "Number", "value": "1e+300"}),
        (math.inf, {"type": "Number", "value": "+Inf"}),
        (-math.inf, {"type": "Number", "value": "-Inf"}),
        (math.nan, {"type": "Number", "value": "NaN"}),
        ([1, "a", None], {"type": "Array", "value": [1, "a", None]}),
        ({"b": 1, "a": {"c": 1.5}}, {"type": "Object", "value": {"b": 1, "a": {"c": 1.5}}}),
    ],
)
def test_F7_3_a_cell_says_its_type_and_numbers_are_texts(value, found):
    assert shown(cell_of(value)) == found
    json.dumps(shown(cell_of(value)), allow_nan=False)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (bytearray(b"a"), "the result is a bytearray, which JSON does not have"),
        (datetime.timedelta(1), "the result is a timedelta, which JSON does not have"),
        ({1: 2}, "the result has a key that is no text"),
        ([math.nan], "the result/0 is no finite number"),
        ([2**63], "the result/0 is a number over 64 bits"),
        (["é" * 600], "the result has 1204 bytes; allowed: 1024"),
        ({"a": "x" * 2000}, "the result has 2008 bytes; allowed: 1024"),
    ],
)
def test_F7_3_what_no_cell_can_hold_is_an_error(value, problem):
    with pytest.raises(ValueError, match=problem):
        cell_of(value)


def test_F7_3_a_text_is_cut_to_a_kibibyte_unless_it_names_a_group():
    cell = cell_of("é" * 600)
    assert len(shown(cell)["value"].encode()) <= MOST_CELL_BYTES
    assert shown(cell)["value"] == "é" * 510 + "..."
    assert shown(cell_of("x" * 1024, cuts=False))["value"] == "x" * 1024
    with pytest.raises(ValueError, match="the result has 1025 bytes; allowed: 1024"):
        cell_of("x" * 1025, cuts=False)


@given(st.text(), st.integers(3, 40))
def test_F7_3_a_text_that_is_cut_has_at_most_so_many_bytes(text, most):
    found = cut(text, most)
    assert found == text or (len(found.encode()) <= most and text.startswith(found[:-3]) and found.endswith("..."))


def test_F7_3_cells_are_sorted_by_type_then_numbers_by_value_and_texts_by_themselves():
    values: list[Any] = [
        None, False, True, math.nan, -math.inf, -10, -9.5, 2, 10, 1e300, math.inf, "", "10", "9", "a", [1], {"a": 1},
    ]  # fmt: skip
    cells = [cell_of(value) for value in values]
    mixed = [*cells[5:], *cells[:5]]
    assert sorted(mixed, key=order) == cells


def test_cells_that_come_back_are_kept_once():
    assert text_cell("Ready"[:2] + "ady") is text_cell("Ready")
