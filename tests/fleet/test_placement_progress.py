"""One placement's progress without a rollout, and what the Decisions remember (F6.3, F6.4)."""

import pytest

from crsyncer.core.reports.text import rfc3339
from crsyncer.fleet.domain.rollout.decisions import Decided, Decision
from crsyncer.fleet.domain.rollout.placement_progress import PlacementProgress
from crsyncer.fleet.domain.rollout.reports import Report
from crsyncer.fleet.domain.rollout.robot_states import RobotTally
from crsyncer.fleet.domain.values import RobotState
from tests.fleet.made import placement
from tests.fleet.rolled import APPLIED, NEW, OFFLINE, ONLINE, UNREPORTED, WRITTEN, Desk, T, decision


def test_F8_without_a_rollout_all_robots_are_written_once_a_decision_names_them():
    desk = Desk(placement())
    desk.tell("r1", "r2", **NEW)
    desk.tell("r2", report=OFFLINE)
    desk.tell("r3", report=UNREPORTED, ready=None)
    assert not desk.progress.may_write("r1")
    assert desk.step(store=False) == []
    assert not desk.progress.may_write("r1")
    assert desk.progress.urgent() == {0}
    assert sorted(desk.store()) == ["r1", "r2", "r3"]
    assert all(map(desk.progress.may_write, ("r1", "r2", "r3")))
    assert desk.progress.urgent() == set()
    assert desk.states == dict.fromkeys(("r1", "r2", "r3"), "Waiting")
    assert desk.step() == []


def test_F6_3_a_robot_whose_decision_is_gone_is_not_written_before_it_is_back():
    desk = Desk(placement())
    desk.tell("r1")
    desk.step()
    assert desk.progress.stored(0, None) == []
    assert not desk.progress.may_write("r1")
    assert desk.progress.urgent() == {0}
    assert desk.store() == ["r1"]


def test_F6_3_a_decision_of_which_nothing_is_written_can_wait():
    desk = Desk(placement())
    desk.tell("r1", **APPLIED)
    desk.step(store=False)
    assert list(desk.progress.decisions()) == [0]
    assert desk.progress.urgent() == set()


def test_F8_without_a_rollout_no_robot_is_deferred_or_failed_and_ready_is_at_once():
    stored = Decided(RobotState.FAILED, rfc3339(T - 9999) or "", "s1")
    desk = Desk(placement(), decision({"r1": stored}))
    desk.tell("r1", **WRITTEN)
    desk.tell("r2", report=OFFLINE, due=1, terminating=1)
    desk.step()
    assert desk.states == {"r1": "InFlight", "r2": "Waiting"}
    desk.tell("r1", **APPLIED)
    desk.step()
    assert desk.states["r1"] == "Ready"
    assert desk.progress.next_step() is None
    assert (desk.progress.gate(), desk.progress.group) == (None, 0)


def test_F6_4_a_robot_without_readyWhen_is_ready_once_it_has_acked():
    desk = Desk(placement())
    desk.tell("r1", "r2", due=0, ready=None)
    desk.tell("r2", report=UNREPORTED)
    desk.step()
    assert desk.states == {"r1": "InFlight", "r2": "Stamped"}
    desk.tell("r1", acked=True)
    desk.step()
    assert desk.states["r1"] == "Ready"


def test_F6_4_what_is_ready_stays_so_offline_and_under_a_new_leader():
    desk = Desk(placement())
    desk.tell("r1", **APPLIED)
    desk.step()
    assert desk.said("r1") == Decided(RobotState.READY, rfc3339(T) or "", "s1")
    desk.tell("r1", report=OFFLINE)
    desk.step(100)
    assert desk.states == {"r1": "Ready"}
    desk.lead_anew()
    desk.step(100)
    assert desk.said("r1") == Decided(RobotState.READY, rfc3339(T) or "", "s1")
    desk.tell("r1", acked=False)
    desk.step()
    assert desk.said("r1") == Decided(RobotState.STAMPED, rfc3339(T + 200) or "")
    desk.tell("r1", acked=True)
    desk.step()
    assert desk.states == {"r1": "Stamped"}


def test_F6_4_another_stamp_is_not_ready_under_a_new_leader():
    desk = Desk(placement(), decision({"r1": Decided(RobotState.READY, rfc3339(T) or "", "s0")}))
    desk.tell("r1", **APPLIED, report=OFFLINE)
    desk.step()
    assert desk.states == {"r1": "Stamped"}


