"""How one side serves a kind: names, version and scope. Every request is addressed by the endpoint of its side.

The sides differ by what the cloud serves (S1.5, S4.6), and by the projection of a SyncPolicy (C7).
"""

from dataclasses import dataclass, field

from crsyncer.core.model import Json
from crsyncer.core.requests.calls import Collection


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A kind as a side serves it."""

    group: str
    """Empty: the core group."""
    plural: str
    kind: str
    namespaced: bool
    version: str = ""
    """The version spoken with the side, once it is agreed on."""
    status: bool = True
    """Whether `/status` exists; where not, status is part of the main resource (S4.6)."""
    resource: str = field(init=False, compare=False)
    """The full name, such as goals.lab.example.com or configmaps: that of its CRD, where it has one."""
    api_version: str = field(init=False, compare=False)
    """The apiVersion of objects."""

    def __post_init__(self) -> None:
        # They are asked for with every object, so they are made once.
        object.__setattr__(self, "resource", f"{self.plural}.{self.group}" if self.group else self.plural)
        object.__setattr__(self, "api_version", f"{self.group}/{self.version}" if self.group else self.version)

    def objects(self, namespace: str, selector: str = "") -> Collection:
        """The objects in a namespace, as this side calls it, or ("") in all."""
        return Collection(self.group, self.version, self.plural, namespace, selector)

    def complete(self, item: Json) -> None:
        """Name the kind of an object in a list, which names it only on the list itself."""
        item.setdefault("apiVersion", self.api_version)
        item.setdefault("kind", self.kind)

    @property
    def scope(self) -> str:
        """The scope, as CRDs write it."""
        return "Namespaced" if self.namespaced else "Cluster"
