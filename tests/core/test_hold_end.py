"""When a hold of a whole kind ends: the kind is back, or a restore is over (S5.5, S8.3)."""

import pytest

from crsyncer.core.hold_steps import Conclude, Idle, List, Pause
from crsyncer.core.holds import KIND_MISSING, RESTORED
from crsyncer.core.model import Side
from crsyncer.core.watch import ListReason
from crsyncer.errors import Unsure
from tests.core.hold_bench import (
    CONFIRMED,
    DYING,
    RESUMED,
    SERVED,
    STORED,
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


def test_S5_5_a_kind_whose_watch_goes_on_from_its_cursor_was_never_gone():
    bench = Bench()
    bench.listed()
    bench.freshness(Side.CLOUD, STORED, resumes=1)
    bench.machine.phase_changed(missing=True)
    bench.machine.phase_changed(missing=False)
    bench.freshness(Side.CLOUD, RESUMED, resumes=2)
    bench.tombstones.clear()
    assert [bench.next(), bench.next([SERVED, crd("u")])] == [bench.ask, Pause(1.0)]
    assert isinstance(bench.next(after=1.0), Idle)
    assert (bench.holds.kind_missing, bench.held()) == (False, [])
    assert bench.machine.facts[-1].message.endswith("serves the kind again; 0 copies stay held")


def test_S5_5_a_watch_that_breaks_within_a_second_proves_nothing():
    bench = Bench()
    bench.listed()
    bench.machine.phase_changed(missing=True)
    bench.machine.phase_changed(missing=False)
    bench.freshness(Side.CLOUD, STORED, resumes=1)
    bench.freshness(Side.CLOUD, RESUMED, resumes=2)
    assert [bench.next(), bench.next([SERVED, crd("u")])] == [bench.ask, Pause(1.0)]
    bench.freshness(Side.CLOUD, STORED, resumes=2)
    assert bench.next(after=1.0) == List(Side.CLOUD, ListReason.KIND_BACK)
    assert isinstance(bench.next(Unsure("cut")), Idle)
    assert bench.holds.kind_missing


@pytest.mark.parametrize("how", ["restarted", "listed between", "listed since"])
def test_S5_5_a_watch_that_resumes_behind_the_gap_proves_nothing(how):
    bench = Bench(kind_wide={KIND_MISSING.reason: ("h1", 5.0)} if how == "restarted" else {})
    if how != "restarted":
        bench.machine.phase_changed(missing=True)
        bench.machine.phase_changed(missing=False)
    bench.freshness(Side.CLOUD, STORED, resumes=1)
    if how == "listed since":
        bench.freshness(Side.CLOUD, CONFIRMED, resumes=1)
        bench.machine._crd_due = False
        bench.freshness(Side.CLOUD, STORED, resumes=1)
    bench.freshness(Side.CLOUD, RESUMED, resumes=1 if how == "listed between" else 2)
    assert [bench.next(), bench.next([SERVED, crd("u")])] == [bench.ask, List(Side.CLOUD, ListReason.KIND_BACK)]


def test_S5_5_copies_that_a_list_lacks_stay_held_each_for_itself():
    bench = Bench((A, B, C))
    bench.delete(A)
    assert [bench.next(), bench.next([DYING, crd("u")])] == [bench.ask, Conclude(None)]
    bench.machine.wanted.clear()
    assert bench.next() == bench.ask
    assert bench.next([SERVED, crd("u")]) == List(Side.CLOUD, ListReason.KIND_BACK)
    bench.upstream[B] = view()
    bench.freshness(Side.CLOUD, CONFIRMED)
    bench.machine._crd_due = False
    assert bench.next() == List(Side.ROBOT, ListReason.KIND_BACK)
    bench.freshness(Side.ROBOT, CONFIRMED)
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
    assert [bench.next(), bench.next([SERVED, crd("u")])] == [bench.ask, List(Side.CLOUD, ListReason.KIND_BACK)]
    bench.freshness(Side.CLOUD, CONFIRMED)
    bench.machine._crd_due = False
    assert bench.next() == List(Side.ROBOT, ListReason.KIND_BACK)
    bench.freshness(Side.ROBOT, CONFIRMED)
    if how == "lost again":
        bench.freshness(Side.CLOUD, STORED)
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
    assert bench.next([SERVED, crd("u")]) == Idle(None)
    assert bench.holds.keeps(A) is bench.holds.keeps(B) is None


def test_S5_5_of_several_namespaces_all_have_to_be_listed_or_to_go_on():
    bench = Bench()
    bench.machine.phase_changed(missing=True)
    bench.machine.phase_changed(missing=False)
    bench.freshness(Side.CLOUD, CONFIRMED | RESUMED)
    assert [bench.next(), bench.next([SERVED, crd("u")])] == [bench.ask, List(Side.CLOUD, ListReason.KIND_BACK)]


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
