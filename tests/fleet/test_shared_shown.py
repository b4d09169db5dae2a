"""Shared mode as `fleet plan` and `fleet explain` show it (F10.3, section 12)."""

from typing import Any

from crsyncer.core.content.annotations import SHARED
from crsyncer.core.model import Json
from crsyncer.fleet.domain.fleet import Fleet
from crsyncer.fleet.domain.losses import Losses
from crsyncer.fleet.domain.shared.source_marks import UNWRITTEN
from crsyncer.fleet.domain.shown.explain_document import fleet_explain
from crsyncer.fleet.domain.shown.planning import plan
from crsyncer.fleet.domain.values import PlacedKind
from tests.fleet.lossy import turns
from tests.fleet.made import GOALS, goal, goal_id
from tests.fleet.shared_made import COPY, copied, made, raw_shared

MARKED = goal(metadata=goal()["metadata"] | {"annotations": {SHARED: "uid-all"}})


def losing(fleet: Fleet) -> Losses:
    found = Losses(fleet)
    found.started(0.0, {GOALS, f"b/{GOALS}"})
    return found


def planned(fleet: Fleet, losses: Losses | None = None) -> Json:
    return plan(fleet, losses or losing(fleet), fleet.all_keys(), now=0.0, turns=turns(fleet))


def explained(fleet: Fleet, robot: str, losses: Losses | None = None, text: str = "site/all") -> list[Any]:
    placement = fleet.index.placements[text]
    content = fleet_explain(fleet, losses or losing(fleet), placement, robot, turns=turns(fleet), now=0.0)
    keys = ("shard", "name", "uid", "verdict", "reason", "rule")
    return [[each[key] for key in keys] for each in content["replicas"]]


def test_a_plan_shows_the_copies_which_are_for_no_single_robot():
    fleet = made()
    [write] = planned(fleet)["writes"]
    assert write == {
        "verb": "create", "resource": GOALS, "shard": "b", "namespace": "site", "name": "dock", "robot": None,
        "source": "site/dock", "placement": "site/all", "when": "now",
    }  # fmt: skip
    fleet.object_shown(copied(fleet), f"b/{GOALS}")
    assert planned(fleet)["writes"] == []
    losses = losing(fleet)
    losses.changed(fleet.placement_shown(raw_shared(resources=[])), 0.0)
    assert [(each["verb"], each["robot"]) for each in planned(fleet, losses)["writes"]] == [("delete", None)]


def test_a_plan_names_what_blocks_a_copy():
    fleet = made()
    fleet.object_shown(goal(), f"b/{GOALS}")
    assert [(each["robot"], each["reason"]) for each in planned(fleet)["blocked"]] == [(None, "NameTaken")]


def test_a_robot_of_a_shard_has_the_copy_there():
    fleet = made(source=MARKED)
    assert explained(fleet, "rb") == [["b", "dock", None, "missing", "NotWritten", "F6.4"]]
    fleet.object_shown(copied(fleet), f"b/{GOALS}")
    assert explained(fleet, "rb") == [["b", "dock", "copy", "current", "Current", "F3.4"]]
    losses = losing(fleet)
    losses.changed(fleet.placement_shown(raw_shared(resources=[])), 0.0)
    assert losses.is_lost(COPY)
    assert explained(fleet, "rb", losses) == [["b", "dock", "copy", "due", "NotSelected", "F5.1"]]


def test_a_robot_of_the_root_has_the_source_itself():
    fleet = made(source=MARKED)
    assert explained(fleet, "r0") == [["root", "dock", "uid-dock", "current", "Shared", "F10.3"]]
    assert explained(made(), "r0") == [["root", "dock", "uid-dock", "due", "NotMarked", "F10.3"]]
    fleet = made(raw_shared(finalized=False))
    assert explained(fleet, "r0") == [["root", "dock", "uid-dock", "blocked", "NotMarked", "F10.3"]]
    assert explained(fleet, "rx") == []


def test_a_mark_that_the_server_refuses_is_explained():
    error = {"robot": "", "source": "site/dock", "reason": "Refused", "message": f"{UNWRITTEN}: it is forbidden"}
    others = [error | {"source": "site/lift"}, error | {"message": "shard b: it is forbidden"}]
    fleet = made(raw_shared() | {"status": {"errors": [*others, error]}})
    assert explained(fleet, "r0") == [["root", "dock", "uid-dock", "blocked", "Refused", "F10.3"]]
    fleet = made(raw_shared() | {"status": {"errors": others}})
    assert explained(fleet, "r0") == [["root", "dock", "uid-dock", "due", "NotMarked", "F10.3"]]


def test_a_cluster_scoped_source_that_a_placement_must_not_share_is_governed_by_none():
    fleet = made()
    fleet.kind_shown(PlacedKind(GOALS, "lab.example.com", "goals", "Goal", "v1", namespaced=False, shared=True))
    content = fleet_explain(fleet, losing(fleet), fleet.index.placements["site/all"], "r0", turns=turns(fleet), now=0.0)
    assert [(each["sourceId"], each["governedBy"]) for each in content["replicas"]] == [(goal_id(), None)]
