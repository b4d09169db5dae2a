"""Robots that report nothing, or no more, in a rollout (F8.5), and rollouts that are taken away (F8)."""

import itertools
from typing import Any

import pytest

from crsyncer.fleet.domain.rollout.robot_states import Gate
from tests.fleet.made import placement
from tests.fleet.rolled import (
    APPLIED,
    CANARY,
    NEW,
    OFFLINE,
    ONLINE,
    UNREPORTED,
    WRITTEN,
    Desk,
    T,
    begun,
    in_order,
    rollout,
)


def test_F8_5_unreported_robots_are_written_in_turn_and_ready_by_their_returned_status():
    desk = Desk(rollout())
    desk.tell("r1", "r2", **NEW, report=UNREPORTED)
    assert desk.step() == in_order("r1", "r2")
    assert not desk.progress.gated()
    desk.step(9999)
    assert set(desk.states.values()) == {"Stamped"}
    desk.tell("r1", **WRITTEN)
    desk.step()
    assert desk.states["r1"] == "Stamped"
    desk.tell("r1", ready=True)
    desk.step()
    desk.step(60)
    assert desk.states["r1"] == "Ready"


@pytest.mark.parametrize("new_leader", [True, False])
def test_F8_5_a_robot_that_was_begun_online_fails_if_its_report_vanishes_and_holds_up_later_groups(new_leader):
    desk = Desk(rollout(groups=[CANARY], maxFailures=3))
    desk.tell("r1", labels={"canary": "yes"})
    begun(desk, "r1")
    desk.tell("r2", **NEW)
    desk.tell("r1", report=UNREPORTED, ready=True)  # the status is that of the old content
    for _ in range(3):
        if new_leader:
            desk.lead_anew()
        assert "r2" not in desk.step(900)
    assert desk.states == {"r1": "Failed", "r2": "Waiting"}
    assert desk.progress.gate() is Gate.WAITING_FOR_GROUP


def test_F8_5_without_reports_none_is_begun():
    desk = Desk(rollout())
    desk.tell("r1", **NEW, report=UNREPORTED)
    assert desk.step(may_begin=False) == []
    assert desk.progress.gate() is Gate.NO_REPORTS
    assert desk.step() == ["r1"]


@pytest.mark.parametrize("report", [ONLINE, OFFLINE])
def test_F8_5_silent_robots_come_after_a_group_that_reports_and_has_no_ready_robot(report):
    desk = Desk(rollout())
    desk.tell("r1", **NEW, report=report)
    desk.tell("r2", **NEW, report=UNREPORTED)
    assert "r2" not in desk.step()
    assert desk.progress.gate() is Gate.WAITING_FOR_GROUP


NAMES = [f"r{number:02}" for number in range(20)]


def test_F8_5_when_many_reports_vanish_none_is_begun_before_they_are_back():
    desk = Desk(rollout(maxConcurrency=3))
    desk.tell(*NAMES, **APPLIED)
    desk.step()
    desk.tell(*NAMES[:6], report=UNREPORTED)
    desk.tell(*NAMES, **NEW, stamp="s2")
    assert desk.step(600) == []
    assert desk.progress.gate() is Gate.NO_REPORTS
    assert desk.progress.next_step() == T + 600 + 7200
    desk.tell(NAMES[0], report=ONLINE)
    assert len(desk.step()) == 3
    assert desk.progress.gate() is None


def test_F8_5_reports_that_stay_away_are_missed_for_two_hours():
    desk = Desk(rollout())
    desk.tell(*NAMES, **APPLIED)
    desk.step()
    desk.tell(*NAMES, **NEW, report=UNREPORTED)
    assert desk.step() == []
    assert desk.step(7199) == []
    assert sorted(desk.step(1)) == NAMES
    assert desk.progress.next_step() is None


def test_F8_5_robots_that_are_not_selected_any_more_are_not_missed():
    desk = Desk(rollout())
    desk.tell(*NAMES, **APPLIED)
    desk.step()
    desk.tell(*NAMES, **NEW, report=UNREPORTED)
    desk.step()
    desk.leave(*NAMES[5:])
    assert sorted(desk.step()) == NAMES[:5]


# A rollout that is added, or taken away.


def test_F8_a_rollout_that_is_taken_away_lets_all_be_written():
    desk = Desk(rollout(paused=True))
    desk.tell("r1", **NEW)
    desk.tell("r2", **NEW, report=OFFLINE)
    desk.step()
    desk.edit(placement())
    assert sorted(desk.step()) == ["r1", "r2"]
    assert desk.states == {"r1": "Waiting", "r2": "Waiting"}


def test_F8_4_what_was_written_without_a_rollout_and_never_ready_is_replaced_offline():
    desk = Desk(placement())
    desk.tell("r1", "r2", **NEW, report=OFFLINE)
    desk.tell("r2", **APPLIED, report=ONLINE)
    desk.step()
    desk.edit(rollout())
    desk.tell("r1", "r2", **NEW, stamp="s2", report=OFFLINE)
    desk.lead_anew()
    assert desk.step() == []
    assert desk.states == {"r1": "Waiting", "r2": "Deferred"}


# Robots come and go, and much stays the same.


def test_F8_1_flapping_robots_are_each_in_the_order_once():
    desk = Desk(rollout(paused=True))
    desk.tell("r1", "r2", **NEW)
    for report in [OFFLINE, ONLINE] * 50:
        desk.tell("r1", report=report)
        desk.step(1)
    desk.leave("r2")
    desk.edit(rollout())
    assert desk.step() == ["r1"]
    assert desk.step() == []


@pytest.mark.parametrize("seed", range(3))
def test_F8_a_step_without_news_changes_nothing(seed):
    desk = Desk(rollout(groups=[CANARY], maxConcurrency="50%"))
    facts: Any = list(itertools.product([0, 1], [False, True], [False, True], [ONLINE, OFFLINE, UNREPORTED]))
    for number, (due, acked, ready, report) in enumerate(facts):
        labels = {"canary": "yes"} if number % 3 == seed else {}
        desk.tell(f"r{number:02}", due=due, acked=acked, ready=ready, report=report, labels=labels)
    desk.step()
    states, decisions = desk.states, dict(desk.written)
    assert desk.step() == []
    assert (desk.states, desk.written) == (states, decisions)
    desk.lead_anew()
    desk.step()
    assert desk.states == states
