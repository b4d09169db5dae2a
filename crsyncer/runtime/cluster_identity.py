"""The identity of the cluster behind one server: recorded at the first connection, compared at later ones (S8.1).

In a workspace of kcp the ID of the logical cluster is the identity, and stays when kcp moves it to another shard (C9).
"""

from collections.abc import Callable, Mapping

from crsyncer.core.model import Json
from crsyncer.core.requests import calls
from crsyncer.core.requests.answers import is_inconclusive, shown
from crsyncer.core.requests.calls import PARTIAL, Call
from crsyncer.core.watching.identity import (
    KCP,
    KCP_PATH,
    KUBE_SYSTEM,
    SERVER,
    Evidence,
    crd,
    crds,
    evidence_in,
    is_enough,
    is_logical_cluster,
    is_unique,
    logical_cluster,
    merged,
    name_of,
    same_cluster,
)
from crsyncer.errors import Unsure
from crsyncer.ports import Cluster, MetaStore, Reply, Send
from crsyncer.runtime.probe import no_answer

_DEFAULT = Call("get", "GET", "/api/v1/namespaces/default", accept=PARTIAL, timeout=20.0)
_LOGICAL_CLUSTER = Call(
    "get", "GET", "/apis/core.kcp.io/v1alpha1/logicalclusters/cluster", accept=PARTIAL, timeout=20.0
)
_KUBE_SYSTEM = Call("get", "GET", "/api/v1/namespaces/kube-system", accept=PARTIAL, timeout=20.0)


class ClusterIdentity:
    """Reads the evidence of a cluster's identity, and records it. `send` sends a request to the cluster.

    `own_crds` returns the CRDs by name whose uids may identify the cluster, each with a list of one object if known.
    """

    def __init__(
        self,
        name: str,
        *,
        cluster: Cluster,
        store: MetaStore,
        send: Send,
        own_crds: Callable[[], Mapping[str, Call | None]],
    ) -> None:
        self.recorded: str | None = store.get_meta(f"identity:{name}")
        """The identity at the first connection. Cursors carry it, whatever is learned later (S6.2)."""
        self._name = name
        self._cluster = cluster
        self._store = store
        self._send = send
        self._own_crds = own_crds
        self.is_logical = is_logical_cluster(cluster.server)
        """Whether the server is a logical cluster of kcp (C9.1)."""
        self._known: Evidence = store.get_meta(f"evidence:{name}") or evidence_in(self.recorded)
        self._found: Evidence = {}
        self._asked: set[str] = set()
        """The CRDs whose uids have been read, and the lists of objects that there were then."""

    @property
    def strongest(self) -> str | None:
        """The strongest known evidence; None before the first connection."""
        return name_of(self._known) if self._known else None

    @property
    def path(self) -> str:
        """The path of the logical cluster of kcp; empty: it is none, or its path cannot be read (C9.1)."""
        return self._known.get(KCP_PATH, "")

    @property
    def found(self) -> str:
        """The strongest evidence that was last read."""
        return name_of(self._found)

    async def is_same(self, *, again: bool) -> bool:
        """Whether the cluster is the one that it was. Raises Unsure when that is not known.

        Evidence is read where it is wanted `again`, or new CRDs may have some.
        """
        if again or (not is_unique(self._found) and not self._asked.issuperset(self._sources())):
            self._found = await self._read()
        return same_cluster(self._known, self._found)

    def remember(self) -> None:
        """The same cluster was found: add the evidence to what is known."""
        if self.recorded is None:
            self._record(self.found)
        self._know(merged(self._known, self._found))

    def accept(self) -> None:
        """The cluster that was found is the right one (S8.3)."""
        self._record(self.found)
        self._know(self._found)

    def forget_crd(self, resource: str) -> None:
        """A kind was seen to be missing: its CRD may come back as another, and the cluster is the same."""
        self._know({name: uid for name, uid in self._known.items() if name != crd(resource)})

    async def _read(self) -> Evidence:
        """The ID of the logical cluster, the uid of kube-system; where that is not enough, the uids of CRDs.

        Of CRDs the known ones are read until one is as it was.
        """
        found = {SERVER: self._cluster.fallback_identity}
        is_young = False
        if self.is_logical:
            reply = await self._get(_DEFAULT)
            if reply.status == 200:
                found |= logical_cluster(shown(reply.body))
            if KCP_PATH not in found and KCP_PATH not in self._known:
                found |= await self._read_path()
            if reply.status == 200 and is_enough(self._known, found):
                return found
            is_young = reply.status == 404 and bool(reply.body) and KCP in self._known
        reply = await self._get(_KUBE_SYSTEM)
        if reply.status == 200:
            found |= self._evidence(KUBE_SYSTEM, shown(reply.body))
            if is_enough(self._known, found):
                return found
        elif reply.status == 404 and reply.body and KUBE_SYSTEM in self._known:
            # A server answers before it has made its namespaces, and only those identify it.
            raise _no_namespace("kube-system")
        await self._read_crds(found)
        if self.is_logical and KCP not in found:
            found |= await self._read_objects()
        if is_young and KCP not in found:
            raise _no_namespace("default")
        return found

    async def _read_path(self) -> Evidence:
        """What the object of the logical cluster says; nothing where it cannot be read, for nothing depends on it."""
        reply = await self._send(_LOGICAL_CLUSTER)
        metadata = reply.body.get("metadata") if reply.status == 200 else None
        return logical_cluster(metadata) if isinstance(metadata, dict) else {}

    async def _read_objects(self) -> Evidence:
        """What the first object says that can be read: kcp annotates every object that it serves."""
        for call in filter(None, self._own_crds().values()):
            reply = await self._get(call)
            items = reply.body.get("items") if reply.status == 200 else None
            if isinstance(items, list) and items and isinstance(items[0], dict):
                metadata = items[0].get("metadata")
                return logical_cluster(metadata) if isinstance(metadata, dict) else {}
        return {}

    async def _read_crds(self, found: dict[str, str]) -> None:
        """Add the uids of CRDs to what was found."""
        known = crds(self._known)
        self._asked = self._sources()
        proven = False
        for resource in sorted(self._own_crds().keys() | known, key=lambda name: (name not in known, name)):
            if proven and resource in known:
                continue
            reply = await self._get(calls.crd(resource))
            if reply.status == 200:
                found |= self._evidence(crd(resource), shown(reply.body))
                proven = proven or self._known.get(crd(resource)) == found[crd(resource)]
            elif reply.status != 404:
                break  # forbidden, and each further request would cost a slow connection as much

    def _sources(self) -> set[str]:
        """What may have evidence: CRDs, and in a workspace of kcp every object."""
        own = self._own_crds()
        lists = {call.path for call in own.values() if call is not None} if self.is_logical else set()
        return own.keys() | lists

    def _evidence(self, sort: str, metadata: Json) -> Evidence:
        """The evidence in an object of a sort."""
        return {sort: str(metadata["uid"]), **(logical_cluster(metadata) if self.is_logical else {})}

    async def _get(self, call: Call) -> Reply:
        reply = await self._send(call)
        if is_inconclusive(reply.status):
            raise no_answer(reply)
        return reply

    def _record(self, identity: str) -> None:
        self.recorded = identity
        self._store.put_meta(f"identity:{self._name}", identity)

    def _know(self, evidence: Evidence) -> None:
        if evidence != self._known:
            self._known = evidence
            self._store.put_meta(f"evidence:{self._name}", dict(evidence))


def _no_namespace(name: str) -> Unsure:
    return Unsure(f"the cluster has no namespace {name} yet", hint="is it just being set up, or restored?")
