"""Mutations: steps in order, what each verb does, and every error with its step and path (C4)."""

import json
import sys
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crsyncer.adapters.expressions import Expressions
from crsyncer.core.content.mutation import VARIABLES, Compiled, compile_steps, mutate_content, mutate_status
from crsyncer.core.content.shape import MutationFailed
from crsyncer.core.content.template import Names
from crsyncer.core.kinds.sync_policy import read_sync_policy
from crsyncer.core.model import Json
from crsyncer.errors import ConfigError
from tests.core.builders import many
from tests.core.sync_policies import MINIMAL, edited

texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=3)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=10,
)
"""What API servers keep of JSON, and CEL's library takes."""
NAMES = Names("shop", "a", robot="r1", identity="kube-system:u-1")


def order(**spec: Any) -> Json:
    """An object as upstream has it."""
    metadata = {"name": "a", "namespace": "shop", "labels": {"site": "x"}}
    return {"apiVersion": "lab.example.com/v1", "kind": "Order", "metadata": metadata, "spec": spec}


def compiled(*steps: Json, way: str = "down") -> tuple[Compiled, ...]:
    """The steps of a policy, each as it is written, ready to run."""
    policy = read_sync_policy(edited(MINIMAL, "spec", "mutations", value={way: [*steps]}))
    return compile_steps(getattr(policy.mutations, way), Expressions())


def spec_after(raw: Json, *steps: Json) -> Any:
    return mutate_content(raw, compiled(*steps), NAMES)["spec"]


def failure(raw: Json, *steps: Json) -> str:
    with pytest.raises(MutationFailed) as caught:
        mutate_content(raw, compiled(*steps), NAMES)
    return str(caught.value)


def step(path: str, **verb: Any) -> Json:
    return {"path": path, **verb}


def regex(path: str, pattern: str, replacement: str) -> Json:
    return {"path": path, "regex": {"pattern": pattern, "replacement": replacement}}


def test_C4_1_steps_run_in_order_and_each_works_on_the_result_of_the_former():
    raw = order(n=1)
    steps = [step("/spec/n", cel="value + 1"), step("/spec/n", cel="value * 10"), regex("/spec/n", "0$", "1")]
    assert spec_after(raw, *steps) == {"n": "21"}
    assert spec_after(raw, steps[1], steps[0]) == {"n": 11}


def test_C4_1_the_received_object_stays_as_it_is():
    raw = order(list=[{"a": 1}])
    before = deepcopy(raw)
    assert spec_after(raw, step("/spec/list/*/a", set={"value": [2]})) == {"list": [{"a": [2]}]}
    assert raw == before


def test_C4_1_steps_for_the_status_make_none_where_there_is_none():
    steps = compiled(step("/status/robot", template="{robot}"), way="up")
    for raw in (order(), order() | {"status": None}, order() | {"status": {}}):
        assert mutate_status(raw, steps, NAMES) == raw
    assert mutate_status(order() | {"status": {"x": 1}}, steps, NAMES)["status"] == {"x": 1, "robot": "r1"}


@pytest.mark.parametrize(
    ("value", "pattern", "replacement", "result"),
    [
        ("http://x", "^http:(.*)", "https:$1", "https://x"),
        ("aaa", "a", "$0$0", "aaaaaa"),
        ("price", "c", "$$1", "pri$1e"),
        ("ab", "(a)|(b)", "[$1$2]", "[a][b]"),
        ("ab", "(x)?b", "$1", "a"),
        (12, "1", "3", "32"),
        (2.0, "^2$", "two", "two"),
        (True, "true", "yes", "yes"),
        (7, "nothing", "x", "7"),
        ("größe", "ö", "o", "große"),
        ("host", "$", ".local", "host.local"),
        ("a\nb", "(?m)^", "> ", "> a\n> b"),
        ("a\nb\n", "(?m)$", ";", "a;\nb;\n;"),
        ("abc", ".*", "x", "x"),
        ("abbc", "b*", "-", "-a-c-"),
        ("http://a/v1", "(/v[0-9])?$", "/v2", "http://a/v2"),
    ],
)
def test_C4_2_a_regex_replaces_all_matches_and_makes_texts_of_numbers_and_booleans(value, pattern, replacement, result):
    assert spec_after(order(x=value), regex("/spec/x", pattern, replacement)) == {"x": result}


def test_C4_2_cel_knows_the_object_as_received_the_value_the_robot_and_the_cluster():
    raw = order(offset=2, n=3)
    cluster = NAMES.cluster
    steps = [
        step("/spec/offset", set={"value": 100}),
        step("/spec/n", cel="value + self.spec.offset"),
        step("/spec/who", cel="robot + '@' + cluster"),
        step("/spec/name", cel="has(self.metadata.labels.site) ? self.metadata.name : ''"),
    ]
    assert spec_after(raw, *steps) == {"offset": 100, "n": 5, "who": f"r1@{cluster}", "name": "a"}
    with pytest.raises(ConfigError, match="undeclared reference to 'other"):
        compiled(step("/spec/n", cel="other.spec"))


