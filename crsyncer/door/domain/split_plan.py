"""Judges the steps by which a shard is split: which are done, which are open, and which must not be taken (G7.2).

1 the new shard is a clone; 2 the Robots have its label; 3 no stream of theirs is at the shard that is split; 4 their
objects go there; 5 the objects of the other robots go at the new one.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from crsyncer import __version__
from crsyncer.core.accounts.robot_account import is_robot_name, robot_namespace
from crsyncer.core.model import Json
from crsyncer.core.reports.text import count, some
from crsyncer.door.domain.split_objects import Place, StoredObject, clone_difference, why_it_stays

SCHEMA = "crsyncer.door-split/v1"
CLONE, LABELS, STREAMS, THEIRS, OTHERS = STEPS = (1, 2, 3, 4, 5)


class State(StrEnum):
    """How far a step is."""

    DONE = "done"
    OPEN = "open"
    WAITS = "waits"
    """There is nothing to do now: robots are not at the new shard yet, or others' finalizers keep objects."""
    FAILED = "failed"
    """It must not be taken, nor a later one."""


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a split, as it is now."""

    number: int
    title: str
    state: State
    message: str = ""
    """What would be done, what is waited for, or what is wrong."""
    details: tuple[str, ...] = ()
    """A line for each object or robot that the message is about."""
    hint: str = ""

    @property
    def holds(self) -> bool:
        """Whether a later step may be taken.

        The objects of the other robots can go while some of these robots are still to be seen at the new shard.
        """
        return self.state is State.DONE or (self.number == THEIRS and self.state is State.WAITS)

    @property
    def document(self) -> Json:
        """As it stands in the document."""
        return {
            "number": self.number,
            "title": self.title,
            "state": str(self.state),
            "message": self.message,
            "details": list(self.details),
            "hint": self.hint,
        }


@dataclass(frozen=True, slots=True)
class AskedDoor:
    """What a door says of the two shards."""

    address: str
    error: str = ""
    """Why it says nothing; empty: it has answered."""
    streams: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """By shard the robots that have streams there, in old processes of HAProxy, too."""
    routed: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """By shard the robots that the maps in force lead there."""
    down: frozenset[str] = frozenset()
    """The shards that HAProxy finds down."""

    def has_at(self, shard: str) -> frozenset[str]:
        """The robots that have streams at a shard, or whose next request goes there."""
        return self.streams.get(shard, frozenset()) | self.routed.get(shard, frozenset())


@dataclass(frozen=True, slots=True)
class SplitFacts:
    """What the steps are judged by, as it was read just now."""

    shard: str
    new: str
    names: tuple[str, ...]
    """The robots that are to be at the new shard."""
    labels: Mapping[str, str]
    """The shard of each Robot."""
    identities: tuple[str, str]
    """The uids of kube-system at the two shards."""
    at_shard: Mapping[Place, StoredObject]
    """The objects in the namespaces of these robots at the shard that is split."""
    at_new: Mapping[Place, StoredObject]
    """Those at the new one, in the namespaces of the other robots as well."""
    doors: tuple[AskedDoor, ...]

    @property
    def moved(self) -> frozenset[str]:
        """The robots whose label says that they are at the new shard."""
        return frozenset(name for name in self.names if self.labels.get(name) == self.new)

    @property
    def others(self) -> frozenset[str]:
        """The robots that stay at the shard that is split."""
        return other_robots(self.labels, self.shard, self.names)


def other_robots(labels: Mapping[str, str], shard: str, names: Collection[str]) -> frozenset[str]:
    """The robots that stay at a shard."""
    return frozenset(name for name, own in labels.items() if own == shard and name not in names and is_robot_name(name))


def judge_split(facts: SplitFacts) -> tuple[Step, ...]:
    """All steps as they are."""
    return (_clone(facts), _labels(facts), _streams(facts), _theirs(facts), _others(facts))


def blocker(steps: Sequence[Step], number: int) -> Step | None:
    """The first step before this one that does not hold; None: it may be taken."""
    return next((each for each in steps[: number - 1] if not each.holds), None)


def _clone(facts: SplitFacts) -> Step:
    shard, new = facts.shard, facts.new
    title = f"{new} is a clone of {shard}"
    one, other = facts.identities
    if one != other:
        message = f"{new} is another cluster: its kube-system has the uid {other}, and that of {shard} {one}"
        return Step(CLONE, title, State.FAILED, message, hint=f"restore a snapshot of the etcd of {shard} as {new}")
    namespaces = _namespaces(name for name in facts.names if name not in facts.moved)
    differing = [
        f"{place} {why}"
        for place in sorted(facts.at_shard.keys() | facts.at_new.keys())
        if place.namespace in namespaces
        and (why := clone_difference(shard, new, facts.at_shard.get(place), facts.at_new.get(place)))
    ]
    if differing:
        return Step(
            CLONE,
            title,
            State.FAILED,
            f"the clone is stale, {count(len(differing), 'object')} of these robots: {differing[0]}",
            tuple(differing),
            f"stop who writes to these robots' objects, and restore a new snapshot of {shard} as {new}",
        )
    return Step(CLONE, title, State.DONE)


def _labels(facts: SplitFacts) -> Step:
    title = f"the Robots have the label of {facts.new}"
    elsewhere = [name for name in facts.names if facts.labels.get(name) not in (facts.shard, facts.new)]
    if elsewhere:
        found = tuple(f"robot {name} is at {facts.labels.get(name)}" for name in elsewhere)
        message = f"{count(len(elsewhere), 'robot')} not at {facts.shard}: {some(elsewhere)}"
        return Step(LABELS, title, State.FAILED, message, found, "name robots of this shard alone")
    left = [name for name in facts.names if name not in facts.moved]
    if not left:
        return Step(LABELS, title, State.DONE)
    silent = [f"{each.address}: {each.error}" for each in facts.doors if each.error]
    if silent:
        return Step(LABELS, title, State.FAILED, _silent(silent), tuple(silent), _ASK)
    down = [f"{each.address}: HAProxy finds {facts.new} down" for each in facts.doors if facts.new in each.down]
    if down:
        return Step(
            LABELS, title, State.FAILED, f"{facts.new} cannot serve robots", tuple(down), "crsyncer door doctor"
        )
    return Step(
        LABELS,
        title,
        State.OPEN,
        f"{count(len(left), 'Robot')} to label: {some(left)}",
        tuple(f"robot {name}" for name in left),
    )


_ASK = "name the --listen of every crsyncer door run with --door HOST:PORT, and start those that do not run"


def _streams(facts: SplitFacts) -> Step:
    title = f"no stream of theirs is at {facts.shard}"
    silent = [f"{each.address}: {each.error}" for each in facts.doors if each.error]
    if silent:
        return Step(STREAMS, title, State.FAILED, _silent(silent), tuple(silent), _ASK)
    names = frozenset(facts.names)
    left = {each.address: sorted(names & each.has_at(facts.shard)) for each in facts.doors}
    lines = tuple(f"{address}: robot {name}" for address, found in left.items() for name in found)
    if not lines:
        return Step(STREAMS, title, State.DONE)
    there = sorted({name for found in left.values() for name in found})
    message = f"{count(len(there), 'robot')} still at {facts.shard}: {some(there)}"
    if not facts.moved.issuperset(facts.names):
        return Step(STREAMS, title, State.OPEN, message, lines)
    hint = "a door ends them when it hears of the label: crsyncer door status says why it does not"
    return Step(STREAMS, title, State.FAILED, message, lines, hint)


def _theirs(facts: SplitFacts) -> Step:
    shard, new = facts.shard, facts.new
    title = f"their objects are gone at {shard}"
    unseen = _unseen(facts)
    namespaces = {robot_namespace(name): name for name in facts.names}
    bad: list[str] = []
    leaving: list[Place] = []
    waiting: list[Place] = []
    for place, stored in sorted(facts.at_shard.items()):
        name = namespaces[place.namespace]
        if name in facts.moved:
            if why := why_it_stays(shard, new, stored, facts.at_new.get(place)):
                bad.append(f"{place} {why}")
                continue
            if name in unseen:
                continue
        (waiting if stored.is_kept else leaving).append(place)
    if bad:
        message = f"{count(len(bad), 'object')} must not be removed at {shard}: {bad[0]}"
        hint = f"see what {new} has, and make both alike, or remove it at {shard} yourself"
        return Step(THEIRS, title, State.FAILED, message, tuple(bad), hint)
    return _removal(THEIRS, title, shard, leaving, waiting, sorted(unseen), new)


def _unseen(facts: SplitFacts) -> frozenset[str]:
    """The robots that were moved, have objects at the shard that is split, and no stream at the new one."""
    seen = frozenset(name for each in facts.doors for name in each.streams.get(facts.new, ()))
    there = {place.namespace for place in facts.at_shard}
    return frozenset(name for name in facts.moved - seen if robot_namespace(name) in there)


def _others(facts: SplitFacts) -> Step:
    title = f"the other robots' objects are gone at {facts.new}"
    namespaces = {robot_namespace(name): name for name in facts.others}
    there = frozenset(name for each in facts.doors for name in each.has_at(facts.new)) & facts.others
    if there:
        message = f"{count(len(there), 'other robot')} at {facts.new}: {some(sorted(there))}"
        return Step(OTHERS, title, State.FAILED, message, tuple(f"robot {name}" for name in sorted(there)), _FOLLOW)
    found = [(place, each) for place, each in sorted(facts.at_new.items()) if place.namespace in namespaces]
    leaving = [place for place, each in found if not each.is_kept]
    waiting = [place for place, each in found if each.is_kept]
    return _removal(OTHERS, title, facts.new, leaving, waiting, (), facts.new)


_FOLLOW = "a door has not heard of their labels: crsyncer door status says why"


def _removal(
    number: int,
    title: str,
    shard: str,
    leaving: Sequence[Place],
    waiting: Sequence[Place],
    unseen: Sequence[str],
    new: str,
) -> Step:
    """A step that removes objects: these go, these wait for finalizers of others, and these robots are to be seen."""
    kept = tuple(f"{place} waits for finalizers of others" for place in waiting)
    away = tuple(f"robot {name} has no stream at {new} yet" for name in unseen)
    if leaving:
        robots = len({place.namespace for place in leaving})
        message = f"{count(len(leaving), 'object')} of {count(robots, 'robot')} to remove at {shard}"
        return Step(number, title, State.OPEN, message, (*map(str, leaving), *kept, *away))
    if away:
        hint = "they go when the robot has connected: repeat the command then"
        message = f"{count(len(away), 'robot')} not seen at {new} yet: {some(unseen)}"
        return Step(number, title, State.WAITS, message, (*away, *kept), hint)
    if kept:
        message = f"{count(len(kept), 'object')} deleted at {shard}, but kept by finalizers of others"
        return Step(number, title, State.WAITS, message, kept, "who set these finalizers has to remove them")
    return Step(number, title, State.DONE)


def is_awaited(facts: SplitFacts, number: int) -> bool:
    """Whether robots may still be about to do what a step waits for: to leave the one shard, or come to the other."""
    if any(each.error for each in facts.doors):
        return False
    state = judge_split(facts)[number - 1].state
    if number == STREAMS:
        return state is State.FAILED
    return number == THEIRS and state in (State.OPEN, State.WAITS) and bool(_unseen(facts))


def going(facts: SplitFacts, number: int) -> Iterator[tuple[str, Place, StoredObject]]:
    """What step 4 or 5 removes now, robot by robot: the robot, the object's place, and the object."""
    theirs = facts.moved - _unseen(facts)
    names, stored = (facts.others, facts.at_new) if number == OTHERS else (theirs, facts.at_shard)
    namespaces = {robot_namespace(name): name for name in names}
    for place, each in sorted(stored.items(), key=lambda pair: (pair[0].namespace, pair[0])):
        if place.namespace in namespaces and not each.is_kept:
            yield namespaces[place.namespace], place, each


def split_document(facts: SplitFacts, steps: Sequence[Step], acts: Sequence[str]) -> Json:
    """The document of `crsyncer door split`; `acts` says what was done."""
    return {
        "schema": SCHEMA,
        "version": __version__,
        "shard": facts.shard,
        "new": facts.new,
        "robots": list(facts.names),
        "steps": [each.document for each in steps],
        "done": list(acts),
    }


def _namespaces(names: Iterable[str]) -> frozenset[str]:
    return frozenset(map(robot_namespace, names))


def _silent(silent: Sequence[str]) -> str:
    return f"{count(len(silent), 'door')} did not answer, and may serve these robots: {silent[0]}"
