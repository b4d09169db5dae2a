"""What is in memory: the rows that wait for the disk, and bodies that were last written or read."""

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field

from crsyncer.adapters.store.codec import CURSORS, OUTBOX, RECORD, RESTS, STATUSES, STAYING, TOMBSTONES, VIEWS, Place

_BODIES = frozenset((*STATUSES.values(), *RESTS.values()))
_LOADED = (*VIEWS, RECORD, OUTBOX, TOMBSTONES, CURSORS)
_RECENT_BYTES = 2 << 20
_ENTRY_BYTES = 500
"""What keeping a short row costs."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Writes that belong into one transaction; of several to one place, the newest."""

    rows: dict[Place, str | None] = field(default_factory=dict)
    forgotten: dict[str, bool] = field(default_factory=dict)
    """Kinds to be forgotten before the rows are written, and whether their outbox stays."""

    def forget(self, resource: str, *, keep_outbox: bool) -> None:
        """Forget a kind, with what was put of it so far."""
        for place in [place for place in self.rows if _is_of(place, resource, keep_outbox=keep_outbox)]:
            del self.rows[place]
        self.forgotten[resource] = keep_outbox and self.forgotten.get(resource, True)

    def absorb(self, newer: "Batch") -> None:
        """Add what was put later."""
        for resource, keep_outbox in newer.forgotten.items():
            self.forget(resource, keep_outbox=keep_outbox)
        self.rows.update(newer.rows)

    def covers(self, place: Place) -> bool:
        """Whether what is on disk at a place does not count any more."""
        keep_outbox = self.forgotten.get(place[1])
        return place in self.rows or (keep_outbox is not None and _is_of(place, place[1], keep_outbox=keep_outbox))

    def sealed(self, resource: str) -> Iterator[tuple[Place, str]]:
        """What is to be written of a kind, but for bodies."""
        for place, row in self.rows.items():
            if place[1] == resource and place[0] in _LOADED and row is not None:
                yield place, row

    def __bool__(self) -> bool:
        return bool(self.rows or self.forgotten)


def _is_of(place: Place, resource: str, *, keep_outbox: bool) -> bool:
    return place[1] == resource and place[0] not in STAYING and not (keep_outbox and place[0] == OUTBOX)


class Recent:
    """Halves of bodies that were last written or read, bounded in bytes. Only the thread adds, in disk order."""

    __slots__ = ("_bytes", "_rows")

    def __init__(self) -> None:
        self._rows: OrderedDict[Place, str] = OrderedDict()
        self._bytes = 0

    def get(self, place: Place) -> str | None:
        """A row, which then counts as used just now."""
        row = self._rows.get(place)
        if row is not None:
            self._rows.move_to_end(place)
        return row

    def add(self, place: Place, row: str) -> None:
        """Keep a row, at the cost of those that were not used for longest."""
        self._drop(place)
        self._rows[place] = row
        self._bytes += len(row) + _ENTRY_BYTES
        while self._bytes > _RECENT_BYTES:
            self._drop(next(iter(self._rows)))

    def update(self, batch: Batch) -> None:
        """Follow a batch that was written."""
        replaced = [place for place in self._rows if batch.covers(place)] if batch.forgotten else batch.rows
        for place in replaced:
            self._drop(place)
        for place, row in batch.rows.items():
            if row is not None and place[0] in _BODIES:
                self.add(place, row)

    def _drop(self, place: Place) -> None:
        row = self._rows.pop(place, None)
        if row is not None:
            self._bytes -= len(row) + _ENTRY_BYTES
