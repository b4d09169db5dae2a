"""The copies of related objects that stay although nothing refers to their originals (C5.4).

Imported and made only where the robot has the CRD of SyncPolicies.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Set

from crsyncer.core.model import Key
from crsyncer.core.relate import EntryId
from crsyncer.ports import MetaStore


class KeptCopies:
    """Which copies of one kind stay because their entry is gone, by the keys of their originals.

    As soon as another entry refers to an original, that entry decides. As long as the policy of the entry that is gone
    is there and cannot be followed, no other entry decides: it may still refer to the original (C1.3).
    """

    def __init__(self, store: MetaStore, resource: str, *, is_misconfigured: Callable[[str], bool]) -> None:
        self._store = store
        self._name = f"related:{resource}"
        self._is_misconfigured = is_misconfigured
        stored = store.get_meta(self._name) or {}
        self._policies = {Key(namespace, name): set(names) for namespace, name, *names in stored.get("kept", ())}
        """By original, the policies whose entries referred to it."""
        self._former: set[EntryId] = {(policy, entry) for policy, entry in stored.get("entries", ())}
        """The entries that there are, and those that are gone since all copies were found last."""
        self._known: set[EntryId] = set()
        """Those of which it is known what they refer to, or have since they began."""
        self._unknown: set[str] = set()
        """The policies of entries that are gone, of which it is not known: each copy may be theirs."""

    def __contains__(self, key: Key) -> bool:
        return key in self._policies

    def attach(
        self, entries: Set[EntryId], referred: Mapping[EntryId, Collection[Key]], *, unclear: Collection[EntryId]
    ) -> None:
        """The kind is about to run. `referred`: what entries referred to until now, but for the `unclear` ones."""
        self._unknown = set()
        for entry in self._former - entries:
            if entry in self._known and entry not in unclear:
                for key in referred.get(entry, ()):
                    self._keep(key, entry[0])
            else:
                self._unknown.add(entry[0])
        self._known = (self._known | (entries - self._former)) & entries
        self._former |= entries
        self._write()

    def wanted(self, key: Key) -> None:
        """An entry refers to an original."""
        if key in self._policies and not any(map(self._is_misconfigured, self._policies[key])):
            del self._policies[key]

    def copies_found(self, copies: Iterable[Key], *, wants: Callable[[Key], bool]) -> None:
        """These copies are there, and it is known what all entries refer to; `wants`: one of them to the original."""
        misconfigured = {policy for policy in self._unknown if self._is_misconfigured(policy)}
        for key in copies if self._unknown else ():
            for policy in misconfigured if wants(key) else self._unknown:
                self._keep(key, policy)

    def remember(self, entries: Set[EntryId]) -> None:
        """All copies have been found."""
        self._former, self._known, self._unknown = {*entries}, {*entries}, set()
        self._write()

    def _write(self) -> None:
        content = {
            "entries": sorted(list(entry) for entry in self._former),
            "kept": sorted([*key, *sorted(names)] for key, names in self._policies.items()),
        }
        if self._store.get_meta(self._name) != content:
            self._store.put_meta(self._name, content)

    def _keep(self, key: Key, policy: str) -> None:
        self._policies.setdefault(key, set()).add(policy)
