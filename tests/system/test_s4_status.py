"""S4: what real servers make of our status writes: guards, subresources, generations and schemas."""

from typing import Any

from tests.system.bed import Bed, eventually


async def copied(bed: Bed, **fields: Any) -> None:
    """Create a in the cloud, and wait for its copy."""
    await bed.cloud.create("a", spec={"x": 1}, **fields)
    await bed.robot.shows("a", spec={"x": 1})


async def test_S4_1_a_status_cannot_land_on_a_re_created_object(bed: Bed) -> None:
    await copied(bed)
    await bed.settled()
    stall = bed.cloud.link.stall("/goals/a", method="PATCH")
    await bed.robot.set_status("a", {"phase": "OLD"})

    async def asked() -> bool:
        return stall.count > 0

    await eventually(asked, what="the old status is on its way")
    history = await bed.cloud.record("a")
    await bed.cloud.delete("a")
    await bed.cloud.create("a", spec={"x": 2})
    stall.remove()
    await bed.robot.shows("a", spec={"x": 2}, status=None)
    await bed.robot.set_status("a", {"phase": "NEW"})
    await bed.cloud.shows("a", status={"phase": "NEW"})
    assert [s for s in await history.complete() if s not in (None, {"phase": "NEW"})] == []
