"""The state directory: its files, their owner, and the lock. Standard library only, for the CLI reads it too."""

import errno
import fcntl
import os
import shutil
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from crsyncer.errors import DISK_ERRORS, Locked, StoreError

DATABASE = "state.db"
LOCK = "lock"
DIGEST_KEY = "digest.key"
"""The key of the digests of Secrets (C5.6)."""

Mark = tuple[tuple[str, int, int, int], ...]
"""Name, inode, size and time of last change of each file of a database that has any content."""


@dataclass(frozen=True, slots=True)
class Files:
    """A database as the set of files that SQLite makes of it. They are useless, or worse, without each other."""

    main: Path

    @property
    def wal(self) -> Path:
        """The write-ahead log: the newest commits."""
        return self._beside("-wal")

    @property
    def every(self) -> tuple[Path, ...]:
        """All files that may be there, the main one first."""
        return self.main, self.wal, self._beside("-shm"), self.journal

    @property
    def journal(self) -> Path:
        """What undoes a change that was cut off, from before there was a WAL."""
        return self._beside("-journal")

    def named(self, ending: str) -> "Files":
        """Another set beside this one."""
        return Files(self._beside(f".{ending}"))

    def bytes(self) -> int:
        """What they take on disk; raises OSError."""
        return sum(found.st_size for found in self._stats().values())

    def mark(self) -> Mark:
        """What identifies these files and their content; empty where there are none. Raises OSError."""
        stats = {file: found for file, found in self._stats().items() if file in (self.main, self.wal)}
        return tuple((file.name, at.st_ino, at.st_size, at.st_mtime_ns) for file, at in stats.items() if at.st_size)

    def rename(self, to: "Files") -> None:
        """Give the whole set another name, and return when the names are on disk; raises OSError."""
        for old, new in zip(self.every, to.every, strict=True):
            with suppress(FileNotFoundError):
                os.rename(old, new)
        sync_names(self.main.parent)

    def copy(self, to: Path) -> "Files":
        """The copy of the set in another directory; raises OSError."""
        for file in self._stats():
            shutil.copyfile(file, to / file.name)
        return Files(to / self.main.name)

    def remove(self) -> None:
        """Remove whatever is there of them; raises OSError."""
        for file in self.every:
            file.unlink(missing_ok=True)

    def _beside(self, suffix: str) -> Path:
        return self.main.with_name(self.main.name + suffix)

    def _stats(self) -> dict[Path, os.stat_result]:
        return {file: file.stat() for file in self.every if file.exists()}


