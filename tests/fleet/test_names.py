"""How replicas are called, and whether an object is one (F3.1, F3.2)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crsyncer.core.content.annotations import ROBOT_LABEL
from crsyncer.fleet.domain.names import (
    REPLICA,
    SOURCE,
    is_robot_name,
    mark_texts,
    named_by_marks,
    read_marks,
    replica_name,
    robot_namespace,
    source_id,
)
from crsyncer.fleet.domain.values import Marks, SourceKey, Target
from tests.fleet.made import GOALS

KEY = SourceKey(GOALS, "site", "dock")
NAMES = st.from_regex(r"[a-z0-9]([-a-z0-9.]{0,250}[a-z0-9])?", fullmatch=True)
ROBOTS = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,55}[a-z0-9])?", fullmatch=True)


@pytest.mark.parametrize(
    ("name", "sound"), [("r1", True), ("R1", False), ("a.b", False), ("a" * 58, False), ("", False)]
)
def test_a_robots_name_is_a_dns_label_of_at_most_57_characters(name, sound):
    assert is_robot_name(name) is sound


def test_F3_1_a_replica_is_in_the_robots_namespace_or_beside_its_source():
    assert robot_namespace("r1") == "robot-r1"
    assert replica_name(KEY, "r1", Target.PER_ROBOT, namespaced=True) == ("robot-r1", "dock")
    assert replica_name(KEY, "r1", Target.SAME, namespaced=True) == ("site", "dock-r1")


def test_F3_1_a_cluster_scoped_replica_is_always_beside_its_source():
    key = SourceKey(GOALS, "", "dock")
    assert [replica_name(key, "r1", target, namespaced=False) for target in Target] == [("", "dock-r1")] * 2


@given(NAMES, ROBOTS)
def test_F3_1_a_long_name_is_cut_and_stays_a_name(name, robot):
    _, made = replica_name(SourceKey(GOALS, "site", name), robot, Target.SAME, namespaced=True)
    assert len(made) <= 253
    assert made.endswith(f"-{robot}")
    assert ".-" not in made.removeprefix(name)


def test_F3_1_a_cut_name_has_eight_digits_of_the_whole():
    name = "a" * 240 + ".." + "b" * 11
    _, made = replica_name(SourceKey(GOALS, "site", name), "r1", Target.SAME, namespaced=True)
    assert made.startswith("a" * 240 + "-")
    assert len(made) == 240 + 1 + 8 + 3


def test_F3_2_a_source_id_is_of_the_name_and_a_templates_of_its_placement_too():
    ids = {source_id(KEY), source_id(KEY._replace(name="other")), source_id(KEY._replace(placement="all"))}
    assert len(ids) == 3
    assert KEY._replace(placement="all").text == "all/dock"
    assert KEY.text == "site/dock"
    assert SourceKey(GOALS, "", "dock").text == "dock"


def marked(key: SourceKey = KEY, *, name: str = "dock", namespace: str = "robot-r1"):
    marks = Marks(source_id(key), "stamp", 3, key.text, "uid", ("l",), ("a",))
    labels, annotations = mark_texts(marks, "r1")
    return marks, {"metadata": {"name": name, "namespace": namespace, "labels": labels, "annotations": annotations}}


def test_F3_2_marks_are_read_as_they_were_written():
    marks, raw = marked()
    assert read_marks(raw) == marks
    assert raw["metadata"]["labels"][ROBOT_LABEL] == "r1"


@pytest.mark.parametrize("key", [KEY, KEY._replace(placement="all")])
@pytest.mark.parametrize(
    ("namespace", "name", "own"), [("robot-r1", "dock", True), ("site", "dock-r1", True), ("site", "dock", False)]
)
def test_F3_2_a_replica_has_the_name_that_its_marks_make(key, namespace, name, own):
    marks, raw = marked(key, name=name, namespace=namespace)
    assert named_by_marks(raw, GOALS, marks, "r1") is own


def test_F3_2_marks_that_do_not_fit_each_other_make_no_replica():
    _, raw = marked()
    forged = Marks("0" * 24, "stamp", 3, "dock", "uid")
    assert not named_by_marks(raw, GOALS, forged, "r1")


@pytest.mark.parametrize(
    "text",
    [
        "", "no JSON", "[]", '{"stamp": "s"}',
        *(f'{{"stamp":"s","n":{n},"source":"a","placement":"b"}}' for n in ('"x"', "Infinity", "1")),
        '{"stamp":"s","n":1,"source":"a","placement":"b","labels":1}',
    ],
)  # fmt: skip
def test_F3_2_a_broken_annotation_is_no_mark(text):
    _, raw = marked()
    raw["metadata"]["annotations"][REPLICA] = text
    assert read_marks(raw) is None


def test_F3_2_a_broken_label_is_no_mark():
    _, raw = marked()
    raw["metadata"]["labels"][SOURCE] = "x"
    assert read_marks(raw) is None
