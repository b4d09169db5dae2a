"""Robots that vanish: those that are gone leave the map, and those whose kind is gone stay in it (F5.2)."""

import pytest

from crsyncer.door.domain.known_robots import KnownRobots, held_routes


def known(*names: str) -> KnownRobots:
    robots = KnownRobots()
    for name in names:
        assert robots.shown(name, "root")
    return robots


def test_F5_2_a_robot_is_new_or_at_another_shard_or_as_it_was():
    robots = known("r1")
    assert [robots.shown("r1", "root"), robots.shown("r1", "b"), robots.shown("r1", "b")] == [False, True, False]
    assert robots.labels == {"r1": "b"}


def test_F5_2_a_robot_that_vanishes_counts_until_its_kind_is_seen_alive():
    robots = known("r1", "r2")
    robots.vanish("r1")
    robots.vanish("unknown")
    assert (set(robots.labels), robots.vanished) == ({"r1", "r2"}, {"r1"})
    robots.judge({"r1"}, is_alive=True)
    assert (robots.labels, robots.vanished, robots.lost) == ({"r2": "root"}, set(), set())


@pytest.mark.parametrize(
    ("gone", "is_alive"), [(("r1",), False), (("r1", "r2", "r3"), True)], ids=["the kind is gone", "none is left"]
)
def test_F5_2_a_robot_that_is_lost_counts_until_it_is_back(gone: tuple[str, ...], is_alive: bool):
    robots = known("r1", "r2", "r3")
    for name in gone:
        robots.vanish(name)
    robots.judge(set(gone), is_alive=is_alive)
    assert (set(robots.labels), robots.lost) == ({"r1", "r2", "r3"}, set(gone))
    robots.judge(set(gone), is_alive=True)
    assert robots.labels.keys() == {"r1", "r2", "r3"}, "what is lost is not asked for again"
    assert not robots.shown("r1", "root")
    assert robots.lost == set(gone) - {"r1"}


def test_F5_2_those_that_are_lost_are_none_that_are_left():
    robots = known("r1", "r2")
    robots.vanish("r1")
    robots.judge({"r1"}, is_alive=False)
    robots.vanish("r2")
    robots.judge({"r2"}, is_alive=True)
    assert (set(robots.labels), robots.lost) == ({"r1", "r2"}, {"r1", "r2"})


def test_F5_2_one_that_vanished_and_is_back_or_vanished_after_the_question_is_not_judged():
    robots = known("r1", "r2", "r3")
    robots.vanish("r1")
    robots.shown("r1", "root")
    robots.vanish("r2")
    robots.judge({"r1"}, is_alive=True)
    assert (set(robots.labels), robots.vanished) == ({"r1", "r2", "r3"}, {"r2"})


def test_F5_2_a_list_without_any_robot_leaves_the_last_map():
    last = {"robot-r1": "root"}
    assert held_routes({}, last, were_seen=False) == last
    assert held_routes({}, last, were_seen=True) == {}, "its shard is not known, say"
    assert held_routes({"robot-r2": "b"}, last, were_seen=True) == {"robot-r2": "b"}


def test_G4_3_the_only_robot_is_gone_when_it_is_deleted():
    robots = known("r1")
    robots.vanish("r1")
    robots.judge({"r1"}, is_alive=True)
    assert (robots.labels, robots.lost, robots.were_seen) == ({}, set(), True)
