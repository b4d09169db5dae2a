"""Rollouts while leaders are killed and requests fail: limits and order hold, and nobody is begun twice (F8)."""

import pytest

from tests.fleet_model.rolling import Rolling, rolling
from tests.model.simulation.answers import FORBIDDEN, INTERNAL_ERROR, UNAVAILABLE
from tests.model.simulation.weather import Fate


def is_sound(fleet: Rolling, robots: int, *, most: int = 2) -> None:
    """All robots are Ready; they were begun once each, and not more at a time than may be."""
    assert set(fleet.states().values()) == {"Ready"}
    assert fleet.watch.most <= most
    assert len({robot for robot, _ in fleet.watch.begun}) == len(fleet.watch.begun) == robots
    given = [robot for _, robot, _ in fleet.watch.content]
    assert len(given) == len(set(given)) == robots


@pytest.mark.parametrize("part", range(4))
def test_F8_4_a_leader_that_is_killed_at_any_message_leaves_a_rollout_that_goes_on(part):
    with rolling(4) as fleet:
        for messages in range(1 + part, 60, 4):
            fleet.change(f"after {messages}")
            fleet.world.kill_after(messages)
            for _ in range(40):
                fleet.world.pass_time(5.0)
                if not fleet.world.runs():
                    fleet.world.start()
            fleet.settle()
            is_sound(fleet, 4)


@pytest.mark.parametrize("part", range(2))
def test_F8_4_a_leader_that_is_killed_under_bad_content_adds_no_failures(part):
    with rolling(12, maxFailures=1) as fleet:
        for messages in range(1 + part, 40, 4):
            fleet.change("bad")
            fleet.world.kill_after(messages)
            for _ in range(40):
                fleet.world.pass_time(5.0)
                if not fleet.world.runs():
                    fleet.world.start()
            fleet.settle()
            assert len(fleet.with_content("bad")) <= 2 + 1 + 1
            fleet.change(f"good {messages}")
            fleet.settle()
            assert set(fleet.states().values()) == {"Ready"}


@pytest.mark.parametrize("fate", [UNAVAILABLE, INTERNAL_ERROR, FORBIDDEN, Fate.REPLY_LOST, Fate.LATE])
@pytest.mark.parametrize(("verb", "part"), [("update", "/robotplacementdecisions"), ("patch", "/goals"), ("", "")])
def test_F8_a_storm_of_failures_in_the_middle_of_a_rollout_breaks_no_limit(verb, part, fate):
    with rolling(6, maxFailures=6) as fleet:
        fleet.change(2, seconds=4.0)
        fleet.world.inject(fate, verb=verb, part=part, times=10_000, seconds=40.0 if part else 9.0)
        for _ in range(100):
            fleet.world.pass_time(60.0)
            if not fleet.world.runs():
                fleet.world.start()
        fleet.settle()
        assert set(fleet.states().values()) == {"Ready"}
        assert fleet.watch.most <= 2
        assert len(fleet.with_content(2)) == 6


def test_F8_2_nothing_is_written_while_its_decision_cannot_be_stored():
    with rolling(3) as fleet:
        fleet.world.inject(UNAVAILABLE, part="/robotplacementdecisions", times=10_000, seconds=300.0)
        fleet.change(2, seconds=290.0)
        assert fleet.watch.content == []
        fleet.world.mend()
        fleet.world.pass_time(600.0)
        fleet.settle()
        assert len(fleet.with_content(2)) == 3


def test_F8_2_content_that_is_edited_again_and_again_is_announced_each_time():
    with rolling(6, maxConcurrency=3) as fleet:
        for number in range(40):
            fleet.change(f"edit {number}", seconds=0.13 + number * 0.11)
        fleet.settle()
        assert fleet.watch.most <= 3
        assert set(fleet.states().values()) == {"Ready"}
