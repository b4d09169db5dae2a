"""A process that writes to a store until it dies, started many times by `Nursery` without importing all anew."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from crsyncer.adapters.store import store as store_module
from crsyncer.adapters.store.store import SqliteStore
from crsyncer.core.model import Side
from tests.adapters.store_kit import GOALS, report_status
from tests.dying import die_at

OBJECTS = 20
_HOUR = 3600.0
DURABLE = "durable.txt"


async def write(directory: Path, changes: int) -> None:
    """Go on where the store ends; after each third change note in a file up to where it is durable."""
    store = await SqliteStore.open(directory / "state")
    last = (await store.load(GOALS)).cursors.get((Side.CLOUD, ""))
    begin = int(last.resource_version) + 1 if last else 1
    with (directory / DURABLE).open("a") as durable:
        for version in range(begin, begin + changes):
            report_status(store, version % OBJECTS, version)
            if version % 3 == 0:
                await store.durable()
                durable.write(f"{version}\n")
                durable.flush()
            await asyncio.sleep(0)
    await store.close()


class Nursery:
    """Starts writers, and says how each of them ended."""

    def __init__(self) -> None:
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.adapters.store_child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
        )

    def run(self, directory: Path, *, changes: int, fault: str = "-", kill_after: float = 60.0) -> int:
        """The exit code of a writer; negative is the signal that killed it."""
        assert self._server.stdin
        assert self._server.stdout
        self._server.stdin.write(f"{directory} {changes} {fault} {kill_after}\n")
        self._server.stdin.flush()
        return int(self._server.stdout.readline())

    def close(self) -> None:
        """End the server."""
        assert self._server.stdin
        assert self._server.stdout
        self._server.stdin.close()
        self._server.wait()
        self._server.stdout.close()


def serve() -> None:
    """Fork a writer for each line of input."""
    for line in sys.stdin:
        directory, changes, fault, kill_after = line.split()
        child = os.fork()
        if not child:
            if fault != "-":
                store_module.GROUP_SECONDS = _HOUR  # so that on any machine the n-th commit has the same in it
                die_at(fault)
            asyncio.run(write(Path(directory), int(changes)))
            os._exit(0)
        deadline = time.monotonic() + float(kill_after)
        while not (ended := os.waitpid(child, os.WNOHANG))[0]:
            if time.monotonic() > deadline:
                os.kill(child, signal.SIGKILL)
            time.sleep(0.001)
        print(os.waitstatus_to_exitcode(ended[1]), flush=True)


if __name__ == "__main__":
    serve()
