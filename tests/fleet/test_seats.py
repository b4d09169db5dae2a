"""What looks at replicas add up to (F6.4)."""

from dataclasses import replace

from crsyncer.fleet.domain.rollout.robot_states import Fault
from crsyncer.fleet.domain.seats import Seat, Seats, seat_of
from crsyncer.fleet.domain.values import Blocked, Nothing, Reason, RenderFailed, Rendering, Strategy
from tests.fleet.made import KIND, key, row, stored, wanted

ALL, OTHER = "site/all", "site/other"
DOCK, MAP = key("r1"), key("r1", name="map")
FAULT = Fault("r1", "site/map", Reason.REFUSED, "no")


def test_seats_of_a_robot_add_up():
    seats = Seats()
    assert seats.put(DOCK, Seat(ALL, "a")) == {(ALL, "r1")}
    assert seats.put(MAP, Seat(ALL, "b", due=True, terminating=True, fault=FAULT)) == {(ALL, "r1")}
    total = seats.total(ALL, "r1")
    assert (total.replicas, total.due, total.errors, total.terminating, total.message) == (2, 1, 1, 1, "no")
    assert seats.is_due(ALL, "r1")
    assert list(seats.faults(ALL)) == [FAULT]
    assert (seats.errors(), seats.counts[ALL], seats.due) == (1, 2, {MAP})
    assert seats.placement(DOCK) == ALL


def test_the_stamp_is_that_of_all_seats_in_any_order():
    one, two, three = Seats(), Seats(), Seats()
    for seats, order in ((one, (DOCK, MAP)), (two, (MAP, DOCK))):
        for each in order:
            seats.put(each, Seat(ALL, "same"))
    three.put(DOCK, Seat(ALL, "same"))
    three.put(MAP, Seat(ALL, "another"))
    assert one.total(ALL, "r1").stamp == two.total(ALL, "r1").stamp != three.total(ALL, "r1").stamp


def test_the_stamp_changes_with_that_of_a_seat_and_not_with_what_is_due():
    seats = Seats()
    seats.put(DOCK, Seat(ALL, "a", due=True))
    first = seats.total(ALL, "r1")
    seats.put(DOCK, Seat(ALL, "a"))
    second = seats.total(ALL, "r1")
    seats.put(DOCK, Seat(ALL, "b"))
    assert (second.due, second.stamp) == (0, first.stamp)
    assert seats.total(ALL, "r1").stamp != first.stamp
    seats.put(MAP, Seat(ALL, "a"))
    third = seats.total(ALL, "r1").stamp
    seats.put(MAP, None)
    assert seats.total(ALL, "r1").stamp != third


def test_the_same_seat_changes_nothing():
    seats = Seats()
    seats.put(DOCK, Seat(ALL, "a"))
    assert seats.put(DOCK, Seat(ALL, "a")) == set()


def test_F2_4_a_replica_that_is_handed_on_changes_both_placements():
    seats = Seats()
    seats.put(DOCK, Seat(ALL, "a", fault=FAULT))
    assert seats.put(DOCK, Seat(OTHER, "a")) == {(ALL, "r1"), (OTHER, "r1")}
    assert (seats.total(ALL, "r1").replicas, seats.total(OTHER, "r1").replicas) == (0, 1)
    assert seats.errors() == 0


def test_a_replica_that_is_not_wanted_has_no_seat():
    seats = Seats()
    assert seats.put(DOCK, None) == set()
    seats.put(DOCK, Seat(ALL, "a", due=True))
    seats.put(MAP, Seat(ALL, "a"))
    assert seats.put(DOCK, None) == {(ALL, "r1")}
    assert not seats.is_due(ALL, "r1")
    assert seats.placement(DOCK) == ""
    assert seats.counts[ALL] == 1


def test_F6_4_a_seat_is_due_if_its_replica_is_missing_has_another_stamp_or_goes():
    made = Rendering({"spec": {}}, {}, {}, "s1")
    asked = wanted(made)
    there = row(stored(asked))
    assert seat_of(DOCK, asked, None, Nothing(), None) == Seat("site/all", "s1", due=True)
    assert seat_of(DOCK, asked, there, Nothing(), FAULT) == Seat("site/all", "s1", fault=FAULT)
    goes = replace(there, terminating=True)
    assert seat_of(DOCK, asked, goes, Nothing(), None) == Seat("site/all", "s1", due=True, terminating=True)
    other = wanted(replace(made, stamp="s2"))
    assert seat_of(DOCK, other, there, Nothing(), None) == Seat("site/all", "s2", due=True)


def test_F3_6_the_seat_of_what_is_never_written_again_has_the_stamp_that_was_written():
    asked = wanted(Rendering({"spec": {}}, {}, {}, "s1"))
    later = wanted(Rendering({"spec": {"x": 1}}, {}, {}, "s2"), strategy=Strategy.CREATE_ONLY)
    assert seat_of(DOCK, later, row(stored(asked)), Nothing(), None) == Seat("site/all", "s1")
    assert seat_of(DOCK, later, None, Nothing(), None) == Seat("site/all", "s2", due=True)


def test_F2_3_what_blocks_a_replica_is_its_fault_and_a_secret_is_quoted_nowhere():
    asked = wanted(RenderFailed(Reason.RENDER_FAILED, "no property x"))
    blocked = Blocked(Reason.RENDER_FAILED, "no property x")
    seat = seat_of(DOCK, asked, None, blocked, None)
    fault = Fault("r1", "site/dock", Reason.RENDER_FAILED, "no property x")
    assert seat == Seat("site/all", "", due=True, fault=fault)
    secret = replace(asked, kind=replace(KIND, sensitive=True))
    assert seat_of(DOCK, secret, None, blocked, None).fault == replace(fault, message="")


def test_F8_3_a_rendering_that_fails_for_a_moment_is_no_other_content():
    made = Rendering({"spec": {"x": 1}}, {}, {}, "s" * 24)
    there = row(stored(wanted(made)))
    failed = wanted(RenderFailed(Reason.RENDER_FAILED, "no"))
    blocked = Blocked(Reason.RENDER_FAILED, "no")
    assert seat_of(DOCK, failed, there, blocked, None).stamp == "s" * 24
    assert seat_of(DOCK, failed, None, blocked, None).stamp == ""


def test_F8_2_other_content_is_noted_until_somebody_takes_note():
    seats = Seats()
    seats.put(DOCK, Seat(ALL, "a"))
    seats.put(MAP, Seat(ALL, "a"))
    assert seats.restamped == {(ALL, "r1")}
    seats.restamped.clear()
    seats.put(DOCK, Seat(ALL, "a", due=True))
    assert seats.restamped == set()
    for other in (Seat(ALL, "b"), Seat(OTHER, "b"), None):
        seats.restamped.clear()
        changed = seats.put(DOCK, other)
        assert seats.restamped == changed != set()
