"""The shard of 20 robots is split while a controller runs, robots write statuses and people write specs (G7.2)."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from crsyncer.core.content.annotations import SHARD_LABEL
from crsyncer.core.content.replica_mark import replica_annotation
from crsyncer.sandbox.stories.fleet_cast import NAVIGATIONS, ROBOTS
from tests.door.shard_bed import ShardBed, bay, shard_bed

pytestmark = pytest.mark.nightly("20 agents, four API servers, five steps twice")
STAYING, MOVING = ({f"{name}{number}" for number in range(10)} for name in ("s", "m"))


class Statuses:
    """What runs on the robots: it writes the status of each copy, again and again."""

    def __init__(self, bed: ShardBed) -> None:
        self._bed = bed
        self._task = asyncio.create_task(self._write())
        self.last: dict[str, Any] = {}
        """The status that was written last, by robot."""

    async def _write(self) -> None:
        number = 0
        while True:
            number += 1
            for robot in self._bed.homes:
                status = {"release": str(number), "phase": "DRIVING"}
                obj = NAVIGATIONS.object("nav", namespace=bay(robot))
                await self._bed.clusters["robots"].patch(NAVIGATIONS, obj, {"status": status}, subresource="status")
                self.last[robot] = status
                await asyncio.sleep(0.02)

    async def stop(self) -> None:
        """End; raises what went wrong meanwhile."""
        assert not self._task.done(), self._task.exception()
        self._task.cancel()
        await asyncio.wait([self._task])


@pytest.fixture
async def bed() -> AsyncIterator[ShardBed]:
    async with shard_bed(dict.fromkeys((*sorted(STAYING), *sorted(MOVING)), "a")) as bed:
        yield bed


async def step(bed: ShardBed, number: int) -> None:
    """Take a step alone, which has to be done then."""
    names = bed.planes.directory / "robots.txt"
    names.write_text("\n".join(sorted(MOVING)))
    given = ("a", "b", "--names", str(names), "--door", bed.door.listen, "--step", str(number), "--yes", "--json")
    code, out, error = await bed.door.command("split", *given)
    assert code == 0, error
    assert [each["state"] for each in json.loads(out)["steps"]] == ["done"], out


async def numbers(bed: ShardBed) -> dict[str, list[int]]:
    """How often the controller has written each robot's object, at each shard that has it."""
    found: dict[str, list[int]] = {}
    for robot in bed.homes:
        stored = [await bed.stored(robot, shard) for shard in ("a", "b")]
        marks = [replica_annotation(each) for each in stored if each is not None]
        found[robot] = [each["n"] for each in marks if each is not None]
    return found


async def test_G7_2_F10_2_a_shard_with_20_robots_is_split_under_writes_while_the_controller_runs(bed: ShardBed) -> None:
    uids = await bed.uids()
    statuses = Statuses(bed)
    await bed.clone("a", "b")
    await bed.start_controller()  # with --shard b; it runs until the end
    for number in (1, 2, 3):
        await step(bed, number)
    await bed.until_streams("b", MOVING)
    # Undone before the switch: everybody is at the shard again.
    for robot in MOVING:
        change = {"metadata": {"labels": {SHARD_LABEL: "a"}}}
        await bed.clusters["root"].patch(ROBOTS, ROBOTS.object(robot), change)
    await bed.until_streams("a", STAYING | MOVING)
    await bed.until_streams("b", set())
    for robot in STAYING:
        await bed.write(robot, "a", "probe", "1.0")  # people go on for robots that stay
    for number in (1, 2, 3, 4, 5):
        await step(bed, number)
    await statuses.stop()

    homes = dict.fromkeys(STAYING, "a") | dict.fromkeys(MOVING, "b")
    for robot, home in homes.items():
        other = "b" if home == "a" else "a"
        assert await bed.stored(robot, other) is None, (robot, other)

        async def returned(robot: str = robot, home: str = home) -> bool:
            found = await bed.stored(robot, home)
            return found is not None and found.get("status") == statuses.last[robot]

        await bed.eventually(returned)
    assert await numbers(bed) == {robot: [1] for robot in bed.homes}
    bed.homes = homes
    assert await bed.uids() == uids
    await bed.release("1.1")
    await bed.until_release("1.1")
    assert await bed.uids() == uids
    await bed.until_healthy()
