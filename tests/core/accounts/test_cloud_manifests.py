"""What `cloud-manifests` prints: which objects, in which order, with which rights, for each kind of kind."""

from dataclasses import replace

import pytest

from crsyncer.console.confinement.admission_policies import kind_policy
from crsyncer.console.confinement.manifests import Plan, Profile, confinable, manifests, rules, unconfined
from crsyncer.core.accounts.access import Act, needs
from crsyncer.core.accounts.robot_account import check_namespace, check_robot
from crsyncer.core.apis.api_plan import api_needs
from crsyncer.core.content.annotations import FILTER, SPEC_SOURCE, SUBTREE
from crsyncer.core.kinds.kind_policy import KindPolicy, Version
from crsyncer.core.kinds.sync_policy import Api
from crsyncer.core.model import Json, Side
from crsyncer.core.pair.own_status import OWN_STATUSES
from crsyncer.core.reports.robot_report import ROBOT_SYNC_STATES
from crsyncer.core.requests.calls import CRD_COLLECTION
from crsyncer.errors import ConfigError
from tests.core.builders import crd, policy
from tests.core.policy_objects import policy_object

GOALS = policy(filtered=True)
ERRANDS = policy(plural="errands", filtered=True, status=False)
FINDINGS = policy(Side.ROBOT, plural="findings")
AREAS = policy(plural="areas", namespaced=False)


def travelling(source: Side, kind: KindPolicy = GOALS) -> KindPolicy:
    """The kind with a policy that has its CRD travel."""
    found = policy_object(api={"source": source.value}).policy
    return replace(kind, sync_policy=found)


def printed(**changes) -> list[Json]:
    """The manifests of robot r1 and two kinds, unless `changes` say otherwise."""
    plan = Plan(**({"robots": ("r1",), "kinds": (GOALS, FINDINGS)} | changes))
    return [each.content for each in manifests(plan)]


def names(found: list[Json], kind: str) -> list[str]:
    """NAMESPACE/NAME, or NAME, of the manifests of a kind."""
    chosen = [each["metadata"] for each in found if each["kind"] == kind]
    return ["/".join(filter(None, (each.get("namespace"), each["name"]))) for each in chosen]


def one(found: list[Json], kind: str, name: str) -> Json:
    [only] = [each for each in found if each["kind"] == kind and each["metadata"]["name"] == name]
    return only


def verbs(kind, profile=Profile.NAMESPACE) -> dict[str, str]:
    """By resource, the verbs of a robot's role."""
    return {rule["resources"][0]: " ".join(rule["verbs"]) for rule in rules(kind, profile)}


MIXED = (Version("v1", True, True, True), Version("v1beta1", True, False, False), Version("v0", False, False, False))


@pytest.mark.parametrize(
    ("kind", "own", "shared"),
    [
        (
            GOALS,
            {"goals": "list watch", "goals/status": "update patch"},
            {"goals": "list watch", "goals/status": "update"},
        ),
        (ERRANDS, {"errands": "list watch update patch"}, {"errands": "list watch update"}),
        (
            replace(GOALS, versions=MIXED),
            {"goals": "list watch update patch", "goals/status": "update patch"},
            {"goals": "list watch update", "goals/status": "update"},
        ),
        (
            FINDINGS,
            {"findings": "list watch create update delete", "findings/status": "update"},
            {"findings": "list watch create update delete", "findings/status": "update"},
        ),
        (
            policy(Side.ROBOT, status=False),
            {"goals": "list watch create update delete"},
            {"goals": "list watch create update delete"},
        ),
    ],
)
def test_a_role_has_what_the_agent_does_and_in_a_shared_namespace_never_patch(kind, own, shared):
    assert verbs(kind) == own
    assert verbs(kind, Profile.SHARED) == shared


@pytest.mark.parametrize("profile", Profile)
@pytest.mark.parametrize("kind", [GOALS, ERRANDS, FINDINGS, policy(Side.ROBOT, status=False)])
def test_a_role_is_enough_for_the_agent(kind, profile):
    granted = verbs(kind, profile)
    for need in needs(kind, Side.CLOUD):
        assert any(act.verb in granted.get(act.resource, "").split() for act in need.acts), need


