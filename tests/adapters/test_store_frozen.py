"""A store that is opened while the disk refuses: it reads what is there, keeps the rest, and writes it later (S6.5)."""

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from crsyncer.adapters.store import schema
from crsyncer.adapters.store import store as store_module
from crsyncer.adapters.store.offline import read_offline
from crsyncer.adapters.store.statedir import Lock
from crsyncer.adapters.store.store import SqliteStore
from crsyncer.core.model import Loaded, Side
from crsyncer.errors import Locked, StoreError
from tests.adapters.nobody import as_nobody
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
)
from tests.mount import Mount, mounted
from tests.system.bed import eventually


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Mount]:
    with mounted(tmp_path / "disk") as disk:
        yield disk


@pytest.fixture(autouse=True)
def quick_retry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "RETRY_SECONDS", (0.05, 0.2))


async def left_behind(disk: Mount, tmp_path: Path, *names: str) -> Path:
    """A state directory on the disk with the files of an agent that died."""
    files = await crash(tmp_path / "original")
    return lay_out(disk.directory / "state", {name.removeprefix("closed"): files[name] for name in names})


async def troubled(store: SqliteStore, text: str) -> None:
    """Wait for what the store says."""

    async def says() -> bool:
        return text in (store.trouble or "")

    await eventually(says, what=f"the store says {text}")


async def recovered(store: SqliteStore) -> None:
    """Wait until everything is on disk."""

    async def well() -> bool:
        return store.trouble is None

    await eventually(well, what="the store has recovered")
    await store.durable()
    assert store.state == "ok"


async def loaded_again(directory: Path) -> Loaded:
    """What the next start finds."""
    store = await SqliteStore.open(directory)
    try:
        assert (store.state, store.notes) == ("ok", [])
        return await store.load(GOALS)
    finally:
        await store.close()


REFUSALS = [
    pytest.param(Mount.read_only, Mount.writable, id="read-only"),
    pytest.param(Mount.fill, Mount.make_room, id="full"),
]


@pytest.mark.fault_43
@pytest.mark.fault_44
@pytest.mark.parametrize(("refuse", "relent"), REFUSALS)
@pytest.mark.parametrize("files", [COMPANIONS, ("closed",)], ids=["killed", "stopped"])
async def test_S6_5_what_is_on_a_disk_that_refuses_is_read_and_what_is_new_is_written_later(
    disk: Mount,
    tmp_path: Path,
    files: tuple[str, ...],
    refuse: Callable[[Mount], None],
    relent: Callable[[Mount], None],
) -> None:
    directory = await left_behind(disk, tmp_path, *files)
    refuse(disk)
    assert read_offline(directory).kinds[GOALS].views == known(2).views  # without an agent, too
    heard: list[str | None] = []
    store = await SqliteStore.open(directory, on_trouble=heard.append)
    loaded = await store.load(GOALS)
    assert (loaded.views, loaded.cursors) == (known(2).views, known(2).cursors)
    assert loaded.pending == {key(number): pending(number, 2) for number in range(12)}
    assert key(99) in loaded.tombstones
    assert await store.body(Side.ROBOT, GOALS, key(7)) == body(7, 2)
    report_status(store, 1, 3)
    store.put_meta("mark", 1)
    await troubled(store, "cannot")
    assert (store.state, heard[0] is None) == ("degraded", False)
    assert (await store.load(GOALS)).cursors[Side.CLOUD, ""] == cursor(3)
    with pytest.raises(Locked):
        await SqliteStore.open(directory)
    relent(disk)
    await recovered(store)
    assert heard[-1] is None
    assert (directory / "lock").read_text() in (f"{os.getpid()}\n", "")  # nobody, where there was no room for it
    report_status(store, 2, 4)
    await store.close()
    found = await loaded_again(directory)
    assert found.cursors[Side.CLOUD, ""] == cursor(4)
    assert [found.views[Side.ROBOT][key(number)].resource_version for number in (1, 2, 3)] == ["3", "4", "2"]
    assert key(1) not in found.pending


