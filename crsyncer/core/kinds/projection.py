"""How the cloud serves a kind where a SyncPolicy says what differs there (C7). There is no conversion."""

from dataclasses import replace

from crsyncer.core.content.template import HASH, NAME, NAMESPACE, Template
from crsyncer.core.kinds.kind_name import Resource
from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.kinds.namespaces import EVERYWHERE
from crsyncer.core.kinds.sync_policy import CLOSED_GROUPS, Projection, Related, SyncPolicy


def projected(policy: KindPolicy, projection: Projection) -> KindPolicy:
    """The policy of a kind that the cloud serves so. Until discovery shows them, kind and scope are the robot's."""
    robots = policy.on_robot
    in_cloud = replace(
        robots,
        group=robots.group if projection.group is None else projection.group,
        plural=projection.resource or robots.plural,
        kind=projection.kind or robots.kind,
        namespaced=robots.namespaced if projection.namespaced is None else projection.namespaced,
    )
    found = replace(policy, in_cloud=in_cloud, projected=projection)
    problems = [policy.problem, scope_problem(found)]
    if in_cloud.group in CLOSED_GROUPS or in_cloud.resource == "namespaces":
        allowed = f"neither namespaces nor kinds of {' and '.join(CLOSED_GROUPS)}"
        problems.append(f"by {_field(policy, 'projection')} it is {in_cloud.resource} in the cloud; allowed: {allowed}")
    return replace(found, problem="; ".join(filter(None, problems)))


def cloud_resource(named: SyncPolicy | Related) -> str:
    """The full name in the cloud of the kind of a policy, or of related objects."""
    own, projection = named.resource, named.projection or Projection()
    group = own.group if projection.group is None else projection.group
    return Resource(group, projection.resource or own.resource).full_name


def discovered(policy: KindPolicy, *, kind: str, namespaced: bool) -> KindPolicy | str:
    """The policy with the kind and scope that the cloud shows; or why it cannot be followed with these (C7)."""
    found = replace(policy, in_cloud=replace(policy.in_cloud, kind=kind, namespaced=namespaced))
    given, resource = policy.projected or Projection(), policy.in_cloud.resource
    if given.kind and given.kind != kind:
        place = _field(policy, "projection.kind")
        return f"{place} is {given.kind}, but the kind of {resource} in the cloud is {kind}"
    if given.namespaced not in (None, namespaced):
        place = _field(policy, "projection.scope")
        return f"{place} is {policy.in_cloud.scope}, but the scope of {resource} in the cloud is {found.in_cloud.scope}"
    return scope_problem(found) or found


def scope_problem(policy: KindPolicy) -> str:
    """Why copies in the other scope could not have names of their own (C7); empty: they can, or there is none."""
    if not policy.changes_scope:
        return ""
    namings = [each.naming for each in policy.related] or [policy.naming]
    if policy.namespaced:
        if not all(each is not None and each.name.placeholders & {NAMESPACE, HASH} for each in namings):
            place = _field(policy, "naming.name")
            return f"{place} has neither {{namespace}} nor {{hash}}; a cluster-scoped copy needs one of them"
    elif not all(each is not None and _is_fixed(each.namespace) for each in namings):
        place = _field(policy, "naming.namespace")
        return f"{place} is not fixed; the copy of a cluster-scoped object needs one namespace"
    elif policy.namespaces != EVERYWHERE:
        place = _field(policy, "naming.namespace")
        return f"{place} is for the copies of cluster-scoped objects, but this agent is confined to namespaces"
    return ""


def _field(policy: KindPolicy, name: str) -> str:
    """A field of the SyncPolicy that has the projection."""
    own = policy.sync_policy
    if own is not None:
        return f"spec.{name} of SyncPolicy {own.name}"
    entry = policy.related[0]
    return f"spec.related, {name} of {entry.related.id}, of SyncPolicy {entry.policy}"


def _is_fixed(template: Template) -> bool:
    """Whether it makes the same of every object."""
    own = template.placeholders
    return not own & {NAMESPACE, NAME, HASH} and not any(text.startswith("/") for text in own)
