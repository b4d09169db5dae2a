"""What an agent that follows a SyncPolicy must never do, looked at when it happens (C2 to C6)."""

import base64
import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from crsyncer.core.content.annotations import ROBOT_LABEL
from crsyncer.core.content.template import read_template
from crsyncer.core.kinds.naming import Naming
from crsyncer.core.model import Json, Key, Pending, Side
from crsyncer.core.watching.identity import KUBE_SYSTEM, name_of
from tests.model.histories.policy_deletion import DeletionJudge
from tests.model.histories.policy_history import PARTS, RESOURCES, Setup
from tests.model.histories.policy_projection import ProjectionJudge
from tests.model.histories.policy_references import GOALS, PolicyReferences, objects_of, on_robot
from tests.model.simulation.check import (
    Violation,
    bears_marks_of,
    is_of_finalizer,
    labels,
    signed,
    without_status,
)
from tests.model.simulation.clock import EPOCH
from tests.model.simulation.disk import GROUP_SECONDS
from tests.model.simulation.journal import WRITES, Request
from tests.model.simulation.judge import is_guarded, stamp
from tests.model.simulation.life import ROBOT
from tests.model.simulation.scene import roles
from tests.model.simulation.storage import Change, Where
from tests.model.simulation.world import World, Write

_RATE_SECONDS, _RATE = 10.0, 40
"""No object is written so often in so short a time; a finalizer out of sight is looked for at 32 places (C6.2)."""
_RACE_SECONDS = 120.0
_ECHO_SECONDS = 10.0
"""Until a watch on a slow line shows a new copy; a policy that is edited meanwhile has its kind begin anew."""
"""An agent may do what was right so long ago: events and requests come late."""


@dataclass(slots=True)
class Story:
    """What has happened to an original."""

    leaving: bool = False
    """It was deleted, began to be, or went out of the agent's sight."""
    sent: int = 0
    """The highest number of a status that the agent has written to it."""
    source: str = ""
    """What the kind was called on the copies' side when that status was written there."""


