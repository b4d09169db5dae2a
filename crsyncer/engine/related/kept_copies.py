"""The copies of related objects that stay although nothing refers to their originals (C5.4)."""

from collections.abc import Callable, Iterable

from crsyncer.core.model import Key
from crsyncer.ports import MetaStore


class KeptCopies:
    """Which copies of one kind stay because their entry was removed, by the keys of their originals.

    As soon as another entry refers to an original, that entry decides. As long as the policy of the removed entry is
    there and cannot be followed, no other entry decides: it may still refer to the original (C1.3).
    """

    def __init__(self, store: MetaStore, resource: str, *, is_misconfigured: Callable[[str], bool]) -> None:
        self._store = store
        self._name = f"related:{resource}"
        self._is_misconfigured = is_misconfigured
        stored = store.get_meta(self._name) or {}
        self._policies = {Key(namespace, name): set(names) for namespace, name, *names in stored.get("kept", ())}
        """By original, the policies whose removed entries referred to it."""

    def __contains__(self, key: Key) -> bool:
        return key in self._policies

    def keep(self, policy: str, originals: Iterable[Key]) -> None:
        """An entry of a policy was removed that referred to these originals."""
        for key in originals:
            self._policies.setdefault(key, set()).add(policy)

    def wanted(self, key: Key) -> None:
        """An entry refers to an original."""
        if key in self._policies and not any(map(self._is_misconfigured, self._policies[key])):
            del self._policies[key]

    def write(self) -> None:
        """Have the store remember them."""
        content = {"kept": sorted([*key, *sorted(names)] for key, names in self._policies.items())}
        if (self._store.get_meta(self._name) or {"kept": []}) != content:
            self._store.put_meta(self._name, content)
