"""Removal (F5): what goes at once, later, or is held; and never because something could not be seen."""

from dataclasses import replace

import pytest

from crsyncer.fleet.domain.change import Input
from crsyncer.fleet.domain.losses import Why
from crsyncer.fleet.domain.replica_plan import Removal
from crsyncer.fleet.domain.values import Verdict
from tests.fleet.lossy import World, show
from tests.fleet.made import GOALS, KIND, key, raw_placement, raw_robot


def test_F5_1_a_replica_goes_at_once_after_an_edit_and_after_a_deletion():
    world = World()
    assert world.removal() is Removal.UNKNOWN
    world.do(world.fleet.placement_shown(raw_placement(robotSelectors=[], robotNames=["r1"])))
    assert world.removal() is Removal.NOW
    assert world.removal("r1") is Removal.UNKNOWN
    world.do(world.fleet.placement_shown(raw_placement(robotNames=["r1"], terminating=True)))
    assert world.removal("r1") is Removal.NOW
    assert world.held() == {}


def test_F5_1_five_seconds_after_its_source_is_gone():
    world = World(sources=3)
    world.do(world.fleet.object_gone(GOALS, "site", "dock"))
    assert [world.removal(after=after) for after in (4.9, 5)] == [Removal.LATER, Removal.NOW]
    assert world.losses.due(key("r0")) == 1005


def test_F5_1_thirty_seconds_after_its_robot_is_gone_or_unselected():
    world = World(raw_placement(robotSelectors=[{"matchExpressions": [{"key": "off", "operator": "DoesNotExist"}]}]))
    world.gone("r0")
    world.do(world.fleet.robot_shown(raw_robot("r1", off="x")))
    for robot in ("r0", "r1"):
        assert [world.removal(robot, after=after) for after in (29.9, 30)] == [Removal.LATER, Removal.NOW]


def test_F5_1_what_comes_back_stays():
    world = World()
    world.gone("r0")
    world.do(world.fleet.robot_shown(raw_robot("r0")))
    assert world.removal(after=99) is Removal.UNKNOWN


def test_S5_5a_a_loss_counts_once_the_kinds_were_seen_alive_after_it():
    world = World()
    world.now += 1
    world.gone("r0")
    assert world.removal(after=60, alive=False) is Removal.UNKNOWN
    assert world.losses.unproven(key("r0")) == {Input.ROBOTS, Input.PLACEMENTS, GOALS}
    assert world.removal(after=60) is Removal.NOW


def test_F1_1_a_loss_waits_while_something_is_not_listed():
    world = World()
    world.gone("r0")
    world.fleet.listed.discard(Input.DECISIONS)
    assert world.removal(after=60) is Removal.UNKNOWN


@pytest.mark.parametrize(("lost", "held"), [(5, False), (6, True)])
def test_F5_2_more_than_five_and_a_fifth_of_all_robots_are_held(lost, held):
    world = World(robots=28)
    world.gone(*world.names[:lost])
    assert world.removal(after=99) is (Removal.HELD if held else Removal.NOW)
    assert world.held() == ({"uid-all": (Why.ROBOTS_LOST, lost)} if held else {})


def test_F5_2_losses_over_a_minute_apart_are_not_counted_together():
    world = World(robots=20)
    for name in world.names[:12]:
        world.gone(name)
        world.now += 12
    assert world.held() == {}


def test_F5_2_what_is_lost_while_a_hold_lasts_is_held_as_well():
    world = World(robots=20)
    world.gone(*world.names[:9])
    assert world.held() == {"uid-all": (Why.ROBOTS_LOST, 9)}


def test_F5_2_what_came_back_within_the_minute_was_not_lost():
    world = World()
    world.gone("r0")
    world.do(world.fleet.robot_shown(raw_robot("r0")))
    assert world.losses.held(key("r0")) is None
    world.gone(*world.names[1:6])
    assert world.held() == {}


def test_F5_2_a_hold_of_robots_holds_nothing_else():
    world = World(robots=20, sources=2)
    world.do(world.fleet.object_gone(GOALS, "site", "dock"))
    world.gone(*world.names[:7])
    assert world.held() == {"uid-all": (Why.ROBOTS_LOST, 14)}
    assert world.removal("r9", after=99) is Removal.NOW


def test_F5_2_a_placements_robots_are_counted_for_themselves():
    some = raw_placement("some", robotSelectors=[{"matchLabels": {"site": "hall"}}])
    world = World(some, robots=0)
    for number in range(40):
        world.do(world.fleet.robot_shown(raw_robot(f"r{number}", site="hall" if number < 10 else "yard")))
    for each in world.fleet.all_keys():
        show(world.fleet, each)
    for number in range(6):
        world.do(world.fleet.robot_shown(raw_robot(f"r{number}", site="yard")))
    assert world.held() == {"uid-some": (Why.PLACEMENT_ROBOTS_LOST, 6)}


