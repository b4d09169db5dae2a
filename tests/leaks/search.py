"""Searches every byte of every file of a directory for secrets, and for whatever has the shape of one.

Also the rows of databases, which are compressed.
"""

import os
import re
import subprocess
import tempfile
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from tests.leaks.rows import is_ours, unpacked
from tests.leaks.secrets import may_hold_secrets

SHAPES = {
    "a JWT": r"eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
    "a private key": r"-----BEGIN [A-Z ]*PRIVATE KEY-----",
    "a login": r"[Aa]uthorization[\"']?: *[\"']?(Bearer|Basic) [^[]",
}
"""What no file may hold even where nobody knows the secret: a token that only an agent's memory held is a JWT."""


@dataclass(frozen=True, slots=True)
class Leak:
    """Where a secret is that must not be there."""

    file: Path
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.what}"


@dataclass(frozen=True, slots=True)
class Searched:
    """What was searched, credential files not counted, and what was found."""

    files: int
    bytes: int
    leaks: list[Leak]


def search(directory: Path, secrets: Collection[bytes]) -> Searched:
    """Search all files but the credential files."""
    files = [path for path in directory.rglob("*") if path.is_file() and not path.is_symlink()]
    files = [path for path in files if not may_hold_secrets(path)]
    leaks = [
        leak for path in sorted(_suspects(directory, secrets).intersection(files)) for leak in _leaks(path, secrets)
    ]
    with tempfile.TemporaryDirectory() as folder:
        databases = {Path(folder, str(number)): path for number, path in enumerate(filter(is_ours, files))}
        for target, path in databases.items():
            target.write_bytes(b"\n".join(unpacked(path)))
        for target in sorted(_suspects(Path(folder), secrets)):
            leaks += [Leak(databases[target], leak.line, f"{leak.what}, in a row") for leak in _leaks(target, secrets)]
    return Searched(len(files), sum(path.stat().st_size for path in files), leaks)


def _suspects(directory: Path, secrets: Collection[bytes]) -> set[Path]:
    """The files that have a secret, or the shape of one."""
    known = _grep(directory, "-F", b"\n".join(secrets)) if secrets else set()
    return known | _grep(directory, "-E", "\n".join(SHAPES.values()).encode())


def _grep(directory: Path, kind: str, patterns: bytes) -> set[Path]:
    """The files that have a pattern, one a line of `patterns`. grep looks for thousands at once."""
    done = subprocess.run(
        ["grep", "-rlaZ", "-D", "skip", kind, "-f", "-", directory],
        input=patterns,
        capture_output=True,
        env={**os.environ, "LC_ALL": "C"},
    )
    assert done.returncode in (0, 1), done.stderr.decode()
    return {Path(os.fsdecode(name)) for name in done.stdout.split(b"\0") if name}


def _leaks(file: Path, secrets: Collection[bytes]) -> list[Leak]:
    content = file.read_bytes()
    found = [(content.find(secret), "a secret of this run") for secret in secrets if secret in content]
    for what, shape in SHAPES.items():
        found += [(match.start(), what) for match in re.finditer(shape.encode(), content)]
    return [Leak(file, content.count(b"\n", 0, at) + 1, what) for at, what in sorted(found)]
