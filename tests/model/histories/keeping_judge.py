"""What keeps copies, as a judge sees it: holds, kinds that are gone, restores, the brake (S5.5, S8.3, C1.7, C5.4)."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from crsyncer.core.model import Json
from tests.model.histories.policy_references import GOALS
from tests.model.simulation.check import Violation
from tests.model.simulation.judge import stamp
from tests.model.simulation.storage import Change, Where

if TYPE_CHECKING:
    from tests.model.histories.keeping_machine import KeepingMachine
    from tests.model.simulation.world import Write

_WINDOW_SECONDS = 60.0
_SEEN_SECONDS = 2.0
"""Within so long an agent knows of what was ordered."""


class End(Enum):
    """Why an original is gone."""

    USER = "somebody deleted it"
    KIND = "it went with its CRD"
    LOST = "the cluster was restored to before it"


@dataclass(slots=True)
class Original:
    """One primary of upstream, by its uid."""

    name: str
    resource: str
    maps: tuple[str, ...]
    """The ConfigMaps that it named when it was last there."""
    needed: tuple[str, ...] = ()
    """Those that it referred to by the entry that the agent knew when it was last there."""
    end: End | None = None
    leaving: bool = False
    released: bool = False
    """Its deletion was verified, and a related copy went with it: a hold that comes later does not bring that back."""
    gained: dict[str, float] = field(default_factory=dict)
    """When it, or its copy, came to name ConfigMaps: a deletion may have been on its way."""
    followed: bool = False
    """Upstream has had another object of its name since: the copy is that one's now (S5.4)."""


