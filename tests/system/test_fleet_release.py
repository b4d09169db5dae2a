"""`crsyncer fleet release` on a real API server: it shows what a hold keeps, marks where it is held, and is obeyed."""

from typing import Any

from crsyncer.core.content.object_content import digest
from crsyncer.core.model import Json
from crsyncer.fleet.domain.values import RELEASE
from tests.system.fleet_bed import FleetBed
from tests.system.fleet_objects import made


async def test_F5_2_a_release_shows_what_goes_and_is_set_where_it_is_held(
    fleet: FleetBed,
) -> None:
    await fleet.robots("r1")
    await fleet.api.create(fleet.goal(x=1))
    placement = await fleet.place("a")

    async def released(obj: Any) -> str | None:
        return ((await fleet.api.get(obj))["metadata"].get("annotations") or {}).get(RELEASE)

    await fleet.api.ensure_namespace("robot-r1")
    [body] = (await fleet.asked("render", "a", "--robot", "r1"))["items"]
    uid = (await fleet.api.create(body))["metadata"]["uid"]
    assert (await fleet.command("release", "--all")).stdout == "nothing is held\n"
    await fleet.api.delete(fleet.robot("r1"))
    hold: Any = {"id": digest([uid]), "reason": "NoRobots", "objects": 1, "message": "1 replica: there are no Robots"}
    await fleet.api.patch_status(placement, {"holds": [hold]})

    shown = await fleet.command("release", hold["id"])
    name = f"goals.{fleet.group}/robot-r1/dock"
    assert f"{hold['id']}: 1 replica of RobotPlacement default/a will be removed" in shown.stdout
    assert f"    {name}\n" in shown.stdout
    assert "nothing was changed; repeat the command with --yes" in shown.stderr
    assert await released(placement) is None
    assert "there is no hold ab12" in (await fleet.command("release", hold["id"], "ab12", "--yes", code=1)).stderr
    assert await released(placement) is None
    content = await fleet.asked("release", hold["id"], "--yes")
    assert (content["schema"], content["released"]) == ("crsyncer.fleet-release/v1", True)
    assert await released(placement) == hold["id"]

    decision = made("RobotPlacementDecision", placement={"name": "a", "uid": placement["metadata"]["uid"]}, robots=[])
    decision["metadata"] = {"name": "a-0", "namespace": "default"}
    await fleet.api.create(decision)
    await fleet.api.delete(placement)
    content = await fleet.asked("release", "--all")
    [row] = content["holds"]
    assert (content["released"], row["id"], row["reason"], row["decision"]) == (
        *(False, hold["id"], "PlacementGone", "a-0"),
    )
    assert row["names"] == [name]
    assert (
        await fleet.command("release", "--all", "--yes")
    ).stdout == f"released {hold['id']}: 1 replica will be removed\n"
    assert await released(decision) == hold["id"]


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