@pytest.mark.parametrize(("robots", "held"), [(2, True), (1, False)])
def test_F5_2_the_last_two_robots_of_a_placement_are_held(robots, held):
    by = raw_placement(robotNames=[f"r{number}" for number in range(robots)])
    world = World(by)
    world.gone(*world.names[:robots])
    assert world.removal(after=99) is (Removal.HELD if held else Removal.NOW)


def test_F5_2_more_than_five_and_a_fifth_of_a_kinds_sources_are_held():
    world = World(robots=1, sources=20)
    for number in range(1, 7):
        world.do(world.fleet.object_gone(GOALS, "site", f"goal{number}"))
    assert world.held() == {"uid-all": (Why.SOURCES_LOST, 6)}


@pytest.mark.parametrize(("listed", "removal"), [(GOALS, Removal.HELD), ("", Removal.NOW)])
def test_F5_2_a_list_that_has_none_of_a_kinds_sources_left_holds_and_an_event_does_not(listed, removal):
    world = World()
    world.do(world.fleet.object_gone(GOALS, "site", "dock"))
    world.do(world.fleet.inputs_listed(GOALS), listed=listed)
    assert world.removal(after=99) is removal


def test_F5_2_an_edit_explains_only_what_still_exists():
    world = World()
    world.gone("r0")
    world.do(world.fleet.placement_shown(raw_placement(robotNames=["r1"])))
    assert world.removal("r0") is Removal.LATER
    assert world.removal("r2") is Removal.NOW


def test_F5_2_without_robots_nothing_goes_not_even_by_an_edit():
    world = World(robots=1)
    world.gone("r0")
    assert world.held() == {"uid-all": (Why.NO_ROBOTS, 1)}
    world.do(world.fleet.placement_shown(raw_placement(terminating=True)))
    assert world.removal(after=99) is Removal.HELD


def test_F5_2_without_robots_the_deletion_of_the_placement_ends_no_hold_of_many_either():
    world = World(robots=4)
    world.gone("r0", "r1", "r2")
    world.gone("r3")
    world.do(world.fleet.placement_shown(raw_placement(robotSelectors=[{}], terminating=True)))
    assert world.held() == {"uid-all": (Why.NO_ROBOTS, 4)}
    assert {world.removal(name, after=99) for name in world.names} == {Removal.HELD}
    world.do(world.fleet.robot_shown(raw_robot("r9")))
    assert {world.removal(name, after=99) for name in ("r0", "r1", "r2")} == {Removal.NOW}


@pytest.mark.parametrize("name", [GOALS, Input.ROBOTS, Input.PLACEMENTS])
def test_F5_2_deleting_our_own_crds_removes_nothing(name):
    world = World()
    world.do(world.fleet.served(name, is_served=False))
    world.losses.served(name, is_served=False, now=world.now)
    world.do(world.fleet.placement_shown(raw_placement(robotSelectors=[{}], terminating=True)))
    world.do(world.fleet.served(name, is_served=True))
    assert world.removal(after=99) is Removal.HELD
    assert world.held() == {"uid-all": (Why.NOT_SERVED, 10)}


def test_F5_2_a_crd_whose_deletion_is_seen_after_the_loss_holds_it():
    world = World()
    world.do(world.fleet.placement_shown(raw_placement(robotSelectors=[{}], terminating=True)))
    world.losses.served(Input.STRIPS, is_served=False, now=world.now)
    assert world.held() == {}
    world.losses.served(Input.PLACEMENTS, is_served=False, now=world.now)
    assert world.held() == {"uid-all": (Why.NOT_SERVED, 10)}


def test_F5_2_robots_that_the_next_list_lacks_after_their_crd_went_are_held_for_though_the_kind_is_served_again():
    world = World()
    world.losses.gone(Input.ROBOTS)
    world.alive()
    world.gone("r1")
    assert world.held() == {"uid-all": (Why.NOT_SERVED, 1)}
    world.do(world.fleet.inputs_listed(Input.ROBOTS), listed=Input.ROBOTS)
    world.gone("r2")
    assert world.held() == {"uid-all": (Why.NOT_SERVED, 1)}


def test_F2_3_replicas_of_a_kind_that_may_not_be_placed_go_with_their_placement_alone():
    world = World()
    world.do(world.fleet.kind_shown(replace(KIND, verdict=Verdict.NOT_PLACEABLE)))
    world.do(world.fleet.placement_shown(raw_placement(robotNames=["r1"])))
    assert world.removal() is Removal.UNKNOWN
    world.do(world.fleet.placement_shown(raw_placement(terminating=True)))
    assert world.removal() is Removal.NOW


