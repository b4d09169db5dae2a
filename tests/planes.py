"""What tests do to a control plane: pause it, put an older state back, make it forget its history."""

import json
import shutil
import sqlite3
import urllib.request
from contextlib import closing
from pathlib import Path
from typing import Any

from crsyncer.sandbox.cloning import pause, resume, snapshot
from crsyncer.sandbox.plane import Plane

__all__ = ["compact", "pause", "restore", "resume", "snapshot", "wipe"]


def restore(plane: Plane, directory: Path) -> None:
    """Stop, go back to the data of a snapshot, start: revisions run backwards, later writes are gone."""
    plane.stop(graceful=False)
    shutil.rmtree(plane.data)
    shutil.copytree(directory, plane.data)
    plane.start()


def wipe(plane: Plane) -> None:
    """Stop, empty the datastore, start: a rebuilt cluster at the old address, with other uids."""
    plane.stop(graceful=False)
    shutil.rmtree(plane.data)
    plane.data.mkdir()
    plane.start()


def compact(plane: Plane) -> int:
    """Make the datastore forget all history; returns the revision that it was compacted at.

    Watches go on all the same, from the API server's own cache: for a 410, restart "apiserver" as well.
    """
    if plane.datastore.name == "etcd":
        return _compact_etcd(plane.store_port)
    return _compact_kine(plane.data / "db" / "state.db")


def _compact_etcd(port: int) -> int:
    """Through etcd's HTTP gateway."""

    def call(path: str, body: dict[str, Any]) -> dict[str, Any]:
        request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data=json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=10) as reply:
            answer: dict[str, Any] = json.load(reply)
            return answer

    revision = call("/v3/kv/range", {"key": "AA==", "limit": 1})["header"]["revision"]
    call("/v3/kv/compaction", {"revision": revision, "physical": True})
    return int(revision)


def _compact_kine(file: Path) -> int:
    """As kine itself does it, in its file: kine has no call that compacts, and keeps the last 1,000 revisions.

    Source: kine 0.16.4, pkg/drivers/sqlite/sqlite.go (CompactSQL) and pkg/logstructured/sqllog/sql.go (compact).
    """
    with closing(sqlite3.connect(file, timeout=30, isolation_level=None)) as db:
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
    return int(revision)
