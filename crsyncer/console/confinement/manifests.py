"""What confines robots to their own objects in the cloud, as manifests: namespaces, accounts, roles, policies.

Profile `namespace`: each robot has a namespace, and RBAC ends there, for reads as for writes. Profile `shared`: all
robots read the same namespaces, and only what they write is confined, by admission policies.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from crsyncer.console.confinement.admission_policies import (
    binding,
    kind_policy,
    label_policy,
    publishing_policies,
    token_policy,
)
from crsyncer.console.confinement.manifest_objects import (
    RBAC,
    Manifest,
    account_object,
    account_subject,
    core_object,
    rbac_object,
    role_binding,
    rule,
)
from crsyncer.core.accounts.robot_account import ACCOUNT, ENROLL, NAMESPACE_LABEL, ROBOTS, lacks_status
from crsyncer.core.content.annotations import OURS, SPEC_SOURCE
from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.kinds.read_kind import read_policy
from crsyncer.core.model import Json, Side
from crsyncer.core.requests.calls import API_REVISIONS, API_SETS
from crsyncer.core.requests.calls import CRD_COLLECTION as _CRD
from crsyncer.errors import ConfigError

DEFAULT_QUOTA = 1000
"""Objects of each kind in a robot's namespace."""
_CRDS = "crsyncer:crds"
"""The role of robots that CRDs come to."""
_APIS = "crsyncer:apis"
"""The role of robots that publish CRDs."""
_CLOSED = frozenset({
    "", RBAC, "apiextensions.k8s.io", "admissionregistration.k8s.io", "apiregistration.k8s.io",
    "authentication.k8s.io", "authorization.k8s.io", "certificates.k8s.io",
})  # fmt: skip
"""Groups whose objects decide who may do what: accounts and pods, RBAC, CRDs, webhooks, certificates."""
BUILT_IN = {"configmaps": "ConfigMap", "secrets": "Secret"}
"""The kinds without a CRD whose objects robots may sync all the same."""


class Profile(StrEnum):
    """How robots are kept apart."""

    NAMESPACE = "namespace"
    SHARED = "shared"


@dataclass(frozen=True, slots=True)
class Plan:
    """What to confine: which robots and kinds, and how."""

    robots: tuple[str, ...]
    kinds: tuple[KindPolicy, ...]
    profile: Profile = Profile.NAMESPACE
    namespaces: tuple[str, ...] = ("default",)
    """Profile `shared`: where the objects of all robots are."""
    two_accounts: bool = False
    """The account that reads and writes has short tokens, which another account makes."""
    audit: bool = False
    """The policies deny nothing yet: they warn, and write the audit log."""
    quota: int = DEFAULT_QUOTA
    """Profile `namespace`: how many objects of each kind there may be in a robot's namespace."""


ReadPolicy = Callable[[Json, str], KindPolicy | None]
"""From a robot's CRD and the robot's name to its kind's policy; None: the kind is not synced."""


def confinable(crd: Json, profile: Profile, *, place: str, read: ReadPolicy = read_policy) -> KindPolicy:
    """The policy of a CRD whose kind a robot can be confined to; ConfigError, one line, where it cannot.

    `place` is where the CRD is from, `read` makes the policy of a CRD and a robot's name. That name is not needed:
    admission policies read it from the account.
    """
    try:
        name, spec = str(crd["metadata"]["name"]), crd["spec"]
        group, policy = spec["group"], read(crd, "robot")
    except (KeyError, TypeError, AttributeError):
        raise ConfigError(
            f"{place}: a CustomResourceDefinition is incomplete", hint="one that an API server accepts"
        ) from None
    resource = f"{place}: {name}"
    groups = {name: group} | ({} if policy is None else {policy.in_cloud.resource: policy.in_cloud.group})
    for each, own in groups.items():
        if own in _CLOSED and each not in BUILT_IN:
            text = f"objects of {own or 'the core group'} decide who may do what"
            raise ConfigError(f"{resource} is never synced: {text}")
    if policy is None:
        raise ConfigError(
            f"{resource} is not annotated, so it is not synced",
            hint=f"{SPEC_SOURCE}: cloud or robot, or its SyncPolicy",
        )
    if policy.problem:
        raise ConfigError(f"{resource}: {policy.problem}")
    if profile is Profile.NAMESPACE and not policy.in_cloud.namespaced:
        problem = "is cluster-scoped, so a namespace does not confine it"
        raise ConfigError(f"{resource} {problem}", hint="namespaced kinds, or --profile shared")
    return policy