def test_F6_4_why_a_robot_is_blocked_is_said():
    desk = Desk(placement())
    desk.tell("r1", errors=1, message="no such property")
    desk.step()
    assert desk.said("r1") == Decided(RobotState.BLOCKED, rfc3339(T) or "", "s1", "no such property")


@pytest.mark.parametrize("since", ["", "soon", "9999-12-31T00:00:00Z"])
def test_a_time_that_is_not_sound_is_now(since):
    desk = Desk(placement(), decision({"r1": Decided(RobotState.READY, since, "s1")}))
    desk.tell("r1", **APPLIED)
    desk.step()
    assert desk.said("r1").since == rfc3339(T)


def test_a_time_before_all_clocks_is_shown():
    desk = Desk(placement(), decision({"r1": Decided(RobotState.READY, "0001-01-01T00:00:00+23:00", "s1")}))
    desk.tell("r1", **APPLIED)
    desk.step()
    assert desk.said("r1").since == "1970-01-01T00:00:00Z"


def test_F6_3_robots_that_are_not_selected_any_more_leave_the_decisions():
    desk = Desk(placement(), decision({robot: Decided(RobotState.READY, "", "s1") for robot in ("r1", "r2", "r3")}))
    desk.tell("r1", "r2", **APPLIED)
    desk.leave("r2")
    desk.progress.tell("r9", None)
    desk.step()
    assert list(desk.written[0]) == ["r1"]
    desk.tell("r8")
    desk.leave("r1", "r8")
    desk.step()
    assert desk.written == {}
    assert desk.states == {}


def test_F6_4_all_is_counted():
    desk = Desk(placement())
    desk.tell("r1", **APPLIED)
    desk.tell("r2", report=OFFLINE)
    desk.tell("r3", report=UNREPORTED)
    assert desk.progress.gated()
    desk.step()
    counts = {name: number for name, number in desk.progress.counts(replicas=5).items() if number}
    assert counts == {"selected": 3, "replicas": 5, "offline": 1, "unreported": 1, "ready": 1, "waiting": 2}
    desk.leave("r1", "r2")
    desk.step()
    counts = {name: number for name, number in desk.progress.counts(replicas=5).items() if number}
    assert counts == {"selected": 1, "replicas": 5, "unreported": 1, "waiting": 1}
    assert not desk.progress.gated()


def test_F5_2_robots_in_a_decision_that_another_uid_takes_are_written_after_the_new_one():
    desk = Desk(placement())
    desk.tell("r1")
    desk.step()
    desk.progress.taken({0})
    assert not desk.progress.may_write("r1")
    assert desk.progress.urgent() == {1}
    assert desk.store() == ["r1"]
    assert desk.written[1].keys() == {"r1"}


def test_nothing_is_known_of_a_robot_before_it_was_looked_at():
    desk = Desk(placement(), decision({"r1": Decided(RobotState.READY, "", "s1")}))
    desk.tell("r1", report=ONLINE)
    assert desk.progress.stored(0, None) == []
    assert not desk.progress.may_write("r1")
    assert not desk.progress.may_write("r2")
    desk.leave("r1")
    assert desk.step() == []
    assert desk.progress.decisions() == {}


def test_F5_2_a_robot_that_is_left_with_replicas_stays_in_its_decision():
    blocked = Decided(RobotState.BLOCKED, "2026-11-01T00:00:00Z", "s", "422: no")
    stored = Decision("site", "all-0", "all", "uid-all", 0, {"r1": blocked, "r2": blocked})
    progress = PlacementProgress(placement(), [stored])
    progress.tell("r1", None, is_left=True)
    progress.step(2e9, may_begin=True)
    assert progress.decisions() == {0: {"r1": blocked}}
    untried = RobotTally(1, 1, 0, 0, "s", acked=False, report=Report.UNREPORTED, ready=None)
    progress.tell("r1", untried)
    progress.step(2e9, may_begin=True)
    assert progress.is_untried()
    assert progress.decisions() == {0: {"r1": blocked}}
    progress.tell("r1", None, is_left=True)
    progress.tell("r1", None)
    assert (progress.is_untried(), progress.decisions()) == (False, {0: {}})
