"""One object whose changes go both ways: the proof that a link works."""

from typing import Any

from tests.system.bed import Bed, SideBed

SLOW = 90.0
"""Seconds that a change may take, where a connection has to be made again."""


async def flows(cloud: SideBed, robot: SideBed, step: int) -> None:
    """Changes arrive, both ways."""
    await cloud.patch("a", {"spec": {"x": step}})
    await robot.shows("a", spec={"x": step}, seconds=SLOW)
    await robot.set_status("a", {"step": step})
    await cloud.shows("a", status={"step": step}, seconds=SLOW)


async def begun(bed: Bed) -> dict[str, Any]:
    """One object on both sides, nothing left to do; the kind's row."""
    await bed.cloud.create("a", spec={"x": 0})
    await bed.robot.shows("a", spec={"x": 0})
    await flows(bed.cloud, bed.robot, 1)
    await bed.settled()
    return await bed.kind()
