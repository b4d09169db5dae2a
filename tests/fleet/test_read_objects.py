"""What is read of Robots, sources, replicas, strips and kinds."""

import copy
from typing import Any

import pytest

from crsyncer.core.content.annotations import FILTER, ROBOT_LABEL, SPEC_SOURCE
from crsyncer.errors import ConfigError
from crsyncer.fleet.domain.names import REPLICA, SOURCE
from crsyncer.fleet.domain.read_objects import (
    kind_in_discovery,
    kind_of,
    robot_of,
    row_of,
    source_of,
    strip_of,
)
from crsyncer.fleet.domain.values import PlacedKind, Rendering, SourceKey, Verdict
from tests.fleet.made import GOALS, goal, stored, wanted

RENDERED = Rendering({"spec": {"x": 1}}, {"team": "x"}, {"note": "n"}, "s" * 24)


def test_a_robot_is_read():
    metadata = {"name": "r1", "uid": "u", "labels": {"a": "b"}, "annotations": {"c": "d"}}
    found = robot_of({"metadata": metadata, "spec": {"type": "m", "count": 1, "none": None}})
    assert (found.name, found.uid, found.labels, found.annotations) == ("r1", "u", {"a": "b"}, {"c": "d"})
    assert (found.fields, found.terminating) == ({"type": "m"}, False)


@pytest.mark.parametrize("spec", [None, [], "text"])
def test_a_robot_without_a_sound_spec_has_no_fields(spec):
    metadata = {"name": "r1", "uid": "u", "labels": None, "deletionTimestamp": "2026-11-01T00:00:00Z"}
    found = robot_of({"metadata": metadata, "spec": spec})
    assert (found.fields, found.labels, found.terminating) == ({}, {}, True)


def test_a_source_is_read_without_its_status():
    raw = goal(status={"phase": "X"})
    raw["metadata"] |= {"managedFields": [{}], "labels": {"a": "b"}}
    found = source_of(raw, GOALS)
    assert (found.key, found.uid, found.labels) == (SourceKey(GOALS, "site", "dock"), "uid-dock", {"a": "b"})
    assert set(found.body) == {"apiVersion", "kind", "metadata", "spec"}
    assert "managedFields" not in found.body["metadata"]


def test_F3_9_a_row_is_read_of_a_replica():
    found = row_of(stored(wanted(RENDERED), generation=4), GOALS, admitted=True)
    assert found is not None
    assert (found.namespace, found.name, found.uid, found.resource_version) == ("robot-r1", "dock", "u1", "11")
    assert (found.robot, found.marks.source, found.marks.number, found.keys) == ("r1", "site/dock", 1, ("spec",))
    assert (found.labels, found.annotations, found.admitted) == (("team",), ("note",), found.content)
    assert (found.generation, found.terminating, found.annotated) == (4, False, True)


def test_F3_9_a_row_tells_contents_apart_by_what_is_owned():
    raw = stored(wanted(RENDERED))
    base = row_of(raw, GOALS)
    other = copy.deepcopy(raw)
    other["metadata"]["labels"]["theirs"] = "x"
    other["status"] = {"phase": "X"}
    assert base is not None
    assert row_of(other, GOALS) == base
    other["metadata"]["labels"]["team"] = "y"
    changed = row_of(other, GOALS)
    assert changed is not None
    assert changed.content != base.content


def test_F3_9_a_replica_that_is_nested_too_deeply_is_read():
    raw = stored(wanted(RENDERED))
    deep: dict = {}
    for _ in range(5000):
        deep = {"a": deep}
    base, found = row_of(raw, GOALS), row_of({**raw, "spec": deep}, GOALS)
    assert found is not None
    assert base is not None
    assert found.content != base.content


@pytest.mark.parametrize("key", [SOURCE, ROBOT_LABEL])
def test_F3_2_without_a_mark_it_is_no_replica(key):
    raw = stored(wanted(RENDERED))
    del raw["metadata"]["labels"][key]
    assert row_of(raw, GOALS) is None


def test_F3_2_without_the_annotation_or_under_another_name_it_is_no_replica():
    raw = stored(wanted(RENDERED))
    assert row_of({**raw, "metadata": raw["metadata"] | {"name": "other"}}, GOALS) is None
    raw["metadata"]["annotations"].pop(REPLICA)
    assert row_of(raw, GOALS) is None


def strip(**spec):
    return {"metadata": {"name": "s"}, "spec": {"group": "lab.example.com", "resource": "goals", **spec}}


def test_a_strip_is_read():
    assert strip_of(strip(remove=["/spec/a~1b", "/data"])) == (GOALS, (("spec", "a/b"), ("data",)))
    assert strip_of(strip(group="", resource="configmaps", remove=["/data"])) == ("configmaps", (("data",),))


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        ({"metadata": {}}, "spec is nothing; allowed: an object"),
        (strip(remove=["spec"]), r'spec.remove\[0\] is "spec"; allowed: a JSON Pointer'),
        (strip(resource=1), "spec.resource is 1; allowed: the plural"),
    ],
)
def test_a_bad_strip_says_why(raw, problem):
    with pytest.raises(ConfigError, match=problem):
        strip_of(raw)


