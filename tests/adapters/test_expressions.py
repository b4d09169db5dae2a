"""Expressions by the real library: what is refused, what ends, and what is never given to it (F7, C4.3)."""

import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crsyncer.adapters import expressions
from crsyncer.adapters.expressions import CelProgram, Expressions
from crsyncer.core.content.mutation import ExpressionError
from crsyncer.errors import ConfigError

NAMES: dict[str, type] = {"obj": object, "returned": object, "inventory": object, "propagation": object}


def program(text: str) -> CelProgram:
    return Expressions().program(text, NAMES)


def result(text: str, *, most: int = 1000, **status: Any) -> Any:
    compiled = program(text)
    return compiled.result(Expressions().bind(values(**status), NAMES), most=most)


def values(**status: Any) -> dict[str, Any]:
    return {"obj": {"spec": {"x": 2}}, "returned": {"status": status}, "inventory": {}, "propagation": {"acked": True}}


def said(text: str, **status: Any) -> str:
    with pytest.raises(ExpressionError) as caught:
        result(text, **status)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "returned.status.l.map(x, x)",
        "returned.status.l .map (x, x)",
        "returned.status.l\n.\n\tmap\r\n(x, x)",
        "returned.status.l. // a comment\n map // another\n (x, x)",
        "returned.status.l.filter(x, x > 1)",
        "returned.status.l.map(x, x > 1, x)",
        "['a.map('].filter(x, x != '')",
        "[[1]].all(x, x.map(y, y) == [1])",
        "{1: 2}.map(k, k).size()",
    ],
)
def test_C4_3_what_calls_map_or_filter_is_refused_however_it_is_written(text):
    assert said(text, l=[1]) == "calls map or filter, whose order is not stable"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("'.map('", ".map("),
        ("returned.status.word == ' x.filter(y, z)'", True),
        ("true // .map(x, x)", True),
        ("returned.status.map + obj.spec.x", 5),
        ("[1, 2].exists(filter, filter == 2)", True),
        ("returned.status.l.all(x, x > 0) && returned.status.l.exists_one(x, x == 1)", True),
        ("has(returned.status.nothing) || 'ab'.matches('a.*')", True),
    ],
)
def test_C4_3_texts_comments_fields_and_names_are_no_calls(text, found):
    assert result(text, map=3, l=[1, 2], word=" x.filter(y, z)") == found


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("returned.map(1)", "line 1, column 13: undeclared reference to 'map'"),
        ("returned.map(x, x) + nobody", "undeclared reference to"),
        ("nobody", "line 1, column 1: undeclared reference to 'nobody'"),
        ("self", "undeclared reference to 'self'"),
        ("returned.", "Syntax error"),
        ("(" * 400 + "1" + ")" * 400, "Expression recursion limit exceeded"),
        ("'\ud800'", "is a text that is not valid Unicode"),
        ("true\0", "is a text with a NUL character"),
    ],
)
def test_F7_what_does_not_compile_says_why_in_one_line(text, problem):
    assert problem in said(text)


NESTED = "returned.status.l.all(a, returned.status.l.all(b, returned.status.l.all(c, returned.status.l.all(d, true))))"


@pytest.mark.parametrize(
    "text",
    [NESTED, NESTED.replace(".all(", ".exists_one("), f"{NESTED} ? 1 : 2", f"[{NESTED}]", f"!({NESTED})"],
)
def test_F7_an_expression_that_takes_forever_ends_at_10_000_iterations(text):
    assert said(text, l=list(range(60))) == "Iteration budget exceeded"


def test_F7_9_999_iterations_are_no_error():
    assert result("returned.status.l.all(a, a >= 0)", l=list(range(9_999))) is True
    assert said("returned.status.l.all(a, a >= 0)", l=list(range(10_000))) == "Iteration budget exceeded"