def test_each_robot_has_a_namespace_an_account_and_role_bindings_and_nothing_more():
    found = printed(robots=("r1", "r2"))
    assert names(found, "Namespace") == ["robot-r1", "robot-r2"]
    assert names(found, "ServiceAccount") == ["robot-r1/crsyncer", "robot-r2/crsyncer"]
    assert names(found, "Role") == []  # the agent makes no tokens for itself, so whoever steals its token cannot
    assert names(found, "RoleBinding") == ["robot-r1/crsyncer:robot", "robot-r2/crsyncer:robot"]
    assert names(found, "ClusterRoleBinding") == []
    for each in found:
        if each["kind"] == "RoleBinding":
            assert each["subjects"] == [
                {"kind": "ServiceAccount", "name": "crsyncer", "namespace": each["metadata"]["namespace"]}
            ]
        if each["kind"] == "ServiceAccount":
            assert each["automountServiceAccountToken"] is False
        if each["kind"] == "ResourceQuota":
            [(counted, most)] = each["spec"]["hard"].items()
            assert (f"crsyncer-{counted.removeprefix('count/')}", most) == (each["metadata"]["name"], "1000")
    assert len(names(found, "ResourceQuota")) == 4
    label = {"crsyncer.cloudrobotics.com/robot-name": "r1"}
    assert one(found, "Namespace", "robot-r1")["metadata"]["labels"] == label


@pytest.mark.parametrize("profile", Profile)
def test_policies_stand_before_the_rights_and_all_before_what_names_it(profile):
    order = ["Namespace", "ServiceAccount", "ValidatingAdmissionPolicy", "ClusterRole", "Role", "RoleBinding"]
    found = [each["kind"] for each in printed(robots=("r1", "r2"), profile=profile, two_accounts=True)]
    first = [found.index(kind) for kind in order]
    assert first == sorted(first)
    last = max(at for at, kind in enumerate(found) if kind.startswith("ValidatingAdmissionPolicy"))
    assert last < min(at for at, kind in enumerate(found) if "Role" in kind)


def test_the_rights_of_kinds_are_gathered_so_that_a_kind_is_added_without_touching_robots():
    found = printed()
    gathered = one(found, "ClusterRole", "crsyncer:robot")
    [selector] = gathered["aggregationRule"]["clusterRoleSelectors"]
    assert "rules" not in gathered  # the control plane's: applying them empty takes every robot its rights for a moment
    for kind in (GOALS, FINDINGS):
        role = one(found, "ClusterRole", f"crsyncer:robot:{kind.resource}")
        assert role["metadata"]["labels"] == selector["matchLabels"]
        assert role["rules"] == rules(kind, Profile.NAMESPACE)


def test_every_policy_is_bound_and_with_audit_it_only_warns():
    for audit, actions in ((False, ["Deny", "Audit"]), (True, ["Audit", "Warn"])):
        found = printed(audit=audit)
        policies = names(found, "ValidatingAdmissionPolicy")
        assert policies == [
            "crsyncer-robot-tokens",
            "crsyncer-robot-writes.goals.lab.example.com",
            "crsyncer-label-matches-namespace.goals.lab.example.com",
            "crsyncer-robot-writes.findings.lab.example.com",
        ]
        assert names(found, "ValidatingAdmissionPolicyBinding") == policies
        for name in policies:
            bound = one(found, "ValidatingAdmissionPolicyBinding", name)
            assert bound["spec"] == {"policyName": name, "validationActions": actions}
            assert one(found, "ValidatingAdmissionPolicy", name)["spec"]["failurePolicy"] == "Fail"


def test_what_is_shared_is_bound_once_for_all_robots():
    found = printed(robots=("r1", "r2"), kinds=(GOALS, AREAS), profile=Profile.SHARED, namespaces=("a", "b"))
    assert names(found, "Namespace") == ["crsyncer-robots"]
    assert names(found, "ServiceAccount") == ["crsyncer-robots/r1", "crsyncer-robots/r2"]
    assert names(found, "RoleBinding") == [
        "a/crsyncer:shared-robot",
        "b/crsyncer:shared-robot",
    ]
    assert names(found, "ResourceQuota") == []
    assert names(found, "ClusterRoleBinding") == ["crsyncer:shared-robot-cluster"]
    robots = {
        "kind": "Group",
        "apiGroup": "rbac.authorization.k8s.io",
        "name": "system:serviceaccounts:crsyncer-robots",
    }
    assert one(found, "ClusterRoleBinding", "crsyncer:shared-robot-cluster")["subjects"] == [robots]
    gathered = [each for each in found if "aggregationRule" in each]
    assert [each["metadata"]["name"] for each in gathered] == ["crsyncer:shared-robot", "crsyncer:shared-robot-cluster"]
    assert not [name for name in names(found, "ValidatingAdmissionPolicy") if "label" in name]


