"""The brakes, with time as an argument (S3.5, S5.5)."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crsyncer.core.actions import HoldReason
from crsyncer.core.guard import Alive, DeletionWindow, DriftBrake, Holds, alive_by, crd_alive, is_mass, kind_alive
from crsyncer.core.model import Key
from tests.core.builders import policy, some

A, B, C = (Key("default", name) for name in "abc")
GOAL = {"name": "goals", "namespaced": True}
GOALS, MAPS = "goals.lab.example.com", "maps.lab.example.com"
gaps = st.lists(st.floats(0.0, 90.0), min_size=1, max_size=60)


def fight(brake: DriftBrake, key: Key, waits: list[float]) -> list[float]:
    """When an object is reverted that somebody changes again after each of these times, in seconds."""
    now, reverts = 1000.0, []
    for pause in waits:
        now += pause
        now += brake.wait(key, now)
        brake.reverted(key, now)
        reverts.append(now)
    return reverts


@some
@given(gaps)
def test_S3_5_an_object_is_never_reverted_more_than_five_times_in_a_minute(waits):
    reverts = fight(DriftBrake(), A, waits)
    assert all(later - first >= 60.0 - 1e-6 for first, later in zip(reverts, reverts[5:], strict=False))


@some
@given(st.lists(st.floats(0.0, 10.0), min_size=8, max_size=40))
def test_S3_5_a_fight_is_slowed_down_to_once_a_minute_for_as_long_as_it_goes_on(waits):
    reverts = fight(DriftBrake(), A, waits)
    pauses = [later - first for first, later in pairwise(reverts)]
    first_slow = next((n for n, pause in enumerate(pauses) if pause >= 60.0 - 1e-6), None)
    if first_slow is None:
        assert all(later - first > 60.0 - 1e-6 for first, later in zip(reverts, reverts[5:], strict=False))
    else:
        assert first_slow >= 4
        assert all(pause >= 60.0 - 1e-6 for pause in pauses[first_slow:])


def test_S3_5_an_object_that_is_changed_now_and_then_is_always_reverted_at_once():
    assert fight(DriftBrake(), A, [15.0] * 20) == [1015.0 + 15 * n for n in range(20)]


def test_S3_5_the_first_five_reverts_are_immediate_and_the_sixth_waits():
    brake = DriftBrake()
    for second in range(5):
        assert brake.wait(A, float(second)) == 0.0
        brake.reverted(A, float(second))
    assert brake.wait(A, 60.0) == 0.0  # the first is a minute ago
    assert brake.wait(A, 5.0) == 59.0
    assert brake.wait(B, 5.0) == 0.0


def test_S3_5_a_fight_is_over_when_nothing_was_to_be_reverted_for_a_minute():
    brake = DriftBrake()
    assert fight(brake, A, [0.0] * 6)[-2:] == [1000.0, 1060.0]
    assert brake.wait(A, 1061.0) == 59.0
    assert brake.wait(A, 1060.0 + 119) == 0.0
    brake.reverted(A, 1179.0)
    assert brake.wait(A, 1180.0) == 59.0
    assert brake.wait(A, 1179.0 + 120) == 0.0
    brake.reverted(A, 1299.0)
    assert brake.wait(A, 1300.0) == 0.0


def test_S3_5_only_objects_that_were_reverted_lately_are_remembered():
    brake = DriftBrake()
    for number in range(1_000):
        assert brake.wait(Key("default", f"k{number}"), float(number)) == 0.0
        brake.reverted(Key("default", f"k{number}"), float(number))
        assert len(brake) <= 120
    assert fight(brake, A, [0.0] * 6)[-1] == 1060.0
    assert brake.wait(B, 1179.0) == 0.0
    assert len(brake) == 1  # the fight itself
    assert brake.wait(B, 1180.0) == 0.0
    assert len(brake) == 0


@some
@given(st.integers(0, 2_000), st.integers(0, 2_000))
def test_S5_5_many_is_more_than_five_and_more_than_thirty_per_cent(deletions, copies):
    assert is_mass(deletions, copies) == (deletions > 5 and 10 * deletions > 3 * copies)


@some
@given(st.lists(st.tuples(st.sets(st.sampled_from([A, B, C]), min_size=1), st.floats(0.0, 40.0)), max_size=30))
def test_S5_5_the_window_counts_each_object_once_and_forgets_after_a_minute(deletions):
    window, now = DeletionWindow(), 0.0
    last: dict[Key, float] = {}
    for batch, pause in deletions:
        now += pause
        last |= dict.fromkeys(batch, now)
        assert window.count(batch, now) == sum(at > now - 60.0 for at in last.values())


@pytest.mark.parametrize(
    ("status", "body", "alive"),
    [
        (200, {"resources": [GOAL | {"verbs": ["create", "list"]}]}, Alive.YES),
        (200, {"resources": [GOAL | {"verbs": ["list", "watch", "delete"]}]}, Alive.NO),
        (200, {"resources": [GOAL | {"verbs": None}]}, Alive.NO),
        (200, {"resources": [{"name": "goals", "verbs": ["create"]}]}, Alive.NO),
        (200, {"resources": [GOAL | {"name": "goals/status", "verbs": ["create"]}, {"name": "maps"}]}, Alive.NO),
        (200, {"resources": None}, Alive.NO),
        (404, {}, Alive.UNHEARD_OF),
        (401, {}, Alive.UNKNOWN),
        (403, {}, Alive.UNKNOWN),
        (400, {"kind": "Status", "reason": "BadRequest"}, Alive.UNKNOWN),
        (302, {}, Alive.UNKNOWN),
    ],
)
def test_S5_5_a_kind_is_alive_as_long_as_it_can_be_created(status, body, alive):
    assert kind_alive(status, body, policy()) is alive


CRD = {"name": GOALS, "uid": "u1"}
NOT_FOUND = {"kind": "Status", "reason": "NotFound"}


@pytest.mark.parametrize(
    ("status", "body", "uid", "alive"),
    [
        (200, {"metadata": CRD}, "u1", Alive.YES),
        (200, {"metadata": CRD}, "", Alive.YES),
        (200, {"metadata": CRD}, "u0", Alive.OTHER),
        (200, {"metadata": CRD | {"deletionTimestamp": "now"}}, "u1", Alive.NO),
        (200, {"metadata": CRD | {"deletionTimestamp": "now"}}, "u0", Alive.NO),
        (200, {"metadata": {}}, "u1", None),
        (200, {}, "u1", None),
        (404, NOT_FOUND, "u1", Alive.NO),
        (404, NOT_FOUND, "", None),
        (404, {}, "u1", None),
        (403, {"kind": "Status", "reason": "Forbidden"}, "u1", None),
        (502, NOT_FOUND, "u1", None),
        (404, {"metadata": CRD}, "u1", None),
        (401, {}, "u1", None),
    ],
)
def test_S5_5_a_kind_is_the_one_that_it_was_as_long_as_its_crd_has_the_same_uid(status, body, uid, alive):
    assert crd_alive(status, body, uid) is alive


@pytest.mark.parametrize(
    ("served", "crd", "alive"),
    [
        (Alive.YES, Alive.YES, Alive.YES),
        (Alive.YES, None, Alive.YES),
        (Alive.YES, Alive.OTHER, Alive.OTHER),
        (Alive.YES, Alive.NO, Alive.NO),
        (Alive.NO, Alive.YES, Alive.NO),
        (Alive.NO, Alive.OTHER, Alive.NO),
        (Alive.UNKNOWN, Alive.YES, Alive.YES),
        (Alive.UNKNOWN, None, Alive.UNKNOWN),
        (Alive.UNHEARD_OF, Alive.YES, Alive.UNHEARD_OF),
        (Alive.UNHEARD_OF, Alive.NO, Alive.NO),
    ],
)
def test_S5_5_whoever_says_that_a_kind_is_not_alive_is_believed(served, crd, alive):
    assert alive_by(served, crd) is alive


def test_S1_7_a_cluster_scoped_kind_is_alive_under_its_own_scope():
    answer = {"resources": [GOAL | {"namespaced": False, "verbs": ["create"]}]}
    assert kind_alive(200, answer, policy(namespaced=False)) is Alive.YES
    assert kind_alive(200, answer, policy()) is Alive.NO


def hold(
    holds: Holds, key: Key, *, resource=GOALS, reason=HoldReason.MASS_DELETION, now=0.0, message="m", hold_id=""
) -> bool:
    return holds.add(resource, key, reason=reason, now=now, message=message, hint="h", hold_id=hold_id)


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


def test_S5_5_the_objects_that_come_back_end_the_hold():
    holds = Holds()
    hold(holds, A)
    hold(holds, B)
    hold(holds, A, reason=HoldReason.NAME_TAKEN)
    holds.clear(GOALS, A, reason=HoldReason.MASS_DELETION)
    assert not holds.held(GOALS, A, HoldReason.MASS_DELETION)
    assert holds.held(GOALS, A, HoldReason.MASS_DELETION, HoldReason.NAME_TAKEN)
    assert holds.held(GOALS, B, HoldReason.MASS_DELETION)
    holds.clear(GOALS, A)
    holds.clear(GOALS, B)
    assert holds.groups() == []
    assert not holds.held(GOALS, A, *HoldReason)


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


def test_S5_5_a_standing_hold_is_there_before_anything_is_held_and_stays_after_it():
    holds = Holds()
    group = holds.stand(GOALS, reason=HoldReason.RESTORED, now=5.0, message="m", hint="h")
    assert holds.group(GOALS, HoldReason.RESTORED) is group
    assert (group.id, group.keys, group.standing, group.message, group.hint) == ("h1", set(), True, "m", "h")
    hold(holds, A, reason=HoldReason.RESTORED)
    holds.clear(GOALS, A)
    assert holds.groups() == [group]
    assert holds.release("h1") is group
    assert holds.group(GOALS, HoldReason.RESTORED) is None
    holds.stand(GOALS, reason=HoldReason.RESTORED, now=6.0, message="m", hint="h")
    holds.clear(GOALS)
    assert holds.groups() == []


def test_keys_read_as_people_write_them_and_sort():
    assert (str(A), str(Key("", "a"))) == ("default/a", "a")
    assert sorted([B, Key("", "z"), A]) == [Key("", "z"), A, B]


def test_S5_5_a_deletion_of_more_than_a_minute_ago_is_none_of_the_window():
    window = DeletionWindow()
    assert window.count({Key("n", "a"), Key("n", "b")}, 0.0) == 2
    assert window.count({Key("n", "b")}, 59.0) == 2
    assert window.count({Key("n", "c")}, 60.0) == 2
