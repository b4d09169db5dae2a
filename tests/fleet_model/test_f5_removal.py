"""What goes, when, and what is held for a human (F5)."""

import pytest

from crsyncer.core.model import Json
from tests.fleet_model.controlling import fleet
from tests.fleet_model.fleet_judge import FINALIZER
from tests.fleet_model.fleet_machine import HELD, RELEASE
from tests.fleet_model.fleet_world import FleetWorld
from tests.fleet_model.oracle import FLEET, REPLICA, ROBOT_LABEL, SOURCE
from tests.fleet_model.world_parts import DECISIONS, PLACEMENTS
from tests.model.simulation.answers import INTERNAL_ERROR


def gone_after(world: FleetWorld, place: str, *, seconds: float = 120.0) -> float:
    """Let time pass until a replica is gone; how long that took."""
    began = world.clock.now
    while place in world.replicas():
        assert world.clock.now < began + seconds, f"{place} is still there"
        world.pass_time(0.5)
    return world.clock.now - began


def test_F5_1_a_replica_goes_at_once_after_an_edit_of_its_placement() -> None:
    with fleet(robots=20) as world:
        world.edit("p", robotSelectors=[], robotNames=["r1"])
        assert gone_after(world, "robot-r20/dock") <= 2.0
        world.agree()
        assert list(world.replicas()) == ["robot-r1/dock"]
        assert world.holds() == {}


def test_F5_1_a_replica_goes_5_s_after_its_source_and_30_s_after_its_robot() -> None:
    with fleet(robots=3) as world:
        world.source("lift")
        world.agree()
        world.cloud.delete("dock")
        assert 5.0 <= gone_after(world, "robot-r1/dock") <= 7.0
        world.lose_robots("r1")
        assert 30.0 <= gone_after(world, "robot-r1/lift") <= 32.0
        world.cloud.label("lift", **{"cloudrobotics.com/robot-name": "r9"})
        assert 5.0 <= gone_after(world, "robot-r2/lift") <= 7.0


@pytest.mark.parametrize("seconds", [3.0, 20.0])
def test_F5_1_what_comes_back_in_time_keeps_its_replica(seconds: float) -> None:
    with fleet(robots=2) as world:
        uids = {place: raw["metadata"]["uid"] for place, raw in world.replicas().items()}
        if seconds < 5:
            world.cloud.delete("dock")
        world.lose_robots("r1")
        world.pass_time(seconds)
        world.robots("r1")
        if seconds < 5:
            world.source("dock")
        world.agree()
        assert {place: raw["metadata"]["uid"] for place, raw in world.replicas().items()} == uids


def test_F5_1_what_is_missing_for_a_new_leader_is_a_loss_and_no_edit() -> None:
    with fleet(robots=12) as world:
        world.kill()
        world.edit("p", robotSelectors=[], robotNames=["r1"])
        world.start()
        world.settle()
        assert len(world.replicas()) == 12
        assert world.holds() == {"PlacementRobotsLost": 11}
        world.cloud.annotate("p", {RELEASE: world.status()["holds"][0]["id"]}, kind=PLACEMENTS)
        world.agree()
        assert list(world.replicas()) == ["robot-r1/dock"]


def test_F5_2_a_few_losses_are_not_held() -> None:
    with fleet(robots=20) as world:
        world.lose_robots("r1", "r2", "r3")
        world.agree()
        assert len(world.replicas()) == 17
        assert world.holds() == {}


def test_F5_2_a_placement_whose_finalizer_was_taken_away_leaves_its_replicas_to_whoever_selects_them() -> None:
    with fleet(robots=2) as world:
        world.place("q", robotNames=["r1"], robotSelectors=[])
        world.agree()
        world.cloud.finalize("p", kind=PLACEMENTS)
        world.unplace("p")
        world.cloud.finalize("p", kind=PLACEMENTS) if "p" in world.cloud.objects(PLACEMENTS) else None
        world.settle()
        assert "p" not in world.cloud.objects(PLACEMENTS)
        assert sorted(world.replicas()) == ["robot-r1/dock", "robot-r2/dock"]
        decisions = [each["placement"]["name"] for each in world.stored(DECISIONS).values()]
        assert sorted(set(decisions)) == ["p", "q"]
        world.place("p", robotNames=["r2"], robotSelectors=[])
        world.agree()
        assert {name for _, name in world.stored(DECISIONS)} >= {"p-1"}


