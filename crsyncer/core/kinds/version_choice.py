"""The versions of a kind: which one is spoken (S1.5)."""

from collections.abc import Sequence
from dataclasses import replace

from crsyncer.core.kinds.kind_name import version_priority
from crsyncer.core.kinds.kind_policy import KindPolicy, Version


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
