"""Promises of the decision that hold whatever is seen, remembered and wanted."""

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from crsyncer.core.content.object_content import digest, map_generation
from crsyncer.core.holds.hold_list import RESTORED
from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.model import Found, Freshness, Gap, Observation, Pending, Proof, Record, Side, View
from crsyncer.core.pair.actions import (
    NOTHING,
    Agreed,
    CountAsSent,
    Create,
    Delete,
    Hold,
    Plan,
    Seed,
    SendStatus,
    Until,
    Update,
    Wait,
    Why,
)
from crsyncer.core.pair.decide import decide
from crsyncer.core.pair.project import status_digest, status_value, view_of
from tests.core.builders import copy_of, goal, many, policies, policy, some, statuses, stored, upstream_goals
from tests.core.pair import truth
from tests.core.pair import truth_cases as facts
from tests.core.pair.truth_cases import Case, Memory

phases = st.sampled_from([facts.UNSEEN, facts.ABSENT, facts.TERMINATING, facts.SEEN])
names = st.sampled_from(facts.STATUSES)
sent = st.sampled_from([facts.NONE, facts.A, facts.B])
memories = st.builds(
    Memory, st.booleans(), st.sampled_from(["", "this", "older"]), sent, sent, st.booleans(), st.booleans()
)
cases = st.builds(
    Case,
    phases,
    phases,
    st.sampled_from(facts.STAMPS),
    st.sampled_from([facts.AGREES, facts.ADMITTED, facts.DRIFTED]),
    names,
    names,
    memories,
    st.sampled_from([facts.NONE, facts.A, facts.B, facts.REMOVAL, facts.ANOTHER]),
    st.sampled_from(Side),
    st.sampled_from([facts.FULL, facts.SUBTREE, facts.MAP]),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.sampled_from(Freshness),
    st.sampled_from([None, "", "u-0", "u-1", "u-9"]),
    st.sampled_from(Proof),
    st.sampled_from([0, 1]),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.booleans(),
).map(lambda case: case if case.upstream == facts.ABSENT else case._replace(tombstone=None))


def plan_of(case: Case) -> Plan:
    return facts.plan_of(case)


def decided(up: Found, down: Found, kind: KindPolicy, record: Record, **facts: Any) -> Plan:
    """What is decided on confirmed observations."""
    fresh = Freshness.STORED if up is Gap.UNSEEN else Freshness.CONFIRMED
    return decide(Observation(up, fresh), Observation(down), kind, record, **facts)


@many
@given(cases)
def test_S3_S5_both_halves_are_as_the_tables_say_for_any_combination(case):
    plan = plan_of(case)
    assert truth.said(plan.content, case.mode) == truth.expected(truth.CONTENT, case)[1]
    assert truth.said(plan.status, case.mode) == truth.expected(truth.STATUS, case)[1]


@many
@given(cases)
def test_S5_nothing_is_created_changed_or_deleted_while_upstream_is_unseen(case):
    assert isinstance(plan_of(case._replace(upstream=facts.UNSEEN)).content, Wait | None)


@many
@given(cases, st.sampled_from([Freshness.STORED, Freshness.RESUMED]))
def test_S5_4_nothing_is_deleted_for_another_uid_that_is_not_confirmed(case, freshness):
    case = case._replace(stamp=facts.ANOTHER_UID, freshness=freshness)
    if case.tombstone not in ("", "u-0"):
        assert not isinstance(plan_of(case).content, Delete | Update | Seed)


@many
@given(cases)
def test_S5_1_every_write_to_a_copy_carries_the_uid_that_was_seen(case):
    down = facts.build(case)[1].found
    match plan_of(case).content:
        case Delete(uid=uid):
            assert isinstance(down, View)
            assert (uid, False) == (down.uid, down.terminating)
        case Update(uid=uid, resource_version=version) | Seed(uid=uid, resource_version=version):
            assert isinstance(down, View)
            assert (uid, version) == (down.uid, down.resource_version)
        case Create():
            assert down is Gap.ABSENT


