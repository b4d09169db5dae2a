"""Which namespaces are synced, and what each of them is called on either side."""

from dataclasses import dataclass
from typing import Any

from crsyncer.core.model import Side


@dataclass(frozen=True, slots=True)
class Namespaces:
    """The namespaces that are synced, by the names on both sides, in one order; none: all of them.

    Those of the same name on both sides need no map, and without one every namespace has a counterpart.
    """

    cloud: tuple[str, ...] = ()
    robot: tuple[str, ...] = ()

    def on(self, side: Side) -> tuple[str, ...]:
        """The names on a side; empty: all namespaces."""
        return self.cloud if side is Side.CLOUD else self.robot

    @property
    def mapped(self) -> bool:
        """Whether a namespace has another name on the other side."""
        return self.cloud != self.robot

    @property
    def written(self) -> list[list[str]]:
        """The map, as the store keeps it; empty: there is none."""
        return [list(self.cloud), list(self.robot)] if self.mapped else []

    def translate(self, name: str, source: Side, target: Side) -> str | None:
        """What a namespace of a side is called on another; None: it is outside of the map.

        "", which is no namespace or all of them, is the same everywhere.
        """
        if source is target or not name or not self.mapped:
            return name
        names = self.on(source)
        return self.on(target)[names.index(name)] if name in names else None


def meta_name(resource: str) -> str:
    """Under which name the store keeps where the copies of a kind were looked for last."""
    return f"namespaces:{resource}"


def read_namespaces(stored: Any) -> Namespaces:
    """The namespaces, as `written` has put them into the store; without a word of it the names are the same."""
    return Namespaces(*map(tuple, stored)) if stored else EVERYWHERE


EVERYWHERE = Namespaces()
"""All namespaces, of the same names on both sides."""


def same_names(names: tuple[str, ...]) -> Namespaces:
    """These namespaces, of the same names on both sides."""
    return Namespaces(names, names)
