"""What a case of the tables in `truth` is: facts in the design's words, built into what `decide` takes."""

from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

from crsyncer.core.content.annotations import OURS
from crsyncer.core.content.object_content import digest
from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.model import Found, Freshness, Gap, Json, Observation, Pending, Proof, Record, Side, View
from crsyncer.core.pair.actions import (
    Plan,
)
from crsyncer.core.pair.decide import decide
from crsyncer.core.pair.project import view_of
from tests.core.builders import copy_of, goal, policy

UNSEEN, ABSENT, TERMINATING, SEEN = "unseen", "absent", "terminating", "seen"
OURS_, UNSIGNED, TORN, OLDER, ANOTHER_UID, ANOTHER_ROBOT = "ours", "unsigned", "torn", "older", "uid-0", "robot-2"
STAMPS = (OURS_, UNSIGNED, TORN, OLDER, ANOTHER_UID, ANOTHER_ROBOT)
AGREES, ADMITTED, DRIFTED = "agrees", "admitted", "drifted"
FULL, SUBTREE, MAP = "full", "subtree", "map"
NONE, EMPTY, A, B, NEIGHBOURS, ODD = "none", "empty", "A", "B", "neighbours", "odd"
STATUSES = (NONE, EMPTY, A, B, NEIGHBOURS, ODD)
REMOVAL, ANOTHER = "removal", "for another uid"


class Memory(NamedTuple):
    """What is remembered of the pair."""

    this_uid: bool = True
    wrote: str = ""
    """"this": the content that upstream has now, and what admission made of it; "older": another."""
    sent: str = NONE
    accepted: str = NONE
    had: bool = False
    seed: bool = False


def stamped_uid(case: "Case") -> str:
    return "u-0" if case.stamp == ANOTHER_UID else "u-1"


