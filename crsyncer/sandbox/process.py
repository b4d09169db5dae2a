"""Child processes, which end with their parent unless they are detached.

Two traps are handled here. A killed parent leaves its children running, so each child asks the kernel for a signal on
its parent's death. And that signal comes when the *thread* that forked dies, so one thread that lives as long as the
process does all the forking; otherwise a plane that was restarted from a worker thread would vanish with it.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from crsyncer.adapters.retries import until
from crsyncer.errors import SyncError

_forking_thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="fork")

# Runs between fork and exec, in an interpreter of its own: code in a forked child of a threaded process can deadlock.
# 1 is PR_SET_PDEATHSIG, 9 is SIGKILL, which also ends a stopped process. A parent that died before is noticed after.
_DIE_WITH_PARENT = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 9)
if os.getppid() != int(sys.argv[1]):
    os._exit(1)
os.execv(sys.argv[2], sys.argv[2:])
"""


@dataclass(slots=True)
class Process:
    """A program that runs; another process of ours may have started it."""

    pid: int
    home: Path
    """Its working directory: tells it from a later process with the same number."""
    log: Path
    popen: subprocess.Popen[bytes] | None = None

    @property
    def exit_code(self) -> int | None:
        """The exit code; None while it runs, or when another process started it."""
        return self.popen.poll() if self.popen is not None else None

    def alive(self) -> bool:
        """Whether it runs. A zombie does not."""
        if self.popen is not None:
            return self.popen.poll() is None
        try:
            state = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0]
            return state not in "ZX" and Path(f"/proc/{self.pid}/cwd").readlink() == self.home
        except (OSError, IndexError):
            return False

    def stop(self, *, graceful: bool = True, patience: float = 10.0) -> None:
        """End the process and return when it has ended: SIGTERM, then SIGKILL after `patience` seconds or at once."""
        for number in (signal.SIGTERM, signal.SIGKILL) if graceful else (signal.SIGKILL,):
            with suppress(ProcessLookupError):
                if self.alive():
                    os.kill(self.pid, number)
                    os.kill(self.pid, signal.SIGCONT)  # a stopped process receives SIGTERM when it goes on
            if until(lambda: not self.alive(), seconds=patience):
                return
        raise SyncError(f"process {self.pid} of {self.home} survives SIGKILL")

    def tail(self, lines: int = 12) -> str:
        """The end of its log, for an error message."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:]) if self.log.exists() else ""


def spawn(
    argv: Sequence[str],
    *,
    log: Path,
    cwd: Path,
    detached: bool = False,
    env: dict[str, str] | None = None,
) -> Process:
    """Start a program, its output appended to `log`, out of reach of the terminal's Ctrl-C.

    It ends with this process unless `detached`: then a file beside `log` lets `recorded` find it again. `argv[0]` is an
    absolute path. Raises SyncError when it does not exist.
    """
    command = list(argv)
    if not detached:
        command = [sys.executable, "-I", "-S", "-c", _DIE_WITH_PARENT, str(os.getpid()), *command]

    def fork() -> subprocess.Popen[bytes]:
        with log.open("ab") as output:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=cwd,
                env=env,
                start_new_session=True,
            )

    try:
        popen = _forking_thread.submit(fork).result()
    except OSError as error:
        raise SyncError(f"cannot start {argv[0]}: {error.strerror}") from error
    if detached:
        write_private(log.with_suffix(".pid"), f"{popen.pid} {cwd}")
    return Process(pid=popen.pid, home=cwd, log=log, popen=popen)


def recorded(directory: Path) -> dict[str, Process]:
    """The processes that were started detached, with a log in this directory, by the name of the log."""
    found = {}
    for file in directory.glob("*.pid"):
        pid, _, home = file.read_text().partition(" ")
        found[file.stem] = Process(pid=int(pid), home=Path(home), log=file.with_suffix(".log"))
    return found


def write_private(path: Path, text: str) -> None:
    """Write a file with mode 0600 and replace `path` with it at once."""
    scratch = path.with_name(f".{path.name}.new")
    with os.fdopen(os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
    scratch.replace(path)
