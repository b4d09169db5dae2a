"""The store and files that are broken, foreign, of another version or held by another program (faults 45, 47)."""

import json
import random
import sqlite3
import stat
from contextlib import closing
from dataclasses import replace

import pytest

from crsyncer.adapters.store import codec, database, schema
from crsyncer.adapters.store.statedir import Files
from crsyncer.adapters.store.store import SqliteStore
from crsyncer.core.content.annotations import SHARED
from crsyncer.core.content.replica_mark import REPLICA, SOURCE
from crsyncer.core.model import Json, Key, Loaded, ReplicaMark, Side, Tombstone
from crsyncer.errors import StoreError
from tests.adapters.store_kit import (
    COMPANIONS,
    GOALS,
    add_a_column,
    body,
    break_bodies,
    crash,
    cursor,
    key,
    known,
    lay_out,
    pending,
    report_status,
    view,
)


@pytest.fixture
async def crashed(tmp_path):
    return await crash(tmp_path / "original")


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


@pytest.mark.fault_45
async def test_fault_45_a_broken_database_is_used_whole_or_set_aside_whole(tmp_path, crashed):
    states = {"ok": 0, "rebuilt": 0}
    for seed in range(98):
        files = damage(crashed, seed)
        directory = lay_out(tmp_path / str(seed), files)
        store = await SqliteStore.open(directory)
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
                aside = directory / f"state.db.broken-1{suffix}"
                if suffix or "-wal" not in files:  # SQLite may have folded what is good of the WAL into the other
                    assert aside.read_bytes() == content
        report_status(store, 1, 9)
        await store.close()
    assert min(states.values()) > 15


@pytest.mark.fault_45
async def test_fault_45_what_is_readable_of_a_broken_database_is_saved(tmp_path, crashed):
    directory = lay_out(tmp_path / "state", {"": crashed["closed"]})
    break_bodies(directory / "state.db")
    store = await SqliteStore.open(directory)
    loaded = await store.load(GOALS)
    assert loaded.pending == {key(number): pending(number, 2) for number in range(12)}
    assert loaded.tombstones == {key(99): Tombstone("u", 1.0)}
    assert len(loaded.records) == 12
    assert (loaded.views, loaded.cursors) == (Loaded().views, {})
    assert store.state == "rebuilt"
    assert "12 outbox" in store.notes[1]
    await store.close()


@pytest.mark.fault_47
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


@pytest.mark.fault_45
async def test_a_wal_without_its_database_is_set_aside(tmp_path, crashed):
    directory = lay_out(tmp_path / "state", {"-wal": crashed["-wal"]})
    store = await SqliteStore.open(directory)
    assert store.state == "rebuilt"
    assert [path.name[-4:] for path in directory.glob("*.broken-*")] == ["-wal"]
    await store.close()


@pytest.mark.fault_45
@pytest.mark.parametrize("what", ["nothing", "text", "another program's database"])
async def test_S6_5_what_is_not_ours_is_set_aside_whoever_may_read_it(tmp_path, crashed, what):
    """Ours is refused when others may read it; somebody else's file has nothing of ours to hide."""
    directory = lay_out(tmp_path / "state", {"-wal": crashed["-wal"]})
    path = directory / "state.db"
    if what == "another program's database":
        with closing(sqlite3.connect(path)) as other:
            other.execute("CREATE TABLE goals (name)")
    else:
        path.write_text("" if what == "nothing" else "no database\n" * 500)
    for found in directory.iterdir():
        found.chmod(0o644)
    store = await SqliteStore.open(directory)
    assert store.state == "rebuilt"
    report_status(store, 1, 1)
    await store.durable()
    assert list(directory.glob("*.broken-*"))
    assert {stat.S_IMODE(file.stat().st_mode) for file in directory.iterdir()} == {0o600}
    await store.close()


@pytest.mark.fault_45
async def test_a_directory_in_the_place_of_the_database_is_refused_with_the_remedy(tmp_path):
    (tmp_path / "state" / "state.db").mkdir(parents=True)
    with pytest.raises(StoreError, match="not a regular file") as refused:
        await SqliteStore.open(tmp_path / "state")
    assert "move it away" in refused.value.hint
    assert not list((tmp_path / "state").glob("*.broken-*"))


