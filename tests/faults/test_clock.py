"""The robot's clock is wrong, and is set while the agent runs (row 49).

The agent is a process whose `time.time` is moved by what a file says, which is all that it reads of the clock on the
wall: no privilege is needed, nor a library that is not everywhere. OpenSSL goes on reading the true time: what it says
to a robot in 1970 is in tests/system/test_certificates.py.
"""

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.system.bed import Bed
from tests.system.conftest import MakeBed
from tests.system.flow import begun, flows

DAY = 86400.0
SHIM = """
import time
_true = time.time
def _moved():
    with open({path!r}) as file:
        return _true() + float(file.read())
time.time = _moved
"""


@dataclass(frozen=True)
class Clock:
    """The clock on the wall of the processes that have `environment`."""

    directory: Path

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs to read this clock instead of the true one. Source: Python's docs on `site`."""
        return {"PYTHONPATH": str(self.directory)}

    def off_by(self, seconds: float) -> None:
        """Set it: so many seconds ahead of the true time."""
        new = self.directory / "new"
        new.write_text(str(seconds))
        os.replace(new, self.directory / "offset")


@pytest.fixture
def clock(tmp_path: Path) -> Clock:
    """A clock that is right as yet."""
    directory = tmp_path / "clock"
    directory.mkdir()
    made = Clock(directory)
    made.off_by(0)
    (directory / "sitecustomize.py").write_text(SHIM.format(path=str(directory / "offset")))
    return made


async def suspected(bed: Bed, words: str) -> None:
    """Wait until `status` says what is wrong with the clock."""

    def said(status: dict[str, Any]) -> bool:
        first = (status["reasons"] or [{"code": ""}])[0]
        if (status["health"], first["code"]) != ("degraded", "ClockSuspect"):
            return False
        return words in first["message"] and "clock" in first["hint"]

    await bed.agent.until(said)


async def sound(bed: Bed) -> None:
    """Wait until nothing is wrong any more."""
    await bed.agent.until(lambda status: status["health"] == "healthy", seconds=60)


@pytest.mark.nightly("to be shown by the model")
@pytest.mark.fault_49
async def test_a_clock_that_jumps_by_a_day_stalls_nothing_hurries_nothing_and_is_said(make_bed: MakeBed, clock: Clock):
    bed = await make_bed(environment=clock.environment)
    before = await begun(bed)
    for step, (offset, words) in enumerate([(DAY, "1 d ahead of"), (-DAY, "behind"), (40 * DAY, "ahead of")], start=2):
        clock.off_by(offset)
        for side in (bed.cloud, bed.robot):
            side.link.clear()
        await flows(bed.cloud, bed.robot, step)
        await suspected(bed, words)
        assert len(bed.cloud.link.requests) + len(bed.robot.link.requests) <= 12
    clock.off_by(0)
    await flows(bed.cloud, bed.robot, 9)
    await sound(bed)
    assert (await bed.kind())["relists"] == before["relists"]


@pytest.mark.nightly("to be shown by the model")
@pytest.mark.fault_49
async def test_a_robot_that_boots_in_1970_syncs_and_says_so_until_its_clock_is_set(make_bed: MakeBed, clock: Clock):
    clock.off_by(10 - time.time())
    bed = await make_bed(environment=clock.environment)
    await begun(bed)
    await suspected(bed, "behind that of the cloud")
    assert (await bed.agent.status())["agent"]["since"].startswith("1970-01-01T00:0")
    clock.off_by(0)
    await flows(bed.cloud, bed.robot, 2)
    await sound(bed)
    async with bed.stopped(kill=True):
        clock.off_by(10 - time.time())
    await flows(bed.cloud, bed.robot, 3)


@pytest.mark.nightly("to be shown by the model")
@pytest.mark.fault_49
@pytest.mark.parametrize("offset", [DAY, -DAY])
async def test_a_clock_that_is_set_during_an_outage_delays_no_probe_and_hurries_none(
    make_bed: MakeBed, clock: Clock, offset: float
):
    bed = await make_bed(environment=clock.environment)
    before = await begun(bed)
    bed.cloud.link.cut()
    await bed.until_side("cloud", "offline")
    clock.off_by(offset)
    await bed.robot.set_status("a", {"late": True})
    await bed.agent.until(lambda status: status["outbox"]["depth"] == 1)
    await bed.cloud.patch("a", {"spec": {"x": 2}})
    bed.cloud.link.clear()
    bed.cloud.link.restore()
    await bed.robot.shows("a", spec={"x": 2}, seconds=40)
    await bed.cloud.shows("a", status={"late": True}, seconds=40)
    assert len(bed.cloud.link.requests) <= 12
    assert (await bed.kind())["relists"] == before["relists"]
