"""The marks of a fleet's replica, as an agent reads them (F3.1, F3.2, F9.5)."""

import json

import pytest

from crsyncer.core.content.annotations import ROBOT_LABEL
from crsyncer.core.content.replica_mark import REPLICA, SOURCE, name_for_robot, read_replica_mark
from crsyncer.core.model import Json, ReplicaMark

CONTENT = {"stamp": "s", "n": 7, "source": "site/dock", "placement": "uid", "labels": [], "annotations": []}


def replica(name: str = "dock-r1", namespace: str = "site", **changed) -> Json:
    return {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {SOURCE: "0" * 24, ROBOT_LABEL: "r1"},
            "annotations": {REPLICA: json.dumps(CONTENT | changed)},
        }
    }


@pytest.mark.parametrize(
    ("name", "namespace", "source", "is_one"),
    [
        ("dock", "robot-r1", "site/dock", True),
        ("dock-r1", "site", "site/dock", True),
        ("dock-r1", "site", "all/dock", True),
        ("dock-r1", "", "dock", True),
        ("dock", "site", "site/dock", False),
        ("dock", "robot-r2", "site/dock", False),
        ("dock-r2", "site", "site/dock", False),
        ("other", "robot-r1", "site/dock", False),
        (name_for_robot("d" * 253, "r1"), "site", "site/" + "d" * 253, True),
    ],
)
def test_F9_5_a_replica_has_the_name_that_is_made_of_its_source(name, namespace, source, is_one):
    found = read_replica_mark(replica(name, namespace, source=source), "r1")
    assert found == (ReplicaMark("uid", 7) if is_one else None)


@pytest.mark.parametrize(
    "text",
    [
        None,
        *("", "no JSON", "[]", "{}", "[" * 100_000, '{"n": ' + "9" * 5000 + "}"),
        *(json.dumps(CONTENT | {"n": number}) for number in ("7", True, float("inf"))),
        *(json.dumps(CONTENT | {"placement": uid}) for uid in (7, "u" * 64)),
        json.dumps(CONTENT | {"source": None}),
    ],
)
def test_F9_5_a_broken_annotation_is_no_mark(text):
    raw = replica()
    raw["metadata"]["annotations"] = {REPLICA: text} if text is not None else None
    assert read_replica_mark(raw, "r1") is None


@pytest.mark.parametrize("labels", [None, {}, {SOURCE: "x"}])
def test_F9_5_without_the_label_of_its_source_an_object_is_no_replica(labels):
    raw = replica()
    raw["metadata"]["labels"] = labels
    assert read_replica_mark(raw, "r1") is None
