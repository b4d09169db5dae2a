"""The search for leaked credentials finds what is leaked on purpose, wherever it is, and nothing else."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from unittest.mock import Mock

import pytest

from crsyncer.adapters.store.store import SqliteStore
from crsyncer.adapters.vault import Vault
from crsyncer.agent_ports import Store
from crsyncer.core.model import Cursor, FinalizerRow, Key, Pending, Record, Side, Tombstone, View
from tests.leaks.search import search
from tests.leaks.secrets import secrets_in

ROOT = Path(__file__).parents[2]
SECRET = "s3cret-of-the-planted-test"
CREDENTIAL = f"""
import os, subprocess, sys
SECRET = {SECRET!r}

def test_has_a_credential(tmp_path):
    (tmp_path / "cloud.yaml").write_text("token: " + SECRET)
"""
LEAKS = """
    (tmp_path / "agent.log").write_text(f"DEBUG sent: Bearer {SECRET}")
    (tmp_path / "state.db-wal").write_bytes(bytes(range(256)) + SECRET.encode() + bytes(9))
    print(SECRET)
    subprocess.run(["echo", SECRET], capture_output=True)
    # A process that shows the secret until it was seen: the first sample may come after its start.
    samples = os.environ["CRSYNCER_LEAKS_KEPT"] + "/processes.txt"
    until_seen = "import os, sys; secret, file = sys.argv[1:]\\n"
    until_seen += "while not os.path.exists(file) or secret not in open(file).read(): pass"
    subprocess.run([sys.executable, "-c", until_seen, SECRET, samples], timeout=100, check=True)
