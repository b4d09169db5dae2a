"""Which robots are begun, in which order, and how many at once (F8.1, F8.2)."""

import pytest

from crsyncer.fleet.domain.rollout.robot_states import Gate
from crsyncer.fleet.domain.rollout.rollout_order import most_in_flight
from crsyncer.fleet.domain.values import RobotState, Rollout
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
    decision,
    in_order,
    rollout,
    said,
)


def test_F8_1_inside_a_group_the_order_is_that_of_the_digests():
    names = [f"r{number}" for number in range(6)]
    desk, order = Desk(rollout()), []
    desk.tell(*names, **NEW)
    for _ in names:
        order += desk.step(60)
        desk.tell(order[-1], **APPLIED)
        desk.step(0)
    assert order == in_order(*names)


def test_F8_1_a_robot_is_in_the_first_group_that_selects_it_else_after_all_groups():
    desk = Desk(rollout(groups=[CANARY, {"matchLabels": {"site": "a"}}], maxConcurrency=9, minReadySeconds=0))
    desk.tell("r1", **NEW)
    desk.tell("r2", **NEW, labels={"site": "a"})
    desk.tell("r3", **NEW, labels={"site": "a", "canary": "yes"})
    for robot, group in (("r3", 1), ("r2", 2), ("r1", 3)):
        assert desk.step() == [robot]
        assert desk.progress.group == group
        desk.tell(robot, **APPLIED)
    desk.step()
    assert set(desk.states.values()) == {"Ready"}
    assert desk.progress.group == 3


def test_F8_1_labels_move_a_robot_to_another_group():
    desk = Desk(rollout(groups=[CANARY]))
    desk.tell("r1", "r2", **NEW)
    desk.tell("r1", labels={"canary": "yes"})
    desk.tell("r1", labels={})
    desk.tell("r2", labels={"canary": "yes"})
    assert desk.step() == ["r2"]


def test_F8_1_edited_groups_count_at_once():
    desk = Desk(rollout(groups=[CANARY]))
    desk.tell("r1", **NEW, labels={"canary": "yes"})
    desk.tell("r2", **NEW, labels={"site": "a"})
    desk.edit(rollout(groups=[{"matchLabels": {"site": "a"}}]))
    assert desk.step() == ["r2"]
    desk.edit(rollout(groups=[{"matchLabels": {"site": "a"}}]))
    assert desk.step() == []


@pytest.mark.parametrize(
    ("facts", "may"),
    [
        (APPLIED, True),
        ({**WRITTEN}, False),
        ({"due": 1, "terminating": 1}, False),
        ({"errors": 1}, False),
        ({"report": OFFLINE, "due": 1}, False),
        ({"report": UNREPORTED, "due": 0}, True),
        ({"report": UNREPORTED, "due": 1}, True),
        ({"replicas": 0, "due": 0}, True),
        (None, True),
    ],
)
def test_F8_1_a_group_comes_after_the_earlier_ones_are_done_and_one_is_ready(facts, may):
    desk = Desk(rollout(groups=[CANARY], minReadySeconds=0, maxConcurrency=5))
    desk.tell("r2", **NEW)
    if facts is not None:
        desk.tell("r1", **NEW, labels={"canary": "yes"})
        desk.tell("r1", **facts)
    assert ("r2" in desk.step()) is may
    assert desk.states["r2"] == ("InFlight" if may else "Waiting")


def test_F8_1_it_is_said_that_a_group_stands_in_the_way_without_a_ready_robot_or_while_it_is_under_way():
    desk = Desk(rollout(groups=[CANARY, {"matchLabels": {"site": "a"}}], minReadySeconds=0))
    desk.tell("r1", **NEW, labels={"canary": "yes"}, report=OFFLINE)
    desk.tell("r2", **NEW)
    desk.step()
    assert desk.states == {"r1": "Deferred", "r2": "Waiting"}
    assert (desk.progress.gate(), desk.progress.group) == (Gate.WAITING_FOR_GROUP, 1)
    desk.tell("r1", report=ONLINE)
    assert desk.step() == ["r1"]
    assert (desk.progress.gate(), desk.progress.group) == (Gate.WAITING_FOR_GROUP, 1)
    desk.tell("r1", **APPLIED)
    assert desk.step() == ["r2"]
    assert desk.progress.gate() is None
    desk.tell("r2", **APPLIED)
    desk.step()
    assert (desk.progress.gate(), desk.progress.group) == (None, 3)


