"""The status of a singleton: of a source that goes to exactly one robot (F6.2).

`status.singletons` of a placement lists the sources whose status was written. It lists a source before the first write,
so that a new leader knows what to remove; and it lists it until the status is removed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from crsyncer.core.content.object_content import digest, is_deeper_than
from crsyncer.core.model import Json
from crsyncer.fleet.domain.change import Change, Input
from crsyncer.fleet.domain.fleet import Fleet
from crsyncer.fleet.domain.names import source_id
from crsyncer.fleet.domain.read_objects import not_served
from crsyncer.fleet.domain.returned.due import Due
from crsyncer.fleet.domain.returned.variables import Returned, packed, unpacked
from crsyncer.fleet.domain.selection import governing, may_be_source
from crsyncer.fleet.domain.values import (
    MOST_LEVELS,
    Blocked,
    Nothing,
    Patch,
    Placement,
    Reason,
    ReplicaKey,
    SourceKey,
    Verdict,
    Wait,
)

MOST_SINGLETONS = 500


@dataclass(frozen=True, slots=True)
class Record:
    """The placement (NAMESPACE/NAME) has to list the source first: see `Singletons.entries`."""

    placement: str


@dataclass(frozen=True, slots=True)
class Read:
    """The replica has to be read, and shown again: its status is not known."""

    key: ReplicaKey


SingletonPlan = Nothing | Record | Read | Patch | Wait | Blocked


@dataclass(frozen=True, slots=True)
class _Seen:
    """A source as the API server has it. `status`: the digest of its status; "": it has none."""

    uid: str
    status: str
    is_left: bool = False
    """It is what an API server made of our removal, such as defaults."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """The one replica whose status a source gets, and the placement that lists it."""

    placement: Placement
    key: ReplicaKey


@dataclass(frozen=True, slots=True)
class _Status:
    """The status of a chosen replica. `digest`: "" where it has none."""

    digest: str
    kept: bytes = b""
    problem: str = ""


class Singletons:
    """What is done about the status of each source. The fleet takes up each event first. No I/O and no clock."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._seen: dict[SourceKey, _Seen] = {}
        self._statuses: dict[ReplicaKey, _Status] = {}
        """Of chosen replicas alone."""
        self._listed: dict[str, tuple[Json, dict[str, str]]] = {}
        """By placement: its status as it was read, and the robot of each source that is listed there."""
        self._ids: dict[str, SourceKey] = {}
        """By SOURCEID: the sources that were ever listed."""

    # Events

    def changed(self, change: Change) -> Due:
        """Placements, sources, Robots or replicas came, changed or went: the fleet has taken it up."""
        index = self._fleet.index
        found = {source for text in change.placements for source in self._read(text)}
        for key in self._statuses.keys() & change.keys:
            if key not in self._fleet.rows:
                del self._statuses[key]
        for identity in {key.source_id for key in change.keys}:
            source = index.source_of(identity) or self._ids.get(identity)
            if source is not None and (self._singles(source) or self._listing(source)):
                found.add(source)
        return Due(singletons=found)

    def listed(self) -> Due:
        """An input or a kind was listed consistently: what placements list may have been waiting for it."""
        placements = self._fleet.index.placements
        found = (self._source(placements[text], name) for text, (_, names) in self._listed.items() for name in names)
        return Due(singletons=self._remembered(found))

    def source_shown(self, raw: Json, resource: str) -> Due:
        """An object of a placed kind was added or changed, or the API server has answered our write of its status."""
        metadata = raw["metadata"]
        key = SourceKey(resource, metadata.get("namespace") or "", metadata["name"])
        if not may_be_source(raw):
            return self.source_gone(key)
        old, status = self._seen.get(key), _status(raw).digest
        is_left = old is not None and old.is_left and old.status == status
        self._seen[key] = _Seen(metadata["uid"], status, is_left)
        return Due(singletons={key})

    def removed(self, raw: Json, resource: str) -> Due:
        """The API server's answer to our removal of a status: what is left of it is the server's own."""
        due = self.source_shown(raw, resource)
        self._seen.update((key, replace(self._seen[key], is_left=True)) for key in due.singletons & self._seen.keys())
        return due

    def source_gone(self, key: SourceKey) -> Due:
        """An object of a placed kind was deleted."""
        return Due(singletons=set() if self._seen.pop(key, None) is None else {key})

    def replica_shown(self, key: ReplicaKey, raw: Json) -> Due:
        """A replica as it is now, its row being in the fleet."""
        source = self._fleet.index.source_of(key.source_id)
        chosen = None if source is None else self.chosen(source)
        if source is None or chosen is None or chosen.key != key:
            self._statuses.pop(key, None)
            return Due()
        self._statuses[key] = _status(raw)
        return Due(singletons={source})

    # What follows

    def chosen(self, source: SourceKey) -> Chosen | None:
        """The replica whose status a source gets; None: its Singleton placements do not select exactly one robot."""
        index = self._fleet.index
        selecting = self._singles(source)
        if any(len(index.robots_of(each.text)) > 1 for each in selecting):
            return None
        robots = {robot for each in selecting for robot in index.robots_of(each.text)}
        placement = governing(each for each in selecting if index.robots_of(each.text))
        if placement is None or len(robots) > 1:
            return None
        key = next(index.keys_of(source, placement.text, robots), None)
        return None if key is None else Chosen(placement, key)

    def plan(self, source: SourceKey) -> SingletonPlan:
        """What must be done about the status of one source.

        robots       replica's status   do
        not known    any                wait, as on a shard that cannot be seen
        exactly one  not read           read it
        exactly one  none               remove what another robot's was, else nothing
        exactly one  seen               list the source, then copy the status, each where it differs
        other        any                remove the status where a placement lists the source
        """
        if problem := self._blind(source):
            return Wait(problem)
        chosen = self.chosen(source)
        if chosen is None:
            return self._removal(source)
        if not self._has_subresource(source):
            return Blocked(Reason.REFUSED, f"{source.resource} has no status subresource")
        if self._fleet.is_unseen(chosen.key) or self._fleet.misplaced(chosen.key) is not None:
            return Wait(f"the replica on shard {chosen.key.shard} cannot be seen")
        status, robot = self._status_of(chosen.key), chosen.key.robot
        if status is None:
            return Read(chosen.key)
        if status.problem:
            return Blocked(Reason.REFUSED, status.problem)
        if not status.digest:
            is_others = any(each != robot for each in self._listing(source).values())
            return self._removal(source) if is_others else Nothing()
        listed = self._entries_of(chosen.placement.text)
        if listed.get(_text(source)) != robot:
            if len(listed) < MOST_SINGLETONS or _text(source) in listed:
                return Record(chosen.placement.text)
            message = f"status.singletons of {chosen.placement.text} has {len(listed)} sources; no more are allowed"
            removal = self._removal(source)
            return Blocked(Reason.REFUSED, message) if isinstance(removal, Nothing) else removal
        seen = self._seen.get(source)
        if seen is None or seen.status == status.digest:
            return Nothing()
        return Patch((_test(seen), {"op": "add", "path": "/status", "value": unpacked(status.kept).status}))

    def entries(self, text: str) -> list[Json]:
        """`status.singletons` of a placement. Its finalizer waits until the stored one is empty (F5.3)."""
        placement, listed = self._fleet.index.placements[text], self._entries_of(text)
        kept = {name: robot for name, old in listed.items() if (robot := self._entry(placement, name, old))}
        new = {
            _text(source): robot
            for source in self._fleet.index.sources_of(text)
            if _text(source) not in listed and (robot := self._new_entry(text, source))
        }
        room = MOST_SINGLETONS - len(kept)
        return [
            {"source": name, "robot": robot} for name, robot in sorted([*kept.items(), *sorted(new.items())[:room]])
        ]

    def _entry(self, placement: Placement, name: str, robot: str) -> str:
        """The robot of an entry that is listed; "": there is nothing of ours to remove any more."""
        source = self._source(placement, name)
        if source is None or self._blind(source):
            return robot
        chosen = self.chosen(source)
        if chosen is not None and chosen.placement.text == placement.text:
            status = self._status_of(chosen.key)
            if status is None or status.digest:
                return robot if status is None else chosen.key.robot
        elif chosen is not None and _text(source) in self._entries_of(chosen.placement.text):
            return ""
        return robot if self._has_status(source) else ""

    def _new_entry(self, text: str, source: SourceKey) -> str:
        """The robot of a source that is to be listed; "": it is not to be."""
        chosen = self.chosen(source)
        if chosen is None or chosen.placement.text != text or not self._has_subresource(source):
            return ""
        status = self._status_of(chosen.key)
        if status is not None and status.digest:
            return chosen.key.robot
        return min(self._listing(source).values(), default="")

    def _removal(self, source: SourceKey) -> SingletonPlan:
        listing, seen = self._listing(source), self._seen.get(source)
        placements = [self._fleet.index.placements[text] for text in listing]
        if any(each.problem for each in placements):
            return Wait("a placement that lists it cannot be read")
        if not self._fleet.index.robots and not all(each.terminating for each in placements):
            return Wait("there are no Robots")
        if not listing or seen is None or not self._has_status(source):
            return Nothing()
        return Patch((_test(seen), {"op": "remove", "path": "/status"}))

    def listing(self, source: SourceKey) -> set[str]:
        """The placements that list a source."""
        return set(self._listing(source))

    # What is known

    def _blind(self, source: SourceKey) -> str:
        """Why nothing can be said of a source; empty: it can (F1.1)."""
        kind = self._fleet.index.kinds.get(source.resource)
        if kind is None or not self._fleet.is_ready(source.resource):
            return f"{source.resource} is not listed"
        dead = {Input.ROBOTS, Input.PLACEMENTS, source.resource} & self._fleet.dead
        if dead or kind.verdict is Verdict.NOT_SERVED:
            return not_served(min(dead, default=source.resource))
        return ""

    def _singles(self, source: SourceKey) -> list[Placement]:
        """The Singleton placements that select a source. A template has no status, a Shared source none of a robot."""
        if source.placement:
            return []
        index = self._fleet.index
        found = (index.placements[text] for text in index.placements_of(source))
        return [each for each in found if each.singleton and not each.shared]

    def _listing(self, source: SourceKey) -> dict[str, str]:
        """The placements that list a source, with the robot that they name."""
        name, placements = _text(source), self._fleet.index.placements
        return {
            text: entries[name]
            for text, (_, entries) in self._listed.items()
            if name in entries and self._source(placements[text], name) == source
        }

    def _read(self, text: str) -> Iterable[SourceKey]:
        """Take up the entries of a placement, if its status changed; the sources in them, before and now."""
        placement = self._fleet.index.placements.get(text)
        status, before = self._listed.get(text, ({}, {}))
        if placement is None:
            self._listed.pop(text, None)
            return {source for source in self._ids.values() if _text(source) in before}
        if placement.status is status:
            return set()
        now = _entries(placement.status)
        if now:
            self._listed[text] = (placement.status, now)
        else:
            self._listed.pop(text, None)
        return self._remembered(self._source(placement, name) for name in before | now)

    def _remembered(self, sources: Iterable[SourceKey | None]) -> set[SourceKey]:
        found = {each for each in sources if each is not None}
        self._ids |= {source_id(each): each for each in found}
        return found

    def _entries_of(self, text: str) -> Mapping[str, str]:
        return self._listed[text][1] if text in self._listed else {}

    def _source(self, placement: Placement, name: str) -> SourceKey | None:
        """The source of an entry; None: its kind is not known."""
        resource, _, own = name.partition("/")
        kind = self._fleet.index.kinds.get(resource)
        return None if kind is None else SourceKey(resource, placement.namespace if kind.namespaced else "", own)

    def _status_of(self, key: ReplicaKey) -> _Status | None:
        """The status of a replica; None: it is not read."""
        return self._statuses.get(key) if key in self._fleet.rows else _Status("")

    def _has_subresource(self, source: SourceKey) -> bool:
        return self._fleet.index.kinds[source.resource].has_status

    def _has_status(self, source: SourceKey) -> bool:
        """Whether a source has a status that may be ours."""
        seen = self._seen.get(source)
        found = seen is not None and seen.status != "" and not seen.is_left
        return found and self._has_subresource(source)


def _text(source: SourceKey) -> str:
    """How `singletons` calls a source: RESOURCE.GROUP/NAME."""
    return f"{source.resource}/{source.name}"


def _entries(status: Json) -> dict[str, str]:
    items = status.get("singletons")
    found = [each for each in items if isinstance(each, dict)] if isinstance(items, list) else []
    return {str(each.get("source")): str(each.get("robot") or "") for each in found}


def _status(raw: Json) -> _Status:
    status = raw.get("status")
    if not isinstance(status, dict) or not status:
        return _Status("")
    if is_deeper_than(status, MOST_LEVELS):
        return _Status("deep", problem=f"the status is nested more than {MOST_LEVELS} levels deep")
    return _Status(digest(status), packed(Returned(status)))


def _test(seen: _Seen) -> dict[str, str]:
    return {"op": "test", "path": "/metadata/uid", "value": seen.uid}
