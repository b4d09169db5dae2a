"""Writes HAProxy's files: each atomically, and all of them only where HAProxy accepts the whole."""

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from crsyncer.door.domain.door_values import FrontDoor
from crsyncer.door.domain.haproxy_template import CERTIFICATE, CONFIGURATION, haproxy_files, is_ours
from crsyncer.door.haproxy_program import check_configuration
from crsyncer.errors import SyncError

MAP = "robots.map"
_MODE = 0o600
_TRIAL = "trial-"


async def try_configuration(door: FrontDoor, map_text: str, *, program: str = "haproxy") -> None:
    """Have HAProxy read all files as they would be, beside those that it uses. Raises SyncError."""
    trial = _trial(door, map_text)
    try:
        await check_configuration(trial / CONFIGURATION, program)
    finally:
        shutil.rmtree(trial, ignore_errors=True)


def is_new(door: FrontDoor) -> bool:
    """Whether a file would be another than it is."""
    return any(read_text(Path(door.directory) / name) != text for name, text in haproxy_files(door).items())


def put_files(door: FrontDoor) -> bool:
    """Write the files that differ, the configuration last; whether any did. Raises SyncError.

    Keys, certificates and answers that no configuration names any more are removed afterwards.
    """
    home = Path(door.directory)
    wanted = haproxy_files(door)
    changed = False
    with _reported(home):
        for name in sorted(wanted, key=lambda each: each == CONFIGURATION):
            changed |= _put(home / name, wanted[name])
        for stale in {each.name for each in home.iterdir() if is_ours(each.name)} - wanted.keys():
            (home / stale).unlink(missing_ok=True)
    return changed


def last_files(directory: Path) -> dict[str, str]:
    """The door's files as they are, by name; those that cannot be read are left out."""
    with suppress(OSError):
        found = {each.name: read_text(each) for each in directory.iterdir()}
        return {name: text for name, text in found.items() if text is not None}
    return {}


def written(directory: Path) -> dict[str, float]:
    """When each file that HAProxy reads only at its start was written: Unix time, by its name."""
    with suppress(OSError):
        ours = (path for path in directory.iterdir() if is_ours(path.name) or path.name in (CONFIGURATION, CERTIFICATE))
        return {path.name: path.stat().st_mtime for path in ours}
    return {}


def put_map(directory: Path, text: str) -> None:
    """Write the map atomically, where it differs. Raises SyncError."""
    with _reported(directory):
        _put(directory / MAP, text)


def read_text(path: Path) -> str | None:
    """The text of one of the files; None where it is not there or cannot be read."""
    with suppress(OSError, UnicodeDecodeError):
        return path.read_bytes().decode()  # read_text() would change the ends of lines
    return None


def _trial(door: FrontDoor, map_text: str) -> Path:
    """A new directory with all files, beside those that are in use."""
    home = Path(door.directory)
    with _reported(home):
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        trial = Path(tempfile.mkdtemp(prefix=_TRIAL, dir=home))
        try:
            for name, text in {**haproxy_files(replace(door, directory=str(trial))), MAP: map_text}.items():
                _write(trial / name, text)
        except BaseException:
            shutil.rmtree(trial, ignore_errors=True)
            raise
    return trial


def _put(path: Path, text: str) -> bool:
    if read_text(path) == text:
        return False
    new = path.with_name(f".{path.name}.new")
    try:
        _write(new, text)
        new.replace(path)
    except OSError:
        new.unlink(missing_ok=True)  # half of a file, where the disk is full
        raise
    return True


def _write(path: Path, text: str) -> None:
    """Write a file whole, readable by the owner of the directory alone: HAProxy may run as another user than root."""
    with open(path, "wb", opener=lambda name, flags: os.open(name, flags | os.O_NOFOLLOW, _MODE)) as file:
        file.write(text.encode())
        file.flush()
        os.fsync(file.fileno())
        owner = path.parent.stat()
        if os.geteuid() == 0 and owner.st_uid != 0 and stat.S_ISDIR(owner.st_mode):
            os.fchown(file.fileno(), owner.st_uid, owner.st_gid)


@contextmanager
def _reported(directory: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise SyncError(f"{directory} cannot be written ({why})", hint="is this the right --directory?") from None
