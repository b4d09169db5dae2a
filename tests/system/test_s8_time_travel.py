"""S8: clusters that go back in time, and clusters that are not the ones they were."""

import asyncio
from pathlib import Path

import pytest

from tests import planes
from tests.system.bed import Bed
from tests.system.commands import until_held


@pytest.mark.fault_19
async def test_S8_3_a_restored_cloud_gets_lost_statuses_again_and_costs_no_copy(bed: Bed, tmp_path: Path):
    for name in ("a", "b"):
        await bed.cloud.create(name, spec={"x": 1})
        await bed.robot.shows(name, spec={"x": 1})
    await bed.robot.set_status("a", {"phase": "RUNNING"})
    await bed.cloud.shows("a", status={"phase": "RUNNING"})
    snapshot = tmp_path / "snapshot"
    await asyncio.to_thread(planes.snapshot, bed.cloud.plane, snapshot)
    await bed.cloud.create("later", spec={"x": 1})
    await bed.robot.shows("later", spec={"x": 1})
    await bed.robot.set_status("a", {"phase": "DONE"})
    await bed.robot.set_status("b", {"phase": "DONE"})
    for name in ("a", "b"):
        await bed.cloud.shows(name, status={"phase": "DONE"})
    await bed.cloud.patch("b", {"spec": {"x": 2}})
    await bed.robot.shows("b", spec={"x": 2})
    await bed.settled()
    await asyncio.to_thread(planes.restore, bed.cloud.plane, snapshot)
    for name in ("a", "b"):
        await bed.cloud.shows(name, status={"phase": "DONE"}, seconds=90)
    await bed.robot.shows("b", spec={"x": 1})
    await bed.cloud.create("new", spec={"x": 1})
    await bed.robot.shows("new", spec={"x": 1})
    await until_held(bed, 1, "Restored")
    assert await bed.robot.names() == {"a", "b", "later", "new"}
