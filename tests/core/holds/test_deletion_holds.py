"""Which deletions of a kind are held or verified, and that neither is forgotten by a restart (S5.5, S7.1)."""

import pytest

from crsyncer.core.holds.hold_list import KIND_MISSING, MANUAL, MASS_DELETION, RESTORED, SELECTION_CHANGED
from crsyncer.core.model import Key, Tombstone
from crsyncer.core.pair.actions import Hold, HoldReason, Until, Wait
from tests.core.holds.hold_bench import A, B, Bench, C, view

VERIFY = Wait(Until.VERIFIED)
TAKEN = Hold(HoldReason.NAME_TAKEN, "taken", "rename")


def test_S5_5_a_kind_wide_hold_keeps_every_copy_and_a_missing_kind_only_those_whose_objects_are_gone():
    bench = Bench()
    bench.upstream[A] = view("u-2")
    assert (bench.holds.keeps(A), bench.holds.keeps(B)) == (None, VERIFY)
    bench.holds.hold_every(KIND_MISSING, 5.0)
    assert (bench.holds.keeps(A), bench.holds.keeps(B)) == (None, KIND_MISSING)
    bench.holds.hold_every(RESTORED, 6.0)
    bench.holds.hold_every(RESTORED, 7.0)
    assert bench.holds.keeps(A) == bench.holds.keeps(B) == RESTORED
    assert bench.holds.kind_wide == {HoldReason.KIND_MISSING: ("", 5.0), HoldReason.RESTORED: ("", 6.0)}


def test_S5_5_what_upstream_has_begun_to_delete_is_leaving_until_its_copy_is_being_deleted_too():
    bench = Bench((A, B, C))
    bench.upstream |= {A: view(terminating=True), B: view()}
    assert [*bench.holds.leaving()] == [A]
    bench.copies[A] = view("c-1", stamp=True, terminating=True)
    assert [*bench.holds.leaving()] == []


def test_S5_5_what_is_held_is_recorded_with_its_tombstone_and_known_after_a_restart():
    bench = Bench()
    bench.delete(A, B)
    assert bench.holds.hold(A, MASS_DELETION, 9.0)
    assert not bench.holds.hold(A, MASS_DELETION, 10.0)
    bench.record()
    assert bench.tombstones[A] == Tombstone("u-1", 1.0, "MassDeletion", False, "h1", 9.0)
    assert list(bench.holds.unverified()) == [B]
    again = Bench(tombstones=bench.tombstones)
    assert again.held() == [("MassDeletion", {A})]
    assert again.groups.groups()[0].since == 9.0
    assert again.holds.keeps(A) == MASS_DELETION


def test_S5_5_a_kind_wide_hold_shows_after_a_restart_the_deletions_that_it_keeps_back():
    tombstones = {A: Tombstone("u-1", 1.0), B: Tombstone("u-1", 1.0, verified=True), C: Tombstone("u-1", 1.0)}
    bench = Bench(tombstones=tombstones, kind_wide={HoldReason.RESTORED: ("h4", 5.0)})
    assert bench.held() == [("Restored", {A})]
    assert bench.groups.groups()[0].id == "h4"


def test_S5_5_a_hold_made_by_hand_is_shown_while_it_holds_nothing():
    bench = Bench()
    bench.holds.hold_every(MANUAL, 5.0)
    assert bench.held() == [("Manual", set())]
    assert bench.holds.kind_wide == {HoldReason.MANUAL: ("h1", 5.0)}
    assert Bench(kind_wide=bench.holds.kind_wide).held() == [("Manual", set())]
    bench.delete(A)
    bench.holds.release(HoldReason.MANUAL, {A}, absent={A}, now=6.0)
    assert bench.holds.keeps(A) == VERIFY  # the checks apply again


@pytest.mark.parametrize("absent", [True, False])
def test_S5_5_a_release_verifies_what_was_held_and_is_not_forgotten_where_the_object_is_known_to_be_gone(absent):
    bench = Bench((A, B, C))
    bench.delete(B, C)
    bench.holds.hold(B, MASS_DELETION, 4.0)
    bench.holds.hold_every(RESTORED, 5.0)
    for key in (A, B, C):
        bench.holds.hold(key, RESTORED, 5.0)
    bench.holds.release(HoldReason.RESTORED, {A, B, C}, absent={A} if absent else set(), now=8.0)
    bench.record()
    assert [bench.holds.keeps(key) for key in (A, B, C)] == [None, MASS_DELETION, None]
    assert bench.tombstones.get(A) == (Tombstone("u-1", 8.0, verified=True) if absent else None)
    bench.holds.gone(A)
    assert bench.holds.keeps(A) == (None if absent else VERIFY)


