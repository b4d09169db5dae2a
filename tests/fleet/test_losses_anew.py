"""Removal by a new leader (F5): what is missing at its start is a loss; and after any events nothing goes unseen."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crsyncer.fleet.domain.change import Input
from crsyncer.fleet.domain.losses import Losses, Why
from crsyncer.fleet.domain.replica_plan import Removal
from crsyncer.fleet.domain.values import Verdict
from tests.fleet.lossy import World
from tests.fleet.made import GOALS, KIND, goal, key, raw_placement, raw_robot


def restarted(world: World, raw: Any = None) -> World:
    """A new leader that finds what another one left."""
    if raw is not None:
        world.fleet.placement_shown(raw)
    world.losses = Losses(world.fleet)
    world.losses.started(world.now, {GOALS})
    return world


def test_F5_1_to_a_new_leader_all_that_is_missing_is_a_loss():
    world = World()
    world.fleet.robot_gone("r0")
    restarted(world, raw_placement(robotSelectors=[{}]))
    assert [world.removal(after=after) for after in (29, 30)] == [Removal.LATER, Removal.NOW]
    assert world.removal("r1", after=99) is Removal.UNKNOWN


def test_F5_2_half_of_the_robots_deleted_while_nobody_led_are_held():
    world = World(robots=20)
    for name in world.names[:10]:
        world.fleet.robot_gone(name)
    assert restarted(world).held() == {"uid-all": (Why.ROBOTS_LOST, 10)}


def test_F5_2_a_kind_whose_sources_are_all_gone_at_a_start_is_held():
    world = World()
    world.fleet.object_gone(GOALS, "site", "dock")
    assert restarted(world).held() == {"uid-all": (Why.SOURCES_LOST, 10)}


@pytest.mark.parametrize(
    ("holds", "reason"),
    [
        ([{"reason": "SourcesLost"}], Why.SOURCES_LOST),
        ([{}], Why.ROBOTS_LOST),
        (["x"], Why.ROBOTS_LOST),
        ([], None),
        ("x", None),
    ],
)
def test_F5_2_a_hold_outlives_the_leader_whatever_its_number(holds, reason):
    world = World()
    world.fleet.robot_gone("r0")
    restarted(world, {**raw_placement(robotSelectors=[{}]), "status": {"holds": holds}})
    assert world.held() == ({} if reason is None else {"uid-all": (reason, 1)})


@pytest.mark.parametrize("reasons", [["KindNotServed"], ["SourcesLost", "Restored"]])
def test_F5_2_a_hold_of_what_could_not_be_seen_outlives_leader_and_placement(reasons):
    world = World()
    status = {"holds": [{"reason": reason} for reason in reasons]}
    restarted(world, {**raw_placement(robotSelectors=[{}], terminating=True), "status": status})
    assert world.held() == {"uid-all": (reasons[-1], 10)}


def test_F5_2_a_loss_counts_once_the_kinds_that_it_depends_on_were_seen_alive_after_it():
    world = World()
    world.now += 1
    world.gone("r0")
    assert world.removal(after=31.0, alive=False) is Removal.UNKNOWN
    assert world.removal(after=31.0) is Removal.NOW


def test_F5_2_a_release_removes_nothing_that_its_id_did_not_show():
    world = World(robots=40)
    world.gone(*world.names[:9])
    world.now += 100
    world.gone("r9")
    [hold] = world.losses.holds()["uid-all"]
    assert len(world.losses.release("uid-all", hold.id)) == 9
    assert world.removal("r0") is Removal.NOW
    assert world.removal("r9") is Removal.LATER


def test_F5_2_at_a_start_a_placement_that_is_gone_is_held():
    world = World()
    world.fleet.placement_gone("site", "all")
    assert restarted(world).held() == {"uid-all": (Why.PLACEMENT_GONE, 10)}


ROBOTS = st.sampled_from(["r0", "r1", "r2", "r3"])
EVENTS = st.one_of(
    st.tuples(st.just("robot"), ROBOTS, st.booleans()),
    st.tuples(st.just("source"), st.just(""), st.booleans()),
    st.tuples(st.just("unlisted"), st.sampled_from([*Input, GOALS]), st.booleans()),
    st.tuples(st.just("served"), st.sampled_from([Input.ROBOTS, Input.PLACEMENTS, GOALS]), st.booleans()),
    st.tuples(st.just("placement"), st.sampled_from(["gone", "unreadable", "back"]), st.just(True)),
    st.tuples(st.just("kind"), st.just(""), st.booleans()),
    st.tuples(st.just("wait"), st.just(""), st.sampled_from([3, 20, 70])),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(EVENTS, max_size=20))
def test_F5_nothing_is_ever_removed_because_something_could_not_be_seen(events):
    world = World(robots=4)
    fleet = world.fleet
    gone: set[str] = set()
    for kind, name, value in events:
        match kind:
            case "robot":
                world.do(fleet.robot_shown(raw_robot(name)) if value else fleet.robot_gone(name))
                gone = gone - {name} if value else gone | {name}
            case "source":
                world.do(fleet.object_shown(goal(), GOALS) if value else fleet.object_gone(GOALS, "site", "dock"))
                gone = gone - {"source"} if value else gone | {"source"}
            case "unlisted":
                fleet.listed.discard(name)
                if value:
                    world.do(fleet.inputs_listed(name))
            case "served":
                world.do(fleet.served(name, is_served=value))
                world.losses.served(name, is_served=value, now=world.now)
            case "placement" if name == "gone":
                world.do(fleet.placement_gone("site", "all"))
            case "placement":
                world.do(fleet.placement_shown(raw_placement(robotSelectors=[{}] if name == "back" else "x")))
            case "kind":
                world.do(fleet.kind_shown(KIND) if value else fleet.kind_gone(GOALS))
            case _:
                world.now += value
        for each, row in fleet.rows.items():
            if world.losses.removal(each, world.now) in (Removal.NOW, Removal.UNMARK):
                assert each.robot in gone or "source" in gone
                assert fleet.is_ready(GOALS)
                assert not fleet.dead & {GOALS, Input.ROBOTS, Input.PLACEMENTS}
                assert fleet.index.kinds[GOALS].verdict is Verdict.PLACEABLE
                assert fleet.index.robots
                placement = fleet.index.placement(row.marks.placement)
                assert placement is not None
                assert not placement.problem


def test_F1_1_replicas_of_a_kind_that_was_not_listed_yet_are_no_loss():
    world = World()
    world.losses = Losses(world.fleet)
    world.gone("r0")
    assert world.removal(after=99) is Removal.UNKNOWN


def test_F1_1_a_kind_that_is_listed_anew_counts_its_losses_from_then():
    world = World()
    world.gone("r0")
    assert world.losses.is_lost(key("r0"))
    world.losses.unlisted(GOALS)
    assert not world.losses.is_lost(key("r0"))
    world.now += 100
    world.losses.started(world.now, {GOALS})
    assert [world.removal(after=after) for after in (29, 30)] == [Removal.LATER, Removal.NOW]


def test_F5_2_S5_5_what_the_next_list_of_a_kind_lacks_whose_CRD_went_is_held():
    world = World()
    world.losses.gone(GOALS)
    world.do(world.fleet.object_gone(GOALS, "site", "dock"))
    assert world.held() == {"uid-all": (Why.NOT_SERVED, 10)}


@pytest.mark.parametrize(
    ("conditions", "reason"), [([{"type": "Resolved", "reason": "NotServed"}], Why.NOT_SERVED), (["x"], None)]
)
def test_F5_2_what_is_lost_after_a_kind_was_not_served_is_held_by_a_new_leader(conditions, reason):
    world = World()
    world.fleet.robot_gone("r0")
    restarted(world, {**raw_placement(robotSelectors=[{}]), "status": {"conditions": conditions}})
    assert world.held() == ({} if reason is None else {"uid-all": (reason, 1)})
