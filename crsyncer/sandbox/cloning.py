"""Copies the data of a control plane that runs, and makes a clone of the plane: a split of a shard begins with one."""

import os
import shutil
import signal
from contextlib import suppress
from pathlib import Path

from crsyncer.adapters.retries import until
from crsyncer.sandbox.plane import Plane


def pause(plane: Plane, component: str = "apiserver") -> None:
    """SIGSTOP: connections stay open, the kernel accepts new ones, nobody answers. Every thread has stopped then."""
    pid = plane.pids()[component]
    os.kill(pid, signal.SIGSTOP)
    until(lambda: _is_stopped(pid), seconds=5)


def resume(plane: Plane, component: str = "apiserver") -> None:
    """SIGCONT."""
    os.kill(plane.pids()[component], signal.SIGCONT)


def snapshot(plane: Plane, directory: Path) -> None:
    """Copy the datastore, as a power cut at this moment would leave it, into a new `directory`.

    It is paused meanwhile, so that the files belong together; both datastores recover from such a state at start.
    """
    runs = "store" in plane.pids()
    if runs:
        pause(plane, "store")
    try:
        shutil.copytree(plane.data, directory)
    finally:
        if runs:
            resume(plane, "store")


def clone(plane: Plane, name: str, directory: Path) -> Plane:
    """A plane over a copy of this one's data, not started yet: the same uids, the same keys of service accounts."""
    key = str(plane.key_file)
    flags = (f"--service-account-key-file={key}", f"--service-account-signing-key-file={key}")
    made = Plane(name, directory, apiserver=plane.apiserver, datastore=plane.datastore, flags=flags)
    shutil.rmtree(made.data)
    snapshot(plane, made.data)
    return made


def _is_stopped(pid: int) -> bool:
    with suppress(OSError, IndexError):
        stats = [(task / "stat").read_text() for task in Path(f"/proc/{pid}/task").iterdir()]
        return all(stat.rpartition(")")[2].split()[0] in "TtZX" for stat in stats)
    return False