def test_S5_5_S8_4_a_release_covers_what_is_held_for_the_same_reason_though_its_copy_is_gone():
    bench = Bench((A, B, C))
    bench.delete(A, B, C)
    for key, hold in ((A, KIND_MISSING), (B, KIND_MISSING), (C, MASS_DELETION)):
        bench.holds.hold(key, hold, 4.0)
    bench.record()
    del bench.copies[B], bench.copies[C]
    bench.holds.release(HoldReason.KIND_MISSING, {A}, absent={A}, now=8.0)
    bench.record()
    assert bench.tombstones[A] == bench.tombstones[B] == Tombstone("u-1", 1.0, verified=True)
    assert bench.tombstones[C].held == "MassDeletion"


def test_S5_5_what_is_over_is_held_no_more_but_for_what_is_kept():
    bench = Bench()
    bench.delete(A)
    bench.holds.hold(A, MASS_DELETION, 5.0)
    bench.holds.hold(A, TAKEN, 5.0)
    bench.holds.unhold(A, kept={HoldReason.NAME_TAKEN})
    assert bench.held() == [("NameTaken", {A})]
    bench.holds.hold_kind(5.0, by_name=True)
    bench.holds.unhold(A, kept=frozenset())
    assert [reason for reason, _ in bench.held()] == ["KindMissing"]


def test_S5_5_only_what_upstream_does_not_have_and_nothing_holds_is_verified():
    bench = Bench((A, B, C))
    bench.delete(A, B)
    bench.upstream[A] = view()
    bench.holds.hold(B, MASS_DELETION, 5.0)
    bench.record()
    bench.holds.verify({A, B, C}, wanted={A, B})
    assert (bench.holds.changed, bench.holds.orphans) == ({}, set())
    bench.holds.verify({C}, wanted={C})
    assert (bench.holds.keeps(C), bench.holds.restored_keys()) == (None, frozenset())


def test_S5_5_a_kind_that_is_back_keeps_its_verified_deletions_and_those_that_were_held_for_it_before():
    bench = Bench((A, B, C))
    bench.tombstones |= {
        A: Tombstone("u-1", 1.0, verified=True),
        B: Tombstone("u-1", 1.0, "KindMissing", hold_id="h0", hold_since=2.0),
    }
    bench.copies[C] = view("c-1")  # never was a copy
    bench.holds.hold_kind(5.0, by_name=True)
    assert bench.held() == [("KindMissing", {B})]
    assert bench.holds.kind_back(6.0) == 1
    bench.record()
    assert (bench.tombstones[B].hold_id, bench.holds.keeps(A)) == ("h0", None)
    bench.holds.hold_kind(7.0, by_name=False)
    assert bench.holds.kind_back(8.0) == 1
    assert bench.held() == [("KindMissing", {B})]


def test_S5_5_a_copy_that_is_not_known_yet_is_held_as_well_when_its_kind_is_back_without_its_object():
    bench = Bench((A,))
    bench.tombstones |= {A: Tombstone("u-1", 1.0), B: Tombstone("u-2", 1.0), C: Tombstone("u-3", 1.0, verified=True)}
    bench.holds.hold_kind(5.0, by_name=True)
    assert bench.holds.kind_back(6.0) == 1
    bench.record()
    assert bench.held() == [("KindMissing", {A})]
    assert (bench.holds.held(B), bench.holds.held(C)) == (KIND_MISSING, None)


def test_S5_5_a_kind_that_was_never_shown_to_be_missing_is_back_without_a_trace():
    bench = Bench()
    bench.holds.hold_kind(5.0, by_name=False)
    bench.upstream |= {A: view(), B: view()}
    assert bench.holds.kind_back(6.0) == 0
    assert (bench.held(), bench.tombstones) == ([], {})


def edited(count: int, *, is_another: bool = False) -> tuple[Bench, list[Key]]:
    """A kind whose selection was edited; nothing is counted yet."""
    keys = [Key("default", f"g{number}") for number in range(count)]
    return Bench(tuple(keys), kind_wide={HoldReason.SELECTION_CHANGED: ("", 5.0)}, is_another=is_another), keys


