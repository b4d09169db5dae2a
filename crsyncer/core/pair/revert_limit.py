"""How often a copy that somebody keeps changing is reverted (S3.5). Time, in seconds, is an argument."""

from collections import deque

from crsyncer.core.model import Key

_WINDOW_SECONDS = 60.0
_REVERTS_A_WINDOW = 5


class RevertLimit:
    """Slows down a fight over an object: more than five reverts a minute become one a minute (S3.5).

    A fight is over when there was nothing to revert for a minute after the object might have been reverted again.
    Then it is forgotten, together with the object.
    """

    def __init__(self) -> None:
        self._reverts: dict[Key, deque[float]] = {}
        """The last reverts of each object; the object that was reverted last comes last."""
        self._fights: set[Key] = set()

    def wait(self, key: Key, now: float) -> float:
        """Seconds until the object may be reverted again; 0: now."""
        self._forget(now)
        times = self._reverts.get(key)
        if times is None:
            return 0.0
        if len(times) == _REVERTS_A_WINDOW and times[0] > now - _WINDOW_SECONDS:
            self._fights.add(key)
        return max(0.0, times[-1] + _WINDOW_SECONDS - now) if key in self._fights else 0.0

    def reverted(self, key: Key, now: float) -> None:
        """The object was reverted."""
        times = self._reverts.pop(key, None) or deque(maxlen=_REVERTS_A_WINDOW)
        times.append(now)
        self._reverts[key] = times
        self._forget(now)

    def _forget(self, now: float) -> None:
        while self._reverts:
            key, times = next(iter(self._reverts.items()))
            if times[-1] > now - 2 * _WINDOW_SECONDS:
                break
            del self._reverts[key]
            self._fights.discard(key)
