"""Which robots get which sources, and which placement governs (F2)."""

from typing import Any

import pytest

from crsyncer.core.model import Json
from tests.fleet_model.controlling import control, fleet
from tests.fleet_model.fleet_world import FleetWorld
from tests.fleet_model.judged_objects import marks
from tests.fleet_model.world_parts import HOME, INVENTORY_KIND, PLACEMENTS, placing
from tests.model.scenes.policies import put_policy, serve_policies
from tests.model.simulation.plane import GROUP

NORTH = {"matchLabels": {"site": "north"}}
SOUTH = {"matchLabels": {"site": "south"}}


def robots_of(world: FleetWorld, kind: str = "goals") -> list[str]:
    """The robots that have a replica."""
    return sorted(place.partition("/")[0].removeprefix("robot-") for place in world.replicas(kind))


def test_F2_1_robots_are_the_union_of_selectors_and_names() -> None:
    with FleetWorld(control) as world:
        world.robots("r1", "r2", site="north")
        world.robots("r3", "r4", "r5")
        world.source()
        world.place("p", robotSelectors=[NORTH, SOUTH], robotNames=["r4", "nobody"])
        world.start()
        world.agree()
        assert robots_of(world) == ["r1", "r2", "r4"]
        assert [each["reason"] for each in world.status()["errors"]] == ["UnknownRobot"]
        world.cloud.label("r5", kind=INVENTORY_KIND, site="south")
        world.agree()
        assert robots_of(world) == ["r1", "r2", "r4", "r5"]


def test_F2_1_a_terminating_robot_is_given_nothing_and_keeps_what_it_has_for_a_while() -> None:
    with fleet() as world:
        world.cloud.finalize("r1", "example.com/wait", kind=INVENTORY_KIND)
        world.lose_robots("r1")
        world.pass_time(1)
        world.source("lift")
        world.pass_time(20)
        assert "robot-r1/lift" not in world.replicas()
        assert "robot-r1/dock" in world.replicas()
        world.agree()
        assert robots_of(world) == ["r2", "r2", "r3", "r3"]


@pytest.mark.parametrize(
    ("entry", "names"),
    [
        ({"names": ["dock", "hall"], "selectors": []}, ["dock"]),
        ({"selectors": [{"matchLabels": {"use": "yes"}}]}, ["lift"]),
        ({"names": ["dock"], "selectors": [{"matchLabels": {"use": "yes"}}]}, []),
        ({"selectors": [{}]}, ["dock", "lift"]),
    ],
)
def test_F2_2_sources_are_chosen_by_names_and_labels(entry: Json, names: list[str]) -> None:
    with FleetWorld(control) as world:
        world.robots("r1")
        world.source("dock")
        world.source("lift", labels={"use": "yes"})
        world.source("for-a-robot", labels={"cloudrobotics.com/robot-name": "r9", "use": "yes"})
        world.source("other", namespace="crsyncer-properties")
        world.place("p", **placing("goals", **entry))
        world.start()
        world.agree()
        assert sorted(world.replicas()) == [f"robot-r1/{name}" for name in names]


def test_F2_2_only_placements_beside_the_controller_select_cluster_scoped_kinds() -> None:
    with FleetWorld(control, kinds={"maps": {"cluster": True}}) as world:
        world.robots("r1", "r2")
        world.source("hall", kind="maps")
        world.place("p", **placing("maps"))
        world.start()
        world.settle()
        assert world.replicas("maps") == {}
        assert world.condition("Resolved") == ("False", "NotAllowed")
        world.place("q", namespace=HOME, **placing("maps"))
        world.agree()
        assert sorted(world.replicas("maps")) == ["/hall-r1", "/hall-r2"]


