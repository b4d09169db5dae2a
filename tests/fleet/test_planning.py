"""`fleet plan` says what the controller then does, name by name."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crsyncer.core.content.object_content import digest
from crsyncer.fleet.domain.names import SOURCE
from crsyncer.fleet.domain.rendering import UNSHOWN
from crsyncer.fleet.domain.rollout.decisions import decision_of
from crsyncer.fleet.domain.rollout.reports import Reports
from crsyncer.fleet.domain.shown.planning import plan
from crsyncer.fleet.domain.values import Create, Delete, Patch, Rendering, ReplicaKey
from tests.fleet.events import EVENTS, apply
from tests.fleet.lossy import World, reported, turns
from tests.fleet.made import GOALS, KIND, goal, goal_id, key, patched, raw_placement, raw_robot


def write(verb: str, robot: str = "r0", when: str = "now", name: str = "dock") -> Any:
    return {"verb": verb, "resource": GOALS, "namespace": f"robot-{robot}", "name": name, "robot": robot} | {
        "shard": "root",
        "source": f"site/{name}",
        "placement": "site/all",
        "when": when,
    }


def planned(world: World, keys: Any = None) -> Any:
    every = world.fleet.all_keys() if keys is None else keys
    return plan(world.fleet, world.losses, every, now=world.now, turns=turns(world.fleet))


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


def in_turn(world: World, reports: Reports | None = None, decisions: Any = ()) -> dict[str, str]:
    seen = turns(world.fleet, reports, decisions)
    found = plan(world.fleet, world.losses, world.fleet.all_keys(), now=world.now, turns=seen)
    return {f"{each['verb']} {each['robot']} {each['name']}": each["when"] for each in found["writes"]}


def test_F8_4_what_waits_for_a_rollout_says_so():
    world = World(raw_placement(**ROLLOUT), robots=3)
    world.do(world.fleet.robot_shown(raw_robot("r3")))
    world.do(world.fleet.object_shown(goal(spec={"x": 2}), GOALS))
    reports = reported("r1", offline=("r0",))
    states = {"r0": "deferred", "r1": "inTurn", "r2": "inTurn"}
    assert in_turn(world, reports) == {
        **{f"update {robot} dock": when for robot, when in states.items()},
        "create r3 dock": "inTurn",
    }
    world.do(world.fleet.placement_shown(raw_placement(**{**ROLLOUT, "rollout": {"offline": "Stamp"}})))
    assert set(in_turn(world, reports).values()) == {"inTurn"}
    world.do(world.fleet.placement_shown(raw_placement(robotSelectors=[{}])))
    assert set(in_turn(world, reports).values()) == {"now"}


def test_F8_2_a_robot_that_was_begun_is_written_to_its_end_until_its_content_changes():
    world = World(raw_placement(**ROLLOUT), robots=2)
    world.do(world.fleet.object_shown(goal(spec={"x": 2}), GOALS))
    made = world.fleet.wanted(key("r0"))
    assert made is not None
    assert isinstance(made.rendering, Rendering)
    stamp = digest([[*key("r0").identity, made.rendering.stamp]])
    begun = decision_of(
        {
            "metadata": {"name": "all-0", "namespace": "site"},
            "placement": {"name": "all", "uid": "uid-all"},
            "robots": [{"name": "r0", "state": "InFlight", "since": "1970-01-01T00:16:00Z", "stamp": stamp}],
        }
    )
    reports = reported("r0", "r1")
    assert in_turn(world, reports, [begun]) == {"update r0 dock": "now", "update r1 dock": "inTurn"}
    world.do(world.fleet.object_shown(goal(spec={"x": 3}), GOALS))
    assert in_turn(world, reports, [begun]) == {"update r0 dock": "inTurn", "update r1 dock": "inTurn"}


def test_F2_4_what_another_placement_governs_has_the_turn_of_that_one():
    world = World(raw_placement(**ROLLOUT), robots=1)
    world.do(world.fleet.placement_shown(raw_placement("old", created="2026-01-01T00:00:00Z", robotSelectors=[{}])))
    world.do(world.fleet.object_shown(goal(spec={"x": 2}), GOALS))
    assert in_turn(world) == {"update r0 dock": "now"}
    world.do(world.fleet.object_shown(goal("lift"), GOALS))
    only = [{"group": "lab.example.com", "resource": "goals", "names": ["dock"]}]
    old = raw_placement("old", created="2026-01-01T00:00:00Z", robotSelectors=[{}], resources=only)
    world.do(world.fleet.placement_shown(old))
    assert in_turn(world) == {"update r0 dock": "now", "create r0 lift": "inTurn"}
    world.do(world.fleet.placement_shown(raw_placement("old", created="2026-01-01T00:00:00Z", robotSelectors=[])))
    assert set(in_turn(world).values()) == {"inTurn"}


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


def test_F8_1_nothing_else_is_written_to_a_robot_with_an_error_before_a_rollout_begins_it():
    world = World(raw_placement(**ROLLOUT, expand=True), robots=1)
    world.do(world.fleet.object_shown(goal(spec={"x": "{{ .none }}"}), GOALS))
    world.do(world.fleet.object_shown(goal("lift"), GOALS))
    assert in_turn(world) == {}
    assert [each["source"] for each in planned(world)["blocked"]] == ["site/dock"]


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


def carry_out(world: World, each: ReplicaKey) -> tuple[str, str, str] | None:
    """Decide about a replica as the controller does, and do it; verb, namespace and name of what was done."""
    fleet = world.fleet
    wanted, row = fleet.wanted(each), fleet.rows.get(each)
    match fleet.decide(each, wanted, removal=world.losses.removal(each, world.now)):
        case Create(body):
            assert wanted is not None
            place = wanted.namespace, wanted.name
            if any(place == (other.namespace, other.name) for other in fleet.rows.values()):
                return None  # the server refuses it: the name is taken
            raw = body | {"metadata": body["metadata"] | {"uid": f"n-{each}", "resourceVersion": "1"}}
            STORED[each] = raw
            world.do(fleet.written(raw, GOALS))
            return ("create", *place)
        case Patch(operations):
            assert row is not None
            STORED[each] = patched(STORED[each], operations)
            STORED[each]["metadata"]["resourceVersion"] = str(int(row.resource_version) + 1)
            world.do(fleet.written(STORED[each], GOALS))
            return "update", row.namespace, row.name
        case Delete(uid, _):
            assert row is not None
            assert row.uid == uid
            world.do(fleet.object_gone(GOALS, row.namespace, row.name))
            return "delete", row.namespace, row.name
        case _:
            return None


def settle(world: World) -> set[tuple[str, str, str]]:
    """Carry out all that is to be done: what is made again may need the name of what goes."""
    done = set()
    for _ in range(2):
        done |= {what for each in sorted(world.fleet.all_keys()) if (what := carry_out(world, each)) is not None}
    return done


STORED: dict[ReplicaKey, Any] = {}


@settings(max_examples=200, deadline=None)
@given(st.lists(EVENTS, max_size=8), st.lists(EVENTS, min_size=1, max_size=3))
def test_F11_the_plan_is_what_the_controller_then_does(history, edits):
    STORED.clear()
    world = World(robots=0)
    for event in [*(("robot", f"r{number}", "a") for number in (1, 2, 3)), *history]:
        world.do(apply(world.fleet, event))
    settle(world)
    world.now += 100
    for event in edits:
        world.do(apply(world.fleet, event))
    document = planned(world)
    world.now += 30
    world.alive()
    now = [each for each in document["writes"] if each["when"] == "now"]
    assert settle(world) == {(each["verb"], each["namespace"], each["name"]) for each in now}
    assert settle(world) == set()


def test_F3_7_of_two_replicas_of_one_name_one_is_made():
    template = {"name": "t", "group": "lab.example.com", "resource": "goals", "object": {"spec": {"y": 1}}}
    world = World(raw_placement("p", robotSelectors=[{}], resources=[], templates=[template]), robots=1)
    world.do(world.fleet.placement_shown(raw_placement("q", robotSelectors=[{}], resources=[], templates=[template])))
    found = planned(world)
    assert (found["writes"], [each["reason"] for each in found["blocked"]]) == ([], ["NameTaken"])
    world.do(world.fleet.object_gone(GOALS, "robot-r0", "t"))
    found = planned(world)
    assert (len(found["writes"]), [each["reason"] for each in found["blocked"]]) == (1, ["NameTaken"])
    world.do(world.fleet.placement_shown(raw_placement("q", robotSelectors=[])))
    assert (len(planned(world)["writes"]), planned(world)["blocked"]) == (1, [])


def refused(world: World, *, stamp: str, **status: Any) -> Any:
    """The plan where the Decision says that r0 is Blocked with a stamp."""
    raw = raw_placement(robotSelectors=[{}])
    world.do(world.fleet.placement_shown({**raw, "status": status}))
    robots = [{"name": "r0", "state": "Blocked", "stamp": stamp, "message": "422: no"}]
    placement, metadata = {"name": "all", "uid": "uid-all"}, {"name": "all-0", "namespace": "site"}
    decisions = [decision_of({"metadata": metadata, "placement": placement, "robots": robots})]
    every = world.fleet.all_keys()
    seen = turns(world.fleet, decisions=decisions)
    return plan(world.fleet, world.losses, every, now=world.now, turns=seen)


def test_what_the_server_has_refused_is_blocked_until_it_is_something_else():
    world = World(robots=1)
    world.do(world.fleet.object_shown(goal(spec={"x": 2}), GOALS))
    wanted = world.fleet.wanted(key("r0"))
    assert wanted is not None
    assert isinstance(wanted.rendering, Rendering)
    stamp = digest(sorted([[*key("r0").identity, wanted.rendering.stamp]]))
    error = {"robot": "r0", "source": "site/dock", "reason": "Refused", "message": "422: x is no text"}
    found = refused(world, stamp=stamp, errors=[error], errorCount=1)
    assert (found["writes"], found["counts"]["update"]) == ([], 0)
    assert found["blocked"] == [error]
    cut = refused(world, stamp=stamp, errors=[{**error, "robot": "a"}], errorCount=30)
    assert [each["message"] for each in cut["blocked"]] == ["422: no"]
    assert refused(world, stamp="old", errors=[error], errorCount=1)["writes"] == [write("update")]
    assert refused(world, stamp=stamp, errors=[], errorCount=0)["writes"] == [write("update")]