def unconfined(plan: Plan) -> list[str]:
    """What the manifests cannot keep apart, one sentence each."""
    told = []
    if any(kind.sensitive for kind in plan.kinds):
        token = ", and with them the token of crsyncer-enroll" if plan.two_accounts else ""
        own = plan.profile is Profile.NAMESPACE
        told.append(f"a robot reads all Secrets of the namespaces that it syncs{token if own else ''}")
    if plan.profile is Profile.NAMESPACE:
        return told
    open_to_all = [
        kind.resource for kind in plan.kinds if kind.upstream is Side.CLOUD and not kind.filtered and not kind.related
    ]
    return [
        *told,
        "profile shared: every robot can read the objects of all others",
        *(f"{each} is not filtered by robot name: every robot may write the status of all" for each in open_to_all),
        *(
            f"{kind.resource}: deletion is blocking, and by the patches that it takes every robot can find out what is"
            " in the objects of others"
            for kind in plan.kinds
            if kind.blocking and kind.upstream is Side.CLOUD
        ),
    ]


def manifests(plan: Plan) -> list[Manifest]:
    """Everything to apply, in this order: the policies stand before the rights that they narrow."""
    return [*_places(plan), *_admission(plan), *_roles(plan), *_bindings(plan)]


def _places(plan: Plan) -> Iterator[Manifest]:
    """Namespaces and accounts."""
    if plan.profile is Profile.SHARED:
        yield Manifest("the accounts of all robots", core_object("Namespace", ROBOTS))
        if plan.two_accounts:
            yield Manifest("the accounts that make the robots' tokens", core_object("Namespace", ENROLL))
    for robot in plan.robots:
        namespace, account, enroll_namespace, enroll = _accounts(plan.profile, robot)
        if plan.profile is Profile.NAMESPACE:
            labels = {NAMESPACE_LABEL: robot}
            purpose = f"robot {robot}: everything of it; its agent has --namespace-map {namespace}=ITS-OWN-NAMESPACE"
            yield Manifest(purpose, core_object("Namespace", namespace, labels=labels))
            for kind in plan.kinds:  # one for each: a kind that is added does not touch the others
                quota = core_object("ResourceQuota", f"crsyncer-{kind.in_cloud.resource}", namespace)
                quota["spec"] = {"hard": {f"count/{kind.in_cloud.resource}": str(plan.quota)}}
                yield Manifest(f"robot {robot}: how many {kind.in_cloud.plural} fit into its namespace", quota)
        yield Manifest(f"robot {robot}: the account of its agent", account_object(account, namespace))
        if plan.two_accounts:
            yield Manifest(f"robot {robot}: the account that makes tokens", account_object(enroll, enroll_namespace))
            secret = core_object(
                "Secret", enroll, enroll_namespace, annotations={"kubernetes.io/service-account.name": enroll}
            )
            secret["type"] = "kubernetes.io/service-account-token"
            purpose = "its token, which does not end"
            if plan.profile is Profile.SHARED:  # a token is bound to a Secret in the namespace of its account
                yield Manifest(f"robot {robot}: {purpose}", secret)
                purpose, secret = "its tokens are bound to this", core_object("Secret", account, namespace)
            yield Manifest(f"robot {robot}: {purpose}; delete this to lock the robot out", secret)