@pytest.mark.parametrize(
    ("profile", "enroll", "working"),
    [
        (Profile.NAMESPACE, ("robot-r1", "crsyncer-enroll"), ("robot-r1", "crsyncer")),
        (Profile.SHARED, ("crsyncer-enroll", "r1"), ("crsyncer-robots", "r1")),
    ],
)
def test_of_two_accounts_one_makes_tokens_for_the_other_and_may_do_nothing_else(profile, enroll, working):
    found = printed(profile=profile, two_accounts=True)
    assert sorted(names(found, "ServiceAccount")) == sorted("/".join(each) for each in (enroll, working))
    secret, *bound_to = [each for each in found if each["kind"] == "Secret"]
    assert names(bound_to, "Secret") == (["/".join(working)] if profile is Profile.SHARED else [])
    assert secret["type"] == "kubernetes.io/service-account-token"
    assert secret["metadata"]["annotations"] == {"kubernetes.io/service-account.name": enroll[1]}
    bound = [each for each in found if each["kind"] == "RoleBinding" and each["roleRef"]["kind"] == "Role"]
    assert [(each["metadata"]["namespace"], each["subjects"]) for each in bound] == [
        (working[0], [{"kind": "ServiceAccount", "name": enroll[1], "namespace": enroll[0]}])
    ]
    [role] = [each for each in found if each["kind"] == "Role"]
    assert role["rules"] == [
        {
            "apiGroups": [""],
            "resources": ["serviceaccounts/token"],
            "verbs": ["create"],
            "resourceNames": [working[1]],
        }
    ]
    others = [each["subjects"] for each in found if each["kind"].endswith("Binding") and "subjects" in each]
    assert sum({"name": enroll[1], "namespace": enroll[0]}.items() <= who.items() for [who] in others) == 1


def test_what_profile_shared_cannot_confine_is_said():
    catalogue = policy(plural="models")
    assert unconfined(Plan(("r1",), (GOALS, catalogue))) == []
    [reads, writes] = unconfined(Plan(("r1",), (GOALS, FINDINGS, catalogue), profile=Profile.SHARED))
    assert reads == "profile shared: every robot can read the objects of all others"
    assert writes.startswith("models.lab.example.com is not filtered by robot name: every robot may write")


def expressions(kind) -> str:
    """All that a kind's policy asks, as one text."""
    spec = kind_policy(kind)["spec"]
    return "\n".join(each["expression"] for part in ("variables", "validations") for each in spec[part])


def messages(kind) -> list[str]:
    return [each["message"].removeprefix("crsyncer: ") for each in kind_policy(kind)["spec"]["validations"]]


def test_a_policy_asks_what_its_kind_needs():
    own, home = "object is not labelled for this robot", "object is not in this robot's namespace"
    assert messages(GOALS) == ["malformed robot identity", "a robot may only write status", own, home]
    assert "isStatusOnly" not in expressions(GOALS)
    assert "isStatusOnly" in expressions(ERRANDS)
    assert messages(policy()) == ["malformed robot identity", "a robot may only write status", home]
    assert messages(replace(GOALS, subtree='ro"bot'))[3] == 'a robot may only write status.ro"bot'
    assert r'k == "ro\"bot"' in expressions(replace(GOALS, subtree='ro"bot'))
    copies = ["a robot may only write its copies and their status", "the copy is not this robot's"]
    kept = ["a robot may not change finalizers", "a robot may not change ownerReferences"]
    other = "object is labelled for another robot"
    assert messages(FINDINGS) == ["malformed robot identity", *copies, other, *kept, home]
    assert messages(replace(FINDINGS, filtered=True)) == ["malformed robot identity", *copies, own, *kept, home]
    reports = policy(Side.ROBOT, plural=ROBOT_SYNC_STATES.plural, group=ROBOT_SYNC_STATES.group, filtered=True)
    name = "a robot's report has its name"
    assert messages(reports) == ["malformed robot identity", *copies, own, name, *kept, home]
    statuses = policy(Side.ROBOT, plural=OWN_STATUSES.plural, group=OWN_STATUSES.group, filtered=True)
    name = "the name ends with the robot's"
    assert messages(statuses) == ["malformed robot identity", *copies, own, name, *kept, home]


def test_no_variable_of_a_policy_is_a_truth_value_to_a_reader_of_yaml_1_1():
    for kind in (GOALS, ERRANDS, FINDINGS, replace(GOALS, subtree="robot")):
        taken = {each["name"].lower() for each in kind_policy(kind)["spec"]["variables"]}
        assert not taken & {"y", "n", "yes", "no", "on", "off", "true", "false"}


@pytest.mark.parametrize("name", ["r1", "1", "y", "a-b", "a" * 57])
def test_a_robots_name_is_part_of_a_namespaces(name):
    assert check_robot(name) == name


@pytest.mark.parametrize("name", ["", "R1", "-a", "a-", "a.b", "a_b", "a/../b", "a:b", "a" * 58, "r1\n", "ü"])
def test_a_robots_name_that_no_namespace_can_have_is_refused(name):
    with pytest.raises(ConfigError, match=r"--robot is .*; allowed: at most 57 lower-case letters"):
        check_robot(name)


