"""What goes, when, and what is held for a human (F5)."""

from collections.abc import Callable

import pytest

from crsyncer.core.model import Json
from tests.fleet_model.controlling import control, fleet
from tests.fleet_model.fleet_judge import FINALIZER
from tests.fleet_model.fleet_machine import HELD, RELEASE
from tests.fleet_model.fleet_world import FleetWorld
from tests.fleet_model.oracle import FLEET, REPLICA, ROBOT_LABEL, SOURCE
from tests.fleet_model.world_parts import DECISIONS, INVENTORY_KIND, PLACEMENTS
from tests.model.simulation.answers import INTERNAL_ERROR


def gone_after(world: FleetWorld, place: str, *, seconds: float = 120.0) -> float:
    """Let time pass until a replica is gone; how long that took."""
    began = world.clock.now
    while place in world.replicas():
        assert world.clock.now < began + seconds, f"{place} is still there"
        world.pass_time(0.5)
    return world.clock.now - began


def release(world: FleetWorld, name: str = "p") -> None:
    """A human releases the holds that a placement shows, one after the other."""
    while holds := world.status(name)["holds"]:
        world.cloud.annotate(name, {RELEASE: holds[0]["id"]}, kind=PLACEMENTS)
        world.settle()


def restart(world: FleetWorld) -> None:
    """Another leader follows."""
    world.kill()
    world.start()


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
        release(world)
        world.agree()
        assert list(world.replicas()) == ["robot-r1/dock"]


def lose_robots(world: FleetWorld) -> None:
    """Most Robots are deleted."""
    world.lose_robots(*(f"r{number}" for number in range(1, 9)))


def lose_all_robots(world: FleetWorld) -> None:
    """All Robots are deleted."""
    world.lose_robots(*(f"r{number}" for number in range(1, 11)))


def lose_labels(world: FleetWorld) -> None:
    """Most robots of the placement lose the label by which it selects them."""
    for number in range(1, 9):
        world.cloud.label(f"r{number}", kind=INVENTORY_KIND, site=None)


def lose_sources(world: FleetWorld) -> None:
    """Most sources are deleted."""
    for number in range(1, 9):
        world.cloud.delete(f"s{number}")


def find_again(world: FleetWorld) -> None:
    """All that was lost is there again."""
    for number in range(1, 11):
        if f"r{number}" not in world.cloud.objects(INVENTORY_KIND):
            world.robots(f"r{number}", site="north")
        world.cloud.label(f"r{number}", kind=INVENTORY_KIND, site="north")
        if f"s{number}" not in world.cloud.objects():
            world.source(f"s{number}")


LOSSES: tuple[tuple[Callable[[FleetWorld], None], str], ...] = (
    (lose_robots, "RobotsLost"),
    (lose_all_robots, "RobotsLost"),
    (lose_labels, "PlacementRobotsLost"),
    (lose_sources, "SourcesLost"),
)


def big() -> FleetWorld:
    """Ten robots with the label site, and ten sources."""
    world = FleetWorld(control)
    world.robots(*(f"r{number}" for number in range(1, 11)), site="north")
    for number in range(1, 11):
        world.source(f"s{number}")
    world.place("p", robotSelectors=[{"matchLabels": {"site": "north"}}])
    return world


@pytest.mark.parametrize("away", [False, True], ids=["seen", "while nobody led"])
@pytest.mark.parametrize(("lose", "reason"), LOSSES, ids=lambda each: getattr(each, "__name__", ""))
def test_F5_2_a_mass_loss_is_held_and_ends_when_all_is_back(
    lose: Callable[[FleetWorld], None], reason: str, away: bool
) -> None:
    with big() as world:
        world.start()
        world.agree()
        if away:
            world.kill()
        lose(world)
        if away:
            world.start()
        world.pass_time(150)
        assert len(world.replicas()) >= 95  # of each case some were lost before it was too many
        held = sum(world.holds().values())
        assert held >= 70
        assert reason in world.holds()
        assert world.condition("Held")[0] == "True"
        restart(world)
        world.pass_time(60)
        assert sum(world.holds().values()) == held
        find_again(world)
        world.agree()
        assert len(world.replicas()) == 100
        assert world.holds() == {}
        assert [str(each) for each in world.written(resource="goals") if each.verb == "delete"] == []


@pytest.mark.parametrize(("lose", "reason"), LOSSES, ids=lambda each: getattr(each, "__name__", ""))
def test_F5_2_a_release_removes_exactly_what_its_id_showed(lose: Callable[[FleetWorld], None], reason: str) -> None:
    with big() as world:
        world.start()
        world.agree()
        lose(world)
        world.pass_time(100)
        assert reason in world.holds()
        held = sum(world.holds().values())
        world.cloud.annotate("p", {RELEASE: "0123456789abcdef01234567"}, kind=PLACEMENTS)
        world.settle()
        assert RELEASE not in (world.placement()["metadata"].get("annotations") or {})
        assert sum(world.holds().values()) == held
        before = len(world.replicas())
        release(world)
        assert len(world.replicas()) == before - held
        assert world.holds() == {}
        assert RELEASE not in (world.placement()["metadata"].get("annotations") or {})


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
