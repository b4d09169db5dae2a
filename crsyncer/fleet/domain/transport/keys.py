"""What sources and replicas are known by, and how a kind of one API server is told from that of another (F2.4, F10)."""

from enum import StrEnum
from typing import NamedTuple

from crsyncer.core.content.annotations import ROOT as ROOT


class Target(StrEnum):
    """Where replicas are."""

    PER_ROBOT = "PerRobot"
    """In the robot's namespace, by the source's name."""
    SAME = "Same"
    """Beside the source, by the source's and the robot's name."""
    SHARED = "Shared"
    """On each other shard, by the source's namespace and name, for all robots there (F10.3)."""


class SourceKey(NamedTuple):
    """An object that a user edits, or a template: a manifest in a placement, which is then named as well."""

    resource: str
    namespace: str
    name: str
    placement: str = ""

    @property
    def text(self) -> str:
        """NAMESPACE/NAME, of a template PLACEMENT/NAME; of a cluster-scoped object its name."""
        first = self.placement or self.namespace
        return f"{first}/{self.name}" if first else self.name


class ReplicaKey(NamedTuple):
    """A source, a robot and a target have one replica on each shard, of which one is the robot's own (F2.4, F10.2).

    A copy of a Shared source is for no robot (""). With a robot it means what that robot returns of the source or copy
    of its shard (F10.3).
    """

    resource: str
    source_id: str
    robot: str
    target: Target
    shard: str = ROOT
    """The API server where it is."""

    @property
    def kind(self) -> str:
        """Its kind at its API server."""
        return at(self.shard, self.resource)

    @property
    def unit(self) -> str:
        """Whose replica it is: the robot, or /SHARD of a copy that all robots of a shard have."""
        return self.robot or shard_unit(self.shard)

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """What is the same on each shard."""
        return self.resource, self.source_id, self.robot, self.target


def shard_unit(shard: str) -> str:
    """What the copies on a shard are counted for: no robot has such a name."""
    return f"/{shard}"


def at(shard: str, name: str) -> str:
    """A kind, or an input, of one API server: what is listed and alive is remembered by it. At the root: its name."""
    return name if shard == ROOT else f"{shard}/{name}"


def split(name: str) -> tuple[str, str]:
    """The shard and the kind of a name that `at` has made."""
    shard, _, kind = name.rpartition("/")
    return shard or ROOT, kind


def on_shard(name: str) -> str:
    """The same for people."""
    shard, kind = split(name)
    return name if shard == ROOT else f"{kind} on shard {shard}"
