"""Shared mode: which statuses of robots count, and when a source is marked (F9.1, F10.3)."""

from typing import Any

import pytest

from crsyncer.core.content.annotations import SHARED
from crsyncer.core.model import Json, Key
from crsyncer.fleet.domain.shared.source_marks import decide_mark, left_marks
from crsyncer.fleet.domain.values import (
    Nothing,
    Patch,
    PlacedKind,
    SourceKey,
    Wait,
)
from tests.fleet.made import GOALS, goal, goal_id, patched, raw_placement, raw_robot
from tests.fleet.shared_made import (
    DOCK,
    copied,
    made,
    raw_shared,
    returned,
    show,
    status_of,
    view,
)


def test_F10_3_a_status_counts_while_it_is_about_the_object_that_the_robot_has():
    fleet = made()
    assert show(fleet, returned()) == {view()}
    assert not fleet.statuses.has(view())
    change = fleet.object_shown(copied(fleet), f"b/{GOALS}")
    assert change.returned == {view()}
    found = status_of(fleet, view())
    assert (found.status, found.generation, found.updated) == ({"phase": "Ready"}, 4, "2026-11-01T00:00:00Z")
    assert fleet.object_shown(copied(fleet, uid="anew"), f"b/{GOALS}").returned == {view()}
    assert not fleet.statuses.has(view())


class Place(Key):
    """A name that counts how often it is looked up."""

    looked_up = 0

    def __hash__(self) -> int:
        Place.looked_up += 1
        return super().__hash__()


def test_F10_3_taking_up_a_status_costs_the_same_however_many_robots_share_the_object():
    fleet, costs = made(), []
    for robots in (1, 100):
        for number in range(robots):
            show(fleet, returned(f"r{number}"))
        Place.looked_up = 0
        assert fleet.statuses.gone(Place("default", f"{goal_id()}-r0"), shard="b").returned == {view("r0")}
        costs.append(Place.looked_up)
    assert costs[0] == costs[1]


def test_F10_3_at_the_root_it_is_about_the_source():
    fleet = made(source=goal(metadata=goal()["metadata"] | {"generation": 5}))
    about = returned()["spec"]["source"] | {"uid": "uid-dock"}
    show(fleet, returned("r0", source=about), "root")
    assert status_of(fleet, view("r0", "root")).generation == 5
    again = goal(metadata=goal()["metadata"] | {"uid": "anew"})
    assert fleet.object_shown(again, GOALS).returned == {view("r0", "root")}
    assert not fleet.statuses.has(view("r0", "root"))
    fleet.object_gone(GOALS, "site", "dock")
    assert not fleet.statuses.has(view("r0", "root"))


@pytest.mark.parametrize(
    "raw",
    [
        returned(name=f"{goal_id()}-rx"),
        returned(name=f"{goal_id()}rb"),
        returned(name="rb"),
        returned(metadata={"labels": {"cloudrobotics.com/robot-name": "rx"}}),
        returned(metadata={"annotations": {}}),
        returned(metadata={"namespace": "robot-rx"}),
        returned(metadata={"namespace": "robot-r0"}),
        returned(source={"group": "", "resource": "configmaps", "uid": "copy"}),
        returned(source="dock"),
    ],
)
def test_F9_1_a_status_that_does_not_name_its_robot_its_place_and_its_source_does_not_count(raw):
    fleet = made()
    fleet.object_shown(copied(fleet), f"b/{GOALS}")
    show(fleet, raw)
    assert not fleet.statuses.has(view())
    show(fleet, returned())
    assert fleet.statuses.has(view())


def test_F10_3_a_status_on_another_shard_does_not_count():
    fleet = made()
    fleet.object_shown(copied(fleet), f"b/{GOALS}")
    show(fleet, returned(), "root")
    assert not fleet.statuses.has(view())
    assert list(fleet.index.selecting(view(shard="root"))) == []


