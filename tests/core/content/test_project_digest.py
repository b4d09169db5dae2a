"""Digests, the status that moves, and observedGeneration: what counts as the same."""

import json
import math
import random
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from crsyncer.core.content.object_content import digest, map_generation, note_observed
from crsyncer.core.pair.project import status_digest, status_value, status_with
from tests.core.builders import goal, json_objects, json_values, many, policy, some, statuses

WHOLE = policy()
SUBTREE = policy(subtree="robot")


def reordered(value, order: random.Random):
    """The same value with its keys in another order and some whole numbers spelled as floats."""
    if isinstance(value, dict):
        keys = order.sample(list(value), len(value))
        return {key: reordered(value[key], order) for key in keys}
    if isinstance(value, list):
        return [reordered(item, order) for item in value]
    if type(value) is int and abs(value) <= 2**53 and order.random() < 0.5:
        return float(value)
    return value


def meaning(value):
    """A value that is equal exactly where JSON's meaning is: written from the definition, to check digests against."""
    if isinstance(value, dict):
        return "object", frozenset((key, meaning(item)) for key, item in value.items())
    if isinstance(value, list):
        return "array", tuple(map(meaning, value))
    if isinstance(value, bool) or value is None:
        return "word", str(value)
    return ("text" if isinstance(value, str) else "number"), value


@many
@given(json_values, st.randoms(use_true_random=False))
def test_S3_7_key_order_and_the_spelling_of_numbers_do_not_count(value, order):
    assert digest(reordered(value, order)) == digest(value)


@many
@given(json_values, json_values)
@example(1, True)
@example(0, False)
@example(1, "1")
@example(None, "null")
@example(2**53, 2**53 + 1)
@example(float(2**53), 2**53 + 1)
@example({"a": None}, {})
@example([], {})
@example("\u00e9", "e\u0301")
@example("1.0", "1")
def test_S3_7_digests_are_equal_exactly_where_values_mean_the_same(one, other):
    assert (digest(one) == digest(other)) == (meaning(one) == meaning(other))


@some
@given(json_values)
def test_S3_7_a_value_that_went_through_json_has_the_same_digest(value):
    assert digest(json.loads(json.dumps(value))) == digest(value)


@pytest.mark.parametrize(
    "texts",
    [
        ("1", "1.0", "1e0", "10e-1"),
        ("100000000000000000000", "1e20", "1E+20", "100000000000000000000.0"),
        ("0", "0.0", "-0.0", "0e9"),
        ("9007199254740993", "9007199254740993 "),
        ('"\\u00e4"', '"ä"'),
        ('{"b":1,"a":[1.0]}', '{"a":[1],"b":1e0}'),
    ],
)
def test_S3_7_spellings_of_one_value_have_one_digest(texts):
    assert len({digest(json.loads(text)) for text in texts}) == 1


def test_S3_7_numbers_above_2_to_the_53_are_told_apart():
    assert len({digest(2**53 + n) for n in range(9)}) == 9


def test_what_only_json_could_say_has_a_digest_too():
    odd = [math.inf, -math.inf, "\ud800", 10**400]
    assert len({digest(value) for value in odd}) == len(odd)


@pytest.fixture
def deep_recursion():
    """The limit that the agent runs with."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(50_000)
    yield
    sys.setrecursionlimit(before)


def test_a_value_as_deep_as_api_servers_take_has_a_digest(deep_recursion):
    value: dict = {"a": 1.0}
    for _ in range(9_999):
        value = {"a": value}
    assert len(digest(value)) == 24


@some
@given(statuses)
def test_S4_1_in_full_mode_the_whole_status_moves(status):
    assert status_value(goal(status=status), WHOLE) == (status or None)


@pytest.mark.parametrize("status", [{}, None])
def test_S4_3_an_empty_status_is_none(status):
    assert status_value(goal() | {"status": status}, WHOLE) is None
    assert status_digest(goal() | {"status": status}, WHOLE) == ""


@some
@given(json_objects, json_values)
def test_S4_5_in_subtree_mode_the_neighbours_do_not_count(neighbours, value):
    alone = goal(status={"robot": value})
    among = goal(status=neighbours | {"robot": value})
    assert status_value(among, SUBTREE) == status_value(alone, SUBTREE) == (None if value == {} else value)
    assert status_digest(among, SUBTREE) == status_digest(alone, SUBTREE)


@pytest.mark.parametrize("value", [0, False, "", [], 0.0])
def test_S4_5_a_subtree_that_is_merely_falsy_moves(value):
    assert status_value(goal(status={"robot": value}), SUBTREE) == value
    assert status_digest(goal(status={"robot": value}), SUBTREE)


@pytest.mark.parametrize("status", ["DONE", ["robot"], 7, None])
def test_S4_5_a_status_that_is_no_object_has_no_subtree(status):
    assert status_digest(goal() | {"status": status}, SUBTREE) == ""


@some
@given(statuses, json_values.filter(lambda value: value is not None and value != {}))
def test_S4_5_a_status_with_the_subtree_has_it_and_keeps_the_neighbours(status, value):
    whole = status_with(goal(status=status), SUBTREE, value)
    assert status_value(goal(status=whole), SUBTREE) == value
    assert {k: v for k, v in whole.items() if k != "robot"} == {k: v for k, v in (status or {}).items() if k != "robot"}
    assert "robot" not in status_with(goal(status=whole), SUBTREE, None)


@some
@given(statuses, statuses)
def test_S4_1_in_full_mode_a_status_replaces_the_other(before, after):
    assert status_with(goal(status=before), WHOLE, after) == after


def test_S4_5_a_subtree_finds_its_place_where_the_status_is_no_object():
    assert status_with(goal(status="odd"), SUBTREE, 1) == {"robot": 1}


generations = st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), max_size=5).map(tuple)


@some
@given(json_objects, st.integers(0, 9), generations)
def test_S4_7_map_translates_to_the_upstream_generation_or_to_0(status, observed, known):
    mapped = map_generation(status | {"observedGeneration": observed}, known)
    candidates = [up for down, up in known if down == observed]
    assert mapped == status | {"observedGeneration": candidates[-1] if candidates else 0}


@some
@given(json_values.filter(lambda value: type(value) is not int), generations)
@example(True, ((1, 7),))
@example(False, ())
@example(1.0, ((1, 7),))
def test_S4_7_what_is_not_an_integer_is_copied_as_it_is(observed, known):
    status = {"observedGeneration": observed, "phase": "DONE"}
    assert map_generation(status, known)["observedGeneration"] is observed


@some
@given(json_values.filter(lambda value: not isinstance(value, dict) or "observedGeneration" not in value), generations)
def test_S4_7_a_status_without_the_number_is_copied_as_it_is(status, known):
    assert map_generation(status, known) == status


@some
@given(json_objects, st.integers(1, 9), generations)
def test_S4_7_a_generation_that_a_status_observed_too_early_has_a_place_until_it_is_known(status, observed, known):
    early = status | {"observedGeneration": observed}
    places = note_observed(early, (*known, (10, 0)))  # of the status before
    assert places == (known if observed in dict(known) else (*known, (observed, 0)))
    assert map_generation(early, places) == map_generation(early, known)
    assert note_observed(None, places) == note_observed({"observedGeneration": True}, places) == known
