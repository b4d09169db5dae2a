"""The state directory: whose files are in it, who holds it, and what happens when it cannot even be looked at."""

import errno
import fcntl
import json
import os
import stat
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from crsyncer.adapters.store.offline import read_offline, reading
from crsyncer.adapters.store.statedir import Lock
from crsyncer.adapters.store.store import SqliteStore
from crsyncer.core.model import Side
from crsyncer.errors import Locked, StoreError
from tests.adapters.nobody import as_nobody
from tests.adapters.store_kit import GOALS, crash, cursor, known, lay_out, report_status
from tests.disk import Disk
from tests.mount import mounted

ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
NOBODY = 65534


async def used(directory: Path) -> Path:
    """A state directory that an agent has used."""
    store = await SqliteStore.open(directory)
    report_status(store, 1, 1)
    await store.close()
    return directory


def widen(directory: Path) -> None:
    """What the kubelet does to a volume with `fsGroup`: the group may read and write everything."""
    directory.chmod(0o2770)
    for file in directory.iterdir():
        file.chmod(0o660)


def modes(directory: Path) -> set[int]:
    return {stat.S_IMODE(file.stat().st_mode) for file in directory.iterdir()}


async def test_files_of_ours_that_others_may_read_are_put_right_and_used(tmp_path: Path) -> None:
    directory = lay_out(tmp_path / "state", {"": (await crash(tmp_path / "original"))["closed"]})
    (directory / "lock").touch()
    widen(directory)
    store = await SqliteStore.open(directory)
    assert (store.state, store.notes) == ("ok", [])
    assert (await store.load(GOALS)).views == known(2).views
    assert modes(directory) == {0o600}
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    await store.close()


@ROOT_ONLY
@pytest.mark.parametrize("name", ["", "state.db", "lock"])
async def test_what_belongs_to_somebody_else_is_refused_with_its_owner_and_the_remedy(
    tmp_path: Path, name: str
) -> None:
    directory = await used(tmp_path / "state")
    os.chown(directory / name, NOBODY, NOBODY)
    with pytest.raises(StoreError, match=f"belongs to .*{NOBODY}") as refused:
        await SqliteStore.open(directory)
    assert "\n" not in str(refused.value)
    assert "chown" in refused.value.hint


@ROOT_ONLY
async def test_a_volume_that_belongs_to_root_is_used_by_a_user_who_may_write_to_it(tmp_path: Path) -> None:
    for folder in (tmp_path, *tmp_path.parents):
        if not folder.stat().st_mode & stat.S_IXOTH:
            folder.chmod(0o755)
    directory = tmp_path / "volume"
    directory.mkdir()
    directory.chmod(0o777)
    with as_nobody():
        await used(directory)
    assert modes(directory) == {0o600}


@pytest.mark.parametrize(("mode", "refused"), [(0o755, False), (0o1777, True)])
async def test_the_mode_of_a_directory_that_holds_more_than_the_state_is_left_alone(
    tmp_path: Path, mode: int, refused: bool
) -> None:
    (tmp_path / "somebody").touch()
    tmp_path.chmod(mode)
    if refused:
        with pytest.raises(StoreError, match="others may write"):
            await SqliteStore.open(tmp_path)
    else:
        await used(tmp_path)
    assert stat.S_IMODE(tmp_path.stat().st_mode) == mode


@pytest.mark.fault_44
async def test_S6_5_modes_that_a_read_only_disk_does_not_let_us_put_right_are_put_right_later(tmp_path: Path) -> None:
    with mounted(tmp_path / "disk") as disk:
        directory = await used(disk.directory / "state")
        widen(directory)
        disk.read_only()
        store = await SqliteStore.open(directory)
        assert len((await store.load(GOALS)).views[Side.ROBOT]) == 1
        disk.writable()
        await store.close()
        assert modes(directory) == {0o600}


async def test_a_reader_does_not_keep_an_agent_from_starting_nor_another_reader_from_reading(tmp_path: Path) -> None:
    directory = await used(tmp_path / "state")
    with ExitStack() as readers:
        readers.enter_context(reading(directory))
        assert len(read_offline(directory).kinds[GOALS].views[Side.ROBOT]) == 1
        store = await SqliteStore.open(directory)
        report_status(store, 1, 2)
        await store.durable()
        with pytest.raises(Locked):  # what was read meanwhile may be of no state that ever was
            readers.close()
    await store.close()
    assert read_offline(directory).kinds[GOALS].cursors[Side.ROBOT, ""] == cursor(2)


async def test_a_reader_that_ends_after_an_agent_has_started_takes_nothing_from_it(tmp_path: Path) -> None:
    files = await crash(tmp_path / "original")
    directory = lay_out(tmp_path / "state", {"": files[""], "-wal": b"no log at all" * 100})
    with ExitStack() as readers:
        readers.enter_context(reading(directory))
        store = await SqliteStore.open(directory)
        report_status(store, 1, 3)
        await store.durable()
        with pytest.raises(Locked):
            readers.close()
        assert (directory / "state.db-wal").stat().st_size > 0
    await store.close()


async def test_the_pid_that_is_named_is_not_one_that_has_ended(tmp_path: Path) -> None:
    directory = await used(tmp_path / "state")
    ended = subprocess.Popen(["true"])
    ended.wait()
    (directory / "lock").write_text(f"{ended.pid}\n")
    with (directory / "lock").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(Locked, match="unknown") as refused:
            Lock(directory).acquire()
    assert refused.value.pid == 0


LOOKING = """
import asyncio, json, sys
from pathlib import Path
from crsyncer.adapters.store.store import SqliteStore
from tests.adapters.store_kit import report_status

async def main():
    store = await SqliteStore.open(Path(sys.argv[1]))
    for version, _ in enumerate(sys.stdin, 1):
        report_status(store, 1, version)
        await store.durable()
        print(json.dumps([store.state, store.trouble, store.bytes > 0]), flush=True)
    await store.close()

asyncio.run(main())
"""


@pytest.mark.fault_44
def test_S6_5_a_directory_that_cannot_be_looked_at_is_reported_and_syncing_goes_on(disk: Disk) -> None:
    command = [*disk.wrapper, sys.executable, "-c", LOOKING, str(disk.directory / "state")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin
        assert process.stdout

        def step() -> list[object]:
            assert process.stdin
            assert process.stdout
            process.stdin.write("\n")
            process.stdin.flush()
            found: list[object] = json.loads(process.stdout.readline())
            return found

        assert step() == ["ok", None, True]
        disk.fail(errno.EIO, "look")
        state, trouble, known_bytes = step()
        assert (state, known_bytes) == ("degraded", True)
        assert "Input/output error" in str(trouble)
        disk.heal()
        while step() != ["ok", None, True]:
            pass
        process.stdin.close()
        assert process.wait() == 0


@pytest.mark.fault_44
def test_S6_5_a_directory_that_cannot_be_looked_at_from_the_start_is_no_reason_not_to_sync(
    disk: Disk, tmp_path: Path
) -> None:
    (disk.directory / "state").mkdir(mode=0o700)
    disk.fail(errno.EIO, "look")
    command = [*disk.wrapper, sys.executable, "-c", LOOKING, str(disk.directory / "state")]
    done = subprocess.run(command, input="\n", stdout=subprocess.PIPE, text=True, check=True)
    assert json.loads(done.stdout)[0] == "degraded"
