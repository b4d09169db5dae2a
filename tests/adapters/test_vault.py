"""What is sensitive: bodies that never reach the disk, and the key of their digests (C5.6)."""

import os
import stat
from pathlib import Path

import pytest

from crsyncer.adapters.store.statedir import prepare
from crsyncer.adapters.store.store import SqliteStore
from crsyncer.adapters.vault import Vault, digest_key
from crsyncer.core.model import Cursor, Key, Side, View

KEY = Key("default", "a")
VIEW = View("u-1", "5", 1, terminating=False, content="digest", status="", has_status=False)
BODY = {"metadata": {"name": "a", "managedFields": [1]}, "data": {"password": "aHVudGVyMg=="}}


async def test_C5_6_a_body_is_in_memory_only(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path)
    vault = Vault(store)
    vault.put_copy(Side.CLOUD, "secrets.", KEY, VIEW, BODY)
    vault.put_cursor(Side.CLOUD, "secrets.", "", Cursor("i", "/p", "", "7", "b"))
    await vault.durable()
    body = await vault.body(Side.CLOUD, "secrets.", KEY)
    assert body == {"metadata": {"name": "a"}, "data": BODY["data"]}
    loaded = await Vault(store).load("secrets.")
    assert (loaded.views[Side.CLOUD], loaded.cursors) == ({KEY: VIEW}, {})
    assert await Vault(store).body(Side.CLOUD, "secrets.", KEY) is None
    await store.close()
    assert all(b"aHVudGVy" not in path.read_bytes() for path in tmp_path.iterdir())


async def test_C5_6_what_a_vault_forgets_is_gone_from_memory_and_disk(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path)
    vault = Vault(store)
    vault.put_copy(Side.CLOUD, "secrets.", KEY, VIEW, BODY)
    vault.put_copy(Side.ROBOT, "secrets.", KEY, VIEW, BODY)
    vault.drop_copy(Side.CLOUD, "secrets.", KEY)
    assert [await vault.body(side, "secrets.", KEY) is None for side in (Side.CLOUD, Side.ROBOT)] == [True, False]
    vault.forget_kind("secrets.")
    assert await vault.body(Side.ROBOT, "secrets.", KEY) is None
    assert (await vault.load("secrets.")).views[Side.ROBOT] == {}
    await store.close()


def test_C5_6_the_key_is_made_once_and_ours_alone_to_read(tmp_path: Path) -> None:
    key = digest_key(tmp_path)
    assert (len(key), digest_key(tmp_path)) == (32, key)
    assert stat.S_IMODE((tmp_path / "digest.key").stat().st_mode) == 0o600
    (tmp_path / "digest.key").chmod(0o644)
    prepare(tmp_path)
    assert stat.S_IMODE((tmp_path / "digest.key").stat().st_mode) == 0o600


@pytest.mark.parametrize("spoil", [lambda path: path.write_bytes(b"short"), Path.unlink])
def test_C5_6_a_lost_key_is_made_anew(tmp_path: Path, spoil) -> None:
    key = digest_key(tmp_path)
    spoil(tmp_path / "digest.key")
    new = digest_key(tmp_path)
    assert (new != key, digest_key(tmp_path)) == (True, new)


def test_C5_6_a_symlink_is_not_followed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(os.urandom(32))
    (tmp_path / "digest.key").symlink_to(elsewhere)
    assert digest_key(tmp_path) != elsewhere.read_bytes()


def test_C5_6_a_disk_that_refuses_the_key_stops_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert len(digest_key(tmp_path / "missing")) == 32
    assert "cannot be written" in caplog.text
