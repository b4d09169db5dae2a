"""What SyncPolicies may name: kinds without a CRD, and what a policy that is a copy is trusted with (C1.4, C1.6)."""

from typing import Any

import pytest

from crsyncer.core.content.object_content import UPSTREAM_UID
from crsyncer.core.kinds.built_in_kind import unknown
from crsyncer.core.kinds.kind_name import Resource
from crsyncer.core.kinds.merge_settings import NOT_SERVED, not_trusted, policy_of_kind, problem_of, travelling_api
from crsyncer.core.kinds.sync_policy import Api
from crsyncer.core.model import Json, Side
from tests.core.policy_objects import merged_of, policy_object, read


def copied_policy(**spec: Any) -> Json:
    """A SyncPolicy for ConfigMaps that is the copy of the cloud's."""
    metadata = {"name": "a", "annotations": {UPSTREAM_UID: "u"}}
    return {"metadata": metadata, "spec": {"resource": {"group": "", "resource": "configmaps"}, **spec}}


RELATED = {"id": "x", "origin": "cloud", "resource": {"group": "apps", "resource": "deployments"}}


@pytest.mark.parametrize(
    ("trust", "distrusted"),
    [
        ((), {"configmaps", "deployments.apps"}),
        (("configmaps",), {"deployments.apps"}),
        (("configmaps", "deployments"), {"deployments.apps"}),
        (("deployments.apps", "api"), {"configmaps"}),
        (("*",), set()),
    ],
)
def test_C1_6_a_policy_that_is_a_copy_names_only_trusted_kinds_and_those_with_a_crd(trust, distrusted):
    raw = copied_policy(related=[{**RELATED, "object": {"name": "x"}}])
    found = read(raw, *trust)
    assert found.untrusted == distrusted
    assert bool(not_trusted(found, "configmaps")) is ("configmaps" in distrusted)
    del raw["metadata"]["annotations"]
    assert read(raw).untrusted == frozenset()


def test_C1_6_what_is_not_trusted_is_said_in_one_line():
    distrusted = "it is a copy and names configmaps, which has no CRD; allowed: configmaps in policies.trust (--trust)"
    found = read(copied_policy())
    assert problem_of(found, [found], None) == distrusted
    assert problem_of(found, [found], "") == ""
    trusted = read(copied_policy(), "configmaps")
    assert problem_of(trusted, [trusted], None) == NOT_SERVED


@pytest.mark.parametrize(
    ("trust", "refused"), [((), True), (("configmaps",), True), (("api",), False), (("*",), False)]
)
def test_C1_6_a_policy_that_is_a_copy_has_no_api_unless_that_is_trusted(trust, refused):
    found = read(copied_policy(api={"source": "cloud"}), *trust)
    assert ("it is a copy and has spec.api" in found.problem) is refused


def test_C1_6_a_kind_without_a_crd_is_synced_only_if_it_is_trusted():
    raw = copied_policy(specSource="cloud", filter={"byRobotName": True})
    maps = unknown(Resource("", "configmaps"))
    distrusted = merged_of(maps, read(raw)).problem
    assert distrusted == (
        "SyncPolicy a: it is a copy and names configmaps, which has no CRD; allowed: configmaps in policies.trust"
        " (--trust)"
    )
    assert merged_of(maps, read(raw, "configmaps")).problem == ""
    maps["metadata"]["uid"] = "u"
    assert merged_of(maps, read(raw)).problem == ""


def test_C8_C1_4_a_kind_whose_crd_travels_is_not_built_in():
    found = policy_object(specSource="cloud", api={"source": "cloud"})
    assert travelling_api([found]) == Api(Side.CLOUD)
    assert (travelling_api([]), travelling_api([found, found])) == (None, None)
    assert problem_of(found, [found], None) == ""
    kind = policy_of_kind(unknown(Resource("lab.example.com", "goals")), "r1", objects=[found])
    assert kind is not None
    assert kind.problem == ""
