"""Proves that objects of one kind were really deleted, before their copies are; step by step (S5.5, S8.1).

That an object is absent at all, and not only unseen, is what `engine/caching/cache.py` observes from lists and watches.
Knows no connection and no clock: `engine/pairs/hold_driver.py` carries out the steps, and passes the time.
"""

from collections import Counter
from collections.abc import Generator, Set
from typing import Any

from crsyncer.core.holds.agent_list_reason import AgentListReason
from crsyncer.core.holds.deletion_holds import NO_TOMBSTONE, DeletionHolds
from crsyncer.core.holds.deletion_rate import DeletionRate
from crsyncer.core.holds.hold_list import KIND_MISSING, MASS_DELETION
from crsyncer.core.holds.hold_steps import Ask, Conclude, HoldStep, Idle, Inquiry, List, Pause, ProveCluster
from crsyncer.core.holds.kind_served import (
    Served,
    crd_in,
    is_terminating,
    served_by_both,
    served_by_crd,
    served_in_discovery,
)
from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.model import Freshness, Json, Key, Side
from crsyncer.core.pair.actions import Hold, HoldReason
from crsyncer.core.reports.facts import HOLD_RULES, Action, Fact
from crsyncer.core.reports.text import count
from crsyncer.core.requests import calls
from crsyncer.core.requests.calls import Call
from crsyncer.core.watching.backoff import UNSERVED, Backoff
from crsyncer.errors import NotServed, SyncError, Unsure

_ROUND_SECONDS = 0.25
_SECOND_LOOK_SECONDS = 3.0
_LIST_SECONDS = 2.0
_LIST_TRIES = 4
_UNLISTED = Backoff(0.5, 15.0)
_UNKNOWN_CRD = Backoff(5.0, 300.0)
_CRD_DENIED_SECONDS = 120.0
"""For how long a CRD that could be read is asked for again after a 403, until it counts as unreadable."""


_Reply = tuple[int, Json]


