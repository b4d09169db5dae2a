"""A refusal (403) of an account that `crsyncer cloud-manifests` confines: the agent asks beyond its namespace."""

import re

_REFUSAL = re.compile(
    r'User "system:serviceaccount:(?P<own>robot-[-a-z0-9]+):crsyncer" cannot \w+ resource "[^"]*"'
    r'(?: in API group "[^"]*")? (?:at the cluster scope|in the namespace "(?P<asked>[^"]*)")'
)
"""How API servers word it (apiserver, `forbiddenMessage` in handlers/responsewriters/errors.go)."""


def confined_hint(refusal: str) -> str:
    """What to set where an account of one namespace asks for another, or for all; "" where that is not the cause.

    More rights for the account would let this robot read the objects of the others.
    """
    found = _REFUSAL.search(refusal)
    if found is None or found["asked"] == found["own"]:
        return ""
    return settings_hint(found["own"])


def settings_hint(namespace: str) -> str:
    """The settings of an agent whose account has this namespace of the cloud and no other."""
    return (
        f"the account may read {namespace} alone, as it should: set namespaces: [{namespace}], or namespaceMap:"
        f" {{{namespace}: NAMESPACE}} where the robot's is another"
    )
