"""`fleet plan` says what the controller then does, name by name."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crsyncer.fleet.domain.names import SOURCE
from crsyncer.fleet.domain.rendering import UNSHOWN
from crsyncer.fleet.domain.rollout.reports import Report
from crsyncer.fleet.domain.shown.planning import plan
from crsyncer.fleet.domain.values import Create, Delete, Patch, ReplicaKey
from tests.fleet.events import EVENTS, apply
from tests.fleet.lossy import World
from tests.fleet.made import GOALS, KIND, goal, goal_id, patched, raw_placement, raw_robot


def write(verb: str, robot: str = "r0", when: str = "now", name: str = "dock") -> Any:
    return {"verb": verb, "resource": GOALS, "namespace": f"robot-{robot}", "name": name, "robot": robot} | {
        "source": f"site/{name}",
        "placement": "site/all",
        "when": when,
    }


def planned(world: World, keys: Any = None) -> Any:
    return plan(world.fleet, world.losses, world.fleet.all_keys() if keys is None else keys, now=world.now)


def test_a_fleet_that_is_as_it_shall_be_costs_nothing():
    assert planned(World()) == {
        "schema": "crsyncer.fleet-plan/v1",
        "writes": [],
        "counts": {"create": 0, "update": 0, "delete": 0},
        "blocked": [],
    }


def test_creates_updates_and_deletes_are_named_and_counted():
    world = World(robots=2)
    world.do(world.fleet.robot_shown(raw_robot("r2")))
    world.gone("r0")
    world.do(world.fleet.object_shown(goal(spec={"x": 2}), GOALS))
    found = planned(world)
    assert found["writes"] == [write("delete", "r0"), write("update", "r1"), write("create", "r2")]
    assert found["counts"] == {"create": 1, "update": 1, "delete": 1}


def test_F5_2_what_is_held_says_so():
    world = World(raw_placement(robotSelectors=[{}], deletionPolicy="KeepReplicas"), robots=1)
    world.gone("r0")
    assert planned(world)["writes"] == [write("update", when="held")]
    plain = World(robots=1)
    plain.gone("r0")
    assert planned(plain)["writes"] == [write("delete", when="held")]
    plain.do(plain.fleet.placement_gone("site", "all"))
    assert planned(plain)["writes"] == [write("delete", when="held") | {"placement": None}]


ROLLOUT: Any = {"robotSelectors": [{}], "readyWhen": "true", "rollout": {}}


def in_turn(world: World, reports: Any = None) -> dict[str, str]:
    found = plan(world.fleet, world.losses, world.fleet.all_keys(), now=world.now, reports=reports)
    return {f"{each['verb']} {each['robot']} {each['name']}": each["when"] for each in found["writes"]}


def test_F8_4_what_waits_for_a_rollout_says_so():
    world = World(raw_placement(**ROLLOUT), robots=3)
    world.do(world.fleet.robot_shown(raw_robot("r3")))
    world.do(world.fleet.object_shown(goal(spec={"x": 2}), GOALS))
    reports = {"r0": Report.OFFLINE, "r1": Report.ONLINE}
    states = {"r0": "deferred", "r1": "inTurn", "r2": "inTurn"}
    assert in_turn(world, reports) == {
        **{f"update {robot} dock": when for robot, when in states.items()},
        "create r3 dock": "inTurn",
    }
    world.do(world.fleet.placement_shown(raw_placement(**{**ROLLOUT, "rollout": {"offline": "Stamp"}})))
    assert set(in_turn(world, reports).values()) == {"inTurn"}
    world.do(world.fleet.placement_shown(raw_placement(robotSelectors=[{}])))
    assert set(in_turn(world, reports).values()) == {"now"}


def test_F8_1_a_removal_from_a_robot_with_replicas_due_waits_and_others_do_not():
    world = World(raw_placement(**ROLLOUT), robots=10, sources=10)
    world.do(world.fleet.object_gone(GOALS, "site", "goal1"))
    assert set(in_turn(world).values()) == {"now"}
    world.gone("r0")
    world.do(world.fleet.object_shown(goal(spec={"x": 2}), GOALS))
    found = in_turn(world)
    assert (found["update r1 dock"], found["delete r1 goal1"]) == ("inTurn", "inTurn")
    assert (found["delete r0 goal1"], found["delete r0 goal2"]) == ("now", "now")


def test_F2_3_what_is_wrong_about_a_secret_is_not_quoted():
    world = World(raw_placement(robotSelectors=[{}], expand=True), robots=1)
    world.do(world.fleet.kind_shown(replace(KIND, sensitive=True)))
    world.do(world.fleet.object_shown(goal(spec={"x": "{{ s3cret"}), GOALS))
    [found] = planned(world)["blocked"]
    assert (found["reason"], found["message"]) == ("RenderFailed", UNSHOWN)


def test_what_is_blocked_is_no_write():
    world = World(robots=1)
    world.do(world.fleet.placement_shown(raw_placement(robotSelectors=[{}], expand=True)))
    world.do(world.fleet.object_shown(goal(spec={"x": "{{ .none }}"}), GOALS))
    found = planned(world)
    assert found["writes"] == []
    message = "there is no property none"
    assert found["blocked"] == [{"robot": "r0", "source": "site/dock", "reason": "RenderFailed", "message": message}]


def test_F3_7_an_object_that_is_handed_over_is_updated():
    world = World(robots=1)
    world.do(world.fleet.object_gone(GOALS, "robot-r0", "dock"))
    raw = goal(namespace="robot-r0")
    raw["metadata"]["labels"] = {SOURCE: goal_id()}
    world.do(world.fleet.object_shown(raw, GOALS))
    assert planned(world)["writes"] == [write("update")]


@pytest.mark.parametrize("robot", ["r0", "r1"])
def test_F11_a_label_of_one_robot_that_selects_it_is_one_write(robot):
    world = World(raw_placement(robotSelectors=[{"matchLabels": {"site": "hall"}}]), robots=3)
    change = world.do(world.fleet.robot_shown(raw_robot(robot, site="hall")))
    assert planned(world, change.keys)["writes"] == [write("create", robot)]


def carry_out(world: World, each: ReplicaKey) -> str:
    """Decide about a replica as the controller does, and do it; what was done."""
    fleet = world.fleet
    wanted, row = fleet.wanted(each), fleet.rows.get(each)
    match fleet.decide(each, removal=world.losses.removal(each, world.now)):
        case Create(body):
            assert wanted is not None
            raw = body | {"metadata": body["metadata"] | {"uid": f"n-{each}", "resourceVersion": "1"}}
            STORED[each] = raw
            world.do(fleet.written(raw, GOALS))
            return "create"
        case Patch(operations):
            STORED[each] = patched(STORED[each], operations)
            world.do(fleet.written(STORED[each], GOALS))
            return "update"
        case Delete(uid, _):
            assert row is not None
            assert row.uid == uid
            world.do(fleet.object_gone(GOALS, row.namespace, row.name))
            return "delete"
        case _:
            return ""


STORED: dict[ReplicaKey, Any] = {}


@settings(max_examples=200, deadline=None)
@given(st.lists(EVENTS, max_size=8), st.lists(EVENTS, min_size=1, max_size=3))
def test_F11_the_plan_is_what_the_controller_then_does(history, edits):
    STORED.clear()
    world = World(robots=0)
    for event in [*(("robot", f"r{number}", "a") for number in (1, 2, 3)), *history]:
        world.do(apply(world.fleet, event))
    for each in sorted(world.fleet.all_keys()):
        carry_out(world, each)
    world.now += 100
    for event in edits:
        world.do(apply(world.fleet, event))
    document = planned(world)
    world.now += 30
    world.alive()
    done = {}
    for each in sorted(world.fleet.all_keys()):
        row, wanted = world.fleet.rows.get(each), world.fleet.wanted(each)
        place = (
            (row.namespace, row.name) if row is not None else (wanted.namespace, wanted.name) if wanted else ("", "")
        )
        if verb := carry_out(world, each):
            done[place] = verb
    assert done == {
        (each["namespace"], each["name"]): each["verb"] for each in document["writes"] if each["when"] == "now"
    }
    assert not [each for each in world.fleet.all_keys() if carry_out(world, each)]