class HoldMachine:
    """Finds out why objects of one kind are gone; `holds` has the results.

    `notes` are lines for the log, `facts` what it did. `crd` is remembered over restarts.
    """

    def __init__(self, policy: KindPolicy, *, holds: DeletionHolds, crd: tuple[str, str]) -> None:
        self.holds = holds
        self.crd = crd
        """The cluster, and the uid of the CRD there that the copies' objects belong to; "": not known."""
        self.wanted: Counter[Key] = Counter()
        """How many jobs wait to have the deletion of an object verified, orphans included; no object has 0."""
        self.notes: list[str] = []
        self.facts: list[Fact] = []
        self.cursors_expired = False
        """Whether upstream's cursors are of another CRD and are to be dropped."""
        self.missing = False
        """Whether upstream answers that there is no such collection."""
        self.mass_deletion = (0, 0.0)
        """How many objects the last mass deletion had that was carried out, and when: Unix time, 0: there was none."""
        self._policy = policy
        self._endpoint = policy.endpoint(policy.upstream)
        self._freshness: dict[Side, Set[Freshness]] = {side: {Freshness.STORED} for side in Side}
        self._now = self._unix = self._chance = 0.0
        self._cluster, self._up = "", False
        self._round_at = self._list_at = self._crd_at = self._kind_at = 0.0
        """When the next round, list, and question for the CRD and for the kind may begin."""
        self._crd_failures = self._kind_failures = 0
        self._crd_due = False
        self._crd_readable = True
        """Whether the CRD may be readable."""
        self._discovery_readable = False
        """Whether discovery has shown what is served."""
        self._crd_denied_at: float | None = None
        """Since when the CRD, whose uid is known, may not be read."""
        self._rate = DeletionRate()
        self._unreferenced_rate = DeletionRate()
        self._creating = False
        """Whether the end of a restore waits for copies that are being created."""

    def tick(self, now: float, *, unix: float, chance: float, up: bool, cluster: str) -> None:
        """Time goes on: `now` is in seconds, of a clock that never jumps; `up`: upstream, this cluster, is there."""
        self._now, self._unix, self._chance, self._up, self._cluster = now, unix, chance, up, cluster

    def hurry(self) -> None:
        """A reload or an operator's command ends every wait (S9.1)."""
        self._crd_at = self._kind_at = self._now

    def phase_changed(self, *, missing: bool) -> None:
        """Upstream answers that there is no such collection (`missing`), or no longer does."""
        self.missing = missing
        if missing:
            self._kind_gone()

    def freshness_changed(self, side: Side, found: Set[Freshness]) -> None:
        """A side's observations are this fresh."""
        self._freshness[side] = found
        if side is not self._policy.upstream:
            self.phase_changed(missing=self.missing)
            return
        is_unknown = self._crd_readable and not self._crd_uid()
        if found == {Freshness.CONFIRMED} or (is_unknown and Freshness.STORED not in found):
            self.recheck_crd()

    def recheck_crd(self) -> None:
        """Upstream's objects may belong to another CRD than before: read its uid soon."""
        self._crd_due = True

    def discovery_shown(self, body: Json) -> None:
        """A negotiation has received this discovery. That the kind is not in it proves nothing."""
        self._discovery_readable |= "resources" in body
        if is_terminating(self._endpoint, body):
            self._kind_gone()

    def forget_crd(self) -> None:
        """Upstream's CRD may be another; what is lost with the one before is held for another reason."""
        self.crd = self._cluster, ""

    def restore_is_over(self, *, settled: Key | None, creating: bool) -> bool:
        """Whether nothing is held for a restore, the object `settled` aside, and each side has been seen since.

        A copy that is being created may turn out to be one that upstream lost. While copies that an edited selection
        leaves behind are being counted, no plan shows what the restore holds.
        """
        held = self.holds.restored_keys()
        if HoldReason.RESTORED not in self.holds.kind_wide or held - {settled} or self.holds.is_counting:
            return False
        if any(Freshness.STORED in found for found in self._freshness.values()):
            return False
        if settled is not None and settled not in held and not self._creating:
            return False
        self._creating = creating
        return not creating

    def program(self) -> Inquiry:
        """Find out what is not known yet, forever."""
        while True:
            crd, kind = self._crd_due and self._up, self.holds.may_end_missing and self._up
            if crd and self._crd_at <= self._now:
                yield from self._find_crd()
            elif self.wanted and self._round_at <= self._now:
                yield from self._verify()
            elif kind and self._kind_at <= self._now:
                yield from self._find_kind()
            else:
                due = ((crd, self._crd_at), (self.wanted, self._round_at), (kind, self._kind_at))
                yield Idle(min((at - self._now for is_due, at in due if is_due), default=None))

    def _verify(self) -> Inquiry:
        """Hold or verify in one round the deletions of everything that waits."""
        self._hold_unreferenced()
        try:
            batch, hold = yield from self._round()
        except SyncError as error:
            yield Conclude(error)
        else:
            new = sum(
                self.holds.hold(key, hold, self._unix) for key in batch if hold and not self.holds.is_present(key)
            )
            if hold is None:
                self.holds.verify(batch, wanted=self.wanted.keys())
            elif new:
                self._report_fact(
                    Action.HELD, f"{hold.reason}: {count(new, 'deletion')}: {hold.message}", HOLD_RULES[hold.reason]
                )
            yield Conclude(None)
        self._round_at = self._now + _ROUND_SECONDS

    def _hold_unreferenced(self) -> None:
        """Hold too many deletions of copies that are merely not needed any more: no list proves these (C5.4)."""
        batch = {key for key in self.holds.unverified() if (self.holds.tombstone(key) or NO_TOMBSTONE).unreferenced}
        if batch and self._unreferenced_rate.is_mass(batch, copies=len(self.holds.copies), now=self._now):
            new = sum(self.holds.hold(key, MASS_DELETION, self._unix) for key in batch)
            text = f"{MASS_DELETION.reason}: {count(new, 'object')} that nothing refers to any more"
            self._report_fact(Action.HELD, text, "C5.4")

    def _round(self) -> Generator[HoldStep, Any, tuple[set[Key], Hold | None]]:
        """The deletions that wait, and what they are to be held for; None: they are verified.

        A fresh list must show that the objects are gone: of a mass deletion, wherever discovery does not confirm that
        the kind is served, and of orphans, whose objects the watch may not have delivered yet. A list that fails
        although upstream answers is repeated.

        Where discovery does not answer, the list is repeated while more deletions arrive: they may be the first of a
        kind that is being deleted. That takes a while, and is certain when the list is answered with 404.
        """
        batch = self._batch()
        if not batch:
            return batch, None  # all are held already
        served = yield from self._find_served()
        if self.holds.kind_missing:
            return batch, KIND_MISSING
        certain = served is Served.YES
        # What was deleted since then counts, but is not verified: the kind may have been deleted since then, too.
        mass = self._rate.is_mass(batch | self._batch(), copies=len(self.holds.copies), now=self._now)
        if certain and not mass:
            reported = {key for key in batch if self.holds.tombstone(key) is not None}
            if Freshness.STORED not in self._freshness[self._policy.upstream]:
                reported |= batch & {*self.holds.leaving()}  # they were seen, so no absence is to be proved
            self.holds.verify(reported, wanted=self.wanted.keys())
            batch -= reported
        failures = 0
        while batch:
            if not certain:
                batch |= self._batch()
                yield Pause(_SECOND_LOOK_SECONDS)
            try:
                hold = yield from self._list()
            except Unsure:
                if certain and not mass:
                    raise
                yield from self._get(ProveCluster())
                failures += 1
                if failures == _LIST_TRIES:
                    return batch, MASS_DELETION
                yield Pause(_UNLISTED.wait(failures, self._chance), retry=True)
                continue
            if hold is not None:
                return batch, hold
            if certain or batch.issuperset(self._batch()):
                break
        if served is Served.NOT_FOUND and (yield from self._find_served()) is not served:
            self._kind_gone()  # it was not served for a while, so the list proves nothing
            return batch, KIND_MISSING
        if mass:
            self.mass_deletion = self._rate.count(batch, self._now), self._unix
        return batch, None

    def _list(self) -> Generator[HoldStep, Any, Hold | None]:
        """Have upstream listed; raises Unsure or NotAllowed when there was no list (S10)."""
        yield Pause(max(0.0, self._list_at - self._now))
        try:
            yield from self._get(List(self._policy.upstream, AgentListReason.VERIFY))
        except NotServed:
            self._kind_gone()
            return KIND_MISSING
        finally:
            self._list_at = self._now + _LIST_SECONDS
        return None

    def _find_served(self) -> Generator[HoldStep, Any, Served]:
        """Whether upstream serves the kind; a no holds every deletion. Raises Unsure when upstream did not answer."""
        discovery, crd = self._discovery(), self._crd_call()
        replies = yield from self._get(Ask((discovery, crd) if self._crd_readable else (discovery,)))
        served = served_in_discovery(self._endpoint, *replies[0])
        self._discovery_readable |= served in (Served.YES, Served.NO)
        if replies[1:]:
            served = served_by_both(served, (yield from self._read_crd(replies[1], served)))
        if served is Served.NO:
            self._kind_gone()
        return served

    def _find_crd(self) -> Inquiry:
        """Find out by which CRD upstream serves the kind.

        When it was deleted and re-created out of sight, discovery and lists look as if somebody had deleted every
        object. Only its uid differs. Where that may not be read, what remains is that many deletions are verified.
        """
        self._crd_due = False
        try:
            replies: list[_Reply] = yield from self._get(Ask((self._crd_call(),)))
            if (yield from self._read_crd(replies[0], None)) is Served.NO:
                self._kind_gone()  # now: it may be re-created before a deletion asks, its uid not known
        except SyncError as error:
            self._note(f"the CRD of the {self._policy.upstream} is not known yet: {error}")
            self._crd_due = True
            self._crd_at = self._now + _UNKNOWN_CRD.wait(self._crd_failures, self._chance)
            self._crd_failures += 1
        else:
            self._crd_at = self._now + _ROUND_SECONDS
            self._crd_failures = 0

    def _read_crd(self, reply: _Reply, served: Served | None) -> Generator[HoldStep, Any, Served | None]:
        """Whether upstream serves the kind, by its CRD; None: not known. `served` is discovery's answer, if known."""
        uid = self._crd_uid()
        reply = crd_in(*reply)
        found = served_by_crd(*reply, uid)
        if found is not None or not uid:
            self._crd_denied_at = None
        elif self._crd_denied_at is None:
            self._crd_denied_at = self._now
        if self._crd_denied_at is not None and self._now < self._crd_denied_at + _CRD_DENIED_SECONDS:
            raise Unsure(f"the {self._policy.upstream} does not show the CRD any more")
        self._crd_readable = found is not None
        if found is Served.OTHER:
            yield from self._get(ProveCluster())  # another cluster has another CRD, too: then the kind is the same
            if self._crd_uid() != uid:
                raise Unsure(f"the {self._policy.upstream} was restored, or is another cluster")
            self._report_fact(Action.HELD, f"the CRD of the {self._policy.upstream} was re-created")
            self._crd_replaced()
            self.crd = self._cluster, ""
            self._crd_due = True
        elif found is Served.YES and not uid:
            if served is None:  # only discovery shows the scope, which never changes in a CRD
                replies: list[_Reply] = yield from self._get(Ask((self._discovery(),)))
                served = served_in_discovery(self._endpoint, *replies[0])
            found = served
            if found in (Served.YES, Served.UNKNOWN):
                self.crd = self._cluster, str(reply[1]["metadata"]["uid"])
        return found

    def _find_kind(self) -> Inquiry:
        """While the kind is missing, find out whether it is back, and as the same one.

        Only a list shows it: a watch can outlive its CRD, and go on with the objects of the next one (measured).
        """
        try:
            is_back = yield from self._find_return()
        except SyncError as error:
            self._note(f"whether the {self._policy.upstream} serves the kind again is not known: {error}")
            is_back = False
        if is_back and self.holds.kind_missing:  # else a human has released it meanwhile
            held = self.holds.kind_back(self._unix)
            text = f"the {self._policy.upstream} serves the kind again; {held} copies stay held"
            self._report_fact(Action.RELEASED, text)
        if self.holds.kind_missing:
            self._kind_at = self._now + UNSERVED.wait(self._kind_failures, self._chance)
            self._kind_failures += 1

    def _find_return(self) -> Generator[HoldStep, Any, bool]:
        """Whether the kind is back, and a complete list made after that shows its objects.

        Raises SyncError where that is not known.
        """
        if self.missing or (served := (yield from self._find_served())) is Served.NO:
            return False
        if served is Served.UNKNOWN and self._discovery_readable:
            raise Unsure("discovery could be read before, and is forbidden now")
        if not self._is_complete(self._policy.downstream):
            yield from self._get(List(self._policy.downstream, AgentListReason.KIND_BACK))
        yield from self._get(List(self._policy.upstream, AgentListReason.KIND_BACK))
        return not self.missing and all(map(self._is_complete, Side))

    def _get(self, step: Ask | List | ProveCluster) -> Generator[HoldStep, Any, Any]:
        """The result of a step; raises the SyncError that it has ended with."""
        result = yield step
        if isinstance(result, SyncError):
            raise result
        return result

    def _kind_gone(self) -> None:
        """Upstream does not serve the kind: hold all copies, whichever there are by now."""
        if not self.holds.kind_missing:
            self._report_fact(Action.HELD, f"the {self._policy.upstream} does not serve the kind: nothing is deleted")
            self._kind_at, self._kind_failures = self._now, 0
        self.holds.hold_kind(self._unix, by_name=True)

    def _crd_replaced(self) -> None:
        """Upstream serves the kind by another CRD than before: only a new list shows which objects came back."""
        self.cursors_expired = True
        self._kind_at, self._kind_failures = self._now, 0
        self.holds.hold_kind(self._unix, by_name=False)

    def _batch(self) -> set[Key]:
        wanted = (key for key in self.wanted if not (self.holds.tombstone(key) or NO_TOMBSTONE).held)
        return {*self.holds.unverified(), *self.holds.leaving(), *wanted}

    def _discovery(self) -> Call:
        return calls.discovery(self._endpoint.group, self._endpoint.version)

    def _crd_call(self) -> Call:
        """The robot's rights are to list its CRDs, the cloud's to read those of the kinds."""
        by_name = calls.crd if self._policy.upstream is Side.CLOUD else calls.crd_listed
        return by_name(self._endpoint.resource)

    def _crd_uid(self) -> str:
        return self.crd[1] if self.crd[0] == self._cluster else ""

    def _is_complete(self, side: Side) -> bool:
        return self._freshness[side] == {Freshness.CONFIRMED}

    def _note(self, text: str) -> None:
        self.notes.append(f"{self._policy.resource}: {text}")

    def _report_fact(self, action: Action, text: str, rule: str = "S5.5") -> None:
        self.facts.append(Fact(self._policy.downstream, self._policy.resource, None, action, rule, text))
