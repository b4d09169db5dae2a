"""Shared mode: which copies are wanted on shards, and what becomes of them (F10.3)."""

import pytest

from crsyncer.core.content.annotations import SHARED
from crsyncer.fleet.domain.change import Input
from crsyncer.fleet.domain.fleet import Fleet
from crsyncer.fleet.domain.losses import Losses
from crsyncer.fleet.domain.read_objects import placement_of, row_of
from crsyncer.fleet.domain.replica_plan import Removal
from crsyncer.fleet.domain.resolution import all_listed, robot_faults, unlisted_at, unlisted_kinds, unresolved
from crsyncer.fleet.domain.seats import Seats, seat_of
from crsyncer.fleet.domain.transport.transports import TRANSPORTS
from crsyncer.fleet.domain.values import (
    Blocked,
    Create,
    PlacedKind,
    Rendering,
    SourceKey,
    Target,
    Verdict,
    Wait,
)
from tests.fleet.made import GOALS, goal, goal_id, raw_placement, raw_robot
from tests.fleet.shared_made import AT_B, COPY, KIND, STATUSES, copied, made, raw_shared, view


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({}, ""),
        ({"templates": [], "overrides": [], "expand": False}, ""),
        ({"templates": [{"name": "t", "group": "", "resource": "configmaps", "object": {}}]}, "spec.templates"),
        ({"overrides": [{"steps": [{"path": "/spec/x", "remove": True}]}]}, "spec.overrides"),
        ({"expand": True}, "spec.expand"),
        ({"readyWhen": "true", "rollout": {}}, "spec.rollout"),
    ],
)
def test_what_mode_shared_excludes_makes_a_placement_unreadable(spec, problem):
    found = placement_of(raw_shared(**spec))
    assert found.problem == (f"spec.mode is Shared, which does not allow {problem}" if problem else "")
    assert found.shared is not bool(problem)
    assert not placement_of(raw_placement()).shared
    assert 'spec.target is "Shared"' in placement_of(raw_placement(target="Shared")).problem


@pytest.mark.parametrize(
    ("verdict", "is_shared", "replica", "shared"),
    [
        (Verdict.PLACEABLE, False, None, Verdict.NOT_PLACEABLE),
        (Verdict.PLACEABLE, True, Verdict.NOT_PLACEABLE, None),
        (Verdict.NOT_PLACEABLE, False, Verdict.NOT_PLACEABLE, Verdict.NOT_PLACEABLE),
        (Verdict.NOT_SERVED, True, Verdict.NOT_SERVED, Verdict.NOT_SERVED),
    ],
)
def test_F2_3_a_kind_is_placed_in_one_mode(verdict, is_shared, replica, shared):
    kind = PlacedKind(GOALS, "", "goals", "Goal", "v1", namespaced=True, verdict=verdict, shared=is_shared, message="m")
    found = [kind.problem_for(shared=each) for each in (False, True)]
    assert [each and each[0] for each in found] == [replica, shared]


def test_F10_3_each_other_shard_has_one_copy_whichever_robots_are_selected():
    fleet = made(raw_shared(robotSelectors=[]))
    assert list(fleet.index.keys("site/all")) == [COPY]
    wanted = fleet.wanted(COPY)
    assert wanted is not None
    assert (wanted.namespace, wanted.name, wanted.robot) == ("site", "dock", "")
    assert isinstance(wanted.rendering, Rendering)
    assert wanted.rendering.annotations == {SHARED: "uid-all"}
    assert isinstance(fleet.decide(COPY, wanted, removal=Removal.UNKNOWN), Create)


def test_F10_3_nothing_is_written_at_the_root_and_for_no_single_robot():
    fleet = made()
    for key in (COPY._replace(shard="root"), COPY._replace(shard="c"), view(), view("r0", "root")):
        assert fleet.wanted(key) is None
    assert list(fleet.index.returned("site/all", ["r0", "rb"])) == [view("r0", "root"), view()]


def test_F10_3_a_copy_on_another_shard_is_no_reason_not_to_make_one():
    fleet = Fleet(home="default", shards=("root", "b", "c"))
    fleet.placement_shown(raw_shared())
    fleet.object_shown(goal(), GOALS)
    assert {each.shard for each in fleet.index.keys("site/all")} == {"b", "c"}
    fleet.kind_shown(AT_B)
    fleet.kind_shown(KIND)
    fleet.object_shown(copied(fleet), f"b/{GOALS}")
    assert fleet.misplaced(COPY._replace(shard="c")) is None


def test_F3_2_a_copy_is_known_by_both_marks_and_the_name_of_its_source():
    fleet = made()
    raw = copied(fleet)
    assert raw["metadata"]["labels"] == {"crsyncer.cloudrobotics.com/source": goal_id()}
    fleet.object_shown(raw, f"b/{GOALS}")
    assert fleet.rows.keys() == {COPY}
    fleet.object_gone(f"b/{GOALS}", "site", "dock")
    for name in ("other", "dock-rb"):
        assert row_of(copied(fleet, name=name), GOALS) is None
    assert (
        row_of(copied(fleet, labels={**raw["metadata"]["labels"], "cloudrobotics.com/robot-name": "rb"}), GOALS) is None
    )


def test_F3_1_a_cluster_scoped_copy_has_no_namespace():
    assert TRANSPORTS[Target.SHARED].address(SourceKey(GOALS, "", "dock"), "", namespaced=False) == ("", "dock")
    fleet = made(raw_shared(namespace="site"))
    fleet.kind_shown(PlacedKind(GOALS, "lab.example.com", "goals", "Goal", "v1", namespaced=False, shared=True))
    assert list(fleet.index.keys("site/all")) == []


