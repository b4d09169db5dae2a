"""When a hold of a whole kind ends: the kind is back, or a restore is over (S5.5, S8.3)."""

import pytest

from crsyncer.core.holds.agent_list_reason import AgentListReason
from crsyncer.core.holds.hold_list import KIND_MISSING, RESTORED
from crsyncer.core.holds.hold_steps import Conclude, Idle, List
from crsyncer.core.model import Side
from crsyncer.errors import Unsure
from tests.core.holds.hold_bench import (
    CONFIRMED,
    DYING,
    RESUMED,
    SERVED,
    STORED,
    UNKNOWN,
    A,
    B,
    Bench,
    C,
    crd,
    view,
)

# The kind is back


def test_S5_5_a_kind_whose_collection_is_not_found_is_not_asked_for_in_discovery():
    bench = Bench()
    bench.machine.phase_changed(missing=True)
    assert bench.held() == [("KindMissing", {A, B})]
    assert bench.next() == Idle(1.0)
    assert bench.next(after=1.0) == Idle(2.0)
    bench.copies[C] = view("c-1", stamp=True)
    bench.freshness(Side.ROBOT, CONFIRMED)
    assert bench.held() == [("KindMissing", {A, B, C})]


@pytest.mark.parametrize("found", [CONFIRMED, RESUMED])
def test_S5_5a_only_a_list_made_after_the_kind_is_back_ends_the_hold(found):
    bench = Bench()
    bench.listed()
    bench.machine.phase_changed(missing=True)
    bench.machine.phase_changed(missing=False)
    bench.freshness(Side.CLOUD, STORED)
    bench.freshness(Side.CLOUD, found)
    bench.machine._crd_due = False
    assert [bench.next(), bench.next([SERVED, crd("u")])] == [bench.ask, List(Side.CLOUD, AgentListReason.KIND_BACK)]
    assert isinstance(bench.next(Unsure("cut")), Idle)
    assert bench.holds.kind_missing


def test_S5_5a_discovery_that_could_be_read_and_is_forbidden_now_says_nothing():
    bench = Bench()
    bench.machine.discovery_shown(SERVED[1])
    bench.machine.phase_changed(missing=True)
    bench.machine.phase_changed(missing=False)
    assert bench.next() == bench.ask
    assert bench.next([UNKNOWN, crd("u")]) == List(Side.ROBOT, AgentListReason.KIND_BACK)
    bench = Bench(known=("", ""))
    bench.machine.discovery_shown(SERVED[1])
    bench.machine.phase_changed(missing=True)
    bench.machine.phase_changed(missing=False)
    assert bench.next() == bench.ask
    assert bench.next([UNKNOWN, UNKNOWN]) == Idle(1.0)
    assert bench.holds.kind_missing


def test_S5_5_copies_that_a_list_lacks_stay_held_each_for_itself():
    bench = Bench((A, B, C))
    bench.delete(A)
    assert [bench.next(), bench.next([DYING, crd("u")])] == [bench.ask, Conclude(None)]
    bench.machine.wanted.clear()
    assert bench.next() == bench.ask
    assert bench.next([SERVED, crd("u")]) == List(Side.ROBOT, AgentListReason.KIND_BACK)
    bench.freshness(Side.ROBOT, CONFIRMED)
    assert bench.next() == List(Side.CLOUD, AgentListReason.KIND_BACK)
    bench.upstream[B] = view()
    bench.freshness(Side.CLOUD, CONFIRMED)
    bench.machine._crd_due = False
    assert isinstance(bench.next(), Idle)
    assert bench.held() == [("KindMissing", {A, C})]
    assert (bench.tombstones[C].held, bench.tombstones[C].hold_id) == ("KindMissing", "h1")
    assert not bench.holds.kind_missing
    assert bench.holds.keeps(A) == KIND_MISSING


@pytest.mark.parametrize("how", ["lost again", "missing again"])
def test_S5_5_the_hold_goes_on_when_a_side_is_lost_again_before_both_are_listed(how):
    bench = Bench()
    bench.machine.phase_changed(missing=True)
    bench.machine.phase_changed(missing=False)
    assert [bench.next(), bench.next([SERVED, crd("u")])] == [bench.ask, List(Side.ROBOT, AgentListReason.KIND_BACK)]
    bench.freshness(Side.ROBOT, CONFIRMED)
    assert bench.next() == List(Side.CLOUD, AgentListReason.KIND_BACK)
    bench.freshness(Side.CLOUD, CONFIRMED)
    bench.machine._crd_due = False
    if how == "lost again":
        bench.freshness(Side.ROBOT, STORED)
    else:
        bench.machine.phase_changed(missing=True)
    assert bench.next() == Idle(1.0)
    assert bench.holds.kind_missing


def test_S5_5_a_hold_that_a_human_releases_while_the_kind_is_asked_for_is_over():
    bench = Bench()
    bench.listed()
    bench.machine.phase_changed(missing=True)
    bench.machine.phase_changed(missing=False)
    assert bench.next() == bench.ask
    bench.holds.release(KIND_MISSING.reason, {A, B}, absent={A, B}, now=8.0)
    assert bench.next([SERVED, crd("u")]) == List(Side.CLOUD, AgentListReason.KIND_BACK)
    assert bench.next() == Idle(None)
    assert bench.holds.keeps(A) is bench.holds.keeps(B) is None


def test_S5_5_of_several_namespaces_all_have_to_be_listed():
    bench = Bench()
    bench.listed()
    bench.machine.phase_changed(missing=True)
    bench.machine.phase_changed(missing=False)
    assert [bench.next(), bench.next([SERVED, crd("u")])] == [bench.ask, List(Side.CLOUD, AgentListReason.KIND_BACK)]
    bench.freshness(Side.CLOUD, CONFIRMED | RESUMED)
    assert isinstance(bench.next(), Idle)
    assert bench.holds.kind_missing


# The end of a restore


def test_S5_5c_a_restore_is_over_when_each_side_was_seen_and_nothing_is_held_or_being_created():
    bench = Bench()
    over = bench.machine.restore_is_over
    assert not over(settled=None, creating=False)  # there was none
    bench.holds.hold_every(RESTORED, 5.0)
    assert not over(settled=None, creating=False)  # nothing was seen yet
    bench.listed()
    bench.holds.hold(A, RESTORED, 5.0)
    assert not over(settled=None, creating=False)
    assert not over(settled=B, creating=False)
    assert not over(settled=A, creating=True)
    assert over(settled=A, creating=False)
    bench.holds.unhold(A, kept=frozenset())
    assert not over(settled=A, creating=False)  # nothing that was held
    assert over(settled=None, creating=False)
    assert not over(settled=None, creating=True)
    assert over(settled=B, creating=False)  # it was created, and agrees
