"""Whether a replica that nobody wants goes now, later, or only by a human's word (F5).

Never is a replica removed because something could not be seen: a loss counts only once the kinds that it depends on
were seen alive after it, and many losses at once are held. `now` is in seconds.
"""

from collections import defaultdict
from collections.abc import Iterable, Set
from dataclasses import dataclass
from enum import StrEnum

from crsyncer.core.content.object_content import digest
from crsyncer.core.holds.deletion_rate import is_mass
from crsyncer.core.reports.text import count
from crsyncer.fleet.domain.change import Change, Input
from crsyncer.fleet.domain.fleet import Fleet
from crsyncer.fleet.domain.replica_plan import Removal
from crsyncer.fleet.domain.transport.keys import ROOT
from crsyncer.fleet.domain.values import Hold, Placement, ReplicaKey, Verdict

SOURCE_SECONDS = 5.0
ROBOT_SECONDS = 30.0
_WINDOW = 60.0
_SHARE = 0.2


class Why(StrEnum):
    """Why a removal is held: the reason of a hold (F5.2)."""

    ROBOTS_LOST = "RobotsLost"
    PLACEMENT_ROBOTS_LOST = "PlacementRobotsLost"
    SOURCES_LOST = "SourcesLost"
    NO_ROBOTS = "NoRobots"
    NOT_SERVED = "KindNotServed"
    RESTORED = "Restored"
    PLACEMENT_GONE = "PlacementGone"


_MASS = frozenset({Why.ROBOTS_LOST, Why.PLACEMENT_ROBOTS_LOST, Why.SOURCES_LOST})
"""The reasons of F5.2's first case, which end with the deletion of the placement."""
_CAUSES = frozenset({Why.NOT_SERVED, Why.RESTORED})
"""The reasons that explain all others: many Robots that were lost because their CRD is gone are not many losses."""
_WORDS = {
    Why.ROBOTS_LOST: "many Robots were lost within a minute",
    Why.PLACEMENT_ROBOTS_LOST: "many of the placement's robots, or its last ones, were lost within a minute",
    Why.SOURCES_LOST: "many sources of a kind, or all, were lost within a minute",
    Why.NO_ROBOTS: "there are no Robots",
    Why.NOT_SERVED: "the cloud does not serve the kind, the Robots' or RobotPlacement",
    Why.RESTORED: "the cloud was restored, or is another one",
    Why.PLACEMENT_GONE: "the placement is gone, and its finalizer was not processed",
}


Scope = tuple[Why, str]
"""All Robots (""), the robots of a placement (its uid), or the sources of a kind (its name)."""


@dataclass(slots=True)
class Loss:
    """A replica that nobody wants any more."""

    since: float
    edited: bool
    """A placement was edited or deleted."""
    held: Why | None = None
    """Why it stays held until it is back, or released."""
    released: bool = False


