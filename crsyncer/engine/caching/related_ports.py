"""What pairs and informers ask of related objects (C5), as protocols: what answers them stands above both."""

from typing import Protocol

from crsyncer.core.model import Json, Key


class Originals(Protocol):
    """Which of upstream's objects are wanted, for the kind of related objects."""

    def is_unsure(self, key: Key) -> bool:
        """Whether it is not known yet if an object that is not cached is wanted."""
        ...

    def is_copy(self, raw: Json) -> bool:
        """Whether an object is a copy of the other side's, and so no original."""
        ...

    def shown(self, key: Key, original: Json, *, known: bool) -> bool:
        """An original is shown; whether the cache takes it."""
        ...

    def gone(self, key: Key) -> None:
        """An original is gone."""
        ...

    async def fetch(self) -> None:
        """Fetch what is newly wanted, forever."""
        ...


class RelatedCopies(Protocol):
    """The copies that go with primaries, and before them (C6.3)."""

    def delay(self, key: Key) -> bool:
        """Whether the copy of a primary, which is to be deleted, waits for related ones."""
        ...

    def remain(self, key: Key) -> bool:
        """Whether there may be related copies that only this primary needs, and that go with it."""
        ...

    def release(self, key: Key) -> float | None:
        """Have the related copies of a primary go. In how many seconds to look again, if they do not."""
        ...

    def deleted(self, key: Key) -> None:
        """The copy of a primary is deleted, though perhaps not gone."""
        ...

    def waits(self, key: Key) -> bool:
        """Whether the copy of a primary waits now: its deletion had been verified before."""
        ...

    def settled(self, key: Key) -> None:
        """Nothing has to be done about a pair: it may be gone."""
        ...

    def name_taken(self, key: Key) -> None:
        """Something else has the name of a primary's copy."""
        ...

    def hold(self) -> None:
        """Every deletion of the primaries is held, so the related copies that they need are kept, too (C5.4)."""
        ...
