"""S6.4, S6.5: a database that is broken, foreign, half there or of another version costs a relist at most."""

import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from crsyncer.sandbox.agent import AgentProcess
from tests.adapters.store_kit import break_bodies
from tests.system.asked import full_list, lists
from tests.system.bed import Bed, eventually, writes
from tests.system.crowd import copied, report_all, shown_all


def garbage(database: Path) -> None:
    database.write_bytes(b"This is not a database. " * 500)


def truncated(database: Path) -> None:
    database.write_bytes(database.read_bytes()[: database.stat().st_size // 2])


def headless(database: Path) -> None:
    database.write_bytes(bytes(100) + database.read_bytes()[100:])


def flipped(database: Path) -> None:
    content, seeded = bytearray(database.read_bytes()), random.Random(45)
    for _ in range(100):
        content[seeded.randrange(len(content))] ^= 1 << seeded.randrange(8)
    database.write_bytes(content)


def foreign(database: Path) -> None:
    database.unlink()
    with closing(sqlite3.connect(database)) as other:
        other.execute("CREATE TABLE goals (name)")


def newer(database: Path) -> None:
    with closing(sqlite3.connect(database)) as changed:
        changed.execute("PRAGMA user_version = 9999")


def with_anothers_wal(database: Path) -> None:
    other = database.with_name("other.db")
    with closing(sqlite3.connect(other, isolation_level=None)) as made:
        for statement in ("PRAGMA page_size = 2048", "PRAGMA journal_mode = WAL", "CREATE TABLE t (x)"):
            made.execute(statement)
        wal = database.with_name(database.name + "-wal")
        wal.write_bytes(other.with_name("other.db-wal").read_bytes())
        wal.chmod(0o600)


def without_wal(database: Path) -> None:
    database.with_name(database.name + "-wal").unlink()


VARIATIONS = (truncated, break_bodies, newer, headless, flipped, foreign, with_anothers_wal)


@pytest.mark.fault_45
@pytest.mark.fault_47
@pytest.mark.parametrize(
    "spoil", [garbage, *(pytest.param(spoil, marks=pytest.mark.nightly("a variation")) for spoil in VARIATIONS)]
)
async def test_S6_5_a_bad_database_is_set_aside_and_rebuilt(bed: Bed, spoil: Callable[[Path], None]) -> None:
    names = await copied(bed, 5)
    await report_all(bed, names, "RUNNING")
    await shown_all(bed, names, "RUNNING")
    await bed.settled()
    async with bed.stopped():
        spoil(bed.agent.state_dir / "state.db")
        bed.robot.link.clear()
        bed.cloud.link.clear()
    await bed.until_kind("syncing")
    await bed.settled()
    status = await bed.agent.status()
    assert (status["store"]["state"], status["health"]) == ("rebuilt", "healthy")
    aside = list(bed.agent.state_dir.glob("state.db.broken-*"))
    assert aside
    assert "the database could not be used" in bed.agent.log.read_text()
    assert {file.stat().st_mode & 0o777 for file in bed.agent.state_dir.glob("state.db*")} == {0o600}
    assert writes(bed.robot.link) == writes(bed.cloud.link) == []
    assert await bed.robot.names() == await bed.cloud.names() == set(names)


@pytest.mark.nightly("to be shown by the model")
@pytest.mark.fault_45
async def test_S6_2_without_its_wal_the_database_is_only_older(bed: Bed) -> None:
    names = await copied(bed, 3)
    await bed.agent.stop()
    await bed.agent.start()
    await report_all(bed, names, "RUNNING")
    await shown_all(bed, names, "RUNNING")
    await bed.settled()
    before = [(await side.api.list(side.resource))["items"] for side in (bed.cloud, bed.robot)]
    async with bed.stopped(kill=True):
        without_wal(bed.agent.state_dir / "state.db")
        bed.robot.link.clear()
        bed.cloud.link.clear()
    await bed.until_kind("syncing")
    await bed.settled()
    assert (await bed.agent.status())["store"]["state"] == "ok"
    assert writes(bed.robot.link) == []
    # The robot may be heard first: its statuses go up once more then, and change nothing.
    assert [(await side.api.list(side.resource))["items"] for side in (bed.cloud, bed.robot)] == before
    assert lists(bed.robot.link) == lists(bed.cloud.link) == []


@pytest.mark.nightly("to be shown by the model")
@pytest.mark.fault_45
async def test_S4_1_a_status_saved_from_a_broken_database_does_not_go_over_a_newer_one(bed: Bed) -> None:
    await copied(bed, 1)
    database = bed.agent.state_dir / "state.db"
    bed.cloud.link.cut()
    await bed.until_side("cloud", "offline")
    await bed.robot.set_status("g00", {"phase": "OLD"})
    await bed.agent.until(lambda status: bool(status["outbox"]["depth"] == 1))
    await bed.agent.stop()
    old = database.read_bytes()
    bed.cloud.link.restore()
    await bed.agent.start()
    await bed.cloud.shows("g00", status={"phase": "OLD"})
    await bed.robot.set_status("g00", {"phase": "NEW"})
    await bed.cloud.shows("g00", status={"phase": "NEW"})
    await bed.agent.stop()
    database.write_bytes(old)
    break_bodies(database)
    history = await bed.cloud.record("g00")
    stalled = bed.robot.link.stall("/goals", when=full_list)
    await bed.agent.start()
    status = await bed.agent.until(lambda status: any(kind["objects"]["cloud"] == 1 for kind in status["kinds"]))
    assert (status["store"]["state"], status["outbox"]["depth"]) == ("rebuilt", 1)
    stalled.remove()
    await bed.until_kind("syncing")
    await bed.agent.until(lambda status: bool(status["outbox"]["depth"] == 0))
    await bed.settled()
    await bed.robot.set_status("g00", {"phase": "LAST"})

    async def last() -> bool:
        return {"phase": "LAST"} in history.statuses()

    await eventually(last, what="the last status is recorded")
    assert {"phase": "OLD"} not in history.statuses()


@pytest.mark.fault_48
async def test_S6_5_a_second_instance_exits_1_with_the_holders_pid(bed: Bed) -> None:
    await copied(bed, 1)
    second = AgentProcess(
        bed.directory, cloud_kubeconfig=bed.directory / "cloud.yaml", robot_kubeconfig=bed.directory / "robot.yaml"
    )

    async def refused() -> None:
        await second.start(ready=False)

        async def ended() -> bool:
            return not second.running

        await eventually(ended, what="the second instance ends")
        assert await second.stop() == 1
        assert f"process {bed.agent.pid}" in bed.agent.log.read_text()

    await refused()
    assert bed.agent.running
    await bed.cloud.patch("g00", {"spec": {"x": 2}})
    await bed.robot.shows("g00", spec={"x": 2})
    async with bed.stopped(kill=True):
        assert (bed.agent.state_dir / "lock").read_text()  # of the dead one: nobody has to clean up
    await refused()
    assert bed.agent.running
