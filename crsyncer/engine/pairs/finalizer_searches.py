"""How far the searches for finalizers of objects out of sight have come (C6.2)."""

import asyncio
from collections.abc import Iterator

from crsyncer.core.model import FinalizerRow

_PLACES = 32
"""How many places of the list are tried: nobody knows how many finalizers an object out of sight has."""
_FRESH_SECONDS = 10.0
"""For how long a search may go on where it was: the list may be another one later."""


class FinalizerSearches:
    """The searches of all kinds. They outlive the kinds: an edit of a policy restarts its kind, and no search."""

    def __init__(self) -> None:
        self._tried: dict[tuple[str, ...], tuple[int, float]] = {}
        """By what is searched, how many places were tried, and when the last one (event loop time, seconds)."""

    def places(self, row: FinalizerRow) -> Iterator[int]:
        """The places to try, one after another; a search that was cut off moments ago goes on."""
        what, clock = _searched(row), asyncio.get_running_loop().time
        tried, when = self._tried.get(what, (0, 0.0))
        for place in range(tried if clock() - when < _FRESH_SECONDS else 0, _PLACES):
            yield place
            self._tried[what] = place + 1, clock()
        self.ended(row)

    def ended(self, row: FinalizerRow) -> None:
        """Where the finalizer is, or was, is known: the next search begins anew."""
        self._tried.pop(_searched(row), None)


def _searched(row: FinalizerRow) -> tuple[str, ...]:
    """An object, where it may be, and the finalizer: after an edit, one may be looked for in two kinds at once (C7)."""
    return row.side, *row.place, row.upstream_uid, row.name
