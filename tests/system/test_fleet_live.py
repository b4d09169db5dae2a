"""The fleet's commands beside a running controller, on a real API server: what a plan says is what then happens."""

import random
from pathlib import Path

from crsyncer.core.model import Json
from crsyncer.sandbox.resource import CONFIG_MAP
from tests.system.bed import eventually
from tests.system.fleet_bed import HOME, FleetBed, marks
from tests.system.fleet_objects import made

PROPERTIES = "crsyncer-properties"
STEP = {"path": "/spec/speed", "property": {"name": "speed"}}
EDITS = 8


async def plan(fleet: FleetBed, *words: str | Path) -> set[str]:
    content = await fleet.asked("plan", *words, code=None)
    assert {each["when"] for each in content["writes"]} <= {"now"}
    return {f"{each['verb']} {each['namespace']}/{each['name']}" for each in content["writes"]}


async def seen(fleet: FleetBed) -> dict[str, tuple[str, int]]:
    """Of each replica its uid, and how many writes of the controller it has had."""
    return {name: (each["metadata"]["uid"], marks(each)["n"]) for name, each in (await fleet.replicas()).items()}


def writes(before: dict[str, tuple[str, int]], after: dict[str, tuple[str, int]]) -> set[str]:
    """What has happened, if it cost one write each."""
    updates = {
        name
        for name in before.keys() & after.keys()
        if (after[name][0], after[name][1]) == (before[name][0], before[name][1] + 1)
    }
    others = {name for name in before.keys() & after.keys() if after[name] != before[name]} - updates
    assert not others, others
    return {
        *(f"create {name}" for name in after.keys() - before.keys()),
        *(f"delete {name}" for name in before.keys() - after.keys()),
        *(f"update {name}" for name in updates),
    }


def edit(fleet: FleetBed, dice: random.Random) -> Json:
    """An object as somebody might write it next."""
    robot, value = f"r{dice.randrange(4)}", dice.randrange(1000)
    entry = {"group": fleet.group, "resource": "goals", "selectors": [{}]}
    match dice.randrange(6):
        case 0 | 1:
            return fleet.goal(f"g{dice.randrange(3)}", x=value)
        case 2:
            return fleet.robot(robot, site=dice.choice(["berlin", "paris"]))
        case 3:
            data = {"speed": str(value)}
            return CONFIG_MAP.object(robot, namespace=PROPERTIES, data=data)
        case 4:
            strip = {"group": fleet.group, "resource": "goals", "remove": [dice.choice(["/spec/x", "/spec/none"])]}
            return made("FieldStrip", namespace="", spec=strip)
    steps = [STEP, {"path": "/spec/site", "set": {"value": value}}]
    overrides = [{"robotSelector": {"matchLabels": {"site": "berlin"}}, "steps": steps[: dice.choice([1, 2])]}]
    return made("RobotPlacement", spec={"robotSelectors": [{}], "resources": [entry], "overrides": overrides})


async def apply(fleet: FleetBed, obj: Json) -> None:
    """Write what is new of an object: by a patch, since the controller writes statuses at any time."""
    if await fleet.api.find(obj) is None:
        await fleet.api.create(obj)
        return
    fields = {"/metadata/labels": obj["metadata"].get("labels"), "/spec": obj.get("spec"), "/data": obj.get("data")}
    changes = [{"op": "add", "path": path, "value": value} for path, value in fields.items() if value is not None]
    await fleet.api.patch(obj, changes)


async def test_F11_what_a_plan_says_of_an_edit_is_what_the_controller_then_does(fleet: FleetBed) -> None:
    dice = random.Random(24)
    for name in (HOME, PROPERTIES):
        await fleet.api.ensure_namespace(name)
    for number in range(4):
        data = {"speed": "1"}
        await apply(fleet, CONFIG_MAP.object(f"r{number}", namespace=PROPERTIES, data=data))
    await fleet.robots("r0", "r1", "r2", site="berlin")
    for name in ("g0", "g1"):
        await fleet.api.create(fleet.goal(name, x=1))
    await fleet.place(overrides=[{"steps": [STEP]}])
    fleet.start()

    async def settled() -> bool:
        return not await plan(fleet)

    await eventually(settled, what="a fleet with nothing to do")
    for _ in range(EDITS):
        obj, before = edit(fleet, dice), await seen(fleet)
        planned = await plan(fleet, "-f", fleet.file(obj))
        await apply(fleet, obj)

        async def done(planned: set[str] = planned, before: dict[str, tuple[str, int]] = before) -> bool:
            return writes(before, await seen(fleet)) == planned

        await eventually(done, what=f"{planned} of {obj}")
        assert await plan(fleet) == set()

    async def told() -> bool:
        status = await fleet.asked("status", "--robot", "r0")
        placed = next(each for each in status["robot"]["placements"] if each["name"] == "all")
        shown = status["health"], status["controller"]["state"], placed["state"]
        return shown == ("healthy", "running", "Stamped")

    await eventually(told, what="a healthy fleet whose Decision says Stamped")
    explained = await fleet.asked("explain", "all", "--robot", "r0")
    assert {each["verdict"] for each in explained["replicas"]} == {"current"}

    async def sound() -> bool:
        return {each["state"] for each in (await fleet.checked()).values()} == {"ok"}

    await eventually(sound, what="a doctor that finds nothing wrong")


async def test_F5_2_a_hold_of_the_controller_is_told_and_released_by_the_commands(fleet: FleetBed) -> None:
    await fleet.robots("r1", "r2")
    await fleet.api.create(fleet.goal(x=1))
    await fleet.place()
    fleet.start()
    await fleet.until_specs(r1={"x": 1}, r2={"x": 1})
    for name in ("r1", "r2"):
        await fleet.api.delete(fleet.robot(name))

    def holds(status: Json) -> list[Json]:
        return status.get("holds") or []

    # The last Robot of all may be held for a reason of its own.
    status = await fleet.until_status(lambda status: sum(each["objects"] for each in holds(status)) == 2)
    ids = [each["id"] for each in holds(status)]
    assert f"crsyncer fleet release {ids[0]}" in (await fleet.command("status", code=12)).stdout
    shown = (await fleet.asked("release", *ids))["holds"]
    names = [name for each in shown for name in each["names"]]
    assert sorted(names) == [f"goals.{fleet.group}/robot-r{number}/dock" for number in (1, 2)]
    content = await fleet.asked("plan", code=1)
    assert {each["when"] for each in content["writes"]} == {"held"}
    await fleet.command("release", "--all", "--yes")
    await fleet.until_specs()
    await fleet.until_status(lambda status: not holds(status))
