"""Processes that are nobody's child any more."""

import time
from pathlib import Path


def ends(pid: int) -> bool:
    """Is a process over, or will be within 30 s? It is nobody's child any more, so it may linger as a zombie."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.01)
    return False
