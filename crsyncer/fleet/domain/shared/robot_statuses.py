"""The statuses that robots return of objects that they share, as RobotObjectStatuses say (F9.1, F10.3).

A RobotObjectStatus is hostile input: whatever it says concerns its own robot alone. It counts while it is on the
robot's shard, and is about the source (at the root) or the copy there by its uid.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from sys import intern
from typing import Any

from crsyncer.core.content.object_content import key_of
from crsyncer.core.model import Json, Key
from crsyncer.fleet.domain.change import Change
from crsyncer.fleet.domain.fleet_calls import OBJECT_STATUSES
from crsyncer.fleet.domain.index import Index
from crsyncer.fleet.domain.names import robot_namespace
from crsyncer.fleet.domain.returned.variables import Returned, packed, returned_of, unpacked
from crsyncer.fleet.domain.rollout.reports import is_of_robot
from crsyncer.fleet.domain.transport.keys import ROOT, at
from crsyncer.fleet.domain.values import ReplicaKey, Row, Target

_SOURCE_ID = 24
"""The digits of a SOURCEID, with which the name of a RobotObjectStatus begins."""


@dataclass(frozen=True, slots=True)
class _Kept:
    """What is kept of a RobotObjectStatus. `updated`: when it was written, as it says."""

    uid: str
    """Of the object whose copy the robot has."""
    updated: str
    returned: bytes


class RobotStatuses:
    """The RobotObjectStatuses of all shards. A robot that wrote two of a source is judged by the later one."""

    def __init__(self, index: Index, rows: Mapping[ReplicaKey, Row]) -> None:
        self._index = index
        self._rows = rows
        self._kept: dict[ReplicaKey, dict[Key, _Kept]] = {}
        """By robot and source, then by namespace and name."""
        self._places: dict[str, dict[Key, ReplicaKey]] = defaultdict(dict)
        """By shard, then by namespace and name: what each RobotObjectStatus is of."""
        self._of: dict[str, set[ReplicaKey]] = defaultdict(set)
        """By robot, and by SOURCEID."""
        self.listed: set[str] = set()
        """The shards of which they are listed."""

    def shown(self, raw: Json, *, shard: str, robots_namespace: str) -> Change:
        """A RobotObjectStatus was added or changed. One that names another robot or place does not count."""
        place, spec = key_of(raw), _fields(raw.get("spec"))
        change, source = self.gone(place, shard=shard), _fields(spec.get("source"))
        key = _key(place, source, shard)
        is_sound = is_of_robot(raw, key.robot) and place.name == f"{key.source_id}-{key.robot}"
        if not is_sound or place.namespace not in (robot_namespace(key.robot), robots_namespace):
            return change
        updated = str(spec.get("lastUpdate") or "")
        returned = replace(returned_of({"metadata": {}, "status": spec.get("returned")}), updated=updated or None)
        self._places[shard][place] = key
        self._kept.setdefault(key, {})[place] = _Kept(str(source.get("uid")), updated, packed(returned))
        self._of[key.robot].add(key)
        self._of[key.source_id].add(key)
        change.returned.add(key)
        return change

    def gone(self, place: Key, *, shard: str) -> Change:
        """A RobotObjectStatus was deleted."""
        if (key := self._places[shard].pop(place, None)) is None:
            return Change()
        del self._kept[key][place]
        if not self._kept[key]:
            del self._kept[key]
            self._of[key.robot].discard(key)
            self._of[key.source_id].discard(key)
        return Change(returned={key})

    def of(self, *names: str) -> set[ReplicaKey]:
        """What is returned by a robot, or of sources (their SOURCEIDs), whether it counts or not."""
        return {key for name in names for key in self._of.get(name, ())}

    def has(self, key: ReplicaKey) -> bool:
        """Whether a robot has returned a status of a source that counts."""
        return self._counting(key) is not None

    def returned(self, key: ReplicaKey) -> Returned | None:
        """The status that a robot has returned of a source; None: it has returned none that counts."""
        if (kept := self._counting(key)) is None:
            return None
        return replace(unpacked(kept.returned), generation=self._shared_object(key)[1])

    def are_unseen(self, shard: str) -> bool:
        """Whether a shard has RobotObjectStatuses that are not listed."""
        kind = self._index.kinds.get(at(shard, OBJECT_STATUSES.resource))
        return kind is not None and bool(kind.version) and shard not in self.listed

    def _counting(self, key: ReplicaKey) -> _Kept | None:
        if (kept := self._kept.get(key)) is None:
            return None
        latest = max(kept.values(), key=lambda each: each.updated)
        return latest if latest.uid == self._shared_object(key)[0] else None

    def _shared_object(self, key: ReplicaKey) -> tuple[str, int]:
        """uid and generation of the source (at the root) or the copy that a robot has; ("", 0): there is none."""
        if key.shard != ROOT:
            row = self._rows.get(key._replace(robot=""))
            return ("", 0) if row is None else (row.uid, row.generation)
        place = self._index.source_of(key.source_id)
        source = None if place is None else self._index.sources.get(place)
        return ("", 0) if source is None else (source.uid, source.body["metadata"].get("generation") or 0)


def _key(place: Key, source: Mapping[str, Any], shard: str) -> ReplicaKey:
    group, plural = str(source.get("group") or ""), str(source.get("resource"))
    identity, robot = place.name[:_SOURCE_ID], place.name[_SOURCE_ID + 1 :]
    resource = f"{plural}.{group}" if group else plural
    return ReplicaKey(intern(resource), intern(identity), intern(robot), Target.SHARED, shard)


def _fields(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
