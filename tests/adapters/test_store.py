"""The store on real files: what goes in comes out, in one piece, and after a restart too (S6)."""

import asyncio
import os
import random
import sqlite3
import stat
import time
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crsyncer.adapters.store import codec
from crsyncer.adapters.store import store as store_module
from crsyncer.adapters.store.offline import read_bodies, read_offline
from crsyncer.adapters.store.schema import STEPS
from crsyncer.adapters.store.statedir import Lock
from crsyncer.adapters.store.store import SqliteStore
from crsyncer.core.model import (
    Cursor,
    FinalizerRow,
    Key,
    Loaded,
    OwnStatus,
    Pending,
    Record,
    ReplicaMark,
    Side,
    Stamp,
    Tombstone,
    View,
)
from crsyncer.errors import Locked, StoreError
from tests.adapters.store_histories import KEYS, RESOURCES, Model, put
from tests.adapters.store_kit import GOALS, body, cursor, key, measure, pending, report_status, view

FULL_VIEW = View(
    "u", "17", 3, True, "c", "s", has_status=True, odd_status=True,
    stamp=Stamp("up", "robot-1", "d", ("a", "b"), ("c",)),
)  # fmt: skip
FULL_RECORD = Record(
    "u", "a", "b", "s", "9", "acc", had_status=True, seed=True, generations=((1, 2), (3, 4)),
    called=Key("default", "a"), own=OwnStatus("fleet", "u", "o", "7", "s"), returned=True,
)  # fmt: skip
FULL_PENDING = Pending(7, "u", "d", {"phase": ["DONE", 1.5, None, 2**70]}, 12.25, 3, 4, "refused", dead=True)


@pytest.fixture
async def store(tmp_path):
    store = await SqliteStore.open(tmp_path / "state")
    yield store
    await store.close()


async def reopened(store: SqliteStore) -> SqliteStore:
    await store.close()
    return await SqliteStore.open(store.path.parent)


def put_everything(store: SqliteStore) -> Loaded:
    loaded = Loaded()
    for side in Side:
        store.put_copy(side, GOALS, key(1), FULL_VIEW, body(1))
        loaded.views[side][key(1)] = FULL_VIEW
        store.put_cursor(side, GOALS, "ns", cursor(5))
        loaded.cursors[side, "ns"] = cursor(5)
    store.put_record(GOALS, key(1), FULL_RECORD)
    loaded.records[key(1)] = FULL_RECORD
    store.put_pending(GOALS, key(1), FULL_PENDING)
    loaded.pending[key(1)] = FULL_PENDING
    store.put_tombstone(GOALS, Key("", "x"), Tombstone("u", 1.5))
    loaded.tombstones[Key("", "x")] = Tombstone("u", 1.5)
    waiting = FinalizerRow(
        "u", "x/robot-r1", "cloud", since=2.5, attempts=1, error="no", overdue=True, place=("g", "v1", "goals")
    )
    for where in (key(1), Key("", "x")):
        store.put_finalizer(GOALS, where, waiting)
        loaded.finalizers[where] = waiting
    return loaded


async def test_what_is_put_is_read_before_and_after_the_commit_and_the_restart(store):
    expected = put_everything(store)
    store.put_meta("identity/cloud", {"a": [1]})
    waiting = Loaded(pending=expected.pending, finalizers=expected.finalizers)
    assert await store.load(GOALS) == expected
    assert await store.load(GOALS, only_outbox=True) == waiting
    await store.durable()
    assert await store.load(GOALS) == expected
    store = await reopened(store)
    assert await store.load(GOALS) == expected
    assert await store.load(GOALS, only_outbox=True) == waiting
    assert await store.load("others.lab.example.com") == Loaded()
    assert store.get_meta("identity/cloud") == {"a": [1]}
    assert store.get_meta("never") is None
    assert (store.state, store.notes, store.schema) == ("ok", [], len(STEPS))
    await store.close()


