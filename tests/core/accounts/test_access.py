"""What accounts must be allowed to do, side by side with the roles that the documents give them."""

from pathlib import Path

import pytest
import yaml

from crsyncer.core.accounts.access import OWN_NEEDS, Need, needs, needs_text
from crsyncer.core.model import Side
from crsyncer.core.pair.object_calls import access_review
from tests.core.builders import policy

ROOT = Path(__file__).parents[3]


def allowed(manifest: str) -> set[tuple[str, str, str]]:
    """(group, resource, verb) of the ClusterRoles in a manifest."""
    documents = [doc for doc in yaml.safe_load_all((ROOT / manifest).read_text()) if doc["kind"] == "ClusterRole"]
    return {
        (group, resource, verb)
        for document in documents
        for rule in document.get("rules", ())
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def capped(need: Need, rights: set[tuple[str, str, str]]) -> bool:
    return any((act.group, act.resource, act.verb) in rights for act in need.acts)


@pytest.mark.parametrize(
    ("side", "manifest"), [(Side.CLOUD, "cloud/robot-r1.yaml"), (Side.ROBOT, "robot/base/rbac.yaml")]
)
@pytest.mark.parametrize(("source", "plural"), [(Side.CLOUD, "goals"), (Side.ROBOT, "findings")])
def test_the_roles_that_we_ship_are_enough(side, manifest, source, plural):
    rights = allowed(manifest)
    needed = needs(policy(source, plural=plural), side)
    assert [need for need in needed if not capped(need, rights)] == []
    if side is Side.ROBOT:
        assert [need for need in OWN_NEEDS if not capped(need, rights)] == []


def test_what_is_needed_is_what_the_agent_does():
    assert needs_text(needs(policy(), Side.CLOUD)) == "list, watch goals; patch or update goals/status"
    assert (
        needs_text(needs(policy(), Side.ROBOT)) == "list, watch, get, create, update, delete goals; update goals/status"
    )
    assert needs_text(needs(policy(Side.ROBOT), Side.CLOUD)) == (
        "list, watch, create, update, delete goals; update goals/status"  # nothing is read by name in the cloud
    )
    bare = policy(status=False)
    assert needs_text(needs(bare, Side.CLOUD)) == "list, watch, patch or update goals"
    assert needs_text(needs(bare, Side.ROBOT)) == "list, watch, get, create, update, delete goals"


def review(need: Need, namespace: str) -> dict:
    attributes: dict = access_review(need.acts[0], namespace).body["spec"]["resourceAttributes"]
    return attributes


def test_a_review_asks_for_the_namespace_that_the_agent_is_restricted_to():
    status = needs(policy(), Side.CLOUD)[-1]
    expected = {"verb": "patch", "group": "lab.example.com", "resource": "goals", "subresource": "status"}
    assert review(status, "robot-1") == expected | {"namespace": "robot-1"}
    assert review(status, "") == expected
    cluster = needs(policy(namespaced=False), Side.CLOUD)[0]
    assert "namespace" not in review(cluster, "robot-1")
    identity = next(need for need in OWN_NEEDS if need.acts[0].verb == "get")
    assert review(identity, "robot-1") == {
        "verb": "get",
        "resource": "namespaces",
        "namespace": "kube-system",
        "name": "kube-system",
    }