class PolicyChecker:
    """Watches one world."""

    def __init__(self, world: World, setup: Setup) -> None:
        self._world = world
        self._setup = setup
        self._up, self._down = roles(world, setup.source)
        self.references = PolicyReferences(world, setup, self)
        self.deletions = DeletionJudge(world, setup, self)
        self.projections = ProjectionJudge(world, setup, self)
        self.violations: list[str] = []
        self.name_of: dict[str, str] = {}
        """The names of upstream's objects, by uid."""
        self.stories: dict[str, Story] = defaultdict(Story)
        self.overtaken: set[str] = set()
        """Originals that have got a late status, of which a killed agent knew nothing, since downstream's changed."""
        self.twins: set[str] = set()
        """Originals that had two copies at once."""
        self.forgot = False
        """The agent has lost its store."""
        self.reported: dict[int, str] = {}
        """By number of a status, what the kind was called on the copies' side when it was written there."""
        self._adopted: set[str] = set()
        """The originals that have got a copy of which nothing tells whose it was: no marks, and no store any more."""
        self._whose: dict[str, str] = {}
        """By uid of a copy, that of its original."""
        self._made: set[str] = set()
        """The copies (uids) that the agent made."""
        self._born: dict[str, float] = {}
        self.late: set[str] = set()
        """Objects that a request made of which nobody waited for the answer."""
        self.place_of: dict[str, Where] = {}
        """By uid, where the originals of related objects are."""
        self._kind = ""
        """What the kind of an object that was written is called there."""
        self._secrets: list[str] = []
        self._rows: list[Any] = []
        self._read = 0
        self.watch(self._look)
        for side, server in world.servers.items():

            def listen(change: Change, side: Side = side) -> None:
                self._changed(side, change)

            server.storage.listeners.append(listen)
        self._times: dict[tuple[Side, str, str], list[float]] = defaultdict(list)
        world.journal.listeners.append(self._sent)

    def of(self, copy: Json) -> str:
        """The uid of a copy's original, also where somebody has taken its marks away; empty: it is no copy."""
        return self._whose.get(copy["metadata"]["uid"]) or stamp(copy)

    def born(self, obj: Json) -> float:
        """When an object came to be, in seconds since the world began."""
        return self._born.get(obj["metadata"]["uid"], 0.0)

    def was_made_by_hand(self, copy: Json) -> bool:
        """Whether the agent has adopted a copy."""
        return copy["metadata"]["uid"] not in self._made

    def is_unknown(self, copy: Json) -> bool:
        """Whether no store may have a copy: it is lost, or the agent was killed before it had noted what it made."""
        born = self.born(copy)
        soon = born + _ECHO_SECONDS + self._world.disk.commit_seconds
        return self.forgot or self.was_killed(after=born - _RACE_SECONDS, before=soon)

    def was_killed(self, *, after: float, before: float = math.inf) -> bool:
        """Whether the agent was killed or stopped between two times, in seconds since the world began."""
        return any(after < death - EPOCH < before for death in self._world.deaths)

    def new_name(self, name: str, naming: Json | None) -> Where:
        """What a new copy is called."""
        given = naming or {}
        made = Naming(
            namespace=read_template(given.get("namespace", "{namespace}"), paths=False),
            name=read_template(given.get("name", "{name}"), paths=False),
        )
        system = self._up.server.storage.of("namespaces")["", KUBE_SYSTEM]
        identity = name_of({KUBE_SYSTEM: system["metadata"]["uid"]})
        clusters = self._setup.clusters
        key = made.new_name(
            Key("" if self._up.side in clusters else "default", name),
            robot=ROBOT,
            identity=identity,
            namespaced=self._down.side not in clusters,
        )
        return key.namespace, key.name

    def forget(self) -> None:
        """The agent loses its store."""
        self.forgot = True
        self.deletions.forget()
        self.projections.forget()
        self.references.note()

    # What is true

    def sees(self, obj: Json, side: Side) -> bool:
        """Whether a filter lets an object of a side pass; on the robot, originals need no label (C5.3)."""
        return side is Side.ROBOT or self.is_mine(obj)

    def moving(self, obj: Json) -> Json | None:
        """What of an object's status goes up by whatever the policy says of a subtree."""
        status: Json | None = obj.get("status")
        return status.get("part") if status and self._setup.edits_subtree else status

    def is_mine(self, obj: Json) -> bool:
        """Whether an object has the label of this robot, where that matters."""
        return not self._setup.filtered or labels(obj).get(ROBOT_LABEL) == ROBOT

    def is_selected(self, primary: Json) -> bool:
        """Whether a primary is this robot's, and the policy's selector matches it."""
        return self.is_mine(primary) and (not self._setup.selected or labels(primary).get("tier") == "edge")

    def is_synced(self, primary: Json, side: Side) -> bool:
        """Whether an object of a side is a primary that lives: with that of upstream its copy goes, too (C6.3)."""
        if "deletionTimestamp" in primary["metadata"]:
            return False
        if not self.is_selected(primary) or not self.projections.is_meant(primary):
            return False
        if side is self._up.side:
            return True
        originals = objects_of(self._up, GOALS).values()
        return any(self.of(primary) == o["metadata"]["uid"] and self.is_synced(o, self._up.side) for o in originals)

    def _changed(self, side: Side, change: Change) -> None:
        obj, resource = change.after or change.before, on_robot(change.resource)
        if obj is None or resource not in (GOALS, PARTS, *RESOURCES):
            return
        uid = obj["metadata"]["uid"]
        self._born.setdefault(uid, self._world.clock.now)
        if resource == GOALS and side is Side.CLOUD:
            self.projections.note(change.resource, obj["metadata"])
        if resource == GOALS and side is self._up.side:
            self.name_of[uid] = obj["metadata"]["name"]
            there = change.after is not None and "deletionTimestamp" not in obj["metadata"] and self.is_selected(obj)
            self.stories[uid].leaving |= not there
            self.deletions.changed(obj, gone=change.after is None)
        elif self.references.origins.get(resource) is side:
            self.place_of[uid] = (obj["metadata"]["namespace"], obj["metadata"]["name"])
            self.stories[uid].leaving |= change.after is None or not self.sees(obj, side)
        if resource == GOALS:
            self.references.changed_primary(side, change)
        if resource == GOALS or self.references.origins.get(resource) is side:
            self.references.note()

    # What the agent does

    def _sent(self, request: Request) -> None:
        self.deletions.look()
        if request.verb in WRITES:
            times = self._times[request.side, request.verb, request.name]
            times.append(request.sent)
            if len(times) > _RATE and request.sent - times[-_RATE] < _RATE_SECONDS:
                self.violations.append(f"{request} is repeated {_RATE} times within {_RATE_SECONDS:.0f} s (S10)")

    def watch(self, look: Callable[[Write], None]) -> None:
        """Have someone look at every write of the agent, who raises Violation."""

        def witness(write: Write) -> None:
            try:
                look(write)
            except Violation as violation:
                self.violations.append(str(violation))

        self._world.witnesses.append(witness)

    def _look(self, write: Write) -> None:
        self._kind, write = write.resource, replace(write, resource=on_robot(write.resource))
        if write.resource not in (GOALS, PARTS, *RESOURCES):
            return
        if not is_guarded(write.call):
            raise Violation(f"{write} without its guards: {write.call.body}")
        if write.status >= 300 or write.before == write.after:
            return
        upstream = self._up.side if write.resource == GOALS else self.references.origins.get(write.resource)
        if write.side is not upstream:
            self._downstream(write)
        elif write.resource == GOALS:
            self._upstream(write)
        else:
            raise Violation(f"{write}: an original was written (C5.4)")

    def _upstream(self, write: Write) -> None:
        before, after = write.before, write.after
        if before is not None and is_of_finalizer(before, after):
            self.deletions.released(write, before, after)
            return
        if before is None or after is None or without_status(before) != without_status(after):
            raise Violation(f"{write}: more than the status was written upstream")
        if not self.is_mine(before):
            raise Violation(f"{write}: it was given to another robot (S4.2)")
        uid, status = after["metadata"]["uid"], self.moving(after) or {}
        if not status and self._setup.edits_subtree:
            return
        if status.get("of") != uid and uid not in self._adopted:
            raise Violation(f"{write}: a status of {status.get('of')} has landed on {uid}")
        if self._setup.up and status.get("word") != f"{after['metadata']['name']} {status['n']}":
            raise Violation(f"{write}: {status} is not what the steps make of a status (C4)")
        if status.get("observedGeneration", 0) > after["metadata"]["generation"]:
            raise Violation(f"{write}: {status} shows a generation that upstream has not reached (S4.7)")
        story, source = self.stories[uid], self.reported[status["n"]]
        latest = story.sent if source == story.source else 0  # the copies of another kind have statuses of their own
        if status["n"] < latest and not write.late:
            raise Violation(f"{write}: status {status['n']} has followed status {latest}")
        story.sent, story.source = max(status["n"], latest), source
        (self.overtaken.add if write.late and self.is_forgotten(write) else self.overtaken.discard)(uid)

    def is_forgotten(self, write: Write) -> bool:
        """Whether the agent was killed before it was on disk that a status was sent, which may be earlier (S6.1)."""
        sent = next(each.sent for each in self._world.journal.requests if each.call is write.call)
        return self.was_killed(after=sent, before=sent + max(GROUP_SECONDS, self._world.disk.commit_seconds))

    def _downstream(self, write: Write) -> None:
        before, after = write.before, write.after
        if before is None:
            self._created(write, after or {})
        elif write.verb == "delete":
            self._deleted(write, before)
        elif after is not None:
            if before["metadata"].get("finalizers") != after["metadata"].get("finalizers"):
                raise Violation(f"{write}: finalizers were touched")
            if write.resource != PARTS and before.get("status") and before.get("status") != after.get("status"):
                raise Violation(f"{write}: downstream's own status was overwritten")
            if not stamp(before) and (self.forgot or self._setup.edits_projection):
                self._adopted.add(stamp(after))
            if not self.of(before):
                self._see_adopted(write, before, after)
            self._whose[after["metadata"]["uid"]] = stamp(after)
            self._see_twins(write, after)

    def _created(self, write: Write, copy: Json) -> None:
        if not stamp(copy) or (write.side is Side.CLOUD and not signed(copy)):
            raise Violation(f"{write}: a copy without its marks")
        uid = copy["metadata"]["uid"]
        self._whose[uid] = stamp(copy)
        self._made.add(uid)
        if write.late:
            self.late.add(uid)
        self._see_twins(write, copy)
        if write.resource == GOALS:
            self.deletions.copy_made(write, copy)
            return
        metadata, places = copy["metadata"], self.references.places[write.resource, self.place_of[stamp(copy)]]
        if (metadata["namespace"], metadata["name"]) not in places:
            raise Violation(f"{write}: nothing ever wanted a copy there; it may be at {sorted(places)} (C5.2)")

    def _see_twins(self, write: Write, copy: Json) -> None:
        """Two copies of one original: a request that came late, or that a killed agent does not know of, made one.

        Or the agent could not see the other: its selectors do not show what has lost its labels (in the cloud, and
        of related kinds).
        """
        of, now = stamp(copy), self._world.clock.now
        for where, each in self._world.servers[write.side].storage.of(self._kind).items():
            if each["metadata"]["uid"] == copy["metadata"]["uid"] or self.of(each) != of or of in self.twins:
                continue
            self.twins.add(of)
            late = {each["metadata"]["uid"], copy["metadata"]["uid"]} & self.late
            killed = self.was_killed(after=self.born(each) - _RACE_SECONDS)
            age = now - self.born(each)
            selects = write.side is Side.CLOUD or write.resource != GOALS
            unseen = age < _ECHO_SECONDS or (selects and not bears_marks_of(copy, each))
            if not (late or (killed and age < _RACE_SECONDS) or unseen or not stamp(each) or self.forgot):
                raise Violation(f"{write}: its original has a copy already, {where} (C2.3)")

    def _see_adopted(self, write: Write, before: Json, after: Json) -> None:
        entries = self.references.of(write.resource)
        if self._setup.namings or (entries and all("naming" in each for each in entries)):
            raise Violation(f"{write}: a local object was touched (C2.2)")
        if write.side is Side.CLOUD:
            raise Violation(f"{write}: an object of the cloud was adopted (S5.3)")
        if not (self.is_selected(before) if write.resource == GOALS else self.is_mine(before)):
            raise Violation(f"{write}: an object that the selector does not match was adopted (C2.5)")
        if write.resource == "secrets" and before.get("data") != after.get("data"):
            raise Violation(f"{write}: a Secret that is not equal was adopted (C2.5)")

    def _deleted(self, write: Write, copy: Json) -> None:
        of = self.of(copy)
        if not of:
            self._see_orphan(write, copy)
            return
        if write.resource == GOALS:
            left = self.projections.is_left_behind(self._kind) or self.projections.is_out_of_sight(of)
            if not (self.stories[of].leaving or left):
                raise Violation(f"{write}: upstream's {of} is there, and always was")
            self.deletions.copy_deleted(write, copy)
            return
        references, resource, where = self.references, write.resource, self.place_of[of]
        entries = references.of(resource)
        if entries[0]["cleanup"] == "keep":
            raise Violation(f"{write}: it is to be kept (C5.4)")
        if references.changed and where not in references.wanted(resource, references.entries):
            needed = references.needed.get((resource, where), -1.0) >= references.changed[-1]
            if self.forgot or needed:
                return  # that there was another entry is forgotten, or it is one of those that are left that lets go
        since = self.born(copy) - _RACE_SECONDS
        free = where not in references.wanted(resource, entries)
        if not (free or self.stories[of].leaving or references.free.get((resource, where), -_RACE_SECONDS) >= since):
            raise Violation(f"{write}: its original is there, and something always referred to it (C5.4)")

    def _see_orphan(self, write: Write, copy: Json) -> None:
        """An object that nobody marked: it is deleted only where the policy says so, and upstream has none (S5.3)."""
        said = write.resource == GOALS and self._setup.orphans == "delete" and write.side is Side.ROBOT
        if not (said and self.is_selected(copy)):
            raise Violation(f"{write}: a local object was deleted")
        for (_, name), each in objects_of(self._up, GOALS).items():
            before = self.born(each) < self.born(copy) and not self.stories[each["metadata"]["uid"]].leaving
            if name == copy["metadata"]["name"] and before and self.is_synced(each, self._up.side):
                raise Violation(f"{write}: it is an orphan only if upstream has nothing of that name (S5.3)")

    # Secrets

    def new_secret(self, number: int) -> str:
        """A value of a Secret, as it is in data."""
        text = f"hunter-{number:05}-swordfish"
        self._secrets += [text, base64.b64encode(text.encode()).decode()]
        return self._secrets[-1]

    def read_store(self) -> None:
        """Look at what has been put into the store: values of Secrets (C5.6), and statuses that are owed (C6.3)."""
        disk = self._world.disk
        if self._rows is not disk.rows or len(disk.rows) < self._read:
            self._rows, self._read = disk.rows, 0
        for part, _, _, value in disk.rows[self._read :]:
            if part == "pending" and isinstance(value, Pending):
                self.deletions.owe(value)
        if self._secrets:
            self._find(str(disk.rows[self._read :]), "the store")
        self._read = len(disk.rows)

    def read_texts(self) -> None:
        """Look for values of Secrets in what is shown to people, and in annotations of copies (C5.6)."""
        if self._secrets:
            self._find(str(self._world.status()), "status")
            self._find(str(self._world.order("events")), "the events")
            copies = [each for plane in self._world.planes.values() for each in objects_of(plane, "secrets").values()]
            self._find(str([each["metadata"] for each in copies]), "metadata of copies")

    def _find(self, text: str, where: str) -> None:
        found = [each for each in self._secrets if each in text]
        if found:
            self.violations.append(f"{where} has a value of a Secret: {found[0]}")
