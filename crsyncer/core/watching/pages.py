"""The size of a list's pages: learnt from the size of the objects and the time that a page takes (S9.4)."""

import math

FIRST = 100
"""Objects on the first page of all, before anything is known about them."""
_MOST = 500
_BYTES = 1024 * 1024
"""The size that a page should have, uncompressed: decoding it takes some ten times as much memory."""
_SECONDS = 30.0
"""The longest time that a page should take: so much is lost where the connection breaks."""
_COMPRESSED_BYTES = 160 * 1024
"""API servers compress answers above 128 KiB, to about a tenth: a slow line carries smaller pages no faster."""


class PageLimit:
    """The number of objects for the next page of one collection."""

    def __init__(self, first: int = FIRST) -> None:
        self.limit = first

    def arrived(self, objects: int, size: int, seconds: float) -> None:
        """A page came, with so many objects in so many bytes (uncompressed), and it took so long."""
        if objects == 0 or size == 0:
            return
        average = size / objects
        timely = objects * _SECONDS / seconds if seconds > 0 else math.inf
        timely = max(timely, _COMPRESSED_BYTES / average)
        self.limit = max(1, int(min(2 * self.limit, _MOST, _BYTES / average, timely)))

    def halve(self) -> bool:
        """A page was too large, or took too long: ask for half of it; False where it asked for a single object."""
        smaller = max(1, self.limit // 2)
        found = smaller < self.limit
        self.limit = smaller
        return found
