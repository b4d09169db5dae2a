"""Rendering (F4): strips, overrides, properties, expansion; and an error that blocks one replica alone."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crsyncer.core.content.annotations import OURS, ROBOT_LABEL
from crsyncer.core.content.pointer import parse
from crsyncer.fleet.domain.properties import Undefined, config_map_properties, expand, properties, property_of
from crsyncer.fleet.domain.read_objects import template_source
from crsyncer.fleet.domain.rendering import render
from crsyncer.fleet.domain.values import Placement, Reason, RenderFailed, Rendering, Robot
from tests.fleet.made import goal, placement, source

ROBOT = Robot("r1", "u", labels={"site": "hall"}, annotations={"zone": "a"}, fields={"map": "m1", "site": "spec"})


def rendered(
    raw: Any = None, *, by: Placement | None = None, strips: Any = (), robot: Robot = ROBOT, known: Any = None
) -> Any:
    paths = [parse(path) for path in strips]
    return render(source(raw), by or placement(), paths, robot=robot, config_map=known or {})


def failure(*arguments: Any, **options: Any) -> RenderFailed:
    found = rendered(*arguments, **options)
    assert isinstance(found, RenderFailed)
    return found


def override(*steps: Any, **selector: Any) -> Placement:
    return placement(overrides=[{"robotSelector": selector, "steps": [*steps]}])


def test_F4_1_what_never_travels_is_not_rendered():
    texts = {"team": "x", OURS + "source": "y", "fleet.crsyncer.cloudrobotics.com/shard": "z", ROBOT_LABEL: "r9"}
    raw = goal(status={"phase": "X"})
    raw["metadata"] |= {"labels": dict(texts), "annotations": dict(texts), "finalizers": ["f"], "ownerReferences": [{}]}
    found = rendered(raw)
    assert (found.content, found.labels, found.annotations) == ({"spec": {"x": 1}}, {"team": "x"}, {"team": "x"})


def test_F4_2_a_strip_takes_fields_away_and_a_path_without_a_match_is_no_error():
    found = rendered(goal(spec={"x": 1, "internal": {"a": 1}}), strips=["/spec/internal", "/spec/other/field"])
    assert found.content == {"spec": {"x": 1}}


def test_F4_3_overrides_are_for_the_robots_that_are_selected_and_in_order():
    one = {"robotSelector": {"matchLabels": {"site": "hall"}}, "steps": [{"path": "/spec/new/y", "set": {"value": 1}}]}
    two = {"steps": [{"path": "/spec/new/y", "set": {"value": 2}}, {"path": "/spec/x", "remove": True}]}
    three = {"robotSelector": {"matchLabels": {"site": "yard"}}, "steps": [{"path": "/spec/z", "set": {"value": 3}}]}
    assert rendered(by=placement(overrides=[one, two, three])).content == {"spec": {"new": {"y": 2}}}


@pytest.mark.parametrize("key", [ROBOT_LABEL, OURS + "x", "fleet.crsyncer.cloudrobotics.com/x"])
def test_F4_3_a_path_to_our_own_keys_is_an_error(key):
    path = f"/metadata/labels/{key.replace('/', '~1')}"
    assert "not to be changed" in failure(by=override({"path": path, "set": {"value": "r2"}})).message


def test_F4_3_a_label_may_be_changed():
    assert rendered(by=override({"path": "/metadata/labels/team", "set": {"value": "x"}})).labels == {"team": "x"}


def test_F4_3_a_label_that_is_no_text_is_an_error():
    assert "is no text" in failure(by=override({"path": "/metadata/labels/team", "set": {"value": 1}})).message


def test_F4_3_a_missing_index_is_an_error_with_its_place():
    by = override({"path": "/spec/list/4", "set": {"value": 1}})
    assert failure(goal(spec={"list": []}), by=by).message.startswith(
        "spec.overrides[0].steps[0], /spec/list/4: there is"
    )


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("string", "1", "1"),
        ("integer", "-3", -3),
        ("number", "1.5", 1.5),
        ("number", "2", 2),
        ("boolean", "true", True),
    ],
)
def test_F4_3_a_property_has_a_type(kind, text, value):
    by = override({"path": "/spec/p", "property": {"name": "p", "type": kind}})
    assert rendered(by=by, known={"p": text}).content["spec"]["p"] == value


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("integer", "x"),
        ("integer", str(2**63)),
        ("number", "nan"),
        ("number", "1e999"),
        ("integer", "1_0"),
        ("boolean", "yes"),
    ],
)
def test_F4_3_a_property_of_another_type_is_an_error(kind, text):
    by = override({"path": "/spec/p", "property": {"name": "p", "type": kind}})
    assert f"the property p is no {kind}" in failure(by=by, known={"p": text}).message


def test_F4_3_a_property_that_is_missing_is_an_error():
    assert "there is no property p" in failure(by=override({"path": "/spec/p", "property": {"name": "p"}})).message


def test_F4_4_strings_are_expanded_and_keys_are_not():
    raw = goal(spec={"{{ .map }}": ["{{ .map }}/{{.robotName}}", 1, None], "y": '{{ .none | default "a\\"b" }}'})
    found = rendered(raw, by=placement(expand=True))
    assert found.content["spec"] == {"{{ .map }}": ["m1/r1", 1, None], "y": 'a"b'}


def test_F4_4_without_expand_braces_stay():
    assert rendered(goal(spec={"x": "{{ .map }}"})).content["spec"] == {"x": "{{ .map }}"}


def test_F4_4_braces_are_written_by_a_placeholder():
    assert expand('a {{"{{"}} b }}', {}) == "a {{ b }}"


@pytest.mark.parametrize("text", ["{{ name }}", "{{ .a.b }}", "{{", "{{ .x | upper }}", "{{- .x }}"])
def test_F4_4_anything_else_in_braces_is_an_error(text):
    with pytest.raises(Undefined, match="is no placeholder"):
        expand(text, {"x": "1"})


def test_F4_4_an_undefined_name_blocks_the_replica():
    found = failure(goal(spec={"x": "{{ .none }}"}), by=placement(expand=True))
    assert (found.reason, found.message) == (Reason.RENDER_FAILED, "there is no property none")


def test_F4_4_what_a_property_says_is_not_expanded():
    by = placement(expand=True, overrides=[{"steps": [{"path": "/spec/p", "property": {"name": "p"}}]}])
    assert rendered(by=by, known={"p": "{{ .secret }}", "secret": "s"}).content["spec"]["p"] == "{{ .secret }}"
    assert expand("{{ .p }}", {"p": "{{ .q }}", "q": "x"}) == "{{ .q }}"


def test_F4_4_the_config_map_comes_first_then_annotations_labels_and_the_spec():
    known = properties(ROBOT, {"zone": "b", "not-one": "x", "robotName": "forged"})
    assert known == {"zone": "b", "site": "hall", "map": "m1", "robotName": "r1"}
    assert {name: property_of(ROBOT, {"zone": "b", "robotName": "forged"}, name) for name in known} == known
    assert property_of(ROBOT, {}, "none") is None


def test_properties_above_64_kib_are_refused():
    raw = {"metadata": {"name": "r1"}, "data": {"a": "x" * 65536}}
    with pytest.raises(Undefined, match="ConfigMap r1: properties above 64 KiB"):
        config_map_properties(raw)
    assert config_map_properties({"metadata": {"name": "r1"}, "data": {"a": "1", "b-c": "2"}}) == {"a": "1"}
    assert config_map_properties({"metadata": {"name": "r1"}}) == {}


def test_F3_8_a_rendering_above_512_kib_is_too_large():
    assert failure(goal(spec={"x": "y" * (512 << 10)})).reason is Reason.TOO_LARGE


def test_content_that_is_nested_too_deeply_is_not_rendered():
    deep: Any = 1
    for _ in range(300):
        deep = {"a": deep}
    assert "levels deep" in failure(goal(spec=deep)).message


@given(st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5), max_size=5))
def test_F3_4_the_stamp_is_of_the_meaning(spec):
    one, other = rendered(goal(spec=spec)), rendered(goal(spec=dict(reversed(spec.items()))))
    assert isinstance(one, Rendering)
    assert one.stamp == other.stamp
    assert one.stamp != rendered(goal(spec={**spec, "more": 1})).stamp


@pytest.mark.parametrize("metadata", ["text", {"labels": ["a"]}, {"annotations": {"a": 1}}])
def test_a_template_with_unsound_metadata_is_an_error(metadata):
    by = placement(templates=[{"name": "t", "group": "", "resource": "goals", "object": {"metadata": metadata}}])
    found = render(template_source(by, by.templates[0]), by, [], robot=ROBOT, config_map={})
    assert found == RenderFailed(Reason.RENDER_FAILED, "its labels or annotations are not texts")
