"""What an account must not be allowed, side by side with the roles that confine it."""

import pytest

from crsyncer.console.confinement.manifests import Plan, Profile, manifests
from crsyncer.core.accounts.forbidden_acts import EVERYTHING, ForbiddenAct, confined_by_admission, forbidden_acts
from crsyncer.core.model import Side
from tests.core.builders import policy

KINDS = (
    policy(filtered=True),
    policy(plural="errands", filtered=True, status=False),
    policy(Side.ROBOT, plural="findings"),
)
CLUSTER = policy(plural="areas", namespaced=False)


def grants(forbidden: ForbiddenAct, rules: list[dict]) -> bool:
    """As RBAC judges: a rule with names grants nothing to a request without one."""
    act = forbidden.act
    return any(
        act.verb in rule["verbs"] and act.group in rule["apiGroups"] and act.resource in rule["resources"]
        for rule in rules
        if act.name in rule.get("resourceNames", [act.name])
    )


@pytest.mark.parametrize("two_accounts", [False, True])
@pytest.mark.parametrize("profile", Profile)
def test_the_manifests_grant_no_forbidden_act(profile, two_accounts):
    shared = profile is Profile.SHARED
    kinds = (*KINDS, CLUSTER) if shared else KINDS
    place = "default" if shared else "robot-r1"
    printed = [each.content for each in manifests(Plan(("r1",), kinds, profile=profile, two_accounts=two_accounts))]
    working = ("crsyncer-robots", "r1") if shared else ("robot-r1", "crsyncer")
    bound = {each["roleRef"]["name"] for each in printed if each["kind"] == "ClusterRoleBinding"}
    roles = [each for each in printed if each["kind"] == "ClusterRole" and "rules" in each]
    rules = [rule for role in [*roles, *_roles_of(printed, *working)] for rule in role["rules"]]
    everywhere = [
        rule for role in roles for rule in role["rules"] if role["metadata"]["name"].rpartition(":")[0] in bound
    ]
    for forbidden in forbidden_acts(kinds, robot="r1", namespaces=(place,)):
        assert not grants(forbidden, rules if forbidden.namespace or forbidden.act.cluster else everywhere), str(
            forbidden
        )


def _roles_of(printed: list[dict], namespace: str, name: str) -> list[dict]:
    """The Roles that are bound to an account."""
    bound = {
        (each["metadata"]["namespace"], each["roleRef"]["name"])
        for each in printed
        if each["kind"] == "RoleBinding"
        and {"name": name, "namespace": namespace}.items() <= each["subjects"][0].items()
    }
    return [
        each
        for each in printed
        if each["kind"] == "Role" and (each["metadata"]["namespace"], each["metadata"]["name"]) in bound
    ]


def test_tokens_that_only_a_policy_refuses_are_tried_out():
    acts = [each for each in forbidden_acts((), robot="r1", namespaces=()) if each.trial is not None]
    calls = [each.trial.call for each in acts if each.trial is not None]
    specs = [(call.path, call.query, call.body["spec"]) for call in calls]
    for namespace, name, secret in (("robot-r1", "crsyncer", "crsyncer-enroll"), ("crsyncer-robots", "r1", "r1")):
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
        ref = {"apiVersion": "v1", "kind": "Secret", "name": secret}
        dry = (("dryRun", "All"),)
        assert (path, dry, {"expirationSeconds": 7200, "boundObjectRef": ref}) in specs
        assert (path, dry, {"expirationSeconds": 3600}) in specs
    assert len(calls) == 4
    assert all(call.by_token_maker for call in calls)
    assert all("crsyncer-robot-tokens" in each.remedy for each in acts)
    assert not [each for each in forbidden_acts((), robot="", namespaces=()) if each.act.name]


def test_the_patch_of_a_status_is_a_danger_only_where_others_objects_are():
    patches = [str(forbidden) for forbidden in forbidden_acts(KINDS[:1], robot="r1", namespaces=("robot-r1",))]
    assert "patch goals.lab.example.com/status" not in " ".join(patches)
    patches = [str(forbidden) for forbidden in forbidden_acts(KINDS[:1], robot="r1", namespaces=())]
    assert any("may patch goals.lab.example.com/status everywhere: the test operation" in each for each in patches)
    patches = [str(forbidden) for forbidden in forbidden_acts((CLUSTER,), robot="r1", namespaces=("default",))]
    assert any("may patch areas.lab.example.com/status: the test operation" in each for each in patches)


def test_what_only_policies_confine_is_what_robots_share():
    kinds = (*KINDS, CLUSTER)
    assert confined_by_admission(kinds, robot="r1", namespaces=("robot-r1",)) == ["areas.lab.example.com"]
    assert len(confined_by_admission(kinds, robot="r1", namespaces=("robot-r1", "default"))) == len(kinds)
    assert len(confined_by_admission(kinds, robot="r1", namespaces=())) == len(kinds)


def test_a_limit_is_a_sentence():
    texts = [str(forbidden) for forbidden in (EVERYTHING, *forbidden_acts(KINDS, robot="r1", namespaces=("robot-r1",)))]
    assert "may list secrets everywhere: it shows every credential in the cloud" in texts
    assert "may list goals.lab.example.com everywhere: it reads the objects of all robots" in texts
    assert "may create pods in namespace robot-r1: a pod runs as any account there" in texts
    of_tokens = "may create serviceaccounts/token of crsyncer in namespace robot-r1: "
    assert f"{of_tokens}with a stolen token one makes others, again and again: it never ends" in texts
    assert "may delete namespaces: it can delete all that a robot has" in texts
    assert "may do everything: this is an administrator's credential" in texts
    assert len(texts) == len(set(texts))
