"""The status of a source that goes to exactly one robot (F6.2)."""

from dataclasses import replace
from typing import Any

import pytest

from crsyncer.fleet.domain.change import Input
from crsyncer.fleet.domain.returned.due import Due
from crsyncer.fleet.domain.returned.singletons import Read, Record
from crsyncer.fleet.domain.values import Blocked, Nothing, Patch, Reason, SourceKey, Verdict, Wait
from tests.fleet.made import GOALS, KIND, goal, key, raw_robot
from tests.fleet.returns import SOURCE
from tests.fleet.singles import Singles

READY, DRIVING = {"phase": "Ready"}, {"phase": "Driving"}
ENTRY = {"source": f"{GOALS}/dock", "robot": "r1"}


def world(*robots: str, **spec: Any) -> Singles:
    found = Singles(*(robots or ("r1",)))
    found.placement(**spec)
    found.goal()
    return found


def test_F6_2_the_status_of_the_one_replica_is_copied_after_it_is_listed():
    found = world()
    assert found.sync() == []
    found.replica("r1", READY)
    assert found.singletons.plan(SOURCE) == Record("site/all")
    assert found.sync() == ["all lists r1", "dock add"]
    assert found.status() == READY
    assert found.listed_by == {"all": [ENTRY]}
    assert found.singletons.listing(SOURCE) == {"site/all"}
    found.replica("r1", DRIVING)
    assert found.sync() == ["dock add"]
    assert found.status() == DRIVING
    assert found.successor().sync() == []


def test_F6_2_without_a_singleton_placement_nothing_is_written():
    found = Singles("r1")
    found.placement(statusReturn="PerRobot")
    found.goal()
    found.replica("r1", READY)
    assert found.sync() == []
    assert found.singletons.entries("site/all") == []
    assert found.singletons.plan(SOURCE) == Nothing()


def test_F6_2_with_two_robots_what_was_written_is_removed_and_comes_back_with_one():
    found = world()
    found.replica("r1", READY)
    found.sync()
    found.robot("r2")
    assert found.sync() == ["dock remove", "all lists nothing"]
    assert found.status() is None
    found.replica("r1", DRIVING)
    found.replica("r2", READY)
    assert found.sync() == []
    found.robot_gone("r2")
    assert found.settle().singletons == {SOURCE}
    assert found.singletons.plan(SOURCE) == Read(key("r1"))
    found.due.singletons.add(SOURCE)
    assert found.sync() == ["all lists r1", "dock add"]
    assert found.status() == DRIVING


@pytest.mark.parametrize("change", ["robot", "selection", "placement", "return"])
def test_F6_2_what_was_written_is_removed_also_after_downtime(change):
    found = world()
    found.replica("r1", READY)
    found.sync()
    new = found.successor() if change == "robot" else found
    match change:
        case "robot":
            for name in ("r2", "r3"):
                new.change(new.fleet.robot_shown(raw_robot(name)))
        case "selection":
            new.placement(robotSelectors=[])
        case "placement":
            new.terminate()
        case _:
            new.placement(statusReturn="PerRobot")
    after = new if change == "robot" else found.successor() if change != "placement" else new
    assert after.sync() == ["dock remove", "all lists nothing"]
    assert after.status() is None
    assert after.sync() == []


def test_F6_2_a_status_that_is_not_ours_stays():
    found = world("r1", "r2")
    found.goal()
    found.sources["dock"]["status"] = {"theirs": True}
    found._show("dock")
    assert found.sync() == []
    assert found.status() == {"theirs": True}


def test_F6_2_another_robot_is_listed_before_its_status_is_written():
    found = world()
    found.replica("r1", READY)
    found.sync()
    found.robot("r2")
    found.replica("r2", DRIVING)
    found.robot_gone("r1")
    assert found.sync() == ["all lists r2", "dock add"]
    assert found.status() == DRIVING


def test_F6_2_the_status_of_another_robot_does_not_stay_for_one_that_has_none():
    found = world(robotSelectors=[], robotNames=["r1"])
    found.robot("r2")
    found.replica("r1", READY)
    found.sync()
    found.placement(robotSelectors=[], robotNames=["r2"])
    assert found.sync() == ["dock remove", "all lists nothing"]
    found.replica("r2")
    assert found.sync() == []
    found.replica("r2", DRIVING)
    assert found.sync() == ["all lists r2", "dock add"]


