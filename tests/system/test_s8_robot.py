"""S8.4: a robot whose own cluster went back in time, because a power cut cost it writes that it had acknowledged."""

from pathlib import Path

import pytest

from tests.system.bed import Bed
from tests.system.conftest import MakeBed
from tests.system.travel import SLOW, BootId, restore, revision, snapshot


async def lived(bed: Bed, names: str = "abcd") -> None:
    """Objects, their copies, and a status of each."""
    for name in names:
        await bed.cloud.create(name, spec={"x": 1})
    for name in names:
        await bed.robot.shows(name, spec={"x": 1})
        await bed.robot.set_status(name, {"phase": "RUNNING"})
    for name in names:
        await bed.cloud.shows(name, status={"phase": "RUNNING"})


@pytest.mark.fault_04
async def test_S8_4_what_the_robots_cluster_lost_is_applied_again(make_bed: MakeBed, tmp_path: Path):
    """Only the boot tells: by now the revision is beyond what was known."""
    boot = BootId(tmp_path)
    bed = await make_bed(flags=boot.flags)
    await lived(bed)
    await bed.cloud.create("quiet", spec={"x": 1})
    await bed.robot.shows("quiet", spec={"x": 1})
    await bed.settled()
    old = await snapshot(bed.robot, tmp_path)
    await bed.cloud.patch("a", {"spec": {"x": 2}})
    await bed.robot.shows("a", spec={"x": 2})
    await bed.cloud.delete("b")
    await bed.robot.gone("b")
    await bed.robot.set_status("c", {"phase": "DONE"})
    await bed.cloud.shows("c", status={"phase": "DONE"})
    await bed.cloud.create("later", spec={"x": 1})
    await bed.robot.shows("later", spec={"x": 1})
    for name in ("later", "quiet"):
        await bed.robot.set_status(name, {"phase": "DONE"})
        await bed.cloud.shows(name, status={"phase": "DONE"})
    await bed.settled()
    async with bed.stopped():
        await restore(bed.robot, old, past=await revision(bed.robot))
        boot.renew()
    await bed.robot.shows("a", spec={"x": 2}, seconds=SLOW)
    await bed.robot.gone("b")
    # A copy that is made again goes on where it was, and that another has no status yet blanks nothing.
    await bed.robot.shows("later", spec={"x": 1}, status={"phase": "DONE"})
    await bed.settled()
    await bed.cloud.shows("quiet", status={"phase": "DONE"})
    # What the robot says counts: its controller goes on from there.
    await bed.cloud.shows("c", status={"phase": "RUNNING"})
    await bed.robot.set_status("c", {"phase": "DONE"})
    await bed.cloud.shows("c", status={"phase": "DONE"})
    await bed.agent.until(lambda status: (status["health"], status["holds"]) == ("healthy", []))
    assert await bed.cloud.names() == await bed.robot.names() == {"a", "c", "d", "quiet", "later"}