@many
@given(cases)
def test_S5_4_a_status_is_for_the_very_object_that_the_copy_is_stamped_with(case):
    up, down = (each.found for each in facts.build(case)[:2])
    status = plan_of(case).status
    if isinstance(status, SendStatus | Agreed):
        assert isinstance(down, View)
        assert down.stamp is not None
        assert status.upstream_uid == down.stamp.upstream_uid
        if case.freshness is Freshness.CONFIRMED and up is not Gap.UNSEEN:
            assert isinstance(up, View)
            assert up.uid == status.upstream_uid


@many
@given(
    cases,
    st.sampled_from([facts.UNSIGNED, facts.ANOTHER_ROBOT]),
    st.sampled_from([facts.SEEN, facts.TERMINATING]),
)
def test_S5_3_in_the_cloud_nothing_is_touched_that_this_robot_has_not_signed(case, stamp, downstream):
    plan = plan_of(case._replace(source=Side.ROBOT, stamp=stamp, downstream=downstream))
    assert isinstance(plan.content, Hold | None)
    assert plan.status is None


@many
@given(cases, st.booleans())
def test_S4_3_upstreams_status_is_never_removed_for_a_copy_that_never_had_one(case, audit):
    case = case._replace(memory=case.memory._replace(had=False), pending=facts.NONE, audit=audit)
    status = plan_of(case).status
    assert not (isinstance(status, SendStatus | Agreed) and status.digest == "")


@many
@given(cases)
def test_S4_1_what_is_sent_is_what_the_copy_has_now(case):
    down = facts.build(case)[1].found
    status = plan_of(case).status
    if isinstance(status, SendStatus | Agreed):
        assert isinstance(down, View)
        assert (status.digest, False) == (down.status, down.odd_status)


@many
@given(cases)
def test_content_and_status_are_decided_apart(case):
    content = plan_of(case).content
    if not isinstance(content, Seed | Wait):  # what waits for upstream may be the status that a new copy is owed (S4.4)
        assert content == plan_of(case._replace(pending=facts.NONE, audit=False)).content
    drifted = case._replace(content=facts.DRIFTED, keep_drift=False, keep_orphans=False)
    assert plan_of(case).status == plan_of(drifted).status


@some
@given(upstream_goals(), policies)
def test_S3_2_a_created_copy_has_the_content_already(upstream, kind):
    up = view_of(upstream, kind, kind.upstream)
    assert decided(up, Gap.ABSENT, kind, Record()).content == Create()
    down = view_of(copy_of(upstream, kind), kind, kind.downstream)
    assert decided(up, down, kind, Record()).content is None


@some
@given(upstream_goals(), statuses, policies, st.booleans())
def test_S3_2_a_pair_that_agrees_is_left_alone(upstream, status, kind, audit):
    up = view_of(upstream, kind, kind.upstream)
    copy = copy_of(upstream, kind)
    copy.pop("status", None)
    down = view_of(copy if status is None else copy | {"status": status}, kind, kind.downstream)
    generations = ((1, up.generation),)
    value = status_value({"status": status}, kind)
    if kind.map_generation and kind.subtree is None:
        value = map_generation(value, generations)
    wire = "" if value is None else digest(value)
    record = Record(
        upstream_uid=up.uid,
        applied=up.content,
        admitted=down.content,
        acknowledged=down.status,
        upstream_status=wire,
        had_status=bool(down.status),
        generations=generations,
    )
    agreed = replace(up, status=wire)
    assert decided(agreed, down, kind, record, audit=audit) == NOTHING
    assert decided(Gap.UNSEEN, down, kind, record, audit=audit) == NOTHING


def pair(kind, *, status=None, upstream_status=None):
    """Both views of an object and its copy."""
    upstream = goal(status=upstream_status)
    copy = copy_of(upstream, kind)
    copy = copy if status is None else copy | {"status": status}
    return view_of(upstream, kind, kind.upstream), view_of(copy, kind, kind.downstream)


def row(kind, status, uid="u-1") -> Pending:
    return Pending(1, uid, status_digest({"status": status}, kind), status_value({"status": status}, kind), since=0.0)


RUNNING, DONE = {"phase": "RUNNING"}, {"phase": "DONE"}


