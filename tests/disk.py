"""A disk that is slow, full, failing or pulled out: what programs ask of one directory, answered from outside.

A program is started through `Disk.wrapper`. That hands those of its file-system calls that change something to us by
way of seccomp (SECCOMP_RET_USER_NOTIF, see seccomp_unotify(2); Linux 5.5): an errno comes from the system call itself,
only the thread that calls waits, and no code of the program is replaced. It needs no root, no compiler, no module.

This file is also what runs in the program's place until the program does: standard library only.
"""

import ctypes
import errno
import fcntl
import os
import platform
import select
import socket
import struct
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

_MACHINES = {
    "x86_64": (0xC000003E, 317, {
        "open": 2, "openat": 257, "mkdir": 83, "mkdirat": 258, "rename": 82, "renameat": 264, "renameat2": 316,
        "unlink": 87, "unlinkat": 263, "pwrite64": 18, "ftruncate": 77, "fsync": 74, "fdatasync": 75,
        "newfstatat": 262,
    }),
    "aarch64": (0xC00000B7, 277, {
        "openat": 56, "mkdirat": 34, "renameat": 38, "renameat2": 276,
        "unlinkat": 35, "pwrite64": 68, "ftruncate": 46, "fsync": 82, "fdatasync": 83,
        "newfstatat": 79,
    }),
}  # fmt: skip
"""Audit architecture (linux/audit.h), the number of seccomp(2), and of the calls that change something, or look."""
_OPENS = {"open": 1, "openat": 2}
"""Only where the flags, the argument of this number, have O_CREAT."""
SYNCS = ("fsync", "fdatasync")
NEVER = float("inf")

_RECEIVE, _SEND, _CONTINUE = 0xC0502100, 0xC0182101, 1  # SECCOMP_IOCTL_NOTIF_RECV, _SEND, _USER_NOTIF_FLAG_CONTINUE
_NOTICE = struct.Struct("=QIIiIQ6Q")  # struct seccomp_notif
_ANSWER = struct.Struct("=QqiI")  # struct seccomp_notif_resp
_LONGEST_PATH = 4096


@dataclass(frozen=True, slots=True)
class Change:
    """One call that changes something in the directory, as it was asked for."""

    call: str
    """Without what tells its versions apart: open, mkdir, rename, unlink, write, truncate, fsync, fdatasync, look."""
    path: Path
    """The file or directory; of a rename, its new name."""
    offset: int = 0
    """Where a write begins, or the size that a truncation leaves."""
    data: bytes = b""
    source: Path | None = None
    """Of a rename, the old name."""
    grows: bool = False
    """It takes room that was free: a new file, or a write beyond the end."""


@dataclass(frozen=True, slots=True)
class _Rule:
    calls: tuple[str, ...]
    error: int = 0
    seconds: float = 0.0
    growing: bool = False

    def concerns(self, change: Change) -> bool:
        named = change.call in self.calls if self.calls else change.call != "look"
        return named and (change.grows or not self.growing)


@dataclass(frozen=True, slots=True)
class _Question:
    listener: int
    identifier: int
    change: Change
    asked: float


