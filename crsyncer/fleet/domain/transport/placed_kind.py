"""A kind as an API server of the cloud serves it, and whether its objects may be placed (F2.3)."""

from dataclasses import dataclass, replace
from enum import StrEnum

from crsyncer.fleet.domain.transport.keys import ROOT, at, on_shard


class Verdict(StrEnum):
    """Whether the objects of a kind may be placed (F2.3). The reason of `Resolved=False` otherwise."""

    PLACEABLE = "Placeable"
    NOT_SERVED = "NotServed"
    NOT_PLACEABLE = "NotPlaceable"


@dataclass(frozen=True, slots=True)
class PlacedKind:
    """A kind as an API server of the cloud serves it."""

    resource: str
    """The full name, such as goals.lab.example.com or configmaps."""
    group: str
    plural: str
    kind: str
    version: str
    namespaced: bool
    has_status: bool = True
    verdict: Verdict = Verdict.PLACEABLE
    """For the mode that its objects may be placed in."""
    message: str = ""
    """Why it is not placeable, or not in mode Replica."""
    shared: bool = False
    """All robots get its objects, by spec-source cloud without a filter: they are placed in mode Shared alone."""
    sensitive: bool = False
    """Its objects are Secrets: no value of theirs is shown anywhere."""
    shard: str = ROOT

    @property
    def name(self) -> str:
        """The kind of just this API server."""
        return at(self.shard, self.resource)

    def at_shard(self, shard: str) -> "PlacedKind":
        """The same as that of a shard beside the root."""
        return replace(self, shard=shard, message=self.message and f"shard {shard}: {self.message}")

    @property
    def api_version(self) -> str:
        """The apiVersion of its objects."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def problem_for(self, *, shared: bool) -> tuple[Verdict, str] | None:
        """Why a placement of this mode must not place it; None: it may."""
        if self.verdict is not Verdict.PLACEABLE:
            return self.verdict, self.message
        if shared is self.shared:
            return None
        filtered = f"{on_shard(self.name)} is filtered by robot name; mode Shared needs a kind that is not"
        return Verdict.NOT_PLACEABLE, filtered if shared else self.message
