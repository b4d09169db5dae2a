"""S8.3: an etcd that is restored from a backup, and how what is held for it ends."""

import asyncio
import itertools
from pathlib import Path

import pytest

from tests.system.asked import lists
from tests.system.bed import Bed, eventually, writes
from tests.system.conftest import MakeBed
from tests.system.roles import roles
from tests.system.travel import SLOW, restore, snapshot


async def until_held(bed: Bed, count: int) -> str:
    """Wait until so many deletions are held because of the restore; the hold's id."""
    status = await bed.agent.until(
        lambda status: sum(hold["objects"] for hold in status["holds"]) == count, seconds=SLOW
    )
    assert {hold["reason"] for hold in status["holds"]} <= {"Restored"}
    return status["holds"][0]["id"] if count else ""


async def ordinary_deletion(bed: Bed, name: str, source: str = "cloud") -> None:
    """A deletion that somebody means goes through, and nothing is held for it."""
    up, down = roles(bed, source)
    await up.delete(name)
    await down.gone(name)
    status = await bed.agent.until(lambda status: status["health"] == "healthy")
    assert status["holds"] == []


@pytest.mark.nightly
@pytest.mark.fault_19
@pytest.mark.parametrize("running", [True, False], ids=["running", "stopped"])
async def test_S8_3_an_etcd_from_before_the_last_50_changes(bed: Bed, tmp_path: Path, running: bool):
    changed, dropped, made = ([f"{kind}{n}" for n in range(10)] for kind in ("changed", "dropped", "made"))
    for name in changed + dropped:
        await bed.cloud.create(name, spec={"x": 1})
    for name in changed:
        await bed.robot.shows(name, spec={"x": 1})
        await bed.robot.set_status(name, {"phase": "RUNNING"})
    for name in changed:
        await bed.cloud.shows(name, status={"phase": "RUNNING"})
    await bed.settled()
    old = await snapshot(bed.cloud, tmp_path)
    for name in changed:
        await bed.cloud.patch(name, {"spec": {"x": 2}})
        await bed.cloud.patch(name, {"spec": {"x": 3}})
        await bed.robot.set_status(name, {"phase": "DONE"})
    for name in dropped:
        await bed.cloud.delete(name)
    for name in made:
        await bed.cloud.create(name, spec={"x": 1})
    for name in changed:
        await bed.robot.shows(name, spec={"x": 3})
        await bed.cloud.shows(name, status={"phase": "DONE"})
    for name in made:
        await bed.robot.shows(name)
    await bed.settled()
    if running:
        await restore(bed.cloud, old)
    else:
        async with bed.stopped():
            await restore(bed.cloud, old)
    for name in changed:
        await bed.robot.shows(name, spec={"x": 1}, seconds=SLOW)
        await bed.cloud.shows(name, status={"phase": "DONE"}, seconds=SLOW)
    for name in dropped:
        await bed.robot.shows(name, spec={"x": 1})
    hold = await until_held(bed, len(made))
    assert await bed.robot.names() == {*changed, *dropped, *made}
    assert (await bed.agent.status())["health"] == "attention"
    assert (await bed.agent.crsyncer("holds", "release", hold, "--yes"))[0] == 0
    await asyncio.gather(*(bed.robot.gone(name) for name in made))
    await until_held(bed, 0)
    await ordinary_deletion(bed, "dropped0")


@pytest.mark.nightly
@pytest.mark.fault_19
@pytest.mark.parametrize("running", [True, False], ids=["running", "stopped"])
async def test_S8_3_a_restored_cloud_gets_the_robots_own_objects_again(
    make_bed: MakeBed, tmp_path: Path, running: bool
):
    """There the cloud is downstream: it holds nothing back, and copies are made again."""
    bed = await make_bed(source="robot")
    for name in ("a", "b", "dropped"):
        await bed.robot.create(name, spec={"x": 1})
        await bed.cloud.shows(name, spec={"x": 1})
    await bed.cloud.set_status("a", {"phase": "RUNNING"})
    await bed.robot.shows("a", status={"phase": "RUNNING"})
    await bed.settled()
    old = await snapshot(bed.cloud, tmp_path)
    await bed.robot.patch("a", {"spec": {"x": 2}})
    await bed.cloud.shows("a", spec={"x": 2})
    await bed.robot.create("made", spec={"x": 1})
    await bed.cloud.shows("made", spec={"x": 1})
    for name in ("made", "b"):
        await bed.cloud.set_status(name, {"phase": "DONE"})
        await bed.robot.shows(name, status={"phase": "DONE"})
    await bed.robot.delete("dropped")
    await bed.cloud.gone("dropped")
    await bed.settled()
    if running:
        await restore(bed.cloud, old)
    else:
        async with bed.stopped():
            await restore(bed.cloud, old)
    await bed.cloud.shows("a", spec={"x": 2}, status={"phase": "RUNNING"}, seconds=SLOW)
    await bed.cloud.shows("made", spec={"x": 1}, status={"phase": "DONE"})
    await bed.cloud.gone("dropped")
    await bed.settled()
    # The copy that had no status at the time of the backup takes none away.
    await bed.robot.shows("b", status={"phase": "DONE"})
    await ordinary_deletion(bed, "a", "robot")


