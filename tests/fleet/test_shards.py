"""Where the replicas of a robot are, and what becomes of those on other shards (F10.2, F1.1, F5, G7.1)."""

from dataclasses import replace

import pytest

from crsyncer.core.content.annotations import ROOT, SHARD_LABEL
from crsyncer.core.model import Key
from crsyncer.fleet.domain import resolution
from crsyncer.fleet.domain.change import Input
from crsyncer.fleet.domain.fleet import Fleet
from crsyncer.fleet.domain.losses import Losses
from crsyncer.fleet.domain.replica_plan import Removal, new_body
from crsyncer.fleet.domain.returned.singletons import Singletons
from crsyncer.fleet.domain.shown.explain_document import fleet_explain
from crsyncer.fleet.domain.shown.fleet_facts import FleetFacts, Leader
from crsyncer.fleet.domain.shown.status_document import fleet_status
from crsyncer.fleet.domain.transport.keys import at, on_shard, split
from crsyncer.fleet.domain.transport.shards import is_foreign, misplaced
from crsyncer.fleet.domain.values import (
    Blocked,
    Create,
    Delete,
    Nothing,
    Reason,
    Rendering,
    ReplicaKey,
    ReplicaPlan,
    Robot,
    Verdict,
    Wait,
)
from tests.fleet.lossy import turns
from tests.fleet.made import GOALS, KIND, goal, key, placement, raw_placement, raw_robot

HOME = raw_robot("r1")
ON_B = raw_robot("r1", **{SHARD_LABEL: "b"})
ON_Z = raw_robot("r1", **{SHARD_LABEL: "z"})
KIND_B = KIND.at_shard("b")


def k(shard: str = "b", robot: str = "r1") -> ReplicaKey:
    return key(robot)._replace(shard=shard)


def a_fleet(*robots: dict, listed: tuple[str, ...] = (GOALS, f"b/{GOALS}"), **spec) -> Fleet:
    """Shards b and c beside the root; all goals for all robots."""
    fleet = Fleet(home="default", shards=[ROOT, "b", "c"])
    fleet.unread.clear()
    fleet.kind_shown(KIND)
    fleet.kind_shown(KIND_B)
    for raw in robots or [ON_B]:
        fleet.robot_shown(raw)
    fleet.placement_shown(raw_placement(robotSelectors=[{}], **spec))
    fleet.object_shown(goal(), GOALS)
    fleet.inputs_listed(*Input, *listed)
    return fleet


def show(fleet: Fleet, each: ReplicaKey, **metadata):
    """Have a replica on its shard, as it was written when its Robot was there."""
    robots = dict(fleet.index.robots)
    fleet.index.robots[each.robot] = Robot(each.robot, "u", {SHARD_LABEL: each.shard})
    wanted = fleet.wanted(each)
    fleet.index.robots.clear()
    fleet.index.robots.update(robots)
    assert wanted is not None
    assert isinstance(wanted.rendering, Rendering)
    body = new_body(wanted, wanted.rendering)
    body["metadata"] |= {"uid": f"uid-{each.shard}-{each.robot}", "resourceVersion": "1", **metadata}
    return fleet.object_shown(body, each.kind)


def decided(fleet: Fleet, each: ReplicaKey, removal: Removal = Removal.NOW) -> ReplicaPlan:
    return fleet.decide(each, fleet.wanted(each), removal=removal)


def test_a_kind_of_the_root_has_its_own_name_and_that_of_a_shard_another():
    assert [at(ROOT, GOALS), at("b", GOALS), on_shard(GOALS), on_shard(f"b/{GOALS}")] == [
        GOALS, f"b/{GOALS}", GOALS, f"{GOALS} on shard b",
    ]  # fmt: skip
    assert [split(GOALS), split(f"b/{GOALS}")] == [(ROOT, GOALS), ("b", GOALS)]


@pytest.mark.parametrize(
    ("robot", "foreign"),
    [(None, False), (Robot("r1", "u"), True), (Robot("r1", "u", {SHARD_LABEL: "b"}), False)],
)
def test_F10_2_a_replica_is_foreign_on_another_shard_than_its_Robots(robot, foreign):
    assert is_foreign(k("b"), robot) is foreign


