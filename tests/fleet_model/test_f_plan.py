"""`crsyncer fleet plan` says before an edit exactly which writes of replicas the controller makes after it."""

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

import pytest

from crsyncer.adapters.config import FleetSettings
from crsyncer.cli.fleet.tried import given_placements, try_deletion, try_objects
from crsyncer.cli.fleet.whole_fleet import load_fleet
from crsyncer.core.model import Json
from crsyncer.core.requests.calls import Call
from crsyncer.fleet.domain.rollout.reports import Reports
from crsyncer.fleet.domain.shown.planning import plan
from crsyncer.fleet.domain.shown.turns import Turns
from crsyncer.fleet.domain.values import API_VERSION
from crsyncer.ports import Reply
from tests.fleet_model.controlling import control
from tests.fleet_model.fleet_history import KINDS, content, placement_spec
from tests.fleet_model.fleet_world import FleetWorld
from tests.fleet_model.world_parts import HOME, INVENTORY_KIND, PLACEMENTS, STRIPS
from tests.model.simulation.api_server import ApiServer
from tests.model.simulation.plane import GROUP
from tests.model.simulation.storage import Storage

Writes = set[tuple[str, str, str, str]]
"""Verb, resource, namespace and name."""
_VERBS = {"create": "create", "patch": "update", "delete": "delete"}
_ROBOTS = tuple(f"r{number}" for number in range(1, 7))


def planned(world: FleetWorld, given: Json | None, *, without: str = "") -> Writes:
    """What the command says for an object that counts as stored, or a placement that counts as deleted."""
    trial = ApiServer(Storage("trial", revision=1))
    trial.storage.restore(world.server.storage.snapshot())

    async def send(call: Call) -> Reply:
        return (trial if ("dryRun", "All") in call.query else world.server).answer(call)

    async def ask() -> Json:
        settings = FleetSettings(controller_namespace=HOME)
        objects = [] if given is None else [given]
        found = await load_fleet(send, settings, {}, named=given_placements(objects))
        assert found.failures == []
        if given is not None:
            await try_objects(send, found, objects)
        if without:
            try_deletion(found, without)
        reports = partial(Reports(robots_namespace="default").of_placement, now=found.now)
        turns = Turns(found.fleet, decisions=found.decisions, reports=reports, now=found.now)
        return plan(found.fleet, found.losses, found.fleet.all_keys(), now=found.now, turns=turns)

    writes = world.clock.run(ask())["writes"]
    return {
        (each["verb"], each["resource"], each["namespace"], each["name"]) for each in writes if each["when"] != "held"
    }


def made(world: FleetWorld, since: float) -> Writes:
    """What the controller has written of replicas since then."""
    return {
        (_VERBS[each.verb], each.resource, each.namespace, each.name)
        for each in world.written(since)
        if each.resource.endswith(GROUP)
    }


def _object(api_version: str, kind: str, name: str, namespace: str = "default", **fields: Any) -> Json:
    metadata = {"name": name, "namespace": namespace, **fields.pop("metadata", {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}


def void(_: object) -> None:
    """Nothing is made of a result."""


def edit(world: FleetWorld, chance: Random) -> tuple[Json | None, str, Callable[[], None]]:
    """An edit: the object that counts as stored, the placement that counts as deleted, and what makes it true."""
    cloud = world.cloud
    match chance.randrange(7):
        case 0 | 1:
            name, spec = chance.choice(["p", "q"]), placement_spec(chance)
            found = cloud.objects(PLACEMENTS).get(name)
            spec["templates"] = [{**each, "name": f"made-{name}"} for each in spec.get("templates", [])]
            raw = _object(API_VERSION, "RobotPlacement", name, spec=spec)
            if found is not None:
                spec["target"] = found["spec"].get("target", "PerRobot")
            do = cloud.set if found is not None else cloud.create
            return raw, "", lambda: void(do(name, kind=PLACEMENTS, spec=spec))
        case 2:
            name = chance.choice(sorted(cloud.objects(PLACEMENTS)) or ["p"])
            if name in cloud.objects(PLACEMENTS):
                return None, f"default/{name}", lambda: world.unplace(name)
            return None, "", lambda: None
        case 3 | 4:
            name, spec = chance.choice(["dock", "lift"]), content(chance)
            raw = _object(f"{GROUP}/v1", "Goal", name, spec=spec, metadata={"labels": {"use": "yes"}})

            def change() -> None:
                cloud.set(name, spec=spec)
                cloud.label(name, use="yes")

            return raw, "", change
        case 5:
            name, site = chance.choice(_ROBOTS), chance.choice(["north", "south"])
            labels = {"labels": {"site": site}}
            raw = _object("registry.cloudrobotics.com/v1alpha1", "Robot", name, spec={}, metadata=labels)
            return raw, "", lambda: cloud.label(name, kind=INVENTORY_KIND, site=site)
        case _ if "s" not in cloud.objects(STRIPS) and chance.random() < 0.5:
            spec = {"group": GROUP, "resource": "goals", "remove": ["/spec/text", "/spec/z"]}
            raw = _object(API_VERSION, "FieldStrip", "s", spec=spec)
            return raw, "", lambda: world.strip("s", "/spec/text", "/spec/z")
    name, data = chance.choice(_ROBOTS), {"site": chance.choice(["n", "s"]), "number": chance.choice(["1", "2"])}
    raw = _object("v1", "ConfigMap", name, "crsyncer-properties", data=data)
    return raw, "", lambda: world.set_properties(name, **data)


@pytest.mark.parametrize("seed", range(20))
def test_the_plan_names_exactly_the_writes_that_the_controller_then_makes(seed: int) -> None:
    chance = Random(f"plan-{seed}")
    with FleetWorld(control, seed, kinds=KINDS) as world:
        for name in _ROBOTS:
            world.robots(name, site=chance.choice(["north", "south"]))
        for kind, name in (("goals", "dock"), ("goals", "lift"), ("plans", "hall")):
            world.source(name, kind=kind, spec=content(chance), labels={"use": "yes"})
        spec = placement_spec(chance)
        spec["templates"] = [{**each, "name": "made-p"} for each in spec.get("templates", [])]
        world.place("p", **spec)
        world.start()
        world.settle()
        assert planned(world, None) == set()
        for _ in range(10):
            given, without, change = edit(world, chance)
            said = planned(world, given, without=without)
            began = world.clock.now
            change()
            world.settle()
            assert made(world, began) == said, (given, without)