def _accounts(profile: Profile, robot: str) -> tuple[str, str, str, str]:
    """The namespace and name of a robot's account, and of the account that makes its tokens.

    In profile `shared` the latter have a namespace of their own: whoever is in the robots' is taken for a robot.
    """
    if profile is Profile.NAMESPACE:
        home = f"robot-{robot}"
        return home, ACCOUNT, home, ENROLL
    return ROBOTS, robot, ENROLL, robot


def _admission(plan: Plan) -> Iterator[Manifest]:
    def both(purpose: str, policy: Json) -> Iterator[Manifest]:
        yield Manifest(purpose, policy)
        yield Manifest(f"{purpose}: in force", binding(policy, audit=plan.audit))

    yield from both("the tokens that a robot's accounts make are its own, short, and revocable", token_policy())
    for kind in plan.kinds:
        yield from both(f"what a robot may write of {kind.in_cloud.plural}", kind_policy(kind))
        # Not of built-in kinds: in every namespace the control plane itself makes some objects of those.
        if plan.profile is Profile.NAMESPACE and kind.filtered and kind.in_cloud.resource not in BUILT_IN:
            yield from both(f"{kind.in_cloud.plural} in a robot's namespace are labelled for it", label_policy(kind))
    if _travelling(plan, Side.ROBOT):
        for policy in publishing_policies():
            yield from both("a robot publishes its own CRDs and changes no others", policy)


def _role_name(plan: Plan, kind: KindPolicy) -> str:
    """The role that gathers what the kinds add to it. Cluster-scoped kinds need one of their own."""
    if plan.profile is Profile.NAMESPACE:
        return "crsyncer:robot"
    return "crsyncer:shared-robot" if kind.in_cloud.namespaced else "crsyncer:shared-robot-cluster"


def _roles(plan: Plan) -> Iterator[Manifest]:
    for name in dict.fromkeys(_role_name(plan, kind) for kind in plan.kinds):
        selectors = [{"matchLabels": {_aggregate(name): "true"}}]
        # Without `rules`: the control plane fills them in, and applying this again shall not empty them for a moment.
        role = rbac_object("ClusterRole", name) | {"aggregationRule": {"clusterRoleSelectors": selectors}}
        yield Manifest("once per cluster: gathers the rights of all kinds", role)
    for kind in plan.kinds:
        name = _role_name(plan, kind)
        labels = {_aggregate(name): "true"}
        role = rbac_object("ClusterRole", f"{name}:{kind.in_cloud.resource}", labels=labels) | {
            "rules": rules(kind, plan.profile)
        }
        yield Manifest(f"once per cluster: what a robot may do with {kind.in_cloud.plural}", role)
    if crds := _travelling(plan, Side.CLOUD):
        reads = [rule(_CRD.group, [_CRD.plural], ["list", "watch"], names=crds)]
        yield Manifest(
            "once per cluster: the CRDs that come to the robots, to read",
            rbac_object("ClusterRole", _CRDS) | {"rules": reads},
        )
    if crds := _travelling(plan, Side.ROBOT):
        publishes = [
            rule(_CRD.group, [_CRD.plural], ["get", "list", "watch", "update"], names=crds),
            rule(_CRD.group, [_CRD.plural], ["create"]),
            rule(API_SETS.group, [API_SETS.plural], ["get", "list", "watch", "create", "update"]),
            rule(API_REVISIONS.group, [API_REVISIONS.plural], ["get", "create"]),
        ]
        yield Manifest(
            "once per cluster: the CRDs that robots publish", rbac_object("ClusterRole", _APIS) | {"rules": publishes}
        )
    for robot in plan.robots if plan.two_accounts else ():
        namespace, account, _, _ = _accounts(plan.profile, robot)
        role = rbac_object("Role", _renew(plan.profile, robot), namespace=namespace)
        role["rules"] = [rule("", ["serviceaccounts/token"], ["create"], names=[account])]
        yield Manifest(f"robot {robot}: making tokens for its account, nothing else", role)


