"""Looks at the processes of a run while it goes on: their arguments and environment, and what the agents answer."""

import contextlib
import http.client
import itertools
import json
import os
import threading
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType

from crsyncer.adapters.control import ask
from crsyncer.errors import SyncError
from tests.leaks.secrets import may_hold_secrets, secrets_in

_PROCESSES_EVERY, _ANSWERS_EVERY, _FILES_EVERY = 0.5, 2.0, 5.0  # seconds


class Sampler:
    """While the context is open, writes what processes show and agents answer, and reads new credential files."""

    def __init__(self, run: Path, samples: Path) -> None:
        """`run`: all processes of the run mention this directory; `samples`: where the samples go."""
        self.secrets: set[bytes] = set()
        self._run = run
        self._samples = samples
        self._seen_processes: set[bytes] = set()
        self._seen_files: set[tuple[Path, int]] = set()
        self._ended = threading.Event()
        self._pool = ThreadPoolExecutor()
        self._work: list[Future[None]] = []

    def __enter__(self) -> "Sampler":
        self._work = [
            self._pool.submit(self._repeat, self._processes, _PROCESSES_EVERY),
            self._pool.submit(self._repeat, self._answers, _ANSWERS_EVERY),
            self._pool.submit(self._repeat, self._files, _FILES_EVERY),
        ]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        for work in self._work:
            work.result()  # what a thread has raised
        self._pool.shutdown()
        self._files()

    def _repeat(self, work: Callable[[], None], seconds: float) -> None:
        while not self._ended.wait(seconds):
            work()

    def _processes(self) -> None:
        with (self._samples / "processes.txt").open("ab") as file:
            for _, shown in self._of_the_run():
                if shown not in self._seen_processes:
                    self._seen_processes.add(shown)
                    file.write(shown.replace(b"\0", b" ") + b"\n")

    def _answers(self) -> None:
        """What each agent says on its control socket, and on its port where it listens."""
        with (self._samples / "answers.txt").open("ab") as file:
            for arguments, _ in self._of_the_run():
                options = dict(itertools.pairwise(arguments))
                if "run" not in arguments or "--state-dir" not in options:
                    continue
                with contextlib.suppress(SyncError, OSError):
                    file.write(json.dumps(ask(Path(options["--state-dir"]), {"command": "status"})).encode() + b"\n")
                if (address := options.get("--listen", "off")) != "off":
                    for path in ("metrics", "readyz", "livez"):
                        with contextlib.suppress(OSError, http.client.HTTPException):
                            file.write(urllib.request.urlopen(f"http://{address}/{path}", timeout=5).read())

    def _files(self) -> None:
        files = (Path(folder, name) for folder, _, names in os.walk(self._run) for name in names)
        for file in filter(may_hold_secrets, files):
            with contextlib.suppress(OSError):
                if file.is_file() and (seen := (file, file.stat().st_mtime_ns)) not in self._seen_files:
                    self._seen_files.add(seen)
                    self.secrets.update(secrets_in(file))

    def _of_the_run(self) -> Iterator[tuple[list[str], bytes]]:
        """The arguments of each process of the run, and the bytes of these and of its environment."""
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                arguments, environment = ((process / name).read_bytes() for name in ("cmdline", "environ"))
                if str(self._run).encode() in arguments + environment:
                    yield arguments.decode(errors="replace").split("\0"), arguments + environment
