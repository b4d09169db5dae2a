"""The document of `crsyncer fleet release`: where each hold is, and which replicas it keeps."""

from typing import Any

import pytest

from crsyncer.core.content.object_content import digest
from crsyncer.fleet.domain.read_objects import placement_of
from crsyncer.fleet.domain.rollout.decisions import Decision, decision_of
from crsyncer.fleet.domain.shown.release_document import (
    SCHEMA,
    HeldHere,
    orphan_holds,
    orphans,
    release_document,
    shown_holds,
    with_names,
)
from tests.fleet.lossy import World
from tests.fleet.made import GOALS, raw_placement


def decision(name: str = "all", *, uid: str = "uid-all", number: int = 0) -> Decision:
    return decision_of(
        {"metadata": {"name": f"{name}-{number}", "namespace": "site"}, "placement": {"name": name, "uid": uid}}
    )


def held(uids: list[str], **fields: Any) -> HeldHere:
    values = {"namespace": "site", "placement": "all", "uid": "uid-all", "objects": len(uids), **fields}
    return HeldHere(id=digest(sorted(uids)), reason="RobotsLost", message="m", **values)


def names(world: World, uids: list[str]) -> Any:
    return with_names(held(uids), world.fleet, world.losses).names


def test_the_holds_are_those_of_the_statuses():
    shown = {"id": "ab12", "reason": "RobotsLost", "objects": 7, "message": "7 replicas"}
    raw = raw_placement("nav", robotSelectors=[{}]) | {"status": {"holds": [shown, {}]}}
    first, second = shown_holds([placement_of(raw)])
    values: Any = {"namespace": "site", "placement": "nav", "uid": "uid-nav"}
    assert first == HeldHere("ab12", "RobotsLost", "7 replicas", 7, **values)
    assert second == HeldHere("None", "", "", 0, **values)


def test_F5_2_the_holds_of_a_placement_that_is_gone_are_on_its_first_decision():
    world = World(robots=2)
    world.do(world.fleet.placement_gone("site", "all"))
    other = placement_of(raw_placement("nav"))
    gone = orphans([decision(number=1), decision(), decision("nav", uid="uid-nav")], [other])
    assert {uid: each.name for uid, each in gone.items()} == {"uid-all": "all-0"}
    [found] = orphan_holds(world.losses, gone)
    assert (found.reason, found.objects, found.decision, found.placement) == ("PlacementGone", 2, "all-0", "all")
    assert with_names(found, world.fleet, world.losses).names == (
        f"{GOALS}/robot-r0/dock",
        f"{GOALS}/robot-r1/dock",
    )


def test_F5_2_the_replicas_of_a_hold_are_those_whose_uids_make_its_id():
    world = World(robots=1)
    world.gone("r0")
    assert names(world, ["uid-robot-r0-dock"]) == (f"{GOALS}/robot-r0/dock",)
    assert names(world, ["uid-robot-r1-dock"]) is None


@pytest.mark.parametrize(
    ("lost", "uids"),
    [
        ("all", ["robot-r0-dock", "robot-r0-goal1", "robot-r1-goal1", "robot-r2-goal1"]),
        ("the robot's", ["robot-r0-dock", "robot-r0-goal1"]),
        ("those of a source that is still there", ["robot-r0-dock"]),
        ("one robot's", ["robot-r1-goal1"]),
        ("all but one robot's", ["robot-r0-dock", "robot-r0-goal1", "robot-r2-goal1"]),
        ("the source's", ["robot-r0-goal1", "robot-r1-goal1", "robot-r2-goal1"]),
    ],
)
def test_F5_2_what_another_leader_held_is_found_by_what_was_lost(lost, uids):
    world = World(robots=3, sources=2)
    world.do(world.fleet.object_gone(GOALS, "site", "goal1"))
    world.gone("r0")
    found = names(world, [f"uid-{each}" for each in uids])
    assert [*found] == [f"{GOALS}/{each.replace('-dock', '/dock').replace('-goal1', '/goal1')}" for each in uids]


def test_F5_2_of_very_many_robots_not_each_is_tried():
    world = World(robots=202)
    world.gone(*world.names)
    assert names(world, ["uid-robot-r0-dock"]) is None
    assert len(names(world, [f"uid-robot-{name}-dock" for name in world.names])) == 202


def test_a_document_says_what_is_not_known():
    content = release_document([held([], decision="all-0"), held([], names=("a",))], released=False)
    assert (content["schema"], content["released"]) == (SCHEMA, False)
    first, second = content["holds"]
    assert (first["decision"], first["names"]) == ("all-0", None)
    assert (second["decision"], second["names"]) == (None, ["a"])
