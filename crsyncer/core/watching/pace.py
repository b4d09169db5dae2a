"""How many writes a server gets at a time: as many as do not wait for each other (S9.5).

On a slow link more parallel writes only make a queue, and urgent writes wait behind it. An answer that takes longer
than the best recent answer of its verb has waited in that queue. As in LEDBAT (RFC 6817) the limit grows slowly while
answers are as quick as the best, and drops when they get slower. A distant server is not a slow link: there every
answer takes equally long. Time, in seconds, is an argument.
"""

import math

MOST = 16
"""Writes at a time, to a server and of a kind (S9.5)."""
_FIRST, _FEWEST = 4.0, 2.0
_WAITING, _WAITING_SECONDS = 3.0, 0.25
"""An answer has waited that took so many times the best, as a new connection takes, and as much as a busy server."""
_FEWER = 0.5
_WINDOW_SECONDS = 60.0
"""The best answers are those of the last two windows: the network path may change."""
_SLOW_SECONDS = 2.0


class Pace:
    """Learns from answers to writes. Their time depends on the request, so like is compared with like."""

    def __init__(self) -> None:
        self._limit = _FIRST
        self._rising = True
        """Whether no write has waited yet: then the limit is raised quickly."""
        self._changed_at = -math.inf
        self._best: dict[str, list[float]] = {}
        """By sort of request: in how many seconds the best answer of this window came, and of the one before."""
        self._window = 0

    @property
    def limit(self) -> int:
        """Writes that may be under way at a time."""
        return int(self._limit)

    @property
    def slow(self) -> float:
        """Seconds after which a request takes longer than this link explains."""
        best = min((min(window) for window in self._best.values()), default=0.0)
        return max(_SLOW_SECONDS, 3 * best) if best < math.inf else _SLOW_SECONDS

    def answered(self, asked: str, seconds: float, *, under_way: int, now: float) -> None:
        """A write was answered, after so many seconds, when so many were under way, with this one."""
        self._turn_window(now)
        window = self._best.setdefault(asked, [math.inf, math.inf])
        window[0] = min(window[0], seconds)
        if seconds <= _WAITING * min(window) + _WAITING_SECONDS:
            if 2 * under_way >= self.limit:  # else the limit was not tested
                self._limit = min(float(MOST), self._limit + (1.0 if self._rising else 1.0 / self._limit))
        elif now - seconds >= self._changed_at:  # else it waited for requests that have ended by now
            self._limit = max(min(self._limit, _FEWEST), self._limit * _FEWER)
            self._rising, self._changed_at = False, now

    def throttled(self) -> None:
        """The server asked for a pause (429, Retry-After): one write at a time, until answers come quickly again."""
        self._limit, self._rising = 1.0, True

    def _turn_window(self, now: float) -> None:
        window = int(now / _WINDOW_SECONDS)
        if window != self._window:
            last = {asked: best[0] for asked, best in self._best.items() if window == self._window + 1}
            self._best = {asked: [math.inf, best] for asked, best in last.items() if best < math.inf}
            self._window = window
