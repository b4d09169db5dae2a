"""A downgrade: rows with words that only a newer version knows are left out, and never end the agent."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from crsyncer.adapters.store import codec
from crsyncer.adapters.store.rows import COLUMNS
from crsyncer.adapters.store.store import SqliteStore
from crsyncer.core.model import Key, Side
from tests.adapters.store_kit import GOALS, cursor, view

KEY = Key("ns", "new")
FUTURE = "of-a-newer-version"


def plant(directory: Path, part: str, name: str, *values: object) -> None:
    """Write one row as a newer version may have."""
    place = part, GOALS, KEY.namespace, name
    text = codec.seal(json.dumps(values), place)
    with closing(sqlite3.connect(directory / "state.db", isolation_level=None)) as connection:
        if part in COLUMNS:
            insert = f"INSERT INTO objects (resource, namespace, name, {part}) VALUES (?, ?, ?, ?)"
            connection.execute(insert, (*place[1:], text))
        else:
            connection.execute(f"INSERT INTO {part} VALUES (?, ?, ?, ?)", (*place[1:], codec.pack(text)))


@pytest.mark.parametrize(
    ("part", "name", "values"),
    [
        ("cloud", "new", ["u", "1", 1, False, "c", "s", True, False, None, *[FUTURE] * 20]),
        ("record", "new", [FUTURE] * 30),
        ("outbox", "new", [1, "u", "d", {}, 1.0, *[FUTURE] * 30]),
        ("outbox", "finalizer/new", ["u", "f", FUTURE]),
        ("outbox", f"{FUTURE}/new", [FUTURE]),
        ("tombstones", "new", ["u", 1.0, *[FUTURE] * 30]),
        ("cursors", FUTURE, ["i", "/p", "f", "7"]),
    ],
)
async def test_S6_5_a_row_of_a_newer_version_is_left_out(tmp_path: Path, part: str, name: str, values: list) -> None:
    store = await SqliteStore.open(tmp_path)
    for side in Side:
        store.put_cursor(side, GOALS, "ns", cursor(5))
    await store.close()
    plant(tmp_path, part, name, *values)
    store = await SqliteStore.open(tmp_path)
    loaded = await store.load(GOALS)
    lost = part == "cloud"  # what is not known there is listed anew
    assert set(loaded.cursors) == {(side, "ns") for side in Side if not (lost and side is Side.CLOUD)}
    assert not any((*loaded.views.values(), loaded.records, loaded.pending, loaded.finalizers, loaded.tombstones))
    assert len(store.notes) == 1
    await store.close()


async def test_S6_5_a_deletion_that_a_newer_version_holds_stays_held(tmp_path: Path) -> None:
    await (await SqliteStore.open(tmp_path)).close()
    plant(tmp_path, "tombstones", "new", "u", 1.0, FUTURE, False, "h7", 2.0)
    store = await SqliteStore.open(tmp_path)
    tombstone = (await store.load(GOALS)).tombstones[KEY]
    assert (tombstone.held, tombstone.hold_id, tombstone.verified) == ("MassDeletion", "h7", False)
    await store.close()


async def test_S6_5_a_value_of_a_newer_version_hides_no_other(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path)
    store.put_meta("known", 1)
    store.put_copy(Side.CLOUD, GOALS, KEY, view(1), {"metadata": {"name": "new"}})
    await store.close()
    plant(tmp_path, "outbox", f"{FUTURE}/new", FUTURE)
    store = await SqliteStore.open(tmp_path)
    assert (store.get_meta("known"), set((await store.load(GOALS)).views[Side.CLOUD])) == (1, {KEY})
    await store.close()