async def test_F9_5_the_marks_of_a_replica_can_be_read_by_name_after_a_restart(store):
    mark = ReplicaMark("placement-uid", 7)
    store.put_copy(Side.CLOUD, GOALS, key(1), replace(FULL_VIEW, replica=mark), body(1))
    store = await reopened(store)
    found = (await store.load(GOALS)).views[Side.CLOUD][key(1)].replica
    assert found is not None
    assert (found.placement, found.number) == mark
    await store.close()


async def test_a_body_comes_back_without_managed_fields_and_with_its_order_of_keys(store):
    raw: dict[str, Any] = {
        "kind": "Goal",
        "status": {"b": "\ud800 ü", "a": 2**60 + 1},
        "metadata": {"resourceVersion": "5", "managedFields": [{}], "name": "goal-1"},
        "spec": {"z": 1.0, "y": None},
    }
    store.put_copy(Side.ROBOT, GOALS, key(1), FULL_VIEW, raw)
    del raw["metadata"]["managedFields"]
    expected = repr(raw)
    assert repr(await store.body(Side.ROBOT, GOALS, key(1))) == expected
    raw["status"]["a"] = 1  # the store took its copy when it was put
    await store.durable()
    store = await reopened(store)
    assert repr(await store.body(Side.ROBOT, GOALS, key(1))) == expected
    assert repr(await store.body(Side.ROBOT, GOALS, key(1))) == expected
    assert await store.body(Side.CLOUD, GOALS, key(1)) is None
    await store.close()


@pytest.mark.parametrize("status", [{}, {"status": None}, {"status": {}}, {"status": "odd"}])
async def test_a_missing_status_and_an_empty_one_stay_different(store, status):
    raw = {"metadata": {"name": "a"}} | status
    store.put_copy(Side.CLOUD, GOALS, key(1), FULL_VIEW, raw)
    await store.durable()
    store = await reopened(store)
    assert await store.body(Side.CLOUD, GOALS, key(1)) == raw
    await store.close()


@pytest.mark.parametrize("before", [True, False])
async def test_a_status_change_does_not_write_the_rest_of_the_body_again(store, before):
    def put(version: int) -> None:
        large = body(1, version)
        if version == 1 and not before:
            del large["status"]  # the next one is the first
        large["spec"]["random"] = random.Random(1).randbytes(100_000).hex()
        store.put_copy(Side.ROBOT, GOALS, key(1), view(1, version), large)

    put(1)
    store = await reopened(store)
    put(2)
    await store.durable()
    assert store.path.with_name("state.db-wal").stat().st_size < 50_000
    assert (await store.body(Side.ROBOT, GOALS, key(1)))["status"] == body(1, 2)["status"]
    await store.close()


async def test_a_body_that_is_damaged_on_disk_is_none_and_heals_with_the_next_event(store):
    report_status(store, 1, 1)
    await store.close()
    with closing(sqlite3.connect(store.path, isolation_level=None)) as database:
        database.execute("UPDATE robot_rest SET row = ''")
    store = await SqliteStore.open(store.path.parent)
    assert await store.body(Side.ROBOT, GOALS, key(1)) is None
    report_status(store, 1, 2)
    store = await reopened(store)
    assert await store.body(Side.ROBOT, GOALS, key(1)) == body(1, 2)
    await store.close()


async def test_what_is_put_is_on_disk_in_a_quarter_second_without_being_asked(tmp_path):
    seconds: list[float] = []
    store = await SqliteStore.open(tmp_path / "state", on_commit=seconds.append)
    for version in range(100):
        report_status(store, 1, version)
    begin = time.monotonic()
    while store.commits == 0:
        assert time.monotonic() - begin < 30
        await asyncio.sleep(0.005)
    await store.durable()
    assert 1 <= store.commits == len(seconds) < 100  # in groups
    await store.close()


async def test_of_several_rows_for_an_object_the_newest_is_kept_and_an_early_ack_leaves_none(store):
    store.put_pending(GOALS, key(1), pending(1, 1))
    store.put_pending(GOALS, key(1), pending(1, 2))
    store.put_pending(GOALS, key(2), pending(2, 1))
    store.put_pending(GOALS, key(2), None)
    await store.durable()
    assert (await store.load(GOALS)).pending == {key(1): pending(1, 2)}
    store.put_pending(GOALS, key(1), None)
    store.put_pending(GOALS, key(1), pending(1, 3))
    await store.durable()
    assert (await store.load(GOALS)).pending == {key(1): pending(1, 3)}


