"""A hold of a running controller, on a real API server: told by `fleet status`, released by `fleet release`."""

from crsyncer.core.model import Json
from tests.system.fleet_bed import FleetBed


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
