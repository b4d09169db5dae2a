"""When so many deletions come at once that a list has to verify them (S5.5)."""

from collections.abc import Set

from crsyncer.core.model import Key

_RATE_SECONDS = 60.0
_FEW = 5
_SHARE = 0.3


def is_mass(deletions: int, copies: int, share: float = _SHARE) -> bool:
    """Whether so many deletions, of so many copies, within a minute are more than a few and than a share (S5.5)."""
    return deletions > max(_FEW, share * copies)


class DeletionRate:
    """Counts the deletions of one kind over the last minute."""

    def __init__(self) -> None:
        self._times: dict[Key, float] = {}
        self._copies = 0
        """How many copies there were when the window's first deletion came."""

    def is_mass(self, batch: Set[Key], *, copies: int, now: float) -> bool:
        """Whether the deletions within the window, those of this batch included, are too many for so many copies."""
        size = self.count(batch, now)
        self._copies = copies if size == len(batch) else max(self._copies, copies)
        return is_mass(size, self._copies)

    def count(self, batch: Set[Key], now: float) -> int:
        """Deletions within the window, those of this batch included; asking twice for a key counts once."""
        for key in batch:
            self._times.pop(key, None)
            self._times[key] = now
        while self._times[oldest := next(iter(self._times))] <= now - _RATE_SECONDS:
            del self._times[oldest]
        return len(self._times)