@pytest.mark.parametrize(
    ("shard", "is_there", "others", "reason"),
    [
        ("b", False, [], None),
        ("b", False, [k("c", "r2")], None),
        ("b", False, [k("c")], Reason.OTHER_SHARD),
        ("b", True, [k("b"), k("c")], None),
        ("z", False, [], Reason.UNKNOWN_SHARD),
        ("z", False, [k("b")], Reason.UNKNOWN_SHARD),
    ],
)
def test_F10_2_G7_1_what_keeps_a_replica_from_a_shard(shard, is_there, others, reason):
    found = misplaced(k(shard), shards=[ROOT, "b", "c"], is_there=is_there, others=others)
    assert (None if found is None else found.reason) == reason


def test_F10_2_a_robot_without_the_label_is_on_the_root_and_one_with_it_on_its_shard():
    fleet = a_fleet(raw_robot("r0"), ON_B)
    assert fleet.all_keys() == {k(ROOT, "r0"), k()}
    assert isinstance(decided(fleet, k()), Create)
    assert isinstance(decided(fleet, k(ROOT, "r0")), Create)
    assert fleet.wanted(k(ROOT)) is None


def test_G4_1_a_shard_that_nobody_knows_blocks_and_is_named():
    plan = decided(a_fleet(ON_Z), k("z"))
    assert isinstance(plan, Blocked)
    assert plan.reason is Reason.UNKNOWN_SHARD
    assert f"{SHARD_LABEL} names z; the controller's --shard has b, c, root" in plan.message


@pytest.mark.parametrize(
    ("listed", "waits"), [((GOALS,), True), ((f"b/{GOALS}",), True), ((GOALS, f"b/{GOALS}"), False)]
)
def test_F1_1_a_kind_is_to_be_listed_at_the_root_and_on_the_shard(listed, waits):
    fleet = a_fleet(ON_B, listed=listed)
    assert isinstance(decided(fleet, k()), Wait if waits else Create)
    assert fleet.is_known(k()) is (GOALS in listed)
    assert fleet.is_unseen(k()) is (f"b/{GOALS}" not in listed)


def test_F1_1_a_list_of_a_shard_has_its_own_replicas_looked_at_and_one_of_the_root_all():
    fleet = a_fleet(raw_robot("r0"), ON_B, listed=())
    assert fleet.inputs_listed(f"b/{GOALS}").keys == set()
    assert fleet.inputs_listed(GOALS).keys == {k(ROOT, "r0"), k()}
    fleet.listed.discard(f"b/{GOALS}")
    assert fleet.inputs_listed(f"b/{GOALS}").keys == {k()}


def test_F1_1_of_a_shard_that_was_not_read_nothing_is_known():
    fleet = a_fleet(raw_robot("r1", **{SHARD_LABEL: "c"}))
    fleet.unread.add("c")
    plan = decided(fleet, k("c"))
    assert plan == Wait(f"shard c does not serve {GOALS}, or was not asked yet")
    assert fleet.is_unseen(k("c"))


@pytest.mark.parametrize("kind", [KIND, KIND_B], ids=["root", "shard"])
def test_F2_3_a_kind_is_to_be_placeable_at_the_root_and_on_the_shard(kind):
    fleet = a_fleet()
    fleet.kind_shown(replace(kind, verdict=Verdict.NOT_PLACEABLE, message="why"))
    assert decided(fleet, k()) == Wait("why")


def test_F2_3_a_kind_that_the_root_does_not_know_is_placed_nowhere():
    fleet = a_fleet()
    del fleet.index.kinds[GOALS]
    assert fleet.index.kind_of(k()) is None


def test_F2_3_F5_2_a_CRD_that_goes_on_a_shard_takes_its_replicas_along_and_loses_none():
    fleet = a_fleet(raw_robot("r0"), ON_B)
    show(fleet, k())
    show(fleet, k(ROOT, "r0"))
    change = fleet.kind_gone(f"b/{GOALS}")
    assert k() in change.keys
    assert set(fleet.rows) == {k(ROOT, "r0")}
    assert decided(fleet, k()) == Wait(f"the cloud does not serve {GOALS} on shard b")


def test_F3_7_a_name_is_taken_on_a_shard_alone():
    fleet = a_fleet(raw_robot("r0"), ON_B)
    other = goal(namespace="robot-r1")
    assert fleet.object_shown(other, f"b/{GOALS}").keys == {k()}
    assert isinstance(decided(fleet, k()), Blocked)
    assert isinstance(decided(fleet, k(ROOT, "r0")), Create)
    assert fleet.places(f"b/{GOALS}") == [Key("robot-r1", "dock")]
    assert fleet.object_gone(f"b/{GOALS}", "robot-r1", "dock").keys == {k()}
    assert isinstance(decided(fleet, k()), Create)


