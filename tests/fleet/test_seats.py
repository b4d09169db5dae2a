"""What looks at replicas add up to (F6.4)."""

from crsyncer.fleet.domain.rollout.robot_states import Fault
from crsyncer.fleet.domain.seats import Seat, Seats
from crsyncer.fleet.domain.values import Reason
from tests.fleet.made import key

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
