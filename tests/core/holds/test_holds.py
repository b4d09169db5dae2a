"""What is held for a human, and what counts as a mass deletion (S5.5)."""

from hypothesis import given
from hypothesis import strategies as st

from crsyncer.core.holds.deletion_rate import DeletionRate, is_mass
from crsyncer.core.holds.hold_list import Holds
from crsyncer.core.model import Key
from crsyncer.core.pair.actions import Hold, HoldReason
from tests.core.builders import some

A, B, C = (Key("default", name) for name in "abc")
GOALS, MAPS = "goals.lab.example.com", "maps.lab.example.com"


@some
@given(st.integers(0, 2_000), st.integers(0, 2_000))
def test_S5_5_many_is_more_than_five_and_more_than_thirty_per_cent(deletions, copies):
    assert is_mass(deletions, copies) == (deletions > 5 and 10 * deletions > 3 * copies)


@some
@given(st.lists(st.tuples(st.sets(st.sampled_from([A, B, C]), min_size=1), st.floats(0.0, 40.0)), max_size=30))
def test_S5_5_the_window_counts_each_object_once_and_forgets_after_a_minute(deletions):
    window, now = DeletionRate(), 0.0
    last: dict[Key, float] = {}
    for batch, pause in deletions:
        now += pause
        last |= dict.fromkeys(batch, now)
        assert window.count(batch, now) == sum(at > now - 60.0 for at in last.values())


def hold(
    holds: Holds, key: Key, *, resource=GOALS, reason=HoldReason.MASS_DELETION, now=0.0, message="m", hold_id=""
) -> bool:
    return holds.add(resource, key, Hold(reason, message, "h"), now=now, hold_id=hold_id)[1]


def test_S5_5_what_is_held_is_one_group_for_a_kind_and_a_reason():
    holds = Holds()
    assert [hold(holds, A, now=1.0), hold(holds, A, now=2.0), hold(holds, B, now=3.0, message="new")] == [
        True,
        False,
        True,
    ]
    hold(holds, A, reason=HoldReason.RESTORED)
    hold(holds, A, resource=MAPS)
    first, second, third = holds.groups()
    assert (first.keys, first.since, first.message, first.hint) == ({A, B}, 1.0, "new", "h")
    assert [group.id for group in (first, second, third)] == ["h1", "h2", "h3"]
    assert holds.groups(MAPS) == [third]


def test_S1_8_what_is_over_for_a_kind_is_over_for_that_kind_only():
    holds = Holds()
    hold(holds, A)
    hold(holds, B, reason=HoldReason.KIND_MISSING)
    hold(holds, A, resource=MAPS)
    holds.clear(GOALS, reason=HoldReason.MASS_DELETION)
    assert [(g.resource, g.reason) for g in holds.groups()] == [
        (GOALS, HoldReason.KIND_MISSING),
        (MAPS, HoldReason.MASS_DELETION),
    ]
    holds.clear(GOALS)
    assert [group.resource for group in holds.groups()] == [MAPS]


def test_S5_3_only_what_is_known_of_a_kind_stays_held():
    holds = Holds()
    hold(holds, A)
    hold(holds, B)
    hold(holds, A, resource=MAPS)
    holds.keep_only(GOALS, {B})
    assert [(group.resource, group.keys) for group in holds.groups()] == [(GOALS, {B}), (MAPS, {A})]
    holds.keep_only(GOALS, set())
    assert [group.resource for group in holds.groups()] == [MAPS]


def test_S5_5_a_human_releases_a_group_by_its_id_and_ids_are_not_used_again():
    holds = Holds()
    hold(holds, A)
    hold(holds, B, resource=MAPS)
    released = holds.release("h2")
    assert released is not None
    assert (released.resource, released.keys) == (MAPS, {B})
    assert holds.release("h2") is None
    assert [group.id for group in holds.groups()] == ["h1"]
    hold(holds, B, resource=MAPS)
    assert [group.id for group in holds.groups()] == ["h1", "h3"]


def test_S5_5_a_hold_keeps_its_name_over_a_restart():
    holds = Holds(issued=7)
    hold(holds, A, hold_id="h3")
    hold(holds, B)
    hold(holds, A, resource=MAPS)
    assert [(group.id, group.keys) for group in holds.groups()] == [("h3", {A, B}), ("h8", {A})]
    assert holds.issued == 8


def test_S5_5_a_kind_wide_hold_is_there_before_anything_is_held_and_stays_after_it():
    holds = Holds()
    group = holds.add_kind(GOALS, Hold(HoldReason.RESTORED, "m", "h"), now=5.0)
    assert holds.group(GOALS, HoldReason.RESTORED) is group
    assert (group.id, group.keys, group.kind_wide, group.message, group.hint) == ("h1", set(), True, "m", "h")
    hold(holds, A, reason=HoldReason.RESTORED)
    holds.clear(GOALS, A)
    assert holds.groups() == [group]
    assert holds.release("h1") is group
    assert holds.group(GOALS, HoldReason.RESTORED) is None
    holds.add_kind(GOALS, Hold(HoldReason.RESTORED, "m", "h"), now=6.0)
    holds.clear(GOALS)
    assert holds.groups() == []


def test_keys_read_as_people_write_them_and_sort():
    assert (str(A), str(Key("", "a"))) == ("default/a", "a")
    assert sorted([B, Key("", "z"), A]) == [Key("", "z"), A, B]


def test_S5_5_a_deletion_of_more_than_a_minute_ago_is_none_of_the_window():
    window = DeletionRate()
    assert window.count({Key("n", "a"), Key("n", "b")}, 0.0) == 2
    assert window.count({Key("n", "b")}, 59.0) == 2
    assert window.count({Key("n", "c")}, 60.0) == 2