@pytest.mark.parametrize("keep_outbox", [True, False])
@pytest.mark.parametrize("committed", [True, False])
async def test_a_forgotten_kind_leaves_nothing_but_its_outbox(store, keep_outbox, committed):
    finalizers = put_everything(store).finalizers
    store.put_meta("m", 1)
    if committed:
        await store.durable()
    store.forget_kind(GOALS, keep_outbox=keep_outbox)
    expected = Loaded(pending={key(1): FULL_PENDING}, finalizers=finalizers) if keep_outbox else Loaded()
    assert await store.load(GOALS) == expected
    assert await store.body(Side.ROBOT, GOALS, key(1)) is None
    store.put_record(GOALS, key(2), FULL_RECORD)
    expected.records[key(2)] = FULL_RECORD
    await store.durable()
    assert await store.body(Side.ROBOT, GOALS, key(1)) is None
    store = await reopened(store)
    assert await store.load(GOALS) == expected
    assert store.get_meta("m") == 1
    await store.close()
    with closing(sqlite3.connect(store.path, isolation_level=None)) as database:
        assert database.execute("SELECT count(*) FROM robot_rest").fetchone() == (0,)


async def test_a_kind_forgotten_with_its_outbox_and_again_without_has_lost_it(store):
    put_everything(store)
    await store.durable()
    store.forget_kind(GOALS, keep_outbox=False)
    store.forget_kind(GOALS)
    assert await store.load(GOALS) == Loaded()
    store = await reopened(store)
    assert await store.load(GOALS) == Loaded()
    await store.close()


async def test_an_object_that_is_dropped_on_both_sides_leaves_no_row(store):
    report_status(store, 1, 1)
    await store.durable()
    store.put_record(GOALS, key(1), None)
    for side in Side:
        store.drop_copy(side, GOALS, key(1))
        await store.durable()
    await store.close()
    with closing(sqlite3.connect(store.path)) as database:
        for table in ("objects", "cloud_rest", "robot_rest", "outbox"):
            assert database.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)


NAMES, KINDS = st.sampled_from(KEYS), st.sampled_from(RESOURCES)
SIDES, NUMBERS = st.sampled_from(list(Side)), st.integers(0, 3)
OPERATIONS = st.one_of(
    st.tuples(st.just("copy"), SIDES, KINDS, NAMES, NUMBERS),
    st.tuples(st.just("drop"), SIDES, KINDS, NAMES),
    st.tuples(st.just("cursor"), SIDES, KINDS, NUMBERS | st.none()),
    st.tuples(st.just("record"), KINDS, NAMES, NUMBERS | st.none()),
    st.tuples(st.just("pending"), KINDS, NAMES, NUMBERS | st.none()),
    st.tuples(st.just("tombstone"), KINDS, NAMES, NUMBERS | st.none()),
    st.tuples(st.just("forget"), KINDS, st.booleans()),
    st.tuples(st.sampled_from(["durable", "reopen", "check"])),
    st.tuples(st.just("check")),
)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(OPERATIONS, max_size=40))
async def test_any_history_reads_like_a_dictionary(tmp_path_factory, operations):
    store = await SqliteStore.open(tmp_path_factory.mktemp("state"))
    model = Model()
    for operation in [*operations, ("check",)]:
        match operation:
            case ("durable",):
                await store.durable()
            case ("reopen",):
                store = await reopened(store)
            case ("check",):
                assert await model.is_in(store)
            case _:
                put(store, operation)
                model.put(operation)
    await store.close()


async def test_a_cancelled_wait_cancels_no_commit(store):
    report_status(store, 1, 1)
    waits = [asyncio.ensure_future(store.durable()) for _ in range(3)]
    await asyncio.sleep(0)
    waits[0].cancel()
    await asyncio.gather(*waits[1:])
    assert store.commits == 1


async def test_a_closed_store_ignores_puts_and_says_so_when_read(store):
    await store.close()
    report_status(store, 1, 1)
    await store.durable()
    with pytest.raises(StoreError, match="closed"):
        await store.load(GOALS)
    await store.close()


