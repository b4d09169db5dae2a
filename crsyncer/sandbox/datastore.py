"""What a plane keeps its objects in: etcd, or kine with SQLite, which is what k3s runs on a robot."""

import json
import sqlite3
import urllib.request
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crsyncer.sandbox.errors import SandboxError


@dataclass(frozen=True, slots=True)
class Datastore:
    """How one kind of datastore is started, asked and compacted. The data are files in one directory."""

    name: str
    argv: Callable[[Path, int], list[str]]
    """(data directory, port) -> arguments; the program runs in the data directory."""
    ready: Callable[[Path, int], bool]
    compact: Callable[[Path, int], int]
    """Forget the history up to the current revision, and return that revision."""


def etcd(program: Path) -> Datastore:
    """etcd on loopback, without TLS and without fsync.

    A throw-away plane needs no protection from power cuts, and fsync is what makes small disks slow. A killed etcd
    loses nothing: what it wrote is in the kernel's memory.
    """

    def argv(data: Path, port: int) -> list[str]:
        url = f"http://127.0.0.1:{port}"
        return [
            str(program),
            f"--data-dir={data}",
            f"--listen-client-urls={url}",
            f"--advertise-client-urls={url}",
            "--listen-peer-urls=http://127.0.0.1:0",  # there are no peers
            "--unsafe-no-fsync",
            "--log-level=warn",
        ]

    return Datastore(name="etcd", argv=argv, ready=_etcd_ready, compact=_etcd_compact)


def kine(program: Path) -> Datastore:
    """kine with a SQLite file. The bare endpoint keeps kine's own SQLite options, those of k3s: a query drops them."""

    def argv(_data: Path, port: int) -> list[str]:
        return [
            str(program),
            "--endpoint=sqlite://",
            f"--listen-address=tcp://127.0.0.1:{port}",
            "--metrics-bind-address=0",
        ]

    return Datastore(name="kine", argv=argv, ready=_kine_ready, compact=_kine_compact)


def _etcd_ready(_data: Path, port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1) as reply:
            return bool(json.load(reply).get("health") == "true")
    except (OSError, ValueError):
        return False


def _etcd_compact(_data: Path, port: int) -> int:
    """Through etcd's HTTP gateway. Raises SandboxError."""

    def call(path: str, body: dict[str, Any]) -> dict[str, Any]:
        request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data=json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=10) as reply:  # noqa: S310
            answer: dict[str, Any] = json.load(reply)
            return answer

    try:
        revision = call("/v3/kv/range", {"key": "AA==", "limit": 1})["header"]["revision"]
        call("/v3/kv/compaction", {"revision": revision, "physical": True})
    except (OSError, KeyError, ValueError) as error:
        raise SandboxError(f"etcd did not compact: {error}") from error
    return int(revision)


def _kine_file(data: Path) -> Path:
    return data / "db" / "state.db"


def _kine_ready(data: Path, _port: int) -> bool:
    # It writes the file's first row when it serves; the API server tries again on its own if it is a moment early.
    return _kine_file(data).exists()


def _kine_compact(data: Path, _port: int) -> int:
    """As kine itself does it, in its file: kine has no call that compacts, and keeps the last 1,000 revisions.

    Source: kine 0.16.4, pkg/drivers/sqlite/sqlite.go (CompactSQL) and pkg/logstructured/sqllog/sql.go (compact).
    Raises SandboxError.
    """
    try:
        with closing(sqlite3.connect(_kine_file(data), timeout=30, isolation_level=None)) as db:
            db.execute("BEGIN IMMEDIATE")
            (revision,) = db.execute("SELECT MAX(id) FROM kine").fetchone()
            db.execute(
                """DELETE FROM kine WHERE id IN (
                       SELECT prev_revision FROM kine
                       WHERE name != 'compact_rev_key' AND prev_revision != 0 AND id <= :revision
                       UNION SELECT id FROM kine WHERE deleted != 0 AND id <= :revision)""",
                {"revision": revision},
            )
            db.execute("UPDATE kine SET prev_revision = ? WHERE name = 'compact_rev_key'", (revision,))
            db.execute("COMMIT")
    except sqlite3.Error as error:
        raise SandboxError(f"kine's file could not be compacted: {error}") from error
    return int(revision)
