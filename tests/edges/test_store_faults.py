"""The store through deaths, broken files and disks that refuse (faults 1, 2, 43 to 48)."""

import asyncio
import os
import random
import resource
import shutil
import signal
import sqlite3
import subprocess
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from crsyncer.core.model import Loaded, Side, Tombstone
from crsyncer.edges.store import committer, database, migrations
from crsyncer.edges.store.offline import read_offline
from crsyncer.edges.store.store import SqliteStore
from crsyncer.errors import StoreError
from tests.edges.store_child import DURABLE, OBJECTS, Nursery
from tests.edges.store_kit import GOALS, body, cursor, key, pending, report_status, view

COMPANIONS = ("", "-wal")


@pytest.fixture(scope="module")
def nursery():
    nursery = Nursery()
    yield nursery
    nursery.close()


async def check_prefix(directory: Path) -> int:
    """Both cursors cover only what is there, all that was durable is there; returns the cloud's cursor."""
    acknowledged = [int(line) for line in (directory / DURABLE).read_text().split()] or [0]
    store = await SqliteStore.open(directory / "state")
    assert (store.state, store.notes) == ("ok", [])
    loaded = await store.load(GOALS)
    cursors = {}
    for side in Side:
        found = loaded.cursors.get((side, ""))
        cursors[side] = last = int(found.resource_version) if found else 0
        assert last >= acknowledged[-1]
        for version in range(max(1, last - OBJECTS + 1), last + 1):
            seen = loaded.views[side][key(version % OBJECTS)]
            assert int(seen.resource_version) in (version, last + 1)
            stored = await store.body(side, GOALS, key(version % OBJECTS))
            assert stored == body(version % OBJECTS, int(seen.resource_version), side=side)
    await store.close()
    return cursors[Side.CLOUD]


@pytest.mark.parametrize("point", ["commit", "committed"])
async def test_fault_01_kill_9_at_every_commit_leaves_a_prefix(tmp_path, nursery, point):
    for number in range(1, 8):
        directory = tmp_path / str(number)
        directory.mkdir()
        assert nursery.run(directory, changes=20, fault=f"{point}:{number}") == -signal.SIGKILL
        assert await check_prefix(directory) >= 3 * (number - (point == "commit")) - 2
        assert nursery.run(directory, changes=20) == 0
        assert await check_prefix(directory) >= 20


async def test_fault_02_kill_9_at_any_time_under_load_leaves_a_prefix(tmp_path, nursery):
    seeded, reached = random.Random(2), 0
    for _ in range(12):
        code = nursery.run(tmp_path, changes=10**6, kill_after=seeded.uniform(0.02, 0.4))
        assert code == -signal.SIGKILL
        if (tmp_path / DURABLE).exists():
            kinds = read_offline(tmp_path / "state").kinds
            now = await check_prefix(tmp_path)
            assert now >= reached
            assert not now or int(kinds[GOALS].cursors[Side.CLOUD, ""].resource_version) == now
            reached = now
    assert reached


def known(version: int) -> Loaded:
    views = {side: {key(number): view(number, version, side=side) for number in range(12)} for side in Side}
    return Loaded(views=views, cursors={(side, ""): cursor(version) for side in Side})


@pytest.fixture
async def crashed(tmp_path):
    """The files of an agent that died: version 1 of all objects in the database, version 2 in the WAL."""
    directory = tmp_path / "original"
    for version in (1, 2):
        store = await SqliteStore.open(directory)
        for number in range(12):
            report_status(store, number, version)
            store.put_pending(GOALS, key(number), pending(number, version))
        store.put_tombstone(GOALS, key(99), Tombstone("u", 1.0))
        for side in Side:
            store.put_cursor(side, GOALS, "", cursor(version))
        if version == 1:
            await store.close()
    await store.durable()
    saved = {suffix: (directory / f"state.db{suffix}").read_bytes() for suffix in COMPANIONS}
    await store.close()
    saved["closed"] = (directory / "state.db").read_bytes()
    return saved


def lay_out(directory: Path, files: dict[str, bytes]) -> Path:
    directory.mkdir(mode=0o700)
    for suffix, content in files.items():
        path = directory / f"state.db{suffix}"
        path.write_bytes(content)
        path.chmod(0o600)
    return directory


def damage(files: dict[str, bytes], seed: int) -> dict[str, bytes]:
    seeded = random.Random(seed)
    main, wal = bytearray(files[""]), bytearray(files["-wal"])
    if seed % 3 == 0:
        main, wal = bytearray(files["closed"]), bytearray()
    target = wal if wal and seed % 2 else main
    match seed % 7:
        case 0:
            del target[seeded.randrange(len(target)) :]
        case 1:
            main[: seeded.choice([16, 100, 2048])] = bytes(seeded.choice([16, 100, 2048]))
        case 2:
            wal.clear()
        case 3:
            main[:] = seeded.randbytes(seeded.randrange(1, 9000))
        case 4:
            begin = seeded.randrange(len(target))
            target[begin : begin + 700] = bytes(len(target[begin : begin + 700]))
        case _:
            for _ in range(seeded.choice([1, 1, 3, 30])):
                target[seeded.randrange(len(target))] ^= 1 << seeded.randrange(8)
    return {"": bytes(main)} | ({"-wal": bytes(wal)} if wal else {})


