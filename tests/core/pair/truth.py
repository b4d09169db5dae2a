"""The rules S3 to S5 as tables, written from the design and not from the code: the first row that fits counts.

A case is a list of facts in the design's words; `build` turns it into what `decide` takes, out of real objects.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from crsyncer.core.model import Freshness, Proof
from crsyncer.core.pair.actions import (
    Agreed,
    CountAsSent,
    Create,
    Delete,
    Hold,
    HoldReason,
    Seed,
    SendStatus,
    Until,
    Update,
    Wait,
    Why,
)
from tests.core.pair.truth_cases import (
    ABSENT,
    ADMITTED,
    AGREES,
    ANOTHER,
    ANOTHER_UID,
    MAP,
    NONE,
    ODD,
    OLDER,
    SEEN,
    SUBTREE,
    TERMINATING,
    TORN,
    UNSEEN,
    UNSIGNED,
    Case,
    stamped_uid,
    value,
    value_of,
)


@dataclass(frozen=True)
class Row:
    """When the facts are so, this has to be done."""

    rule: str
    says: str
    when: Callable[[Case], bool]
    then: Any
    """What has to be done, or a function of the case that says it."""


def always(case: Case) -> bool:
    return True


NOTHING = None
"""No request at all."""


def delete(why: Why) -> Callable[[Case], Delete]:
    """What is no copy yet, and a copy whose last status can still be sent, is deleted in the version that was seen."""
    return lambda case: Delete("c-1", why, "10" if case.stamp == UNSIGNED or case.own == TERMINATING else "")


def update(why: Why) -> Update:
    return Update("c-1", "10", why)


def owes_another(case: Case) -> bool:
    """The status that waits is of another object than the copy's, and that may be the newer one (S5.4)."""
    uid, waits_for = stamped_uid(case), "u-9" if case.pending == ANOTHER else "u-1"
    if case.pending == NONE or case.stamp == UNSIGNED or uid == waits_for:
        return False
    seen = case.upstream in (SEEN, TERMINATING)
    proven = case.freshness is Freshness.CONFIRMED or case.tombstone in ("", waits_for)
    if case.upstream != UNSEEN and not (seen and waits_for == "u-1") and proven:
        return False
    return case.freshness is Freshness.RESUMED or (seen and uid == "u-1")


CONTENT = (
    Row("S3.2", "downstream is not known", lambda c: c.downstream == UNSEEN, NOTHING),
    Row("S5", "neither side is known to have it", lambda c: c.upstream == UNSEEN and c.downstream == ABSENT, NOTHING),
    Row("S5", "nothing on either side", lambda c: c.upstream == c.downstream == ABSENT, NOTHING),
    Row("S5", "what is being deleted is never created", lambda c: c.gone and c.downstream == ABSENT, NOTHING),
    Row("S3.6", "downstream refuses it", lambda c: c.downstream == ABSENT and c.refused, Until.RETRY),
    Row(
        "S4.1",
        "the store may be older than the former copy's status",
        lambda c: c.downstream == ABSENT and c.pending != NONE and c.proof is Proof.UNCHECKED,
        Until.COPIES_LISTED,
    ),
    Row(
        "S5.4",
        "the former copy's status is of an object that may be newer",
        lambda c: c.downstream == ABSENT and c.pending == ANOTHER and c.freshness is not Freshness.CONFIRMED,
        Until.UPSTREAM_LISTED,
    ),
    Row(
        "S5.2",
        "the former copy's last status goes first",
        lambda c: c.downstream == ABSENT and c.pending != NONE and c.reachable and not c.dead and c.first,
        Until.STATUS_SENT,
    ),
    Row(
        "S4.4",
        "the new copy would begin with an older status",
        lambda c: c.downstream == ABSENT and c.behind and c.reachable,
        Until.STATUS_SHOWN,
    ),
    Row("S3.2", "there is no copy yet", lambda c: c.downstream == ABSENT, Create()),
    Row("S5.3", "the name is taken in the cloud", lambda c: c.foreign and c.upstream == SEEN, HoldReason.NAME_TAKEN),
    Row("S5", "a copy that would stay anyway", lambda c: c.own == UNSEEN and c.stays, NOTHING),
    Row("S5.4", "its object may be newer, or gone", lambda c: c.own == UNSEEN and c.unasked, Until.UPSTREAM_LISTED),
    Row("S5", "its object is not known", lambda c: c.own == UNSEEN, NOTHING),
    Row("S5.3", "others' objects in the cloud are not deleted", lambda c: c.foreign, NOTHING),
    Row("S5.1", "the copy is being deleted already", lambda c: c.downstream == TERMINATING, NOTHING),
    Row("S5.3", "keep orphans", lambda c: c.gone and c.keep_orphans and c.stamp == UNSIGNED, NOTHING),
    Row("S5", "upstream is absent", lambda c: c.upstream == ABSENT, delete(Why.GONE)),
    Row("S5", "upstream is terminating", lambda c: c.upstream == TERMINATING, delete(Why.TERMINATING)),
    Row("S5.4", "the copy of another uid", lambda c: c.stamp == ANOTHER_UID, delete(Why.REPLACED)),
    Row("S3.6", "downstream refuses it", lambda c: c.refused and c.differs, Until.RETRY),
    Row(
        "S6.1",
        "the copy may be newer than what is known, and a list can tell",
        lambda c: c.stamp == OLDER and not c.wrote_that and c.unasked,
        Until.UPSTREAM_LISTED,
    ),
    Row(
        "S6.1",
        "the copy may be newer than what is known",
        lambda c: c.stamp == OLDER and not c.wrote_that and c.freshness is Freshness.STORED,
        NOTHING,
    ),
    Row(
        "S3.5",
        "the stamp that we wrote is gone or another",
        lambda c: c.stamp in (UNSIGNED, TORN, OLDER) and c.wrote_this,
        update(Why.DRIFT),
    ),
    Row("S5.4", "made by hand or by the predecessor", lambda c: c.stamp == UNSIGNED, update(Why.ADOPT)),
    Row("S3.2", "upstream has changed since", lambda c: c.stamp in (TORN, OLDER), update(Why.CHANGED)),
    Row("S3.5", "downstream has changed", lambda c: not c.tolerated, update(Why.DRIFT)),
    Row(
        "S4.4", "the status owed is about to change", lambda c: c.owed and c.behind and c.reachable, Until.STATUS_SHOWN
    ),
    Row(
        "S4.4",
        "the status owed may be an older one, and a list can tell",
        lambda c: c.owed and c.reachable and c.unasked,
        Until.UPSTREAM_LISTED,
    ),
    Row(
        "S4.4",
        "the status owed may be an older one",
        lambda c: c.owed and c.reachable and c.freshness is Freshness.STORED,
        NOTHING,
    ),
    Row("S4.4", "the copy is owed a status", lambda c: c.owed, Seed("c-1", "10")),
    Row("S3.5", "what admission made of our write", lambda c: c.content == ADMITTED and c.wrote_this, NOTHING),
    Row("S3.5", "keep drift", lambda c: c.content != AGREES, NOTHING),
    Row("S3.2", "both agree", always, NOTHING),
)