def test_F10_3_of_two_of_a_robot_the_later_counts_and_what_is_gone_counts_no_more():
    fleet = made()
    fleet.object_shown(copied(fleet), f"b/{GOALS}")
    show(fleet, returned())
    show(
        fleet, returned(status={"phase": "Old"}, metadata={"namespace": "robot-rb"}, lastUpdate="2026-01-01T00:00:00Z")
    )
    assert status_of(fleet, view()).status == {"phase": "Ready"}
    name = f"{goal_id()}-rb"
    assert fleet.statuses.gone(Key("default", name), shard="b").returned == {view()}
    assert status_of(fleet, view()).status == {"phase": "Old"}
    fleet.statuses.gone(Key("robot-rb", name), shard="b")
    assert not fleet.statuses.has(view())
    assert fleet.statuses.of("rb", goal_id()) == set()
    assert fleet.statuses.gone(Key("robot-rb", name), shard="b").returned == set()


def test_F10_3_what_decides_whose_status_counts_is_told_with_the_event():
    fleet = made()
    show(fleet, returned())
    assert fleet.robot_shown(raw_robot("rb", site="x")).returned == {view()}
    assert fleet.placement_shown(raw_shared(robotSelectors=[])).returned == {view()}
    assert fleet.object_gone(GOALS, "site", "dock").returned == {view()}


# The mark on the source


def marked(uid: str, **fields: Any) -> Json:
    return goal(metadata=goal()["metadata"] | {"annotations": {SHARED: uid, "a": "b"}}, **fields)


@pytest.mark.parametrize(
    ("placements", "source", "plan", "left"),
    [
        ([raw_shared()], goal(), "uid-all", None),
        ([raw_shared()], marked("uid-all"), Nothing, None),
        ([raw_shared()], marked("uid-other"), "uid-all", "b"),
        ([raw_shared(finalized=False)], goal(), Wait, None),
        ([raw_placement()], goal(), Nothing, None),
        ([raw_shared(resources=[])], marked("uid-all"), None, "b"),
        ([raw_shared(terminating=True)], marked("uid-all"), None, "b"),
        ([raw_shared(resources=[])], marked("uid-gone"), Nothing, None),
        ([raw_shared(resources=[]), raw_shared("next")], marked("uid-all"), "uid-next", "b"),
        ([raw_shared(target="Same", expand=True)], marked("uid-all"), Wait, None),
    ],
)
def test_F10_3_a_source_is_marked_while_a_placement_shares_it(placements, source, plan, left):
    fleet = made(*placements, source=source)
    found = decide_mark(fleet, DOCK)
    if not isinstance(found, Patch):
        assert type(found) is plan
        return
    after = patched(source, found.operations)["metadata"]["annotations"]
    assert (after.get(SHARED), after.get("a")) == (plan, left)


def test_F1_1_a_mark_stays_while_something_cannot_be_seen():
    fleet = made(raw_shared(resources=[]), source=marked("uid-all"))
    assert isinstance(decide_mark(fleet, DOCK), Patch)
    fleet.served(GOALS, is_served=False)
    assert isinstance(decide_mark(fleet, DOCK), Wait)
    fleet.served(GOALS, is_served=True)
    fleet.kind_shown(PlacedKind(GOALS, "lab.example.com", "goals", "Goal", "v1", namespaced=True))
    assert isinstance(decide_mark(fleet, DOCK), Wait)
    fleet.listed.discard(GOALS)
    assert isinstance(decide_mark(fleet, DOCK), Wait)
    assert isinstance(decide_mark(fleet, SourceKey(GOALS, "site", "lift")), Nothing)


def test_F5_3_a_finalizer_waits_for_marks_but_not_where_the_kind_is_gone():
    fleet = made(source=marked("uid-all"))
    placement = fleet.index.placements["site/all"]
    assert list(left_marks(fleet, placement)) == [DOCK]
    fleet.kind_gone(GOALS)
    assert list(left_marks(fleet, placement)) == []
