"""What an agent must never do, however its kinds are configured. Each world has this judge (`World.judge`).

It knows the marks on copies, what people did to originals, and when the configuration was edited; `check` and
`policy_check` know the configuration as well and judge more strictly.
"""

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from crsyncer.core.content.annotations import OURS
from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.model import Json, Side
from crsyncer.core.requests.calls import JSON_PATCH, SYNC_POLICIES, Call
from tests.model.simulation.api_server import CRDS
from tests.model.simulation.disk import Known
from tests.model.simulation.shared_judge import OWN_STATUSES, about, objection, shown_status
from tests.model.simulation.storage import Change, Where

if TYPE_CHECKING:
    from tests.model.simulation.world import World, Write

UPSTREAM_UID = OURS + "upstream-uid"
_OWN_GROUPS = (SYNC_POLICIES.group, CRDS.partition(".")[2])
_NO_PAIRS = ("namespaces", "events", "leases", "robotsyncstates")
_QUIET_SECONDS = 30.0
"""For so long a status may be on its way."""


@dataclass(slots=True)
class Object:
    """One object of either side, by its uid."""

    side: Side
    resource: str
    where: Where
    born: float
    left: bool = False
    """It was deleted or began to be, or its labels were changed."""
    meant: float = -math.inf
    """Since when the agent looks for it, by projection and selection (C1.7); inf: it looks for others."""
    removed: float | None = None
    lost: tuple[float, int] | None = None
    """A restore or a rebuild took it away: when, and the revision up to which the past is the same."""
    reports: list[tuple[float, Any]] = field(default_factory=list)
    """The statuses, none of them empty, that others than the agent wrote, and when."""
    cut: set[str] = field(default_factory=set)
    """The parts of its status that somebody took away, ever."""
    blanked: bool = False
    """Somebody took its status away, ever."""
    bare: bool = False
    """Its status was taken away last: that goes up, or is kept back (S4.3), and the one before it is not missed."""

    def is_successor_of(self, other: "Object", *, by: float, forgot: bool) -> bool:
        """Whether this was a copy by then in place of the other, of a kind not meant any more, or (C2.2) forgotten."""
        return (forgot or self.resource != other.resource) and other.born < self.born <= by


@dataclass(slots=True)
class Configuration:
    """What people say of how one kind is synced, and what the agent has made of it."""

    edits: int = 0
    """How often its CRD, or a policy that names it, was edited on the robot."""
    listed: int = 0
    """How often by the time when the agent was started last: a start lists them."""
    heard: int = 0
    """Of how many of these edits the agent has heard, at least."""
    followed: KindPolicy | None = None