class Case(NamedTuple):
    """One row of the product of everything that a decision depends on."""

    upstream: str = SEEN
    downstream: str = SEEN
    stamp: str = OURS_
    content: str = AGREES
    upstream_status: str = NONE
    status: str = NONE
    memory: Memory = Memory()
    pending: str = NONE
    source: Side = Side.CLOUD
    mode: str = FULL
    keep_orphans: bool = False
    keep_drift: bool = False
    endpoint: bool = True
    audit: bool = False
    freshness: Freshness = Freshness.CONFIRMED
    tombstone: str | None = None
    """The uid that was deleted upstream, "" for any; it is there only where upstream is absent."""
    proof: Proof = Proof.SHOWN
    attempts: int = 0
    dead: bool = False
    reachable: bool = True
    behind: bool = False
    refused: bool = False
    """Downstream has refused the content that upstream has now."""

    @property
    def proven(self) -> bool:
        """What upstream shows, or lacks, says what became of the object that the copy is stamped with."""
        if self.stamp == UNSIGNED or self.freshness is Freshness.CONFIRMED:
            return True
        return self.tombstone in ("", stamped_uid(self))

    @property
    def own(self) -> str:
        """What is known of the upstream object that the copy is stamped with."""
        if self.upstream == UNSEEN or (self.upstream == ABSENT and not self.proven):
            return UNSEEN
        if self.upstream != ABSENT and self.stamp == ANOTHER_UID:
            return ABSENT if self.proven else UNSEEN
        return self.upstream

    @property
    def unasked(self) -> bool:
        """A list of upstream can be asked for, and has not come on this connection."""
        return self.freshness is Freshness.RESUMED

    @property
    def stays(self) -> bool:
        """The copy would not be deleted if upstream had nothing."""
        others = self.source is Side.ROBOT and self.stamp in (UNSIGNED, ANOTHER_ROBOT)
        kept = self.keep_orphans and self.stamp == UNSIGNED and self.source is Side.CLOUD
        return others or kept or self.downstream == TERMINATING

    @property
    def gone(self) -> bool:
        """Upstream is gone, or about to be."""
        return self.upstream in (ABSENT, TERMINATING)

    @property
    def known(self) -> bool:
        """There is an upstream object to compare a status with."""
        return self.own in (SEEN, TERMINATING)

    @property
    def foreign(self) -> bool:
        """In the cloud, and not signed by this robot."""
        return self.source is Side.ROBOT and self.stamp in (UNSIGNED, ANOTHER_ROBOT)

    @property
    def wrote_this(self) -> bool:
        """Our last write to the copy was the content that upstream has now."""
        return self.memory.this_uid and self.memory.wrote == "this"

    @property
    def wrote_that(self) -> bool:
        """The copy's stamp is the one of our last write, of an older content."""
        return self.memory.this_uid and self.memory.wrote == "older"

    @property
    def differs(self) -> bool:
        """The copy's content or stamp has to be written."""
        return self.stamp in (UNSIGNED, TORN, OLDER) or not self.tolerated

    @property
    def first(self) -> bool:
        """Upstream has not been asked to take the status yet, or has to be asked whether it is the newest."""
        return self.attempts == 0 or self.proof is Proof.MISSING

    @property
    def tolerated(self) -> bool:
        """The copy's content is as it should be, or is left as it is."""
        return self.content == AGREES or (self.content == ADMITTED and self.wrote_this) or self.keep_drift

    @property
    def owed(self) -> bool:
        """The copy is ours, has no status yet, and upstream has, or will have, one that it has not been given."""
        worth = (A, B, NEIGHBOURS, EMPTY) if self.mode == SUBTREE else (A, B, NEIGHBOURS)
        fresh = self.memory.this_uid and self.memory.seed and self.status == NONE
        given = self.upstream_status in worth or (self.pending in (A, B) and self.upstream_status != ODD)
        return fresh and given

    @property
    def remembered(self) -> Memory:
        """Memory of the uid that the copy is stamped with: of an older object, nothing."""
        return self.memory if self.memory.this_uid and self.stamp != ANOTHER_UID else Memory()

    @property
    def waiting(self) -> str | None:
        """The value that the outbox has for the uid that the copy is stamped with; "" is a removal."""
        if self.pending in (NONE, ANOTHER) or self.stamp == ANOTHER_UID:
            return None
        return "" if self.pending == REMOVAL else self.pending


def value(status: str, mode: str) -> str:
    """The value that moves of a status; "": there is none."""
    if status in (NONE, EMPTY) or (mode == SUBTREE and status in (NEIGHBOURS, ODD)):
        return ""
    return status


_PHASES: dict[str, Json] = {name: {"phase": name, "observedGeneration": 1} for name in (A, B)}


def status_of(name: str, mode: str) -> Any:
    """The status itself."""
    own: Any = _PHASES.get(name)
    if own is not None:
        return {"robot": own, "battery": 7} if mode == SUBTREE else own
    return {NONE: None, EMPTY: {}, NEIGHBOURS: {"battery": 7}, ODD: "DONE"}[name]


@cache
def digest_of(name: str, mode: str) -> str:
    """Digest of the value that moves."""
    if not value(name, mode):
        return ""
    return digest(_PHASES[name] if mode == SUBTREE else status_of(name, mode))


@cache
def value_of(text: str, mode: str) -> str:
    return {digest_of(name, mode): value(name, mode) for name in STATUSES}[text]


@cache
def kind(source: Side, mode: str, keep_orphans: bool, keep_drift: bool, endpoint: bool) -> KindPolicy:
    return policy(
        source,
        status=endpoint,
        subtree="robot" if mode == SUBTREE else None,
        map_generation=mode == MAP,
        keep_orphans=keep_orphans,
        keep_drift=keep_drift,
    )


_LABELS = {"labels": {"team": "a"}, "annotations": {"note": "b"}}
_ADMITTED = {"x": 1, "default": True}


def _upstream_object(status: Any = None, **changes) -> Json:
    return goal(status=status, spec={"x": 1}, metadata=_LABELS, **changes)