async def test_broken_databases_do_not_pile_up(tmp_path):
    for _ in range(5):
        directory = tmp_path / "state"
        directory.mkdir(exist_ok=True)
        for suffix in COMPANIONS:
            (directory / f"state.db{suffix}").write_bytes(b"x" * 5000)
            (directory / f"state.db{suffix}").chmod(0o600)
        store = await SqliteStore.open(directory)
        await store.close()
    names = sorted(path.name for path in directory.glob("*.broken-*"))
    assert names == [f"state.db.broken-{number}{suffix}" for number in (3, 4, 5) for suffix in COMPANIONS]


async def test_S6_5_what_was_set_aside_is_read_before_anything_is_pruned_whatever_the_clock_says(tmp_path, crashed):
    directory = lay_out(tmp_path / "state", {"": crashed["closed"]})
    for number in (7, 8, 9):
        (directory / f"state.db.broken-{number}").write_bytes(b"x")
    break_bodies(directory / "state.db")
    store = await SqliteStore.open(directory)
    assert len((await store.load(GOALS)).pending) == 12
    names = sorted(path.name for path in directory.glob("*.broken-*"))
    assert names == ["state.db.broken-10", "state.db.broken-8", "state.db.broken-9"]
    await store.close()


@pytest.mark.fault_45
@pytest.mark.parametrize("moved", [0, 1, 2], ids=["nothing", "main file", "both files"])
async def test_S6_5_a_rebuild_that_was_cut_off_is_carried_on_at_the_next_start(tmp_path, crashed, moved):
    """The new database is complete before the first file of the old one is renamed."""
    complete = lay_out(tmp_path / "complete", {"": crashed["closed"]})
    directory = lay_out(tmp_path / "state", {"": b"broken" * 1000, "-wal": b"broken"})
    (directory / "state.db.new").write_bytes((complete / "state.db").read_bytes())
    for suffix in COMPANIONS[:moved]:
        (directory / f"state.db{suffix}").rename(directory / f"state.db.broken-1{suffix}")
    store = await SqliteStore.open(directory)
    assert (store.state, len((await store.load(GOALS)).pending)) == (("rebuilt", 0) if not moved else ("ok", 12))
    await store.close()
    assert not list(directory.glob("state.db.new*"))
    assert {path.read_bytes()[:6] for path in directory.glob("state.db.broken-*")} == {b"broken"}


@pytest.mark.fault_47
async def test_a_table_that_is_not_ours_and_changes_with_a_library_costs_nothing(tmp_path, crashed):
    directory = lay_out(tmp_path / "state", {"": crashed["closed"]})
    with closing(sqlite3.connect(directory / "state.db", isolation_level=None)) as changed:
        changed.execute("CREATE TABLE IF NOT EXISTS _sqlite_migrations (id INTEGER)")
        changed.execute("ALTER TABLE _sqlite_migrations ADD COLUMN note TEXT")
    for _ in range(2):
        store = await SqliteStore.open(directory)
        assert (store.state, store.notes) == ("ok", [])
        assert (await store.load(GOALS)).cursors == known(2).cursors
        await store.close()