@dataclass(slots=True)
class KeepingJudge:
    """Watches one world."""

    machine: "KeepingMachine"
    violations: list[str] = field(default_factory=list)
    originals: dict[str, Original] = field(default_factory=dict)
    held_since: float | None = None
    """When a human held every deletion of goals, and the agent had answered."""
    entry_known: bool = True
    """The entry names the field that there is, and the agent has had the time to notice that."""
    _heard: float = math.inf
    """Since when the agent has been known to follow an entry that names the field that there is."""
    _unwanted: dict[str, dict[str, float]] = field(default_factory=dict)
    """By kind, the copies that the agent deleted whose originals are there and only not wanted or selected any more,
    and when it did so last."""
    _most: dict[str, int] = field(default_factory=dict)
    """How many copies there were in the window."""
    released: float = -_WINDOW_SECONDS
    """When a human released everything last."""
    born: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        world = self.machine.world
        world.witnesses.append(self._witness)
        self.machine.up.server.storage.listeners.append(self._changed)

    # What is true

    def _changed(self, change: Change) -> None:
        obj = change.after or change.before
        if obj is None or change.resource not in self.machine.upstream_kinds:
            return
        uid = obj["metadata"]["uid"]
        known = self.originals.setdefault(uid, Original(obj["metadata"]["name"], change.resource, maps_of(obj)))
        self._note(known, maps_of(obj))
        self._gain(known, change.before, obj)
        self.born.setdefault(uid, self.machine.world.clock.now)
        if change.before is None:
            for other in self.originals.values():
                other.followed |= other is not known and other.name == known.name
        dying = self.machine.is_dying(change.resource)
        known.leaving |= "deletionTimestamp" in obj["metadata"] and not dying
        if change.after is None:
            known.end = End.KIND if dying and not known.leaving else End.USER

    def _gain(self, known: Original, before: Json | None, after: Json) -> None:
        names = set(maps_of(after)) - set(maps_of(before or {}))
        known.gained |= dict.fromkeys(names, self.machine.world.clock.now)

    def _note(self, known: Original, maps: tuple[str, ...]) -> None:
        known.maps, known.needed = maps, maps if self.entry_known else ()

    def _is_final(self, known: Original) -> bool:
        """Whether a primary is gone from where it is read, so that no edit changes what it refers to."""
        return known.end is not None and self.machine.origin is self.machine.up

    def _needs(self, known: Original) -> tuple[str, ...]:
        """The ConfigMaps that a primary refers to."""
        if self._is_final(known):
            return known.needed
        return known.maps if self.machine.pointed else ()

    def restored(self, before: set[str]) -> None:
        """Upstream was restored; these objects (uids) were there before."""
        now = {each["metadata"]["uid"] for each in self.machine.primaries().values()}
        for known in map(self.originals.__getitem__, before - now):
            known.end = End.LOST
            self._note(known, known.maps)
        for uid in now:
            self.originals[uid].end = None
            self.originals[uid].leaving = self.originals[uid].released = False

    def release(self) -> None:
        """A human lets everything go on."""
        self.released = self.machine.world.clock.now
        self.held_since = None
        for known in self.originals.values():
            if known.end is not None:
                known.end = End.USER

    def reselected(self) -> None:
        """Somebody edits which goals are synced, or what they are in the cloud: each edit is counted anew (C1.7)."""
        self._unwanted.pop(GOALS, None)

    # What the agent does

    def _witness(self, write: "Write") -> None:
        try:
            self._look(write)
        except Violation as violation:
            self.violations.append(str(violation))

    def _look(self, write: "Write") -> None:
        self._heard = min(self._heard, write.time) if self.machine.follows_entry() else math.inf
        if write.after is not None and write.resource == "configmaps":
            for known in self.originals.values():  # what it needs is there again
                known.released &= known.end is not None or known.leaving or write.name not in known.maps
        elif write.after is not None and (original := self.originals.get(stamp(write.after))) is not None:
            self._gain(original, write.before, write.after)
        if write.verb != "delete" or write.status >= 300 or write.before is None or write.late:
            return
        if write.resource in self.machine.downstream_kinds and write.side is self.machine.down.side:
            self._primary_deleted(write, write.before)
        elif write.resource == "configmaps":
            self._related_deleted(write, write.before)

    def _primary_deleted(self, write: "Write", copy: Json) -> None:
        known = self.originals.get(stamp(copy))
        if known is None:
            return
        if reason := self._why_kept(known, write.time):
            raise Violation(f"{write}: {reason}, so a human has to say so")
        if known.end is None and not known.leaving:
            self._count(write, len(self.machine.copies()))

    def _related_deleted(self, write: "Write", copy: Json) -> None:
        where = self.machine.map_of(stamp(copy))
        if where is None:
            return  # its original is gone
        name = where[1]
        copies = {stamp(each) for each in self.machine.copies().values()} & self.originals.keys()
        found = {uid: self.originals[uid] for uid in copies}
        users = {uid: each for uid, each in found.items() if name in each.maps and not each.followed}
        stay = {o["metadata"]["uid"] for o in self.machine.primaries().values() if self.machine.is_selected(o)}
        goes_on = self.machine.holds_nothing()
        for uid, each in users.items():
            heard = max(each.gained.get(name, 0.0), 0.0 if self._is_final(each) else self._heard)
            is_over = each.released or write.time < heard + self._slowly()
            if name in self._needs(each) and not is_over and (reason := self._why_kept(each, write.time)):
                raise Violation(f"{write}: the copy of {each.name} refers to it and is kept: {reason} (C5.4)")
            each.released |= each.end is not None or each.leaving or (goes_on and uid not in stay)
        if users and all(uid in stay and not each.leaving for uid, each in users.items()):
            # else it goes with the primary that goes, whoever needed it, too
            self._count(write, len(self.machine.related_copies()))

    def _slowly(self) -> float:
        """For how long the agent may not have heard of something, and what it asks for be on its way, in seconds."""
        return 0.1 + sum(each.latency + each.jitter + each.lag for each in self.machine.world.weather.values())

    def _why_kept(self, known: Original, now: float) -> str:
        """What keeps the copy of a primary; empty: nothing."""
        if self.held_since is not None and self.held_since < now - _SEEN_SECONDS:
            return "a human holds it"
        if known.followed or (known.end is End.KIND and known.resource != self.machine.meant):
            return ""  # a kind whose projection was edited is not missing (C1.7)
        return str(known.end.value) if known.end in (End.KIND, End.LOST) else ""

    def _count(self, write: "Write", left: int) -> None:
        """A copy goes whose original is there and only not wanted any more: not many of them within a minute."""
        known, since = self._unwanted.get(write.resource, {}), write.time - _WINDOW_SECONDS
        times = {name: time for name, time in known.items() if time >= since}
        if not times:
            self._most[write.resource] = left + 1
        self._unwanted[write.resource] = times = {**times, write.name: write.time}
        most = self._most[write.resource]
        if len(times) > max(5, int(0.3 * most)) and write.time - self.released > _WINDOW_SECONDS:
            raise Violation(f"{write}: {len(times)} of {most} in a minute without a hold (C1.7, C5.4)")

    # What is left at rest

    def at_rest(self) -> Iterator[str]:
        """What is wrong although nothing is under way any more."""
        machine = self.machine
        status = machine.world.status()
        primaries = {each["metadata"]["uid"]: each for each in machine.primaries().values()}
        orphans: list[str] = []
        for where, copy in sorted(machine.copies().items()):
            original = primaries.get(stamp(copy))
            if original is None or not machine.is_selected(original):
                orphans.append(where[1])
                known = self.originals.get(stamp(copy))
                maps = () if known is None or known.followed or known.released else self._needs(known)
                maps = tuple(name for name in maps if name in maps_of(copy))  # the last edit may never have been seen
            else:
                maps = maps_of(original)
            if "deletionTimestamp" not in copy["metadata"]:
                yield from self._lacking(where, maps)
        if orphans and not status["holds"] and status["health"] == "healthy":
            yield f"it says that it is healthy, and the copies {orphans} follow nothing (C1.7)"

    def _lacking(self, where: Where, maps: tuple[str, ...]) -> Iterator[str]:
        machine = self.machine
        if not machine.setup.origin or not machine.pointed:
            return
        originals, copies = machine.maps_on(machine.origin), machine.related_copies()
        for name in maps:
            original = originals.get(("default", name))
            if original is not None and original["metadata"]["uid"] not in {stamp(each) for each in copies.values()}:
                yield f"the copy of goal {where[1]} is kept, and that of {name}, which it needs, is gone (C5.4)"


def maps_of(primary: Mapping[str, Json]) -> tuple[str, ...]:
    """The ConfigMaps that a primary refers to."""
    return tuple((primary.get("spec") or {}).get("maps") or ())
