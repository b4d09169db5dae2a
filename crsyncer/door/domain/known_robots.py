"""Which Robots there are, and the shard that each asks for: what went with its kind is no Robot that is gone (F5.2)."""

from collections.abc import Collection
from dataclasses import dataclass, field

from crsyncer.door.domain.robots_map import Routes


@dataclass(slots=True)
class KnownRobots:
    """The Robots as they were seen. One that vanishes counts on until its kind was seen alive after that.

    If the kind is being deleted, or if several vanish at once and no Robot at all would be left, it is *lost*: it
    counts on until it is seen again. Its API server still serves the robot, and the map still leads it there.
    """

    labels: dict[str, str] = field(default_factory=dict)
    """The shard that each asks for, those that have vanished included."""
    vanished: set[str] = field(default_factory=set)
    """Those of which it has to be found out whether they are gone."""
    lost: set[str] = field(default_factory=set)
    were_seen: bool = False
    """Whether there ever was one."""

    def shown(self, name: str, label: str) -> bool:
        """A Robot is there; whether it asks for another shard than before, or is new."""
        self.were_seen = True
        self.vanished.discard(name)
        self.lost.discard(name)
        is_new = self.labels.get(name) != label
        self.labels[name] = label
        return is_new

    def vanish(self, name: str) -> None:
        """A Robot is there no more."""
        if name in self.labels:
            self.vanished.add(name)

    def judge(self, names: Collection[str], *, is_alive: bool) -> None:
        """These had vanished when their kind was asked for: it is alive, or it is not served or being deleted."""
        found = self.vanished.intersection(names)
        self.vanished -= found
        is_last = len(found) == 1 and not self.lost
        if is_alive and (is_last or self.labels.keys() - found - self.lost):
            for name in found:
                del self.labels[name]
        else:
            self.lost |= found


def held_routes(wanted: Routes, last: Routes, *, were_seen: bool) -> Routes:
    """The map that holds: that of the Robots, and the last one where no Robot was ever seen."""
    return wanted if were_seen else last
