"""A link that comes and goes every few seconds (row 42)."""

import asyncio
import statistics

import pytest

from tests.system.bed import Bed, eventually
from tests.system.crowd import copied

OBJECTS = 300
_IDLE_BYTES = 8 * 1024
"""Of a flap in which nothing was to be told: both directions, TLS included."""
_BUSY_BYTES = 12 * 1024
"""Of a flap with a changed spec and a changed status, their events and a second connection included."""


async def flapping(bed: Bed, *, flaps: int, seconds: float) -> None:
    """The cloud is down and up for so many seconds by turns, while a spec and a status change in two flaps of three.

    Each change arrives in the up-phase that follows it, which lasts longer only where the machine is busy.
    """
    await copied(bed, OBJECTS)
    before = await bed.kind()
    link = bed.cloud.link
    idle, busy = list[int](), list[int]()
    step = 0

    async def noticed() -> bool:
        return link.connects > 0

    for flap in range(flaps):
        changes = flap % 3 > 0
        link.cut()
        if changes:
            step += 1
            await bed.cloud.patch("g01", {"spec": {"step": step}})
            await bed.robot.set_status("g02", {"step": step})
        await asyncio.sleep(seconds)  # the length of the phases is what is tested
        link.clear()
        link.restore()
        await asyncio.sleep(seconds)
        await eventually(noticed, what=f"flap {flap} is noticed")
        await bed.settled()
        if step:
            await bed.robot.shows("g01", spec={"x": 1, "step": step})
            await bed.cloud.shows("g02", status={"step": step})
        (busy if changes else idle).append(link.bytes_up + link.bytes_down)
    for what, costs in (("idle", idle), ("with a spec and a status", busy)):
        print(f"{len(costs)} flaps, {what}: {statistics.median(costs):,.0f} bytes, at most {max(costs):,}")
    assert max(idle) < _IDLE_BYTES
    assert max(busy) < _BUSY_BYTES
    assert (await bed.kind())["relists"] == before["relists"]


@pytest.mark.nightly
@pytest.mark.fault_42
async def test_a_link_that_flaps_for_ten_minutes_brings_everything_in_each_up_phase_for_few_bytes(bed: Bed):
    await flapping(bed, flaps=60, seconds=5.0)
