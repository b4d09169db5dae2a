"""Few file descriptors, little memory: the agent stays inside, or says what it lacks and goes on when it has it."""

import asyncio
import resource
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.system.asked import deletes
from tests.system.bed import Bed, eventually, memory
from tests.system.conftest import MakeBed
from tests.system.crowd import copied, each
from tests.system.kinds import another


def limited(**limits: int) -> tuple[str, ...]:
    """A wrapper that sets resource limits, by their names without RLIMIT_."""
    sets = "; ".join(f"resource.setrlimit(resource.RLIMIT_{name}, ({value},) * 2)" for name, value in limits.items())
    return (sys.executable, "-c", f"import os, resource, sys; {sets}; os.execv(sys.argv[1], sys.argv[1:])")


@pytest.mark.fault_54
async def test_fault_54_with_64_file_descriptors_everything_is_synced(make_bed: MakeBed) -> None:
    bed = await make_bed(wrapper=limited(NOFILE=64))
    pid = bed.agent.pid
    others = [await another(bed, plural) for plural in ("tasks", "maps", "charges")]
    for number in range(40):
        await asyncio.gather(*(cloud.create(f"o{number}") for cloud, _ in others), bed.cloud.create(f"o{number}"))
    for number in range(40):
        for robot in (bed.robot, *(robot for _, robot in others)):
            await robot.shows(f"o{number}", seconds=60)
    assert bed.agent.pid == pid
    assert len(list(Path(f"/proc/{pid}/fd").iterdir())) < 64
    await bed.agent.until(lambda status: bool(status["health"] == "healthy"), seconds=60)


@pytest.mark.nightly("to be shown by the model")
@pytest.mark.fault_54
async def test_fault_54_without_a_file_descriptor_left_it_says_so_and_goes_on_when_there_are(bed: Bed) -> None:
    await copied(bed, 2)
    pid = bed.agent.pid
    limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    bed.cloud.link.cut()
    bed.robot.link.cut()
    await bed.until_side("cloud", "offline")
    await bed.until_side("robot", "offline")
    rooms: list[int] = []

    async def looked_often() -> bool:
        # Now and then a descriptor is taken for a moment, by the question before or by a probe.
        rooms.append(free_from(pid) + 1)
        return len(rooms) == 40

    await eventually(looked_often, what="the descriptors that are free while nothing is asked")
    # Room for the question itself, not for a connection to an API server beside it.
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (min(rooms), limits[1]))
    bed.cloud.link.restore()
    bed.robot.link.restore()

    def lacking(status: dict[str, Any]) -> bool:
        return any("open files" in (side["error"] or "") for side in status["sides"].values())

    status = await bed.agent.until(lacking, seconds=90)
    assert {reason["code"] for reason in status["reasons"]} <= {"CloudOffline", "RobotOffline"}
    resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
    await bed.until_side("cloud", "connected", seconds=90)
    await bed.until_side("robot", "connected", seconds=90)
    await bed.cloud.patch("g00", {"spec": None})
    await bed.robot.shows("g00", spec=None, seconds=60)
    await bed.agent.until(lambda status: bool(status["health"] == "healthy"), seconds=60)
    assert bed.agent.pid == pid


@pytest.mark.fault_54
@pytest.mark.nightly
async def test_fault_54_without_enough_memory_it_stays_inside_or_ends_in_one_line_and_loses_nothing(bed: Bed) -> None:
    names = set(await copied(bed, 5))
    pid = bed.agent.pid
    allowed = int(memory(pid, "VmData") * 2**20) + (8 << 20)
    resource.prlimit(pid, resource.RLIMIT_DATA, (allowed, allowed))
    big = [f"big{number}" for number in range(400)]
    await each(big, lambda name: bed.cloud.create(name, spec={"text": name + "x" * 20_000}))

    async def done() -> bool:
        return not bed.agent.running or await bed.robot.names() == names | set(big)

    await eventually(done, seconds=300, what="everything copied, or the agent ended")
    if not bed.agent.running:
        assert await bed.agent.stop() == 1
        assert "out of memory" in bed.agent.tail(3)
        await bed.agent.start()
    await bed.until_kind("syncing", seconds=60)
    await bed.settled(seconds=120)
    assert await bed.robot.names() == await bed.cloud.names() == names | set(big)
    assert deletes(bed.robot.link) == []


def free_from(pid: int) -> int:
    """The lowest descriptor that is free."""
    taken = {int(entry.name) for entry in Path(f"/proc/{pid}/fd").iterdir()}
    return next(number for number in range(len(taken) + 1) if number not in taken)