@pytest.mark.fault_43
@pytest.mark.fault_44
@pytest.mark.parametrize(
    ("refuse", "relent"),
    [*REFUSALS, pytest.param(lambda disk: disk.fill(leave=16_384), Mount.make_room, id="nearly full")],
)
async def test_S6_5_where_nothing_was_ever_written_everything_is_kept_until_it_can_be(
    disk: Mount, refuse: Callable[[Mount], None], relent: Callable[[Mount], None]
) -> None:
    refuse(disk)
    store = await SqliteStore.open(disk.directory)
    report_status(store, 1, 1)
    await troubled(store, "cannot")
    assert await store.body(Side.ROBOT, GOALS, key(1)) == body(1, 1)
    with pytest.raises(Locked):
        Lock(disk.directory).peek()
    relent(disk)
    await recovered(store)
    await store.close()
    assert (await loaded_again(disk.directory)).cursors[Side.CLOUD, ""] == cursor(1)


@pytest.mark.fault_45
@pytest.mark.fault_47
@pytest.mark.parametrize("spoilt", ["older", "broken"])
async def test_S6_3_what_could_not_be_read_is_left_to_a_restart_with_the_statuses_that_wait(
    disk: Mount, tmp_path: Path, spoilt: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = await left_behind(disk, tmp_path, "closed")
    if spoilt == "broken":
        break_bodies(directory / "state.db")
    else:
        monkeypatch.setattr(schema, "STEPS", (*schema.STEPS, add_a_column))
    disk.read_only()
    store = await SqliteStore.open(directory)
    assert await store.load(GOALS) == Loaded()
    assert "cannot be used while the disk refuses" in store.notes[0]
    store.put_pending(GOALS, key(1), pending(1, 5))
    store.put_pending(GOALS, key(2), None)
    store.put_cursor(Side.CLOUD, GOALS, "", cursor(5))
    disk.writable()
    await troubled(store, "restart the agent")
    await store.close()
    found = read_offline(directory).kinds[GOALS]
    assert (found.pending[key(1)].seq, found.pending[key(3)].seq, key(2) in found.pending) == (5, 2, False)
    assert found.cursors.get((Side.CLOUD, "")) != cursor(5)  # it would run ahead of its data


@pytest.mark.fault_44
async def test_S6_2_a_database_that_was_exchanged_meanwhile_is_left_to_a_restart(disk: Mount, tmp_path: Path) -> None:
    directory = await left_behind(disk, tmp_path, "closed")
    disk.read_only()
    store = await SqliteStore.open(directory)
    report_status(store, 1, 3)
    store.put_pending(GOALS, key(3), pending(3, 3))
    assert await store.body(Side.ROBOT, GOALS, key(7)) == body(7, 2)
    another = lay_out(tmp_path / "another", {"": (directory / "state.db").read_bytes()})
    disk.cover(directory, another)
    await troubled(store, "restart the agent")
    assert await store.body(Side.ROBOT, GOALS, key(8)) == body(8, 2)
    with pytest.raises(Locked):
        await SqliteStore.open(another)
    await store.close()
    found = await loaded_again(another)
    assert (found.cursors, found.pending[key(3)]) == (known(2).cursors, pending(3, 3))


@pytest.mark.fault_43
async def test_S6_5_a_broken_database_without_room_for_another_keeps_what_waits_in_it(
    disk: Mount, tmp_path: Path
) -> None:
    directory = await left_behind(disk, tmp_path, "closed")
    break_bodies(directory / "state.db")
    disk.fill()
    for _ in range(2):
        store = await SqliteStore.open(directory)
        assert (store.state, len(store.notes)) == ("degraded", 1)
        await store.close()
    assert list(directory.glob("state.db.broken*")) == []
    disk.make_room()
    store = await SqliteStore.open(directory)
    assert store.state == "rebuilt"
    assert len((await store.load(GOALS)).pending) == 12
    await store.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else for a while")
async def test_a_directory_of_another_user_is_no_disk_that_refuses(tmp_path: Path) -> None:
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    (tmp_path / "file").touch()
    with as_nobody():
        with pytest.raises(StoreError) as refused:
            await SqliteStore.open(tmp_path)
        with pytest.raises(StoreError):
            await SqliteStore.open(tmp_path / "new")
    assert isinstance(refused.value.__cause__, OSError)
    assert refused.value.__cause__.errno == errno.EACCES
    with pytest.raises(StoreError):
        await SqliteStore.open(tmp_path / "file")
