"""Where copies of a kind are left whose kind in the cloud was another one before an edit of the projection (C1.7)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from crsyncer.core.kinds.endpoint import Endpoint
from crsyncer.core.model import Key
from crsyncer.core.requests.calls import Collection
from crsyncer.ports import MetaStore


@dataclass(frozen=True, slots=True)
class Place:
    """A kind of an API server, in one version."""

    group: str
    version: str
    plural: str
    namespaced: bool

    @staticmethod
    def of(endpoint: Endpoint) -> "Place":
        """Where the objects of an endpoint are."""
        return Place(endpoint.group, endpoint.version, endpoint.plural, endpoint.namespaced)

    @property
    def values(self) -> tuple[str, str, str, bool]:
        """The fields, in order."""
        return self.group, self.version, self.plural, self.namespaced

    def is_same(self, other: "Place") -> bool:
        """Whether the objects are the same ones, in whichever version."""
        return (self.group, self.plural) == (other.group, other.plural)

    def objects(self, namespace: str, selector: str = "") -> Collection:
        """The objects in a namespace, or ("") in all."""
        return Collection(self.group, self.version, self.plural, namespace if self.namespaced else "", selector)


@dataclass(frozen=True, slots=True)
class FormerCopy:
    """A copy, as it was known last."""

    name: Key
    original: Key
    """Upstream's name of its original."""


@dataclass(frozen=True, slots=True)
class FormerPlace:
    """A place with copies of ours that are to go."""

    place: Place
    copies: Mapping[str, FormerCopy]
    """Those that the store knew, by uid."""
    undone: bool = False
    """The edit was undone before anybody released what it left behind: its own copies go with it."""


class FormerPlaces:
    """The former places of one kind. Remembered over restarts."""

    def __init__(self, resource: str, store: MetaStore) -> None:
        self._store = store
        self._name = f"left-behind:{resource}"
        self.places = [
            FormerPlace(
                Place(*place),
                {uid: FormerCopy(Key(*name), Key(*original)) for uid, name, original in copies},
                undone=undone,
            )
            for place, undone, copies in store.get_meta(self._name) or ()
        ]

    def leave(
        self, place: Place, copies: Mapping[str, FormerCopy], *, to: Place, held: bool, is_known: bool = True
    ) -> None:
        """The kind's copies are in another place from now on. `held`: nobody has released what former edits left.

        Unless it `is_known` which copies there are, the place has to be looked at, whatever the store has of it.
        """
        undone = held and any(each.place.is_same(to) for each in self.places)
        kept = [each for each in self.places if not each.place.is_same(to) and not each.place.is_same(place)]
        if copies or not is_known:
            kept.append(FormerPlace(place, copies, undone=undone))
        self._put(kept)

    def be_at(self, place: Place) -> None:
        """The kind's copies are here, whatever an edit said that a crash has kept from taking effect."""
        self._put([each for each in self.places if not each.place.is_same(place)])

    def empty(self, place: FormerPlace) -> None:
        """No copy is left there."""
        self._put([each for each in self.places if each is not place])

    def found(self, place: FormerPlace, copies: Mapping[str, FormerCopy]) -> FormerPlace:
        """These copies are there."""
        new = replace(place, copies=copies)
        if new != place:
            self._put([new if each is place else each for each in self.places])
        return new

    def _put(self, places: Iterable[FormerPlace]) -> None:
        self.places = list(places)
        rows = [
            [
                list(each.place.values),
                each.undone,
                [[uid, list(c.name), list(c.original)] for uid, c in each.copies.items()],
            ]
            for each in self.places
        ]
        if rows != (self._store.get_meta(self._name) or []):
            self._store.put_meta(self._name, rows)
