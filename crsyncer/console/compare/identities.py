"""Which cluster is upstream's, for commands that read the clusters without the agent (S8.1)."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.model import Side
from crsyncer.ports import Cluster
from crsyncer.runtime.cluster_identity import ClusterIdentity


class _Nothing:
    """What a command remembers of clusters."""

    def get_meta(self, name: str) -> Any:  # noqa: ARG002 - as a MetaStore
        return None

    def put_meta(self, name: str, value: Any) -> None:
        pass


async def identified(
    kinds: Mapping[str, KindPolicy], clusters: Mapping[Side, Cluster], known: Mapping[Side, str]
) -> dict[str, KindPolicy]:
    """The kinds with the identity of upstream's cluster, where their policies may use it; raises SyncError.

    `known` is what the agent of the state directory calls the clusters; the others are asked.
    """
    marked = [kind for kind in kinds.values() if kind.shape.marks is not None]
    sides = sorted({kind.upstream for kind in marked})
    names = {side: known.get(side) or await _identity(side, clusters[side], kinds) for side in sides}
    return dict(kinds) | {
        kind.resource: replace(kind, shape=replace(kind.shape, identity=names[kind.upstream])) for kind in marked
    }


async def _identity(side: Side, cluster: Cluster, kinds: Mapping[str, KindPolicy]) -> str:
    crds = {kind.endpoint(side).resource: None for kind in kinds.values()}
    found = ClusterIdentity(side, cluster=cluster, store=_Nothing(), send=cluster.request, own_crds=lambda: crds)
    await found.is_same(again=True)
    return found.found
