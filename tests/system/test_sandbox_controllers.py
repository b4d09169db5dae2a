"""What a sandbox does of a controller manager: as on any cluster, so that manifests work there as they are printed."""

from crsyncer.adapters.retries import until
from crsyncer.sandbox.controllers import aggregated
from crsyncer.sandbox.sandbox import Sandbox
from tests.system.bed import SECONDS
from tests.system.confined import Caller

ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
QUOTAS = "/api/v1/namespaces/default/resourcequotas"
RULE = {"apiGroups": ["sandbox.example.com"], "resources": ["things"], "verbs": ["list"]}


def test_a_role_that_gathers_others_has_their_rules(running_sandbox: Sandbox) -> None:
    admin = Caller(running_sandbox.cloud, running_sandbox.cloud.admin_token)
    labels = {"sandbox.example.com/part": "true"}
    gathers = {"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": labels}]}}
    assert admin.ask("POST", ROLES, {"metadata": {"name": "sandbox-whole"}, **gathers}).status == 201
    part = {"metadata": {"name": "sandbox-part", "labels": labels}, "rules": [RULE]}
    assert admin.ask("POST", ROLES, part).status == 201
    assert until(lambda: admin.ask("GET", f"{ROLES}/sandbox-whole").body.get("rules") == [RULE], seconds=SECONDS)
    assert admin.ask("DELETE", f"{ROLES}/sandbox-part").status == 200
    assert until(lambda: not admin.ask("GET", f"{ROLES}/sandbox-whole").body.get("rules"), seconds=SECONDS)


def test_a_quota_counts_what_there_is_and_what_is_deleted(running_sandbox: Sandbox) -> None:
    admin, maps = (
        Caller(running_sandbox.robot, running_sandbox.robot.admin_token),
        "/api/v1/namespaces/default/configmaps",
    )
    before = len(admin.ask("GET", maps).body["items"])
    hard = {"hard": {"count/configmaps": str(before + 1)}}
    assert admin.ask("POST", QUOTAS, {"metadata": {"name": "few"}, "spec": hard}).status == 201

    def make(name: str) -> bool:
        return admin.ask("POST", maps, {"metadata": {"name": name}}).status == 201

    assert until(lambda: make("first"), seconds=SECONDS)
    refused = admin.ask("POST", maps, {"metadata": {"name": "second"}})
    assert (refused.status, "exceeded quota" in refused.message) == (403, True)
    assert admin.ask("DELETE", f"{maps}/first").status == 200
    assert until(lambda: make("second"), seconds=SECONDS)
    assert admin.ask("DELETE", f"{maps}/second").status == 200
    assert admin.ask("DELETE", f"{QUOTAS}/few").status == 200


def test_a_role_that_has_its_rules_is_left_alone() -> None:
    rule = {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}
    part = {"metadata": {"name": "part", "labels": {"a": "b"}}, "rules": [RULE]}
    whole = {"metadata": {"name": "whole"}, "aggregationRule": rule, "rules": [RULE]}
    assert aggregated([part, whole]) == []
    assert aggregated([part, {**whole, "rules": None}]) == [whole]