@dataclass(slots=True)
class Judge:
    """Watches the agent of one world. Violations are collected; `World` raises them at its end."""

    world: "World"
    violations: list[str] = field(default_factory=list)
    released: bool = False
    """A human released something, or the agent has lost what it knew."""
    forgot: bool = False
    """The agent has lost what it knew: also where copies were before an edit of a projection (C1.7)."""
    _objects: dict[str, Object] = field(default_factory=dict)
    _copies: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """By uid of an original, those of the copies that the agent marked."""
    _written: set[str] = field(default_factory=set)
    """The objects (uids) that the agent made or adopted."""
    _configured: float = -1.0
    """When CRDs or policies were edited last, or the agent heard of that: its watch may tell it late."""
    _configurations: dict[str, Configuration] = field(default_factory=lambda: defaultdict(Configuration))
    """By the robot's name of a kind."""
    _referred: float = -1.0
    """When somebody changed or deleted an object that may refer to others."""
    _writes: dict[str, float] = field(default_factory=dict)
    """By uid, when the agent last wrote the status of an original."""
    _writing: bool = False
    _starts: list[Known] = field(default_factory=list)
    _settings: Any = None
    """Those of the agent when a copy was deleted last."""

    def __post_init__(self) -> None:
        self._settings = self.world.settings
        for side, server in self.world.servers.items():

            def listen(change: Change, side: Side = side) -> None:
                self._changed(side, change)

            def listen_back(shared: int, side: Side = side) -> None:
                self._went_back(side, shared)

            server.storage.listeners.append(listen)
            server.storage.rewinds.append(listen_back)

    # What is true

    def _changed(self, side: Side, change: Change) -> None:
        obj = change.after or change.before
        if obj is None:
            return
        now = self.world.clock.now
        if is_own(change.resource):
            before, after = change.before or {}, change.after or {}
            if before.get("spec") != after.get("spec") or _annotations(before) != _annotations(after):
                self._configured = now
                for kind in {*_configures(before), *_configures(after)} if side is Side.ROBOT else ():
                    self._configurations[kind].edits += 1
            return
        metadata = obj["metadata"]
        where = (metadata.get("namespace", ""), metadata["name"])
        known = self._objects.setdefault(metadata["uid"], Object(side, change.resource, where, now))
        before = change.before or {"metadata": {}}
        known.removed = now if change.after is None else None
        known.left |= change.after is None or "deletionTimestamp" in metadata
        known.left |= change.before is not None and before["metadata"].get("labels") != metadata.get("labels")
        if change.before is not None and (known.left or before.get("spec") != obj.get("spec")):
            self._referred = now
        if change.after is not None and before.get("status") != change.after.get("status"):
            known.bare = not change.after.get("status")
            known.blanked |= known.bare
            known.cut |= _parts(before) - _parts(change.after)
            if change.after.get("status") and not self._writing:
                known.reports.append((now, change.after["status"]))

    def _went_back(self, side: Side, shared: int) -> None:
        """A side was restored, or another cluster is there: up to a revision the past is the same."""
        for uid, known in self._objects.items():
            if known.side is not side:
                continue
            found = self._found(uid, known)
            if found is None and known.removed is not None:
                continue
            known.lost = (self.world.clock.now, shared) if found is None else None
            # What a restore takes from a copy is no status of it any more: an agent that was not told of it in time
            # cannot know that it ever was, and for one that was, downstream's older one is the true one again.
            status = None if found is None else found.get("status")
            known.bare = not status
            known.blanked |= found is not None and known.bare and bool(known.reports)
            while known.reports and known.reports[-1][1] != status:
                known.reports.pop()

    def starts(self, known: Known) -> None:
        """An agent starts with what its store knows."""
        self._starts.append(known)
        for each in self._configurations.values():
            each.listed = each.edits

    def writes(self, writing: bool) -> None:
        """The agent's request is being carried out, or no more."""
        self._writing = writing

    def ordered(self, command: str) -> None:
        """A human gave the agent an order."""
        self.released |= command == "release"

    def forget(self) -> None:
        """The agent has lost what it knew."""
        self.released = self.forgot = True

    def _hear(self) -> None:
        """The agent follows what it did not follow at its last write: it has heard of one edit more.

        Where there was none of which it had not heard, it is no edit that has copies deleted now.
        """
        life = self.world.life
        for resource, row in life.engine.kinds.entries.items() if life is not None else ():
            if row.kind is None:
                continue
            each = self._configurations[resource]
            if row.policy != each.followed:
                edited = each.heard < each.edits
                self._configured = self.world.clock.now if edited else self._configured
                former, each.followed = each.followed, row.policy
                each.heard = min(each.heard + 1, each.edits)
                self._look_for(row.policy, former or row.policy, edited=edited)
            each.heard = max(each.heard, each.listed)

    def _look_for(self, policy: KindPolicy, former: KindPolicy, *, edited: bool) -> None:
        """The agent looks for other originals: those that it looked for before are owed nothing (C1.7)."""
        resource, before = (each.endpoint(each.upstream).resource for each in (policy, former))
        for uid, known in self._objects.items() if edited or resource != before else ():
            if known.side is policy.upstream and known.resource in (resource, before):
                labels = (self._found(uid, known) or {"metadata": {}})["metadata"].get("labels") or {}
                is_meant = known.resource == resource and (policy.related or policy.selects(labels))
                known.meant = math.inf if not is_meant else min(known.meant, self.world.clock.now)

    # What the agent does

    def look(self, write: "Write") -> None:
        """Look at one write of the agent that was carried out."""
        self._hear()
        if is_own(write.resource) or write.resource.partition(".")[0] in _NO_PAIRS:
            return
        if not is_guarded(write.call):
            self._say(write, f"without its guards: {write.call.body}")
        if write.status >= 300 or write.before == write.after:
            return
        before, after = write.before, write.after
        if write.resource == OWN_STATUSES:
            reports = [status for uid in self._copies[about(write)] for _, status in self._objects[uid].reports]
            if wrong := objection(write, self.world.settings.robot, reports):
                self._say(write, wrong)
            self._writes[about(write)] = write.time
            return
        if after is not None and stamp(after):
            self._written.add(after["metadata"]["uid"])
            self._copies[stamp(after)].add(after["metadata"]["uid"])
        if before is None and after is not None and write.late:
            self._objects[after["metadata"]["uid"]].born = 0.0  # it was sent long before, maybe before the last edit
        if before is None:
            return
        uid = before["metadata"]["uid"]
        if uid in self._copies and uid not in self._written:
            self._writes[uid] = write.time
            self._original(write, before, after)
        elif write.verb == "delete":
            self._deleted(write, before)

    def _original(self, write: "Write", before: Json, after: Json | None) -> None:
        if write.verb == "delete":
            self._say(write, "an original was deleted")
        elif after is not None and _settled(before) != _settled(after):
            self._say(write, "more than the status and our finalizer of an original was written")
        elif before.get("status") and after is not None and not after.get("status"):
            copies = [self._objects[uid] for uid in self._copies[before["metadata"]["uid"]]]
            edited = any(copy.born <= self._configured for copy in copies)  # another part of it goes up, maybe
            subtree = self._subtree(write.side, write.resource)
            cut = any(subtree in copy.cut for copy in copies)  # and nothing else was there: {} is left (S4.5)
            if not edited and not cut and not any(copy.blanked or copy.removed is not None for copy in copies):
                self._say(write, "a status was blanked that no copy has taken away (S4.3)")

    def _deleted(self, write: "Write", copy: Json) -> None:
        of, uid = stamp(copy), copy["metadata"]["uid"]
        if not of:
            if write.side is Side.CLOUD and uid not in self._written:
                self._say(write, "an object of the cloud was deleted that bears no mark of ours (S5.3)")
            return
        original = self._objects.get(of)
        if original is None or len(self._copies[of]) > 1:
            return
        there = self._found(of, original) is not None
        if not there and original.removed is None and not self.released and not self.is_unknowable(of):
            self._say(write, f"a restore lost its original {of}, so a human has to release it (S8.3)")
        if self.world.settings != self._settings:
            self._settings, self._configured = self.world.settings, write.time
        since = max(self._configured, self._referred if self._is_related(original) else -1.0)
        if there and not original.left and original.meant < math.inf and since < self._objects[uid].born:
            self._say(write, f"its original {of} is there, and always was (S5)")

    def is_unknowable(self, uid: str) -> bool:
        """Whether no agent could know that a restore has lost an object, rather than somebody deleted it.

        It was killed before its store knew anything of the object, or of the side anything that the restore undid: the
        store with which it started next fits the restored cluster as if the object had never been (S8.2).
        """
        lost = self._objects[uid].lost
        if lost is None:
            return False
        at, shared = lost
        first = next((known for known in self._starts if known.at >= at), None)
        side = self._objects[uid].side
        return first is not None and uid not in first.uids and first.reached[side] <= shared

    def _found(self, uid: str, known: Object) -> Json | None:
        found = self.world.servers[known.side].storage.of(known.resource).get(known.where)
        return found if found is not None and found["metadata"]["uid"] == uid else None

    def _is_related(self, original: Object) -> bool:
        """Whether an object may be wanted only because others refer to it, as the agent has it."""
        policy = self._policy(original.side, original.resource)
        return policy is None or bool(policy.related)

    def _shows(self, known: Object, status: Any, *, reported: float) -> bool:
        """Whether an original has a status, or the part of it that is sent, as far as an agent could know of that."""
        storage = self.world.servers[known.side].storage
        found = shown_status(storage.of(known.resource)[known.where], storage, self.world.settings.robot)
        key = self._subtree(known.side, known.resource)
        if key is not None and key not in status and self._configured >= reported:
            return True  # when another part began to be sent, nobody knew if a copy that lacks it ever had it (S4.3)
        shown = [each if key is None else (each or {}).get(key) for each in (found, status)]
        return bool(shown[0] == shown[1])

    def _subtree(self, side: Side, resource: str) -> str | None:
        """The part of the status that is sent, as the agent has it."""
        return None if (policy := self._policy(side, resource)) is None else policy.subtree

    def _policy(self, side: Side, resource: str) -> KindPolicy | None:
        """How the agent syncs the kind that a side calls so (C7); None: it does not."""
        entries = {} if self.world.life is None else self.world.life.engine.kinds.entries
        policies = (row.kind.policy for row in entries.values() if row.kind is not None)
        return next((each for each in policies if each.endpoint(side).resource == resource), None)

    def _say(self, write: "Write", what: str) -> None:
        self.violations.append(f"{write}: {what}")

    # What is left in the end

    def lost_statuses(self) -> Iterator[str]:
        """The statuses that did not reach originals, although the agent says that all is well."""
        life, now = self.world.life, self.world.clock.now
        if life is None or life.dead or not self.world.idle():
            return
        document = self.world.status()
        if document["health"] != "healthy" or document["outbox"]["depth"] or document["outbox"]["deadLetters"]:
            return
        self._hear()  # what the agent follows by now may have cost no write
        for of, copies in self._copies.items():
            original = self._objects.get(of)
            if original is None or original.left or self._found(of, original) is None or self._is_related(original):
                continue
            for uid in copies:
                copy = self._objects[uid]
                if copy.bare or not copy.reports or (copy.removed is not None and self.world.deaths):
                    continue  # it may have gone before an agent saw its status
                reported, status = copy.reports[-1]
                where, gone = (copy.side, copy.resource), copy.removed
                if gone is not None and self.world.journal.is_read_anew(*where, since=reported, until=gone):
                    continue  # it came and went unseen
                known, others = math.inf if self.forgot else reported, map(self._objects.__getitem__, copies)
                if any(each.is_successor_of(copy, by=known, forgot=self.forgot) for each in others):
                    continue  # it is what an edited projection left behind, and nobody's copy any more (C1.7)
                seen = max(reported, original.meant)
                late = (now if copy.removed is None else copy.removed) - seen > _QUIET_SECONDS
                sent = self._writes.get(of, -1.0) >= reported
                if late and not sent and not self._shows(original, status, reported=reported):
                    yield f"the status {status} of {copy.where} has never reached its original (S4.1)"


