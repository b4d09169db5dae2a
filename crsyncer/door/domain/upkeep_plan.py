"""Decides what has to be done about the streams of HAProxy's workers: which of them are where they must not be."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from crsyncer.core.model import Json
from crsyncer.door.domain.haproxy_answers import Server, Stream
from crsyncer.door.domain.robots_map import Routes


def strays(streams: Iterable[Stream], wanted: Routes) -> tuple[Stream, ...]:
    """The streams of robots that are gone or are at another shard now (G4.3)."""
    return tuple(each for each in streams if wanted.get(each.namespace) != each.shard)


def turn(known: Sequence[Stream], present: Collection[Stream], rounds: int) -> tuple[list[Stream], list[Stream]]:
    """The streams to end now, if all have to end within so many rounds, this one included, and those that wait.

    Who came first goes first, or those that come back would go again before the others have gone once. `known` are
    those that waited so far, `present` all that there are.
    """
    there, waited = set(present), set(known)
    line = [each for each in known if each in there] + [each for each in present if each not in waited]
    number = -(-len(line) // max(rounds, 1))
    return line[:number], line[number:]


def has_moved(server: Server | None, addresses: Collection[str]) -> bool:
    """Whether a shard is down at an address that its name does not mean any more. HAProxy looks names up at its start.

    `addresses` are what the name means now; none: that is not known.
    """
    return server is not None and not server.is_up and bool(addresses) and server.address not in addresses


def shard_users(shard: str, streams: Iterable[Stream], maps: Iterable[Routes], *, is_up: bool | None) -> Json:
    """Who is at a shard, as `door run` tells it at `/streams?shard=NAME`.

    `robots` have streams there, `routed` are those that a map leads there; `is_up` is what HAProxy finds (None: not
    known).
    """
    there = {each.namespace for each in streams if each.shard == shard}
    routed = {namespace for routes in maps for namespace, own in routes.items() if own == shard}
    return {
        "shard": shard,
        "up": is_up,
        "robots": sorted(namespace.removeprefix("robot-") for namespace in there),
        "routed": sorted(namespace.removeprefix("robot-") for namespace in routed),
    }


def counted(names: Iterable[str], shards: Sequence[str]) -> dict[str, int]:
    """How many there are of each shard."""
    found = dict.fromkeys(shards, 0)
    for name in names:
        found[name] = found.get(name, 0) + 1
    return found


@dataclass(slots=True)
class KeyTimer:
    """When the shards' keys are read again: hourly, and soon after a token was refused. Times are in seconds."""

    hourly: float = 3600.0
    least: float = 10.0
    _read_at: float = field(default=float("-inf"))
    _refused: Mapping[int, int] = field(default_factory=dict)
    _is_due: bool = False

    def refused(self, counts: Mapping[int, int]) -> None:
        """So many tokens were refused, by worker."""
        if any(number > self._refused.get(pid, 0) for pid, number in counts.items()):
            self._is_due = True
        self._refused = dict(counts)

    def due(self, now: float) -> bool:
        """Whether the keys are to be read."""
        return now >= self._read_at + (self.least if self._is_due else self.hourly)

    def read(self, now: float) -> None:
        """They are read now."""
        self._read_at, self._is_due = now, False

    def again(self) -> None:
        """A shard was silent, or the configuration could not be made: read them again soon."""
        self._is_due = True

    def at_once(self) -> None:
        """A file has changed."""
        self._read_at = float("-inf")
