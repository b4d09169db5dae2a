"""S8.3 with a crash at the worst moment: after a restore was noticed, before the restored side was listed."""

import asyncio
from pathlib import Path

import pytest

from tests import planes
from tests.system.asked import full_list
from tests.system.bed import Bed, eventually


@pytest.mark.nightly("to be shown by the model")
async def test_S8_3_a_crash_before_a_restored_cloud_was_listed_makes_nothing_look_newer_than_it(
    bed: Bed, tmp_path: Path
):
    await bed.cloud.create("a", spec={"x": 1})
    await bed.robot.shows("a", spec={"x": 1})
    snapshot = tmp_path / "snapshot"
    await asyncio.to_thread(planes.snapshot, bed.cloud.plane, snapshot)
    await bed.cloud.create("later", spec={"x": 1})
    for number in (2, 3, 4):
        await bed.cloud.patch("a", {"spec": {"x": number}})
    await bed.robot.shows("a", spec={"x": 4})
    await bed.robot.shows("later", spec={"x": 1})
    await bed.settled()
    async with bed.stopped():
        await asyncio.to_thread(planes.restore, bed.cloud.plane, snapshot)
        stalled = bed.cloud.link.stall("/goals", when=full_list)

    async def listing() -> bool:
        return stalled.count > 0

    await eventually(listing, what="the restored cloud is about to be listed")
    await bed.agent.crsyncer("pending", "retry")  # an order is answered when everything before it is on disk
    async with bed.stopped(kill=True):
        stalled.remove()
    await bed.robot.shows("a", spec={"x": 1})
    status = await bed.agent.until(lambda status: bool(status["holds"]))
    assert [(hold["reason"], hold["objects"]) for hold in status["holds"]] == [("Restored", 1)]
    assert await bed.robot.names() == {"a", "later"}
