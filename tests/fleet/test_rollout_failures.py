"""Robots that fail, are offline, or report nothing (F8.3 to F8.5)."""

import pytest

from crsyncer.core.reports.text import rfc3339
from crsyncer.fleet.domain.rollout.decisions import Decided
from crsyncer.fleet.domain.rollout.robot_states import Gate
from crsyncer.fleet.domain.values import RobotState
from tests.fleet.rolled import (
    APPLIED,
    NEW,
    OFFLINE,
    ONLINE,
    WRITTEN,
    Desk,
    T,
    begun,
    in_order,
    rollout,
    said,
)


def test_F8_3_a_robot_fails_after_progressDeadlineSeconds_and_is_ready_later():
    desk = Desk(rollout(minReadySeconds=0))
    begun(desk, "r1")
    desk.tell("r2", **NEW)
    assert desk.progress.next_step() == T + 1800
    desk.step(1799)
    assert desk.states == {"r1": "InFlight", "r2": "Waiting"}
    assert desk.step(1) == []
    failed = Decided(RobotState.FAILED, rfc3339(T + 1800) or "", "s1", "the robot has not applied all that was written")
    assert desk.said("r1") == failed
    assert desk.progress.gate() is Gate.TOO_MANY_FAILURES
    desk.tell("r1", **APPLIED)
    assert desk.step(5) == ["r2"]
    assert desk.states == {"r1": "Ready", "r2": "InFlight"}


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        (NEW, "1 replica could not be written"),
        ({"errors": 1, "message": "no such property"}, "no such property"),
        (WRITTEN, "the robot has not applied all that was written"),
        ({**WRITTEN, "acked": True}, "readyWhen does not hold"),
    ],
)
def test_F8_3_what_a_failed_robot_lacks_is_said(facts, message):
    desk = Desk(rollout())
    begun(desk, "r1")
    desk.tell("r1", **facts)
    desk.step(1800)
    assert desk.states == {"r1": "Failed"}
    assert desk.said("r1").message == message


def test_F8_3_new_content_ends_a_failure():
    desk = Desk(rollout())
    begun(desk, "r1")
    desk.step(1800)
    desk.tell("r1", **NEW, stamp="s2")
    assert desk.step() == ["r1"]


def test_F8_3_no_more_robots_than_maxFailures_and_those_in_flight_get_bad_content():
    desk = Desk(rollout(maxConcurrency=2, maxFailures=1))
    names = [f"r{number}" for number in range(9)]
    desk.tell(*names, **NEW)
    had = set()
    for _ in range(9):
        found = desk.step(1800)
        had.update(found)
        if found:
            desk.tell(*found, **WRITTEN)
    assert len(had) == 2
    assert desk.progress.gate() is Gate.TOO_MANY_FAILURES
    desk.edit(rollout(maxConcurrency=2, maxFailures=2))
    assert len(desk.step()) == 2


def test_F8_3_a_robot_that_failed_before_it_was_written_is_written_and_becomes_ready():
    desk = Desk(rollout(minReadySeconds=0))
    desk.tell("r1", **NEW)
    desk.step(store=True)
    desk.step(1800)
    assert desk.states == {"r1": "Failed"}
    assert desk.progress.may_write("r1")
    desk.lead_anew()
    desk.step(1)
    assert desk.states == {"r1": "Failed"}
    assert desk.progress.may_write("r1")
    desk.tell("r1", **APPLIED)
    desk.step()
    assert desk.states == {"r1": "Ready"}


def fallen(desk: Desk) -> None:
    """A robot that was Ready fails later on."""
    desk.tell("r1", **APPLIED)
    desk.step()
    desk.step(60)
    assert desk.states == {"r1": "Ready"}
    desk.tell("r1", ready=False)
    desk.step()
    assert desk.said("r1") == said(RobotState.IN_FLIGHT, at=T + 60)
    desk.step(1800)
    assert desk.said("r1").state == "Failed"


def test_F8_3_a_robot_that_was_ready_can_fail_and_its_replica_is_made_again():
    desk = Desk(rollout())
    fallen(desk)
    desk.tell("r1", due=1, acked=False)
    desk.step()
    assert desk.states == {"r1": "Failed"}
    assert desk.progress.may_write("r1")


@pytest.mark.parametrize(("due", "state"), [(0, "Failed"), (1, "Waiting")])
def test_F8_3_a_new_leader_knows_such_a_failure_while_nothing_is_due(due, state):
    desk = Desk(rollout(paused=True))
    fallen(desk)
    desk.tell("r1", due=due)
    desk.lead_anew()
    desk.step()
    assert desk.states == {"r1": state}


def test_F8_3_new_content_does_not_fail_under_a_new_leader():
    desk = Desk(rollout(paused=True))
    desk.tell("r1", **WRITTEN)
    desk.step()
    assert desk.said("r1") == said(RobotState.IN_FLIGHT)
    desk.tell("r1", **NEW, stamp="s2")
    desk.lead_anew()
    desk.step(9999)
    assert desk.states == {"r1": "Waiting"}


def test_F8_3_a_robot_that_was_ready_and_is_switched_off_does_not_fail():
    desk = Desk(rollout())
    desk.tell("r1", **APPLIED)
    desk.step()
    desk.step(60)
    desk.tell("r1", ready=False)
    desk.step()
    desk.tell("r1", report=OFFLINE)
    desk.step(5)
    desk.step(1800)
    assert desk.states == {"r1": "Stamped"}
    desk.lead_anew()
    desk.step(1800)
    assert desk.states == {"r1": "Stamped"}


# F8.4


