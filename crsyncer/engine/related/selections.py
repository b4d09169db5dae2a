"""Which originals of one kind the selectors of primaries match, by their labels (C5.1)."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Set

from crsyncer.core.model import Key
from crsyncer.core.related.relate import MOST, Selection, too_many
from crsyncer.ports import MetaStore


class Selections:
    """The selections that primaries have at present, and the originals that each of them matches.

    What a new one matches of the originals that the cache has is known at once. The others have to be listed, which
    `needs_list` asks for. Where a selection matches more than MOST originals, the cache takes no more of them.

    Once the cache has all originals of a selection, it goes on having them: each event is judged by that selection
    before the cursor moves. That is stored, so after a restart nothing is listed where the watch goes on from there.

    `matched(selection, key)`: it begins to match an original. `changed(selection, missing)`: it ceases to match some,
    matches too many, or (with those that the cache lacks) no longer does.
    """

    def __init__(
        self,
        store: MetaStore,
        resource: str,
        *,
        matched: Callable[[Selection, Key], None],
        changed: Callable[[Selection, Set[Key]], None],
    ) -> None:
        self._store = store
        self._name = f"selected:{resource}"
        self._tell_matched = matched
        self._tell_changed = changed
        self._primaries: Counter[Selection] = Counter()
        """How many primaries have each."""
        self._originals: dict[Selection, set[Key]] = {}
        self._too_large: set[Selection] = set()
        self._unlisted: set[Selection] = set()
        """Those that may match originals which have not been shown."""
        self._being_listed: set[Selection] = set()
        """Those of them that there have been since before the list began."""
        self._labels: dict[Key, Mapping[str, str]] = {}
        """Of the originals that the cache has."""
        self._complete: set[str] = set()
        """The texts of the selections of which the cache has every original."""
        self._awaited: set[str] = set()
        """Those of them that no primary has had since the restart, as not all primaries may have been read."""

    def restart(self, selections: Iterable[Selection]) -> None:
        """These are the selections of primaries, one for each; what they match is to be read from the cache."""
        self._primaries = Counter(selections)
        self._originals = {selection: set() for selection in self._primaries}
        stored = self._store.get_meta(self._name)
        self._complete = {each for each in stored if isinstance(each, str)} if isinstance(stored, list) else set()
        self._awaited = self._complete - {each.text for each in self._originals}
        self._unlisted = {each for each in self._originals if each.text not in self._complete}
        self._too_large, self._being_listed = set(), set()
        self._labels.clear()

    # What they select

    def originals(self, selection: Selection | None) -> Set[Key]:
        """The originals that a selection matches, as far as they have been shown."""
        return frozenset() if selection is None else self._originals.get(selection, frozenset())

    def want(self, key: Key) -> bool:
        """Whether a selection matches an original, and the cache is to have it."""
        return any(key in keys and (len(keys) <= MOST or key in self._labels) for keys in self._originals.values())

    def failure(self, selection: Selection | None) -> str:
        """Why a selection cannot be followed; empty: it can."""
        return too_many(len(self.originals(selection)))

    @property
    def needs_list(self) -> bool:
        """Whether there may be originals that have not been shown, and that a selection matches."""
        return bool(self._unlisted)

    def may_match(self, key: Key) -> bool:
        """Whether an original of which nothing is known may be one of those."""
        return any(each.namespace == key.namespace for each in self._unlisted)

    # What primaries say

    def add(self, selection: Selection) -> None:
        """A primary has a selection."""
        self._primaries[selection] += 1
        if self._primaries[selection] > 1:
            return
        found = {key for key, labels in self._labels.items() if selection.matches(key, labels)}
        self._originals[selection] = found
        self._awaited.discard(selection.text)
        if selection.text not in self._complete:
            self._unlisted.add(selection)
        for key in found:
            self._tell_matched(selection, key)
        self._count(selection)

    def remove(self, selection: Selection) -> Set[Key]:
        """A primary has a selection no more; if it was the last one, what that matched."""
        self._primaries[selection] -= 1
        if self._primaries[selection]:
            return frozenset()
        for each in (self._unlisted, self._being_listed, self._too_large):
            each.discard(selection)
        found = self._originals.pop(selection)
        del self._primaries[selection]
        self._forget({selection.text})
        self._tell_changed(selection, frozenset())
        return found

    # What the cache is shown

    def shown(self, key: Key, labels: Mapping[str, str]) -> None:
        """An original has these labels."""
        for selection, keys in self._originals.items():
            if selection.matches(key, labels) is not (key in keys):
                self._turn(selection, key)

    def taken(self, key: Key, labels: Mapping[str, str]) -> None:
        """The cache has an original with these labels."""
        self._labels[key] = labels

    def left_out(self, key: Key) -> None:
        """The cache is not to have an original that there is: a selection that is still awaited may match it."""
        self._labels.pop(key, None)
        self._forget({text for text in self._awaited if text.startswith(f"{key.namespace}/")})

    def unreadable(self) -> None:
        """The cache lacks bodies that it had: all originals have to be listed."""
        if self._complete:
            self._forget({*self._complete})
            self._unlisted = {*self._originals}

    def gone(self, key: Key) -> None:
        """An original is gone, or is none any more."""
        self._labels.pop(key, None)
        for selection, keys in self._originals.items():
            if key in keys:
                self._turn(selection, key)

    def list_begins(self) -> None:
        """All originals are about to be listed."""
        self._being_listed = {*self._unlisted}

    def list_ended(self) -> None:
        """They have all been shown."""
        self._unlisted -= self._being_listed
        known = self._labels.keys()
        self._complete |= {each.text for each in self._being_listed if self._originals[each] <= known}
        self._write()

    def _turn(self, selection: Selection, key: Key) -> None:
        """A selection matches an original, or no longer does."""
        keys = self._originals[selection]
        keys ^= {key}
        if key in keys:
            self._tell_matched(selection, key)
        else:
            self._tell_changed(selection, frozenset())
        self._count(selection)

    def _count(self, selection: Selection) -> None:
        keys = self._originals[selection]
        is_too_large = len(keys) > MOST
        if is_too_large is not (selection in self._too_large):
            self._too_large ^= {selection}
            self._forget({selection.text})
            self._tell_changed(selection, frozenset() if is_too_large else keys - self._labels.keys())

    def _forget(self, texts: Set[str]) -> None:
        """The cache may lack originals that these match."""
        if not self._complete.isdisjoint(texts):
            self._complete -= texts
            self._awaited -= texts
            self._write()

    def _write(self) -> None:
        content = sorted(self._complete)
        if (self._store.get_meta(self._name) or []) != content:
            self._store.put_meta(self._name, content)
