"""The versions of a kind: their order, and the one that is spoken (S1.5)."""

import re
from collections.abc import Sequence
from dataclasses import replace

from crsyncer.core.kinds.kind_policy import KindPolicy, Version

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


def choose_version(policy: KindPolicy, cloud_versions: frozenset[str] | None) -> str | None:
    """The version to speak (S1.5); None when both sides have none in common.

    `cloud_versions` is None where the cloud forbids discovery: then the robot's storage version is tried. A storage
    version that the robot does not serve (it may be a former one) cannot be spoken.
    """
    storage = next(v.name for v in policy.versions if v.storage)
    served = [v.name for v in policy.versions if v.served]
    both = [name for name in served if cloud_versions is None or policy.cloud_version(name) in cloud_versions]
    if storage in both:
        return storage
    return min(both, key=version_priority, default=storage if cloud_versions is None else None)


def pinned(name: str, versions: Sequence[Version]) -> tuple[Version, ...]:
    """The one version to speak, as if objects were stored in it; none, where it is not served."""
    return tuple(replace(each, storage=True) for each in versions if each.name == name and each.served)