def test_F2_3_replicas_of_a_kind_that_may_not_be_placed_are_not_held_for_they_stay():
    world = World(robots=2)
    world.do(world.fleet.kind_shown(replace(KIND, verdict=Verdict.NOT_PLACEABLE)))
    world.do(world.fleet.object_gone(GOALS, "site", "dock"), listed=GOALS)
    assert (world.held(), world.removal(after=100)) == ({}, Removal.UNKNOWN)
    world.do(world.fleet.kind_shown(KIND))
    assert list(world.held().values()) == [("SourcesLost", 2)]


def test_F5_2_that_losses_prove_something_again_is_a_change():
    world = World(robots=1)
    before = world.losses.blindness()
    world.do(world.fleet.placement_shown(raw_placement(robotNames=["r7"])))
    world.gone("r0")
    assert (world.removal(), world.losses.lost()) == (Removal.HELD, {key("r0")})
    assert (world.losses.lost(of="uid-all"), world.losses.lost(of="other")) == ({key("r0")}, set())
    assert world.losses.blindness() != before
    world.do(world.fleet.robot_shown(raw_robot("r7")))
    assert (world.removal(), world.losses.blindness()) == (Removal.NOW, before)


def test_F5_2_after_a_restore_all_losses_are_held():
    world = World()
    world.gone("r0")
    world.losses.restored(is_restored=True)
    world.gone("r1")
    world.losses.restored(is_restored=False)
    world.gone("r2")
    assert world.held() == {"uid-all": (Why.RESTORED, 2)}


def test_F5_2_a_placement_that_vanished_leaves_its_replicas():
    world = World()
    world.do(world.fleet.placement_gone("site", "all"))
    assert world.removal(after=99) is Removal.HELD
    assert world.held() == {"uid-all": (Why.PLACEMENT_GONE, 10)}
    hold = world.losses.holds()["uid-all"][0]
    assert len(world.losses.release("uid-all", hold.id)) == 10
    assert world.removal(after=99) is Removal.NOW


def test_F5_2_a_hold_ends_when_all_is_back_and_changes_its_id_with_what_it_holds():
    world = World(robots=20)
    world.gone(*world.names[:7])
    first = world.losses.holds()["uid-all"][0]
    world.do(world.fleet.robot_shown(raw_robot("r0")))
    second = world.losses.holds()["uid-all"][0]
    assert (len(second.uids), second.id != first.id) == (6, True)
    assert world.losses.release("uid-all", first.id) == set()
    assert world.losses.release("uid-none", first.id) == set()
    for name in world.names[1:7]:
        world.do(world.fleet.robot_shown(raw_robot(name)))
    assert world.held() == {}


def test_F5_2_a_release_removes_exactly_what_its_id_showed():
    world = World(robots=30)
    world.gone(*world.names[:8])
    hold = world.losses.holds()["uid-all"][0]
    assert world.losses.release("uid-all", hold.id) == {key(name) for name in world.names[:8]}
    assert world.removal() is Removal.NOW
    world.gone(*world.names[8:16])
    assert world.removal("r9", after=99) is Removal.HELD
    world.losses.served(GOALS, is_served=False, now=world.now)
    world.losses.restored(is_restored=True)
    assert world.removal() is Removal.NOW


def test_F5_2_the_deletion_of_the_placement_ends_a_hold_of_many():
    world = World(robots=30)
    world.gone(*world.names[:8])
    assert world.held() == {"uid-all": (Why.ROBOTS_LOST, 8)}
    world.do(world.fleet.placement_shown(raw_placement(robotSelectors=[{}], terminating=True)))
    assert world.held() == {}
    assert world.removal() is Removal.NOW


def test_F5_4_keep_replicas_takes_away_the_marks_only():
    world = World(raw_placement(robotSelectors=[{}], deletionPolicy="KeepReplicas"))
    world.gone("r0")
    assert world.removal(after=30) is Removal.UNMARK


def test_a_placement_that_cannot_be_read_removes_nothing():
    world = World()
    world.gone("r0")
    world.do(world.fleet.placement_shown(raw_placement(robotSelectors="x")))
    assert world.removal(after=99) is Removal.UNKNOWN


def test_a_replica_that_terminates_is_not_lost():
    world = World()
    show(world.fleet, key("r0"), deletionTimestamp="2026-11-01T00:00:00Z")
    world.gone("r0")
    assert world.removal(after=99) is Removal.UNKNOWN
