"""The machine that we run on, as far as it matters: has it booted since? (S8.4)"""

import logging
from pathlib import Path

from crsyncer.adapters.files import read_bytes

_log = logging.getLogger(__name__)
_LONGEST = 64


def read_boot_id(path: Path) -> str:
    """What names this boot; "" where it cannot be read. Linux makes a random UUID at each boot (proc(5))."""
    try:
        return read_bytes(path, _LONGEST).decode(errors="replace").strip()
    except OSError as error:
        _log.warning("cannot read the boot id, so a boot goes unnoticed: %s", error)
        return ""
