"""The acts that a robot's account in the cloud must not be allowed: access reviews have to answer them with no.

The manifests of `crsyncer cloud-manifests` grant none of it. Admission policies are not asked: a review knows RBAC
and whatever else authorizes requests, and no policy. What policies alone refuse of tokens is tried out.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from crsyncer.core.accounts.access import Act
from crsyncer.core.accounts.enrolment import Account, token_request
from crsyncer.core.accounts.robot_account import ACCOUNT, ENROLL, ROBOTS, TOKEN_SECONDS, lacks_status
from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.model import Side
from crsyncer.core.requests.calls import Call

_RBAC = "rbac.authorization.k8s.io"
_ADMISSION = "admissionregistration.k8s.io"
_UNBIND = "bind the account by RoleBindings alone: crsyncer cloud-manifests prints them"


@dataclass(frozen=True, slots=True)
class TokenTrial:
    """A request for a token that the cloud must refuse."""

    account: Account
    seconds: int = TOKEN_SECONDS
    is_bound: bool = True

    @property
    def call(self) -> Call:
        """The request, as a dry run. Where it is not refused, the token is in the answer alone."""
        request = token_request(self.account, seconds=self.seconds, is_bound=self.is_bound)
        return replace(request, query=(("dryRun", "All"),))


@dataclass(frozen=True, slots=True)
class ForbiddenAct:
    """An act that must not be allowed. `namespace` "": in all of them, or the act is about none."""

    act: Act
    danger: str
    """What somebody with the robot's credential could do with it."""
    remedy: str
    namespace: str = ""
    trial: TokenTrial | None = None
    """Where an access review cannot tell, the request itself."""

    def __str__(self) -> str:
        if self.act.verb == "*":
            return f"may do everything: {self.danger}"
        place = f" in namespace {self.namespace}" if self.namespace else "" if self.act.cluster else " everywhere"
        group = f".{self.act.group}" if self.act.group else ""
        resource, slash, subresource = self.act.resource.partition("/")
        name = f" of {self.act.name}" if self.act.name else ""
        return f"may {self.act.verb} {resource}{group}{slash}{subresource}{name}{place}: {self.danger}"


EVERYTHING = ForbiddenAct(
    Act("*", "*", "*", cluster=True),
    "this is an administrator's credential",
    "give the robot an account of its own: crsyncer cloud-manifests prints one",
)
"""Where this is allowed, every other act is allowed, too, and is not reviewed."""


def forbidden_acts(
    policies: Iterable[KindPolicy], *, robot: str, namespaces: Sequence[str]
) -> tuple[ForbiddenAct, ...]:
    """Every forbidden act of a robot that syncs these kinds in these namespaces (none: in all), EVERYTHING aside."""
    places = tuple(namespaces) or ("",)
    kinds = sorted(policies, key=lambda each: each.resource)
    found = [*_of_the_cluster(), *_of_places(places, secrets=any(each.sensitive for each in kinds))]
    for account in (Account(f"robot-{robot}", ACCOUNT, ENROLL), Account(ROBOTS, robot, robot)) if robot else ():
        found += _of_tokens(account)
    for policy in kinds:
        found += _of_kind(policy, places, home=f"robot-{robot}")
    return tuple(dict.fromkeys(found))


def confined_by_admission(policies: Iterable[KindPolicy], *, robot: str, namespaces: Sequence[str]) -> list[str]:
    """The kinds of which only admission policies keep other robots' objects from this robot's writes."""
    shared = tuple(namespaces) != (f"robot-{robot}",)
    return sorted(policy.resource for policy in policies if shared or not policy.in_cloud.namespaced)


