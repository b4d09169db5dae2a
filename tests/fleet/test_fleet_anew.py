"""The index after many events: what a fresh look at everything finds, and which replicas are known where."""

import copy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from crsyncer.fleet.domain.fleet import Fleet
from crsyncer.fleet.domain.names import REPLICA
from crsyncer.fleet.domain.values import (
    ReplicaKey,
)
from tests.fleet.events import EVENTS, apply
from tests.fleet.made import GOALS, KIND, placed, raw_placement, ready_fleet

# --- histories -----------------------------------------------------------------------------------------------------


def everything(fleet: Fleet) -> dict[ReplicaKey, Any]:
    """What is wanted, without what a placement knows of its own state."""
    found = {}
    for each in fleet.all_keys():
        wanted = fleet.wanted(each)
        assert wanted is not None
        found[each] = (wanted.placement.uid, wanted.namespace, wanted.name, wanted.kind, wanted.rendering)
    return found


@settings(max_examples=150, deadline=None)
@given(st.lists(EVENTS, max_size=25))
def test_events_lead_to_what_a_fresh_look_finds_and_name_every_key_that_changes(events):
    fleet = ready_fleet()
    last: dict[Any, Any] = {}
    for event in events:
        before = everything(fleet)
        change = apply(fleet, event)
        after = everything(fleet)
        different = {each for each in before.keys() | after.keys() if before.get(each) != after.get(each)}
        assert different <= change.keys, event
        assert change.edited <= before.keys() - after.keys() or event[0] == "placement"
        last.pop(event[:2], None)
        last[event[:2]] = event
    fresh = ready_fleet()
    for event in last.values():
        apply(fresh, event)
    assert everything(fresh) == everything(fleet)


def test_F5_2_sources_are_known_on_when_their_crd_is_gone_so_that_a_later_list_shows_which_are_not_there():
    fleet = ready_fleet()
    fleet.object_shown(placed(fleet), GOALS)
    fleet.kind_gone(GOALS)
    assert [str(each) for each in fleet.places(GOALS)] == ["site/dock"]


def test_places_and_replicas_by_placement_are_known():
    fleet = ready_fleet()
    fleet.object_shown(placed(fleet), GOALS)
    assert {str(each) for each in fleet.places(GOALS)} == {"robot-r1/dock", "site/dock"}
    assert fleet.bound["uid-all"] == 1
    assert fleet.index.placements_of_robot("r1") == ["site/all"]
    assert fleet.index.placements["site/all"].kinds == [GOALS]
    fleet.object_shown({**placed(fleet), "metadata": placed(fleet)["metadata"] | {"deletionTimestamp": "x"}}, GOALS)
    assert fleet.bound["uid-all"] == 0
    fleet.object_gone(GOALS, "robot-r1", "dock")
    assert fleet.bound["uid-all"] == 0


def test_F5_3_a_replica_that_another_placement_takes_over_concerns_the_one_that_it_leaves():
    fleet = ready_fleet(raw_placement(robotSelectors=[{}]), raw_placement("other", robotSelectors=[{}]))
    raw = placed(fleet)
    fleet.object_shown(raw, GOALS)
    moved = copy.deepcopy(raw)
    text = moved["metadata"]["annotations"][REPLICA]
    moved["metadata"]["annotations"][REPLICA] = text.replace("uid-all", "uid-other")
    assert fleet.object_shown(moved, GOALS).placements == {"site/all", "site/other"}
    assert (fleet.bound["uid-all"], fleet.bound["uid-other"]) == (0, 1)


def test_F9_6_a_replica_that_is_written_again_or_goes_is_another_for_its_robot_to_apply():
    fleet = ready_fleet()
    raw = placed(fleet)
    text = next(iter(fleet.index.placements))
    assert fleet.object_shown(raw, KIND.resource).rewritten == {(text, "r1")}
    raw["status"] = {"phase": "Ready"}
    raw["metadata"]["resourceVersion"] = "2"
    assert fleet.object_shown(raw, KIND.resource).rewritten == set()
    raw["metadata"]["annotations"][REPLICA] = raw["metadata"]["annotations"][REPLICA].replace('"n":1', '"n":2')
    assert fleet.object_shown(raw, KIND.resource).rewritten == {(text, "r1")}
    raw["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert fleet.object_shown(raw, KIND.resource).rewritten == {(text, "r1")}
    where = raw["metadata"]["namespace"], raw["metadata"]["name"]
    assert fleet.object_gone(KIND.resource, *where).rewritten == {(text, "r1")}


def test_7_strips_of_one_kind_warn_of_each_other_and_of_what_cannot_be_read():
    fleet = ready_fleet()
    spec = {"group": "lab.example.com", "resource": "goals"}
    fleet.strip_shown({"metadata": {"name": "a"}, "spec": {**spec, "remove": ["/spec/a"]}})
    assert fleet.strip_warnings("a") == []
    fleet.strip_shown({"metadata": {"name": "b"}, "spec": {**spec, "remove": 1}})
    assert fleet.strip_warnings("a") == [f"other FieldStrips of {GOALS}: b; all of them act"]
    assert fleet.strip_warnings("b")[0].startswith("FieldStrip b: spec.remove")
