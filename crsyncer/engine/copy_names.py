"""How the copies of related objects are called: an original has one copy, which all primaries share (C5.2, C5.3).

Imported and made only where the robot has the CRD of SyncPolicies.
"""

from collections.abc import Callable, Collection

from crsyncer.core.model import Key, Source, View
from crsyncer.core.relate import Place, Selection, taken_place
from crsyncer.engine.kind import Kind
from crsyncer.errors import Conflict, SyncError

Holder = Source | Selection
"""Whoever needs a copy: a primary that names the original, or a selection that matches it."""
_SHOWN = 3
"""How many originals a failure names."""


class CopyNames:
    """Chooses what new copies of the originals of one kind are called.

    `failed(holder)`: it has another failure. `renamed(key)`: a copy that is made now is called otherwise.

    A copy stays where it is. One that is made now is called as the first primary needs it. Where another one needs it
    elsewhere, that one's need fails until the first ones have gone.
    """

    def __init__(self, *, failed: Callable[[Holder], None], renamed: Callable[[Key], None]) -> None:
        self.kind: Kind | None = None
        self._failed = failed
        self._renamed = renamed
        self._needs: dict[Key, dict[Place, dict[Holder, None]]] = {}
        self._chosen: dict[Key, Key] = {}
        self._wrong: dict[Key, dict[Place, str]] = {}
        """By original, why there is no copy of it at a place."""
        self._failures: dict[Holder, dict[Key, str]] = {}

    def clear(self, kind: Kind) -> None:
        """The kind of the originals is about to run: nothing is known of what is needed."""
        self.kind = kind
        for each in (self._needs, self._chosen, self._wrong, self._failures):
            each.clear()

    def need(self, key: Key, holder: Holder, place: Place) -> None:
        """The copy of an original is needed at a place."""
        places = self._needs.setdefault(key, {})
        known = place in places
        places.setdefault(place, {})[holder] = None
        if not known:
            self.settle(key)
        else:
            self._tell(holder, key, self._wrong.get(key, {}).get(place, ""))

    def drop(self, key: Key, holder: Holder, place: Place) -> None:
        """It is not needed there any more."""
        places = self._needs.get(key, {})
        holders = places.get(place, {})
        holders.pop(holder, None)
        self._tell(holder, key, "")
        if not holders:
            places.pop(place, None)
            self.settle(key)
        if not places:
            for each in (self._needs, self._chosen, self._wrong):
                each.pop(key, None)

    def failure(self, holder: Holder) -> str:
        """Why the copies that a holder needs are not where it needs them; empty: they are, or will be."""
        texts = [*self._failures.get(holder, {}).values()]
        more = [f"and {len(texts) - _SHOWN} more"] if len(texts) > _SHOWN else []
        return "; ".join(texts[:_SHOWN] + more)

    def new_name(self, key: Key) -> Key:
        """What the copy of an original is called that is made now. Raises Never, or Conflict where it is not known."""
        if key in self._chosen:
            return self._chosen[key]
        if self.kind is not None:
            for place in self._needs.get(key, ()):
                place.new_name(key, self.kind.policy)
        raise Conflict("it is not known what needs the copy")

    def settle(self, key: Key) -> None:
        """Decide anew what the copy of an original is called, and what fails therefore."""
        if self.kind is None:
            return
        made: dict[Place, Key] = {}
        wrong: dict[Place, str] = {}
        for place in self._needs.get(key, ()):
            try:
                made[place] = place.new_name(key, self.kind.policy)
            except Conflict:
                continue  # it will be known
            except SyncError as error:
                wrong[place] = f"{key}: {error}"
        chosen = self._choose(key, made.values())
        if chosen is not None:
            wrong |= {
                place: taken_place(key, wanted=name, copy=chosen) for place, name in made.items() if name != chosen
            }
        before = self._wrong.pop(key, {})
        if wrong:
            self._wrong[key] = wrong
        for place, holders in self._needs.get(key, {}).items():
            if wrong.get(place) != before.get(place):
                for holder in holders:
                    self._tell(holder, key, wrong.get(place, ""))

    def _choose(self, key: Key, names: Collection[Key]) -> Key | None:
        former = self._chosen.pop(key, None)
        chosen = next((name for name in (self._copy(key), former) if name in names), next(iter(names), None))
        if chosen is not None:
            self._chosen[key] = chosen
            if chosen != former:
                self._renamed(key)
        return chosen

    def _copy(self, key: Key) -> Key | None:
        """What the copy that there is is called."""
        if self.kind is None:
            return None
        policy = self.kind.policy
        view = self.kind.cache.views[policy.downstream].get(key)
        return policy.copy_name(key, view) if isinstance(view, View) else None

    def _tell(self, holder: Holder, key: Key, failure: str) -> None:
        found = self._failures.get(holder, {})
        if found.get(key, "") == failure:
            return
        self._failures[holder] = {**found, key: failure}
        if not failure:
            del self._failures[holder][key]
            if not self._failures[holder]:
                del self._failures[holder]
        self._failed(holder)
