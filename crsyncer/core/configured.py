"""How each kind of a robot is synced: by annotations, by its SyncPolicy, or as the kind of related objects (C1, C5).

A robot without SyncPolicies never imports this.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from crsyncer.core.catalog import PolicyObject, not_trusted, policy_of_kind
from crsyncer.core.kind_policy import KindPolicy
from crsyncer.core.model import Json
from crsyncer.core.namespaces import Namespaces
from crsyncer.core.projection import cloud_resource
from crsyncer.core.relate import RelatedEntry, related_policy
from crsyncer.core.sync_policy import Resource

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
        return related_policy(crd, mine, robot, namespaces=namespaces) if mine else None
    problems = [found.problem, *_shared_problems(found, objects, annotated, policies)]
    if found.sync_policy is not None and found.sync_policy.related:
        problems += _related_problems(objects(name)[0], objects, annotated)
    return replace(found, problem="; ".join(filter(None, problems)))


def name_in_cloud(found: PolicyObject) -> str:
    """What the cloud calls the kind of a SyncPolicy (C7); empty: it cannot be read."""
    return "" if found.policy is None else cloud_resource(found.policy)


@dataclass(frozen=True, slots=True)
class WithoutCrd:
    """The kinds that SyncPolicies name and of which the robot has no CRD, each by its full name (C1.4)."""

    built_in: dict[str, Resource]
    """Discovery has to show whether the robot serves them."""
    to_come: frozenset[str]
    """Their CRDs are to come from the cloud (C8)."""


def without_crd(objects: Iterable[PolicyObject], crds: Container[str]) -> WithoutCrd:
    """The kinds without a CRD; `crds` are the names of the robot's CRDs."""
    policies = [each.policy for each in objects if each.policy is not None]
    to_come = frozenset(
        each.resource.full_name for each in policies if each.api is not None and each.resource.full_name not in crds
    )
    named = [related.resource for each in policies for related in each.related]
    named += [each.resource for each in policies]
    missing = {each.full_name: each for each in named if each.full_name not in crds}
    return WithoutCrd({name: each for name, each in missing.items() if name not in to_come}, to_come)


def _shared_problems(
    found: KindPolicy, objects: Objects, annotated: Annotated, policies: Iterable[PolicyObject]
) -> Iterator[str]:
    """Why a kind cannot be projected: another has the same objects in the cloud, and would undo what it does (C7)."""
    shared = found.in_cloud.resource
    if shared == found.resource:
        return
    others = {each.resource for each in policies if name_in_cloud(each) == shared} - {found.resource}
    if not objects(shared) and annotated(shared):
        others.add(shared)
    for other in sorted(others):
        yield f"{found.resource} and {other} are both {shared} in the cloud; allowed: one of them"


def _related_problems(found: PolicyObject, objects: Objects, annotated: Annotated) -> Iterator[str]:
    """Why the kinds of related objects cannot be that (C1.6, C5.3)."""
    related = found.policy.related if found.policy is not None else ()
    for name in sorted({each.resource.full_name for each in related}):
        if annotated(name) is None and (distrusted := not_trusted(found, name)):
            yield f"SyncPolicy {found.name}: {distrusted}"
        if objects(name) or annotated(name):
            yield f"spec.related of SyncPolicy {found.name}: {name} is synced by itself; allowed: other kinds"
