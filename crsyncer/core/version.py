"""The order of API versions."""

import re

_VERSION = re.compile(r"v([0-9]+)(?:(alpha|beta)([0-9]+))?")


def version_priority(name: str) -> tuple[int, int, int, str]:
    """Sort key of Kubernetes' version priority, best first: v2, v1, v2beta1, v1alpha3, then other names alphabetically.

    Source: Kubernetes documentation, "Versions in CustomResourceDefinitions", version priority.
    """
    match = _VERSION.fullmatch(name)
    if match is None:
        return (3, 0, 0, name)
    stability = {None: 0, "beta": 1, "alpha": 2}[match[2]]
    return (stability, -int(match[1]), -int(match[3] or 0), name)
