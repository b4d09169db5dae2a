"""How each kind of a robot is synced: by annotations, by its SyncPolicy, or as the kind of related objects (C1, C5)."""

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from crsyncer.core.kinds.kind_name import Resource
from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.kinds.merge_settings import PolicyObject, not_trusted, policy_of_kind
from crsyncer.core.kinds.namespaces import Namespaces
from crsyncer.core.kinds.projection import cloud_resource
from crsyncer.core.kinds.related_entry import RelatedEntry
from crsyncer.core.kinds.sync_policy import Related, SyncPolicy
from crsyncer.core.model import Json
from crsyncer.core.related.relate import related_policy
from crsyncer.core.reports.facts import POLICY_RULE

Objects = Callable[[str], Sequence[PolicyObject]]
"""From the name of a kind to the SyncPolicies for it."""
Annotated = Callable[[str], bool | None]
"""From the name of a kind to whether its CRD is annotated; None: the robot has no such CRD."""


def configured_kind(
    crd: Json,
    robot: str,
    *,
    namespaces: Namespaces,
    objects: Objects,
    annotated: Annotated,
    policies: Iterable[PolicyObject],
    entries: Iterable[RelatedEntry],
) -> KindPolicy | None:
    """How a kind is synced, by its CRD or what stands for one; None: not at all.

    `policies` are all SyncPolicies, `entries` those of all that are followed.
    """
    name = crd["metadata"]["name"]
    found = policy_of_kind(crd, robot, namespaces=namespaces, objects=objects(name))
    if found is None:
        mine = [each for each in entries if each.resource == name]
        return replace(related_policy(crd, mine, robot, namespaces=namespaces), rule=POLICY_RULE) if mine else None
    problems = [found.problem, *_shared_problems(found, objects, annotated, policies)]
    if found.sync_policy is not None and found.sync_policy.related:
        problems += _related_problems(objects(name)[0], objects, annotated, policies)
    return replace(found, problem="; ".join(filter(None, problems)), rule=POLICY_RULE if objects(name) else found.rule)


def names_in_cloud(found: PolicyObject) -> frozenset[tuple[str, str]]:
    """The kinds that a SyncPolicy names, each by its names on the robot and in the cloud (C7)."""
    named: list[SyncPolicy | Related] = [] if found.policy is None else [found.policy, *found.policy.related]
    return frozenset((each.resource.full_name, cloud_resource(each)) for each in named)


@dataclass(frozen=True, slots=True)
class WithoutCrd:
    """The kinds that SyncPolicies name and of which the robot has no CRD, each by its full name (C1.4)."""

    built_in: dict[str, Resource]
    """Discovery has to show whether the robot serves them."""
    to_come: frozenset[str]
    """Their CRDs are to come from the cloud (C8)."""


def without_crd(objects: Iterable[PolicyObject], crds: Container[str]) -> WithoutCrd:
    """The kinds without a CRD; `crds` are the names of the robot's CRDs.

    Those of policies that cannot be read are among them, for these are `misconfigured`, and not gone (C1.3).
    """
    objects = list(objects)
    policies = [each.policy for each in objects if each.policy is not None]
    to_come = frozenset(
        each.resource.full_name for each in policies if each.api is not None and each.resource.full_name not in crds
    )
    named = [related.resource for each in policies for related in each.related]
    named += [each.named for each in objects if each.named is not None and each.is_for(each.resource)]
    missing = {each.full_name: each for each in named if each.full_name not in crds}
    return WithoutCrd({name: each for name, each in missing.items() if name not in to_come}, to_come)


def _shared_problems(
    found: KindPolicy, objects: Objects, annotated: Annotated, policies: Iterable[PolicyObject]
) -> Iterator[str]:
    """Why a kind cannot be projected: another has the same objects in the cloud, and would undo what it does (C7)."""
    for other in _others(found.resource, found.in_cloud.resource, objects, annotated, policies):
        yield _both(found.resource, other, found.in_cloud.resource)


def _others(
    resource: str, shared: str, objects: Objects, annotated: Annotated, policies: Iterable[PolicyObject]
) -> list[str]:
    """The other kinds that are `shared` in the cloud, if a kind is projected to that."""
    if shared == resource:
        return []
    others = {name for each in policies for name, in_cloud in names_in_cloud(each) if in_cloud == shared}
    if not objects(shared) and annotated(shared):
        others.add(shared)
    return sorted(others - {resource})


def _both(one: str, other: str, in_cloud: str) -> str:
    return f"{one} and {other} are both {in_cloud} in the cloud; allowed: one of them"


def _related_problems(
    found: PolicyObject, objects: Objects, annotated: Annotated, policies: Iterable[PolicyObject]
) -> Iterator[str]:
    """Why the kinds of related objects cannot be that (C1.6, C5.3, C7)."""
    related = found.policy.related if found.policy is not None else ()
    for name, in_cloud in sorted({(each.resource.full_name, cloud_resource(each)) for each in related}):
        if annotated(name) is None and (distrusted := not_trusted(found, name)):
            yield f"SyncPolicy {found.name}: {distrusted}"
        if objects(name) or annotated(name):
            yield f"spec.related of SyncPolicy {found.name}: {name} is synced by itself; allowed: other kinds"
        for other in _others(name, in_cloud, objects, annotated, policies):
            yield f"spec.related of SyncPolicy {found.name}: {_both(name, other, in_cloud)}"
