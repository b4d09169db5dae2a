"""A file system of its own under a directory: one that is really read-only, or really full."""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True, slots=True)
class Mount:
    """A small tmpfs. Only what nobody has open for writing can be made read-only."""

    directory: Path

    @property
    def free(self) -> int:
        """Bytes that still fit."""
        room = os.statvfs(self.directory)
        return room.f_bavail * room.f_bsize

    def read_only(self) -> None:
        """Refuse every write, as after an error of the disk."""
        self._remount("ro")

    def writable(self) -> None:
        """Take writes again."""
        self._remount("rw")

    def fill(self, *, leave: int = 0) -> None:
        """Leave no more than some bytes of room."""
        with (self.directory / "ballast").open("ab", buffering=0) as ballast:
            while (room := self.free - leave) > 0:
                with contextlib.suppress(OSError):  # somebody else has just taken some of it
                    ballast.write(bytes(room))

    def make_room(self) -> None:
        """Undo `fill`."""
        (self.directory / "ballast").unlink()

    def cover(self, directory: Path, other: Path) -> None:
        """Have another directory in the place of one that is on it."""
        subprocess.run(["mount", "--bind", other, directory], check=True)

    def _remount(self, how: str) -> None:
        subprocess.run(["mount", "-o", f"remount,{how}", self.directory], check=True)


@contextmanager
def mounted(directory: Path, *, mebibytes: int = 4) -> Iterator[Mount]:
    """Put a file system under a directory, which is made; skips the test where that is not allowed."""
    directory.mkdir()
    mount = shutil.which("mount")
    options = f"size={mebibytes}m,mode=0700"
    if os.geteuid() or not mount or subprocess.run([mount, "-t", "tmpfs", "-o", options, "none", directory]).returncode:
        pytest.skip("mounting a tmpfs takes root; other tests have the disk refuse in another way")
    try:
        yield Mount(directory)
    finally:
        subprocess.run(["umount", "--lazy", directory], check=True)
