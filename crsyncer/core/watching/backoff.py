"""How long to wait before something is tried again: the one rule of back-off, and the one jitter (S9.1, S10).

Waits are in seconds. Randomness is an argument: `chance` is a number from 0 to 1.
"""

from dataclasses import dataclass

_LONGEST_RETRY_AFTER = 250.0
"""With its jitter of a fifth this is five minutes: a portal's `Retry-After: 86400` does not cost a day (S9.1)."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """Waits that double from `first` to `last`, each with jitter over its whole octave.

    When n tries failed before the last one, the wait is anywhere between `first * 2**n` and twice that. So clients that
    failed together spread out, and still the least waits double too: whatever the jitter, a job whose waits go from
    1 to 60 s is tried at most six times in its first minute (S10).
    """

    first: float
    last: float

    def wait(self, failures: int, chance: float) -> float:
        """How long to wait when so many tries in a row had failed before the last one."""
        longest = min(self.last, self.first * 2.0 ** (min(failures, 30) + 1))
        return longest * (1.0 + chance) / 2


RETRY = Backoff(1.0, 60.0)
"""For every failure that has no back-off of its own."""
UNSERVED = Backoff(1.0, 30.0)
"""For a kind that is not served or not allowed: an administrator may be waiting for the result of a repair."""
CONFLICT = Backoff(0.05, 60.0)
"""For a write that met a conflict, because the object had changed: the newer version usually arrives at once."""
TAKEN = Backoff(15.0, 300.0)
"""For a copy whose name another object has: often no event shows that it is gone."""


def capped(retry_after: float | None, *, default: float = 0.0) -> float:
    """The pause, in seconds, that a server asks for by `Retry-After`; `default`: where it names no time."""
    return min(_LONGEST_RETRY_AFTER, default if retry_after is None else retry_after)


def spread(seconds: float, chance: float) -> float:
    """A wait that must not be shorter than asked for: longer by up to a fifth."""
    return seconds * (1.0 + chance / 5)
