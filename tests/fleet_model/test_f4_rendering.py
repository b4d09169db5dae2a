"""Strips, overrides and properties, as far as the controller carries them to replicas (F4)."""

import pytest

from crsyncer.core.model import Json
from tests.fleet_model.controlling import fleet
from tests.fleet_model.fleet_world import FleetWorld
from tests.fleet_model.oracle import FLEET
from tests.fleet_model.world_parts import INVENTORY_KIND, STRIPS
from tests.model.simulation.plane import GROUP

NORTH = {"matchLabels": {"site": "north"}}


def patched(world: FleetWorld, since: float) -> list[str]:
    """The replicas that were written since then."""
    return sorted(f"{each.namespace}/{each.name}" for each in world.written(since, resource="goals"))


def test_F4_a_property_changes_the_replicas_that_use_it_and_no_other() -> None:
    with fleet(robots=5, start=False) as world:
        world.source("lift", spec={"map": '{{ .site | default "none" }}'})
        world.edit("p", expand=True)
        world.start()
        world.agree()
        began = world.clock.now
        world.set_properties("r2", site="north", other="x")
        world.agree()
        assert patched(world, began) == ["robot-r2/lift"]
        assert world.specs()["robot-r2/lift"] == {"map": "north"}
        began = world.clock.now
        world.set_properties("r2", site="north", other="y")
        world.settle()
        assert patched(world, began) == []


def test_F4_a_label_of_one_robot_costs_the_writes_of_that_robot() -> None:
    step = {"path": "/spec/zone", "set": {"value": "cold"}}
    with fleet(robots=5, start=False) as world:
        world.edit("p", overrides=[{"robotSelector": NORTH, "steps": [step]}])
        world.start()
        world.agree()
        began = world.clock.now
        world.cloud.label("r4", kind=INVENTORY_KIND, site="north")
        world.agree()
        assert patched(world, began) == ["robot-r4/dock"]


def test_F4_4_a_template_error_keeps_the_last_good_content_also_after_a_restart_and_stops_no_other() -> None:
    names = [f"r{number}" for number in range(1, 301)]
    with fleet(robots=len(names), start=False) as world:
        for name in names:
            world.set_properties(name, site=name)
        world.cloud.set("dock", spec={"x": "{{ .site }}"})
        world.edit("p", expand=True)
        world.start()
        world.agree()
        world.set_properties("r2", other="x")
        world.pass_time(1)
        world.cloud.set("dock", spec={"x": "new {{ .site }}"})
        world.agree()
        found = world.specs()
        assert found.pop("robot-r2/dock") == {"x": "r2"}
        assert found == {f"robot-{name}/dock": {"x": f"new {name}"} for name in names if name != "r2"}
        world.kill()
        began = world.clock.now
        world.start()
        world.settle()
        assert [str(each) for each in world.written(began)] == []
        (error,) = world.status()["errors"]
        assert (error["robot"], error["reason"]) == ("r2", "RenderFailed")
        assert world.decided()["r2"] == "Blocked"
        world.set_properties("r2", site="south")
        world.agree()
        assert world.specs()["robot-r2/dock"] == {"x": "new south"}
        assert world.status()["errors"] == []


def test_F4_2_a_strip_renders_its_kind_anew_and_no_other() -> None:
    with fleet(robots=2, start=False, kinds={"goals": {}, "plans": {}}) as world:
        world.source("hall", kind="plans", spec={"secret": 1, "x": 2})
        world.cloud.set("dock", spec={"secret": 1, "x": 2})
        entries: list[Json] = [{"group": GROUP, "resource": kind, "selectors": [{}]} for kind in ("goals", "plans")]
        world.edit("p", resources=entries)
        world.start()
        world.agree()
        began = world.clock.now
        world.strip("s", "/spec/secret")
        world.agree()
        assert patched(world, began) == ["robot-r1/dock", "robot-r2/dock"]
        assert world.written(began, resource="plans") == []
        world.cloud.delete("s", kind=STRIPS)
        world.agree()
        assert world.specs()["robot-r1/dock"] == {"secret": 1, "x": 2}


