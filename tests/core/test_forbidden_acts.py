"""What an account must not be allowed, side by side with the roles that confine it."""

import pytest

from crsyncer.core.cloud_manifests import Plan, Profile, manifests
from crsyncer.core.forbidden_acts import EVERYTHING, ForbiddenAct, confined_by_admission, forbidden_acts
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
        if "resourceNames" not in rule
    )


@pytest.mark.parametrize("profile", Profile)
def test_the_manifests_grant_no_forbidden_act(profile):
    shared = profile is Profile.SHARED
    kinds = (*KINDS, CLUSTER) if shared else KINDS
    place = "default" if shared else "robot-r1"
    printed = [each.content for each in manifests(Plan(("r1",), kinds, profile=profile))]
    bound = {each["roleRef"]["name"] for each in printed if each["kind"] == "ClusterRoleBinding"}
    roles = [each for each in printed if each["kind"] == "ClusterRole" and "rules" in each]
    rules = [rule for role in roles for rule in role["rules"]]
    everywhere = [
        rule for role in roles for rule in role["rules"] if role["metadata"]["name"].rpartition(":")[0] in bound
    ]
    for forbidden in forbidden_acts(kinds, robot="r1", namespaces=(place,)):
        assert not grants(forbidden, rules if forbidden.namespace or forbidden.act.cluster else everywhere), str(
            forbidden
        )


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
    assert "may delete namespaces: it can delete all that a robot has" in texts
    assert "may do everything: this is an administrator's credential" in texts
    assert len(texts) == len(set(texts))
