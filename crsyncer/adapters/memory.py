"""The process' own memory: what glibc's allocator keeps of what was freed, and what the kernel would write of it."""

import ctypes
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


def leave_no_core_file() -> None:
    """Have the kernel write no core file of this process: its memory has credentials and values of Secrets (C5.6)."""
    _, most = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, most))
