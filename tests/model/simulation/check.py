"""What must never happen, looked at when it happens: at every write of the agent that a server carries out.

Users of the world mark every status with the uid of the upstream object that it is about (`of`) and a number that only
grows (`n`), so that one that lands on the wrong object, or too late, gives itself away.
"""

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from crsyncer.core.content.annotations import OURS, ROBOT_LABEL
from crsyncer.core.model import Json, Side
from crsyncer.core.requests.calls import Call
from crsyncer.ports import Reply
from tests.model.simulation.api_server import CRDS
from tests.model.simulation.disk import RETRY_SECONDS
from tests.model.simulation.judge import is_guarded, stamp
from tests.model.simulation.life import ROBOT
from tests.model.simulation.plane import GROUP
from tests.model.simulation.storage import Change
from tests.model.simulation.world import World, Write

SIGNATURE = OURS + "robot"
_MARKS = [f"{OURS}upstream-{what}" for what in ("cluster", "namespace", "name", "uid")]
_RACE_SECONDS = 1.0
"""Within so long after an answer has arrived, it is written down."""


class Violation(AssertionError):
    """The agent has done what it must never do."""


class Fate(Enum):
    """Why an upstream object is gone."""

    USER = "somebody deleted it"
    KIND = "its CRD was deleted"
    LOST = "the cluster was restored or rebuilt without it"


@dataclass(frozen=True, slots=True)
class Spec:
    """How one kind is synced, as its CRD was annotated."""

    plural: str
    upstream: Side = Side.CLOUD
    filtered: bool = False
    subtree: str | None = None
    subresource: bool = True

    @property
    def downstream(self) -> Side:
        """The side of the copies."""
        return self.upstream.other

    def sees(self, obj: Json) -> bool:
        """Whether the agent is to sync an object."""
        return not self.filtered or labels(obj).get(ROBOT_LABEL) == ROBOT

    def moving(self, obj: Json | None) -> Any:
        """The status that is synced; None: there is none, or an empty one."""
        status = (obj or {}).get("status")
        if self.subtree is not None:
            status = status.get(self.subtree) if isinstance(status, dict) else None
        return status or None

    def neighbours(self, obj: Json | None) -> Any:
        """The status that is not."""
        status = (obj or {}).get("status")
        if self.subtree is None or not isinstance(status, dict):
            return {}
        return {k: v for k, v in status.items() if k != self.subtree}


def specs(kinds: Mapping[str, Mapping[str, Any]]) -> dict[str, Spec]:
    """The kinds of a world by resource, from the keywords of `bed.crd`."""
    return {
        f"{plural}.{GROUP}": Spec(
            plural,
            upstream=Side(keywords.get("source", "cloud")),
            filtered=keywords.get("filtered") == "true",
            subtree=keywords.get("subtree"),
            subresource=keywords.get("status", True),
        )
        for plural, keywords in kinds.items()
    }


def labels(obj: Json) -> dict[str, str]:
    """An object's labels."""
    return obj["metadata"].get("labels") or {}


def signed(obj: Json) -> bool:
    """Whether a copy in the cloud is this robot's."""
    return bool(stamp(obj)) and obj["metadata"]["annotations"].get(SIGNATURE) == ROBOT


def is_marked(copy: Json) -> bool:
    """Whether a copy has the labels by which related copies are watched (C2.1)."""
    return all(f"{OURS}upstream-{what}" in labels(copy) for what in ("cluster", "namespace", "name"))


def is_named(copy: Json) -> bool:
    """Whether the annotations of a copy name its original (C2.2)."""
    annotations = copy["metadata"].get("annotations") or {}
    return all(f"{OURS}upstream-{what}" in annotations for what in ("cluster", "namespace", "name"))