@pytest.mark.parametrize("status", [None, {}, "odd"])
def test_F6_2_a_replica_that_is_made_anew_wipes_nothing(status):
    found = world()
    place = found.replica("r1", READY)
    found.sync()
    found.replica_gone(place)
    assert found.sync() == []
    found.replica("r1", status)
    assert found.sync() == []
    assert found.status() == READY
    found.replica("r1", DRIVING)
    assert found.sync() == ["dock add"]


def test_F6_2_placements_hand_a_source_over_without_wiping_it():
    found = world()
    found.placement("next")
    found.replica("r1", READY)
    assert found.sync() == ["all lists r1", "dock add"]
    found.placement(robotSelectors=[])
    assert found.sync() == ["next lists r1", "all lists nothing"]
    assert found.status() == READY
    found.placement("last")
    found.placement("next", robotSelectors=[])
    found.replica("r1")
    assert found.sync() == ["last lists r1", "next lists nothing"]
    assert found.status() == READY


def test_F6_2_a_deleted_source_is_listed_no_longer():
    found = world()
    found.replica("r1", READY)
    found.sync()
    found.goal_gone()
    assert found.sync() == ["all lists nothing"]
    assert found.singletons.source_gone(SOURCE) == Due()


def test_F6_2_a_source_that_is_made_anew_is_written_by_its_own_uid():
    found = world()
    found.replica("r1", READY)
    found.sync()
    raw = goal()
    raw["metadata"]["uid"] = "another"
    found.sources["dock"] = raw
    found._show("dock")
    assert found.sync() == ["dock add"]


def test_F6_2_a_kind_without_the_subresource_is_refused():
    found = Singles("r1", kind=replace(KIND, has_status=False))
    found.placement()
    found.goal()
    found.replica("r1", READY)
    assert found.sync() == []
    plan = found.singletons.plan(SOURCE)
    assert plan == Blocked(Reason.REFUSED, f"{GOALS} has no status subresource")


def test_F6_2_where_the_subresource_is_gone_nothing_is_left_to_remove():
    found = world()
    found.replica("r1", READY)
    found.sync()
    found.change(found.fleet.kind_shown(replace(KIND, has_status=False)))
    found.placement(robotSelectors=[])
    assert found.sync() == ["all lists nothing"]


def test_F6_2_a_status_that_cannot_be_copied_is_refused():
    found = world()
    deep: Any = 1
    for _ in range(201):
        deep = [deep]
    found.replica("r1", {"deep": deep})
    assert found.singletons.plan(SOURCE) == Blocked(Reason.REFUSED, "the status is nested more than 200 levels deep")


def test_F6_2_beyond_500_sources_it_is_refused():
    found = Singles("r1")
    found.placement()
    for number in range(502):
        found.goal(f"g{number:03}")
        found.replica("r1", READY, name=f"g{number:03}")
    assert len(found.sync()) == 501
    assert len(found.listed_by["all"]) == 500
    refused = SourceKey(GOALS, "site", "g500")
    message = "status.singletons of site/all has 500 sources; no more are allowed"
    assert found.singletons.plan(refused) == Blocked(Reason.REFUSED, message)
    assert found.status("g500") is None
    found.goal_gone("g007")
    assert found.sync() == [f"all lists {' '.join(['r1'] * 500)}", "g500 add"]


def test_F6_2_where_another_placement_has_no_room_the_status_is_removed_and_refused():
    found = Singles("r1")
    found.placement(resources=[{"group": "lab.example.com", "resource": "goals", "names": ["dock"]}])
    found.goal()
    found.replica("r1", READY)
    found.sync()
    found.listed_by["next"] = [{"source": f"{GOALS}/x{number}", "robot": "r1"} for number in range(500)]
    found.placement("next")
    for number in range(500):
        found.goal(f"x{number}", status=DRIVING)
        found.replica("r1", DRIVING, name=f"x{number}")
    found.terminate()
    found.settle()
    plan = found.singletons.plan(SOURCE)
    assert isinstance(plan, Patch)
    assert plan.operations[1]["op"] == "remove"
    assert found.singletons.entries("site/all") == [ENTRY]
    found.act(SOURCE)
    assert found.singletons.entries("site/all") == []
    assert isinstance(found.singletons.plan(SOURCE), Blocked)