def test_F5_3_the_finalizer_waits_for_replicas_and_not_for_robots() -> None:
    with fleet(robots=3) as world:
        world.cloud.finalize("dock", HELD, namespace="robot-r1")
        world.unplace("p")
        world.settle()
        assert "p" not in world.cloud.objects(PLACEMENTS)
        assert world.stored(DECISIONS) == {}
        assert list(world.replicas()) == ["robot-r1/dock"]
        order = [(each.verb, each.resource.partition(".")[0]) for each in world.written() if each.time > 40]
        assert order.index(("delete", "robotplacementdecisions")) > order.index(("delete", "goals"))


def test_F5_3_the_finalizer_waits_while_a_replica_cannot_be_removed() -> None:
    with fleet(robots=2) as world:
        world.inject(INTERNAL_ERROR, verb="delete", part="/goals", times=1000, seconds=60)
        world.unplace("p")
        world.pass_time(55)
        assert "p" in world.cloud.objects(PLACEMENTS)
        assert len(world.replicas()) == 2
        world.agree()
        assert "p" not in world.cloud.objects(PLACEMENTS)


def test_F5_3_replicas_of_a_kind_that_is_not_placeable_go_with_their_placement() -> None:
    with fleet(robots=2) as world:
        world.cloud.annotate_kind({"cr-syncer.cloudrobotics.com/spec-source": "robot"})
        world.establish("goals")
        world.pass_time(10)
        world.unplace("p")
        world.settle()
        assert world.replicas() == {}
        assert "p" not in world.cloud.objects(PLACEMENTS)


def test_F5_3_a_decision_without_placement_and_replicas_is_deleted() -> None:
    with fleet(robots=1) as world:
        placement: Json = {"name": "old", "uid": "long-gone"}
        world.cloud.create("old-3", kind=DECISIONS, placement=placement, robots=[{"name": "r1", "state": "Ready"}])
        world.settle()
        assert {name for _, name in world.stored(DECISIONS)} == {"p-0"}


@pytest.mark.parametrize("how", ["edit", "delete"])
def test_F5_4_keep_replicas_removes_only_our_marks(how: str) -> None:
    with fleet(robots=2) as world:
        world.edit("p", deletionPolicy="KeepReplicas")
        world.settle()
        if how == "edit":
            world.edit("p", robotSelectors=[], robotNames=["r2"])
        else:
            world.unplace("p")
        world.settle()
        found = world.cloud.objects("goals", "robot-r1")["dock"]
        assert found["spec"] == {"x": 1}
        assert SOURCE not in found["metadata"]["labels"]
        assert REPLICA not in (found["metadata"].get("annotations") or {})
        assert found["metadata"]["labels"][ROBOT_LABEL] == "r1"
        assert ("p" in world.cloud.objects(PLACEMENTS)) is (how == "edit")


def test_F5_5_missing_robot_namespaces_are_made_with_their_label_and_never_deleted() -> None:
    with fleet(robots=2, start=False) as world:
        world.server.make_namespace("robot-r1")
        before = world.stored("namespaces")["", "robot-r1"]
        world.start()
        world.agree()
        made = world.stored("namespaces")["", "robot-r2"]
        assert made["metadata"]["labels"] == {"crsyncer.cloudrobotics.com/robot-name": "r2"}
        assert world.stored("namespaces")["", "robot-r1"] == before
        world.unplace("p")
        world.lose_robots("r1", "r2")
        world.settle()
        assert {("", "robot-r1"), ("", "robot-r2")} <= world.stored("namespaces").keys()


def test_F5_3_F6_3_the_finalizer_comes_first() -> None:
    with fleet(robots=1) as world:
        order = [(each.verb, each.resource.partition(".")[0]) for each in world.written()]
        assert order[:2] == [("patch", "robotplacements"), ("create", "robotplacementdecisions")]
        assert FINALIZER in world.placement()["metadata"]["finalizers"]
        assert FLEET in FINALIZER
