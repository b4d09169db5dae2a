"""Whatever happened, a source has the status of its only robot, or none (F6.2)."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from crsyncer.fleet.domain.values import SourceKey
from tests.fleet.made import GOALS, key
from tests.fleet.singles import Singles

READY, DRIVING = {"phase": "Ready"}, {"phase": "Driving"}


ROBOTS, GOAL_NAMES = st.sampled_from(["r1", "r2"]), st.sampled_from(["dock", "lift"])
EVENTS = st.one_of(
    st.tuples(st.just("robot"), ROBOTS),
    st.tuples(st.just("gone"), ROBOTS),
    st.tuples(
        st.just("placement"), st.sampled_from(["all", "next"]), st.sampled_from(["Singleton", "PerRobot"]), ROBOTS
    ),
    st.tuples(st.just("everyone"), st.sampled_from(["all", "next"])),
    st.tuples(st.just("terminate"), st.sampled_from(["all", "next"])),
    st.tuples(st.just("goal"), GOAL_NAMES),
    st.tuples(st.just("goal_gone"), GOAL_NAMES),
    st.tuples(st.just("status"), ROBOTS, GOAL_NAMES, st.sampled_from([None, READY, DRIVING])),
    st.tuples(st.just("lost"), ROBOTS, GOAL_NAMES),
    st.tuples(st.just("sync")),
)


def happen(found: Singles, event: Any) -> None:
    match event:
        case ("robot", name):
            found.robot(name)
        case ("gone", name):
            found.robot_gone(name)
        case ("placement", name, how, robot):
            found.placement(name, statusReturn=how, robotSelectors=[], robotNames=[robot])
        case ("everyone", name):
            found.placement(name)
        case ("terminate", name):
            if name in found.placements:
                found.terminate(name)
        case ("goal", name):
            found.goal(name)
        case ("goal_gone", name):
            if name in found.sources:
                found.goal_gone(name)
        case ("status", robot, name, status):
            if found.fleet.wanted(key(robot, name=name)) is not None:
                found.replica(robot, status, name=name)
        case ("lost", robot, name):
            if key(robot, name=name) in found.raws:
                found.replica_gone(key(robot, name=name))
        case _:
            found.sync()


@settings(max_examples=200)
@given(st.lists(EVENTS, max_size=25))
def test_F6_2_after_whatever_happened_a_source_has_the_status_of_its_only_robot_or_none(events):
    found = Singles("r1")
    found.placement()
    found.goal()
    for event in events:
        happen(found, event)
    found.sync()
    assert found.sync() == []
    index = found.fleet.index
    for name in found.sources:
        texts = index.placements_of(SourceKey(GOALS, "site", name))
        singles = [text for text in texts if index.placements[text].singleton]
        robots = {robot for text in singles for robot in index.robots_of(text)}
        if len(robots) == 1:
            raw = found.raws.get(key(min(robots), name=name), {})
            assert found.status(name) == raw["status"] if raw.get("status") else True
            listing = [
                each for entries in found.listed_by.values() for each in entries if each["source"].endswith(name)
            ]
            assert len(listing) <= 1
            assert bool(listing) is (found.status(name) is not None)
        elif index.robots:
            assert found.status(name) is None