"""


def leaks(test: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Search what one test leaves behind."""
    (folder / "test_planted.py").write_text(test)
    return subprocess.run(
        [sys.executable, "-m", "tests.leaks", folder / "test_planted.py", "-p", "no:xdist"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=180,
        env={**os.environ, "TMPDIR": str(folder)},
    )


def test_a_secret_outside_of_its_credential_file_is_found(tmp_path: Path) -> None:
    done = leaks(CREDENTIAL + LEAKS, tmp_path)
    assert done.returncode == 1
    found = {Path(line.partition(":")[0]).name for line in done.stdout.splitlines() if "a secret of this run" in line}
    [commands] = [name for name in found if name.startswith("commands-")]
    assert found == {"agent.log", "state.db-wal", "pytest.txt", "processes.txt", commands}
    assert SECRET not in done.stdout


def test_a_secret_in_its_credential_file_is_no_leak_and_nothing_is_kept(tmp_path: Path) -> None:
    done = leaks(CREDENTIAL, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "for 1 secrets: none found" in done.stdout
    assert list(tmp_path.glob("leaks-*")) == []


@pytest.mark.parametrize(
    "text",
    [
        "token eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJyMSJ9.c2lnbmF0dXJl was refused",
        "-----BEGIN EC PRIVATE KEY-----",
        "{'Authorization': 'Basic dXNlcjpwYXNzd29yZA=='}",
    ],
    ids=["token", "key", "login"],
)
def test_what_has_the_shape_of_a_secret_is_found_though_nobody_knows_it(tmp_path: Path, text: str) -> None:
    (tmp_path / "agent.log").write_text(f"{{}}\n{text}\nAuthorization: Bearer [redacted]\n")
    [leak] = search(tmp_path, ()).leaks
    assert (leak.file.name, leak.line) == ("agent.log", 2)


def test_the_secrets_of_a_credential_file_are_its_tokens_passwords_and_keys(tmp_path: Path) -> None:
    key = b"-----BEGIN PRIVATE KEY-----\nMIGHAgEAMBMG+a/b\n-----END PRIVATE KEY-----\n"
    token = b"eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJyMSJ9.c2lnbmF0dXJl"
    for name, content, expected in (
        ("token", b" opaque-token-of-r1\n", {b"opaque-token-of-r1"}),
        ("tokens.csv", b"admin-token-of-cloud,admin,admin\n", {b"admin-token-of-cloud"}),
        ("plane.json", b'{"port": 1, "admin_token": "admin-token-of-cloud"}', {b"admin-token-of-cloud"}),
        ("client.key", key, {b"MIGHAgEAMBMG+a/b"}),
        ("cloud.yaml", b"user: {token: " + token + b"}", {b"eyJzdWIiOiJyMSJ9", b"c2lnbmF0dXJl"}),
        ("robot.yaml", b"user:\n  password: long-password\n  token: short", {b"long-password"}),
    ):
        (tmp_path / name).write_bytes(content)
        assert set(secrets_in(tmp_path / name)) == expected


KEY = Key("default", "a")
VIEW = View("u-1", "5", 1, terminating=False, content="digest", status="", has_status=False)


def body(value: str, *, bytes_before: int = 0) -> dict:
    """An object with a value; what is before that cannot be compressed."""
    return {"metadata": {"name": "a"}, "data": {"a": Random(1).randbytes(bytes_before).hex(), "password": value}}


def put_everywhere(store: Store, value: str) -> dict[str, Callable[[], None]]:
    """A value in each part of the store, by the name of the part: an object is in two tables."""
    whole = body(value)
    row = FinalizerRow("u-1", "f", "cloud", error=value)
    return {
        "copy": lambda: store.put_copy(Side.CLOUD, "goals", KEY, VIEW, whole),
        "status": lambda: store.put_copy(Side.ROBOT, "goals", KEY, VIEW, {**body("no"), "status": {"echo": value}}),
        "view": lambda: store.put_copy(Side.ROBOT, "goals", KEY, replace(VIEW, failure=value), body("no")),
        "outbox": lambda: store.put_pending("goals", KEY, Pending(1, "u-1", "d", whole, 1.0, raw=True)),
        "outbox error": lambda: store.put_pending("goals", KEY, Pending(1, "u-1", "d", None, 1.0, error=value)),
        "record": lambda: store.put_record("goals", KEY, Record(applied=value)),
        "tombstone": lambda: store.put_tombstone("goals", KEY, Tombstone(value, 1.0)),
        "finalizer": lambda: store.put_finalizer("goals", KEY, row),
        "cursor": lambda: store.put_cursor(Side.CLOUD, "goals", "", Cursor("i", "/p", value, "7")),
        "meta": lambda: store.put_meta("note", {"text": value}),
    }


@pytest.mark.parametrize("part", put_everywhere(Vault(Mock()), ""))
async def test_a_secret_in_any_row_is_found(tmp_path: Path, part: str) -> None:
    store = await SqliteStore.open(tmp_path)
    put_everywhere(store, SECRET)[part]()
    await store.close()
    [leak, *_] = search(tmp_path, [SECRET.encode()]).leaks
    assert leak.file == tmp_path / "state.db"


@pytest.mark.parametrize("bytes_before", [0, 20_000])
async def test_a_secret_that_only_the_wal_still_has_is_found(tmp_path: Path, bytes_before: int) -> None:
    used, copied = tmp_path / "used", tmp_path / "copied"
    used.mkdir(0o700)
    store = await SqliteStore.open(used)
    for value in (SECRET, "no"):
        store.put_copy(Side.CLOUD, "goals", KEY, VIEW, body(value, bytes_before=bytes_before))
        await store.durable()
    shutil.copytree(used, copied)
    await store.close()
    found = {leak.file.name for leak in search(copied, [SECRET.encode()]).leaks}
    assert found in ({"state.db"}, {"state.db", "state.db-wal"})
    assert search(used, [SECRET.encode()]).leaks == []


async def test_C5_6_no_part_of_the_store_for_secrets_keeps_a_body_or_a_status(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path)
    vault = Vault(store)
    for part in ("copy", "status", "outbox", "outbox error", "cursor"):
        put_everywhere(vault, SECRET)[part]()
        await store.durable()
        assert search(tmp_path, [SECRET.encode()]).leaks == []
    await store.close()
    assert search(tmp_path, [SECRET.encode()]).leaks == []


async def test_C5_6_the_store_for_secrets_takes_from_the_disk_what_was_stored_before(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path)
    for part in ("copy", "status", "view", "outbox"):
        put_everywhere(store, SECRET)[part]()
        await store.durable()
    await store.close()
    assert search(tmp_path, [SECRET.encode()]).leaks != []
    store = await SqliteStore.open(tmp_path)
    loaded = await Vault(store).load("goals")
    await store.close()
    assert (loaded.pending, set(loaded.views[Side.CLOUD])) == ({}, {KEY})
    assert search(tmp_path, [SECRET.encode()]).leaks == []