def send(case: Case) -> tuple[str, str, str]:
    return "send", stamped_uid(case), value(case.status, case.mode)


def agreed(case: Case) -> tuple[str, str, str]:
    return "agreed", stamped_uid(case), value(case.status, case.mode)


def counted(case: Case) -> tuple[str, str, str]:
    return "counted", value(case.status, case.mode), value(case.upstream_status, case.mode)


def is_of_former(case: Case) -> bool:
    unsigned = case.known and case.stamp == UNSIGNED and not case.memory.this_uid
    return unsigned and case.status != ODD and not none_now(case)


def none_now(case: Case) -> bool:
    return not value(case.status, case.mode)


def same_upstream(case: Case) -> bool:
    return case.known and value(case.upstream_status, case.mode) == value(case.status, case.mode)


def shown(case: Case) -> bool:
    """Upstream has the status as it has to be; with map, that it is verbatim ours says nothing (S4.7)."""
    return case.mode != MAP and same_upstream(case)


STATUS = (
    Row("S4.1", "there is no copy to read it from", lambda c: c.downstream in (UNSEEN, ABSENT), NOTHING),
    Row("S5", "there is nobody to tell", lambda c: c.own == ABSENT, NOTHING),
    Row("S5.3", "others' objects in the cloud say nothing to us", lambda c: c.foreign, NOTHING),
    Row("S4.1", "a former object's stays with it", is_of_former, counted),
    Row("S5.4", "a copy that is not stamped is adopted first", lambda c: c.stamp == UNSIGNED, NOTHING),
    Row("S5.4", "a status waits for an object that may be newer", owes_another, NOTHING),
    Row("S4.5", "not an object", lambda c: c.status == ODD, HoldReason.ODD_STATUS),
    Row("S4.3", "never had one", lambda c: none_now(c) and not c.remembered.had, NOTHING),
    Row("S4.4", "has not been given it yet", lambda c: none_now(c) and c.remembered.seed, NOTHING),
    Row("S4.5", "the whole status is gone", lambda c: c.mode == SUBTREE and c.status == NONE, NOTHING),
    Row("S6.3", "waits in the outbox", lambda c: c.waiting == value(c.status, c.mode), NOTHING),
    Row("S4.1", "another waits, or is on its way", lambda c: c.waiting is not None, send),
    Row("S4.9", "gone, and upstream has none", lambda c: none_now(c) and same_upstream(c), agreed),
    Row("S4.3", "was there and is gone", none_now, send),
    Row(
        "S4.9",
        "acknowledged, and upstream has it",
        lambda c: shown(c) and c.remembered.sent == value(c.status, c.mode),
        NOTHING,
    ),
    Row("S4.9", "upstream has it already", shown, agreed),
    Row("S4.1", "changed since it was sent", lambda c: c.remembered.sent != value(c.status, c.mode), send),
    Row(
        "S4.8",
        "upstream was changed, and we audit",
        lambda c: c.audit and c.known and value(c.upstream_status, c.mode) != value(c.remembered.accepted, c.mode),
        send,
    ),
    Row("S4.10", "upstream was changed by somebody", lambda c: c.known, NOTHING),
    Row("S4.1", "acknowledged, upstream is not known now", always, NOTHING),
)


def expected(table: tuple[Row, ...], case: Case) -> tuple[int, Any]:
    """Which row fits, and what has to be done then."""
    for number, row in enumerate(table):
        if row.when(case):
            return number, row.then(case) if callable(row.then) else row.then
    raise AssertionError(f"no row for {case}")


def said(action: Any, mode: str) -> Any:
    """An action in the table's words."""
    match action:
        case Hold(reason=reason):
            return reason
        case Wait(until=until):
            return until
        case SendStatus(upstream_uid=uid, digest=text):
            return "send", uid, value_of(text, mode)
        case Agreed(upstream_uid=uid, digest=text):
            return "agreed", uid, value_of(text, mode)
        case CountAsSent(upstream_uid="u-1", digest=text, upstream_status=shown_upstream):
            return "counted", value_of(text, mode), value_of(shown_upstream, mode)
    return action


# From facts to what `decide` takes
