"""What tests of many objects share: made, shown, reported on, all of them at once."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from tests.system.bed import SECONDS, Bed, SideBed, eventually, some_at_a_time

T = TypeVar("T")
SLOW = 90.0
"""Seconds that many changes may take after an outage."""


async def copied(bed: Bed, count: int) -> list[str]:
    """Create so many objects in the cloud, and wait for their copies; their names."""
    names = [f"g{number:02}" for number in range(count)]
    await some_at_a_time(bed.cloud.create(name, spec={"x": 1}) for name in names)
    await holds_exactly(bed.robot, names, seconds=SECONDS + count / 5)
    await bed.settled()
    return names


async def holds_exactly(side: SideBed, names: list[str], *, seconds: float = SECONDS) -> None:
    """Wait until a side has these objects and no others."""

    async def check() -> bool:
        return await side.names() == set(names)

    await eventually(check, seconds=seconds, what=f"{side.plane.name} has {names}")


async def report_all(bed: Bed, names: list[str], phase: str) -> None:
    """Have the robot report a phase of every object, and whose it is."""
    await asyncio.gather(*(bed.robot.set_status(name, {"phase": phase, "of": name}) for name in names))


async def shown_all(bed: Bed, names: list[str], phase: str, *, seconds: float = SECONDS) -> None:
    """Wait until the cloud shows every object's own status in a phase."""

    async def check() -> bool:
        items = (await bed.cloud.api.list(bed.cloud.resource))["items"]
        return {item["metadata"]["name"]: item.get("status") for item in items} == {
            name: {"phase": phase, "of": name} for name in names
        }

    await eventually(check, seconds=seconds, what=f"all of {names} are {phase} in the cloud")


async def all_show(side: SideBed, names: list[str], field: str, value: Any, *, seconds: float = SLOW) -> None:
    """Wait until a top-level field of all these objects has a value."""

    async def check() -> bool:
        items = (await side.api.list(side.resource))["items"]
        found = {item["metadata"]["name"]: item.get(field) for item in items}
        return all(found.get(name) == value for name in names)

    await eventually(check, seconds=seconds, what=f"{len(names)} objects on {side.plane.name} with {field} {value}")


async def each(names: list[str], work: Callable[[str], Awaitable[T]]) -> list[T]:
    """Sixteen at a time."""
    gate = asyncio.Semaphore(16)

    async def one(name: str) -> T:
        async with gate:
            return await work(name)

    return await asyncio.gather(*(one(name) for name in names))
