"""What must never happen when primaries go: in which order, and what waits for what (C6), as a judge sees it."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.model import Json, Pending, Side
from crsyncer.core.reports.text import unix
from tests.model.histories.policy_followed import Followed
from tests.model.histories.policy_history import Setup
from tests.model.histories.policy_references import GOALS, elsewhere, objects_of
from tests.model.scenes.blocking import MINE
from tests.model.simulation.check import Violation, is_marked, signed
from tests.model.simulation.judge import stamp
from tests.model.simulation.scene import roles
from tests.model.simulation.world import World, Write

if TYPE_CHECKING:
    from tests.model.histories.policy_check import PolicyChecker

_PATIENCE_SECONDS = 29.0
"""For nearly so long a related copy delays that of its primary, also where upstream's object does not wait (C6.3)."""
_RACE_SECONDS = 120.0
_SECONDS = {"1m": 60.0, "720h": 720 * 3600.0}


@dataclass(frozen=True, slots=True)
class Rule:
    """What a policy says of deletion."""

    blocking: bool
    grace: str = "720h"
    propagation: str = "background"

    def specification(self) -> Json:
        """As the policy has it."""
        if self == _NONE:
            return {}
        mode = "blocking" if self.blocking else "async"
        return {"deletion": {"mode": mode, "gracePeriod": self.grace, "propagation": self.propagation}}

    @property
    def followed(self) -> "_Rule":
        """As the agent has it."""
        return self.blocking, 0.0 if self == _NONE else _SECONDS[self.grace], self.propagation


_Rule = tuple[bool, float, str]
"""Whether deletion is blocking, the grace period in seconds, and the propagation."""
_NONE = Rule(blocking=False)