def _of_the_cluster() -> Iterator[ForbiddenAct]:
    """Rights over other accounts, other namespaces, and the policies themselves."""

    def forbidden(verb: str, group: str, resource: str, danger: str) -> ForbiddenAct:
        return ForbiddenAct(Act(verb, group, resource, cluster=True), danger, _UNBIND)

    yield ForbiddenAct(Act("list", "", "secrets"), "it shows every credential in the cloud", _UNBIND)
    yield ForbiddenAct(Act("create", "", "serviceaccounts/token"), "it can become any account", _UNBIND)
    for resource in ("users", "groups", "serviceaccounts"):
        yield forbidden("impersonate", "", resource, "it can become anybody")
    for verb in ("create", "update", "patch"):
        for resource in ("clusterrolebindings", "clusterroles"):
            yield forbidden(verb, _RBAC, resource, "it can grant itself more")
    for verb in ("update", "patch", "delete"):
        for resource in ("validatingadmissionpolicies", "validatingadmissionpolicybindings"):
            yield forbidden(verb, _ADMISSION, resource, "it can lift the policies that confine it")
    for verb in ("update", "patch", "delete"):
        danger = "it can change or delete a kind for the whole fleet"
        yield forbidden(verb, "apiextensions.k8s.io", "customresourcedefinitions", danger)
    yield forbidden("delete", "", "namespaces", "it can delete all that a robot has")
    yield forbidden("patch", "", "namespaces", "it can make another robot's namespace its own")


def _of_places(places: Sequence[str], *, secrets: bool) -> Iterator[ForbiddenAct]:
    """Rights in the namespaces that the robot syncs: its objects are its own there, the accounts are not.

    `secrets`: a SyncPolicy has Secrets synced, so they are listed there.
    """
    for place in places:
        for verb in ("get",) if secrets else ("get", "list"):
            yield ForbiddenAct(Act(verb, "", "secrets"), "credentials are kept there", _UNBIND, place)
        yield ForbiddenAct(
            Act("create", "", "serviceaccounts/token"), "it can become any account there", _UNBIND, place
        )
        yield ForbiddenAct(Act("create", "", "pods"), "a pod runs as any account there", _UNBIND, place)
        for verb in ("create", "update", "patch"):
            for resource in ("rolebindings", "roles"):
                yield ForbiddenAct(Act(verb, _RBAC, resource), "it can grant itself more", _UNBIND, place)


def _of_tokens(account: Account) -> Iterator[ForbiddenAct]:
    """Rights over the tokens of the robot's own account: a stolen token or Secret has to end."""
    act = Act("create", "", "serviceaccounts/token", account.name)
    danger = "with a stolen token one makes others, again and again: it never ends"
    remedy = "delete the role crsyncer:renew and its binding; with two accounts bind it to crsyncer-enroll alone"
    yield ForbiddenAct(act, danger, remedy, account.namespace)
    policy = "apply the policy crsyncer-robot-tokens and its binding: crsyncer cloud-manifests prints them"
    for danger, trial in (
        ("a token may live for more than an hour", TokenTrial(account, seconds=2 * TOKEN_SECONDS)),
        ("a token outlives the Secret whose deletion locks the robot out", TokenTrial(account, is_bound=False)),
    ):
        yield ForbiddenAct(act, danger, policy, account.namespace, trial)


def _of_kind(policy: KindPolicy, places: Sequence[str], *, home: str) -> Iterator[ForbiddenAct]:
    """Rights over a synced kind that the agent does not need.

    Where a version lacks the status subresource, only an admission policy keeps the rest of an object from the robot.
    """
    endpoint = policy.in_cloud
    group, plural, cluster = endpoint.group, endpoint.plural, not endpoint.namespaced
    if not cluster:
        danger = "it reads the objects of all robots"
        remedy = f"{_UNBIND}; run the agent with --namespace-map {home}=NAMESPACE, or --namespace {home}"
        for verb in ("list", "watch"):
            yield ForbiddenAct(Act(verb, group, plural), danger, remedy)
    verbs = ["deletecollection"]
    if policy.upstream is Side.CLOUD:
        verbs += ["create", "delete"]
        verbs += ["update", "patch"] if policy.related or not lacks_status(policy) else []
        if policy.blocking:
            verbs = [verb for verb in verbs if verb != "patch"]  # the finalizer takes it (C6.5)
    for place in places if not cluster else ("",):
        for verb in verbs:
            danger = "the agent never does that"
            yield ForbiddenAct(Act(verb, group, plural, cluster=cluster), danger, f"take {verb} from its role", place)
        if place != home and not (policy.blocking and lacks_status(policy)):
            reports = plural if lacks_status(policy) else f"{plural}/status"
            danger = "the test operation of a JSON Patch tells what is in other robots' objects"
            yield ForbiddenAct(Act("patch", group, reports, cluster=cluster), danger, "grant update instead", place)
