"""Describes the datastore of a plane: etcd, or kine with SQLite, the datastore of k3s."""

import json
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Datastore:
    """How a datastore is started, and whether it is ready. The data are files in one directory."""

    name: str
    argv: Callable[[Path, int], list[str]]
    """(data directory, port) -> arguments; the program runs in the data directory."""
    ready: Callable[[Path, int], bool]


def etcd(program: Path) -> Datastore:
    """etcd on loopback, without TLS and without fsync.

    A throw-away plane needs no protection from power cuts, and fsync makes small disks slow. A killed etcd loses
    nothing: its writes are in the kernel's memory.
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

    return Datastore(name="etcd", argv=argv, ready=_etcd_ready)


def kine(program: Path) -> Datastore:
    """kine with a SQLite file. The bare endpoint keeps kine's own SQLite options, those of k3s: a query drops them."""

    def argv(_data: Path, port: int) -> list[str]:
        return [
            str(program),
            "--endpoint=sqlite://",
            f"--listen-address=tcp://127.0.0.1:{port}",
            "--metrics-bind-address=0",
        ]

    return Datastore(name="kine", argv=argv, ready=_kine_ready)


def _etcd_ready(_data: Path, port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1) as reply:
            return bool(json.load(reply).get("health") == "true")
    except (OSError, ValueError):
        return False


def _kine_ready(data: Path, _port: int) -> bool:
    # It writes the file's first row when it serves; the API server tries again on its own if it is a moment early.
    return (data / "db" / "state.db").exists()