@pytest.mark.parametrize(
    ("kind", "reason"),
    [({"source": "robot"}, "NotPlaceable"), ({"filtered": None}, "NotPlaceable"), (None, "NotServed")],
)
def test_F2_3_a_kind_that_is_not_placeable_is_told_and_other_entries_go_on(kind: Any, reason: str) -> None:
    kinds = {"goals": {}, **({} if kind is None else {"plans": kind})}
    with FleetWorld(control, kinds=kinds) as world:
        world.robots("r1")
        world.source()
        if kind is not None:
            world.source("hall", kind="plans")
        world.place("p", **placing("plans", "goals"))
        world.start()
        world.agree()
        assert world.condition("Resolved") == ("False", reason)
        assert list(world.replicas()) == ["robot-r1/dock"]
        assert world.replicas("plans") == {} if kind is not None else True


@pytest.mark.parametrize("restart", [False, True])
def test_F2_3_replicas_of_a_kind_that_is_placeable_no_more_stay_as_they_are(restart: bool) -> None:
    with fleet() as world:
        world.cloud.annotate_kind({"cr-syncer.cloudrobotics.com/spec-source": "robot"})
        world.establish("goals")
        if restart:
            world.kill()
            world.start()
        world.pass_time(20)
        began = world.clock.now
        world.cloud.set("dock", spec={"x": 7})
        world.lose_robots("r1")
        world.settle()
        assert world.condition("Resolved") == ("False", "NotPlaceable")
        assert world.written(began, resource="goals") == []
        assert world.holds() == {}
        world.cloud.annotate_kind({"cr-syncer.cloudrobotics.com/spec-source": "cloud"})
        world.establish("goals")
        world.agree()
        assert world.specs() == {"robot-r2/dock": {"x": 7}, "robot-r3/dock": {"x": 7}}


@pytest.mark.parametrize("target", ["Same", "PerRobot"])
def test_F2_3_robots_are_no_sources_and_get_no_replicas_that_would_be_robots(target: str) -> None:
    with fleet() as world:
        chosen = [{"group": "registry.cloudrobotics.com", "resource": "robots", "selectors": [{}]}]
        world.place("more", target=target, resources=chosen)
        world.settle()
        assert world.condition("Resolved", "more") == ("False", "NotPlaceable")
        assert set(world.stored(INVENTORY_KIND)) == {("default", f"r{each}") for each in (1, 2, 3)}
        assert held(world) == {"goals.lab.example.com"}


def held(world: FleetWorld) -> set[str]:
    """The kinds of the objects that the controller holds as sources."""
    return {key.resource for key in world.processes["a"].parts["controller"].leading.state.fleet.index.sources}


def test_F2_3_the_objects_of_a_kind_that_is_placeable_no_more_are_not_held_until_it_is_again() -> None:
    with FleetWorld(control, kinds={"goals": {}, "plans": {}}) as world:
        world.robots("r1", "r2")
        world.source("hall", kind="plans")
        world.start()
        world.settle()
        assert held(world) == {f"plans.{GROUP}"}
        for source, expected in (("robot", set()), ("cloud", {f"plans.{GROUP}"})):
            world.cloud.annotate_kind({"cr-syncer.cloudrobotics.com/spec-source": source}, kind="plans")
            world.establish("plans")
            world.settle()
            assert held(world) == expected
        world.place("p", **placing("plans"))
        world.agree()
        assert sorted(world.replicas("plans")) == ["robot-r1/hall", "robot-r2/hall"]


def test_F2_3_a_sync_policy_makes_config_maps_placeable() -> None:
    with FleetWorld(control) as world:
        serve_policies(world.cloud)
        world.establish("syncpolicies.crsyncer.cloudrobotics.com")
        world.robots("r1")
        world.cloud.create("settings", kind="configmaps", data={"a": "1"})
        world.place(
            "p", robotSelectors=[{}], resources=[{"group": "", "resource": "configmaps", "names": ["settings"]}]
        )
        world.start()
        world.settle()
        assert world.condition("Resolved") == ("False", "NotPlaceable")
        spec = {
            "resource": {"group": "", "resource": "configmaps"},
            "specSource": "cloud",
            "filter": {"byRobotName": True},
        }
        put_policy(world.cloud, "maps", spec)
        world.signal.ring()
        world.settle()
        assert world.condition("Resolved") == ("True", "Resolved")
        assert world.replicas("configmaps")["robot-r1/settings"]["data"] == {"a": "1"}
        world.cloud.set("settings", kind="configmaps", data={"a": "2"})
        world.settle()
        assert world.replicas("configmaps")["robot-r1/settings"]["data"] == {"a": "2"}