def test_F6_2_what_a_server_makes_of_a_removal_is_removed_once():
    found = world()
    found.replica("r1", READY)
    found.sync()
    found.placement(robotSelectors=[])
    found.settle()
    assert isinstance(found.singletons.plan(SOURCE), Patch)
    defaulted = found.sources["dock"] | {"status": {"phase": "Unknown"}}
    found.due.add(found.singletons.removed(defaulted, GOALS))
    assert found.singletons.plan(SOURCE) == Nothing()
    assert found.singletons.entries("site/all") == []
    found.due.add(found.singletons.source_shown(defaulted, GOALS))
    assert found.singletons.plan(SOURCE) == Nothing()
    found.due.add(found.singletons.source_shown(found.sources["dock"], GOALS))
    assert isinstance(found.singletons.plan(SOURCE), Patch)


def test_F6_2_a_template_has_no_status_to_write():
    found = Singles("r1")
    template = {"name": "t", "group": "lab.example.com", "resource": "goals", "object": {"spec": {}}}
    found.placement(templates=[template], resources=[])
    source = next(iter(found.fleet.index.sources_of("site/all")))
    assert found.singletons.plan(source) == Nothing()
    assert found.singletons.entries("site/all") == []


def test_F2_2_a_placement_that_must_not_place_a_kind_chooses_nothing():
    found = Singles("r1", kind=replace(KIND, namespaced=False))
    found.placement()
    found.goal()
    found.sync()
    assert found.singletons.entries("site/all") == []


def test_what_becomes_a_replica_is_no_source_any_more():
    found = world()
    raw = goal()
    raw["metadata"]["labels"] = {"cloudrobotics.com/robot-name": "r1"}
    assert found.singletons.source_shown(raw, GOALS).singletons == {SOURCE}
    assert found.singletons.source_shown(raw, GOALS).singletons == set()


@pytest.mark.parametrize("dead", [Input.ROBOTS, Input.PLACEMENTS, GOALS])
def test_F1_1_nothing_is_removed_because_something_cannot_be_seen(dead):
    found = world()
    found.replica("r1", READY)
    found.sync()
    found.robot("r2")
    found.change(found.fleet.served(dead, is_served=False))
    assert found.sync() == []
    assert found.singletons.plan(SOURCE) == Wait(f"the cloud does not serve {dead}")
    found.change(found.fleet.served(dead, is_served=True))
    found.due.singletons.add(SOURCE)
    assert found.sync() == ["dock remove", "all lists nothing"]


def test_F2_3_the_sources_of_a_kind_that_is_gone_stay_listed():
    found = world()
    found.replica("r1", READY)
    found.sync()
    found.change(found.fleet.kind_shown(replace(KIND, verdict=Verdict.NOT_SERVED, message="gone")))
    found.robot("r2")
    assert found.sync() == []
    assert found.singletons.plan(SOURCE) == Wait(f"the cloud does not serve {GOALS}")
    other = SourceKey("others.lab.example.com", "site", "x")
    assert found.singletons.plan(other) == Wait("others.lab.example.com is not listed")
    found.listed_by["all"] = [{"source": "others.lab.example.com/x", "robot": "r1"}]
    found.placement()
    assert found.sync() == []


def test_F5_2_without_robots_nothing_is_removed_unless_the_placement_is_deleted():
    found = world()
    found.replica("r1", READY)
    found.sync()
    found.robot_gone("r1")
    assert found.sync() == []
    assert found.singletons.plan(SOURCE) == Wait("there are no Robots")
    found.terminate()
    assert found.sync() == ["dock remove", "all lists nothing"]


def test_F1_1_a_placement_that_cannot_be_read_by_a_new_leader_keeps_its_statuses():
    found = world()
    found.replica("r1", READY)
    found.sync()
    found.placements["all"] = {"expand": "odd"}
    new = found.successor()
    assert new.sync() == []
    assert new.singletons.plan(SOURCE) == Wait("a placement that lists it cannot be read")


@pytest.mark.parametrize("entries", [None, "odd", [1, None], [{}], [{"source": 1}], [{"source": f"{GOALS}/dock"}]])
def test_entries_that_nobody_can_read_are_dropped(entries):
    found = world("r1", "r2")
    found.listed_by["all"] = entries
    found.placement()
    found.settle()
    assert found.singletons.entries("site/all") in (
        [],
        [{"source": "None", "robot": ""}],
        [{"source": "1", "robot": ""}],
    )


def test_a_placement_that_vanishes_lists_nothing():
    found = world()
    found.replica("r1", READY)
    found.sync()
    found.placement_gone()
    assert found.settle().singletons == {SOURCE}
    assert found.singletons.plan(SOURCE) == Nothing()