def tear(copy: Json, which: int, side: Side) -> None:
    """Take marks away. In the cloud annotations stay: without the robot's name a copy is not changed (S5.3)."""
    metadata, part = copy["metadata"], "labels" if which % 2 or side is Side.CLOUD else "annotations"
    torn = _MARKS if which < 2 else _MARKS[which // 2 :: 2]
    metadata[part] = {k: v for k, v in (metadata.get(part) or {}).items() if k not in torn}


def bears_marks_of(copy: Json, other: Json) -> bool:
    """Whether another object has all the labels that mark a copy."""
    return all(labels(other).get(mark) == value for mark, value in labels(copy).items() if mark in _MARKS)


@dataclass(slots=True)
class Story:
    """What has happened to one upstream object."""

    leaving: bool = False
    """It was deleted, began to be, or went out of the agent's sight, because somebody wanted that."""
    gone: Fate | None = None
    kind_known: bool = False
    """It went with its CRD, whose uid the agent had written down: it can tell, however fast there is another."""
    place: tuple[str, str] = ("", "")
    """Its resource and name."""
    followed: bool = False
    """It went with its CRD, and afterwards somebody made another object of its name: the copy is replaced (S5.4)."""
    sent: int = 0
    """The highest number of a status that the agent has written to it."""
    cleared: bool = False
    """Its copy had a status, and somebody took it away."""
    rivalled: bool = False
    """Somebody else wrote the status upstream, and downstream's has not changed since (S4.8)."""


@dataclass(slots=True)
class Checker:
    """Watches a world. `released`: a human has let everything go that was held."""

    world: World
    kinds: dict[str, Spec]
    stories: dict[str, Story] = field(default_factory=lambda: defaultdict(Story))
    occupied: dict[tuple[str, str], float] = field(default_factory=dict)
    """Since when upstream has something of (resource, name) that the agent is to sync."""
    born: dict[str, float] = field(default_factory=dict)
    """When each downstream object came to be, by uid."""
    violations: list[str] = field(default_factory=list)
    noticed_kind: dict[str, dict[float, float]] = field(default_factory=lambda: defaultdict(dict))
    """When the agent was told of the deletion of which kinds, and when that was written down at the latest."""
    _stuck_until: float = 0.0
    """When what the disk has refused is written down at the latest; inf: it refuses still."""
    late: set[str] = field(default_factory=set)
    """Copies, by uid, that were made when their objects were gone, maybe by a forgotten request."""
    released: set[str] = field(default_factory=set)
    """Kinds of which a human has let go whatever was held."""

    def __post_init__(self) -> None:
        self.world.witnesses.append(self.witness)
        self.world.listeners.append(self._answered)
        for side, server in self.world.servers.items():

            def listen(change: Change, side: Side = side) -> None:
                self._changed(side, change)

            server.storage.listeners.append(listen)

    # What is true

    def _changed(self, side: Side, change: Change) -> None:
        spec = self.kinds.get(change.resource)
        obj = change.after or change.before
        if spec is None or obj is None:
            return
        uid, place = obj["metadata"]["uid"], (change.resource, obj["metadata"]["name"])
        if side is spec.downstream:
            self.born.setdefault(uid, self.world.clock.now)
            return
        story = self.stories[uid]
        there = change.after is not None and "deletionTimestamp" not in obj["metadata"] and spec.sees(obj)
        dying = self._kind_is_dying(change.resource, side)
        if not there and not dying:
            story.leaving = True
        if change.after is None:
            story.gone = Fate.KIND if dying and not story.leaving else Fate.USER
            story.kind_known = self._kind_known(change.resource, side)
        story.place = place
        if there:
            self.occupied.setdefault(place, self.world.clock.now)
            for other in self.stories.values():
                other.followed |= other.gone is Fate.KIND and other.place == place
        else:
            self.occupied.pop(place, None)

    def _answered(self, side: Side, call: Call, reply: Reply) -> None:
        """The agent was told of a kind that is not served any more."""
        now, refuses = self.world.clock.unix(), self.world.disk.refuses
        if refuses or self._stuck_until == math.inf:
            self._stuck_until = math.inf if refuses else now + RETRY_SECONDS
            for told in self.noticed_kind.values():
                told.update({at: self._stuck_until for at, written in told.items() if now < written})
        if call.path != f"/apis/{GROUP}/v1":
            return
        served = {r["name"]: r["verbs"] for r in reply.body.get("resources", [])}
        for resource, spec in self.kinds.items():
            if side is spec.upstream and "create" not in served.get(spec.plural, []):
                weather = self.world.weather[side]
                slowly = weather.latency + weather.jitter + self.world.disk.commit_seconds
                self.noticed_kind[resource][now] = max(now + slowly + _RACE_SECONDS, self._stuck_until)

    def _knows_of(self, resource: str) -> bool:
        """Whether the agent was told that a kind is not served, and lived on to write that down."""
        return any(
            not any(told <= death < written for death in self.world.deaths)
            for told, written in self.noticed_kind[resource].items()
        )

    def _kind_known(self, resource: str, side: Side) -> bool:
        """Whether the agent knows by which CRD a kind is served at present."""
        crd = self.world.servers[side].storage.of(CRDS).get(("", resource))
        if side is Side.ROBOT:
            known = self.world.disk.kept(f"crd:{resource}")
        else:
            _, known = self.world.disk.kept(f"crd:{side}:{resource}") or ("", "")
        return crd is not None and crd["metadata"]["uid"] == known

    def _kind_is_dying(self, resource: str, side: Side) -> bool:
        return any(k.resource == resource and k.dying for k in self.world.servers[side].kinds())

    def _serves(self, resource: str, side: Side) -> bool:
        return any(k.resource == resource and not k.dying for k in self.world.servers[side].kinds())

    def went_back(self, side: Side, before: dict[str, set[str]]) -> None:
        """A side was restored or rebuilt; `before` are the uids that were there, by resource."""
        for resource, spec in self.kinds.items():
            if spec.upstream is not side:
                for story in self.stories.values():
                    story.sent, story.cleared = 0, True  # downstream's older statuses are the true ones now
                continue
            now = {o["metadata"]["uid"] for o in self.world.planes[side].objects(spec.plural).values()}
            for uid in before[resource] - now:
                if not self.stories[uid].leaving:
                    self.stories[uid].gone = Fate.LOST
            for uid in now:
                self.stories[uid].gone = None
            for name, obj in self.world.planes[side].objects(spec.plural).items():
                if "deletionTimestamp" not in obj["metadata"] and spec.sees(obj):
                    self.occupied.setdefault((resource, name), self.world.clock.now)
            gone = {place for place in self.occupied if place[0] == resource} - {
                (resource, name) for name in self.world.planes[side].objects(spec.plural)
            }
            for place in gone:
                del self.occupied[place]
            self.released.discard(resource)

    # What the agent does

    def witness(self, write: Write) -> None:
        """Look at one write."""
        spec = self.kinds.get(write.resource)
        if spec is None:
            return
        try:
            self._look(write, spec)
        except Violation as violation:
            self.violations.append(str(violation))

    def _look(self, write: Write, spec: Spec) -> None:
        if not is_guarded(write.call):
            raise Violation(f"{write} without its guards: {write.call.body}")
        if write.status >= 300 or write.before == write.after:
            return
        if write.side is spec.upstream:
            self._upstream(write, spec)
        else:
            self._downstream(write, spec)

    def _upstream(self, write: Write, spec: Spec) -> None:
        before, after = write.before, write.after
        if is_of_finalizer(before, after):
            return
        if (
            before is None
            or after is None
            or without_status(before, subresource=spec.subresource)
            != without_status(after, subresource=spec.subresource)
        ):
            raise Violation(f"{write}: more than the status was written upstream")
        if spec.neighbours(before) != spec.neighbours(after):
            raise Violation(f"{write}: the subtree's neighbours were touched")
        if not spec.sees(before):
            raise Violation(f"{write}: it was given to another robot (S4.2)")
        uid = after["metadata"]["uid"]
        story, status = self.stories[uid], spec.moving(after)
        if status is None:
            if spec.moving(before) is not None and not story.cleared:
                raise Violation(f"{write}: a status was blanked that no copy has ever taken away")
            return
        of, number = status.get("of", ""), status.get("n", 0)
        if of not in ("", uid):
            raise Violation(f"{write}: a status of {of} has landed on {uid}")
        if write.late:
            story.rivalled = True
            return
        if number < story.sent:
            raise Violation(f"{write}: status {number} has followed status {story.sent}")
        story.sent, story.rivalled = number, False

    def _downstream(self, write: Write, spec: Spec) -> None:
        before, after = write.before, write.after
        if spec.downstream is Side.CLOUD:
            if before is not None and not signed(before):
                raise Violation(f"{write}: it is not this robot's copy")
            if after is not None and not signed(after):
                raise Violation(f"{write}: a copy without this robot's name")
        if before is None:
            story = None if after is None else self.stories.get(stamp(after))
            if after is not None and (write.late or (story is not None and story.gone is not None)):
                self.late.add(after["metadata"]["uid"])
            return
        if write.verb == "delete":
            self._deleted(write, spec, before)
        elif after is not None:
            if before["metadata"].get("finalizers") != after["metadata"].get("finalizers"):
                raise Violation(f"{write}: finalizers were touched")
            if before.get("status") != after.get("status") and before.get("status"):
                raise Violation(f"{write}: downstream's own status was overwritten")
            if not spec.sees(before) and not stamp(before):
                raise Violation(f"{write}: a local object was touched")

    def _deleted(self, write: Write, spec: Spec, before: Json) -> None:
        if not spec.sees(before):
            raise Violation(f"{write}: a local object was deleted")
        uid = stamp(before)
        if not uid or uid not in self.stories:
            since = self.occupied.get((write.resource, write.name))
            if since is not None and since < self.born[before["metadata"]["uid"]]:
                raise Violation(f"{write}: it is an orphan only if upstream has nothing of that name")
            return
        story = self.stories[uid]
        if story.leaving or write.resource in self.released:
            return
        match story.gone:
            case None:
                raise Violation(f"{write}: upstream's {uid} is there, and always was")
            case Fate.LOST if self.world.judge.is_unknowable(uid):
                return
            case Fate.LOST:
                raise Violation(f"{write}: upstream's {uid} was lost by a restore, so a human has to say so")
            case Fate.KIND if story.followed or before["metadata"]["uid"] in self.late:
                return
            case Fate.KIND if (
                story.kind_known or self._knows_of(write.resource) or not self._serves(write.resource, spec.upstream)
            ):
                raise Violation(f"{write}: upstream's {uid} went with its kind, so a human has to say so")


def is_of_finalizer(before: Json | None, after: Json | None) -> bool:
    """Whether a write put a robot's finalizer on an object that lives, or removed it, and did nothing else (C6.2)."""
    if before is None:
        return False
    had = before["metadata"].get("finalizers") or []
    if after is None:
        return "deletionTimestamp" in before["metadata"] and all(map(_is_ours, had))
    has = after["metadata"].get("finalizers") or []
    drop = ("resourceVersion", "finalizers")
    rest = [{**o, "metadata": {k: v for k, v in o["metadata"].items() if k not in drop}} for o in (before, after)]
    foreign = [[each for each in names if not _is_ours(each)] for names in (had, has)]
    added = len(has) > len(had)
    fair = not added or (has.count(has[-1]) == 1 and "deletionTimestamp" not in before["metadata"])
    return had != has and rest[0] == rest[1] and foreign[0] == foreign[1] and fair


def _is_ours(finalizer: str) -> bool:
    return finalizer.startswith(f"{OURS}robot-")


def without_status(obj: Json, *, subresource: bool = True) -> Json:
    """All of an object that a write of its status leaves as it is."""
    drop = {"resourceVersion"} if subresource else {"resourceVersion", "generation"}
    metadata = {k: v for k, v in obj["metadata"].items() if k not in drop}
    return {k: v for k, v in obj.items() if k != "status"} | {"metadata": metadata}