def test_F8_1_robots_whose_own_group_is_under_way_wait_for_their_turn_and_not_for_a_group():
    desk = Desk(rollout(groups=[CANARY], minReadySeconds=0, maxConcurrency=1))
    for robot in ("r1", "r2"):
        desk.tell(robot, **NEW, labels={"canary": "yes"})
    desk.tell("r3", **NEW)
    assert len(desk.step()) == 1
    assert desk.progress.gate() is None


def test_F8_1_a_canary_that_was_ready_and_is_switched_off_stands_in_nobodys_way():
    desk = Desk(rollout(groups=[CANARY], minReadySeconds=0))
    desk.tell("r1", **APPLIED, labels={"canary": "yes"})
    desk.step()
    desk.tell("r1", report=OFFLINE)
    desk.tell("r2", **NEW)
    assert desk.step() == ["r2"]


def test_F8_1_content_that_kills_the_canary_does_not_reach_the_next_group():
    desk = Desk(rollout(groups=[CANARY], maxFailures=5, progressDeadlineSeconds=900))
    desk.tell("r1", labels={"canary": "yes"})
    begun(desk, "r1")
    desk.tell("r2", **NEW)
    desk.tell("r1", report=OFFLINE)
    assert desk.step(700) == []
    assert desk.states == {"r1": "InFlight", "r2": "Waiting"}
    assert desk.step(200) == []
    assert desk.states == {"r1": "Failed", "r2": "Waiting"}
    desk.lead_anew()
    assert "r2" not in desk.step(900)
    assert desk.progress.gate() is Gate.WAITING_FOR_GROUP


def test_F8_1_robots_that_are_not_online_come_last_in_the_order_of_their_groups():
    desk = Desk(rollout(groups=[CANARY], offline="Stamp", minReadySeconds=0))
    desk.tell("r1", "r2", "r3", "r4", **NEW)
    desk.tell("r1", report=OFFLINE)
    desk.tell("r2", "r3", report=UNREPORTED)
    desk.tell("r3", labels={"canary": "yes"})
    assert desk.step() == ["r4"]
    desk.tell("r4", **APPLIED)
    assert desk.step() == ["r3", *in_order("r1", "r2")]
    assert desk.progress.group == 3


def test_F8_1_a_robot_with_an_error_is_not_begun():
    desk = Desk(rollout())
    desk.tell("r1", **NEW, errors=1)
    assert desk.step() == []
    assert desk.states == {"r1": "Blocked"}
    desk.tell("r1", errors=0)
    assert desk.step() == ["r1"]


def test_F8_1_a_robot_whose_shard_is_away_is_not_begun_and_keeps_nobody_of_its_group_waiting():
    desk = Desk(rollout(maxConcurrency=9, minReadySeconds=0, groups=[CANARY]))
    first, second = in_order("r1", "r2")
    desk.tell(first, second, **NEW, labels={"canary": "yes"})
    desk.tell("r3", **NEW)
    desk.tell(first, away=True)
    assert desk.step() == [second]
    desk.tell(second, **APPLIED)
    assert desk.step() == []  # r3 waits for all canaries
    desk.tell(first, away=False)
    assert desk.step() == [first]
    desk.tell(first, **APPLIED)
    assert desk.step() == ["r3"]


def test_F8_1_a_robot_that_waits_and_is_away_later_is_passed_over():
    desk = Desk(rollout())
    first, second = in_order("r1", "r2")
    desk.tell(first, second, **NEW)
    assert desk.step() == [first]
    desk.tell(second, away=True)
    desk.tell(first, **APPLIED)
    assert desk.step(60) == []


