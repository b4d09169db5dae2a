"""S6.5: a disk that is full, read-only, failing, slow or silent stops nothing, and is said to be."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.disk import NEVER, SYNCS, Disk
from tests.system.bed import Bed
from tests.system.conftest import MakeBed
from tests.system.crowd import copied
from tests.system.state_dir import everything_travels, quiet, recovered

REFUSALS = [
    pytest.param(lambda disk: disk.fill(), id="full"),
    pytest.param(lambda disk: disk.slow(NEVER), id="silent"),
]


async def refused(disk: Disk, make_bed: MakeBed, refuse: Callable[[Disk], None]) -> Bed:
    """Four objects in sync, and then a disk that refuses, in spite of which everything travels."""
    bed = await make_bed(wrapper=disk.wrapper)
    await copied(bed, 4)
    await quiet(bed)
    refuse(disk)
    await everything_travels(bed, "one")
    return bed


@pytest.mark.fault_43
@pytest.mark.fault_44
@pytest.mark.parametrize("refuse", REFUSALS)
async def test_S6_5_a_disk_that_refuses_stops_nothing_and_is_said_to(
    disk: Disk, make_bed: MakeBed, refuse: Callable[[Disk], None]
) -> None:
    bed = await refused(disk, make_bed, refuse)

    def said(status: dict[str, Any]) -> bool:
        hints = [(reason["code"], str(bed.agent.state_dir) in reason["hint"]) for reason in status["reasons"]]
        states = (status["health"], status["store"]["state"])
        return (hints, states) == ([("StateDegraded", True)], ("degraded", "degraded"))

    await bed.agent.until(said)
    assert (await bed.agent.crsyncer("status"))[0] == 10
    await everything_travels(bed, "two")
    disk.heal()
    await recovered(bed)


@pytest.mark.fault_44
@pytest.mark.fault_53
async def test_S6_5_sigterm_ends_the_agent_though_the_disk_never_answers(disk: Disk, make_bed: MakeBed) -> None:
    bed = await make_bed(wrapper=disk.wrapper)
    await copied(bed, 2)
    await quiet(bed)
    disk.slow(NEVER, *SYNCS, "write")
    await bed.robot.set_status("g01", {"phase": "DONE"})
    await bed.cloud.shows("g01", status={"phase": "DONE"})
    assert await bed.agent.stop() == 0
    disk.heal()
    await bed.agent.start()
    await bed.resumed("cloud", "robot")