class Lock:
    """Ownership of a state directory by the one process that writes to it, until it ends or calls `release` (S6.5).

    The kernel drops the lock when the holder dies, however it dies, so there is no stale lock to clean up. Who only
    reads holds nothing: `peek`.
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
            self._take(self._open(self.path, os.O_RDWR | os.O_CREAT), fcntl.LOCK_EX)
        except StoreError as error:
            if not refuses(error.__cause__):
                raise
            self._take(self._open_existing(), fcntl.LOCK_EX)
            return
        # On a full disk the lock works, but holds no pid.
        with suppress(OSError):
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)

    def renew(self) -> None:
        """Take the directory as it is now, once its disk can be written; raises StoreError before, or Locked."""
        create_empty(self.path)
        self.release()
        self.acquire()

    def peek(self) -> None:
        """Raise Locked while an agent uses the directory; holds nothing and writes nothing.

        An agent that starts at this very moment tries again (`flock(2)` has no mere question).
        """
        with suppress(FileNotFoundError):
            self._take(self._open_existing(), fcntl.LOCK_SH)
        self.release()

    def release(self) -> None:
        """Give the directory up; does nothing when it is not ours."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _open_existing(self) -> int:
        try:
            return self._open(self.path, os.O_RDONLY)
        except FileNotFoundError:
            return self._open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY)

    def _open(self, path: Path, flags: int) -> int:
        try:
            return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise StoreError(
                f"cannot open the lock file {path}: {error.strerror}",
                hint="the state directory must be writable for the user that runs crsyncer, and hold no symlinks",
            ) from error

    def _take(self, descriptor: int, how: int) -> None:
        try:
            fcntl.flock(descriptor, how | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = _holder(descriptor)
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


def prepare(directory: Path) -> Files:
    """Make sure that the state is ours alone to read, and return the files of the database.

    Creates the directory with mode 0700; SQLite takes the mode of -wal and -shm from the database. Files of ours that
    others may read are put right: a volume with `fsGroup` widens the modes of everything on it, each time that its pod
    starts (source: kubernetes.io, "Configure volume permission and ownership change policy for Pods"). Raises
    StoreError for symlinks, for what belongs to another user, and for modes that cannot be put right. What a failing
    or read-only disk does not show, or change, is left as it is.
    """
    try:
        new = [folder for folder in (directory, *directory.parents) if not folder.exists()]
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        # SQLite sees to the names of its files, but a power cut may take the whole directory.
        for folder in new:
            sync_names(folder.parent)
    except OSError as error:
        if error.errno != errno.EIO:
            raise StoreError(
                f"cannot create {directory}: {error.strerror}", hint="create it, or choose another --state-dir"
            ) from error
    for path, mode in check(directory, user=os.geteuid()).items():
        try:
            path.chmod(mode)
        except OSError as error:
            if not refuses(error):
                raise StoreError(
                    f"{path} may be read by others, and that cannot be changed: {error.strerror}",
                    hint=f"chmod {mode:o} {path}",
                ) from error
    return Files(directory / DATABASE)


def check(directory: Path, *, user: int) -> dict[Path, int]:
    """Which of the directory and its files others may read, and the mode that each should have; changes nothing.

    Raises StoreError for what is no file of the user with this uid. The directory itself may be root's: that of a
    volume always is, and root may do everything anyway. A directory that is not the agent's alone keeps its mode, and
    is refused where others may write to it.
    """
    wide: dict[Path, int] = {}
    aside: list[Path] = []
    with suppress(OSError):
        aside = list(directory.glob(f"{DATABASE}.*"))
    for path in (directory, directory / LOCK, directory / DIGEST_KEY, *Files(directory / DATABASE).every, *aside):
        try:
            found = path.lstat()
        except FileNotFoundError:
            continue
        except OSError as error:
            if refuses(error):
                continue
            raise StoreError(f"cannot read {path}: {error.strerror}", hint="run as the user that owns it") from error
        if path == directory and stat.S_ISLNK(found.st_mode):
            raise StoreError(f"{directory} is a symlink", hint="give the directory itself as --state-dir")
        if path != directory and not stat.S_ISREG(found.st_mode):
            raise StoreError(f"{path} is not a regular file", hint="move it away; crsyncer does not follow symlinks")
        if found.st_uid != user:
            if path == directory and found.st_uid == 0:
                continue
            raise StoreError(
                f"{path} belongs to another user (uid {found.st_uid}, not {user})",
                hint=f"chown -R {user} {directory}, or run crsyncer as the user that it belongs to",
            )
        if path == directory and found.st_mode & 0o077 and _is_shared(directory):
            if found.st_mode & 0o022:
                raise StoreError(
                    f"others may write to {directory}, which holds more than the state",
                    hint="choose a --state-dir of the agent's own, such as a new directory in it",
                )
            continue
        if found.st_mode & 0o077:
            wide[path] = 0o700 if path == directory else 0o600
    return wide


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


def _is_shared(directory: Path) -> bool:
    """Whether it holds what is not the agent's, such as /tmp does; a volume may have a lost+found."""
    ours = (LOCK, DATABASE, DIGEST_KEY, "crsyncer.sock", "lost+found")
    with suppress(OSError):
        return not all(name.startswith(ours) for name in os.listdir(directory))
    return False


def _holder(descriptor: int) -> int:
    """The pid in a lock file that somebody holds; 0 where there is none, or where it cannot be the holder's.

    A holder may not have been able to write its own: what is there then is that of an agent that has ended.
    """
    if not stat.S_ISREG(os.fstat(descriptor).st_mode) or os.fstatvfs(descriptor).f_flag & os.ST_RDONLY:
        return 0
    text = os.pread(descriptor, 20, 0).strip()
    pid = int(text) if text.isdigit() else 0
    try:
        os.kill(pid, 0)  # no signal: only asks whether there is such a process
    except PermissionError:
        return pid
    except (OSError, OverflowError):
        return 0
    return pid
