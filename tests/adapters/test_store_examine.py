"""What the doctor finds of the state directory and its disk, without touching either."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from crsyncer.adapters.store.offline import look_at_disk, look_at_store
from crsyncer.adapters.store.statedir import Lock
from crsyncer.adapters.store.store import SqliteStore
from crsyncer.errors import Locked
from tests.adapters.store_kit import report_status
from tests.mount import mounted

SHM = Path("/dev/shm")


def test_a_directory_that_is_not_there_yet_is_judged_by_where_it_will_be(tmp_path: Path) -> None:
    facts = look_at_disk(tmp_path / "not" / "there")
    assert (facts.path, facts.writable, facts.objection) == (str(tmp_path), True, "")
    assert facts.kind
    assert look_at_store(tmp_path / "not" / "there").state == "missing"
    assert list(tmp_path.iterdir()) == []


def test_the_free_bytes_are_those_that_still_fit(tmp_path: Path) -> None:
    """On a disk that nobody else writes to: on a shared one they change between two looks."""
    with mounted(tmp_path / "disk") as disk:
        assert look_at_disk(disk.directory).free == disk.free > 0
        disk.fill()
        assert look_at_disk(disk.directory).free == 0


@pytest.mark.skipif(not os.path.ismount(SHM), reason="no /dev/shm here, the one tmpfs that needs no mount")
def test_the_file_system_is_the_innermost_one() -> None:
    assert look_at_disk(SHM / "crsyncer-is-not-there").kind == "tmpfs"


async def test_what_the_agent_would_refuse_is_said_with_its_hint(tmp_path: Path) -> None:
    await (await SqliteStore.open(tmp_path / "real")).close()
    (tmp_path / "link").symlink_to("real")
    facts = look_at_disk(tmp_path / "link")
    assert "is a symlink" in facts.objection
    assert facts.remedy
    (tmp_path / "real" / "state.db").chmod(0o644)
    assert "may be read by others" in look_at_disk(tmp_path / "real").objection


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="takes root, to give up one of its rights")
def test_root_that_may_not_look_is_told_so(tmp_path: Path) -> None:
    """Such as root in a container without capabilities, and the state of another user."""
    (state := tmp_path / "state").mkdir(mode=0o700)
    os.chown(state, 65534, 65534)
    look = "import sys; from pathlib import Path; from crsyncer.adapters.store.offline import look_at_disk"
    look += "; print(look_at_disk(Path(sys.argv[1])).objection)"
    fewer = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search", "--inh-caps", "-all")
    done = subprocess.run([*fewer, sys.executable, "-c", look, str(state)], capture_output=True, text=True, check=False)
    assert "Permission denied" in done.stdout, done.stderr


async def test_a_sound_store_a_used_one_and_broken_ones_are_told_apart(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path)
    for number in range(20):
        report_status(store, number, 1)
    with pytest.raises(Locked):
        look_at_store(tmp_path)
    await store.close()
    found = look_at_store(tmp_path)
    assert (found.state, found.bytes > 0, found.schema > 0) == ("ok", True, True)
    whole = (tmp_path / "state.db").read_bytes()
    (tmp_path / "state.db").write_bytes(whole[:6000] + bytes(len(whole) - 6000))
    assert look_at_store(tmp_path).state == "broken"
    (tmp_path / "state.db").write_bytes(b"nonsense" * 1000)
    assert (look_at_store(tmp_path).state, "not a database" in look_at_store(tmp_path).message) == ("broken", True)
    (tmp_path / "state.db").rename(tmp_path / "state.db-wal")
    assert look_at_store(tmp_path).message == "its main file is missing"
    lock = Lock(tmp_path)
    lock.acquire()  # nobody has been left holding it
    lock.release()