async def test_fault_45_a_broken_database_is_used_whole_or_set_aside_whole(tmp_path, crashed):
    states = {"ok": 0, "rebuilt": 0}
    for seed in range(98):
        files = damage(crashed, seed)
        directory = lay_out(tmp_path / str(seed), files)
        store = await SqliteStore.open(directory, clock=lambda: 1_800_000_000)
        loaded = await store.load(GOALS)
        for side in Side:  # a side whose cursor is believed has lost nothing
            if found := loaded.cursors.get((side, "")):
                expected = known(int(found.resource_version))
                assert loaded.views[side] == expected.views[side], seed
                for at in expected.views[side]:
                    stored = await store.body(side, GOALS, at)
                    assert stored in (None, body(int(at.name[5:]), int(found.resource_version), side=side))
        for at, row in loaded.pending.items():
            assert row in (pending(int(at.name[5:]), 1), pending(int(at.name[5:]), 2))
        states[store.state] += 1
        if store.state == "rebuilt":
            assert not loaded.cursors
            for suffix, content in files.items():
                aside = directory / f"state.db.broken-20270115T080000Z{suffix}"
                if suffix or "-wal" not in files:  # SQLite may have folded what is good of the WAL into the other
                    assert aside.read_bytes() == content
        report_status(store, 1, 9)
        await store.close()
    assert min(states.values()) > 15


async def test_fault_45_what_is_readable_of_a_broken_database_is_saved(tmp_path, crashed):
    main = bytearray(crashed["closed"])
    with closing(sqlite3.connect(tmp_path / "original" / "state.db")) as original:
        root = original.execute("SELECT rootpage FROM sqlite_master WHERE name = 'rests'").fetchone()[0]
    main[(root - 1) * 2048 : root * 2048] = b"\xff" * 2048
    store = await SqliteStore.open(lay_out(tmp_path / "state", {"": bytes(main)}))
    loaded = await store.load(GOALS)
    assert loaded.pending == {key(number): pending(number, 2) for number in range(12)}
    assert loaded.tombstones == {key(99): Tombstone("u", 1.0)}
    assert len(loaded.records) == 12
    assert (loaded.views, loaded.cursors) == (Loaded().views, {})
    assert store.state == "rebuilt"
    assert "12 outbox" in store.notes[1]
    await store.close()


@pytest.mark.parametrize(("number", "saved"), [(0, 0), (1, 12)])
async def test_fault_47_a_newer_database_is_set_aside_and_a_foreign_one_is_not_even_read(
    tmp_path, crashed, number, saved
):
    directory = lay_out(tmp_path / "state", {"": crashed["closed"]})
    with closing(sqlite3.connect(directory / "state.db", isolation_level=None)) as changed:
        changed.execute(("PRAGMA application_id = 77", "PRAGMA user_version = 9")[number])
    store = await SqliteStore.open(directory)
    assert len((await store.load(GOALS)).pending) == saved
    assert store.state == "rebuilt"
    assert ("another program", "newer crsyncer (schema 9)")[number] in store.notes[0]
    await store.close()


async def test_a_wal_without_its_database_is_set_aside(tmp_path, crashed):
    directory = lay_out(tmp_path / "state", {"-wal": crashed["-wal"]})
    store = await SqliteStore.open(directory)
    assert store.state == "rebuilt"
    assert [path.name[-4:] for path in directory.glob("*.broken-*")] == ["-wal"]
    await store.close()


async def test_broken_databases_do_not_pile_up(tmp_path):
    for day in range(5):
        directory = tmp_path / "state"
        directory.mkdir(exist_ok=True)
        for suffix in COMPANIONS:
            (directory / f"state.db{suffix}").write_bytes(b"x" * 5000)
            (directory / f"state.db{suffix}").chmod(0o600)
        store = await SqliteStore.open(directory, clock=lambda day=day: day * 86400.0)  # type: ignore[misc]
        await store.close()
    names = sorted(path.name for path in directory.glob("*.broken-*"))
    assert names == [f"state.db.broken-1970010{day}T000000Z{suffix}" for day in (3, 4, 5) for suffix in COMPANIONS]


