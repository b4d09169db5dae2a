"""Where copies of a kind are left whose kind in the cloud was another one before an edit of the projection (C1.7)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from crsyncer.core.kinds.endpoint import Endpoint
from crsyncer.core.model import Key
from crsyncer.ports import MetaStore


def place_to_store(place: Endpoint) -> list[Any]:
    """Where the objects of a kind are, as the store has it."""
    return [place.group, place.version, place.plural, place.namespaced]


def place_in_store(stored: Sequence[Any]) -> Endpoint:
    """The inverse of `place_to_store`."""
    group, version, plural, namespaced = stored
    return Endpoint(group, plural, "", namespaced, version)


@dataclass(frozen=True, slots=True)
class FormerCopy:
    """A copy, as it was known last."""

    name: Key
    original: Key
    """Upstream's name of its original."""


@dataclass(frozen=True, slots=True)
class FormerPlace:
    """A place with copies of ours that are to go."""

    place: Endpoint
    copies: Mapping[str, FormerCopy]
    """Those that the store knew, by uid."""
    undone: bool = False
    """The edit was undone before anybody released what it left behind: its own copies go with it."""


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why a copy that an edit has left behind is not deleted yet."""

    since: float
    """Unix time, in seconds."""
    message: str
    is_forbidden: bool = False
    """The credential does not allow it (403)."""
    is_terminating: bool = False
    """It is being deleted, and waits for its finalizers."""


class FormerPlaces:
    """The former places of one kind. Remembered over restarts."""

    def __init__(self, resource: str, store: MetaStore) -> None:
        self._store = store
        self._name = f"left-behind:{resource}"
        self.places = [
            FormerPlace(
                place_in_store(place),
                {uid: FormerCopy(Key(*name), Key(*original)) for uid, name, original in copies},
                undone=undone,
            )
            for place, undone, copies in store.get_meta(self._name) or ()
        ]

    def leave(
        self, place: Endpoint, copies: Mapping[str, FormerCopy], *, to: Endpoint, held: bool, is_known: bool = True
    ) -> None:
        """The kind's copies are in another place from now on. `held`: nobody has released what former edits left.

        Unless it `is_known` which copies there are, the place has to be looked at, whatever the store has of it.
        """
        undone = held and any(each.place.resource == to.resource for each in self.places)
        kept = [each for each in self.places if each.place.resource not in (to.resource, place.resource)]
        if copies or not is_known:
            kept.append(FormerPlace(place, copies, undone=undone))
        self._put(kept)

    def be_at(self, place: Endpoint) -> None:
        """The kind's copies are here, whatever an edit said that a crash has kept from taking effect."""
        self._put([each for each in self.places if each.place.resource != place.resource])

    def found(self, place: FormerPlace, copies: Mapping[str, FormerCopy]) -> None:
        """These copies are there, and no others."""
        new = [replace(place, copies=copies)] if copies else []
        self._put([found for each in self.places for found in (new if each is place else [each])])

    def _put(self, places: Iterable[FormerPlace]) -> None:
        self.places = list(places)
        rows = [
            [
                place_to_store(each.place),
                each.undone,
                [[uid, list(c.name), list(c.original)] for uid, c in each.copies.items()],
            ]
            for each in self.places
        ]
        if rows != (self._store.get_meta(self._name) or []):
            self._store.put_meta(self._name, rows)
