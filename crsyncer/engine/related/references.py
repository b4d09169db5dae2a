"""What the store has of references to the originals of one kind, and of the copies that outlive them (C5.4)."""

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator

from crsyncer.agent_ports import Store
from crsyncer.core.content.selector import Selector
from crsyncer.core.kinds.related_entry import RelatedEntry
from crsyncer.core.model import EntryId, Key, ReferenceRow, Source
from crsyncer.core.related.relate import References, Selection
from crsyncer.ports import MetaStore


class ReferenceTable:
    """What each primary refers to by each entry, from when it is read until its pair is gone.

    `confidential`: the entries of sensitive primaries; of what those refer to only the fact is stored (C5.6).
    """

    def __init__(self, store: Store, resource: str) -> None:
        self.rows: dict[Source, ReferenceRow] = {}
        self.confidential: set[EntryId] = set()
        self.unknown: set[Source] = set()
        """The primaries of which it is not known to which originals they refer."""
        self.unreadable: set[Source] = set()
        """Those of them that were read: it will not be known before somebody changes them."""
        self._store = store
        self._resource = resource
        self._released: Counter[Key | str] = Counter()
        """How many released primaries referred to an original, or selected any in a namespace."""

    async def load(self) -> None:
        """Read the rows from the store."""
        for source, row in (await self._store.load_references(self._resource)).items():
            self._keep(source, row)

    def put(self, source: Source, row: ReferenceRow | None) -> None:
        """Set or remove a row."""
        if self.rows.get(source) == row:
            return
        stored = row
        if row is not None and source[0] in self.confidential:
            stored = ReferenceRow(unknown=True)
        self._store.put_reference(self._resource, source, stored)
        self._keep(source, row)

    def put_unknown(self, source: Source, *, unreadable: bool) -> None:
        """A primary has not been read, or cannot be: any original may be one of those that it refers to."""
        if source not in self.rows:
            self.put(source, ReferenceRow(unknown=True))
        if unreadable and source in self.unknown:
            self.unreadable.add(source)

    def doubt(self, entry: RelatedEntry, *, known: Container[Key]) -> None:
        """An entry may have been edited: what it means of primaries that are neither shown nor gone nobody knows."""
        for source in self.of(entry.id):
            row = self.rows[source]
            if source[1] not in known and row.text != entry.text and not row.released:
                self.unknown.add(source)
                self.unreadable.add(source)

    def recorded(self, entry: RelatedEntry, key: Key) -> References:
        """What a primary referred to when it was read last, also if it is released."""
        row = self.rows.get((entry.id, key), ReferenceRow())
        objects, selection = entry.related.objects, None
        if row.selected is not None and isinstance(objects, Selector):
            selection = Selection(row.selected, objects)
        return References(frozenset(Key(*each) for each in row.originals), selection)

    def is_released(self, key: Key) -> bool:
        """Whether a released primary referred to an original: its copy goes without a further hold."""
        return self._released[key] > 0 or self._released[key.namespace] > 0

    def of(self, entry_id: EntryId) -> list[Source]:
        """The primaries that refer to something by an entry, or did when they were released."""
        return [source for source in self.rows if source[0] == entry_id]

    def _keep(self, source: Source, row: ReferenceRow | None) -> None:
        before = self.rows.pop(source, None)
        for each, sign in ((before, -1), (row, 1)):
            if each is not None and each.released:
                for place in _places(each):
                    self._released[place] += sign
        self.unknown.discard(source)
        self.unreadable.discard(source)
        if row is not None:
            self.rows[source] = row
            if row.unknown:
                self.unknown.add(source)


def _places(row: ReferenceRow) -> Iterator[Key | str]:
    """The originals that a row names, and the namespace in which it selects any."""
    for each in row.originals:
        yield Key(*each)
    if row.selected is not None:
        yield row.selected


def row_of(references: References, entry: RelatedEntry) -> ReferenceRow:
    """The row of a primary that refers to these by an entry."""
    selected = None if references.selection is None else references.selection.namespace
    originals = tuple(sorted((key.namespace, key.name) for key in references.keys))
    return ReferenceRow(originals, selected, text=entry.text)


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