def crd(*, annotations=None, versions=None, established=True, **metadata):
    texts = {SPEC_SOURCE: "cloud", FILTER: "true"} if annotations is None else annotations
    return {
        "metadata": {"name": GOALS, "annotations": texts, **metadata},
        "spec": {
            "group": "lab.example.com",
            "names": {"plural": "goals", "kind": "Goal"},
            "scope": "Namespaced",
            "versions": versions
            or [
                {"name": "v1beta1", "served": True},
                {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}},
                {"name": "v2", "served": True},
            ],
        },
        "status": {"conditions": [{"type": "Established", "status": "True"}] if established else []},
    }


def test_F3_4_a_kind_is_read_in_its_storage_version():
    found = kind_of(crd(annotations={SPEC_SOURCE: "cloud", FILTER: "1"}), {})
    assert (found.resource, found.group, found.plural, found.kind) == (GOALS, "lab.example.com", "goals", "Goal")
    assert (found.version, found.api_version, found.namespaced) == ("v1", "lab.example.com/v1", True)
    assert (found.has_status, found.sensitive) == (True, False)
    assert (found.verdict, found.message) == (Verdict.PLACEABLE, "")


def test_F3_4_where_the_storage_version_is_not_served_the_newest_is_taken():
    versions = [
        {"name": "v1beta1", "served": True},
        {"name": "v1", "served": True},
        {"name": "v2", "served": False, "storage": True},
    ]
    found = kind_of(crd(versions=versions), {})
    assert (found.version, found.has_status) == ("v1", False)


@pytest.mark.parametrize(
    "raw",
    [
        crd(established=False),
        crd(deletionTimestamp="2026-11-01T00:00:00Z"),
        crd(versions=[{"name": "v1", "served": False}]),
        {**crd(), "status": None},
    ],
)
def test_F2_3_a_kind_that_is_not_served(raw):
    found = kind_of(raw, {})
    assert (found.verdict, found.message) == (Verdict.NOT_SERVED, f"the cloud does not serve {GOALS}")


BYPASS = {"specSource": "cloud", "filter": {"byRobotName": True}}


def test_F2_3_robots_are_never_placed():
    annotated = crd(annotations={SPEC_SOURCE: "cloud", FILTER: "true"})
    described = {"spec": {"names": {"kind": "Goal"}, "scope": "Namespaced", "versions": [V1]}}
    for found in (
        kind_of(annotated, {}, inventory=GOALS),
        kind_in_discovery(GOALS, described, {GOALS: BYPASS}, inventory=GOALS),
    ):
        assert (found.verdict, found.version) == (Verdict.NOT_PLACEABLE, "v1")
        assert found.message == f"{GOALS} are the Robots: they say where replicas go, and are not placed"


@pytest.mark.parametrize(
    ("annotations", "policy", "message"),
    [
        ({}, None, "says spec-source nothing, filter-by-robot-name false; needed: cloud, true"),
        ({SPEC_SOURCE: "robot", FILTER: "true"}, None, "says spec-source robot, filter-by-robot-name true"),
        ({SPEC_SOURCE: "cloud", FILTER: "no"}, None, "says spec-source cloud, filter-by-robot-name false"),
        ({SPEC_SOURCE: "cloud", FILTER: "true"}, {"filter": {"byRobotName": False}}, "filter-by-robot-name false"),
        ({SPEC_SOURCE: "cloud", FILTER: "true"}, {"specSource": "robot"}, "says spec-source robot"),
        ({}, BYPASS, ""),
        ({SPEC_SOURCE: "cloud", FILTER: "true"}, {}, ""),
    ],
)
def test_F2_3_a_policy_in_the_cloud_counts_like_the_annotations(annotations, policy, message):
    found = kind_of(crd(annotations=annotations), {} if policy is None else {GOALS: policy})
    replica, shared = (found.problem_for(shared=each) for each in (False, True))
    assert (replica is None) is (not message)
    assert message in (replica or ("", ""))[1]
    assert found.shared is (found.verdict is Verdict.PLACEABLE and bool(message))
    assert (shared is None) is found.shared


V1 = {"name": "v1", "storage": True, "subresources": {}}


def without_crd(policies: Any = None, resource: str = "configmaps", *, is_served: bool = True) -> PlacedKind:
    spec = {"names": {"kind": "ConfigMap"}, "scope": "Namespaced"}
    return kind_in_discovery(resource, {"spec": spec | {"versions": [V1]}} if is_served else None, policies or {})


def test_F2_3_a_kind_without_a_crd_is_placed_by_a_policy():
    found = without_crd({"configmaps": BYPASS})
    assert (found.kind, found.plural, found.api_version) == ("ConfigMap", "configmaps", "v1")
    assert (found.verdict, found.namespaced, found.has_status) == (Verdict.PLACEABLE, True, False)
    assert not found.sensitive
    assert without_crd({"secrets": BYPASS}, "secrets").sensitive


def test_F2_3_a_kind_without_a_crd_and_a_policy_is_not_placeable():
    found = without_crd()
    assert found.verdict is Verdict.NOT_PLACEABLE
    assert "no SyncPolicy in the cloud for configmaps" in found.message
    assert without_crd(is_served=False).verdict is Verdict.NOT_SERVED
    assert without_crd(resource="secrets", is_served=False).sensitive
