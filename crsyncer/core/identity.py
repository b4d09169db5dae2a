"""Decides whether the cluster that answers is still the same one (S8.1)."""

from collections.abc import Mapping

Evidence = Mapping[str, str]
"""Evidence of an identity: the uid of kube-system, the uids of CRDs, and (always) a digest of CA and server URL."""

KUBE_SYSTEM = "kube-system"
SERVER = "server"
_CRD = "crd:"


def crd(resource: str) -> str:
    """Under which name the uid of a CRD is evidence."""
    return _CRD + resource


def crds(evidence: Evidence) -> set[str]:
    """The CRDs that are evidence."""
    return {name.removeprefix(_CRD) for name in evidence if name.startswith(_CRD)}


def name_of(evidence: Evidence) -> str:
    """A cluster's name: its strongest evidence."""
    strongest = next((name for name in (KUBE_SYSTEM, *sorted(map(crd, crds(evidence)))) if name in evidence), SERVER)
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
    if KUBE_SYSTEM in known and KUBE_SYSTEM in found:
        return known[KUBE_SYSTEM] == found[KUBE_SYSTEM]
    if common := crds(known) & crds(found):
        return any(known[crd(resource)] == found[crd(resource)] for resource in common)
    return known.get(SERVER) in (None, found[SERVER])


def merged(known: Evidence, found: Evidence) -> dict[str, str]:
    """The evidence after another look: weaker evidence never replaces stronger.

    Where kube-system can be read, CRDs are not read any more, so their uids go out of date.
    """
    return dict(found) if KUBE_SYSTEM in found else {**known, **found}