def _travelling(plan: Plan, source: Side) -> list[str]:
    """The CRDs that come from a side, by the field `api` of a SyncPolicy (C8)."""
    apis = {kind.in_cloud.resource: kind.sync_policy.api for kind in plan.kinds if kind.sync_policy is not None}
    return sorted(resource for resource, api in apis.items() if api is not None and api.source is source)


def _crd_roles(plan: Plan) -> Iterator[tuple[str, str]]:
    """The roles about CRDs that travel, and what each is for."""
    if _travelling(plan, Side.CLOUD):
        yield _CRDS, "the CRDs that come from the cloud"
    if _travelling(plan, Side.ROBOT):
        yield _APIS, "the CRDs that it publishes"


def _renew(profile: Profile, robot: str) -> str:
    """The role that makes a robot's tokens; in profile `shared` those of all robots are in one namespace."""
    return "crsyncer:renew" if profile is Profile.NAMESPACE else f"crsyncer:renew:{robot}"


def _aggregate(role: str) -> str:
    return f"{OURS}aggregate-to-{role.removeprefix('crsyncer:')}"


def rules(kind: KindPolicy, profile: Profile) -> list[Json]:
    """What a robot may do with a kind in the cloud, and nothing that the agent does not do (S2.1).

    Not `patch` of statuses in profile `shared`: the `test` operation of a JSON Patch is answered before admission is
    asked, so it would tell what is in other robots' objects.
    """
    has_status = any(version.status for version in kind.versions if version.served)
    reports = ["update", "patch"] if profile is Profile.NAMESPACE else ["update"]
    verbs, status = ["list", "watch"], []
    if kind.upstream is Side.ROBOT:
        verbs += ["create", "update", "delete"]
        status = ["update"] if has_status and (kind.copies_status or not kind.related) else []
    elif not kind.related:  # originals are never written (C5.4)
        verbs += reports if lacks_status(kind) else []
        status = reports if has_status else []
        if kind.blocking and "patch" not in verbs:
            verbs.append("patch")  # for the finalizer, to which an admission policy confines it (C6.5)
    found = [rule(kind.in_cloud.group, [kind.in_cloud.plural], verbs)]
    return [*found, rule(kind.in_cloud.group, [f"{kind.in_cloud.plural}/status"], status)] if status else found


def _bindings(plan: Plan) -> Iterator[Manifest]:
    """RoleBindings: RBAC reads all ClusterRoleBindings on every request, but of RoleBindings one namespace's."""
    if plan.profile is Profile.SHARED:
        yield from _shared_bindings(plan)
    for robot in plan.robots:
        namespace, account, enroll_namespace, enroll = _accounts(plan.profile, robot)
        if plan.profile is Profile.NAMESPACE:
            content = role_binding("crsyncer:robot", namespace, "ClusterRole", account_subject(account, namespace))
            yield Manifest(f"robot {robot}: what its account may do, in its namespace alone", content)
            for role, purpose in _crd_roles(plan):
                content = role_binding(role, "", "ClusterRole", account_subject(account, namespace))
                content["metadata"]["name"] = f"{role}:{robot}"
                yield Manifest(f"robot {robot}: {purpose}", content)
        if plan.two_accounts:
            maker = account_subject(enroll, enroll_namespace)
            content = role_binding(_renew(plan.profile, robot), namespace, "Role", maker)
            yield Manifest(f"robot {robot}: who makes them", content)


def _shared_bindings(plan: Plan) -> Iterator[Manifest]:
    robots: Json = {"kind": "Group", "apiGroup": RBAC, "name": f"system:serviceaccounts:{ROBOTS}"}
    for role, purpose in _crd_roles(plan):
        yield Manifest(f"all robots: {purpose}", role_binding(role, "", "ClusterRole", robots))
    roles = {_role_name(plan, kind): kind.in_cloud.namespaced for kind in plan.kinds}
    for role, namespaced in roles.items():
        for namespace in plan.namespaces if namespaced else ("",):
            where = f"in namespace {namespace}" if namespaced else "with cluster-scoped kinds"
            yield Manifest(f"what all robots may do {where}", role_binding(role, namespace, "ClusterRole", robots))
