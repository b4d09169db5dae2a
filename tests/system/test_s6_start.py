"""S6.5: an agent that starts on a disk that refuses goes on with what is there, says so, and takes the disk again."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from crsyncer.sandbox.agent import AgentProcess
from tests.mount import Mount, mounted
from tests.system.bed import Bed, eventually, writes
from tests.system.commands import edit
from tests.system.conftest import MakeBed
from tests.system.crowd import copied
from tests.system.state_dir import degraded, everything_travels, quiet, recovered

Change = Callable[[Mount], None]
REFUSALS = [
    pytest.param(Mount.read_only, Mount.writable, id="read-only"),
    pytest.param(Mount.fill, Mount.make_room, id="full"),
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
    status = await bed.agent.until(lambda status: degraded(status) and status["outbox"]["depth"] == 2)
    (reason,) = [reason for reason in status["reasons"] if reason["code"] == "StateDegraded"]
    assert str(bed.agent.state_dir) in reason["hint"]
    code, screen, _ = await bed.agent.crsyncer("status")
    assert code == 10  # degraded: a refusing disk is worse news than an absent cloud
    assert "Syncing goes on from memory" in " ".join(screen.split())
    bed.cloud.link.restore()
    await bed.cloud.shows("g01", status={"phase": "DONE"}, seconds=120)
    await bed.cloud.shows("g03", status={"phase": "LATER"})
    await everything_travels(bed, "one")
    assert (await bed.kind())["relists"]["cloud"] == 0
    relent(state_disk)
    await recovered(bed)


@pytest.mark.nightly("to be shown by the model")
@pytest.mark.fault_44
@pytest.mark.fault_48
async def test_S6_5_a_read_only_disk_that_holds_nothing_yet_is_no_reason_not_to_sync(
    state_disk: Mount, make_bed: MakeBed, tmp_path: Path
) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("watchTimeout: 240\n")
    state_disk.read_only()
    bed = await make_bed(flags=("--config", str(config)))
    await everything_from_scratch(bed)
    second = AgentProcess(tmp_path, cloud_kubeconfig=tmp_path / "cloud.yaml", robot_kubeconfig=tmp_path / "robot.yaml")
    await second.start(ready=False)

    async def ended() -> bool:
        return not second.running

    await eventually(ended, what="the second instance ends")
    assert await second.stop() == 1
    edit(config, "watchTimeout: 250\n")  # everything is built anew, the socket too

    async def starting_over() -> bool:
        return "starting over" in bed.agent.log.read_text()

    await eventually(starting_over, what="the new settings are taken over")

    def resumed(status: dict[str, Any]) -> bool:
        return [(kind["state"], sum(kind["relists"].values())) for kind in status["kinds"]] == [("syncing", 0)]

    assert degraded(await bed.agent.until(resumed))
    assert list(state_disk.directory.iterdir()) == []
    state_disk.writable()
    await recovered(bed)
    assert (state_disk.directory / "lock").read_text() == f"{bed.agent.pid}\n"


async def everything_from_scratch(bed: Bed) -> None:
    """What `everything_travels` wants to find, and that it does."""
    await copied(bed, 2)
    await everything_travels(bed, "one")


@pytest.mark.nightly("to be shown by the model")
@pytest.mark.fault_44
async def test_S6_4_what_could_not_be_read_costs_a_relist_and_then_a_restart(
    state_disk: Mount, make_bed: MakeBed
) -> None:
    bed = await make_bed()
    await everything_from_scratch(bed)
    await bed.settled()
    async with bed.stopped():
        database = bed.agent.state_dir / "state.db"
        database.write_bytes(b"This is not a database. " * 500)
        state_disk.read_only()
        for side in (bed.cloud, bed.robot):
            side.link.clear()
    await bed.until_kind("syncing")
    await bed.settled()
    assert (await bed.kind())["relists"] == {"cloud": 1, "robot": 1}
    assert writes(bed.cloud.link) == writes(bed.robot.link) == []
    state_disk.writable()

    def to_be_restarted(status: dict[str, object]) -> bool:
        return "restart the agent" in str(status["reasons"])

    await bed.agent.until(to_be_restarted)
    async with bed.stopped():
        pass
    await bed.agent.until(lambda status: status["health"] == "healthy")
    await everything_travels(bed, "two")
