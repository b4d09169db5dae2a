"""StatusCollectors: what cannot be used says why, and what one takes from a row (F7.2, F7.4)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crsyncer.adapters.expressions import Expressions
from crsyncer.fleet.domain.returned.cells import shown
from crsyncer.fleet.domain.returned.collectors import Collector, Row, RowError, RowResult, collector_of, evaluate
from crsyncer.fleet.domain.returned.variables import VARIABLES
from tests.fleet.returns import NAME, PHASE, Without, column


def read(spec: Any) -> tuple[Collector | None, tuple[str, ...]]:
    return collector_of({"metadata": {"name": "c"}, "spec": spec}, Expressions)


SUM = {"name": "s", "type": "SUM", "subject": "returned.status.n"}
COUNT = {"name": "n", "type": "COUNT"}


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (None, "spec is nothing; allowed: an object with filter, select, groupBy, combinedFields, limit"),
        ([], "spec is a list of 0; allowed: an object"),
        ({}, "spec needs exactly one of select and combinedFields"),
        ({"select": [NAME], "combinedFields": [COUNT]}, "spec needs exactly one of select and combinedFields"),
        ({"select": [NAME], "groupBy": [NAME]}, "spec.groupBy needs spec.combinedFields"),
        ({"select": [NAME], "limit": 0}, "spec.limit is 0; allowed: 1 to 500"),
        ({"select": [NAME], "limit": 501}, "spec.limit is 501; allowed: 1 to 500"),
        ({"select": [NAME], "limit": True}, "spec.limit is true; allowed: 1 to 500"),
        ({"select": [NAME], "limit": "9"}, 'spec.limit is "9"; allowed: 1 to 500'),
        ({"select": [NAME] * 21}, "spec.select is a list of 21; allowed: a list of at most 20"),
        ({"select": [NAME], "more": 1}, "spec.more is not a field; allowed: filter, "),
        ({"select": [{"name": "a"}]}, "spec.select[0].def is missing"),
        ({"select": [{"name": 1, "def": "1"}]}, "spec.select[0].name is 1; allowed: at most 63 characters"),
        ({"select": ["a"]}, 'spec.select[0] is "a"; allowed: an object with name, def'),
        ({"select": [column("a", "")]}, 'spec.select[0].def is ""; allowed: 1 to 2048 characters'),
        ({"select": [column("a", "x" * 2049)]}, "allowed: 1 to 2048 characters"),
        ({"combinedFields": [COUNT] * 21}, "spec.combinedFields is a list of 21; allowed: a list of at most 20"),
        ({"combinedFields": [COUNT], "groupBy": [NAME] * 6}, "spec.groupBy is a list of 6; allowed"),
        ({"combinedFields": [COUNT | {"subject": "1"}]}, "spec.combinedFields[0]: COUNT has no subject, the other"),
        ({"combinedFields": [{"name": "s", "type": "SUM"}]}, "spec.combinedFields[0]: COUNT has no subject, the other"),
        ({"combinedFields": [COUNT | {"type": "MEDIAN"}]}, 'is "MEDIAN"; allowed: COUNT, SUM, AVG, MIN, MAX'),
        ({"select": [column("a", "robot")]}, "spec.select[0].def: line 1, column 1: undeclared reference to 'robot'"),
        (
            {"select": [column("a", "[1].map(x, x)")]},
            "spec.select[0].def: calls map or filter, whose order is not stab",
        ),
        ({"combinedFields": [SUM | {"subject": "("}]}, "spec.combinedFields[0].subject: line 1"),
        ({"select": [NAME], "filter": "1 +"}, "spec.filter: line 1"),
        ({"select": [NAME], "filter": 1}, "spec.filter is 1; allowed: 1 to 2048 characters"),
    ],
)
def test_F7_4_a_collector_that_cannot_be_used_says_why_in_one_line(spec, said):
    found, errors = read(spec)
    assert found is None
    assert len(errors) == 1
    assert said in errors[0]
    assert "\n" not in errors[0]


def test_F7_4_each_wrong_expression_is_told_and_at_most_twenty():
    found, errors = read({"filter": "a", "select": [column("x", f"nobody{number}") for number in range(20)]})
    assert found is None
    assert len(errors) == 20
    assert errors[0] == "spec.filter: line 1, column 1: undeclared reference to 'a' (in container '')"
    assert "nobody18" in errors[-1]


def test_F7_4_without_the_extra_the_hint_is_told():
    found, errors = collector_of({"metadata": {"name": "c"}, "spec": {"select": [PHASE]}}, Without)
    assert (found, errors) == (None, ("spec.select[0].def: retu needs cel-expr-python for 4 variables; install it",))


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(["1", "true", "SUM", "COUNT"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["filter", "select", "groupBy", "combinedFields", "limit", "name", "def", "type", "subject"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=15,
)


@given(ANY)
def test_F7_4_whatever_a_spec_is_it_can_be_used_or_says_why(spec):
    found, errors = read(spec)
    assert (found is None) is bool(errors)


def taken(spec: Any, **status: Any) -> RowResult:
    found, errors = read(spec)
    assert found is not None, errors
    values = {"obj": {}, "returned": {"status": status}, "inventory": {"name": "r1"}, "propagation": {"acked": True}}
    return evaluate(found, Expressions().bind(values, VARIABLES))


def cells(spec: Any, **status: Any) -> list[Any]:
    found = taken(spec, **status)
    assert isinstance(found, Row)
    return [shown(cell).get("value") for cell in found.cells]


def test_F7_2_an_error_in_a_select_cell_puts_its_text_there():
    assert cells({"select": [NAME, PHASE]}, phase="Ready") == ["r1", "Ready"]
    assert cells({"select": [NAME, PHASE]}) == ["r1", 'Key not found in map : "phase"']
    assert cells({"select": [column("a", "b'x'")]}) == ["the result is a bytearray, which JSON does not have"]
    assert cells({"select": [column("a", "returned.status")]}, x="y" * 1100) == [
        "the result has 1108 bytes; allowed: 1024"
    ]
    assert cells({"select": [PHASE]}, phase="y" * 1100) == ["y" * 1021 + "..."]


@pytest.mark.parametrize(
    ("spec", "status", "said"),
    [
        ({"select": [NAME], "filter": "returned.status.on"}, {}, 'Key not found in map : "on"'),
        ({"select": [NAME], "filter": "returned.status.on"}, {"on": 1}, "the filter is a int, and no boolean"),
        ({"combinedFields": [SUM]}, {}, 'Key not found in map : "n"'),
        ({"combinedFields": [SUM]}, {"n": "1"}, "the subject is a str, and no number"),
        ({"combinedFields": [SUM]}, {"n": True}, "the subject is a bool, and no number"),
        ({"combinedFields": [COUNT], "groupBy": [PHASE]}, {}, 'Key not found in map : "phase"'),
        ({"combinedFields": [COUNT], "groupBy": [PHASE]}, {"phase": "x" * 1025}, "the result has 1025 bytes; allowed"),
    ],
)
def test_F7_2_any_other_error_leaves_the_row_out(spec, status, said):
    found = taken(spec, **status)
    assert isinstance(found, RowError)
    assert found.startswith(said)


def test_F7_2_the_text_of_an_error_is_short():
    found = taken({"select": [NAME], "filter": f"returned.status.{'x' * 2000}"})
    assert isinstance(found, RowError)
    assert len(found) <= 256


def test_F7_3_a_filter_leaves_rows_out_and_subjects_are_numbers():
    spec = {"combinedFields": [COUNT, SUM, SUM], "groupBy": [PHASE], "filter": "returned.status.n > 1"}
    assert taken(spec, n=1, phase="a") is None
    found = taken(spec, n=2.5, phase="a")
    assert isinstance(found, Row)
    assert found.numbers == (1, 2.5, 2.5)


def test_a_collector_knows_what_it_depends_on():
    found, _ = read({"combinedFields": [COUNT]})
    assert found is not None
    assert (found.uses, found.evaluates, found.combines, found.limit) == (frozenset(), False, True, 20)
    found, _ = read({"combinedFields": [SUM], "groupBy": [NAME], "filter": "propagation.acked", "limit": 7})
    assert found is not None
    assert (found.uses, found.evaluates, found.limit) == (frozenset({"returned", "propagation"}), True, 7)
    assert found.columns == ("robot", "s")
