"""What the controller's account must be allowed to do, and nothing that the controller does not do (F2.5).

Nobody is given the right to write placements, FieldStrips or properties: who has it decides what robots get.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from crsyncer.core.reports.robot_report import ROBOT_SYNC_STATES
from crsyncer.core.requests.calls import CRD_COLLECTION, SYNC_POLICIES
from crsyncer.fleet.domain.lease import LEASE
from crsyncer.fleet.domain.values import GROUP, PROPERTIES_NAMESPACE, PlacedKind

_READ = ("get", "list", "watch")
_AT_SHARDS = (
    CRD_COLLECTION.plural,
    SYNC_POLICIES.plural,
    ROBOT_SYNC_STATES.plural,
    "robotobjectstatuses",
    "namespaces",
)


@dataclass(frozen=True, slots=True)
class Right:
    """Verbs for one resource, which may have a subresource."""

    group: str
    resource: str
    verbs: tuple[str, ...]
    namespace: str = ""
    """Where; empty: everywhere, or its objects have no namespace."""
    names: tuple[str, ...] = ()
    """Of which objects alone; empty: of all."""


def own_rights(*, controller_namespace: str, robots: str) -> tuple[Right, ...]:
    """The rights that the controller needs whatever it places. `robots` is the kind of the robots, RESOURCE.GROUP.

    Robots are read everywhere: which namespace has them is a setting.
    """
    plural, _, group = robots.partition(".")
    lease = Right("coordination.k8s.io", "leases", ("get", "update"), controller_namespace, (LEASE,))
    return (
        Right(CRD_COLLECTION.group, CRD_COLLECTION.plural, _READ),
        Right(SYNC_POLICIES.group, SYNC_POLICIES.plural, _READ),
        Right(GROUP, "robotplacements", (*_READ, "patch")),  # the finalizer, and the annotation of a release
        Right(GROUP, "robotplacementdecisions", (*_READ, "create", "update", "patch", "delete")),
        Right(GROUP, "combinedstatuses", (*_READ, "create", "update", "delete")),
        Right(GROUP, "fieldstrips", _READ),
        Right(GROUP, "statuscollectors", _READ),
        Right(GROUP, "robotsyncstates", _READ),
        Right(GROUP, "robotobjectstatuses", _READ),
        *(
            Right(GROUP, f"{each}/status", ("patch",))
            for each in ("robotplacements", "fieldstrips", "statuscollectors")
        ),
        Right("", "namespaces", ("get",), names=("kube-system",)),  # its uid tells which cluster this is (S8.1)
        Right("", "namespaces", ("create",)),  # of robots, where they are missing (F5.5)
        Right(group, plural, _READ),
        Right("", "configmaps", _READ, PROPERTIES_NAMESPACE),
        lease,
        replace(lease, verbs=("create",), names=()),  # RBAC does not know the name of what is created
    )


def shard_rights(kinds: Iterable[PlacedKind]) -> Iterator[Right]:
    """The rights at a shard beside the root, which has kinds, replicas and reports alone (F10.2)."""
    yield from (each for each in own_rights(controller_namespace="", robots="") if each.resource in _AT_SHARDS)
    yield from kind_rights(replace(kind, has_status=False) for kind in kinds)


def kind_rights(kinds: Iterable[PlacedKind]) -> Iterator[Right]:
    """The rights for kinds that are placed: their sources and replicas are in many namespaces."""
    for kind in kinds:
        yield Right(kind.group, kind.plural, (*_READ, "create", "patch", "delete"))
        if kind.has_status and not kind.shared:
            yield Right(kind.group, f"{kind.plural}/status", ("patch",))  # of a Singleton (F6.2)
