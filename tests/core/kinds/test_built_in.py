"""Kinds without a CRD, as discovery shows them (C1.4)."""

from typing import Any

import pytest

from crsyncer.core.kinds.built_in_kind import CORE, not_served, read_resource, unknown, version_names
from crsyncer.core.kinds.kind_name import Resource
from crsyncer.core.kinds.kind_policy import Version
from crsyncer.core.model import Json
from tests.core.policy_objects import merged_of, policy_object

MAPS = Resource("", "configmaps")
LEASES = Resource("coordination.k8s.io", "leases")
EDGE = {"selector": {"matchLabels": {"tier": "edge"}}}


def entry(plural: str, *, verbs: tuple[str, ...] = ("create", "list", "watch"), **more: Any) -> Json:
    return {"name": plural, "kind": "ConfigMap", "namespaced": True, "verbs": list(verbs), **more}


def shown(*entries: Json) -> Json:
    return {"resources": list(entries)}


def test_C1_4_discovery_says_what_a_crd_would_say():
    body = shown(entry("configmaps", singularName="configmap", shortNames=["cm"]), entry("secrets"))
    found = read_resource(MAPS, CORE, {"v1": body})
    assert found is not None
    policy = merged_of(
        found, policy_object(specSource="cloud", resource={"group": "", "resource": "configmaps"}, filter=EDGE)
    )
    assert (policy.problem, policy.resource, policy.on_robot.kind, policy.namespaced) == (
        "",
        "configmaps",
        "ConfigMap",
        True,
    )
    assert policy.versions == (Version("v1", served=True, storage=True, status=False),)
    assert policy.aliases == ("configmap", "ConfigMap", "cm")


def test_C1_4_the_preferred_version_counts_as_the_stored_one_and_each_has_its_own_subresources():
    group = {"versions": [{"version": "v1"}, {"version": "v2beta1"}, {}], "preferredVersion": {"version": "v2beta1"}}
    bodies = {"v1": shown(entry("leases", namespaced=False)), "v2beta1": shown(entry("leases"), entry("leases/status"))}
    assert version_names(group) == ["v1", "v2beta1", ""]
    found = read_resource(LEASES, group, bodies)
    assert found is not None
    assert [(v["name"], v["storage"], v["subresources"]) for v in found["spec"]["versions"]] == [
        ("v1", False, {}),
        ("v2beta1", True, {"status": {}}),
    ]
    assert (found["spec"]["scope"], found["metadata"]["name"]) == ("Namespaced", "leases.coordination.k8s.io")
    other = read_resource(LEASES, {}, bodies)
    assert other is not None
    assert [v["storage"] for v in other["spec"]["versions"]] == [True, False]
    assert other["spec"]["scope"] == "Cluster"


@pytest.mark.parametrize(
    "bodies",
    [
        {},
        {"v1": {}},
        {"v1": shown(entry("secrets"))},
        {"v1": shown(entry("configmaps", verbs=("create", "list")))},
        {"v1": shown(entry("configmaps", verbs=("list", "watch")))},
        {"v1": shown({"name": "configmaps", "kind": "ConfigMap"})},
        {"v1": shown(entry("configmaps", kind=""))},
    ],
)
def test_C1_4_what_cannot_be_listed_watched_and_created_is_not_served(bodies):
    assert read_resource(MAPS, CORE, bodies) is None
    assert version_names({}) == []


def test_C1_4_a_kind_of_which_nothing_is_known_has_no_version_and_no_problem():
    named = {"group": LEASES.group, "resource": "leases", "version": "v1"}
    policy = merged_of(unknown(LEASES), policy_object(specSource="cloud", resource=named, filter=EDGE))
    assert (policy.versions, policy.problem) == ((), "")
    assert not_served(LEASES) == "the robot has no CRD of leases.coordination.k8s.io, and serves no such kind"


@pytest.mark.parametrize("filter_", [{}, {"byRobotName": False}, {"selector": {}}])
def test_C1_4_without_a_filter_a_kind_without_a_crd_is_wrong(filter_):
    named = {"group": LEASES.group, "resource": "leases"}
    policy = merged_of(unknown(LEASES), policy_object(specSource="cloud", resource=named, filter=filter_))
    assert policy.problem == (
        "leases.coordination.k8s.io has no CRD, and spec.filter of SyncPolicy a selects all of its objects;"
        " allowed: spec.filter.byRobotName: true or a selector that is not empty"
    )
    robots = merged_of(unknown(LEASES), policy_object(specSource="cloud", resource=named, filter={"byRobotName": True}))
    assert (robots.problem, robots.selector) == ("", "cloudrobotics.com/robot-name=robot-1")