def test_a_namespace_that_nobody_can_have_is_refused():
    assert check_namespace("a" * 63) == "a" * 63
    with pytest.raises(ConfigError, match="--namespace is"):
        check_namespace("a" * 64)


CLOUD = {SPEC_SOURCE: "cloud"}


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (crd(), "goals.lab.example.com is not annotated, so it is not synced"),
        (crd({SPEC_SOURCE: "moon"}), 'spec-source is "moon"; allowed: cloud, robot'),
        (crd(CLOUD | {FILTER: "perhaps"}), "filter-by-robot-name"),
        (crd(CLOUD | {SUBTREE: "a.b"}), "one top-level key"),
        (crd(CLOUD, scope="Cluster"), "cluster-scoped, so a namespace does not confine it"),
        (crd(CLOUD, group="rbac.authorization.k8s.io"), "is never synced: objects of rbac.authorization.k8s.io decide"),
        (crd(CLOUD, group=""), "is never synced: objects of the core group decide"),
        (crd(CLOUD, group="apiextensions.k8s.io"), "never synced"),
        (crd(CLOUD, group="admissionregistration.k8s.io"), "never synced"),
        ({"metadata": {"name": "x"}}, "incomplete"),
        ({"metadata": {"name": "x", "annotations": CLOUD}, "spec": {"group": "a", "scope": "Cluster"}}, "incomplete"),
        ({"metadata": "x", "spec": {}}, "incomplete"),
        (crd(CLOUD, versions=None), "incomplete"),
        (crd(CLOUD, names=[]), "incomplete"),
    ],
)  # fmt: skip
def test_a_kind_that_cannot_be_confined_is_refused_in_a_line(made, said):
    with pytest.raises(ConfigError, match=said) as refused:
        confinable(made, Profile.NAMESPACE, place="crds.yaml")
    assert str(refused.value).startswith("crds.yaml: ")
    assert "\n" not in str(refused.value)


def test_C8_robots_that_crds_come_to_may_read_these_crds_and_no_others():
    kinds = (travelling(Side.CLOUD), FINDINGS)
    for profile, bound in ((Profile.NAMESPACE, ["crsyncer:crds:r1"]), (Profile.SHARED, ["crsyncer:crds"])):
        found = printed(kinds=kinds, profile=profile)
        [rule] = one(found, "ClusterRole", "crsyncer:crds")["rules"]
        assert (rule["verbs"], rule["resourceNames"]) == (["list", "watch"], [GOALS.resource])
        assert names(found, "ClusterRoleBinding") == bound
        assert "crsyncer:crds" not in names(printed(profile=profile), "ClusterRole")
    wanted = [act for need in api_needs(Api(Side.CLOUD), Side.CLOUD, resource="g", robot="r1") for act in need.acts]
    assert [(act.verb, act.resource) for act in wanted] == [(verb, rule["resources"][0]) for verb in rule["verbs"]]


@pytest.mark.parametrize(
    ("profile", "bound"), [(Profile.NAMESPACE, "crsyncer:apis:r1"), (Profile.SHARED, "crsyncer:apis")]
)
def test_C8_2_robots_that_publish_crds_may_do_that_and_no_more(profile, bound):
    found = printed(kinds=(travelling(Side.ROBOT),), profile=profile)
    granted = one(found, "ClusterRole", "crsyncer:apis")["rules"]
    assert names(found, "ClusterRoleBinding") == [bound]

    def allowed(act: Act) -> bool:
        return any(
            (act.group in rule["apiGroups"] and act.resource in rule["resources"] and act.verb in rule["verbs"])
            and ("resourceNames" not in rule or act.name in rule["resourceNames"])
            for rule in granted
        )

    wanted = api_needs(Api(Side.ROBOT), Side.CLOUD, resource=GOALS.resource, robot="r1")
    assert [need for need in wanted if not all(map(allowed, need.acts))] == []
    crds = CRD_COLLECTION.group, CRD_COLLECTION.plural
    assert not any(allowed(Act(verb, *crds, name)) for verb in ("update", "delete") for name in ("", "x.y"))
    policies = ["crsyncer-robot-crds", "crsyncer-robot-apis"]
    for name in policies:
        spec = one(found, "ValidatingAdmissionPolicy", name)["spec"]
        assert spec["validations"][0]["message"] == "crsyncer: malformed robot identity"
        assert "authorizer" in str(spec)
    assert not [name for name in names(printed(profile=profile), "ValidatingAdmissionPolicy") if name in policies]
    assert "crsyncer:crds" not in names(found, "ClusterRole")