def test_F10_3_an_object_at_the_root_that_bears_the_marks_of_a_copy_is_neither_written_nor_removed():
    fleet = made()
    raw = copied(fleet)
    fleet.object_shown(raw, GOALS)
    assert fleet.rows == {}
    assert fleet.index.sources == {}


def test_F3_7_an_object_of_that_name_on_a_shard_is_told():
    fleet = made()
    change = fleet.object_shown(goal(), f"b/{GOALS}")
    assert change.keys == {COPY}
    plan = fleet.decide(COPY, fleet.wanted(COPY), removal=Removal.UNKNOWN)
    assert isinstance(plan, Blocked)
    assert "is not of this source" in plan.message


def test_F10_3_the_copies_of_a_shard_are_counted_together():
    fleet, seats = made(), Seats()
    wanted = fleet.wanted(COPY)
    assert wanted is not None
    plan = fleet.decide(COPY, wanted, removal=Removal.UNKNOWN)
    assert seats.put(COPY, seat_of(COPY, wanted, None, plan, None)) == {("site/all", "/b")}
    assert (seats.total("site/all", "/b").due, seats.total("site/all", "rb").replicas) == (1, 0)


def test_F5_2_robots_that_are_lost_hold_no_copy_but_many_sources_do():
    fleet = made()
    losses = Losses(fleet)
    losses.started(0.0, {GOALS, f"b/{GOALS}"})
    losses.changed(fleet.object_shown(copied(fleet), f"b/{GOALS}"), 1.0)
    for robot in ("r0", "rb"):
        losses.changed(fleet.robot_gone(robot), 2.0)
    assert losses.holds() == {}
    fleet.robot_shown(raw_robot("r0"))
    for name in (Input.ROBOTS, Input.PLACEMENTS, GOALS, f"b/{GOALS}"):
        losses.served(name, is_served=True, now=9.0)
    losses.changed(fleet.object_gone(GOALS, "site", "dock"), 3.0)
    assert [losses.removal(COPY, now) for now in (4.0, 8.0)] == [Removal.LATER, Removal.NOW]
    losses.changed(fleet.inputs_listed(GOALS), 4.0, listed=GOALS)
    assert [each.reason for each in losses.holds()["uid-all"]] == ["SourcesLost"]


def test_F2_3_copies_of_a_kind_of_the_other_mode_stay():
    fleet = made()
    losses = Losses(fleet)
    losses.started(0.0, {GOALS, f"b/{GOALS}"})
    losses.changed(fleet.object_shown(copied(fleet), f"b/{GOALS}"), 1.0)
    fleet.kind_shown(PlacedKind(GOALS, "lab.example.com", "goals", "Goal", "v1", namespaced=True))
    fleet.kind_shown(PlacedKind(GOALS, "lab.example.com", "goals", "Goal", "v1", namespaced=True, shard="b"))
    trouble = unresolved(fleet, fleet.index.placements["site/all"], home="default")
    assert trouble is not None
    assert (trouble.reason, "is filtered by robot name" in trouble.message) == ("NotPlaceable", True)
    plan = fleet.decide(COPY, fleet.wanted(COPY), removal=Removal.UNKNOWN)
    assert isinstance(plan, Wait)
    assert "is filtered by robot name" in plan.reason
    losses.changed(fleet.placement_shown(raw_shared(resources=[])), 2.0)
    assert losses.removal(COPY, 60.0) is Removal.UNKNOWN
    assert losses.holds() == {}


def test_F1_1_a_kind_for_mode_shared_that_nobody_places_may_have_copies_and_holds_no_robot_back():
    fleet = made(raw_placement(resources=[]))
    assert all_listed(fleet)
    fleet.listed -= {GOALS, f"b/{GOALS}"}
    assert not all_listed(fleet)
    assert unlisted_at(fleet, "b") == []
    fleet.placement_shown(raw_shared("other"))
    assert unlisted_at(fleet, "b") == [GOALS]
    assert unlisted_kinds(fleet, fleet.index.placements["site/other"]) == [GOALS]
    fleet.placement_shown(raw_placement(terminating=True))
    assert unlisted_kinds(fleet, fleet.index.placements["site/all"]) == [GOALS, f"{GOALS} on shard b"]


def test_F1_1_the_statuses_of_the_root_are_listed_before_a_placement_is_judged():
    fleet = made()
    placement = fleet.index.placements["site/all"]
    assert unlisted_kinds(fleet, placement) == []
    plural, _, group = STATUSES.partition(".")
    fleet.kind_shown(
        PlacedKind(STATUSES, group, plural, "RobotObjectStatus", "v1", True, verdict=Verdict.NOT_PLACEABLE)
    )
    assert fleet.statuses.are_unseen("root")
    assert unlisted_kinds(fleet, placement) == [STATUSES]
    fleet.statuses.listed.add("root")
    assert unlisted_kinds(fleet, placement) == []


def test_F10_2_a_robot_on_a_shard_that_nobody_knows_is_told():
    fleet = made()
    fleet.robot_shown(raw_robot("rx", **{"fleet.crsyncer.cloudrobotics.com/shard": "x"}))
    [fault] = robot_faults(fleet, fleet.index.placements["site/all"])
    assert (fault.robot, fault.reason) == ("rx", "UnknownShard")
    assert "names x; the controller's --shard has b, root" in fault.message
