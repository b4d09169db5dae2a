"""What doctor finds of kinds and SyncPolicies, asked of a server (C1.5)."""

from functools import partial
from typing import Any

import pytest

from crsyncer.adapters.expressions import Expressions
from crsyncer.console.compare.lister import Configuration
from crsyncer.console.set_up.doctor_report import (
    Mark,
    judge_annotations,
    judge_policies,
)
from crsyncer.console.set_up.questions import SetUp, examine
from crsyncer.core.content.annotations import SPEC_SOURCE
from crsyncer.core.kinds.built_in_kind import unknown
from crsyncer.core.kinds.kind_name import Resource
from crsyncer.core.kinds.merge_settings import NOT_SERVED, PolicyObject, read_object
from crsyncer.core.kinds.namespaces import EVERYWHERE
from crsyncer.core.model import Json, Side
from crsyncer.core.reports.findings import LoginFacts
from crsyncer.core.requests.calls import CRDS, SYNC_POLICIES, Call
from crsyncer.ports import Reply
from tests.console.report_kit import NOW
from tests.core.builders import ROBOT_NAME, crd, policy


class Server:
    """A side that serves goals in some versions and allows everything."""

    facts = LoginFacts("https://side.example.com", "a token", verified=False)

    def __init__(self, *versions: str) -> None:
        self._versions = versions

    async def resolve(self) -> None:
        """The name has an address."""

    async def certificate(self) -> None:
        """There is none to read."""

    async def request(self, call: Call) -> Reply:
        """Answer one request."""
        if call.method == "POST":
            return Reply(201, {"status": {"allowed": True}})
        answers: dict[str, dict] = {
            "/version": {"gitVersion": "v1.35.0"},
            CRDS: {"kind": "List", "metadata": {"resourceVersion": "1"}, "items": [crd({SPEC_SOURCE: "cloud"})]},
            "/apis/lab.example.com": {"versions": [{"version": version} for version in self._versions]},
        }
        return Reply(200, answers.get(call.path, {"resources": [{"name": "goals", "namespaced": True}]}), date=NOW)

    async def aclose(self) -> None:
        """Nothing is open."""


async def test_two_sides_without_a_common_version_are_a_failure_with_the_hint_of_status():
    async def load(side: Side) -> Server:
        return Server("v9" if side is Side.CLOUD else "v1")

    logins = {side: partial(load, side) for side in Side}
    checks = await examine(logins, SetUp(ROBOT_NAME, EVERYWHERE, lambda: NOW, Expressions), seconds=60.0)
    [mismatch] = [check for check in checks if check.state is Mark.FAIL]
    assert (mismatch.name, mismatch.side, mismatch.resource) == ("kind", Side.CLOUD, policy().resource)
    assert mismatch.message == "the robot serves v1; the cloud serves v9"
    assert mismatch.hint == "serve one version of the CRD on both sides"
    warned = {(check.side, check.name) for check in checks if check.state is Mark.WARN}
    assert warned == {(side, "login") for side in Side}  # their certificates are not verified


def policy_object(name: str, resource: str = "goals", **spec: Any) -> PolicyObject:
    named = {"group": "lab.example.com", "resource": resource}
    return read_object({"metadata": {"name": name}, "spec": {"resource": named, **spec}}, Expressions)


def judged(*policies: PolicyObject, source: str | None = None) -> list[tuple[str, Mark, str]]:
    """Name, mark and message of the checks of CRDs and policies."""
    configuration = Configuration((crd(None if source is None else {SPEC_SOURCE: source}),), policies)
    found = [*judge_annotations(configuration, ROBOT_NAME), *judge_policies(configuration, ROBOT_NAME)]
    return [(check.name, check.state, check.message) for check in found]


def test_C1_5_doctor_judges_policies_and_kinds_by_them():
    selector = {"matchLabels": {"tier": "edge"}}
    assert judged(policy_object("a", specSource="cloud", filter={"selector": selector})) == [
        ("annotations", Mark.OK, "spec from the cloud, status from the robot, only objects selected by tier=edge"),
        ("policy", Mark.OK, "SyncPolicy a is valid"),
    ]
    clash = judged(policy_object("a", specSource="cloud"), source="robot")
    assert [(name, mark) for name, mark, _ in clash] == [("annotations", Mark.FAIL), ("policy", Mark.FAIL)]
    assert all(SPEC_SOURCE in message for _, _, message in clash)
    [check] = judge_annotations(Configuration((crd({}),), (policy_object("a"),)), ROBOT_NAME)
    assert check.hint.startswith("correct the SyncPolicy a or the annotations")
    [_, (name, mark, message)] = judged(policy_object("maps", "leases"), source="cloud")
    assert (name, mark, message) == ("policy", Mark.FAIL, f"SyncPolicy maps: {NOT_SERVED}")


def test_C1_5_doctor_says_of_a_policy_that_objects_related_to_others_are_not_synced():
    maps = {"group": "", "resource": "configmaps"}
    entry = {"origin": "cloud", "resource": maps, "object": {"name": "x"}}
    found = policy_object(
        "a", specSource="cloud", related=[{**entry, "id": id_, "cleanup": id_} for id_ in ("keep", "delete")]
    )
    configuration = Configuration((crd({}),), (found,), (unknown(Resource("", "configmaps")),))
    [check] = judge_policies(configuration, ROBOT_NAME)
    assert (check.state, check.resource) == (Mark.FAIL, "goals.lab.example.com")
    assert check.message.startswith(
        "SyncPolicy a: spec.related: configmaps is not synced: spec.related of a differ in cleanup"
    )


class WithPolicies(Server):
    """A side with SyncPolicies, which the account may not list."""

    def __init__(self, *, allowed: bool) -> None:
        super().__init__("v1")
        self._allowed = allowed
        self.reviewed: list[str] = []

    async def request(self, call: Call) -> Reply:
        """Answer one request."""
        if call.method == "POST":
            attributes = call.body["spec"]["resourceAttributes"]
            self.reviewed.append(f"{attributes['verb']} {attributes['resource']} {attributes.get('subresource', '')}")
        if call.path == SYNC_POLICIES.path:
            listed = {"kind": "List", "metadata": {"resourceVersion": "1"}, "items": [raw_policy()]}
            return Reply(200, listed) if self._allowed else Reply(403, {"message": "it is forbidden"})
        reply = await super().request(call)
        if call.path == CRDS:
            own = crd()
            own["metadata"]["name"] = SYNC_POLICIES.resource
            reply.body["items"].append(own)
        return reply


def raw_policy() -> Json:
    return {"metadata": {"name": "a"}, "spec": {"resource": {"group": "lab.example.com", "resource": "goals"}}}


@pytest.mark.parametrize("allowed", [True, False])
async def test_C1_5_doctor_asks_for_the_rights_that_policies_need(allowed):
    robot = WithPolicies(allowed=allowed)

    async def load(side: Side) -> Server:
        return robot if side is Side.ROBOT else Server("v1")

    logins = {side: partial(load, side) for side in Side}
    checks = await examine(logins, SetUp(ROBOT_NAME, EVERYWHERE, lambda: NOW, Expressions), seconds=60.0)
    if allowed:
        assert [check.message for check in checks if check.name == "policy"] == ["SyncPolicy a is valid"]
        asked = [each for each in robot.reviewed if "syncpolicies" in each]
        assert asked == ["list syncpolicies ", "watch syncpolicies ", "patch syncpolicies status"]
    else:
        [failed] = [check for check in checks if check.state is Mark.FAIL]
        assert failed.message == "the CRDs or SyncPolicies cannot be listed: it is forbidden"
