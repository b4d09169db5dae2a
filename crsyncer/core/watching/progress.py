"""Judges whether everything that must not stand still has moved lately: what `/livez` answers."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """Something that must not stand still. Times are in seconds, of the event loop's clock."""

    name: str
    """As `/livez` names it, such as `the watch of /apis/...`."""
    since: float
    """When it moved last."""
    allowed: float
    """For how long it may stand still."""


def stuck(known: Iterable[Progress], now: float) -> str | None:
    """What has stood still for too long, the worst first; None: nothing."""
    late = sorted((each.since + each.allowed - now, each.name, now - each.since) for each in known)
    return f"{late[0][1]} has made no progress for {late[0][2]:.0f} s" if late and late[0][0] < 0 else None