def test_F8_5_while_nobody_knows_whether_a_canary_reports_later_groups_wait():
    desk = Desk(rollout(groups=[CANARY], minReadySeconds=0))
    desk.tell("r1", **NEW, labels={"canary": "yes"}, report=UNREPORTED, away=True, unheard=True)
    desk.tell("r2", **NEW, report=UNREPORTED)
    assert desk.step() == []
    desk.tell("r1", away=False, unheard=False)
    assert desk.step() == ["r1", "r2"]


# F8.2


@pytest.mark.parametrize(
    ("most", "online", "expected"),
    [(3, 100, 3), (3, 1, 3), ("5%", 100, 5), ("5%", 39, 1), ("5%", 0, 1), ("100%", 7, 7)],
)
def test_F8_2_a_percentage_is_of_the_online_robots_rounded_down_and_at_least_one(most, online, expected):
    assert most_in_flight(Rollout(max_concurrency=most), online) == expected


def test_F8_2_no_more_robots_than_maxConcurrency_are_in_flight():
    desk = Desk(rollout(maxConcurrency=2, minReadySeconds=0))
    desk.tell("r1", "r2", "r3", "r4", **NEW)
    first = desk.step()
    assert first == in_order("r1", "r2", "r3", "r4")[:2]
    desk.tell(first[0], **APPLIED)
    assert len(desk.step()) == 1


def test_F8_2_robots_that_are_in_flight_without_being_begun_count():
    desk = Desk(rollout())
    desk.tell("r1", **WRITTEN)
    desk.tell("r2", **NEW)
    assert desk.step() == []
    assert desk.states == {"r1": "InFlight", "r2": "Waiting"}


def test_F8_2_a_robot_is_written_only_once_the_stored_decision_says_that_it_is_begun():
    desk = Desk(rollout())
    desk.tell("r1", **NEW)
    assert desk.step(store=False) == []
    assert desk.states == {"r1": "InFlight"}
    assert not desk.progress.may_write("r1")
    assert desk.progress.urgent() == {0}
    waiting = {"r1": said(RobotState.WAITING)}
    assert desk.progress.stored(0, waiting) == []
    assert desk.progress.stored(0, {"r1": said(RobotState.IN_FLIGHT, "s0")}) == []
    assert not desk.progress.may_write("r1")
    assert desk.store() == ["r1"]
    assert desk.said("r1") == said(RobotState.IN_FLIGHT, "s1")
    assert desk.progress.may_write("r1")
    assert desk.progress.urgent() == set()


def test_F8_2_a_robot_that_waits_is_not_written():
    desk = Desk(rollout())
    desk.tell("r1", "r2", **NEW)
    first = desk.step()
    other = ({"r1", "r2"} - set(first)).pop()
    assert desk.said(other) == said(RobotState.WAITING)
    assert not desk.progress.may_write(other)


@pytest.mark.parametrize("paused", [True, False])
@pytest.mark.parametrize("new_leader", [True, False])
@pytest.mark.parametrize("report", [ONLINE, OFFLINE, UNREPORTED])
def test_F8_2_a_begun_robot_is_written_to_its_end(report, new_leader, paused):
    desk = Desk(rollout())
    desk.tell("r1", **NEW)
    desk.step()
    desk.edit(rollout(paused=paused))
    desk.tell("r1", report=report)
    if new_leader:
        desk.lead_anew()
    desk.step(100, may_begin=False)
    assert desk.progress.may_write("r1")
    assert desk.said("r1") == said(RobotState.IN_FLIGHT, "s1")


def test_F8_2_new_content_ends_what_was_begun():
    desk = Desk(rollout())
    desk.tell("r1", **NEW)
    desk.step()
    desk.edit(rollout(paused=True))
    desk.tell("r1", stamp="s2")
    assert not desk.progress.may_write("r1")
    desk.step(5)
    assert desk.said("r1") == said(RobotState.WAITING, "s1", at=T + 5)
    desk.edit(rollout())
    assert desk.step(5) == ["r1"]
    assert desk.said("r1") == said(RobotState.IN_FLIGHT, "s2", at=T + 10)


