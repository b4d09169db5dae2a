"""Which replicas were seen, and where: by source and robot, by robot, and by kind and name."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection
from dataclasses import replace

from crsyncer.core.model import Json, Key
from crsyncer.core.watching.watch import newer
from crsyncer.fleet.domain.read_objects import row_of
from crsyncer.fleet.domain.transport.keys import ReplicaKey
from crsyncer.fleet.domain.values import Row


class Rows:
    """The rows of all replicas, and other objects that claim to be some. `is_foreign`: on another than its shard."""

    def __init__(self, is_foreign: Callable[[ReplicaKey], bool]) -> None:
        self._is_foreign = is_foreign
        self.all: dict[ReplicaKey, Row] = {}
        self.by_robot: dict[str, dict[ReplicaKey, None]] = defaultdict(dict)
        """Dictionaries without values: of ten keys they have half the size of a set."""
        self.bound: Counter[str] = Counter()
        """By the uid of a placement: how many replicas keep it from going (F5.3)."""
        self._places: dict[str, dict[Key, ReplicaKey]] = defaultdict(dict)
        """By kind and name: the replica there."""
        self._others: dict[str, dict[Key, str]] = defaultdict(dict)
        """By kind and name: the SOURCEID that an object claims which is no replica."""
        self._waiting: dict[tuple[str, Key], set[ReplicaKey]] = defaultdict(set)
        """By kind and name: the replicas that cannot be made because another one is there (F3.7)."""

    def key_at(self, kind: str, place: Key) -> ReplicaKey | None:
        """The replica of this name; None: it is none."""
        return self._places[kind].get(place)

    def has(self, kind: str, place: Key, metadata: Json) -> bool:
        """Whether the replica of a name is known in this version or a newer one."""
        key = self._places[kind].get(place)
        if key is None:
            return False
        row, version = self.all[key], metadata["resourceVersion"]
        is_newer = row.resource_version == version or newer(row.resource_version, version)
        return is_newer and row.uid == metadata["uid"]

    def admit(self, key: ReplicaKey, raw: Json) -> bool:
        """The answer to a write of ours shows a replica that is known in that version or a newer one (F3.5).

        Whether it tells what the server made of the write.
        """
        old = self.all[key]
        content = old.content
        if old.resource_version != raw["metadata"]["resourceVersion"]:  # somebody has changed it since
            row = row_of(raw, key.resource)
            content = old.admitted if row is None or row.marks.number != old.marks.number else row.content
        if content == old.admitted:
            return False
        self.all[key] = replace(old, admitted=content)
        return True

    def of_kind(self, kind: str) -> Collection[ReplicaKey]:
        """All replicas of a kind."""
        return self._places[kind].values()

    def places(self, kind: str) -> set[Key]:
        """The names of all objects of a kind that are no sources."""
        return {*self._places[kind], *self._others[kind]}

    def put(self, kind: str, key: ReplicaKey, row: Row) -> None:
        """A replica is there."""
        old = self.all.get(key)
        if old is not None:
            self.bound[old.marks.placement] -= self._binds(key, old)
        self.bound[row.marks.placement] += self._binds(key, row)
        self.all[key] = row
        places, place = self._places[kind], Key(row.namespace, row.name)
        if places.get(place) != key:  # else the equal key would be in memory twice
            places[place] = key
        self.by_robot[key.robot][key] = None

    def drop(self, kind: str, key: ReplicaKey) -> Row:
        """A replica is gone."""
        row = self.all.pop(key)
        del self._places[kind][Key(row.namespace, row.name)]
        self.by_robot[key.robot].pop(key, None)
        if not self.by_robot[key.robot]:
            del self.by_robot[key.robot]
        self.bound[row.marks.placement] -= self._binds(key, row)
        return row

    def foreign(self, robot: str) -> set[ReplicaKey]:
        """The replicas of a robot that are on another shard than its own."""
        return {key for key in self.by_robot.get(robot, ()) if self._is_foreign(key)}

    def moved(self, robot: str, foreign: set[ReplicaKey]) -> set[ReplicaKey]:
        """A Robot is on another shard, there or gone; `foreign` was so before. The replicas of which that changes."""
        changed = foreign ^ self.foreign(robot)
        for key in changed:
            row = self.all[key]
            if not row.terminating:
                self.bound[row.marks.placement] += -1 if self._is_foreign(key) else 1
        return changed

    def claim(self, kind: str, place: Key) -> str | None:
        """The SOURCEID that an object of this name claims ("": none); None: there is none but replicas."""
        return self._others[kind].get(place)

    def is_taken(self, key: ReplicaKey, place: Key) -> bool:
        """Whether the name of a replica that is not there is another one's, which it then waits for (F3.7)."""
        if place in self._places[key.kind]:
            self._waiting[key.kind, place].add(key)
            return True
        return self.claim(key.kind, place) not in (None, key.source_id)

    def waiting(self, kind: str, row: Row) -> Collection[ReplicaKey]:
        """The replicas that wait for the name of one, which is about to change. They are forgotten."""
        return self._waiting.pop((kind, Key(row.namespace, row.name)), ())

    def claims(self, kind: str, place: Key, source_id: str) -> bool:
        """An object that is no replica claims a SOURCEID; whether that is news."""
        if self._others[kind].get(place) == source_id:
            return False
        self._others[kind][place] = source_id
        return True

    def unclaim(self, kind: str, place: Key) -> bool:
        """What was there and is no replica is gone; whether there was such."""
        return self._others[kind].pop(place, None) is not None

    def forget_claims(self, kind: str) -> None:
        """All objects of a kind are gone."""
        self._others[kind].clear()

    def _binds(self, key: ReplicaKey, row: Row) -> bool:
        return not row.terminating and not self._is_foreign(key)


def writing(row: Row) -> tuple[str, str, int, bool]:
    """What a robot's acknowledgement of a replica depends on (F9.5)."""
    return row.marks.placement, row.uid, row.marks.number, row.terminating