def test_C4_2_a_template_knows_the_object_as_received():
    steps = [step("/spec/a", set={"value": "new"}), step("/spec/b", template="{/spec/a}-{name}")]
    assert spec_after(order(a="old"), *steps) == {"a": "new", "b": "old-a"}


def test_C4_2_the_result_null_removes_the_field():
    assert spec_after(order(a=1, b=2), step("/spec/a", cel="null"), step("/spec/c/d", cel="null")) == {"b": 2}


def test_C4_2_a_star_means_each_item():
    raw = order(items=[{"n": 1}, {}, {"n": 3}])
    assert spec_after(raw, step("/spec/items/*/n", cel="value == null ? 0 : value * 2")) == {
        "items": [{"n": 2}, {"n": 0}, {"n": 6}]
    }
    assert spec_after(raw, regex("/spec/items/*/n", "3", "x")) == {"items": [{"n": "1"}, {}, {"n": "x"}]}


def test_C4_2_labels_and_annotations_can_be_changed():
    steps = [
        step("/metadata/labels/site", remove=True),
        step("/metadata/labels/lab.example.com~1robot", template="{robot}"),
        step("/metadata/annotations/why", set={"value": "because"}),
    ]
    metadata = mutate_content(order(), compiled(*steps), NAMES)["metadata"]
    assert (metadata["labels"], metadata["annotations"]) == ({"lab.example.com/robot": "r1"}, {"why": "because"})


def test_C4_3_the_same_input_gives_the_same_output_also_of_maps():
    raw = order(a=1)
    step_ = step("/spec/m", cel="{'c': 1, 'a': {'z': 1, 'b': [self.spec]}, 'b': 3}")
    texts = {json.dumps(spec_after(raw, step_)) for _ in range(20)}
    assert texts == {'{"a": 1, "m": {"a": {"b": [{"a": 1}], "z": 1}, "b": 3, "c": 1}}'}


@many
@given(values)
def test_C4_3_a_value_gets_through_CEL_unchanged(value):
    expected = {"x": value} if value is None else {"x": value, "copy": value}
    assert spec_after(order(x=value), step("/spec/copy", cel="self.spec.x")) == expected


@pytest.mark.parametrize(
    ("raw", "wrong", "said"),
    [
        (order(a="text"), step("/spec/a/b", set={"value": 1}), "the value before /b is neither an object nor a list"),
        (order(a=[]), step("/spec/a/0", template=""), "there is no item 0 in a list of 0"),
        (order(), step("/spec/a", template="{/spec/x}"), "/spec/x is absent"),
        (order(a={}), regex("/spec/a", "a", "b"), "is neither a text nor a number nor a boolean"),
        (order(), step("/spec/a", cel="self.spec.x"), 'Key not found in map : "x"'),
        (order(), step("/spec/a", cel="9223372036854775807 + 1"), "integer overflow"),
        (order(), step("/spec/a", cel="9223372036854775808u"), "the result is a number over 64 bits"),
        (order(x=2**70), step("/spec/a", cel="self.spec.x"), "out of range"),
        (order(), step("/spec/a", cel="[0.0 / 0.0]"), "the result/0 is no finite number"),
        (order(), step("/spec/a", cel="1.0 / 0.0"), "the result is no finite number"),
        (order(), step("/spec/a", cel="{1: 2}"), "the result has a key that is no text"),
        (order(), step("/spec/a", cel="timestamp('2026-01-01T00:00:00Z')"), "the result is a datetime, which JSON"),
        (order(), step("/spec/a", cel="b'x'"), "which JSON does not have"),
        (order(), step("/spec/a", cel="type(1)"), "which JSON does not have"),
        (order(x="\ud800"), regex("/spec/x", "a", "b"), "not valid Unicode"),
        (order(), step("/metadata/labels/a", set={"value": 1}), "the result is no text, as labels and annotations are"),
        (order(x=[*range(20_000)]), step("/spec/a", cel="self.spec.x.all(i, i >= 0)"), "Iteration budget exceeded"),
    ],
)
def test_C4_4_an_error_names_the_step_and_the_path(raw, wrong, said):
    harmless = step("/spec/before", remove=True)
    message = failure(raw, harmless, wrong)
    assert message.startswith(f"spec.mutations.down[1], {wrong['path']}: ")
    assert said in message
    assert "\n" not in message


def test_C4_4_what_is_not_known_of_the_agent_is_an_error_of_the_step():
    steps = compiled(step("/spec/a", cel="cluster"))
    with pytest.raises(MutationFailed, match=r"down\[0\], /spec/a: .*cluster"):
        mutate_content(order(), steps, Names("shop", "a", robot="r1"))


@pytest.mark.parametrize("raw", [order(x="a\0b"), order(x=[{"a\0b": 1}])])
def test_C4_4_a_text_that_CEL_would_cut_is_an_error(raw):
    assert "the object has a text with a NUL character" in failure(raw, step("/spec/a", cel="1"))


