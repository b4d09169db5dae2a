"""What a leader must keep for a human: replicas that were lost by a restore or with a CRD (F5.2, second case; S8)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from crsyncer.core.model import Json
from tests.fleet_model.oracle import Expected, Place


@dataclass(frozen=True, slots=True)
class Kept:
    """One replica."""

    uid: str
    why: str
    leaders: frozenset[str]
    """The identities of those that led when it was lost: to a later leader it is a loss like any other."""


@dataclass(slots=True)
class Protection:
    """The replicas that must stay until they are wanted again, or a human has released holds."""

    kept: dict[Place, Kept] = field(default_factory=dict)
    released: set[str] = field(default_factory=set)
    """The uids of replicas that a human has released by name: they may go though something cannot be seen."""

    def protect(self, replicas: Mapping[Place, Json], why: str, leaders: Iterable[str]) -> None:
        """These were lost just now."""
        bound = frozenset(leaders)
        self.kept |= {place: Kept(raw["metadata"]["uid"], why, bound) for place, raw in replicas.items()}

    def seen(self, expected: Mapping[Place, Expected]) -> None:
        """This shall be there now."""
        for place in self.kept.keys() & expected.keys():
            del self.kept[place]

    def forbids(self, place: Place, before: Json, identity: str) -> str:
        """Why a leader must not remove a replica; empty: it may."""
        kept = self.kept.get(place)
        if kept is None or kept.uid != before["metadata"]["uid"] or identity not in kept.leaders:
            return ""
        return kept.why
