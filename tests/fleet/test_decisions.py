"""Decisions: a robot keeps its N, and a new one takes the lowest with room (F6.3)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crsyncer.fleet.domain.rollout.decisions import MOST_ROBOTS, Decided, Decision, decision_body, decision_of, numbers
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


@pytest.mark.parametrize("name", ["other-3", "all", "all-x", "all-²"])
def test_a_decision_with_another_name_has_no_number(name):
    raw = {"metadata": {"namespace": "site", "name": name}, "placement": {"name": "all", "uid": "u"}}
    assert decision_of(raw).number == -1


@pytest.mark.parametrize("robots", [None, "x", [None], [{"name": 1}], [{"name": "r1", "state": "Odd"}]])
def test_what_is_not_said_soundly_is_left_out(robots):
    raw = {"metadata": {"namespace": "site", "name": "a"}, "placement": None, "robots": robots}
    assert decision_of(raw).robots == {}


def test_a_message_is_cut():
    body = decision_body(placement(), 0, {"r1": Decided(RobotState.BLOCKED, SINCE, "", "m" * 300)})
    assert len(body["robots"][0]["message"]) == 256


def test_F5_2_numbers_of_another_uid_are_not_taken():
    assert numbers(["r1", "r2"], {"r1": 0}, taken={0, 1}) == {"r1": 2, "r2": 2}


def test_F6_3_the_lowest_number_with_room_is_taken():
    full = {f"a{number:03}": 0 for number in range(MOST_ROBOTS)}
    assert numbers([*full, "r1"], full)["r1"] == 1
    del full["a007"]
    assert numbers([*full, "r1"], full)["r1"] == 0


ROBOTS = st.sets(st.integers(0, 1200).map(lambda number: f"r{number}"), max_size=30)


@given(ROBOTS, ROBOTS)
def test_F6_3_a_robot_keeps_its_number_whoever_comes_and_goes(one, other):
    first = numbers(one, {})
    second = numbers(other, first)
    assert set(second) == other
    assert all(second[robot] == first[robot] for robot in one & other)