def test_section_1_an_object_of_a_shard_is_no_source():
    fleet = a_fleet(raw_robot("r0"))
    fleet.object_shown(goal("lift"), f"b/{GOALS}")
    assert {each.source_id for each in fleet.all_keys()} == {key("r0").source_id}


def test_F10_2_after_its_label_alone_has_changed_a_robot_has_what_it_had_and_nothing_anew():
    fleet = a_fleet()
    show(fleet, k())
    assert fleet.bound["uid-all"] == 1
    change = fleet.robot_shown(HOME)
    assert change.keys == {k(), k(ROOT)}
    assert change.rewritten == {("site/all", "r1")}
    plan = decided(fleet, k(ROOT))
    assert isinstance(plan, Blocked)
    assert plan.reason is Reason.OTHER_SHARD
    assert fleet.wanted(k()) is None
    losses = Losses(fleet)
    losses.started(1000.0, set(fleet.index.kinds))
    losses.changed(change, 1000.0)
    assert losses.removal(k(), 2000.0) is Removal.UNKNOWN
    assert losses.holds() == {}
    assert fleet.bound["uid-all"] == 0  # its placement may go (F5.3)
    assert fleet.robot_shown(ON_B).keys == {k(), k(ROOT)}
    assert fleet.bound["uid-all"] == 1
    assert decided(fleet, k()) == Nothing()


def test_F10_2_what_was_lost_before_a_robot_moved_does_not_go():
    fleet = a_fleet()
    show(fleet, k())
    losses = Losses(fleet)
    losses.started(1000.0, set(fleet.index.kinds))
    losses.changed(fleet.object_gone(GOALS, "site", "dock"), 1000.0)
    assert losses.is_lost(k())
    losses.changed(fleet.robot_shown(HOME), 1001.0)
    assert not losses.is_lost(k())
    losses.changed(fleet.robot_shown(ON_B), 1002.0)
    assert losses.is_lost(k())


def test_G7_2_a_replica_that_a_clone_has_goes_on_there_and_once_it_is_gone_elsewhere_all_may_be_made():
    fleet = a_fleet(HOME)
    show(fleet, k(ROOT))
    show(fleet, k())
    fleet.robot_shown(ON_B)
    assert decided(fleet, k()) == Nothing()
    change = fleet.object_gone(f"b/{GOALS}", "robot-r1", "dock")
    assert k() in change.keys
    assert isinstance(decided(fleet, k()), Blocked)
    assert fleet.object_gone(GOALS, "robot-r1", "dock").keys == {k(ROOT), k()}
    assert isinstance(decided(fleet, k()), Create)


def test_F10_2_without_the_Robot_a_replica_goes_where_it_is():
    fleet = a_fleet()
    show(fleet, k())
    losses = Losses(fleet)
    losses.started(1000.0, set(fleet.index.kinds))
    change = fleet.robot_gone("r1")
    assert change.keys == {k()}
    losses.changed(change, 1000.0)
    for name in (Input.ROBOTS, Input.PLACEMENTS, GOALS):
        losses.served(name, is_served=True, now=1000.0)
    assert losses.unproven(k()) == {f"b/{GOALS}"}
    losses.served(f"b/{GOALS}", is_served=True, now=1000.0)
    assert losses.removal(k(), 1031.0) is Removal.HELD  # there are no Robots
    fleet.robot_shown(raw_robot("r9"))
    losses.changed(fleet.robot_shown(raw_robot("r8")), 1031.0)
    assert isinstance(decided(fleet, k()), Delete)


@pytest.mark.parametrize(("shard", "held"), [("b", 1), ("c", 0), (ROOT, 1)])
def test_F5_2_what_a_restored_shard_has_lost_is_held_there_and_what_the_root_has_lost_everywhere(shard, held):
    fleet = a_fleet(ON_B, raw_robot("r2"))
    show(fleet, k())
    losses = Losses(fleet)
    losses.started(1000.0, set(fleet.index.kinds))
    losses.restored(is_restored=True, shard=shard)
    losses.changed(fleet.robot_gone("r1"), 1000.0)
    losses.restored(is_restored=False, shard=shard)
    assert [each.reason for holds in losses.holds().values() for each in holds] == ["Restored"] * held
    losses.restored(is_restored=True, shard=shard)
    assert losses.blindness()[0] == {shard}


