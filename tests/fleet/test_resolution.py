"""Whether a placement can be followed, and what is wrong with its robots (F2.3, section 7)."""

from dataclasses import replace

import pytest

from crsyncer.fleet.domain import resolution
from crsyncer.fleet.domain.rollout.robot_states import Unresolved
from crsyncer.fleet.domain.values import Reason, Verdict
from tests.fleet.made import GOALS, KIND, placement, raw_placement, raw_robot, ready_fleet

TEMPLATES = [{"name": "t", "group": "lab.example.com", "resource": "maps", "object": {"spec": {}}}]


def test_F2_3_a_placement_of_a_kind_that_may_be_placed_is_resolved():
    assert resolution.unresolved(ready_fleet(), placement(), home="default") is None


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (replace(KIND, verdict=Verdict.NOT_SERVED, message="why"), Verdict.NOT_SERVED),
        (replace(KIND, verdict=Verdict.NOT_PLACEABLE, message="why"), Verdict.NOT_PLACEABLE),
        (replace(KIND, namespaced=False), "NotAllowed"),
    ],
)
def test_F2_3_what_cannot_be_placed_is_told(kind, reason):
    fleet = ready_fleet()
    fleet.kind_shown(kind)
    found = resolution.unresolved(fleet, placement(), home="default")
    assert found is not None
    assert found.reason == reason


def test_F2_2_a_cluster_scoped_kind_is_placed_from_the_controllers_namespace():
    fleet = ready_fleet()
    fleet.kind_shown(replace(KIND, namespaced=False))
    assert resolution.unresolved(fleet, placement(namespace="default"), home="default") is None


def test_F2_3_a_kind_that_nobody_knows_is_not_served():
    found = resolution.unresolved(ready_fleet(), placement(templates=TEMPLATES), home="default")
    assert found == Unresolved("NotServed", "the cloud does not serve maps.lab.example.com")


def test_a_placement_that_cannot_be_read_says_why():
    found = resolution.unresolved(ready_fleet(), placement(robotSelectors="x"), home="default")
    assert found is not None
    assert found.reason == "Unreadable"


def test_F7_a_bad_expression_is_told_where_nothing_worse_is():
    found = resolution.unresolved(ready_fleet(), placement(), home="default", problem="spec.readyWhen: line 1")
    assert found == Unresolved("BadExpression", "spec.readyWhen: line 1")
    worse = resolution.unresolved(ready_fleet(), placement(templates=TEMPLATES), home="default", problem="x")
    assert worse is not None
    assert worse.reason == "NotServed"


def test_F1_1_kinds_that_cannot_be_listed_are_named_and_the_counts_stay():
    fleet = ready_fleet()
    assert resolution.unlisted_kinds(fleet, placement()) == []
    fleet.listed.discard(GOALS)
    unlisted = resolution.unlisted_kinds(fleet, placement())
    assert resolution.not_listed(unlisted) == Unresolved("NotListed", f"the controller cannot list {GOALS}")
    stored = replace(placement(), status={"counts": {"ready": 3, "failed": "x"}})
    assert resolution.stored_counts(stored)["ready"] == 3
    assert resolution.stored_counts(stored)["failed"] == 0
    assert resolution.stored_counts(placement())["ready"] == 0


def test_F5_3_a_placement_that_terminates_waits_for_every_kind_that_may_have_its_replicas():
    fleet = ready_fleet()
    other = replace(KIND, resource="maps.lab.example.com", plural="maps")
    fleet.kind_shown(other)
    assert resolution.unlisted_kinds(fleet, placement()) == []
    leaving = placement(terminating=True)
    assert resolution.unlisted_kinds(fleet, leaving) == ["maps.lab.example.com"]
    fleet.kind_gone("maps.lab.example.com")
    assert resolution.unlisted_kinds(fleet, leaving) == []
    fleet.listed.discard(GOALS)
    fleet.kind_shown(replace(KIND, verdict=Verdict.NOT_SERVED))
    assert resolution.unlisted_kinds(fleet, leaving) == [GOALS]
    fleet.kind_shown(replace(other, verdict=Verdict.NOT_PLACEABLE))
    assert resolution.unlisted_kinds(fleet, leaving) == [GOALS]


def test_bad_and_unknown_robots_are_named():
    fleet = ready_fleet(raw_placement(robotSelectors=[{}], robotNames=["ghost"]))
    fleet.robot_shown(raw_robot("Bad.Name"))
    fleet.robot_shown(raw_robot("x" * 58))
    [shown] = fleet.index.placements.values()
    found = [(each.robot, each.reason) for each in resolution.robot_faults(fleet, shown)]
    assert found == [
        ("ghost", Reason.UNKNOWN_ROBOT),
        ("Bad.Name", Reason.BAD_ROBOT_NAME),
        ("x" * 58, Reason.BAD_ROBOT_NAME),
    ]
    [chosen] = ready_fleet(raw_placement(robotNames=["r1"])).index.placements.values()
    assert list(resolution.robot_faults(fleet, chosen)) == []


def test_F2_3_the_first_problems_of_a_placement_are_named_and_how_many_more_there_are():
    templates = [{**TEMPLATES[0], "name": f"t{number}", "resource": f"maps{number}"} for number in range(5)]
    found = resolution.unresolved(ready_fleet(), placement(templates=templates), home="default", problem="bad")
    assert found is not None
    first = "; ".join(f"the cloud does not serve maps{number}.lab.example.com" for number in range(3))
    assert found == Unresolved("NotServed", f"{first} and 3 more")
    assert resolution.not_listed([f"k{number}" for number in range(7)]).message.endswith("k3, k4 and 2 more")
