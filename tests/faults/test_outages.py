"""Sides that are away, silent or stand still, and an agent that is stopped in the middle (rows 5 to 7, 10, 11, 53)."""

import asyncio

import pytest

from tests import planes
from tests.system.asked import status_writes
from tests.system.bed import Bed, cpu_seconds, eventually, some_at_a_time
from tests.system.conftest import MakeBed
from tests.system.crowd import all_show, copied, holds_exactly
from tests.system.flow import begun, flows
from tests.system.state_dir import remove_database

CHANGES = 100
SLOW = 90.0


@pytest.mark.fault_05
async def test_an_agent_that_has_never_met_the_cloud_queues_what_the_robot_says_and_tells_that_it_is_offline(bed: Bed):
    await copied(bed, 3)
    await bed.agent.stop()
    remove_database(bed.agent.state_dir)
    bed.cloud.link.cut()
    await bed.start(state="waiting")
    await bed.until_side("cloud", "offline")
    await bed.robot.set_status("g01", {"phase": "DONE"})
    await bed.agent.until(lambda status: status["outbox"]["depth"] == 1)
    code, screen, _ = await bed.agent.crsyncer("status")
    assert code == 11
    assert screen.startswith("OFFLINE: the cloud has never answered")
    assert "1 status waits" in screen
    assert await bed.robot.names() == {"g00", "g01", "g02"}
    bed.cloud.link.restore()
    await bed.cloud.shows("g01", status={"phase": "DONE"}, seconds=SLOW)
    await bed.until_kind("syncing", seconds=SLOW)


@pytest.mark.nightly
@pytest.mark.fault_06
async def test_with_both_sides_absent_for_a_minute_the_agent_uses_less_than_one_percent_of_a_processor(
    make_bed: MakeBed,
):
    bed = await make_bed(start=False)
    for side in (bed.cloud, bed.robot):
        side.link.cut()
    await bed.start(state=None)
    for name in ("cloud", "robot"):
        await bed.until_side(name, "offline")
    loop = asyncio.get_running_loop()
    before, started = cpu_seconds(bed.agent.pid), loop.time()
    await asyncio.sleep(60.0)  # nothing is what is measured
    used = (cpu_seconds(bed.agent.pid) - before) / (loop.time() - started)
    print(f"{used:.2%} CPU with both sides absent")
    assert used < 0.01
    assert bed.agent.running


async def outage(bed: Bed, *, seconds: float) -> None:
    """Cut the cloud off for so long while 100 specs and 100 statuses change."""
    names = await copied(bed, 2 * CHANGES)
    resumed = (await bed.kind())["resumes"]["cloud"]
    bed.cloud.link.cut()
    await bed.until_side("cloud", "offline")
    changed, reported = names[:CHANGES], names[CHANGES:]
    await some_at_a_time(bed.cloud.patch(name, {"spec": {"x": 2}}) for name in changed)
    await some_at_a_time(bed.robot.set_status(name, {"phase": "DONE"}) for name in reported)
    await bed.agent.until(lambda status: status["outbox"]["depth"] == CHANGES, seconds=SLOW)
    await asyncio.sleep(seconds)  # the length of the outage
    bed.cloud.link.restore()
    started = asyncio.get_running_loop().time()
    await all_show(bed.robot, changed, "spec", {"x": 2})
    await all_show(bed.cloud, reported, "status", {"phase": "DONE"})
    print(f"{CHANGES} changes each way, {asyncio.get_running_loop().time() - started:.1f} s after the return")
    await bed.agent.until(lambda status: status["kinds"][0]["resumes"]["cloud"] > resumed)


@pytest.mark.fault_07
async def test_what_changed_on_both_sides_during_a_cut_is_there_after_it(bed: Bed):
    await outage(bed, seconds=0)


@pytest.mark.nightly
@pytest.mark.fault_07
async def test_what_changed_on_both_sides_during_a_cut_of_ten_minutes_is_there_after_it(bed: Bed):
    await outage(bed, seconds=600)


