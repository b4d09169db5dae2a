"""Which originals of one kind the selectors of primaries match, by their labels (C5.1).

Imported and made only where the robot has the CRD of SyncPolicies.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Set

from crsyncer.core.model import Key
from crsyncer.core.relate import MOST, Selection, too_many


class Selections:
    """The selections that primaries have at present, and the originals that each of them matches.

    What a new one matches of the originals that the cache has is known at once. The others have to be listed, which
    `needs_list` asks for. Where a selection matches more than MOST originals, the cache takes no more of them.

    `matched(selection, key)` and `unmatched(selection, key)`: it begins or ceases to match an original.
    `counted(selection, missing)`: it matches too many, or (with those that the cache lacks) no longer does.
    """

    def __init__(
        self,
        *,
        matched: Callable[[Selection, Key], None],
        unmatched: Callable[[Selection, Key], None],
        counted: Callable[[Selection, Set[Key]], None],
    ) -> None:
        self._tell_matched = matched
        self._tell_unmatched = unmatched
        self._tell_counted = counted
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

    def restart(self, selections: Iterable[Selection]) -> None:
        """These are the selections of primaries, one for each; nothing is known of what they match."""
        self._primaries = Counter(selections)
        self._originals = {selection: set() for selection in self._primaries}
        self._unlisted = {*self._originals}
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
        for key in found:
            self._tell_unmatched(selection, key)
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

    def forgotten(self, key: Key) -> None:
        """The cache has it no more."""
        self._labels.pop(key, None)

    def gone(self, key: Key) -> None:
        """An original is gone, or is none any more."""
        self.forgotten(key)
        for selection, keys in self._originals.items():
            if key in keys:
                self._turn(selection, key)

    def list_begins(self) -> None:
        """All originals are about to be listed."""
        self._being_listed = {*self._unlisted}

    def list_ended(self) -> None:
        """They have all been shown."""
        self._unlisted -= self._being_listed

    def _turn(self, selection: Selection, key: Key) -> None:
        """A selection matches an original, or no longer does."""
        keys = self._originals[selection]
        keys ^= {key}
        (self._tell_matched if key in keys else self._tell_unmatched)(selection, key)
        self._count(selection)

    def _count(self, selection: Selection) -> None:
        keys = self._originals[selection]
        is_too_large = len(keys) > MOST
        if is_too_large is not (selection in self._too_large):
            self._too_large ^= {selection}
            self._tell_counted(selection, frozenset() if is_too_large else keys - self._labels.keys())
