"""What the commands and statuses say is what the controller does and waits for."""

import pytest

from crsyncer.fleet.domain.shown.status_document import fleet_status
from tests.fleet_model.asking import Asked
from tests.fleet_model.controlling import fleet
from tests.fleet_model.fleet_world import FleetWorld
from tests.fleet_model.oracle import FLEET
from tests.fleet_model.rolling import entries
from tests.fleet_model.world_parts import DECISIONS, INVENTORY_KIND, STRIPS, called
from tests.model.simulation.plane import GROUP


def delete_robots_crd(world: FleetWorld, *, sweeps: int) -> None:
    """Somebody deletes the CRD of the Robots; with `sweeps` they go, and it goes."""
    world.cloud.delete_kind(INVENTORY_KIND)
    world.pass_time(1)
    for _ in range(sweeps):
        world.cloud.sweep("robots", group="registry.cloudrobotics.com")
        world.pass_time(1)
    world.settle()


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("robots", [3, 40])
def test_F5_2_robots_that_went_with_their_crd_are_held_for_their_kind_is_not_served(
    robots: int, restarts: bool
) -> None:
    with fleet(robots=robots) as world:
        since = {robot: each["since"] for robot, each in entries(world).items()}
        definition = world.definition(INVENTORY_KIND)
        delete_robots_crd(world, sweeps=3)
        if restarts:
            world.kill()
            world.start()
            world.settle()
        else:
            assert world.holds() == {"KindNotServed": robots}
        asked = Asked(world)
        assert set(asked.whens().values()) == {"held"}
        [shown] = asked.explain("p", "r1")["replicas"]
        assert (shown["verdict"], shown["reason"]) == ("held", "KindNotServed")
        assert next(each["code"] for each in asked.status()["reasons"]) == "KindNotServed"
        world.serve(definition)
        world.robots(*since)
        world.agree()
        assert world.holds() == {}
        assert {robot: each["since"] for robot, each in entries(world).items()} == since


@pytest.mark.parametrize("kind", ["goals", f"robotplacements.{FLEET}"])
def test_F5_2_what_goes_while_a_crd_is_being_deleted_is_held_and_the_commands_say_so(kind: str) -> None:
    with fleet(robots=3) as world:
        plural, _, group = kind.partition(".")
        world.cloud.finalize("dock", "example.com/wait", namespace="robot-r1")
        world.cloud.delete_kind(kind)
        world.pass_time(1)
        world.lose_robots("r1")
        world.pass_time(60)
        asked = Asked(world)
        assert world.holds() == {"KindNotServed": 1}, (plural, group or GROUP)
        assert asked.whens() == {"delete robot-r1/dock": "held"}
        [shown] = asked.explain("p", "r1")["replicas"]
        assert (shown["verdict"], shown["reason"]) == ("held", "KindNotServed")


@pytest.mark.parametrize("kind", ["goals", INVENTORY_KIND, f"robotplacements.{FLEET}", STRIPS, DECISIONS])
@pytest.mark.parametrize("restarts", [False, True])
def test_the_page_names_the_kinds_that_are_missing_as_fleet_status_does(kind: str, restarts: bool) -> None:
    with fleet(robots=3) as world:
        world.strip("s", "/spec/x")
        world.agree()
        plural, _, group = kind.partition(".")
        world.cloud.delete_kind(kind)
        world.pass_time(1)
        world.cloud.sweep(plural, group=group or GROUP)
        if restarts:
            world.kill()
            world.start()
        world.pass_time(60)
        controller = world.processes["a"].parts["controller"]
        shown = world.clock.run(called(controller.facts))
        own, asked = (
            [each["message"] for each in document["reasons"] if each["code"] == "KindNotServed"]
            for document in (fleet_status(shown), Asked(world).status())
        )
        assert own == asked
