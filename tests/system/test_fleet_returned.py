"""What a real API server takes of what the controller makes of returned statuses (F7)."""

from crsyncer.sandbox.resource import Resource
from tests.api import Object
from tests.system.bed import eventually
from tests.system.fleet_bed import HOME, FleetBed
from tests.system.fleet_objects import API_VERSION, made

COMBINED = Resource("fleet.crsyncer.cloudrobotics.com", "v1alpha1", "combinedstatuses", "CombinedStatus")
STATUS: Object = {"phase": "Ready", "battery": 0.25, "pose": {"x": 1, "y": 2.5}, "log": ["<", "é"]}


async def returns(fleet: FleetBed, robot: str, **status: object) -> None:
    """A robot returns a status, once its replica is there."""

    async def there() -> Object | None:
        return (await fleet.replicas()).get(f"robot-{robot}/dock")

    await fleet.api.patch_status(await eventually(there, what=f"the replica of {robot}"), {**STATUS, **status})


async def test_F7_3_F7_4_a_combined_status_of_all_types_of_cells_is_stored_and_goes_with_its_placement(fleet: FleetBed):
    names = {
        "robot": "inventory.name", "phase": "returned.status.phase", "battery": "returned.status.battery",
        "pose": "returned.status.pose", "log": "returned.status.log", "ok": "returned.status.battery > 0.1",
        "none": "null", "bad": "returned.status.nothing",
    }  # fmt: skip
    columns = [{"name": name, "def": text} for name, text in names.items()]
    fields = [{"name": "n", "type": "COUNT"}, {"name": "least", "type": "MIN", "subject": "returned.status.battery"}]
    for name, spec in {
        "cells": {"select": columns, "filter": "has(returned.status.phase)"},
        "empty": {"combinedFields": fields, "filter": "has(returned.status.gone)"},
        "bad": {"select": [{"name": "x", "def": "nobody"}]},
    }.items():
        await fleet.api.create(made("StatusCollector", namespace="", spec=spec) | {"metadata": {"name": name}})
    await fleet.robots("r1", "r2")
    await fleet.api.create(fleet.goal(speed=1))
    placement = await fleet.place(
        readyWhen="returned.status.phase == 'Ready'", statusCollectors=["cells", "empty", "bad"]
    )
    fleet.start()
    await returns(fleet, "r1")
    await returns(fleet, "r2", phase="Driving")

    async def combined() -> Object | None:
        items = (await fleet.api.list(COMBINED, namespace=HOME))["items"]
        return items[0] if items and len(items[0]["results"][0]["rows"]) == 2 else None

    found = await eventually(combined, what="a CombinedStatus with two rows")
    assert found["metadata"]["ownerReferences"][0]["uid"] == placement["metadata"]["uid"]
    assert found["source"] == {"group": fleet.group, "resource": "goals", "name": "dock"}
    cells, empty = found["results"]
    assert [[cell.get("value") for cell in row] for row in cells["rows"]] == [
        ["r1", "Ready", "0.25", {"x": 1, "y": 2.5}, ["<", "é"], True, None, 'Key not found in map : "nothing"'],
        ["r2", "Driving", "0.25", {"x": 1, "y": 2.5}, ["<", "é"], True, None, 'Key not found in map : "nothing"'],
    ]
    assert empty["rows"] == [[{"type": "Number", "value": "0"}, {"type": "Number", "value": "+Inf"}]]
    status = await fleet.until_status(lambda status: status["counts"]["ready"] == 1)
    [collected] = [each for each in status["conditions"] if each["type"] == "Collected"]
    assert (collected["status"], collected["reason"]) == ("False", "BadExpression")
    bad = {"apiVersion": API_VERSION, "kind": "StatusCollector", "metadata": {"name": "bad"}}

    async def told() -> bool:
        return bool(((await fleet.api.get(bad)).get("status") or {}).get("errors"))

    await eventually(told, what="the errors of a StatusCollector")
    await fleet.api.delete(placement)
    await fleet.api.until_gone(placement)
    await fleet.api.until_gone(found)
