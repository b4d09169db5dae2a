"""Decisions as they are stored; a robot keeps its N, and a new one takes the lowest with room (F6.3)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crsyncer.fleet.domain.rollout.decision_book import DecisionBook
from crsyncer.fleet.domain.rollout.decisions import (
    MOST_ROBOTS,
    Decided,
    Decision,
    decision_body,
    decision_of,
    decision_pace,
)
from crsyncer.fleet.domain.values import RobotState
from tests.fleet.made import placement

SINCE = "2026-11-01T00:00:00Z"


def test_F6_3_a_decision_is_read_as_it_was_written():
    robots = {
        "r2": Decided(RobotState.IN_FLIGHT, SINCE, "s" * 24, "m"),
        "r1": Decided(RobotState.STAMPED, SINCE),
    }
    body = decision_body(placement("all"), 3, robots)
    assert [each["name"] for each in body["robots"]] == ["r1", "r2"]
    assert body["robots"][0] == {"name": "r1", "state": "Stamped", "since": SINCE}
    assert "ownerReferences" not in body["metadata"]
    assert decision_of(body) == Decision("site", "all-3", "all", "uid-all", 3, robots)
    assert decision_of(body).text == "site/all"


@pytest.mark.parametrize(("robots", "seconds"), [(0, 5.0), (500, 5.0), (2500, 5.0), (10_000, 20.0)])
def test_F6_3_the_decisions_of_many_robots_are_written_once_a_second_all_together(robots, seconds):
    assert decision_pace(robots) == seconds


@pytest.mark.parametrize("name", ["other-3", "all", "all-x", "all-²"])
def test_a_decision_with_another_name_has_no_number(name):
    raw = {"metadata": {"namespace": "site", "name": name}, "placement": {"name": "all", "uid": "u"}}
    assert decision_of(raw).number == -1


@pytest.mark.parametrize(
    "robots", [None, "x", [None], [{"name": 1}], [{"name": "r1", "state": "Odd"}], [{"name": "r1", "state": []}]]
)
def test_what_is_not_said_soundly_is_left_out(robots):
    raw = {"metadata": {"namespace": "site", "name": "a"}, "placement": None, "robots": robots}
    assert decision_of(raw).robots == {}


def test_a_message_is_cut():
    body = decision_body(placement(), 0, {"r1": Decided(RobotState.BLOCKED, SINCE, "", "m" * 300)})
    assert len(body["robots"][0]["message"]) == 256


@pytest.mark.parametrize("texts", [{}, {"since": 7, "stamp": None, "message": ["x"]}])
def test_texts_that_are_none_are_empty(texts):
    raw = {"metadata": {"namespace": "site", "name": "a"}, "robots": [{"name": "r1", "state": "Ready", **texts}]}
    assert decision_of(raw).robots == {"r1": Decided(RobotState.READY, "")}


READY, WAITING = Decided(RobotState.READY, SINCE, "s"), Decided(RobotState.WAITING, SINCE)


def decision(number: int, *robots: str, decided: Decided = READY) -> Decision:
    return Decision("site", f"all-{number}", "all", "uid-all", number, dict.fromkeys(robots, decided))


def book(*stored: Decision, taken: Any = ()) -> DecisionBook:
    return DecisionBook(stored, taken=taken)


def test_F5_2_numbers_of_another_uid_are_not_taken():
    found = book(decision(0, "r1"), decision(-1, "r2"), taken={0, 1})
    assert list(found.robots) == []
    for robot in ("r1", "r2"):
        found.put(robot, READY)
    assert found.wanted == {2: {"r1": READY, "r2": READY}}


def test_F5_2_robots_in_a_decision_that_another_uid_takes_move():
    found = book(decision(0, "r1", "r2"), decision(1, "r3"))
    found.take({0})
    assert found.wanted == {1: {"r1": READY, "r2": READY, "r3": READY}}
    assert found.stored("r1") is None
    assert found.unstored() == {1}


def test_F6_3_the_lowest_number_with_room_is_taken():
    full = [f"a{number:03}" for number in range(MOST_ROBOTS)]
    found = book(decision(0, *full))
    found.put("r1", READY)
    assert found.number("r1") == 1
    found.drop("a007")
    found.put("r2", READY)
    assert found.number("r2") == 0


def test_F6_3_a_robot_in_two_decisions_stays_in_the_lower_one():
    found = book(decision(3, "r1", decided=WAITING), decision(1, "r1"))
    assert found.stored("r1") == READY
    assert found.unstored() == {3}
    assert found.wanted.get(3, {}) == {}


def test_F6_3_a_decision_is_written_while_something_else_is_stored():
    found = book()
    found.put("r1", READY)
    assert found.unstored() == {0}
    assert found.store(0, {"r1": WAITING}) == {"r1"}
    assert found.unstored() == {0}
    assert found.store(0, {"r1": READY, "r9": READY}) == {"r1", "r9"}
    assert found.unstored() == {0}
    assert found.store(0, {"r1": READY}) == {"r9"}
    assert found.unstored() == set()
    found.put("r1", WAITING)
    assert found.unstored() == {0}
    found.put("r1", READY)
    assert found.unstored() == set()
    assert found.store(0, None) == {"r1"}
    assert (found.unstored(), found.stored("r1")) == ({0}, None)


def test_F6_3_a_decision_without_robots_goes():
    found = book(decision(0, "r1"))
    found.drop("r1")
    assert found.unstored() == {0}
    assert not found.wanted[0]
    found.store(0, {})
    assert found.unstored() == {0}
    found.store(0, None)
    assert found.unstored() == set()


ROBOTS = st.sets(st.integers(0, 1200).map(lambda number: f"r{number}"), max_size=30)


@given(st.lists(ROBOTS, min_size=1, max_size=5))
def test_F6_3_a_robot_keeps_its_number_whoever_comes_and_goes(sets):
    found, numbers = book(), dict[str, int]()
    for robots in sets:
        for robot in found.robots - robots:
            found.drop(robot)
        for robot in robots:
            found.put(robot, READY)
        assert set(found.robots) == robots
        now = {robot: found.number(robot) for robot in robots}
        assert all(now[robot] == numbers[robot] for robot in now.keys() & numbers.keys())
        numbers = now
        for number in found.unstored():
            found.store(number, dict(found.wanted[number]) or None)
        assert found.unstored() == set()
        assert all(found.stored(robot) == READY for robot in robots)