@cache
def upstream_found(case_upstream: str, status: str, source: Side, mode: str) -> Found:
    if case_upstream in (UNSEEN, ABSENT):
        return Gap(case_upstream)
    raw = _upstream_object(status_of(status, mode))
    if case_upstream == TERMINATING:
        raw["metadata"] = raw["metadata"] | {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    return view_of(raw, kind(source, mode, False, False, True), source)


@cache
def downstream_found(phase: str, stamp: str, content: str, status: str, source: Side, mode: str) -> Found:
    if phase in (UNSEEN, ABSENT):
        return Gap(phase)
    policy_ = kind(source, mode, False, False, True)
    origin = _upstream_object(uid="u-0" if stamp == ANOTHER_UID else "u-1")
    if stamp == OLDER:
        origin["spec"] = {"x": 0}
    raw = copy_of(origin, policy_, spec={AGREES: {"x": 1}, ADMITTED: _ADMITTED, DRIFTED: {"x": 9}}[content])
    annotations = dict(raw["metadata"]["annotations"])
    if stamp == UNSIGNED:
        annotations = {k: v for k, v in annotations.items() if not k.startswith(OURS)}
    elif stamp == TORN:
        annotations[OURS + "applied"] = "{"
    elif stamp == ANOTHER_ROBOT:
        annotations[OURS + "robot"] = "robot-2"
    raw["metadata"]["annotations"] = annotations
    if phase == TERMINATING:
        raw["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    if status != NONE:
        raw["status"] = status_of(status, mode)
    return view_of(raw, policy_, source.other)


@cache
def record_of(memory: Memory, mode: str) -> Record:
    upstream, copy = _upstream_object(), downstream_found(SEEN, OURS_, ADMITTED, NONE, Side.CLOUD, FULL)
    assert isinstance(copy, View)
    agreed = kind(Side.CLOUD, FULL, False, False, True)
    this = view_of(upstream, agreed, Side.CLOUD).content
    older = view_of(upstream | {"spec": {"x": 0}}, agreed, Side.CLOUD).content
    record = Record(
        upstream_uid="u-1" if memory.this_uid else "u-9",
        acknowledged=digest_of(memory.sent, mode),
        upstream_status=digest_of(memory.accepted, mode),
        had_status=memory.had,
        seed=memory.seed,
    )
    if not memory.wrote:
        return record
    return replace(record, applied=this if memory.wrote == "this" else older, admitted=copy.content)


@cache
def row_of(pending: str, mode: str, attempts: int, dead: bool) -> Pending | None:
    if pending == NONE:
        return None
    name = NONE if pending == REMOVAL else A if pending == ANOTHER else pending
    uid = "u-9" if pending == ANOTHER else "u-1"
    text = digest_of(name, mode)
    return Pending(seq=1, upstream_uid=uid, digest=text, value=None, since=0.0, attempts=attempts, dead=dead)


def build(case: Case) -> tuple[Observation, Observation, KindPolicy, Record, Pending | None]:
    """The positional arguments of `decide`, and the row of the outbox."""
    found = upstream_found(case.upstream, case.upstream_status, case.source, case.mode)
    copy = downstream_found(case.downstream, case.stamp, case.content, case.status, case.source, case.mode)
    return (
        Observation(found, case.freshness, case.tombstone if case.upstream == ABSENT else None),
        Observation(copy),
        kind(case.source, case.mode, case.keep_orphans, case.keep_drift, case.endpoint),
        record_of(case.memory, case.mode),
        row_of(case.pending, case.mode, case.attempts, case.dead),
    )


def plan_of(case: Case) -> Plan:
    """What is decided."""
    up, down, kind, record, pending = build(case)
    return decide(
        up,
        down,
        kind,
        record,
        pending=pending,
        proof=case.proof,
        reachable=case.reachable,
        behind=case.behind,
        rejected=_THIS if case.refused else "",
        audit=case.audit,
    )


_THIS = view_of(_upstream_object(), kind(Side.CLOUD, FULL, False, False, True), Side.CLOUD).content