async def test_a_database_that_another_program_holds_open_is_not_taken_for_broken(tmp_path, crashed):
    directory = lay_out(tmp_path / "state", {"": crashed["closed"]})
    with closing(sqlite3.connect(directory / "state.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="locked") as refused:
            database.open_database(directory / "state.db", now=0.0, patience=0.01)
        assert refused.value.hint
    assert not list(directory.glob("*.broken-*"))


def test_fault_47_an_older_database_is_migrated_step_by_step(tmp_path):
    def second(db):
        db["cursors"].add_column("note", str)

    def failing(db):
        db["cursors"].drop()
        raise sqlite3.OperationalError("no such thing")

    path = tmp_path / "state.db"
    old = database.open_database(path, now=0.0)
    with old.database.atomic():
        old.database["meta"].insert({"resource": "", "namespace": "", "name": "a", "row": "kept"})
    old.close()
    new = database.open_database(path, now=0.0, steps=(*migrations.STEPS, second))
    assert (new.schema, new.rebuilt, new.notes) == (2, False, ["state.db was migrated from schema 1 to 2"])
    assert "note" in new.database["cursors"].columns_dict
    assert new.meta == {"a": "kept"}
    with pytest.raises(sqlite3.OperationalError, match="no such thing"):
        migrations.migrate(new.database, (*migrations.STEPS, second, failing))
    assert new.database["cursors"].exists()
    assert new.database.execute("PRAGMA user_version").fetchone() == (2,)
    new.close()


class Operator:
    """Writes down what the store reports."""

    def __init__(self) -> None:
        self.heard: list[str | None] = []
        self.worried, self.well = asyncio.Event(), asyncio.Event()

    def hear(self, message: str | None) -> None:
        """What the store calls."""
        self.heard.append(message)
        (self.well if message is None else self.worried).set()


async def check_refusal(directory: Path, elsewhere: Path, refuse, relent) -> None:
    operator = Operator()
    store = await SqliteStore.open(directory, on_trouble=operator.hear)
    report_status(store, 1, 1)
    await store.durable()
    refuse()
    for number in range(2, 400):
        report_status(store, number, number)
    await store.durable()
    await asyncio.wait_for(operator.worried.wait(), 10)
    assert store.state == "degraded"
    report_status(store, 1, 400)  # newest wins over what is stuck
    await store.durable()
    loaded = await store.load(GOALS)
    assert loaded.views[Side.ROBOT][key(1)].resource_version == "400"
    assert await store.body(Side.ROBOT, GOALS, key(300)) == body(300, 300)
    frozen = {suffix: (directory / f"state.db{suffix}").read_bytes() for suffix in COMPANIONS}
    copied = await SqliteStore.open(lay_out(elsewhere, frozen))
    on_disk = await copied.load(GOALS)
    frozen_at = int(on_disk.cursors[Side.CLOUD, ""].resource_version)
    assert frozen_at < 399
    covered = {int(seen.resource_version) for seen in on_disk.views[Side.CLOUD].values()}
    assert covered == set(range(1, frozen_at + 1))  # frozen with the data it covers
    await copied.close()
    relent()
    await asyncio.wait_for(operator.well.wait(), 10)
    assert [message is None for message in operator.heard] == [False, True]
    await store.durable()
    await store.close()
    store = await SqliteStore.open(directory)
    assert (await store.load(GOALS)).cursors[Side.CLOUD, ""] == cursor(400)
    assert len((await store.load(GOALS)).views[Side.ROBOT]) == 399
    await store.close()


@pytest.fixture
def quick_retry(monkeypatch):
    monkeypatch.setattr(committer, "RETRY_SECONDS", (0.05, 0.2))


async def test_fault_44_a_disk_that_refuses_is_reported_and_loses_nothing(tmp_path, quick_retry):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        await check_refusal(
            tmp_path / "state",
            tmp_path / "copied",
            lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1])),
            lambda: resource.setrlimit(resource.RLIMIT_FSIZE, before),
        )
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@contextmanager
def no_space():
    """Refuse every file that grows. Over before the test ends: what the runner prints may go to a file, too."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


async def test_on_a_full_disk_the_agent_still_starts_with_what_is_there(crashed, tmp_path):
    directory = lay_out(tmp_path / "state", {"": crashed["closed"]})
    with no_space():
        store = await SqliteStore.open(directory)
        loaded = await store.load(GOALS)
        report_status(store, 1, 3)
        await store.durable()
        state = store.state
        await store.close()
        hints = []
        for _ in range(2):  # the first leaves no lock behind
            with pytest.raises(StoreError) as refused:
                await SqliteStore.open(tmp_path / "new")
            hints.append(refused.value.hint)
    assert loaded.views == known(2).views
    assert state == "degraded"
    assert all(hints)


async def test_fault_43_a_full_disk_is_reported_and_loses_nothing(tmp_path, quick_retry):
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = shutil.which("mount")
    if os.geteuid() or not mount or subprocess.run([mount, "-t", "tmpfs", "-o", "size=4m", "none", disk]).returncode:
        pytest.skip("mounting a tmpfs takes root; the test above refuses writes in another way")
    ballast = disk / "ballast"
    try:

        def fill() -> None:
            free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_bsize
            ballast.write_bytes(b"x" * (free - 200_000))

        await check_refusal(disk / "state", tmp_path / "copied", fill, ballast.unlink)
    finally:
        subprocess.run(["umount", "--lazy", disk], check=True)
