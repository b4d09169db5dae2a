"""The document of `crsyncer fleet explain`: each verdict with its reason, rule and message."""

from dataclasses import replace
from typing import Any

import pytest

from crsyncer.core.model import Json
from crsyncer.core.reports.robot_report import applied_digest
from crsyncer.fleet.domain.change import Input
from crsyncer.fleet.domain.names import SOURCE
from crsyncer.fleet.domain.rollout.decisions import decision_of
from crsyncer.fleet.domain.shown.explain_document import fleet_explain
from crsyncer.fleet.domain.values import Verdict
from tests.fleet.lossy import World, reported, show, turns
from tests.fleet.made import GOALS, KIND, goal, goal_id, key, raw_placement, raw_robot

ALL: Any = {"robotSelectors": [{}]}
WRITTEN = applied_digest([("uid-robot-r0-dock", 1)])


def explain(world: World, robot: str = "r0", *, offline: bool = False, state: str = "", applied: str = "") -> Json:
    placement = world.fleet.index.placements["site/all"]
    reports = reported(*([robot] if applied else []), offline=(robot,) if offline else (), applied=applied)
    raw = {"metadata": {"name": "all-0", "namespace": "site"}, "placement": {"name": "all", "uid": "uid-all"}}
    decisions = [decision_of(raw | {"robots": [{"name": robot, "state": state}]})]
    seen = turns(world.fleet, reports, decisions)
    return fleet_explain(world.fleet, world.losses, placement, robot, turns=seen, now=world.now)


def verdict(content: Json, source: str = "site/dock") -> tuple[str, str, str]:
    [found] = [each for each in content["replicas"] if each["source"] == source]
    return found["verdict"], found["reason"], found["rule"]


def test_what_is_as_it_shall_be_is_current():
    content = explain(World(robots=1), state="Ready", applied=WRITTEN)
    assert content["placement"] == {"namespace": "site", "name": "all", "uid": "uid-all"}
    assert (content["robot"], content["selected"], content["state"]) == ("r0", True, "Ready")
    [found] = content["replicas"]
    assert verdict(content) == ("current", "Current", "F3.4")
    assert (found["namespace"], found["name"], found["governedBy"]) == ("robot-r0", "dock", "site/all")
    assert (found["sourceId"], found["acked"], found["uid"]) == (goal_id(), True, "uid-robot-r0-dock")
    assert found["stamp"] == found["written"] is not None


def test_F6_4_what_is_not_there_is_missing_or_deferred():
    world = World(raw_placement(**ALL, readyWhen="true", rollout={}), robots=1)
    world.do(world.fleet.robot_shown(raw_robot("r1")))
    content = explain(world, "r1", applied=applied_digest([]))
    assert verdict(content) == ("missing", "NotWritten", "F6.4")
    [found] = content["replicas"]
    assert (found["uid"], found["written"], found["acked"]) == (None, None, None)
    assert "turn in the rollout" in found["message"]
    assert verdict(explain(world, "r1", offline=True)) == ("deferred", "NotWritten", "F6.4")


def test_F3_4_what_has_another_stamp_is_due_or_deferred():
    world = World(raw_placement(**ALL, readyWhen="true", rollout={}), robots=1)
    world.do(world.fleet.object_shown(goal(spec={"x": 2}), GOALS))
    assert verdict(explain(world)) == ("due", "OtherStamp", "F3.4")
    assert verdict(explain(world, offline=True)) == ("deferred", "OtherStamp", "F3.4")


def test_F3_5_what_somebody_changed_is_due():
    world = World(robots=1)
    row = world.fleet.rows[key("r0")]
    world.fleet.rows[key("r0")] = replace(row, content="changed")
    assert verdict(explain(world)) == ("due", "Drifted", "F3.5")


def test_F2_4_what_another_placement_governs_is_told():
    world = World(robots=1)
    world.do(world.fleet.placement_shown(raw_placement("old", created="2026-01-01T00:00:00Z", **ALL)))
    content = explain(world)
    assert verdict(content) == ("due", "OtherPlacement", "F2.4")
    assert content["replicas"][0]["governedBy"] == "site/old"


@pytest.mark.parametrize(
    ("spec", "data", "reason", "rule"),
    [
        ({"expand": True}, {"x": "{{ .none }}"}, "RenderFailed", "F4.4"),
        ({}, {"x": "x" * (600 << 10)}, "TooLarge", "F3.8"),
    ],
)
def test_what_cannot_be_rendered_is_blocked(spec, data, reason, rule):
    world = World(raw_placement(**ALL, **spec), robots=1)
    world.do(world.fleet.object_shown(goal(spec=data), GOALS))
    content = explain(world)
    assert verdict(content) == ("blocked", reason, rule)
    assert content["replicas"][0]["stamp"] is None


def test_F3_7_a_name_that_is_taken_says_how_it_is_handed_over():
    world = World(robots=1)
    world.do(world.fleet.object_gone(GOALS, "robot-r0", "dock"))
    world.do(world.fleet.object_shown(goal(namespace="robot-r0"), GOALS))
    content = explain(world)
    assert verdict(content) == ("blocked", "NameTaken", "F3.7")
    assert f"{SOURCE}={goal_id()}" in content["replicas"][0]["message"]


