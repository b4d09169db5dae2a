"""C6 as a table, exhaustively: what becomes of this robot's finalizer, by all that it depends on."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import product
from typing import NamedTuple

import pytest

from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.kinds.sync_policy import read_sync_policy
from crsyncer.core.model import FinalizerRow, Found, Freshness, Gap, Observation, Pending, Record, Side, View
from crsyncer.core.pair.actions import Create, Until, Wait
from crsyncer.core.pair.decide import decide
from crsyncer.core.pair.decide_finalizer import (
    AddFinalizer,
    FinalizerAction,
    ForgetFinalizer,
    GraceUntil,
    RemoveFinalizer,
    decide_finalizer,
)
from crsyncer.core.pair.project import view_of
from tests.core.builders import ROBOT_NAME, copy_of, goal, policy
from tests.core.sync_policies import MINIMAL, edited

MINE = f"crsyncer.cloudrobotics.com/robot-{ROBOT_NAME}"
DELETED, GRACE = 1000.0, 3600.0


@cache
def kind(mode: str = "blocking", **changes) -> KindPolicy:
    """A kind whose deletion is so."""
    spec = edited(MINIMAL, "spec", "deletion", value={"mode": mode})
    return policy(sync_policy=read_sync_policy(spec), **changes)


class Case(NamedTuple):
    """One row of the product of everything that the decision depends on."""

    blocking: bool
    upstream: str
    """"absent" or "unseen"; or of the object: "bare" or "kept", "dying bare", "dying kept", "another"."""
    freshness: Freshness
    row: str
    """"", or what the outbox has: "kept", "waits", "removed", "old name"."""
    copy: str
    """"seen", "absent", "unseen", "not ours"."""
    status: str
    """"", "own" or "of another": whose status waits."""
    creating: bool
    related: bool
    refused: bool
    over: bool

    @property
    def seen(self) -> bool:
        return self.upstream not in ("absent", "unseen")

    @property
    def copy_gone(self) -> bool:
        return self.copy in ("absent", "not ours") and not self.creating

    @property
    def has_row(self) -> bool:
        return self.row in ("kept", "waits", "old name")


def observation(case: Case) -> Observation:
    uid = "u-9" if case.upstream == "another" else "u-1"
    dying, kept = case.upstream.startswith("dying"), case.upstream.endswith("kept")
    view = View(uid, "7", 1, dying, "c", "", has_status=False, finalized=kept, deleted_at=DELETED if dying else 0.0)
    found: Found = {"absent": Gap.ABSENT, "unseen": Gap.UNSEEN}.get(case.upstream, view)
    return Observation(found, case.freshness)


STAMPED = view_of(copy_of(goal(), policy()), policy(), Side.ROBOT)


def copy(case: Case) -> Observation:
    seen: dict[str, Found] = {"seen": STAMPED, "absent": Gap.ABSENT, "unseen": Gap.UNSEEN}
    return Observation(seen.get(case.copy, replace(STAMPED, stamp=None)))


def row(case: Case) -> FinalizerRow | None:
    kept = FinalizerRow("u-1", MINE, "cloud")
    return {
        "": None,
        "kept": kept,
        "waits": replace(kept, since=5.0),
        "removed": replace(kept, removed=True, overdue=True),
        "old name": replace(kept, name="crsyncer.cloudrobotics.com/robot-former"),
    }[case.row]


def decided(case: Case) -> FinalizerAction | None:
    of = {"": None, "own": "u-9" if case.upstream == "another" else "u-1", "of another": "u-0"}[case.status]
    return decide_finalizer(
        observation(case),
        copy(case),
        kind("blocking" if case.blocking else "async", keep_orphans=True),
        row(case),
        pending=None if of is None else Pending(1, of, "d", {"n": 1}, 0.0, dead=True),
        creating=case.creating,
        related=case.related,
        refused=case.refused,
        now=DELETED + GRACE + (0.0 if case.over else -1.0),
    )


def always(case: Case) -> bool:
    return True


Then = FinalizerAction | Callable[[Case], FinalizerAction | None] | None
REMOVE = RemoveFinalizer("u-1")
TABLE: list[tuple[str, Callable[[Case], bool], Then]] = [
    ("C6.4", lambda c: c.row == "removed" and c.copy_gone, ForgetFinalizer()),
    ("C6.3: a robot was renamed", lambda c: c.row == "old name", REMOVE),
    ("C6.3: no label", lambda c: c.has_row and c.upstream == "absent", REMOVE),
    ("C6.3: decided before", lambda c: c.row == "waits" and c.upstream == "unseen", REMOVE),
    ("S7.1", lambda c: not c.seen, None),
    (
        "C6.2: it was made anew",
        lambda c: c.has_row and c.upstream == "another" and c.freshness is Freshness.CONFIRMED,
        ForgetFinalizer(),
    ),
    ("C6.3: the end of blocking", lambda c: not c.blocking and c.upstream.endswith("kept"), REMOVE),
    ("nothing to do", lambda c: not c.blocking, lambda c: ForgetFinalizer() if c.has_row else None),
    ("C6.1: terminating ones never", lambda c: c.upstream == "dying bare", None),
    ("C6.2: refused for good", lambda c: c.upstream in ("bare", "another") and c.refused, None),
    ("C6.1", lambda c: c.upstream == "bare", AddFinalizer("u-1", "7")),
    ("C6.1", lambda c: c.upstream == "another", AddFinalizer("u-9", "7")),
    ("C6.1: it stays", lambda c: c.upstream == "kept", None),
    ("C6.3", lambda c: c.copy_gone and not c.related and c.status != "own", REMOVE),
    (
        "C6.3: it waits in the outbox",
        lambda c: c.row == "waits" and c.copy == "unseen" and c.status != "own",
        REMOVE,
    ),
    ("C6.4: the end of the grace period", lambda c: c.over, lambda c: RemoveFinalizer("u-1", overdue=not c.copy_gone)),
    ("C6.4: until then", always, GraceUntil(DELETED + GRACE)),
]


def test_C6_the_finalizer_is_decided_as_the_table_says():
    used = set()
    for facts in product(
        (True, False),
        ("absent", "unseen", "bare", "kept", "dying bare", "dying kept", "another"),
        (Freshness.STORED, Freshness.CONFIRMED),
        ("", "kept", "waits", "removed", "old name"),
        ("seen", "absent", "unseen", "not ours"),
        ("", "own", "of another"),
        (False, True),
        (False, True),
        (False, True),
        (False, True),
    ):
        case = Case(*facts)
        number, (rule, _, then) = next((n, each) for n, each in enumerate(TABLE) if each[1](case))
        used.add(number)
        assert decided(case) == (then(case) if callable(then) else then), (rule, case)
    assert used == set(range(len(TABLE)))


def test_C6_4_where_no_time_of_deletion_is_known_the_copy_is_waited_for():
    case = Case(True, "dying kept", Freshness.CONFIRMED, "kept", "seen", "", False, False, False, True)
    found = observation(case)
    assert isinstance(found.found, View)
    unknown = replace(found, found=replace(found.found, deleted_at=0.0))
    found_out = decide_finalizer(
        *(unknown, copy(case), kind(), row(case)), pending=None, creating=False, related=False, refused=False, now=1e10
    )
    assert found_out is None


@pytest.mark.parametrize(
    ("mode", "finalized", "made"), [("blocking", False, False), ("blocking", True, True), ("async", False, True)]
)
def test_C6_1_no_copy_is_made_before_the_finalizer_is_upstream(mode, finalized, made):
    view = replace(view_of(goal(), kind(mode), Side.CLOUD), finalized=finalized)
    plan = decide(Observation(view), Observation(Gap.ABSENT), kind(mode), Record())
    assert plan.content == (Create() if made else Wait(Until.FINALIZED))


@pytest.mark.parametrize(
    ("finalizers", "deleted", "seen"),
    [
        (None, None, (False, 0.0)),
        ([], None, (False, 0.0)),
        ([MINE + "0"], "1970-01-01T00:16:40Z", (False, DELETED)),
        (["x/y", MINE], None, (True, 0.0)),
        ([MINE], "1970-01-01T00:16:40Z", (True, DELETED)),
        ([MINE], "soon", (True, 0.0)),
        ([MINE], 7, (True, 0.0)),
        (MINE, None, (False, 0.0)),
        ({MINE: 1}, None, (False, 0.0)),
    ],
)
def test_C6_1_an_original_shows_whether_it_has_the_finalizer_and_when_it_was_deleted(finalizers, deleted, seen):
    raw = goal(metadata={"finalizers": finalizers, "deletionTimestamp": deleted})
    for each in (kind(), policy()):
        view = view_of(raw, each, Side.CLOUD)
        assert (view.finalized, view.deleted_at) == seen
        assert not view_of(raw, each, Side.ROBOT).finalized


def test_C6_without_a_policy_nothing_blocks():
    assert (policy().blocking, policy().grace_seconds) == (False, 0.0)
    assert (kind().blocking, kind().grace_seconds, kind("async").blocking) == (True, GRACE, False)
