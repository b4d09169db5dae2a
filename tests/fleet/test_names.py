"""The marks of replicas, and how they are read (F3.2)."""

import pytest

from crsyncer.core.content.annotations import ROBOT_LABEL
from crsyncer.fleet.domain.names import (
    REPLICA,
    SOURCE,
    is_robot_name,
    read_marks,
    source_id,
)
from crsyncer.fleet.domain.values import SourceKey
from tests.fleet.made import GOALS, marked

KEY = SourceKey(GOALS, "site", "dock")


@pytest.mark.parametrize(
    ("name", "sound"), [("r1", True), ("R1", False), ("a.b", False), ("a" * 58, False), ("", False)]
)
def test_a_robots_name_is_a_dns_label_of_at_most_57_characters(name, sound):
    assert is_robot_name(name) is sound


def test_F3_2_a_source_id_is_of_the_name_and_a_templates_of_its_placement_too():
    ids = {source_id(KEY), source_id(KEY._replace(name="other")), source_id(KEY._replace(placement="all"))}
    assert len(ids) == 3
    assert KEY._replace(placement="all").text == "all/dock"
    assert KEY.text == "site/dock"
    assert SourceKey(GOALS, "", "dock").text == "dock"


def test_F3_2_marks_are_read_as_they_were_written():
    marks, raw = marked()
    assert read_marks(raw) == marks
    assert raw["metadata"]["labels"][ROBOT_LABEL] == "r1"


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