class DeletionJudge:
    """Watches the deletions in one world.

    It looks at the agent which rule that follows at the moment, as nobody else knows when it has heard of another one.
    At last it must follow that of the policy.
    """

    def __init__(self, world: World, setup: Setup, checker: "PolicyChecker") -> None:
        self._world = world
        self._setup = setup
        self._checker = checker
        self._up, self._down = roles(world, setup.source)
        self.rule = Rule(setup.blocking)
        """What the policy says."""
        self._followed: Followed[_Rule] = Followed(world, _rule_of)
        self.ended = -_RACE_SECONDS
        """When the policy was deleted last, and blocking ended with it, or until when that could not be heard."""
        self._left: dict[str, float] = {}
        """By uid, when upstream's object was last seen to go or be gone, or not to be this robot's."""
        self._others: set[str] = set()
        """Upstream's objects (uids) that are not this robot's."""
        self._returned: dict[str, float] = {}
        """By uid, when it was this robot's again after that."""
        self._owed: dict[str, int] = defaultdict(int)
        """By uid, the highest number of a status that was durable in the outbox."""

    def forget(self) -> None:
        """The agent's store is lost."""
        self._owed.clear()

    def owe(self, pending: Pending) -> None:
        """A status is durable in the outbox."""
        if isinstance(pending.value, dict):
            uid = pending.upstream_uid
            self._owed[uid] = max(self._owed[uid], pending.value.get("n", 0))

    def changed(self, original: Json, *, gone: bool = False) -> None:
        """Somebody changed upstream's object, or deleted it."""
        uid = original["metadata"]["uid"]
        mine = self._checker.is_selected(original) and self._checker.projections.is_meant(original)
        if not mine:
            self._others.add(uid)
        elif uid in self._others:
            self._others.discard(uid)
            self._returned[uid] = self._world.clock.now
        if gone or not mine or "deletionTimestamp" in original["metadata"]:
            self._left.setdefault(uid, self._world.clock.now)
        else:
            self._left.pop(uid, None)

    def copy_made(self, write: Write, copy: Json) -> None:
        """The agent made the copy of a primary."""
        original = self._original(stamp(copy))
        if not self._must_block() or original is None or write.late or self._has_ended():
            return
        if self._checker.is_synced(original, self._up.side) and MINE not in _finalizers(original):
            raise Violation(f"{write}: a copy is made before the finalizer is there (C6.1)")

    def released(self, write: Write, before: Json, after: Json | None) -> None:
        """The agent put its finalizer on upstream's object, or removed it."""
        uid = before["metadata"]["uid"]
        if MINE not in _finalizers(before):
            rules = self._followed.ever() if write.late else self._followed.in_force()
            if not any(blocking for blocking, _, _ in rules):
                raise Violation(f"{write}: an object got the finalizer, and deletion is not blocking (C6.1)")
            return
        if MINE in _finalizers(after) or self._has_ended() or not self._checker.is_selected(before):
            return
        if self._checker.projections.was_edited() or not self._checker.projections.is_meant(before):
            return  # what was under way then may still come, and copies of another kind are not waited for
        if not self._must_block() or self._is_overdue(before):
            return
        if write.late and not all(blocking for blocking, _, _ in self._followed.ever()):
            return  # it was sent while deletion was not blocking
        if self._world.clock.now - self._returned.get(uid, -_RACE_SECONDS) < _RACE_SECONDS:
            return  # the patch was on its way when the object became this robot's again; one that lives gets another
        if "deletionTimestamp" not in before["metadata"]:
            raise Violation(f"{write}: the finalizer of an object that lives was removed (C6.3)")
        if uid in self._checker.twins:
            return
        copies = [each for each in objects_of(self._down, GOALS).values() if self._is_known_copy(each, uid)]
        if copies:
            raise Violation(f"{write}: there still is a copy, {copies[0]['metadata']} (C6.3)")
        self._has_none_left(write, uid, before)
        if self._setup.edits_subtree or self._setup.edits_projection:
            return  # with another projection or subtree the statuses that wait are dropped (S6.3)
        sent = max(self._checker.stories[uid].sent, (before.get("status") or {}).get("n", 0))
        if sent < self._owed[uid]:
            raise Violation(f"{write}: the last status, {self._owed[uid]}, was not sent; {sent} was (C6.3)")

    def copy_deleted(self, write: Write, copy: Json) -> None:
        """The agent deletes the copy of a primary."""
        uid = self._checker.of(copy)
        asked = write.call.body["propagationPolicy"].lower()
        rules = self._followed.in_force()
        if asked not in [propagation for _, _, propagation in rules] and not (self._has_ended() or write.late):
            raise Violation(f"{write}: dependents are deleted by {asked} (C6.5)")
        if uid in self._checker.twins or self._checker.forgot or self._has_ended():
            return
        known = [*objects_of(self._up, GOALS).values()]
        if self._checker.projections.was_edited():  # which the agent may not have heard yet
            known += elsewhere(self._up).values()
        names = {(each["metadata"]["name"], each["metadata"]["uid"]) for each in known}
        if any(name == self._checker.name_of[uid] and of != uid for name, of in names):
            return  # there is another of its name, which may need what this one needed
        original = self._original(uid)
        waits = (  # that of one that lives goes from a kind that the projection names no more: its successor needs them
            self._must_block()
            and original is not None
            and "deletionTimestamp" in original["metadata"]
            and not self._is_overdue(original)
            and MINE in _finalizers(original)
            and self._checker.is_selected(original)
        )
        patient = self._world.clock.now - self._left.get(uid, -_PATIENCE_SECONDS) < _PATIENCE_SECONDS
        if waits or patient:
            self._has_none_left(write, uid, original)

    def _has_none_left(self, write: Write, uid: str, original: Json | None) -> None:
        """Related copies that only this primary ever needed are gone; `original` is upstream's object."""
        checker, references = self._checker, self._checker.references
        if original is not None and original["spec"] != references.specs.get(uid):
            return  # since it goes somebody had it refer to others
        for resource, where in sorted(references.last.get(uid, ())):
            if references.of(resource)[0]["cleanup"] == "keep" or references.users[resource, where] != {uid}:
                continue
            side = references.origins[resource].other
            if checker.forgot and side is self._up.side:
                continue  # the lost copy said what it needed
            for copy in objects_of(self._world.planes[side], resource).values():
                of = checker.of(copy)
                if checker.place_of.get(of) != where or of in checker.twins or not self._is_deletable(copy, side):
                    continue
                if references.changed and references.changed[-1] > checker.born(copy) - _RACE_SECONDS:
                    continue
                raise Violation(f"{write}: {resource} {copy['metadata']['name']}, its related copy, is there (C6.3)")

    def _is_deletable(self, copy: Json, side: Side) -> bool:
        """Whether the agent may delete a related copy, and knows of it."""
        mine = (signed(copy) if side is Side.CLOUD else True) and self._checker.is_mine(copy)
        return mine and is_marked(copy) and copy["metadata"]["uid"] not in self._checker.late

    def _is_known_copy(self, copy: Json, uid: str) -> bool:
        """Whether the agent has to wait for an object: one whose marks were cut is never deleted (5)."""
        return stamp(copy) == uid and copy["metadata"]["uid"] not in self._checker.late

    def waiting(self) -> list[str]:
        """The objects that wait for their copies, where they do not wait for long (C6.4)."""
        if not self.rule.blocking or self.rule.grace != "1m" or self._checker.forgot:
            return []
        going = [o for o in objects_of(self._up, GOALS).values() if "deletionTimestamp" in o["metadata"]]
        return [o["metadata"]["name"] for o in going if MINE in _finalizers(o) and self._checker.is_selected(o)]

    def open_ends(self) -> Iterator[str]:
        """Whether the agent follows the policy."""
        now = self._followed.now()
        if now is not None and now != self.rule.followed:
            yield f"deletion is by {now}, and should be by {self.rule.followed}"

    def look(self) -> None:
        """Note which rule the agent follows, and whether it can have heard that blocking has ended."""
        self._followed.look()
        link = self._world.weather[Side.ROBOT]
        if self._has_ended() and (link.cut or link.silent):
            self.ended = self._world.clock.now

    def _must_block(self) -> bool:
        return all(blocking for blocking, _, _ in self._followed.in_force())

    def _is_overdue(self, original: Json | None) -> bool:
        """Whether the grace period of an object is over (C6.4)."""
        began = (original or {"metadata": {}})["metadata"].get("deletionTimestamp")
        if not began:
            return False
        grace = min((seconds for _, seconds, _ in self._followed.in_force()), default=0.0)
        return self._up.server.storage.unix >= unix(began) + grace - 1.0

    def _has_ended(self) -> bool:
        return self._world.clock.now - self.ended < _RACE_SECONDS

    def _original(self, uid: str) -> Json | None:
        found = objects_of(self._up, GOALS).values()
        return next((each for each in found if each["metadata"]["uid"] == uid), None)


def _rule_of(policy: KindPolicy) -> _Rule:
    return policy.blocking, policy.grace_seconds, policy.propagation


def _finalizers(obj: Json | None) -> list[str]:
    return list((obj or {"metadata": {}})["metadata"].get("finalizers") or [])
