"""The kinds of a chaos run: one for each way in which specs and statuses travel."""

from dataclasses import dataclass
from typing import Any

from crsyncer.core.requests.calls import SYNC_POLICIES
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
    settings: dict[str, Any] | None = None
    """What its SyncPolicy says; None: it has none."""
    prefix: str = ""
    """What the names of copies begin with, by `naming`."""
    primary: str = ""
    """The kind with whose objects those of the same names go, as related objects; "": they are synced by themselves."""

    @property
    def policy(self) -> dict[str, Any]:
        """Its SyncPolicy."""
        resource = {"group": GROUP, "resource": self.plural}
        return {
            "apiVersion": f"{SYNC_POLICIES.group}/{SYNC_POLICIES.version}",
            "kind": "SyncPolicy",
            "metadata": {"name": self.plural},
            "spec": {"resource": resource, **(self.settings or {})},
        }

    @property
    def keeps_local(self) -> bool:
        """Whether local fields of copies stay."""
        return (self.settings or {}).get("conflict") == "keepLocal"

    def original_name(self, copy: str) -> str:
        """The name of a copy's original; that of no object where the copy is not called as it should be."""
        return copy.removeprefix(self.prefix) if copy.startswith(self.prefix) else f"none of {copy}"

    @property
    def letter(self) -> str:
        """What the names of its objects begin with."""
        return (self.primary or self.plural)[0]

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
            source=None if self.primary else self.upstream,
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


def _related(plural: str, origin: str) -> dict[str, Any]:
    resource = {"group": GROUP, "resource": plural}
    return {"id": plural, "origin": origin, "resource": resource, "object": {"name": "{name}"}}


KINDS = {
    kind.plural: kind
    for kind in (
        Kind("errands", filtered=True),
        Kind("goals"),
        Kind("machines", subtree="robot"),
        Kind("maps", upstream="robot"),
        Kind("sites", cluster=True),
        Kind(
            "orders",
            settings={
                "naming": {"name": "copy-{name}"},
                "deletion": {"mode": "blocking", "gracePeriod": "720h"},
            },
            prefix="copy-",
        ),
        Kind(
            "lamps",
            settings={
                "conflict": "keepLocal",
                "related": [_related("charts", "cloud"), _related("notes", "robot")],
            },
        ),
        Kind("charts", primary="lamps"),
        Kind("notes", upstream="robot", primary="lamps"),
    )
}