def test_F3_7_a_name_that_another_replica_has_is_taken():
    template = {"name": "dock", "group": "lab.example.com", "resource": "goals", "object": {"spec": {"y": 1}}}
    world = World(robots=1)
    world.do(world.fleet.placement_shown(raw_placement("p", **ALL, resources=[], templates=[template])))
    placement = world.fleet.index.placements["site/p"]
    found = fleet_explain(world.fleet, world.losses, placement, "r0", turns=turns(world.fleet), now=world.now)
    assert verdict(found, "p/dock") == ("blocked", "NameTaken", "F3.7")


@pytest.mark.parametrize(("reason", "rule"), [("Refused", "F3.3"), ("Contested", "F3.5"), ("Else", "F6.4")])
def test_what_the_controller_could_not_write_is_blocked_as_its_status_says(reason, rule):
    error = {"robot": "r0", "source": "site/dock", "reason": reason, "message": "no"}
    raw = raw_placement(**ALL) | {"status": {"errors": [error, {**error, "robot": "r1"}]}}
    world = World(raw, robots=2)
    assert verdict(explain(world)) == ("current", "Current", "F3.4"), "an old error of what is well says nothing"
    world.do(world.fleet.object_shown(goal(spec={"x": 2}), GOALS))
    assert verdict(explain(world)) == ("blocked", reason, rule)


def test_F2_3_a_kind_that_is_not_to_be_placed_blocks():
    world = World(robots=1)
    world.do(world.fleet.kind_shown(replace(KIND, verdict=Verdict.NOT_PLACEABLE, message="it says nothing")))
    content = explain(world)
    assert verdict(content) == ("blocked", "NotPlaceable", "F2.3")
    assert content["replicas"][0]["message"] == "it says nothing"
    world.do(world.fleet.object_gone(GOALS, "site", "dock"))
    assert verdict(explain(world)) == ("blocked", "NotSelected", "F5.2")


def test_a_placement_that_cannot_be_followed_blocks():
    world = World(robots=1)
    world.do(world.fleet.placement_shown(raw_placement(robotSelectors=1)))
    assert verdict(explain(world)) == ("blocked", "Unreadable", "F2.1")


def test_F4_2_strips_that_are_not_served_block():
    world = World(robots=1)
    world.do(world.fleet.served(Input.STRIPS, is_served=False))
    assert verdict(explain(world)) == ("blocked", "KindNotServed", "F4.2")


def test_F1_1_a_kind_that_is_not_listed_blocks():
    world = World(robots=1)
    world.fleet.listed.discard(GOALS)
    assert verdict(explain(world)) == ("blocked", "NotListed", "F1.1")


def test_F6_4_a_replica_that_terminates_is_waited_for():
    world = World(robots=1)
    show(world.fleet, key("r0"), deletionTimestamp="2026-01-01T00:00:00Z")
    assert verdict(explain(world)) == ("deferred", "Terminating", "F6.4")


def test_F5_1_what_nobody_wants_goes():
    world = World(robots=10, sources=10)
    world.do(world.fleet.object_gone(GOALS, "site", "goal1"))
    content = explain(world)
    assert verdict(content, "site/goal1") == ("due", "NotSelected", "F5.1")
    assert [each["governedBy"] for each in content["replicas"] if each["source"] == "site/goal1"] == [None]
    world.gone("r0")
    gone = explain(world)
    assert (gone["selected"], len(gone["replicas"])) == (False, 10)
    assert verdict(gone) == ("due", "RobotGone", "F5.1")
    row = world.fleet.rows[key("r0")]
    world.fleet.rows[key("r0")] = replace(row, terminating=True)
    content = explain(world)
    assert verdict(content) == ("due", "RobotGone", "F5.1")
    assert "it is being deleted" in str(content)


def test_F5_4_what_is_kept_only_loses_its_marks():
    world = World(raw_placement(**ALL, deletionPolicy="KeepReplicas"), robots=10)
    world.gone("r0")
    assert verdict(explain(world)) == ("due", "RobotGone", "F5.4")


def test_F5_2_what_is_held_names_the_hold():
    world = World(robots=1)
    world.gone("r0")
    content = explain(world)
    assert verdict(content) == ("held", "NoRobots", "F5.2")
    [hold] = world.losses.holds()["uid-all"]
    assert f"crsyncer fleet release {hold.id}" in content["replicas"][0]["message"]


def test_a_robot_that_a_placement_never_had_has_no_replicas():
    content = explain(World(robots=1), "r7")
    assert (content["selected"], content["replicas"], content["state"]) == (False, [], None)


@pytest.mark.parametrize(("applied", "acked"), [(WRITTEN, True), ("other", False), ("", None)])
def test_F9_6_a_robot_has_acked_what_its_report_has_of_all_that_was_written(applied, acked):
    assert [each["acked"] for each in explain(World(robots=1), applied=applied)["replicas"]] == [acked]


def test_F9_6_what_is_being_deleted_is_no_part_of_what_a_robot_has_to_apply():
    world = World(robots=1, sources=2)
    show(world.fleet, key("r0", name="goal1"), deletionTimestamp="2026-11-01T00:00:00Z")
    assert {each["acked"] for each in explain(world, applied=WRITTEN)["replicas"]} == {True}