@pytest.mark.nightly
@pytest.mark.fault_10
@pytest.mark.parametrize("what", ["vanishing packets", "an upload that is never read"])
async def test_a_connection_that_goes_dead_during_an_upload_is_noticed_and_the_outbox_keeps_its_rows(
    bed: Bed, what: str
):
    names = await copied(bed, 8)
    link = bed.cloud.link
    stalled = link.stall("/status$", method="PATCH")
    await bed.robot.set_status(names[0], {"text": "x" * 20_000})

    async def uploading() -> bool:
        return stalled.count > 0

    await eventually(uploading, what="an upload has begun")
    if what == "vanishing packets":
        link.half_open()
    for name in names[1:]:
        await bed.robot.set_status(name, {"phase": "DONE"})
    await bed.agent.until(lambda status: status["outbox"]["depth"] == len(names))
    if what == "vanishing packets":
        await bed.until_side("cloud", "offline", seconds=70)
    else:
        await eventually(lambda: retried(bed, names[0]), seconds=70, what="the upload was given up, and tried again")
    stalled.remove()
    link.restore()
    await bed.cloud.shows(names[0], status={"text": "x" * 20_000}, seconds=SLOW)
    await all_show(bed.cloud, names[1:], "status", {"phase": "DONE"})
    await bed.agent.until(lambda status: status["outbox"]["depth"] == 0, seconds=SLOW)
    assert (await bed.kind())["relists"] == {"cloud": 1, "robot": 1}


async def retried(bed: Bed, name: str) -> bool:
    """Whether a status was sent more than once."""
    return len(status_writes(bed.cloud.link, name)) > 1


@pytest.mark.nightly
@pytest.mark.fault_11
async def test_an_api_server_that_stands_still_for_two_minutes_is_probed_now_and_then_and_not_stormed_after(bed: Bed):
    await begun(bed)
    before = await bed.kind()
    planes.pause(bed.cloud.plane)
    try:
        await bed.until_side("cloud", "offline", seconds=70)
        connects = bed.cloud.link.connects
        await bed.robot.set_status("a", {"late": True})
        await asyncio.sleep(60.0)  # how often it is asked is what is counted
        probes = bed.cloud.link.connects - connects
        print(f"{probes} connections in a minute to a server that stands still")
        assert probes <= 12
        bed.cloud.link.clear()
    finally:
        planes.resume(bed.cloud.plane)
    await bed.cloud.shows("a", status={"late": True}, seconds=SLOW)
    await flows(bed.cloud, bed.robot, 2)
    await bed.settled(seconds=SLOW)
    print(f"{len(bed.cloud.link.requests)} requests until all is well again")
    assert len(bed.cloud.link.requests) <= 30
    assert (await bed.kind())["relists"] == before["relists"]


@pytest.mark.fault_53
@pytest.mark.parametrize("trouble", ["load", "hanging requests"])
async def test_sigterm_in_the_middle_ends_in_time_and_loses_nothing(bed: Bed, trouble: str):
    names = await copied(bed, 40)
    changed, reported, doomed, kept = names[:15], names[15:30], names[30:35], names[:30] + names[35:]
    if trouble == "hanging requests":
        for link in (bed.cloud.link, bed.robot.link):
            link.stall("/goals/")
    await some_at_a_time(bed.cloud.patch(name, {"spec": {"x": 2}}) for name in changed)
    await some_at_a_time(bed.robot.set_status(name, {"phase": "DONE"}) for name in reported)
    await some_at_a_time(bed.cloud.delete(name) for name in doomed)
    assert await bed.agent.stop() == 0
    bed.cloud.link.heal()
    bed.robot.link.heal()
    await bed.start()
    await all_show(bed.robot, changed, "spec", {"x": 2})
    await all_show(bed.cloud, reported, "status", {"phase": "DONE"})
    await holds_exactly(bed.robot, kept, seconds=SLOW)
    await holds_exactly(bed.cloud, kept)
