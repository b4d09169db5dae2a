"""The search for leaked credentials finds what is leaked on purpose, wherever it is, and nothing else."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

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