def test_S4_1_a_status_that_returns_while_another_is_on_its_way_follows_it():
    kind = policy()
    up, down = pair(kind, status=RUNNING, upstream_status=RUNNING)
    record = Record(upstream_uid="u-1", acknowledged=down.status, upstream_status=down.status, had_status=True)
    assert decided(up, down, kind, record) == NOTHING
    sending = decided(up, down, kind, record, pending=row(kind, DONE))
    assert sending.status == SendStatus("u-1", down.status)
    assert decided(up, down, kind, record, pending=row(kind, RUNNING)) == NOTHING


def test_S4_1_a_status_that_goes_while_it_is_on_its_way_is_removed_after_it():
    kind = policy()
    up, down = pair(kind)
    record = Record(upstream_uid="u-1", had_status=True)
    assert decided(up, down, kind, record, pending=row(kind, DONE)).status == SendStatus("u-1", "")
    assert decided(up, down, kind, record).status == Agreed("u-1", "")


def test_S4_1_what_waits_for_another_object_says_nothing_about_this_one():
    kind = policy()
    up, down = pair(kind, status=DONE, upstream_status=DONE)
    assert decided(up, down, kind, Record(), pending=row(kind, DONE, uid="u-0")).status == Agreed("u-1", down.status)


def test_S3_5_a_stamp_that_is_taken_off_again_and_again_is_drift_so_that_the_brake_sees_it():
    kind = policy()
    upstream = goal()
    up = view_of(upstream, kind, Side.CLOUD)
    bare = view_of(stored(goal()), kind, Side.ROBOT)
    assert decided(up, bare, kind, Record()).content == Update("c-1", "10", Why.ADOPT)
    written = Record(upstream_uid="u-1", applied=up.content, admitted=bare.content)
    assert decided(up, bare, kind, written).content == Update("c-1", "10", Why.DRIFT)


def test_S4_1_the_status_of_a_copy_that_was_a_former_objects_is_never_of_the_one_that_adopts_it():
    kind, former = policy(), Record(upstream_uid="u-0", acknowledged="x")
    up = view_of(goal(status={"phase": "NEW"}), kind, Side.CLOUD)
    bare = view_of(stored(goal(status=DONE)), kind, Side.ROBOT)
    adopt = Update("c-1", "10", Why.ADOPT)
    assert decided(up, bare, kind, former) == Plan(adopt, CountAsSent("u-1", bare.status, up.status))
    assert decided(up, bare, kind, replace(former, upstream_uid="u-1")) == Plan(adopt)
    assert decided(up, view_of(stored(goal()), kind, Side.ROBOT), kind, former) == Plan(adopt)


def test_S5_5_whatever_keeps_a_copy_takes_the_place_of_its_deletion():
    kind = policy()
    up = view_of(goal(), kind, kind.upstream)
    copy = view_of(copy_of(goal(), kind), kind, kind.downstream)
    for gone in (Gap.ABSENT, replace(up, terminating=True), replace(up, uid="u-2")):
        assert isinstance(decided(gone, copy, kind, Record()).content, Delete)
        after = Wait(Until.RELATED_GONE)
        assert decided(gone, copy, kind, Record(), after=after).content == after
        for kept in (RESTORED, Wait(Until.VERIFIED)):
            assert decided(gone, copy, kind, Record(), kept=kept, after=after).content == kept
            assert decided(gone, copy, kind, Record(), kept=kept).content == kept
            assert decided(gone, replace(copy, terminating=True), kind, Record(), kept=kept).content is None
    assert decided(up, copy, kind, Record(), kept=RESTORED).content is None


def test_S3_5_a_contested_copy_is_not_reverted_yet_and_follows_upstream_at_once():
    kind = policy()
    up = view_of(goal(), kind, kind.upstream)
    copy = replace(view_of(copy_of(goal(), kind), kind, kind.downstream), content="changed")
    record = Record(upstream_uid=up.uid, applied=up.content)
    assert isinstance(decided(up, copy, kind, record).content, Update)
    assert decided(up, copy, kind, record, contested=True).content == Wait(Until.REVERTIBLE)
    changed = replace(up, content="new")
    assert isinstance(decided(changed, copy, kind, record, contested=True).content, Update)
