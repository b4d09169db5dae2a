"""Notices that the configuration, a kubeconfig or a credential file has changed."""

import asyncio
import errno
import hashlib
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from contextlib import aclosing
from pathlib import Path
from typing import TypeVar

from watchfiles import awatch

from crsyncer.adapters.files import read_bytes
from crsyncer.errors import ConfigError

T = TypeVar("T")


def attempt(load: Callable[[], T]) -> T | ConfigError:
    """Load again, for a change and for SIGHUP alike. The error is returned: the caller goes on with what it has."""
    try:
        return load()
    except ConfigError as error:
        return error


async def reloads(
    load: Callable[[], T],
    files: Callable[[], Iterable[Path]],
    *,
    debounce: float = 0.3,
    poll: float = 5.0,
) -> AsyncIterator[T | ConfigError]:
    """What `load` makes of the files, each time that the content of one of them has changed.

    `files` is asked again after each change, for a new configuration may name others. Both times are in seconds:
    changes closer together than `debounce` count as one, and whatever inotify does not report (a network file system,
    a directory that was replaced, no inotify watches left) is noticed after `poll`.
    """
    known = _prints(files(), {})
    while True:
        folders = _folders(files())
        async with aclosing(_hints(folders, debounce, poll)) as hints:
            async for _ in hints:
                seen = _prints(files(), known)
                if seen != known:
                    known = seen
                    yield attempt(load)
                if _folders(files()) != folders:
                    break


async def _hints(folders: Iterable[Path], debounce: float, poll: float) -> AsyncGenerator[None, None]:
    """Yield whenever something may have happened in one of the folders, and now and then."""
    try:
        watching = awatch(
            *folders,
            recursive=False,
            # The default filter passes over names that look like an editor's, and kubeconfigs have such names.
            watch_filter=None,
            debounce=int(debounce * 1000),
            rust_timeout=int(poll * 1000),
            yield_on_timeout=True,
            ignore_permission_denied=True,
        )
        async with aclosing(watching):
            async for _ in watching:
                yield
    except (OSError, RuntimeError):
        # No inotify watches are left, or a folder vanished just now: look at the clock instead.
        await asyncio.sleep(poll)
        yield


def _prints(files: Iterable[Path], known: dict[Path, bytes]) -> dict[Path, bytes]:
    """The content of each file as a digest; empty where it cannot be read.

    Where no file descriptor is left, the known digest stands: that is no change of the file.
    """
    prints = {}
    for path in files:
        try:
            prints[path] = hashlib.sha256(read_bytes(path)).digest()
        except OSError as error:
            prints[path] = known.get(path, b"") if error.errno in (errno.EMFILE, errno.ENFILE) else b""
        except ValueError:  # a zero byte in the name
            prints[path] = b""
    return prints


def _folders(files: Iterable[Path]) -> set[Path]:
    """The directories to watch: each file's own, where a ConfigMap or an editor swaps names, and its target's.

    A directory that is not there yet, or may not be looked at, is stood in for by the nearest one above it.
    """
    folders = set()
    for path in files:
        # Path's own is_dir() and resolve() raise where a directory above may not be entered, or a link leads to itself.
        for folder in (path.parent, _target(path).parent):
            while not os.path.isdir(folder):
                folder = folder.parent
            folders.add(folder)
    return folders or {Path("/")}


def _target(path: Path) -> Path:
    try:
        return Path(os.path.realpath(path))
    except ValueError:  # a zero byte in the name
        return path
