"""Whether a placement can be followed, and what is wrong with its robots (F2.3, section 7)."""

from dataclasses import replace

import pytest

from crsyncer.core.content.annotations import SHARD_LABEL
from crsyncer.fleet.domain import resolution
from crsyncer.fleet.domain.fleet import Fleet
from crsyncer.fleet.domain.read_objects import placement_of
from crsyncer.fleet.domain.rollout.robot_states import Unresolved
from crsyncer.fleet.domain.values import Reason, Verdict
from tests.fleet.made import GOALS, KIND, goal, key, placement, raw_placement, raw_robot, ready_fleet

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


AT_B = KIND.at_shard("b")
REFUSED = replace(KIND, verdict=Verdict.NOT_PLACEABLE, message="m").at_shard("b")


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        (None, None),
        (AT_B, None),
        (replace(AT_B, verdict=Verdict.NOT_SERVED, message="why"), Unresolved("NotServed", "why")),
        (REFUSED, Unresolved("NotPlaceable", "shard b: m")),
        (replace(KIND, shared=True, message="m").at_shard("b"), Unresolved("NotPlaceable", "shard b: m")),
        (
            replace(AT_B, namespaced=False),
            Unresolved("NotPlaceable", f"shard b: {GOALS} is cluster-scoped there, which it is not at the root"),
        ),
    ],
)
def test_F2_3_a_kind_that_the_shard_of_a_robot_does_not_serve_alike_is_told(kind, found):
    placed = raw_placement(robotSelectors=[{}])
    fleet = Fleet(home="default", shards=["root", "b"])
    for each in (KIND, kind):
        if each is not None:
            fleet.kind_shown(each)
    fleet.placement_shown(placed)
    assert resolution.unresolved(fleet, placement_of(placed), home="default") is None
    fleet.robot_shown(raw_robot("r1", **{SHARD_LABEL: "b"}))
    assert resolution.unresolved(fleet, placement_of(placed), home="default") == found
    assert resolution.lacks_kind(fleet, "b", placement_of(placed)) is (found is not None)


def test_F10_3_a_kind_that_is_filtered_on_any_shard_is_told_of_a_shared_placement():
    placed = raw_placement(mode="Shared")
    fleet = Fleet(home="default", shards=["root", "b"])
    fleet.kind_shown(replace(KIND, shared=True))
    fleet.kind_shown(AT_B)
    fleet.placement_shown(placed)
    found = resolution.unresolved(fleet, placement_of(placed), home="default")
    assert found is not None
    assert found.message.startswith(f"{GOALS} on shard b is filtered by robot name")


def test_F2_3_of_a_cluster_scoped_kind_that_is_namespaced_on_a_shard_nothing_is_written_there():
    fleet = Fleet(home="site", shards=["root", "b"])
    fleet.kind_shown(replace(KIND, namespaced=False))
    fleet.kind_shown(AT_B)
    found = fleet.index.kind_of(key("r1")._replace(shard="b"))
    assert found is not None
    assert found.verdict is Verdict.NOT_PLACEABLE
    assert found.message == f"shard b: {GOALS} is namespaced there, which it is not at the root"


def test_a_placement_that_cannot_be_read_says_why():
    found = resolution.unresolved(ready_fleet(), placement(robotSelectors="x"), home="default")
    assert found is not None
    assert found.reason == "Unreadable"


def test_F3_8_a_placement_that_leaves_no_room_for_its_status_is_too_large():
    large = placement(templates=[TEMPLATES[0] | {"object": {"spec": {"text": "x" * (1 << 20)}}}])
    found = resolution.unresolved(ready_fleet(), large, home="default")
    assert found is not None
    assert found.reason == "TooLarge"


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


def test_F2_3_controllers_in_the_cloud_that_act_on_a_kind_are_told_by_the_condition():
    kind = replace(KIND, resource="jobs.batch", group="batch", plural="jobs", kind="Job")
    fleet, job = ready_fleet(), goal(apiVersion="batch/v1", kind="Job")
    fleet.kind_shown(kind)
    entries = [{"group": "batch", "resource": "jobs", "selectors": [{}]}]
    fleet.placement_shown(raw_placement("jobs", robotSelectors=[{}], resources=entries))
    fleet.object_shown(job, "jobs.batch")
    shown = fleet.index.placements["site/jobs"]
    assert resolution.warning(fleet, shown) == ""
    acted = {**job, "status": {"active": 1}}
    assert fleet.object_shown(acted, "jobs.batch").placements == {"site/jobs"}
    assert resolution.warning(fleet, shown).startswith("controllers in the cloud act on objects of jobs.batch")
    assert fleet.object_shown(acted, "jobs.batch").placements == set()
    assert resolution.warning(fleet, replace(shown, singleton=True)) == "", "we wrote that status"
    fleet.object_shown({**goal(), "status": {"phase": "Ready"}}, GOALS)
    assert resolution.warning(fleet, placement()) == "", "a robot's status"


def test_bad_and_unknown_robots_are_named():
    fleet = ready_fleet(raw_placement(robotSelectors=[{}], robotNames=["ghost", "No_Name"]))
    fleet.robot_shown(raw_robot("Bad.Name"))
    fleet.robot_shown(raw_robot("x" * 58))
    [shown] = fleet.index.placements.values()
    found = [(each.robot, each.reason) for each in resolution.robot_faults(fleet, shown)]
    assert found == [
        ("No_Name", Reason.BAD_ROBOT_NAME),
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
