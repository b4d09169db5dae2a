"""S8.2: a cluster that was restored and has been written to since, so that its revision has overtaken our cursors."""

import asyncio
from pathlib import Path

import pytest

from crsyncer.sandbox.resource import NAMESPACE
from tests import planes
from tests.system.bed import Bed, SideBed
from tests.system.commands import until_held

SLOW = 90.0
CHANGES = 50


async def revision(side: SideBed) -> int:
    """The cluster's resourceVersion now."""
    return int((await side.api.list(side.resource, limit="1"))["metadata"]["resourceVersion"])


async def overtake(side: SideBed, cursor: int) -> None:
    """Write other things until the cluster's revision is beyond a cursor."""
    touched = 0
    while await revision(side) <= cursor:
        for _ in range(10):
            touched += 1
            await side.api.patch(NAMESPACE.object("default"), {"metadata": {"annotations": {"touched": str(touched)}}})


async def go_back(side: SideBed, snapshot: Path, cursor: int) -> None:
    """Restore a plane behind a cut link; change one object where nobody can see it, and have the revision overtake."""
    await asyncio.to_thread(planes.restore, side.plane, snapshot)
    await side.api.until_served(side.resource)
    assert await revision(side) < cursor
    await side.patch("c", {"spec": {"x": 7}})
    await side.set_status("c", {"phase": "MEANWHILE"})
    assert await revision(side) < cursor, "a change that a watch from the cursor would never show"
    await overtake(side, cursor)


async def begun(bed: Bed) -> None:
    """Four objects on both sides, one with a status."""
    for name in ("a", "b", "c", "gone"):
        await bed.cloud.create(name, spec={"x": 1})
        await bed.robot.shows(name, spec={"x": 1})
    await bed.robot.set_status("a", {"phase": "RUNNING"})
    await bed.cloud.shows("a", status={"phase": "RUNNING"})
    await bed.settled()


async def changed(bed: Bed) -> int:
    """Fifty changes that a restore takes back; the cloud's revision after them."""
    for step in range(CHANGES):
        await bed.cloud.patch("b", {"spec": {"x": step + 2}})
    await bed.robot.shows("b", spec={"x": CHANGES + 1})
    await bed.cloud.create("later", spec={"x": 1})
    await bed.robot.shows("later", spec={"x": 1})
    await bed.cloud.delete("gone")
    await bed.robot.gone("gone")
    await bed.robot.set_status("a", {"phase": "DONE"})
    await bed.cloud.shows("a", status={"phase": "DONE"})
    await bed.settled()
    return await revision(bed.cloud)


@pytest.mark.nightly
@pytest.mark.fault_19
@pytest.mark.parametrize("running", [True, False], ids=["running", "stopped"])
async def test_S8_2_S8_3_a_restored_cloud_that_has_overtaken_the_cursor_is_noticed(
    bed: Bed, tmp_path: Path, running: bool
):
    await begun(bed)
    await asyncio.to_thread(planes.snapshot, bed.cloud.plane, tmp_path / "snapshot")
    cursor = await changed(bed)
    bed.cloud.link.cut()
    await bed.robot.set_status("b", {"phase": "LATE"})  # written to the new history before anybody has seen it
    await bed.agent.until(lambda status: status["outbox"]["depth"] == 1)
    if running:
        await go_back(bed.cloud, tmp_path / "snapshot", cursor)
        bed.cloud.link.restore()
    else:
        async with bed.stopped():
            await go_back(bed.cloud, tmp_path / "snapshot", cursor)
            bed.cloud.link.restore()
    await bed.robot.shows("c", spec={"x": 7}, seconds=SLOW)
    await bed.robot.shows("b", spec={"x": 1})
    await bed.robot.shows("gone", spec={"x": 1})
    await bed.cloud.shows("a", status={"phase": "DONE"}, seconds=SLOW)
    await bed.cloud.shows("b", status={"phase": "LATE"})
    await until_held(bed, 1, "Restored")
    assert await bed.robot.names() == {"a", "b", "c", "gone", "later"}