def is_own(resource: str) -> bool:
    """Whether a resource belongs to the configuration."""
    return resource.partition(".")[2] in _OWN_GROUPS


def stamp(obj: Json) -> str:
    """The uid of the upstream object that a copy says it is of; empty: it says nothing."""
    return str((obj["metadata"].get("annotations") or {}).get(UPSTREAM_UID, ""))


def is_guarded(call: Call) -> bool:
    """Whether a write can only meet the object, in the version, that it is meant for."""
    body = call.body
    match call.method:
        case "DELETE":
            return bool(body and body["preconditions"].get("uid"))
        case "PUT":
            return bool(body["metadata"].get("uid") and body["metadata"].get("resourceVersion"))
        case "PATCH":
            first = body[0]
            tested = (first["op"], first["path"]) == ("test", "/metadata/uid") and bool(first["value"])
            return tested and call.content_type == JSON_PATCH
        case _:
            return True


def _parts(obj: Json) -> set[str]:
    status = obj.get("status")
    return set(status) if isinstance(status, dict) else set()


def _configures(obj: Json) -> Iterator[str]:
    """The kinds that a CRD, or a policy, says something of."""
    match obj:
        case {"spec": {"resource": {"group": str(group), "resource": str(plural)}, **spec}}:
            yield f"{plural}.{group}".rstrip(".")
            related = spec.get("related")
            for entry in related if isinstance(related, list) else ():
                yield from _configures({"spec": entry})
        case {"metadata": {"name": str(name)}}:
            yield name


def _annotations(obj: Json) -> Any:
    return (obj.get("metadata") or {}).get("annotations")


def _settled(obj: Json) -> Json:
    """All of an original but what the agent may write there, and what a server changes with that."""
    drop = ("resourceVersion", "generation", "finalizers", "managedFields")
    rest = {k: v for k, v in obj.items() if k != "status"}
    return rest | {"metadata": {k: v for k, v in obj["metadata"].items() if k not in drop}}
