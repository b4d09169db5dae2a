"""An older copy of the state directory is put back: a stored position is a hint, and what waited may be history."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.system.asked import status_writes
from tests.system.bed import Bed, eventually, writes
from tests.system.conftest import MakeBed
from tests.system.roles import roles
from tests.system.travel import SLOW


@pytest.mark.nightly("to be shown by the model")
@pytest.mark.parametrize("source", ["cloud", "robot"])
async def test_S4_1_a_status_that_waited_in_an_older_database_never_goes_over_a_newer_one(
    make_bed: MakeBed, tmp_path: Path, source: str
):
    bed = await make_bed(source=source)
    up, down = roles(bed, source)
    for name in ("a", "b", "c"):
        await up.create(name, spec={"x": 1})
        await down.shows(name, spec={"x": 1})
    await bed.settled()
    up.link.cut()
    for name in ("a", "b"):
        await down.set_status(name, {"phase": "OLD"})
    await bed.agent.until(lambda status: status["outbox"]["depth"] == 2)
    backup = tmp_path / "backup"
    async with bed.stopped():
        shutil.copytree(bed.agent.state_dir, backup)
        up.link.restore()
    await down.set_status("a", {"phase": "NEW"})
    await up.shows("a", status={"phase": "NEW"}, seconds=SLOW)
    await up.shows("b", status={"phase": "OLD"})
    await up.delete("c")
    await down.gone("c")
    await up.delete("b")
    await down.gone("b")
    for name in ("b", "d"):  # one of them under an old name
        await up.create(name, spec={"x": 2})
        await down.shows(name, spec={"x": 2})
    await bed.settled()
    copies = [(await down.get(name))["metadata"]["uid"] for name in ("a", "b", "d")]
    history = await up.record()
    async with bed.stopped():
        shutil.rmtree(bed.agent.state_dir)
        shutil.copytree(backup, bed.agent.state_dir)
        slow = down.link.stall(r"/goals\?.*watch=true")
        for side in (up, down):
            side.link.clear()
    await bed.until_side("cloud", "connected")
    await bed.until_side("robot", "connected")
    await bed.agent.crsyncer("pending", "retry")
    slow.remove()
    await bed.settled(seconds=SLOW)
    await bed.agent.until(lambda status: status["health"] == "healthy")
    # Downstream may be heard first: what goes up then is what upstream has already, and changes nothing.
    again = status_writes(up.link)
    assert len(again) == len(writes(up.link))
    assert all(b"NEW" in request.body for request in again)
    assert [(await down.get(name))["metadata"]["uid"] for name in ("a", "b", "d")] == copies
    assert await up.names() == await down.names() == {"a", "b", "d"}
    await down.set_status("a", {"phase": "NEWEST"})
    await up.shows("a", status={"phase": "NEWEST"})
    await history.complete()
    assert [(obj["metadata"]["name"], obj["status"]) for _, obj in history.events] == [("a", {"phase": "NEWEST"})]


@pytest.mark.nightly("to be shown by the model")
@pytest.mark.parametrize("source", ["cloud", "robot"])
async def test_S6_4_a_deletion_of_an_older_database_is_about_the_object_of_that_time(
    make_bed: MakeBed, tmp_path: Path, source: str
):
    bed = await make_bed(source=source)
    up, down = roles(bed, source)
    for name in ("a", "b"):
        await up.create(name, spec={"x": 1})
        await down.shows(name, spec={"x": 1})
    await bed.settled()
    down.link.cut()
    await up.delete("a")
    await bed.agent.until(lambda status: status["kinds"][0]["objects"][bed_side(bed, up)] == 1)
    backup = tmp_path / "backup"
    async with bed.stopped():
        shutil.copytree(bed.agent.state_dir, backup)
        down.link.restore()
    await down.gone("a")
    await up.create("a", spec={"x": 2})
    await down.shows("a", spec={"x": 2})
    await bed.settled()
    kept = (await down.get("a"))["metadata"]["uid"]
    async with bed.stopped():
        shutil.rmtree(bed.agent.state_dir)
        shutil.copytree(backup, bed.agent.state_dir)
    await bed.settled(seconds=SLOW)
    assert (await down.get("a"))["metadata"]["uid"] == kept
    assert await up.names() == await down.names() == {"a", "b"}
    assert (await bed.agent.status())["holds"] == []


def bed_side(bed: Bed, side: object) -> str:
    """What `status` calls a side."""
    return "cloud" if side is bed.cloud else "robot"


@pytest.mark.nightly("to be shown by the model")
async def test_S4_1_a_status_of_an_older_database_whose_copy_is_gone_does_not_go_over_a_newer_one(
    bed: Bed, tmp_path: Path
):
    await bed.cloud.create("a", spec={"x": 1})
    await bed.robot.shows("a", spec={"x": 1})
    bed.cloud.link.cut()
    await bed.until_side("cloud", "offline")
    await bed.robot.set_status("a", {"phase": "OLD"})
    await bed.agent.until(lambda status: status["outbox"]["depth"] == 1)
    backup = tmp_path / "backup"
    async with bed.stopped():
        shutil.copytree(bed.agent.state_dir, backup)
        bed.cloud.link.restore()
    await bed.cloud.shows("a", status={"phase": "OLD"})
    await bed.robot.set_status("a", {"phase": "DONE"})
    await bed.cloud.shows("a", status={"phase": "DONE"})
    await bed.settled()
    history = await bed.cloud.record("a")
    async with bed.stopped():
        await bed.robot.delete("a")
        shutil.rmtree(bed.agent.state_dir)
        shutil.copytree(backup, bed.agent.state_dir)
        lose(bed.agent.state_dir / "state.db", "cursors")  # or the watch would tell what has happened since
    await bed.robot.shows("a", spec={"x": 1}, status={"phase": "DONE"})
    await bed.agent.until(lambda status: status["outbox"]["depth"] == 0)
    await bed.robot.set_status("a", {"phase": "AGAIN"})
    await bed.cloud.shows("a", status={"phase": "AGAIN"})

    async def last() -> bool:
        return {"phase": "AGAIN"} in history.statuses()

    await eventually(last, what="the last status is recorded")
    assert {"phase": "OLD"} not in history.statuses()


@pytest.mark.nightly("to be shown by the model")
@pytest.mark.parametrize("lost", [(), ("cursors",), ("cursors", "objects", "cloud_rest", "robot_rest")])
async def test_S6_3_the_final_status_of_a_copy_that_is_gone_is_sent_after_a_restart(bed: Bed, lost: tuple[str, ...]):
    await bed.cloud.create("a", spec={"x": 1})
    await bed.robot.shows("a", spec={"x": 1})
    await bed.robot.set_status("a", {"phase": "RUNNING"})
    await bed.cloud.shows("a", status={"phase": "RUNNING"})
    await bed.settled()
    bed.cloud.link.cut()
    await bed.until_side("cloud", "offline")
    await bed.robot.set_status("a", {"phase": "DONE"})
    await bed.agent.until(lambda status: status["outbox"]["depth"] == 1)
    async with bed.stopped():
        await bed.robot.delete("a")
        lose(bed.agent.state_dir / "state.db", *lost)
        bed.cloud.link.restore()
    await bed.cloud.shows("a", status={"phase": "DONE"})
    await bed.robot.shows("a", spec={"x": 1}, status={"phase": "DONE"})


def lose(database: Path, *tables: str) -> None:
    """Take from a database what could not be salvaged of it."""
    with closing(sqlite3.connect(database)) as changed, changed:
        for table in tables:
            changed.execute(f"DELETE FROM {table}")
