"""The state directory: who may use it, and who uses it now. Standard library only, since the CLI reads it too."""

import fcntl
import os
import stat
from contextlib import suppress
from pathlib import Path

from crsyncer.errors import DISK_ERRORS, Locked, StoreError

DATABASE = "state.db"
LOCK = "lock"
APPLICATION_ID = 0x63727379
"""Marks our files for `file(1)` and for us: "crsy"."""
COMPANIONS = ("", "-wal", "-shm", "-journal")
"""What SQLite keeps beside a database; a set that must not be torn apart."""


class Lock:
    """Ownership of a state directory, for as long as the process lives or until `release` (S6.5).

    The kernel drops the lock when the holder dies, however it dies, so there is no stale lock to clean up.
    """

    __slots__ = ("_descriptor", "path")

    def __init__(self, directory: Path) -> None:
        self.path = directory / LOCK
        self._descriptor = -1

    def acquire(self) -> None:
        """Take the directory and write our pid into the lock file; raises Locked, or StoreError.

        Where the disk refuses to be written, the file that is there locks as well, and so does the directory itself.
        """
        try:
            self._take(self.path, os.O_RDWR | os.O_CREAT)
        except StoreError as error:
            if not refuses(error.__cause__):
                raise
            self._take_existing()
            return
        # On a full disk the lock still locks, it only does not say by whom.
        with suppress(OSError):
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)

    def renew(self) -> None:
        """Take the directory as it is now, once its disk can be written; raises StoreError before, or Locked."""
        create_empty(self.path)
        self.release()
        self.acquire()

    def peek(self) -> None:
        """Keep an agent from starting while somebody reads, writing nothing; raises Locked while one is running."""
        with suppress(FileNotFoundError):
            self._take_existing()

    def release(self) -> None:
        """Give the directory up; does nothing when it is not ours."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _take_existing(self) -> None:
        try:
            self._take(self.path, os.O_RDONLY)
        except FileNotFoundError:
            self._take(self.path.parent, os.O_RDONLY | os.O_DIRECTORY)

    def _take(self, path: Path, flags: int) -> None:
        try:
            descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise StoreError(
                f"cannot open the lock file {path}: {error.strerror}",
                hint="the state directory must be writable for the user that runs crsyncer, and hold no symlinks",
            ) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = _written(descriptor)
            os.close(descriptor)
            raise Locked(
                f"{self.path.parent} is in use by process {pid or 'unknown'}",
                pid=pid,
                hint="one agent per state directory: stop the other one, or give this one a --state-dir of its own",
            ) from None
        self._descriptor = descriptor


def refuses(error: BaseException | None) -> bool:
    """Whether an error is the disk's, and not about what was asked of it."""
    return isinstance(error, OSError) and error.errno in DISK_ERRORS


def prepare(directory: Path) -> Path:
    """Make sure that the state is ours alone to read, and return the path of the database.

    Creates the directory with mode 0700; SQLite takes the mode of -wal and -shm from the database. Raises StoreError
    for symlinks, and for a database of ours that others may read: it holds copies of objects.
    """
    _refuse_symlink(directory)
    new = [folder for folder in (directory, *directory.parents) if not folder.exists()]
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        # SQLite sees to the names of its files, but a power cut may take the whole directory.
        for folder in new:
            sync_names(folder.parent)
    except OSError as error:
        raise StoreError(
            f"cannot create {directory}: {error.strerror}", hint="create it, or choose another --state-dir"
        ) from error
    for path in check_files(directory):
        with suppress(OSError):  # the disk is read-only: so is what is not ours
            path.chmod(0o600)
    return directory / DATABASE


def check_files(directory: Path) -> list[Path]:
    """Raise the StoreError for which `prepare` would refuse a directory; changes nothing.

    Returns files that others may read and that hold nothing of ours: they are set aside, or begun with (S6.5).
    """
    _refuse_symlink(directory)
    paths = [directory / f"{DATABASE}{companion}" for companion in COMPANIONS]
    public = [path for path in paths if _mode(path) & 0o077]
    if public and _ours(*paths[:2]):
        raise StoreError(
            f"{public[0]} may be read by others (mode {_mode(public[0]):04o})", hint=f"chmod 600 {public[0]}"
        )
    return public


def _ours(path: Path, wal: Path) -> bool:
    """Whether a file says that it is a database of ours, or what is beside it may say so of it.

    Source: sqlite.org/fileformat2.html, 1.3: a magic string, at 18 the version (2: WAL), at 68 the application id.
    """
    try:
        with path.open("rb") as file:
            header = file.read(72)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    owner = int.from_bytes(header[68:], "big")
    young = owner == 0 and header[18:19] == b"\2" and wal.exists()  # the id may not have left the WAL yet
    return header.startswith(b"SQLite format 3\0") and (owner == APPLICATION_ID or young)


def _refuse_symlink(directory: Path) -> None:
    if directory.is_symlink():
        raise StoreError(f"{directory} is a symlink", hint="give the directory itself as --state-dir")


def sync_names(directory: Path) -> None:
    """Return when the names in a directory are on disk: syncing a file does not promise that (fsync(2))."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def create_empty(path: Path) -> None:
    """Create an empty file that only we may read, unless something is there already."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise StoreError(
            f"cannot write {path}: {error.strerror}",
            hint="check owner, mode and free space of the state directory, and whether its disk is read-only",
        ) from error


def _mode(path: Path) -> int:
    """The permissions of a regular file, 0 where there is none; raises StoreError for anything else."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror}", hint="run as the user that owns it") from error
    if not stat.S_ISREG(found.st_mode):
        raise StoreError(f"{path} is not a regular file", hint="move it away; crsyncer does not follow symlinks")
    return stat.S_IMODE(found.st_mode)


def _written(descriptor: int) -> int:
    """The pid in a lock file; 0 where there is none, or where its holder may not have been able to write its own."""
    if not stat.S_ISREG(os.fstat(descriptor).st_mode) or os.fstatvfs(descriptor).f_flag & os.ST_RDONLY:
        return 0
    text = os.pread(descriptor, 20, 0).strip()
    return int(text) if text.isdigit() else 0
