"""What the agent's accounts must be allowed to do, as requests that an access review can judge (S2.1, S4.2)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.model import Side
from crsyncer.core.requests.calls import SYNC_POLICIES


@dataclass(frozen=True, slots=True)
class Act:
    """Something an account does, as RBAC names it; `resource` may have a subresource, `name` is that of one object."""

    verb: str
    group: str
    resource: str
    name: str = ""
    cluster: bool = False
    """It is about no namespace, whatever the agent is restricted to."""


@dataclass(frozen=True, slots=True)
class Need:
    """Acts of which one is enough."""

    acts: tuple[Act, ...]
    unless: str = ""
    """What becomes worse without it; empty: nothing works."""
    is_comfort: bool = False
    """Nothing that is synced becomes worse, so the set-up is healthy without it."""

    @property
    def verbs(self) -> str:
        """The verbs, as a sentence has them."""
        return " or ".join(act.verb for act in self.acts)


OWN_NEEDS = (
    *(Need((Act(v, "apiextensions.k8s.io", "customresourcedefinitions", cluster=True),)) for v in ("list", "watch")),
    Need(
        (Act("get", "", "namespaces", "kube-system", cluster=True),),
        unless="a rebuilt cluster is recognised by its CA and address alone",
    ),
    Need(
        (Act("create", "", "namespaces", cluster=True),),
        unless="copies wait until somebody creates their namespace",
    ),
    *(
        Need(
            (Act(verb, "events.k8s.io", "events"),),
            unless="kubectl describe shows no events of crsyncer",
            is_comfort=True,
        )
        for verb in ("create", "patch")
    ),
)
"""On the robot, whatever is synced."""


_POLICIES = (SYNC_POLICIES.group, SYNC_POLICIES.plural)
POLICY_NEEDS = (
    *(Need((Act(verb, *_POLICIES, cluster=True),)) for verb in ("list", "watch")),
    Need(
        (Act("patch", _POLICIES[0], f"{_POLICIES[1]}/status", cluster=True),),
        unless="SyncPolicies do not show whether they are followed",
        is_comfort=True,
    ),
)
"""On the robot, where it has the CRD of SyncPolicies."""


def needs(policy: KindPolicy, side: Side) -> tuple[Need, ...]:
    """What a kind needs on a side."""
    endpoint = policy.endpoint(side)
    status = f"{endpoint.plural}/status" if endpoint.status else endpoint.plural

    def one(verb: str, resource: str = endpoint.plural, *, unless: str = "") -> Need:
        return Need((Act(verb, endpoint.group, resource, cluster=not endpoint.namespaced),), unless=unless)

    found = [one("list"), one("watch")]
    if side is policy.upstream:
        if policy.related:  # originals are never written (C5.4)
            return tuple(found)
        either = [one(verb, status).acts[0] for verb in ("patch", "update")]
        finalizer = [one("patch")] if policy.blocking else []
        return (*found, Need(tuple(either)), *finalizer)
    if side is Side.ROBOT:
        # In the cloud nothing is ever read by name.
        found.append(one("get", unless="a copy that lost its label is not found again"))
    found += [one(verb) for verb in ("create", "update", "delete") if verb != "delete" or not policy.keep_copies]
    if policy.copies_status:
        found.append(one("update", status, unless="the statuses of related objects are not copied"))
    elif endpoint.status and not policy.related:
        found.append(one("update", status, unless="a copy that is made again does not get its last status back"))
    return tuple(found)


def needs_text(needed: Sequence[Need]) -> str:
    """Needs as a list for people: `create, delete goals; patch or update goals/status`."""
    return "; ".join(_by_resource(needed))


def _by_resource(needed: Sequence[Need]) -> Iterator[str]:
    resources = dict.fromkeys(need.acts[0].resource for need in needed)
    for resource in resources:
        verbs = [need.verbs for need in needed if need.acts[0].resource == resource]
        yield f"{', '.join(verbs)} {resource}"