class Disk:
    """The disk under a directory, for every program that is started through `wrapper`. A context manager.

    Rules are set from any thread, and hold for calls that are waiting already, too.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.trace: list[Change] = []
        """Every change that was let through, in order."""
        self._rules: list[_Rule] = []
        self._waiting: list[_Question] = []
        self._ended = False
        self._door = socket.socket(socket.AF_UNIX)
        self._poll = select.epoll()
        self._calls = {number: name for name, number in _MACHINES[platform.machine()][2].items()}
        self._thread = threading.Thread(target=self._serve, name="disk", daemon=True)

    @property
    def wrapper(self) -> tuple[str, ...]:
        """What to put in front of a command."""
        return (sys.executable, str(Path(__file__)), self._door.getsockname().decode().removeprefix("\0"))

    @property
    def waiting(self) -> int:
        """Calls that are made to wait now."""
        return len(self._waiting)

    def can_watch(self) -> bool:
        """Whether this kernel, or the container that we are in, lets us."""
        return subprocess.run([*self.wrapper, "/bin/true"], stderr=subprocess.DEVNULL).returncode == 0

    def __enter__(self) -> "Disk":
        self._door.bind("")  # an abstract address of the kernel's choice
        self._door.listen()
        self._poll.register(self._door, select.EPOLLIN)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended = True
        self._thread.join()

    def fail(self, error: int, *calls: str) -> None:
        """Refuse calls (none named: all that change something) with an errno, until `heal`."""
        self._rules = [*self._rules, _Rule(calls, error)]

    def fill(self) -> None:
        """There is no room left: what would take some is refused, until `heal`."""
        self._rules = [*self._rules, _Rule((), errno.ENOSPC, growing=True)]

    def slow(self, seconds: float, *calls: str) -> None:
        """Calls (none named: all of them) take so long, until `heal`."""
        self._rules = [*self._rules, _Rule(calls, seconds=seconds)]

    def heal(self) -> None:
        """Everything works again, and what was made to wait goes on."""
        self._rules = []

    def _serve(self) -> None:
        listeners: set[int] = set()
        while not self._ended:
            for descriptor, event in self._poll.poll(0.01 if self._waiting else 0.1):
                if descriptor == self._door.fileno():
                    listeners.add(self._admit())
                elif event & select.EPOLLIN:
                    self._hear(descriptor)
                else:  # the program has ended
                    self._poll.unregister(descriptor)
                    listeners.remove(descriptor)
                    os.close(descriptor)
            self._waiting = [question for question in self._waiting if not self._settled(question)]
        for descriptor in listeners:
            os.close(descriptor)
        self._poll.close()
        self._door.close()

    def _admit(self) -> int:
        connection, _ = self._door.accept()
        with connection:
            _, (listener, *_), _, _ = socket.recv_fds(connection, 1, 1)
            self._poll.register(listener, select.EPOLLIN)
            connection.sendall(b".")
        return listener

    def _hear(self, listener: int) -> None:
        buffer = bytearray(_NOTICE.size)
        try:
            fcntl.ioctl(listener, _RECEIVE, buffer)
        except OSError:  # who asked was killed meanwhile
            return
        identifier, pid, _, number, _, _, *arguments = _NOTICE.unpack(buffer)
        try:
            change = _understood(pid, self._calls[number], arguments)
        except OSError:  # a bad descriptor or address: the kernel will say so
            change = None
        if change is None or not change.path.is_relative_to(self.directory):
            _answer(listener, identifier)
            return
        question = _Question(listener, identifier, change, time.monotonic())
        if not self._settled(question):
            self._waiting.append(question)

    def _settled(self, question: _Question) -> bool:
        """Answer a call, unless it has to wait."""
        rules = [rule for rule in self._rules if rule.concerns(question.change)]
        if any(time.monotonic() - question.asked < rule.seconds for rule in rules):
            return False
        error = next((rule.error for rule in rules if rule.error), 0)
        if not error and question.change.call != "look":
            self.trace.append(question.change)
        _answer(question.listener, question.identifier, error)
        return True


def _answer(listener: int, identifier: int, error: int = 0) -> None:
    with suppress(OSError):  # who asked was killed meanwhile
        fcntl.ioctl(listener, _SEND, _ANSWER.pack(identifier, 0, -error, 0 if error else _CONTINUE))


def _understood(pid: int, call: str, arguments: list[int]) -> Change | None:
    """What a call is about; raises OSError when that cannot be found out."""
    process = Path(f"/proc/{pid}")
    match call:
        case "open" | "openat":
            path = _path(process, *((None, arguments[0]) if call == "open" else arguments[:2]))
            return None if path.exists() else Change("open", path, grows=True)
        case "mkdir" | "mkdirat":
            return Change("mkdir", _path(process, *((None, arguments[0]) if call == "mkdir" else arguments[:2])))
        case "unlink" | "unlinkat":
            return Change("unlink", _path(process, *((None, arguments[0]) if call == "unlink" else arguments[:2])))
        case "newfstatat":
            return Change("look", _path(process, *arguments[:2]))
        case "rename":
            return Change("rename", _path(process, None, arguments[1]), source=_path(process, None, arguments[0]))
        case "renameat" | "renameat2":
            return Change("rename", _path(process, *arguments[2:4]), source=_path(process, *arguments[:2]))
    opened = process / "fd" / str(arguments[0])
    path = opened.readlink()
    match call:
        case "pwrite64":
            data = _memory(process, arguments[1], arguments[2])
            return Change("write", path, arguments[3], data, grows=arguments[3] + len(data) > opened.stat().st_size)
        case "ftruncate":
            return Change("truncate", path, arguments[1])
    return Change(call, path)


def _path(process: Path, folder: int | None, address: int) -> Path:
    name = _memory(process, address, _LONGEST_PATH).split(b"\0")[0]
    at_cwd = folder is None or ctypes.c_int32(folder & 0xFFFFFFFF).value == -100
    return (process / "cwd" if at_cwd else process / "fd" / str(folder)).readlink() / os.fsdecode(name)


def _memory(process: Path, address: int, size: int) -> bytes:
    with (process / "mem").open("rb", buffering=0) as memory:
        memory.seek(address)
        return memory.read(size)  # less at the end of a mapping


def _watched() -> int:
    """Have our calls watched from now on, also those of what we become; what they are seen through. Raises OSError."""
    architecture, seccomp, calls = _MACHINES[platform.machine()]
    load, equal, some_bit, give = 0x20, 0x15, 0x45, 0x06  # linux/filter.h
    allow, notify = 0x7FFF0000, 0x7FC00000
    program = [(load, 0, 0, 4), (equal, 1, 0, architecture), (give, 0, 0, allow), (load, 0, 0, 0)]
    for name, number in calls.items():
        if name in _OPENS:
            argument = (load, 0, 0, 16 + 8 * _OPENS[name])
            program += [(equal, 0, 4, number), argument, (some_bit, 1, 0, os.O_CREAT), (give, 0, 0, allow)]
            program += [(give, 0, 0, notify)]
        else:
            program += [(equal, 0, 1, number), (give, 0, 0, notify)]
    program.append((give, 0, 0, allow))
    code = b"".join(struct.pack("=HBBI", *line) for line in program)
    code_buffer = ctypes.create_string_buffer(code, len(code))
    filter_buffer = ctypes.create_string_buffer(struct.pack("@HP", len(program), ctypes.addressof(code_buffer)))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS: what lets a plain user do this
    for flags in (0x28, 0x08):  # a listener; signals do not interrupt a call that was seen (Linux 5.19)
        descriptor = libc.syscall(seccomp, 1, flags, filter_buffer)
        if descriptor >= 0:
            return int(descriptor)
    raise OSError(ctypes.get_errno(), "seccomp(2)")


def _become(address: str, *command: str) -> None:
    with socket.socket(socket.AF_UNIX) as door:
        door.connect(f"\0{address}")
        listener = _watched()
        socket.send_fds(door, [b"."], [listener])
        door.recv(1)
    os.close(listener)
    os.execv(command[0], command)


if __name__ == "__main__":
    _become(*sys.argv[1:])