def test_F8_2_content_that_is_there_already_is_in_flight_anew():
    desk = Desk(rollout())
    begun(desk, "r1")
    desk.tell("r1", stamp="s2")
    desk.step(5)
    assert desk.said("r1") == said(RobotState.IN_FLIGHT, "s2", at=T + 5)


def test_F8_2_paused_begins_none():
    desk = Desk(rollout(paused=True))
    desk.tell("r1", **NEW)
    assert desk.step() == []
    assert desk.progress.gate() is Gate.PAUSED
    desk.edit(rollout())
    assert desk.step() == ["r1"]


def test_F6_4_ready_takes_minReadySeconds_without_a_break():
    desk = Desk(rollout())
    begun(desk, "r1")
    desk.tell("r1", **APPLIED)
    desk.step(10)
    assert desk.progress.next_step() == T + 70
    desk.tell("r1", ready=False)
    desk.step(50)
    desk.tell("r1", ready=True)
    desk.step(1)
    desk.step(59)
    assert desk.states == {"r1": "InFlight"}
    assert desk.progress.next_step() == T + 121
    desk.step(1)
    assert desk.said("r1") == said(RobotState.READY, "s1", at=T + 121)
    assert desk.progress.next_step() is None


@pytest.mark.parametrize("report", [ONLINE, UNREPORTED])
def test_F6_4_minReadySeconds_of_a_robot_that_was_begun_online_count_from_its_ack(report):
    desk = Desk(rollout())
    begun(desk, "r1")
    desk.tell("r1", report=report, ready=True)
    desk.step()
    desk.tell("r1", report=ONLINE, acked=True)
    desk.step(100)
    assert desk.states == {"r1": "InFlight"}
    desk.step(60)
    assert desk.states == {"r1": "Ready"}


def test_F6_4_an_offline_robot_becomes_ready_when_it_is_back():
    desk = Desk(rollout())
    begun(desk, "r1")
    desk.tell("r1", **APPLIED, report=OFFLINE)
    desk.step()
    desk.step(100)
    assert desk.states == {"r1": "InFlight"}
    desk.tell("r1", report=ONLINE)
    desk.step()
    desk.step(60)
    assert desk.states == {"r1": "Ready"}


def test_F8_2_a_replica_that_somebody_deletes_is_made_again_in_turn():
    desk = Desk(rollout(paused=True), decision({"r1": said(RobotState.READY, "s1")}))
    desk.tell("r1", **APPLIED)
    desk.step()
    desk.tell("r1", **NEW)
    assert desk.step() == []
    assert desk.states == {"r1": "Waiting"}
    desk.edit(rollout())
    assert desk.step() == ["r1"]


def test_F8_1_a_step_in_parts_begins_none_before_all_were_looked_at_and_so_many_at_a_time():
    names = [f"r{number}" for number in range(5)]
    desk = Desk(rollout(maxConcurrency=4))
    desk.tell(*names, **NEW)
    assert [desk.progress.step(desk.now, may_begin=True, most=2) for _ in range(2)] == [[], []]
    assert (len(desk.progress.states), desk.progress.is_behind) == (4, True)
    assert set(desk.progress.states.values()) == {"Waiting"}
    assert desk.progress.step(desk.now, may_begin=None, most=2) == []
    assert (list(desk.progress.states.values()), desk.progress.is_behind) == (["Waiting"] * 5, False)
    numbers = []
    while True:
        desk.progress.step(desk.now, may_begin=True, most=3)
        numbers.append(list(desk.progress.states.values()).count(RobotState.IN_FLIGHT))
        if not desk.progress.is_behind:
            break
    assert numbers == [3, 4]
    assert sorted(desk.store()) == sorted(in_order(*names)[:4])


def test_F8_1_groups_that_are_edited_in_the_middle_of_a_step_count_for_all_robots():
    desk = Desk(rollout())
    desk.tell("r1", "r2", **NEW)
    desk.tell("r2", labels={"canary": "yes"})
    desk.progress.step(desk.now, may_begin=True, most=1)
    desk.edit(rollout(groups=[CANARY]))
    assert desk.step() == ["r2"]