def test_C1_7_every_deletion_waits_until_the_copies_that_an_edit_leaves_behind_are_counted():
    bench, keys = edited(12)
    assert bench.holds.keeps(keys[0]) == Wait(Until.COUNTED)
    assert bench.holds.selection_counted(set(keys[:6]), copies=12, now=6.0)
    assert bench.holds.keeps(keys[0]) == SELECTION_CHANGED
    assert bench.held() == [("SelectionChanged", set(keys[:6]))]
    bench.holds.release(HoldReason.SELECTION_CHANGED, keys[:6], absent=set(keys[:6]), now=7.0)
    assert (bench.holds.keeps(keys[0]), bench.holds.keeps(keys[6])) == (None, VERIFY)


@pytest.mark.parametrize(("left", "copies"), [(5, 5), (6, 20), (0, 12)])
def test_C1_7_few_copies_are_not_held(left: int, copies: int):
    bench, keys = edited(12)
    assert not bench.holds.selection_counted(set(keys[:left]), copies=copies, now=6.0)
    assert bench.holds.keeps(keys[0]) == VERIFY
    assert bench.holds.kind_wide == {}
    bench.holds.count_selection(7.0)
    assert bench.holds.keeps(keys[0]) == Wait(Until.COUNTED)
    assert bench.holds.kind_wide == {HoldReason.SELECTION_CHANGED: ("", 7.0)}


def test_C1_7_what_is_held_stays_held_however_few_are_left_and_ends_when_none_is():
    bench, keys = edited(12)
    assert bench.holds.selection_counted(set(keys[:6]), copies=12, now=6.0)
    bench.holds.count_selection(7.0)
    assert bench.holds.selection_counted(set(keys[:1]), copies=12, now=8.0)
    assert bench.holds.keeps(keys[0]) == SELECTION_CHANGED
    assert not bench.holds.selection_counted(set(), copies=12, now=9.0)
    assert bench.holds.keeps(keys[0]) == VERIFY


def test_C1_7_left_behind_is_what_is_ours_and_is_not_being_deleted_yet():
    bench, keys = edited(3)
    bench.copies[keys[1]] = view("c-1", stamp=True, terminating=True)
    bench.copies[keys[2]] = view("c-2")
    assert bench.holds.left_behind(lambda *_: True) == {keys[0], keys[2]}
    assert bench.holds.left_behind(lambda _, uid: uid == "u-1") == {keys[0]}
    assert bench.holds.left_behind(lambda *_: False) == set()


def test_C1_7_a_kind_whose_projection_was_edited_is_not_shown_as_a_missing_one():
    bench, keys = edited(3, is_another=True)
    bench.holds.hold_kind(6.0, by_name=True)
    assert bench.held() == []
    assert bench.holds.keeps(keys[0]) == Wait(Until.COUNTED)
    assert bench.holds.left_behind(lambda *_: True) == set(keys)
    assert bench.holds.kind_back(7.0) == 0
    assert not bench.holds.selection_counted(set(keys), copies=3, now=8.0)
    bench.holds.hold_kind(9.0, by_name=True)
    assert bench.held() == [("KindMissing", set(keys))]


def test_C1_7_S5_5_what_went_with_its_kind_stays_held_although_the_filter_was_edited_meanwhile():
    bench, keys = edited(3)
    bench.holds.hold_kind(6.0, by_name=True)
    assert bench.holds.kind_back(7.0) == 3
    assert bench.holds.left_behind(lambda *_: True) == set()
    assert not bench.holds.selection_counted(set(), copies=3, now=8.0)
    assert bench.held() == [("KindMissing", set(keys))]
    assert bench.holds.keeps(keys[0]) == KIND_MISSING


def test_C1_7_S5_5_what_an_edit_has_left_behind_before_its_kind_is_missing_is_held_for_that_alone():
    bench, keys = edited(12)
    assert bench.holds.selection_counted(set(keys[:6]), copies=12, now=6.0)
    bench.holds.hold_kind(7.0, by_name=True)
    assert bench.held() == [("SelectionChanged", set(keys[:6])), ("KindMissing", set(keys[6:]))]


def test_C1_7_copies_in_another_place_stay_held_although_their_pairs_agree():
    bench, keys = edited(12)
    bench.holds.elsewhere = frozenset(keys)
    assert bench.holds.selection_counted(set(keys), copies=24, now=6.0)
    bench.holds.unhold(keys[0], kept=set())
    assert bench.held() == [("SelectionChanged", set(keys))]
    bench.holds.release(HoldReason.SELECTION_CHANGED, keys, absent=set(), now=7.0)
    assert bench.holds.keeps(keys[0]) == VERIFY