@pytest.mark.nightly("to be shown by the model")
async def test_S8_3_a_restore_that_cost_no_copy_leaves_no_hold_behind(bed: Bed, tmp_path: Path):
    for name in ("a", "b"):
        await bed.cloud.create(name, spec={"x": 1})
        await bed.robot.shows(name, spec={"x": 1})
    await bed.settled()
    old = await snapshot(bed.cloud, tmp_path)
    for number in range(2, 32):
        await bed.cloud.patch("a", {"spec": {"x": number}})
    await bed.robot.shows("a", spec={"x": 31})
    await bed.settled()
    await restore(bed.cloud, old)
    await bed.robot.shows("a", spec={"x": 1}, seconds=SLOW)
    await bed.settled()
    await ordinary_deletion(bed, "b")


@pytest.mark.nightly("to be shown by the model")
@pytest.mark.parametrize(
    "restarted", [False, pytest.param(True, marks=pytest.mark.nightly)], ids=["running", "restarted"]
)
async def test_S8_3_a_hold_ends_when_nothing_is_left_to_hold(bed: Bed, tmp_path: Path, restarted: bool):
    for name in ("a", "b"):
        await bed.cloud.create(name, spec={"x": 1})
        await bed.robot.shows(name, spec={"x": 1})
    await bed.settled()
    old = await snapshot(bed.cloud, tmp_path)
    for name in ("lost", "too"):
        await bed.cloud.create(name, spec={"x": 1})
        await bed.robot.shows(name)
    for number in range(2, 32):
        await bed.cloud.patch("a", {"spec": {"x": number}})
    await bed.settled()
    await restore(bed.cloud, old)
    await until_held(bed, 2)
    if restarted:
        async with bed.stopped(kill=True):
            pass
        await until_held(bed, 2)
    await bed.robot.delete("lost")  # somebody decides one by one
    await until_held(bed, 1)
    await bed.cloud.delete("b")  # meanwhile every deletion waits (S5.5c)
    await until_held(bed, 2)
    assert not any(write.startswith("DELETE") for write in writes(bed.robot.link))
    await bed.robot.delete("too")
    await until_held(bed, 1)
    await bed.robot.delete("b")
    await until_held(bed, 0)
    await ordinary_deletion(bed, "a")


@pytest.mark.nightly("to be shown by the model")
async def test_S8_2_a_probe_that_our_own_writes_overtake_is_no_restore(bed: Bed):
    names = [f"a{number}" for number in range(8)]
    for name in names:
        await bed.cloud.create(name, spec={"x": 1})
    for name in names:
        await bed.robot.shows(name, spec={"x": 1})
    await bed.settled()
    listed = len(lists(bed.cloud.link))
    bed.cloud.link.delay(0.3)  # statuses are acknowledged between the probe's revision and the look at it

    async def report() -> None:
        for number in itertools.count():
            await bed.robot.set_status(names[number % len(names)], {"seq": number})

    reporter = asyncio.create_task(report())
    for flap in range(1, 4):
        resumes = (await bed.kind())["resumes"]["cloud"]
        bed.cloud.link.cut()
        bed.cloud.link.restore()

        async def resumed(before: int = resumes) -> bool:
            kind = await bed.kind()
            return bool(kind["resumes"]["cloud"] > before or kind["relists"]["cloud"] > 1)

        await eventually(resumed, what=f"flap {flap} is over")
    reporter.cancel()
    await asyncio.gather(reporter, return_exceptions=True)
    bed.cloud.link.heal()
    assert "older than our cursor" not in bed.agent.log.read_text()
    assert len(lists(bed.cloud.link)) == listed