def test_F8_4_offline_robots_keep_the_old_content_until_they_are_back():
    desk = Desk(rollout())
    desk.tell("r1", **NEW, report=OFFLINE)
    assert desk.step() == []
    assert desk.said("r1") == said(RobotState.DEFERRED)
    assert desk.progress.gate() is None
    desk.lead_anew()
    assert desk.step(999) == []
    assert desk.said("r1") == said(RobotState.DEFERRED)
    desk.tell("r1", report=ONLINE)
    assert desk.step() == ["r1"]


@pytest.mark.parametrize("new_leader", [True, False])
def test_F8_4_content_that_was_begun_and_never_ready_is_replaced_in_turn(new_leader):
    desk = Desk(rollout())
    begun(desk, "r1")
    desk.tell("r2", "r3", **NEW)
    desk.tell("r1", report=OFFLINE)
    desk.step(1800)
    desk.edit(rollout(paused=True, minReadySeconds=0))
    desk.tell("r1", **NEW, stamp="s2")
    desk.tell("r2", "r3", stamp="s2")
    desk.step()
    assert desk.said("r1") == said(RobotState.WAITING, "s1", at=T + 1800)
    if new_leader:
        desk.lead_anew()
    desk.edit(rollout(minReadySeconds=0))
    for robot in in_order("r2", "r3"):
        assert desk.step() == [robot]
        desk.tell(robot, **APPLIED)
    assert desk.step() == ["r1"]
    assert desk.said("r1") == said(RobotState.STAMPED, "s2", at=T + 1800)


@pytest.mark.parametrize("is_unproven", [True, False])
def test_F8_4_what_was_begun_and_never_acked_is_replaced_also_where_its_decision_was_deleted(is_unproven):
    desk = Desk(rollout())
    desk.tell("r1", **NEW, report=OFFLINE, is_unproven=is_unproven)
    assert desk.step() == (["r1"] if is_unproven else [])
    assert desk.states == {"r1": RobotState.STAMPED if is_unproven else RobotState.DEFERRED}


def test_F8_4_content_that_was_ready_once_is_kept():
    desk = Desk(rollout())
    fallen(desk)
    desk.tell("r1", **NEW, stamp="s2", report=OFFLINE)
    for _ in range(2):
        assert desk.step() == []
        assert desk.said("r1").state == "Deferred"
        desk.lead_anew()


def test_F8_4_stamp_writes_offline_robots_in_turn_and_does_not_count_them():
    desk = Desk(rollout(offline="Stamp"))
    desk.tell("r1", "r2", "r3", **NEW, report=OFFLINE)
    assert desk.step() == in_order("r1", "r2", "r3")
    assert desk.said("r1") == said(RobotState.STAMPED, "s1")
    assert desk.progress.may_write("r1")
    desk.step(9999)
    assert set(desk.states.values()) == {"Stamped"}
    desk.tell("r1", **WRITTEN)
    desk.step()
    assert desk.states["r1"] == "Stamped"


@pytest.mark.parametrize("new_leader", [True, False])
def test_F8_4_a_robot_that_was_begun_offline_is_in_flight_once_it_is_back_and_written(new_leader):
    desk = Desk(rollout(offline="Stamp"))
    desk.tell("r1", **NEW, report=OFFLINE)
    desk.step()
    if new_leader:
        desk.lead_anew()
    desk.tell("r1", report=ONLINE)
    desk.step(5)
    assert desk.states == {"r1": "Stamped"}
    assert desk.progress.may_write("r1")
    desk.tell("r1", **WRITTEN)
    desk.step(5)
    assert desk.said("r1") == said(RobotState.IN_FLIGHT, "s1", at=T + 10)
    desk.tell("r1", report=OFFLINE)
    desk.step(5)
    assert desk.states == {"r1": "Stamped"}


def test_F8_4_a_replica_that_terminates_on_an_offline_robot_is_left_for_later():
    desk = Desk(rollout(offline="Stamp"))
    desk.tell("r1", **NEW, report=OFFLINE)
    desk.step()
    desk.tell("r1", terminating=1)
    desk.step()
    assert desk.states == {"r1": "Deferred"}
    desk.tell("r1", terminating=0)
    assert desk.step() == ["r1"]
    assert desk.states == {"r1": "Stamped"}


def test_F8_4_an_error_ends_what_was_begun_offline_until_it_is_gone():
    desk = Desk(rollout(offline="Stamp"))
    desk.tell("r1", **NEW, report=OFFLINE)
    desk.step()
    desk.tell("r1", errors=1)
    desk.step()
    assert desk.states == {"r1": "Blocked"}
    assert not desk.progress.may_write("r1")
    desk.tell("r1", errors=0)
    assert desk.step() == ["r1"]


def test_F8_4_a_new_leader_goes_on_with_the_time_of_the_decision():
    desk = Desk(rollout())
    begun(desk, "r1")
    desk.step(1000)
    desk.lead_anew()
    desk.step(799)
    assert desk.states == {"r1": "InFlight"}
    assert desk.progress.next_step() == T + 1800
    desk.step(1)
    assert desk.states == {"r1": "Failed"}
    desk.lead_anew()
    desk.step()
    assert desk.states == {"r1": "Failed"}


def test_F8_4_only_minReadySeconds_starts_over_with_a_new_leader():
    desk = Desk(rollout())
    begun(desk, "r1")
    desk.tell("r1", **APPLIED)
    desk.step()
    desk.lead_anew()
    desk.step(59)
    desk.step(59)
    assert desk.states == {"r1": "InFlight"}
    desk.step(1)
    assert desk.states == {"r1": "Ready"}


# F8.5
