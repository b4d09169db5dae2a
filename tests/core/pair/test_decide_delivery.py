"""What becomes of a status that waits, exhaustively: every combination of facts against the row that the design has."""

from collections.abc import Callable
from itertools import product
from typing import NamedTuple

from crsyncer.core.model import ANY_STATUS, Freshness, Gap, Observation, Pending, Proof, Record, View
from crsyncer.core.pair.decide_delivery import Delivery, decide_delivery
from tests.core.builders import policy

VALUE, ACCEPTED, UNANSWERED, FOLLOWED, ANOTHER = "value", "accepted", "unanswered", "followed", "another"
EARLIER = "unanswered before"


class Case(NamedTuple):
    """One row of the product of everything that a delivery depends on."""

    upstream: str
    """"u-1" is the object that the row is about, "u-2" another of its name; or "absent", "unseen"."""
    freshness: Freshness
    tombstone: str | None
    status: str
    """The digest of upstream's status."""
    odd: bool
    subtree: bool
    copy: Gap | None
    proof: Proof
    merged: int
    attempts: int
    known: bool
    """It is remembered which status upstream acknowledged last."""
    restored: bool
    """Upstream was restored while the row waited."""
    reselected: bool
    """The selection was edited while the row waited."""

    @property
    def proven(self) -> bool:
        """Whatever else has the name, the row's own object is gone."""
        return self.freshness is Freshness.CONFIRMED or self.tombstone in ("", "u-1")

    @property
    def unseen(self) -> bool:
        """What became of the row's object is not known."""
        return self.upstream == "unseen" or (self.upstream in ("absent", "u-2") and not self.proven)


ROWS: tuple[tuple[str, Callable[[Case], bool], Delivery], ...] = (
    ("S5.4 a list can tell", lambda c: c.unseen and c.freshness is Freshness.RESUMED, Delivery.LIST),
    ("S5.4 its object is not known", lambda c: c.unseen, Delivery.KEEP),
    ("S4.1 its copy is not known", lambda c: c.copy is Gap.UNSEEN, Delivery.KEEP),
    ("S4.1 the store may be an older one", lambda c: c.proof is Proof.UNCHECKED, Delivery.KEEP),
    (
        "C1.7 its object may be out of sight",
        lambda c: c.upstream == "absent" and c.reselected and c.proof is Proof.SHOWN,
        Delivery.SEND,
    ),
    ("S5.4 its object is gone", lambda c: c.upstream != "u-1", Delivery.NO_OBJECT),
    ("S4.9 upstream has it", lambda c: c.status == VALUE and not (c.merged and c.attempts), Delivery.ACKNOWLEDGE),
    (
        "S4.1 upstream has had another since",
        lambda c: (
            c.proof is Proof.MISSING
            and c.known
            and not c.restored
            and c.status not in ("", ACCEPTED, UNANSWERED, FOLLOWED, EARLIER)
        ),
        Delivery.OVERTAKEN,
    ),
    ("S4.5 no place for a subtree", lambda c: c.subtree and c.odd, Delivery.NO_PLACE),
    ("S4.1 it is sent", lambda _: True, Delivery.SEND),
)


def cases() -> list[Case]:
    places: list[tuple[str, Freshness, str | None]] = [
        (up, fresh, None) for up in ("u-1", "u-2", "unseen") for fresh in Freshness
    ]
    places += [("absent", fresh, uid) for fresh in Freshness for uid in ("", "u-1", "u-2")]
    statuses = [
        ("", False),
        (VALUE, False),
        (ACCEPTED, False),
        (UNANSWERED, False),
        (FOLLOWED, False),
        (EARLIER, False),
        (ANOTHER, False),
        ("", True),
    ]
    both = (False, True)
    return [
        Case(*place, *status, *rest)
        for place, status, *rest in product(
            places, statuses, both, (None, *Gap), Proof, (0, 1), (0, 1), both, both, both
        )
    ]


KINDS = {subtree: policy(subtree="robot" if subtree else None) for subtree in (False, True)}


def decided(case: Case) -> Delivery:
    found = (
        View(
            case.upstream,
            "1",
            1,
            terminating=False,
            content="",
            status=case.status,
            has_status=True,
            odd_status=case.odd,
        )
        if case.upstream.startswith("u-")
        else Gap(case.upstream)
    )
    copy = case.copy or View("c-1", "1", 1, terminating=False, content="", status=VALUE, has_status=True)
    return decide_delivery(
        Pending(
            1,
            "u-1",
            VALUE,
            None,
            since=0.0,
            merged=case.merged,
            attempts=case.attempts,
            unanswered=UNANSWERED,
            follows=ANY_STATUS if case.restored else FOLLOWED,
            reselected=case.reselected,
        ),
        Observation(found, case.freshness, case.tombstone),
        Observation(copy),
        KINDS[case.subtree],
        Record(upstream_uid="u-1" if case.known else "u-9", upstream_status=ACCEPTED, unanswered=(EARLIER,)),
        value=VALUE,
        proof=case.proof,
    )


def test_S4_what_becomes_of_a_waiting_status_is_decided_as_the_table_says():
    used: set[str] = set()
    wrong: list[str] = []
    for case in cases():
        says, _, wanted = next(row for row in ROWS if row[1](case))
        used.add(says)
        if (found := decided(case)) is not wanted:
            wrong.append(f"{says}: {wanted.name}, not {found.name}: {case}")
    assert wrong[:5] == [], f"{len(wrong)} cases"
    assert used == {says for says, _, _ in ROWS}