@pytest.mark.parametrize("restart", [False, True])
def test_F4_2_while_the_kind_of_strips_is_away_no_replica_is_written(restart: bool) -> None:
    with fleet(robots=2) as world:
        world.strip("s", "/spec/secret")
        world.cloud.set("dock", spec={"secret": 1, "x": 2})
        world.agree()
        definition = world.definition(STRIPS)
        world.cloud.delete_kind(STRIPS)
        world.pass_time(1)
        world.cloud.sweep("fieldstrips", group=FLEET)
        world.pass_time(2)
        if restart:
            world.kill()
            world.start()
        began = world.clock.now
        world.cloud.set("dock", spec={"secret": 2, "x": 3})
        world.pass_time(100)
        assert patched(world, began) == []
        world.serve(definition)
        world.strip("s", "/spec/secret")
        world.agree()
        assert world.specs()["robot-r1/dock"] == {"x": 3}


def test_F4_2_while_the_kind_of_strips_is_away_no_replica_is_written_where_there_was_no_strip_either() -> None:
    with fleet(robots=2) as world:
        world.agree()
        definition = world.definition(STRIPS)
        world.cloud.delete_kind(STRIPS)
        world.pass_time(1)
        world.cloud.sweep("fieldstrips", group=FLEET)
        world.pass_time(2)
        began = world.clock.now
        world.cloud.set("dock", spec={"x": 3})
        world.pass_time(100)
        assert patched(world, began) == []
        world.serve(definition)
        world.agree()
        assert world.specs()["robot-r1/dock"] == {"x": 3}


def test_F4_2_a_strip_that_went_with_its_kind_stays_in_force_when_the_kind_is_back() -> None:
    with fleet(robots=2) as world:
        world.strip("s", "/spec/secret")
        world.cloud.set("dock", spec={"secret": 1, "x": 2})
        world.agree()
        definition = world.definition(STRIPS)
        world.cloud.delete_kind(STRIPS)
        world.pass_time(1)
        world.cloud.sweep("fieldstrips", group=FLEET)
        world.pass_time(10)
        began = world.clock.now
        world.serve(definition)
        world.pass_time(100)
        assert patched(world, began) == []
        world.strip("s", "/spec/secret")
        world.agree()
        world.cloud.delete("s", kind=STRIPS)
        world.agree()
        assert world.specs()["robot-r1/dock"] == {"secret": 1, "x": 2}


def test_F4_3_overrides_are_applied_in_order_to_content_labels_and_annotations() -> None:
    steps = [
        {"path": "/spec/deep/y", "set": {"value": 1}},
        {"path": "/spec/deep/y", "set": {"value": 2}},
        {"path": "/metadata/labels/zone", "set": {"value": "a"}},
        {"path": "/spec/x", "remove": True},
        {"path": "/spec/name", "property": {"name": "robotName"}},
    ]
    with fleet(robots=1, start=False) as world:
        world.edit("p", overrides=[{"steps": steps}])
        world.start()
        world.agree()
        assert world.specs() == {"robot-r1/dock": {"deep": {"y": 2}, "name": "r1"}}
        assert world.replicas()["robot-r1/dock"]["metadata"]["labels"]["zone"] == "a"


def test_7_two_strips_of_a_kind_both_act_and_both_warn() -> None:
    with fleet(robots=1) as world:
        world.cloud.set("dock", spec={"a": 1, "b": 2, "x": 3})
        world.strip("s", "/spec/a")
        world.strip("t", "/spec/b")
        world.agree()
        assert world.specs()["robot-r1/dock"] == {"x": 3}
        said = {name: each["status"]["warnings"] for (_, name), each in world.stored(STRIPS).items()}
        first = f"other FieldStrips of goals.{GROUP}: "
        assert said == {"s": [f"{first}t; all of them act"], "t": [f"{first}s; all of them act"]}
        assert all(each["status"]["observedGeneration"] for each in world.stored(STRIPS).values())
        world.cloud.delete("t", kind=STRIPS)
        world.agree()
        assert world.stored(STRIPS)["", "s"]["status"]["warnings"] == []
        began = world.clock.now
        world.kill()
        world.start()
        world.settle()
        assert [each for each in world.written(began) if each.resource == STRIPS] == []
