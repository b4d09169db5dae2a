"""The process' own memory: what glibc's allocator keeps of what was freed."""

import ctypes
from contextlib import suppress

_M_TRIM_THRESHOLD, _M_ARENA_MAX = -1, -8  # malloc.h
_TRIM_BYTES = 64 << 10


def return_freed_memory() -> None:
    """Have the allocator give freed memory back to the kernel, for a process that runs for months.

    By default glibc keeps an arena per thread and gives back only what exceeds a threshold that it raises itself; the
    event loop and the store's thread free each other's objects, so both arenas fragment and grow. Call this before
    there are threads. Does nothing where the C library has no mallopt(3), as on musl and macOS.
    """
    with suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_ARENA_MAX, 1)
        mallopt(_M_TRIM_THRESHOLD, _TRIM_BYTES)
