"""The kinds of a chaos run: one for each way in which specs and statuses travel."""

from dataclasses import dataclass
from typing import Any

from crsyncer.sandbox.resource import Resource
from tests.system.bed import LABEL, ROBOT, crd

GROUP = "chaos.example.com"
SIDES = ("cloud", "robot")


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind as the checker needs to know it."""

    plural: str
    upstream: str = "cloud"
    filtered: bool = False
    subtree: str | None = None
    cluster: bool = False

    @property
    def downstream(self) -> str:
        """The side of the copies."""
        return "robot" if self.upstream == "cloud" else "cloud"

    @property
    def crd(self) -> dict[str, Any]:
        """Its CRD, as on both sides."""
        filtered = "true" if self.filtered else None
        return crd(
            GROUP,
            plural=self.plural,
            source=self.upstream,
            filtered=filtered,
            subtree=self.subtree,
            cluster=self.cluster,
        )

    @property
    def resource(self) -> Resource:
        """Where it is served."""
        return Resource.of_crd(self.crd)

    def ours(self, obj: dict[str, Any]) -> bool:
        """Whether an upstream object is this robot's."""
        return not self.filtered or (obj["metadata"].get("labels") or {}).get(LABEL) == ROBOT

    def status(self, obj: dict[str, Any]) -> dict[str, Any]:
        """The part of an object's status that travels; {} for none."""
        status = obj.get("status") or {}
        part: dict[str, Any] = (status.get(self.subtree) or {}) if self.subtree else status
        return part


KINDS = {
    kind.plural: kind
    for kind in (
        Kind("errands", filtered=True),
        Kind("goals"),
        Kind("machines", subtree="robot"),
        Kind("maps", upstream="robot"),
        Kind("sites", cluster=True),
    )
}
