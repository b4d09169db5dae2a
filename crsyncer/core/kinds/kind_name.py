"""A kind by the name that people and discovery know it by, and the order of its versions."""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind, by the robot's names. Without a version it is agreed on (S1.5)."""

    group: str
    resource: str
    version: str | None = None

    @property
    def full_name(self) -> str:
        """Such as goals.lab.example.com, or configmaps: the name of its CRD, where it has one."""
        return f"{self.resource}.{self.group}".rstrip(".")


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
