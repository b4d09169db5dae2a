"""Templates: placeholders, braces, and what is not known."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crsyncer.core.content.template import Names, read_template, text_of

NAMES = Names("shop", "a", robot="r1", identity="kube-system:u-1")


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize(
    ("text", "rendered"),
    [
        ("", ""),
        ("plain", "plain"),
        ("{namespace}/{name}", "shop/a"),
        ("{robot}-{cluster}", f"r1-{sha256('kube-system:u-1')[:16]}"),
        ("{hash}", sha256("kube-system:u-1/shop/a")[:10]),
        ("{{{name}}}", "{a}"),
        ("{{name}}", "{name}"),
        ("{/spec/name}:{/spec/x~1y}", "n:1"),
        ("{/spec/list/0}", "true"),
    ],
)
def test_placeholders_are_replaced_and_doubled_braces_stand_for_braces(text, rendered):
    content = {"spec": {"name": "n", "x/y": 1, "list": [True]}}
    assert read_template(text, paths=True).render(NAMES, content) == rendered


def test_a_cluster_scoped_object_has_an_empty_namespace():
    assert read_template("{namespace}.{name}", paths=False).render(Names("", "a")) == ".a"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{robot}", "{robot} is not known without the robot's name"),
        ("{cluster}", "{cluster} is not known without the identity of the upstream cluster"),
        ("{hash}", "{hash} is not known without the identity"),
        ("{/spec/absent}", "/spec/absent is absent"),
        ("{/spec}", "/spec is neither a text nor a number nor a boolean"),
    ],
)
def test_what_is_not_known_is_an_error(text, said):
    with pytest.raises(ValueError, match=said):
        read_template(text, paths=True).render(Names("shop", "a"), {"spec": {}})


@pytest.mark.parametrize(
    ("text", "paths", "said"),
    [
        ("{nme}", True, r"has \{nme\}; allowed: \{namespace\}, .*\{/path\} to one value"),
        ("{}", False, r"has \{\}; allowed"),
        ("{/spec/a}", False, r"has \{/spec/a\}; allowed: \{namespace\}, \{name\}, \{robot\}, \{cluster\}, \{hash\}$"),
        ("{/spec/*}", True, r"has \{/spec/\*\}"),
        ("{/spec/}", True, r"has \{/spec/\}"),
        ("{/" + "a" * 256 + "}", True, "has {/a"),
        ("a{", True, 'has a single "{"'),
        ("}b", True, 'has a single "}"'),
        ("{{{name}}", True, 'has a single "{"|has a single "}"'),
        ("{a{name}}", True, "single"),
    ],
)
def test_what_is_no_placeholder_is_said(text, paths, said):
    with pytest.raises(ValueError, match=said):
        read_template(text, paths=paths)


@given(st.text())
def test_any_text_can_be_written_as_a_template(text):
    template = read_template(text.replace("{", "{{").replace("}", "}}"), paths=True)
    assert template.render(NAMES) == text
    assert template.placeholders == frozenset()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("", ""),
        (True, "true"),
        (False, "false"),
        (-3, "-3"),
        (2**63 - 1, "9223372036854775807"),
        (1.5, "1.5"),
        (1e21, "1e+21"),
    ],
)
def test_scalars_are_texts_as_JSON_writes_them(value, text):
    assert text_of(value) == text


@given(st.integers(-(2**53), 2**53))
def test_equal_numbers_give_equal_texts(number):
    assert text_of(float(number)) == text_of(number)
