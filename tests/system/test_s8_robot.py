"""S8.4: a robot whose own cluster went back in time, because a power cut cost it writes that it had acknowledged."""

from pathlib import Path

import pytest

from tests.system.bed import Bed, writes
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
@pytest.mark.parametrize(
    "passed", [True, pytest.param(False, marks=pytest.mark.nightly("a variation"))], ids=["passed", "behind"]
)
async def test_S8_4_what_the_robots_cluster_lost_is_applied_again(make_bed: MakeBed, tmp_path: Path, passed: bool):
    """Behind: its revision tells. Passed: only the boot does, for by now the revision is beyond what was known."""
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
        await restore(bed.robot, old, past=await revision(bed.robot) if passed else 0)
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
    status = await bed.agent.until(lambda status: status["health"] == "healthy")
    assert status["holds"] == []
    assert await bed.cloud.names() == await bed.robot.names() == {"a", "c", "d", "quiet", "later"}


@pytest.mark.nightly("to be shown by the model")
async def test_S8_4_an_ordinary_boot_lists_the_robot_and_changes_nothing(make_bed: MakeBed, tmp_path: Path):
    boot = BootId(tmp_path)
    bed = await make_bed(flags=boot.flags)
    await lived(bed, "ab")
    await bed.settled()
    for step in ("boot", "unreadable", "readable"):
        async with bed.stopped():
            match step:
                case "boot":
                    boot.renew()
                    known = boot.path.read_text()
                case "unreadable":
                    boot.path.unlink()
                case "readable":
                    boot.path.write_text(known)
            for side in (bed.cloud, bed.robot):
                side.link.clear()
        await bed.settled()
        assert (await bed.kind())["relists"] == {"cloud": 0, "robot": int(step == "boot")}, step
        assert writes(bed.cloud.link) == writes(bed.robot.link) == [], step
    await bed.cloud.delete("a")
    await bed.robot.gone("a")


@pytest.mark.nightly("to be shown by the model")
async def test_S8_4_an_ordinary_boot_holds_no_deletion_of_what_the_robot_owns(make_bed: MakeBed, tmp_path: Path):
    boot = BootId(tmp_path)
    bed = await make_bed(source="robot", flags=boot.flags)
    for name in ("a", "b"):
        await bed.robot.create(name, spec={"x": 1})
        await bed.cloud.shows(name, spec={"x": 1})
    await bed.settled()
    async with bed.stopped():
        await bed.robot.delete("a")
        boot.renew()
    await bed.cloud.gone("a", seconds=SLOW)
    assert (await bed.agent.status())["holds"] == []
