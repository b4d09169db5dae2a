"""What a sandbox does of a controller manager: as on any cluster, so that manifests work there as they are printed."""

from crsyncer.adapters.retries import until
from crsyncer.sandbox.controllers import aggregated
from crsyncer.sandbox.two_planes import Sandbox
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

    made: list[str] = []

    def make() -> str:
        answer = admin.ask("POST", maps, {"metadata": {"generateName": "counted-"}})
        if answer.status == 201:
            made.append(answer.body["metadata"]["name"])
        return "made" if answer.status == 201 else answer.message

    # A server hears of a quota by watch, and refuses everything until it is counted.
    assert until(lambda: "exceeded quota" in make(), seconds=SECONDS)
    for name in made:
        assert admin.ask("DELETE", f"{maps}/{name}").status == 200
    assert until(lambda: make() == "made", seconds=SECONDS)
    assert admin.ask("DELETE", f"{maps}/{made[-1]}").status == 200
    assert admin.ask("DELETE", f"{QUOTAS}/few").status == 200


def test_a_role_that_has_its_rules_is_left_alone() -> None:
    rule = {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}
    part = {"metadata": {"name": "part", "labels": {"a": "b"}}, "rules": [RULE]}
    whole = {"metadata": {"name": "whole"}, "aggregationRule": rule, "rules": [RULE]}
    assert aggregated([part, whole]) == []
    assert aggregated([part, {**whole, "rules": None}]) == [whole]