@pytest.mark.parametrize(("name", "held"), [(f"b/{GOALS}", True), (GOALS, True), (f"c/{GOALS}", False)])
def test_F5_2_a_kind_is_to_be_alive_at_the_root_and_on_the_shard(name, held):
    fleet = a_fleet(ON_B, raw_robot("r2"))
    show(fleet, k())
    losses = Losses(fleet)
    losses.started(1000.0, set(fleet.index.kinds))
    losses.changed(fleet.robot_gone("r1"), 1000.0)
    losses.served(name, is_served=False, now=1001.0)
    fleet.served(name, is_served=False)
    assert bool(losses.holds()) is held


def test_F5_3_a_placement_that_goes_waits_for_kinds_and_shards_that_are_not_listed():
    fleet = a_fleet(ON_B, listed=(GOALS,))
    assert resolution.unlisted_kinds(fleet, placement(robotSelectors=[{}])) == []
    fleet.unread.add("c")
    going = placement(robotSelectors=[{}], terminating=True)
    assert resolution.unlisted_kinds(fleet, going) == [f"{GOALS} on shard b", "any kind on shard c"]
    assert resolution.unlisted_at(fleet, "b") == [GOALS]
    assert resolution.unlisted_at(fleet, "c") == []


def test_F5_3_a_terminating_replica_keeps_no_placement_whatever_its_shard():
    fleet = a_fleet()
    show(fleet, k(), deletionTimestamp="2026-11-09T00:00:00Z")
    fleet.robot_shown(HOME)
    fleet.robot_shown(ON_B)
    assert fleet.bound["uid-all"] == 0


def test_section_12_a_shard_that_is_away_is_told_and_makes_the_fleet_degraded():
    facts = FleetFacts([], {"r1": Robot("r1", "u", {SHARD_LABEL: "b"})}, [], Leader("me", 1000.0), 1000.0)
    assert fleet_status(facts)["health"] == "healthy"
    told = fleet_status(replace(facts, away={"b": "connection refused"}))
    assert told["health"] == "degraded"
    message = "shard b does not answer: connection refused; nothing of its 1 robot is written or removed"
    assert [(each["code"], each["message"]) for each in told["reasons"]] == [("ShardAway", message)]


def test_F1_1_all_is_listed_only_once_each_shard_is():
    fleet = a_fleet()
    assert resolution.all_listed(fleet)
    fleet.unread.add("c")
    assert not resolution.all_listed(fleet)
    assert not resolution.all_listed(a_fleet(ON_B, listed=(GOALS,)))


def test_F6_2_the_status_of_a_source_stays_while_its_robots_shard_cannot_be_seen():
    fleet = a_fleet(ON_B, listed=(GOALS,), statusReturn="Singleton")
    source = fleet.index.source_of(key("r1").source_id)
    assert source is not None
    assert Singletons(fleet).plan(source) == Wait("the replica on shard b cannot be seen")


@pytest.mark.parametrize(
    ("shard", "unread", "listed", "rows"),
    [
        ("b", "", True, {"b": ("current", "Current", "F3.4")}),
        ("b", "", False, {"b": ("blocked", "NotListed", "F1.1")}),
        ("c", "c", True, {"b": ("blocked", "OtherShard", "F10.2"), "c": ("blocked", "OtherShard", "F10.2")}),
        ("z", "", True, {"b": ("blocked", "OtherShard", "F10.2"), "z": ("blocked", "UnknownShard", "F10.2")}),
    ],
)
def test_F10_2_a_replica_is_explained_by_the_shard_that_it_is_on(shard, unread, listed, rows):
    fleet = a_fleet(raw_robot("r1", **{SHARD_LABEL: shard}), listed=(GOALS, f"b/{GOALS}") if listed else (GOALS,))
    fleet.unread.update(unread)
    show(fleet, k())
    assert explained(fleet) == rows


def test_F1_1_what_is_on_a_shard_that_was_not_read_is_not_known():
    fleet = a_fleet(raw_robot("r1", **{SHARD_LABEL: "c"}))
    assert explained(fleet) == {"c": ("blocked", "NotServed", "F2.3")}
    fleet.unread.add("c")
    assert explained(fleet) == {"c": ("blocked", "NotRead", "F1.1")}


def explained(fleet: Fleet) -> dict[str, tuple[str, str, str]]:
    """By shard: the verdict, reason and rule of r1's replica."""
    placed = fleet.index.placements["site/all"]
    content = fleet_explain(fleet, Losses(fleet), placed, "r1", turns=turns(fleet), now=1000.0)
    return {each["shard"]: (each["verdict"], each["reason"], each["rule"]) for each in content["replicas"]}