@pytest.mark.parametrize("raw", [order(x="\ud800"), order(x=[{"a\udfff": 1}])])
def test_C4_4_a_text_that_is_not_valid_Unicode_is_an_error(raw):
    assert "the object has a text that is not valid Unicode" in failure(raw, step("/spec/a", cel="1"))


@pytest.mark.parametrize("number", [2**64, -(2**63) - 1, pytest.param(10**5000, id="huge")])
def test_C4_4_a_number_over_64_bits_is_an_error(number):
    """The library ends the process where Python refuses to write the number."""
    assert "the object has a number out of range" in failure(order(x=number), step("/spec/a", cel="1"))


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def test_C4_4_an_object_that_would_overflow_the_stack_of_CEL_is_an_error():
    assert "more than 200 levels" in failure(order(x=nested(10_000)), step("/spec/a", cel="1"))
    assert spec_after(order(x=nested(190)), step("/spec/a", cel="1"))["a"] == 1


def test_C4_4_results_cannot_grow_without_an_end():
    doubled = step("/spec/x", cel="value + value")
    assert len(spec_after(order(x="ab" * 1000), *[doubled] * 5)["x"]) == 64_000
    for raw in (order(x="ab" * 1000), order(x=["ab" * 1000])):
        assert "larger than 3 MiB" in failure(raw, *[doubled] * 32)
    assert "larger than 3 MiB" in failure(
        order(x={"k" * 2**20: {}}), step("/spec/x", cel="[value, value, value, value]")
    )


@pytest.mark.parametrize(
    "verb",
    [
        regex("/spec/x", "^(.*)$", "$1" * 100),
        regex("/spec/x", "^(.*)$", "$1$0$1$0"),
        step("/spec/x", template="{/spec/x}" * 4),
        step("/spec/*", cel="self.spec.x"),
    ],
)
def test_C4_4_a_result_that_is_too_large_is_not_put_together(verb):
    raw = order(**dict.fromkeys("xabc", "a" * (1 << 20)))
    assert "the result is larger than 3 MiB" in failure(raw, verb)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("a(.*b)?", "a" * 20_000),  # each match looks at all that follows
        ("^" + "(a?){1000}" * 20 + "c", "a" * 100_000),  # too many states for an automaton
        ("x*", "a" * 40_000),
    ],
)
def test_C4_4_a_pattern_that_would_take_too_long_is_an_error_and_the_same_everywhere(pattern, text):
    said = f"the pattern takes too long on a text of {len(text)} characters"
    assert said in failure(order(x=text), regex("/spec/x", pattern, "b"))


def test_C4_2_a_pattern_of_everyday_use_has_steps_enough():
    text = "see http://files.example.com/a and b; " * 1_000
    found = spec_after(order(x=text), regex("/spec/x", "http://([a-z.]+)/", "https://$1/"))["x"]
    assert found == text.replace("http:", "https:")
    whole = "x" * 1_000_000 + "http://a.b/"
    assert spec_after(order(x=whole), regex("/spec/x", "http:", "https:"))["x"] == whole.replace("http:", "https:")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (regex("/spec/a", "(", ""), "regex.pattern: missing ): ("),
        (regex("/spec/a", "(?=x)", ""), "regex.pattern: invalid perl operator: (?="),
        (regex("/spec/a", "\ud800", ""), "regex.pattern: "),
        (regex("/spec/a", "(a)", "$2"), "regex.replacement has $2; allowed: $0 to $1"),
        (step("/spec/a", cel="value +"), "cel: line 1, column 8: Syntax error"),
        (step("/spec/a", cel="[1].transformList(i, v, v)"), "cel: line 1"),
        (step("/spec/a", cel="'\ud800'"), "cel: is a text that is not valid Unicode"),
        (step("/spec/a", cel="1\0 + 'a'"), "cel: is a text with a NUL character"),
        (step("/spec/a", cel="1 + 'a'"), "cel: line 1, column 3: found no matching overload"),
        (step("/spec/a", cel="(" * 400 + "1" + ")" * 400), "cel: Expression recursion limit exceeded"),
    ],
)
def test_C4_3_what_does_not_compile_is_misconfigured_with_its_place(wrong, said):
    with pytest.raises(ConfigError) as caught:
        compiled(step("/spec/before", remove=True), wrong)
    assert str(caught.value).startswith("spec.mutations.down[1].")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_C4_2_nulls_of_results_do_not_use_up_the_interpreters_own():
    """The library does not count those that it hands out, and Python 3.11 ends where none is left."""
    program = Expressions().program("[null, {'a': null}, value]", VARIABLES)
    before, results = sys.getrefcount(None), 3000
    for _ in range(results):
        assert program.evaluate({"self": {}, "value": None}) == [None, {"a": None}, None]
    assert sys.getrefcount(None) > before - results