class Losses:
    """Which replicas were lost, when, and which of them are held. Feed it each Change of the fleet in turn."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._lost: dict[ReplicaKey, Loss] = {}
        self._recent: dict[Scope, dict[str, float]] = defaultdict(dict)
        """By scope: what was lost, and when, the latest last."""
        self._mass: set[Scope] = set()
        """The scopes that lost too much within a minute."""
        self._alive: dict[str, float] = {}
        """When an input or kind was last seen to be served."""
        self._gone: set[str] = set()
        """The kinds, and the Robots, whose CRD went: what their next list lacks may have gone with it (S5.5a)."""
        self._started: set[str] = set()
        """The kinds that were listed with all that their replicas depend on."""
        self._restored: frozenset[str] = frozenset()
        """The shards of which something was restored and is not listed again."""

    def started(self, now: float, resources: Set[str]) -> None:
        """A new leader has listed these kinds, and all that they depend on, for the first time.

        What is missing was lost now, and is held where its placement shows holds.
        """
        new = resources - self._started
        self._started |= new
        found = []
        for key in self._fleet.rows:
            if key.kind in new and self._is_lost(key):
                found.append(key)
                self._lost[key] = Loss(now, edited=False)
                for scope, name in self._units(key):
                    if self._is_gone(scope, name):
                        self._recent[scope][name] = now
        for scope in list(self._recent):
            self._judge(scope, now, is_list=True)
        for key in found:
            placement = self._placement(key)
            shown = None if placement is None else _shown(placement)
            if shown is not None and (shown not in _MASS or self._lost[key].held is None):
                self._lost[key].held = shown

    def unlisted(self, resource: str) -> None:
        """A kind is about to be listed from the beginning: what is missing counts from when that is done."""
        self._started.discard(resource)
        for key in [key for key in self._lost if key.kind == resource]:
            del self._lost[key]

    def gone(self, resource: str) -> None:
        """The CRD of a kind or of the Robots is gone: its objects went with it, where it is one of the root."""
        self._gone.add(resource)

    def changed(self, change: Change, now: float, *, listed: str = "") -> None:
        """Take up what follows from an event; `listed`: the kind of which a list has just ended.

        Replicas of kinds that were not listed yet are taken up by `started`.
        """
        units = [((Why.ROBOTS_LOST, ""), name) for name in change.lost_robots]
        units += [((Why.PLACEMENT_ROBOTS_LOST, uid), name) for uid, name in change.left]
        units += [((Why.SOURCES_LOST, resource), name) for resource, name in change.lost_sources]
        for scope, name in units:
            self._recent[scope].pop(name, None)
            self._recent[scope][name] = now
        for key in change.keys:
            if key.kind not in self._started:
                continue
            if not self._is_lost(key):
                self._lost.pop(key, None)
            elif key not in self._lost:
                held = Why.NOT_SERVED if self._gone & {key.resource, Input.ROBOTS} else self._blind(key)
                self._lost[key] = Loss(now, edited=key in change.edited, held=held)
        for scope in dict.fromkeys(scope for scope, _ in units):
            self._judge(scope, now, is_list=False, names=[name for other, name in units if other == scope])
        if listed:
            self._gone.discard(listed)
            self._judge((Why.SOURCES_LOST, listed), now, is_list=True)

    def served(self, name: str, *, is_served: bool, now: float) -> None:
        """Discovery has answered whether an input or a kind is served."""
        if is_served:
            self._alive[name] = now
        else:
            self._alive.pop(name, None)
            for key, loss in self._lost.items():
                if name in needed(key):
                    loss.held = Why.NOT_SERVED

    def restored(self, *, is_restored: bool, shard: str = ROOT) -> None:
        """A shard was restored or is another one: what is missing there until all is listed again is held.

        What the root shows decides what is wanted on all shards.
        """
        self._restored = self._restored | {shard} if is_restored else self._restored - {shard}
        if is_restored:
            for key, loss in self._lost.items():
                if shard in (key.shard, ROOT):
                    loss.held = Why.RESTORED

    def lost(self, *, of: str = "") -> set[ReplicaKey]:
        """The replicas that were lost: those of a placement (its uid), or all."""
        return {key for key in self._lost if of in ("", self._fleet.rows[key].marks.placement)}

    def blindness(self) -> tuple[frozenset[str], bool, frozenset[str]]:
        """All that makes every loss prove nothing for a while: when it changes, what was lost is to be looked at."""
        return self._restored, not self._fleet.index.robots, frozenset(self._fleet.dead)

    def removal(self, key: ReplicaKey, now: float) -> Removal:
        """What becomes of a replica that nobody wants.

        seen                                                 removal
        not known to be lost, on another shard than its Robot's, or its placement is unreadable  unknown  F10.2
        released                                             now
        held, its placement is gone, or there are no Robots   held                       F5.2
        its kind is alive and not placeable                  unknown, unless its placement terminates  F5.3
        a kind was not seen alive since the loss             unknown: ask discovery     S5.5a
        its placement was edited, or terminates              now                        F5.1
        its source is gone or unselected                     now after 5 s              F5.1
        its robot is gone or unselected                      now after 30 s             F5.1
        """
        loss, row = self._lost.get(key), self._fleet.rows.get(key)
        if loss is None or row is None:
            return Removal.UNKNOWN
        placement = self._placement(key)
        if loss.released:
            return _now(placement)
        if placement is not None and placement.problem:
            return Removal.UNKNOWN
        if self.held(key) is not None or placement is None:
            return Removal.HELD
        if self._problem(key, placement) is not None and not placement.terminating:
            return Removal.UNKNOWN
        if not self._fleet.is_ready(key.kind) or self.unproven(key):
            return Removal.UNKNOWN
        return _now(placement) if now >= self.due(key) else Removal.LATER

    def manner(self, key: ReplicaKey) -> Removal:
        """How a lost replica goes once it may: it is deleted, or keeps all but our marks (F5.4)."""
        return _now(self._placement(key))

    def is_lost(self, key: ReplicaKey) -> bool:
        """Whether a replica is there that nobody wants any more."""
        return key in self._lost

    def due(self, key: ReplicaKey) -> float:
        """When a lost replica goes, if nothing else stands against it."""
        loss, placement = self._lost[key], self._placement(key)
        if loss.edited or (placement is not None and placement.terminating):
            return loss.since
        is_source = not self._fleet.index.is_selected(key.source_id)
        return loss.since + (SOURCE_SECONDS if is_source else ROBOT_SECONDS)

    def unproven(self, key: ReplicaKey) -> set[str]:
        """The inputs and the kind that must be seen alive before a lost replica goes (S5.5a)."""
        return {str(name) for name in needed(key) if self._alive.get(name, -1.0) < self._lost[key].since}

    def held(self, key: ReplicaKey) -> Why | None:
        """Why the removal of a lost replica is held; None: it is not; a kind that is not placeable keeps it (F2.3)."""
        loss = self._lost.get(key)
        if loss is None or loss.released:
            return None
        if (placement := self._placement(key)) is None:
            return Why.PLACEMENT_GONE
        problem = self._problem(key, placement)
        if problem is not None and problem[0] is Verdict.NOT_PLACEABLE and not placement.terminating:
            return None
        blind = self._blind(key)
        why = blind if blind in _CAUSES else loss.held or blind
        return blind if why in _MASS and placement.terminating else why  # without Robots that still holds

    def holds(self) -> dict[str, list[Hold]]:
        """The holds by the uid of their placement, sorted by reason."""
        found: dict[tuple[str, Why], list[str]] = defaultdict(list)
        for key in self._lost:
            if (why := self.held(key)) is not None:
                row = self._fleet.rows[key]
                found[row.marks.placement, why].append(row.uid)
        holds: dict[str, list[Hold]] = defaultdict(list)
        for (placement, why), uids in sorted(found.items()):
            uids.sort()
            holds[placement].append(
                Hold(digest(uids), why, f"{count(len(uids), 'replica')}: {_WORDS[why]}", tuple(uids))
            )
        return dict(holds)

    def release(self, placement: str, hold: str) -> set[ReplicaKey]:
        """Release exactly what a hold of a placement (its uid) shows; empty: it has no hold of that id."""
        found = next((each for each in self.holds().get(placement, []) if each.id == hold), None)
        if found is None:
            return set()
        uids = set(found.uids)
        keys = {key for key in self._lost if self._fleet.rows[key].uid in uids}
        for key in keys:
            self._lost[key].released = True
        return keys

    def _is_lost(self, key: ReplicaKey) -> bool:
        row = self._fleet.rows.get(key)
        if row is None or row.terminating or self._fleet.index.is_governed(key):
            return False
        return not self._fleet.is_foreign(key)

    def _placement(self, key: ReplicaKey) -> Placement | None:
        """The placement whose mark a replica bears."""
        return self._fleet.index.placement(self._fleet.rows[key].marks.placement)

    def _problem(self, key: ReplicaKey, placement: Placement) -> tuple[Verdict, str] | None:
        """Why the kind of a replica must not be placed, at its shard or at the root: its source is then unseen."""
        index = self._fleet.index
        return index.problem_of(index.kinds[key.kind], shared=placement.shared)

    def _blind(self, key: ReplicaKey) -> Why | None:
        """Why a loss proves nothing now (F5.2, second case)."""
        if self._restored & {ROOT, key.shard}:
            return Why.RESTORED
        kind = self._fleet.index.kinds[key.kind]
        if kind.verdict is Verdict.NOT_SERVED or needed(key) & self._fleet.dead:
            return Why.NOT_SERVED
        return None if self._fleet.index.robots else Why.NO_ROBOTS

    def _units(self, key: ReplicaKey) -> list[tuple[Scope, str]]:
        """What was lost where a replica was, if it was that."""
        source = ((Why.SOURCES_LOST, key.resource), key.source_id)
        if not key.robot:
            return [source]
        placement = self._fleet.rows[key].marks.placement
        return [((Why.ROBOTS_LOST, ""), key.robot), ((Why.PLACEMENT_ROBOTS_LOST, placement), key.robot), source]

    def _is_gone(self, scope: Scope, name: str) -> bool:
        """Whether a robot or source is still lost in a scope."""
        index = self._fleet.index
        match scope:
            case (Why.ROBOTS_LOST, _):
                return name not in index.robots
            case (Why.PLACEMENT_ROBOTS_LOST, uid):
                placement = index.placement(uid)
                return placement is not None and name not in index.robots_of(placement.text)
        return not index.is_selected(name)

    def _size(self, scope: Scope) -> int:
        """How many robots or sources a scope has left."""
        index = self._fleet.index
        match scope:
            case (Why.ROBOTS_LOST, _):
                return len(index.robots)
            case (Why.PLACEMENT_ROBOTS_LOST, uid):
                placement = index.placement(uid)
                return 0 if placement is None else len(index.robots_of(placement.text))
        return index.count(scope[1])

    def _judge(self, scope: Scope, now: float, *, is_list: bool, names: Iterable[str] = ()) -> None:
        """Hold what a scope lost, where that is too much. `names` were lost just now."""
        recent = self._recent[scope]
        while recent and recent[oldest := next(iter(recent))] <= now - _WINDOW:
            del recent[oldest]
        if not self._is_too_much(scope, is_list=is_list):
            self._mass.discard(scope)
            return
        keys: Iterable[ReplicaKey] = self._lost
        if scope in self._mass and scope[0] is not Why.SOURCES_LOST:  # the replicas of other robots are held already
            keys = [key for name in names for key in self._fleet.rows_by_robot.get(name, ())]
        for key in keys:
            loss = self._lost.get(key)
            if loss is not None and not loss.edited and any(s == scope and n in recent for s, n in self._units(key)):
                loss.held = loss.held or scope[0]
        self._mass.add(scope)

    def _is_too_much(self, scope: Scope, *, is_list: bool) -> bool:
        recent, size = self._recent[scope], self._size(scope)
        if scope not in self._mass:
            for name in [name for name in recent if not self._is_gone(scope, name)]:
                del recent[name]
        lost = len(recent)
        is_last = not size and scope[0] is Why.PLACEMENT_ROBOTS_LOST and lost > 1
        is_empty = not size and scope[0] is Why.SOURCES_LOST and lost > 0 and is_list
        return is_last or is_empty or is_mass(lost, size + lost, share=_SHARE)


def needed(key: ReplicaKey) -> Set[str]:
    """The inputs and kinds of which the absence of anything may be the reason that nobody wants a replica."""
    return {Input.ROBOTS, Input.PLACEMENTS, key.resource, key.kind}


def _now(placement: Placement | None) -> Removal:
    return Removal.UNMARK if placement is not None and placement.keep_replicas else Removal.NOW


def _shown(placement: Placement) -> Why | None:
    """The reason of the holds that a placement shows: one that the deletion of the placement does not end, if any.

    One that shows that a kind of its was not served has lost what that kind's next list lacks, too.
    """
    reasons = _texts(placement.status.get("holds"), "reason")
    if reasons:
        found = [why for why in Why if why in reasons]
        return min(found, key=lambda why: why in _MASS, default=Why.ROBOTS_LOST)
    return Why.NOT_SERVED if "NotServed" in _texts(placement.status.get("conditions"), "reason") else None


def _texts(items: object, name: str) -> list[object]:
    """A field of each of the items of a stored status, whatever is stored."""
    return [each.get(name) if isinstance(each, dict) else None for each in items] if isinstance(items, list) else []
