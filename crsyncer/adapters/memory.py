"""The process' own memory: what glibc's allocator keeps of what was freed, and what the kernel would write of it."""

import ctypes
import os
import resource
from contextlib import suppress

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8  # malloc.h
_KEPT_BYTES = 512 << 10
"""More than the 256 KiB that Python takes and gives back for each read of TLS."""


def return_freed_memory() -> None:
    """Have the allocator give freed memory back to the kernel, for a process that runs for months.

    By default glibc keeps an arena per thread and gives back only what exceeds a threshold that it raises itself; the
    event loop and the store's thread free each other's objects, so both arenas fragment and grow. What is taken and
    given back all the time stays: else each read of TLS has the kernel map it anew (9 system calls for each write of
    the fleet controller, counted). Call this before there are threads. Does nothing where the C library has no
    mallopt(3), as on musl and macOS.
    """
    with suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_ARENA_MAX, 1)
        mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)
        mallopt(_M_MMAP_THRESHOLD, _KEPT_BYTES)


def import_aiohttp_without_roots() -> None:
    """Import aiohttp without the machine's root certificates: 2 MiB, and 0.03 s of a start on a fast machine.

    It parses them twice when it is imported, for a TLS context that is used where none is given: we always give one.
    Call this before there are threads. What OpenSSL looks up later, it finds again.
    """
    names = ("SSL_CERT_FILE", "SSL_CERT_DIR")
    before = {name: os.environ[name] for name in names if name in os.environ}
    os.environ.update(dict.fromkeys(names, os.devnull))
    try:
        import aiohttp  # noqa: F401
    finally:
        for name in names:
            del os.environ[name]
        os.environ.update(before)


def leave_no_core_file() -> None:
    """Have the kernel write no core file of this process: its memory has credentials and values of Secrets (C5.6)."""
    _, most = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, most))
