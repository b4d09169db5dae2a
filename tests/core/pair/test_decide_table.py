"""The truth table of the decision, exhaustively: every combination of facts against the row that the design has."""

from collections.abc import Iterable, Iterator
from itertools import product

from crsyncer.core.model import Freshness, Proof, Side
from tests.core.pair import truth
from tests.core.pair import truth_cases as facts
from tests.core.pair.truth import Row
from tests.core.pair.truth_cases import Case, Memory

BOTH = (False, True)


def observations() -> Iterator[tuple[str, str, str, str]]:
    """Upstream, downstream, stamp and content, without what a copy that is not there could have."""
    for upstream in (facts.UNSEEN, facts.ABSENT, facts.TERMINATING, facts.SEEN):
        yield upstream, facts.UNSEEN, facts.OURS_, facts.AGREES
        yield upstream, facts.ABSENT, facts.OURS_, facts.AGREES
        contents = (facts.AGREES, facts.ADMITTED, facts.DRIFTED)
        for rest in product((facts.TERMINATING, facts.SEEN), facts.STAMPS, contents):
            yield upstream, *rest


def content_cases() -> Iterator[Case]:
    """Every pair of observations under every policy, with everything that may be remembered of a write."""
    memories = [Memory(this, wrote) for this, wrote in product(BOTH, ("", "this", "older"))]
    modes = (facts.FULL, facts.SUBTREE, facts.MAP)
    for observed, memory, source, mode, orphans, drift, endpoint, audit in product(
        observations(), memories, Side, modes, BOTH, BOTH, BOTH, BOTH
    ):
        yield Case(
            *observed,
            memory=memory,
            source=source,
            mode=mode,
            keep_orphans=orphans,
            keep_drift=drift,
            endpoint=endpoint,
            audit=audit,
        )


def seed_cases() -> Iterator[Case]:
    """Copies as they should be, with every status on either side and in every state of being owed one."""
    memories = [Memory(this, "this", seed=seed) for this, seed in product(BOTH, BOTH)]
    contents = (facts.AGREES, facts.ADMITTED, facts.DRIFTED)
    modes = (facts.FULL, facts.SUBTREE, facts.MAP)
    rows = (facts.NONE, facts.A, facts.REMOVAL, facts.ANOTHER)
    for content, theirs, own, memory, row, source, mode, drift, endpoint in product(
        contents, facts.STATUSES, facts.STATUSES, memories, rows, Side, modes, BOTH, BOTH
    ):
        yield Case(
            content=content,
            upstream_status=theirs,
            status=own,
            memory=memory,
            pending=row,
            source=source,
            mode=mode,
            keep_drift=drift,
            endpoint=endpoint,
        )


def status_cases() -> Iterator[Case]:
    """Every pair of statuses with everything that may be remembered of them, be on its way, and be verified."""
    upstreams = [
        (facts.UNSEEN, facts.NONE),
        (facts.ABSENT, facts.NONE),
        (facts.TERMINATING, facts.A),
    ]
    upstreams += [(facts.SEEN, status) for status in facts.STATUSES]
    copies = [
        (facts.UNSEEN, facts.OURS_, facts.NONE),
        (facts.ABSENT, facts.OURS_, facts.NONE),
    ]
    stamps = (facts.OURS_, facts.UNSIGNED, facts.ANOTHER_UID, facts.ANOTHER_ROBOT)
    copies += product((facts.SEEN,), stamps, facts.STATUSES)
    copies += product((facts.TERMINATING,), (facts.OURS_,), facts.STATUSES)
    sent, accepted = (facts.NONE, facts.A, facts.B), (facts.NONE, facts.A)
    memories = [Memory(True, "", *rest) for rest in product(sent, accepted, BOTH, BOTH)]
    memories.append(Memory(False, "", facts.A, facts.A, True))
    rows = [(Side.CLOUD, row, False) for row in (facts.NONE, facts.A, facts.B, facts.REMOVAL, facts.ANOTHER)]
    rows += [
        (Side.ROBOT, facts.NONE, False),
        (Side.CLOUD, facts.NONE, True),
        (Side.CLOUD, facts.A, True),
    ]
    modes = (facts.FULL, facts.SUBTREE, facts.MAP)
    for (up, theirs), (down, stamp, own), memory, (source, pending, audit), mode in product(
        upstreams, copies, memories, rows, modes
    ):
        if memory.accepted == facts.NONE or audit:  # what was accepted matters only then
            yield Case(
                up,
                down,
                stamp,
                upstream_status=theirs,
                status=own,
                memory=memory,
                pending=pending,
                mode=mode,
                source=source,
                audit=audit,
            )


def fresh_cases() -> Iterator[Case]:
    """Everything that a resumed watch, the disk, a tombstone or a refusal says of a pair."""
    memories = [Memory(this, wrote) for this, wrote in product(BOTH, ("", "this", "older"))]
    tombstones = (None, "", "u-0", "u-1", "u-9")
    for observed, memory, source, fresh, tombstone, orphans, refused in product(
        observations(), memories, Side, Freshness, tombstones, BOTH, BOTH
    ):
        if tombstone is None or observed[0] == facts.ABSENT:
            yield Case(
                *observed,
                memory=memory,
                source=source,
                keep_orphans=orphans,
                freshness=fresh,
                tombstone=tombstone,
                refused=refused,
                status=facts.A if observed[1] == facts.SEEN else facts.NONE,
            )


def creation_cases() -> Iterator[Case]:
    """Copies that are not there, with every row of the outbox; and copies that are owed a status."""
    rows = (facts.NONE, facts.A, facts.REMOVAL, facts.ANOTHER)
    phases = (facts.UNSEEN, facts.ABSENT, facts.TERMINATING, facts.SEEN)
    for up, down, row, proof, fresh, attempts, dead, reachable, behind, seed in product(
        phases, (facts.ABSENT, facts.SEEN), rows, Proof, Freshness, (0, 1), BOTH, BOTH, BOTH, BOTH
    ):
        yield Case(
            up,
            down,
            upstream_status=facts.A,
            memory=Memory(True, "this", seed=seed),
            pending=row,
            proof=proof,
            freshness=fresh,
            attempts=attempts,
            dead=dead,
            reachable=reachable,
            behind=behind,
        )


def check(cases: Iterable[Case], half: str, table: tuple[Row, ...]) -> set[int]:
    """Decide every case; the rows that were used. Names the first cases that are decided otherwise."""
    used: set[int] = set()
    wrong: list[str] = []
    for case in cases:
        plan = facts.plan_of(case)
        number, wanted = truth.expected(table, case)
        used.add(number)
        found = truth.said(getattr(plan, half), case.mode)
        if found != wanted:
            wrong.append(f"{table[number].rule} {table[number].says}: {wanted}, not {found}: {case}")
    assert wrong[:5] == [], f"{len(wrong)} cases"
    return used


def test_S3_S5_content_is_decided_as_the_table_says():
    cases = (content_cases, fresh_cases, creation_cases, seed_cases)
    used = set().union(*(check(some(), "content", truth.CONTENT) for some in cases))
    assert [row.says for number, row in enumerate(truth.CONTENT) if number not in used] == []


def test_S4_status_is_decided_as_the_table_says():
    cases = (status_cases, fresh_cases, creation_cases)
    used = set().union(*(check(some(), "status", truth.STATUS) for some in cases))
    assert [row.says for number, row in enumerate(truth.STATUS) if number not in used] == []