async def test_a_second_owner_is_refused_with_the_pid_of_the_first(store):
    with pytest.raises(Locked) as refused:
        await SqliteStore.open(store.path.parent)
    assert refused.value.pid == os.getpid()
    assert refused.value.hint
    with pytest.raises(Locked):
        read_offline(store.path.parent)
    await store.close()
    lock = Lock(store.path.parent)
    lock.acquire()
    lock.release()
    lock.release()


async def test_only_the_owner_may_read_what_is_stored(store):
    report_status(store, 1, 1)
    await store.durable()
    directory = store.path.parent
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in directory.iterdir()}
    assert {"state.db", "state.db-wal", "lock"} <= set(modes)
    assert set(modes.values()) == {0o600}


@pytest.mark.parametrize("name", ["", "state.db", "state.db-wal", "lock"])
async def test_symlinks_are_refused(tmp_path, name):
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    state = tmp_path / "state"
    if name:
        state.mkdir(mode=0o700)
    (state / name if name else state).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError):
        await SqliteStore.open(state)


async def test_without_an_agent_the_disk_tells_what_waits(store):
    everything = put_everything(store)
    store.put_pending("b.c", key(2), pending(2, 1))
    store.put_meta("robot", "robot-1")
    await store.close()
    before = {path.name: path.stat().st_mtime_ns for path in store.path.parent.iterdir()}
    state = read_offline(store.path.parent)
    assert (state.meta, state.schema, state.path, state.bytes) == (
        {"robot": "robot-1"},
        len(STEPS),
        store.path,
        store.bytes,
    )
    assert state.kinds == {GOALS: everything, "b.c": Loaded(pending={key(2): pending(2, 1)})}
    assert read_bodies(store.path.parent, GOALS, key(1)) == {side: body(1) for side in Side}
    assert read_bodies(store.path.parent, GOALS, key(2)) == {}
    assert {path.name: path.stat().st_mtime_ns for path in store.path.parent.iterdir()} == before


@pytest.mark.parametrize("damaged", ["x'ff62'", "x'62'", "NULL"])
async def test_without_an_agent_a_kind_whose_name_is_damaged_hides_no_other(store, damaged):
    everything = put_everything(store)
    await store.close()
    with closing(sqlite3.connect(store.path, isolation_level=None)) as database:
        name = f"CAST({damaged} AS TEXT)" if damaged == "x'ff62'" else damaged
        database.execute(f"INSERT INTO outbox SELECT {name}, namespace, name, row FROM outbox")
    assert read_offline(store.path.parent).kinds == {GOALS: everything}


def test_without_state_the_offline_door_says_that_there_is_none(tmp_path):
    for directory in (tmp_path, tmp_path / "missing"):
        with pytest.raises(StoreError, match="no state"):
            read_offline(directory)
    assert list(tmp_path.iterdir()) == []


@given(st.text(), st.tuples(st.text(), st.text(), st.text(), st.text()))
def test_a_seal_fits_only_its_text_and_its_place(text, place):
    sealed = codec.seal(text, place)
    assert codec.unseal(sealed, place) == text
    for damaged, where in ((sealed + "0", place), ("x" + sealed, place), (sealed, ("x" + place[0], *place[1:]))):
        with pytest.raises(ValueError):
            codec.unseal(damaged, where)


def test_a_field_added_at_the_end_of_a_dataclass_needs_no_migration():
    assert codec.load(Cursor, '["i","p","s","9"]', {}) == Cursor("i", "p", "s", "9")
    assert codec.load(Pending, '[1,"u","d",null,2.5]', {}) == Pending(1, "u", "d", None, 2.5)


async def test_the_cost_of_a_status_change_can_be_measured(tmp_path, monkeypatch):
    monkeypatch.setattr(store_module, "GROUP_SECONDS", 3600.0)  # only the commits that are asked for
    measured = await measure(tmp_path / "state", objects=200, changes=300, clock=time.perf_counter)
    assert measured.written_bytes <= 6 << 10
    assert measured.stored_bytes <= 10_000