def test_F2_3_a_kind_that_is_served_again_is_told_where_no_source_is_left_of_it() -> None:
    with fleet() as world:
        definition = world.definition("goals")
        world.cloud.delete_kind()
        while not world.cloud.sweep():
            world.pass_time(1)
        world.settle()
        assert world.condition("Resolved") == ("False", "NotServed")
        world.serve(definition)
        world.settle()
        assert world.condition("Resolved") == ("True", "Resolved")


def test_F2_4_the_oldest_placement_governs_and_the_next_takes_over_by_one_write() -> None:
    with fleet(robots=2) as world:
        world.pass_time(5)
        steps = [{"path": "/spec/by", "set": {"value": "q"}}]
        world.place("q", overrides=[{"steps": steps}])
        world.agree()
        assert world.specs() == {"robot-r1/dock": {"x": 1}, "robot-r2/dock": {"x": 1}}
        began = world.clock.now
        world.unplace("p")
        world.agree()
        assert world.specs() == {"robot-r1/dock": {"x": 1, "by": "q"}, "robot-r2/dock": {"x": 1, "by": "q"}}
        assert [each.verb for each in world.written(began, resource="goals")] == ["patch", "patch"]
        uid = world.placement("q")["metadata"]["uid"]
        assert {marks(each)["placement"] for each in world.replicas().values()} == {uid}
        assert list(world.cloud.objects(PLACEMENTS)) == ["q"]


def test_F2_4_when_the_oldest_is_followed_again_marks_and_content_are_its() -> None:
    with fleet(robots=1) as world:
        world.pass_time(5)
        world.place("q", overrides=[{"steps": [{"path": "/spec/by", "set": {"value": "q"}}]}])
        world.agree()
        world.edit("p", robotSelectors=[], robotNames=[])
        world.agree()
        assert world.specs() == {"robot-r1/dock": {"x": 1, "by": "q"}}
        world.edit("p", robotNames=["r1"])
        world.agree()
        assert world.specs() == {"robot-r1/dock": {"x": 1}}
        assert [each for each in world.written() if each.verb == "delete" and each.resource.startswith("goals")] == []


def test_F2_4_a_create_only_replica_changes_its_marks_alone() -> None:
    with fleet(robots=1, start=False) as world:
        world.edit("p", resources=[{"group": GROUP, "resource": "goals", "selectors": [{}], "strategy": "CreateOnly"}])
        world.start()
        world.agree()
        world.pass_time(5)
        world.place(
            "q",
            **placing("goals", strategy="CreateOnly"),
            overrides=[{"steps": [{"path": "/spec/by", "set": {"value": "q"}}]}],
        )
        world.unplace("p")
        world.agree()
        assert world.specs() == {"robot-r1/dock": {"x": 1}}
        assert marks(world.replicas()["robot-r1/dock"])["placement"] == world.placement("q")["metadata"]["uid"]


def test_F2_4_a_new_placement_whose_rollout_cannot_begin_a_robot_takes_over_its_replicas() -> None:
    unknown = {"path": "/spec/number", "property": {"name": "number", "type": "integer"}}
    with fleet(robots=1) as world:
        world.place(
            "q", overrides=[{"robotSelector": {}, "steps": [unknown]}], readyWhen="true", rollout={"maxConcurrency": 1}
        )
        world.unplace("p")
        world.agree()
        assert set(world.cloud.objects(PLACEMENTS)) == {"q"}
        assert marks(world.replicas()["robot-r1/dock"])["placement"] == world.placement("q")["metadata"]["uid"]


def test_F2_4_two_targets_of_one_source_are_two_replicas() -> None:
    with fleet(robots=1) as world:
        world.place("q", target="Same")
        world.agree()
        assert sorted(world.replicas()) == ["default/dock-r1", "robot-r1/dock"]
