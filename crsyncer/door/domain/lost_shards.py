"""Decides which shards are lost, so that their streams have to end: robots would wait at them for nothing (G5.1).

A server that is short of CPU is late with every new connection: HAProxy finds it down, and leads nobody there. If its
streams ended for that, all robots would come back at once, and it would be late again. So a shard is lost only if it
gives no answer on a connection that is open, either.
"""

from dataclasses import dataclass, field

_TWICE = 2


@dataclass(slots=True)
class Silence:
    """The shards that gave no answer twice in a row. Whatever is answered shows that the server is alive."""

    _missed: dict[str, int] = field(default_factory=dict)

    def answered(self, shard: str) -> None:
        """An answer came."""
        self._missed[shard] = 0

    def missed(self, shard: str, times: int = 1) -> None:
        """No answer came, so many times."""
        self._missed[shard] = self._missed.get(shard, 0) + times

    @property
    def shards(self) -> frozenset[str]:
        """Those that are silent."""
        return frozenset(shard for shard, number in self._missed.items() if number >= _TWICE)


@dataclass(slots=True)
class Losses:
    """The shards that are lost, from round to round.

    | HAProxy finds it | it is silent | then |
    |---|---|---|
    | up, down | no | it is not lost; another loss may begin |
    | down | yes | it is lost, unless this loss is over |
    | up | yes | the loss, if there is one, is over: the streams that come now are of a server that answered HAProxy |
    """

    lost: frozenset[str] = frozenset()
    """As of the last round."""
    _over: frozenset[str] = frozenset()
    """Shards whose loss is over, and that are silent still."""

    def judge(self, *, down: frozenset[str], silent: frozenset[str]) -> frozenset[str]:
        """The shards that are lost now."""
        self._over = (self._over | (self.lost - down)) & silent
        self.lost = (down & silent) - self._over
        return self.lost
