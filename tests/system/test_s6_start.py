"""S6.5: an agent that starts on a disk that refuses goes on with what is there, says so, and takes the disk again."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.mount import Mount, mounted
from tests.system.conftest import MakeBed
from tests.system.crowd import copied
from tests.system.state_dir import degraded, everything_travels, quiet, recovered

Change = Callable[[Mount], None]
REFUSALS = [
    pytest.param(Mount.read_only, Mount.writable, id="read-only"),
    pytest.param(Mount.fill, Mount.make_room, id="full", marks=pytest.mark.nightly("a variation")),
]


@pytest.fixture
def state_disk(tmp_path: Path) -> Iterator[Mount]:
    """What the agent's state directory is on, for as long as the agent lives: to be asked for before the bed."""
    with mounted(tmp_path / "state") as disk:
        yield disk


@pytest.mark.fault_05
@pytest.mark.fault_43
@pytest.mark.fault_44
@pytest.mark.parametrize(("refuse", "relent"), REFUSALS)
async def test_S6_5_started_on_a_disk_that_refuses_it_enforces_what_is_there_without_the_cloud(
    state_disk: Mount, make_bed: MakeBed, refuse: Change, relent: Change
) -> None:
    bed = await make_bed()
    await copied(bed, 4)
    spec = (await bed.cloud.get("g00"))["spec"]
    bed.cloud.link.cut()
    await bed.until_side("cloud", "offline")
    await bed.robot.set_status("g01", {"phase": "DONE"})
    await bed.agent.until(lambda status: bool(status["outbox"]["depth"] == 1))
    await quiet(bed)
    async with bed.stopped(kill=True):
        refuse(state_disk)
        await bed.robot.delete("g00")
        await bed.robot.patch("g02", {"spec": {"drift": True}})
    await bed.robot.shows("g00", spec=spec)
    await bed.robot.shows("g02", spec=(await bed.cloud.get("g02"))["spec"])
    await bed.robot.set_status("g03", {"phase": "LATER"})
    await bed.agent.until(lambda status: degraded(status, bed.agent.state_dir) and status["outbox"]["depth"] == 2)
    code, screen, _ = await bed.agent.crsyncer("status")
    assert code == 10  # degraded: a refusing disk is worse news than an absent cloud
    assert "The agent syncs on from memory" in " ".join(screen.split())
    bed.cloud.link.restore()
    await bed.cloud.shows("g01", status={"phase": "DONE"}, seconds=120)
    await bed.cloud.shows("g03", status={"phase": "LATER"})
    await everything_travels(bed, "one")
    await bed.resumed("cloud")
    relent(state_disk)
    await recovered(bed)
