"""The truth table of the decision, exhaustively: every combination of facts against the row that the design has."""

from collections.abc import Iterable, Iterator
from itertools import product

from crsyncer.core.decide import decide
from crsyncer.core.model import Side
from tests.core import truth
from tests.core.truth import Case, Memory, Row

BOTH = (False, True)


def sightings() -> Iterator[tuple[str, str, str, str]]:
    """Upstream, downstream, stamp and content, without what a copy that is not there could have."""
    for upstream in (truth.UNSEEN, truth.ABSENT, truth.TERMINATING, truth.SEEN):
        yield upstream, truth.UNSEEN, truth.OURS_, truth.AGREES
        yield upstream, truth.ABSENT, truth.OURS_, truth.AGREES
        contents = (truth.AGREES, truth.ADMITTED, truth.DRIFTED)
        for rest in product((truth.TERMINATING, truth.SEEN), truth.STAMPS, contents):
            yield upstream, *rest


def content_cases() -> Iterator[Case]:
    """Every pair of sightings under every policy, with everything that may be remembered of a write."""
    memories = [Memory(this, wrote) for this, wrote in product(BOTH, ("", "this", "older"))]
    modes = (truth.FULL, truth.SUBTREE, truth.MAP)
    for sights, memory, source, mode, orphans, drift, endpoint, verify in product(
        sightings(), memories, Side, modes, BOTH, BOTH, BOTH, BOTH
    ):
        yield Case(
            *sights,
            memory=memory,
            source=source,
            mode=mode,
            keep_orphans=orphans,
            keep_drift=drift,
            endpoint=endpoint,
            verify=verify,
        )


def seed_cases() -> Iterator[Case]:
    """Copies as they should be, with every status on either side and in every state of being owed one."""
    memories = [Memory(this, "this", seed=seed) for this, seed in product(BOTH, BOTH)]
    contents = (truth.AGREES, truth.ADMITTED, truth.DRIFTED)
    modes = (truth.FULL, truth.SUBTREE, truth.MAP)
    rows = (truth.NONE, truth.A, truth.REMOVAL, truth.ANOTHER)
    for content, theirs, own, memory, row, source, mode, drift, endpoint in product(
        contents, truth.STATUSES, truth.STATUSES, memories, rows, Side, modes, BOTH, BOTH
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
    upstreams = [(truth.UNSEEN, truth.NONE), (truth.ABSENT, truth.NONE), (truth.TERMINATING, truth.A)]
    upstreams += [(truth.SEEN, status) for status in truth.STATUSES]
    copies = [(truth.UNSEEN, truth.OURS_, truth.NONE), (truth.ABSENT, truth.OURS_, truth.NONE)]
    stamps = (truth.OURS_, truth.UNSIGNED, truth.ANOTHER_UID, truth.ANOTHER_ROBOT)
    copies += product((truth.SEEN,), stamps, truth.STATUSES)
    copies += product((truth.TERMINATING,), (truth.OURS_,), truth.STATUSES)
    sent, accepted = (truth.NONE, truth.A, truth.B), (truth.NONE, truth.A)
    memories = [Memory(True, "", *rest) for rest in product(sent, accepted, BOTH, BOTH)]
    memories.append(Memory(False, "", truth.A, truth.A, True))
    rows = [(Side.CLOUD, row, False) for row in (truth.NONE, truth.A, truth.B, truth.REMOVAL, truth.ANOTHER)]
    rows += [(Side.ROBOT, truth.NONE, False), (Side.CLOUD, truth.NONE, True), (Side.CLOUD, truth.A, True)]
    modes = (truth.FULL, truth.SUBTREE, truth.MAP)
    for (up, theirs), (down, stamp, own), memory, (source, pending, verify), mode in product(
        upstreams, copies, memories, rows, modes
    ):
        if memory.accepted == truth.NONE or verify:  # what was accepted matters only then
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
                verify=verify,
            )


def check(cases: Iterable[Case], half: str, table: tuple[Row, ...]) -> set[int]:
    """Decide every case; the rows that were used. Names the first cases that are decided otherwise."""
    used: set[int] = set()
    wrong: list[str] = []
    for case in cases:
        up, down, policy, record, pending = truth.build(case)
        plan = decide(up, down, policy, record, pending=pending, verify=case.verify)
        number, wanted = truth.expected(table, case)
        used.add(number)
        found = truth.said(getattr(plan, half), case.mode)
        if found != wanted:
            wrong.append(f"{table[number].rule} {table[number].says}: {wanted}, not {found}: {case}")
    assert wrong[:5] == [], f"{len(wrong)} cases"
    return used


def test_S3_S5_content_is_decided_as_the_table_says():
    used = check(content_cases(), "content", truth.CONTENT)
    unused = [row.says for number, row in enumerate(truth.CONTENT) if number not in used]
    assert unused == ["the copy is owed a status"]


def test_S4_4_a_seed_is_decided_as_the_table_says():
    used = check(seed_cases(), "content", truth.CONTENT)
    assert "the copy is owed a status" in {truth.CONTENT[number].says for number in used}


def test_S4_status_is_decided_as_the_table_says():
    used = check(status_cases(), "status", truth.STATUS)
    assert used == set(range(len(truth.STATUS)))