def test_F7_a_result_that_repeats_an_object_ends_before_memory_does():
    many = ", ".join(["returned.status"] * 200)
    assert said(f"[{many}]", l=list(range(5_000))) == said(f"{{'a': [{many}]}}", l=["x" * 2_000])
    assert said(f"[{many}]", l=list(range(5_000))) == "the result has more than 1000 characters and items"
    assert result("returned.status.word", word="x" * 1_000) == "x" * 1_000
    assert "more than 1000" in said("returned.status.word", word="x" * 1_001)


def deep(levels: int) -> Any:
    found: Any = 1
    for _ in range(levels):
        found = [found]
    return found


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("a\0b", "the object has a text with a NUL character"),
        ({"a\0b": 1}, "the object has a text with a NUL character"),
        ("\ud800", "the object has a text that is not valid Unicode"),
        (2**64, "the object has a number out of range: it has more than 64 bits"),
        (deep(200), "the object is nested more than 200 levels deep"),
        (deep(100_000), "the object is nested more than 200 levels deep"),
    ],
)
def test_F7_a_status_that_the_library_does_not_bear_is_an_error(value, problem):
    assert said("true", x=value) == problem


@pytest.mark.parametrize("value", ["\\u0000", "\\ud800", "😀 é", 2**63, "9" * 30, deep(190), [deep(2)] * 300, None])
def test_F7_a_status_that_only_looks_like_it_is_none(value):
    assert result("returned.status.x == returned.status.x", x=value) is True


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(2**63), 2**63 - 1)
        | st.floats(allow_nan=False)
        | st.text('aé\\u0"{[', max_size=6),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab\\", max_size=2), inner, max_size=3),
        max_leaves=12,
    )
)
def test_F7_a_value_comes_back_as_it_was_given(value):
    assert result("returned.status.x", x=value) == value


def test_F7_an_error_is_a_value_of_the_library_and_raised_here():
    assert said("returned.status.phase") == 'Key not found in map : "phase"'
    assert said("[1 / obj.spec.y]") == 'Key not found in map : "y"'
    assert said("1 / 0 == 1") == "divide by zero"


@pytest.mark.parametrize(
    ("text", "used"),
    [
        ("true", set()),
        ("returned.status.phase == 'Ready'", {"returned"}),
        ("[1].all(obj, obj == 1)", set()),
        ("'obj' == \"inventory\" // propagation", set()),
        ("obj.spec.x == returned.status.x && propagation.acked", {"obj", "returned", "propagation"}),
        ("has(inventory.labels.site)", {"inventory"}),
    ],
)
def test_an_expression_says_which_variables_it_uses(text, used):
    assert program(text).uses() == used


@pytest.mark.parametrize(
    ("text", "used"),
    [
        ("inventory.name == 'r1'", set()),
        ("inventory.name == inventory.labels.owner", {"inventory"}),
        ("inventory['name'] == obj.name", {"inventory", "obj"}),
        ("inventory == obj", {"inventory", "obj"}),
    ],
)
def test_what_is_fixed_in_a_variable_does_not_count(text, used):
    assert program(text).uses(["inventory.name"]) == used


def test_values_that_are_bound_once_serve_all_programs_of_their_variables():
    first, second = program("returned.status.a"), program("obj.spec.x + 1")
    bound = Expressions().bind(values(a=None), NAMES)
    assert [first.result(bound), second.result(bound), first.result(bound)] == [None, 3, None]
    assert first.evaluate(values(a=1)) == 1


def test_nulls_of_results_and_of_values_do_not_use_up_the_interpreters_own():
    compiled = program("[returned.status.a, {'b': null}, null]")
    bound = Expressions().bind(values(a=None), NAMES)
    before, results = sys.getrefcount(None), 3000
    for _ in range(results):
        assert compiled.result(bound) == [None, {"b": None}, None]
    assert sys.getrefcount(None) > before - results


def test_F7_without_the_extra_the_hint_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "cel_expr_python.cel", None)
    expressions._environment.cache_clear()
    with pytest.raises(ConfigError) as caught:
        program("true")
    assert 'pip install ".[expressions]"' in caught.value.hint