async def test_a_database_that_another_program_holds_open_is_not_taken_for_broken(tmp_path, crashed, monkeypatch):
    monkeypatch.setattr(database, "_PATIENCE_SECONDS", 0.01)
    directory = lay_out(tmp_path / "state", {"": crashed["closed"]})
    with closing(sqlite3.connect(directory / "state.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="locked") as refused:
            database.open_database(Files(directory / "state.db"))
        assert refused.value.hint
    assert not list(directory.glob("*.broken-*"))


@pytest.mark.fault_47
async def test_fault_47_an_older_database_is_migrated_step_by_step(tmp_path, crashed, monkeypatch):
    def failing(connection):
        connection.execute("DROP TABLE cursors")
        raise sqlite3.OperationalError("no such thing")

    directory = lay_out(tmp_path / "state", {"": crashed["closed"]})
    with closing(sqlite3.connect(directory / "state.db", isolation_level=None)) as damaged:
        damaged.execute("UPDATE objects SET robot = 'x' || robot WHERE name = 'goal-3'")
    schemas = len(schema.STEPS)
    monkeypatch.setattr(schema, "STEPS", (*schema.STEPS, add_a_column))
    store = await SqliteStore.open(directory)
    assert (store.state, store.notes) == ("ok", [f"state.db was migrated from schema {schemas} to {schemas + 1}"])
    loaded, expected = await store.load(GOALS), known(2)
    assert loaded.views[Side.CLOUD] == expected.views[Side.CLOUD]
    assert loaded.cursors == {(Side.CLOUD, ""): cursor(2)}  # what was damaged stays damaged, and is listed anew
    del expected.views[Side.ROBOT][key(3)]
    assert loaded.views[Side.ROBOT] == expected.views[Side.ROBOT]
    assert await store.body(Side.ROBOT, GOALS, key(1)) == body(1, 2)
    await store.close()
    monkeypatch.setattr(schema, "STEPS", (*schema.STEPS, failing))
    with closing(sqlite3.connect(directory / "state.db")) as connection:
        with pytest.raises(sqlite3.OperationalError, match="no such thing"):
            schema.migrate(connection)
        assert schema.pragma(connection, "user_version") == schemas + 1
        assert connection.execute("SELECT note FROM cursors").fetchall() == [(None,)] * 2


MARKED = '{"stamp":"s","n":7,"source":"site/goal-1","placement":"placement-uid","labels":[],"annotations":[]}'


async def test_F9_5_what_an_older_version_knew_of_replicas_is_completed_from_their_bodies(tmp_path, monkeypatch):
    def cloud_body(number: int) -> Json:
        found = body(number, side=Side.CLOUD)
        found["metadata"]["namespace"] = "robot-robot-1"
        if number:
            found["metadata"]["labels"] |= {SOURCE: "0" * 24}
            found["metadata"]["annotations"] = {REPLICA: MARKED.replace("goal-1", f"goal-{number}")}
        return found

    monkeypatch.setattr(schema, "STEPS", schema.STEPS[:2])
    store = await SqliteStore.open(tmp_path / "state")
    keys = [Key("robot-robot-1", f"goal-{number}") for number in range(4)]
    for number, each in enumerate(keys):
        store.put_copy(Side.CLOUD, GOALS, each, view(number, side=Side.CLOUD), cloud_body(number))
    store.put_copy(Side.ROBOT, GOALS, keys[1], view(1), body(1))
    await store.close()
    monkeypatch.undo()
    with closing(sqlite3.connect(store.path)) as damaged:
        damaged.execute("UPDATE objects SET cloud = 'x' || cloud WHERE name = 'goal-2'")
        damaged.execute("UPDATE cloud_rest SET row = x'00' WHERE name = 'goal-3'")
        damaged.commit()
    store = await SqliteStore.open(tmp_path / "state")
    assert store.notes == [f"state.db was migrated from schema 2 to {len(schema.STEPS)}"]
    loaded = await store.load(GOALS)
    marks = {each.name: found.replica for each, found in loaded.views[Side.CLOUD].items()}
    assert marks == {"goal-0": None, "goal-1": ReplicaMark("placement-uid", 7), "goal-3": None}
    assert replace(loaded.views[Side.CLOUD][keys[1]], replica=None) == view(1, side=Side.CLOUD)
    assert loaded.views[Side.ROBOT] == {keys[1]: view(1)}
    await store.close()


async def test_F10_3_what_an_older_version_knew_of_shared_objects_is_completed_from_their_bodies(tmp_path, monkeypatch):
    monkeypatch.setattr(schema, "STEPS", schema.STEPS[:3])
    store = await SqliteStore.open(tmp_path / "state")
    for number in range(4):
        found = body(number, side=Side.CLOUD)
        found["metadata"]["annotations"] = {SHARED: "placement-uid"} if number % 2 else {"note": SHARED}
        store.put_copy(Side.CLOUD, GOALS, key(number), view(number, side=Side.CLOUD), found)
    await store.close()
    monkeypatch.undo()
    with closing(sqlite3.connect(store.path)) as damaged:
        damaged.execute(f"UPDATE objects SET cloud = 'x' || cloud WHERE name = '{key(3).name}'")
        damaged.commit()
    store = await SqliteStore.open(tmp_path / "state")
    views = (await store.load(GOALS)).views[Side.CLOUD]
    assert {each: found.shared for each, found in views.items()} == {key(0): False, key(1): True, key(2): False}
    assert replace(views[key(1)], shared=False) == view(1, side=Side.CLOUD)
    await store.close()


async def test_F9_5_what_is_known_of_an_object_without_the_fleets_marks_takes_no_byte_more():
    stored = codec.dump_object(view(1, side=Side.CLOUD), body(1), codec.object_places(Side.CLOUD, GOALS, key(1)))
    text = codec.unseal(*next((row, place) for place, row in stored.items() if row is not None))
    assert json.loads(text)[-1] is True, "has_status is the last field that is not as by default"
