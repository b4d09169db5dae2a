"""Decides whether the cluster that answers is still the same one (S8.1, C9.1)."""

import re
from collections.abc import Mapping

from crsyncer.core.model import Json

Evidence = Mapping[str, str]
"""Evidence of an identity, by sort: the ID of a logical cluster of kcp, the uid of kube-system, the uids of CRDs, and
(always) a digest of CA and server URL. The path of the logical cluster comes with it, and proves nothing.
"""

KCP = "kcp"
KCP_PATH = "kcp-path"
KUBE_SYSTEM = "kube-system"
SERVER = "server"
_CRD = "crd:"
_UNIQUE = (KCP, KUBE_SYSTEM)
"""The sorts that identify a cluster by themselves, strongest first."""
_LOGICAL_CLUSTER = re.compile(r"https://[^/]+(/services/.+)?/clusters/[^/]+")
_ANNOTATIONS = {KCP: "kcp.io/cluster", KCP_PATH: "kcp.io/path"}


def is_logical_cluster(server: str) -> bool:
    """Whether the URL of a server names a logical cluster of kcp (kcp's documentation, "Workspaces")."""
    return _LOGICAL_CLUSTER.match(server) is not None


def logical_cluster(metadata: Json) -> Evidence:
    """The ID of the logical cluster that an object is in, with which kcp annotates every object; of some, its path."""
    annotations = metadata.get("annotations")
    found = annotations if isinstance(annotations, dict) else {}
    return {sort: text for sort, key in _ANNOTATIONS.items() if (text := found.get(key)) and isinstance(text, str)}


def crd(resource: str) -> str:
    """Under which name the uid of a CRD is evidence."""
    return _CRD + resource


def crds(evidence: Evidence) -> set[str]:
    """The CRDs that are evidence."""
    return {name.removeprefix(_CRD) for name in evidence if name.startswith(_CRD)}


def name_of(evidence: Evidence) -> str:
    """A cluster's name: its strongest evidence."""
    strongest = next((name for name in (*_UNIQUE, *sorted(map(crd, crds(evidence)))) if name in evidence), SERVER)
    return f"{strongest}:{evidence[strongest]}"


def evidence_in(name: str | None) -> dict[str, str]:
    """The evidence in a cluster's name."""
    if name is None:
        return {}
    evidence, _, uid = name.rpartition(":")
    return {evidence: uid}


def same_cluster(known: Evidence, found: Evidence) -> bool:
    """Judge by the strongest sort of evidence that both have.

    A change of permissions does not mean another cluster. One CRD with the same uid proves that it is the same cluster,
    because uids are never reused; another CRD may have been re-created meanwhile.
    """
    for sort in _UNIQUE:
        if sort in known and sort in found:
            return known[sort] == found[sort]
    if common := crds(known) & crds(found):
        return any(known[crd(resource)] == found[crd(resource)] for resource in common)
    return known.get(SERVER) in (None, found[SERVER])


def is_unique(evidence: Evidence) -> bool:
    """Whether it identifies a cluster without its CRDs."""
    return any(sort in evidence for sort in _UNIQUE)


def is_enough(known: Evidence, found: Evidence) -> bool:
    """Whether nothing else has to be read: what was found is unique, and can be compared if anything better than the
    server's URL is known.
    """
    comparable = any(sort in known and sort in found for sort in _UNIQUE)
    return comparable or (is_unique(found) and known.keys() <= {SERVER})


def merged(known: Evidence, found: Evidence) -> dict[str, str]:
    """The evidence after another look: weaker evidence never replaces stronger.

    Where unique evidence can be read, CRDs are not read any more, so their uids go out of date.
    """
    stale = {crd(resource) for resource in crds(known)} if is_unique(found) else set()
    return {name: value for name, value in {**known, **found}.items() if name in found or name not in stale}
