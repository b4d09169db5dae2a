"""By what an agent is told from others, and its boots from each other: remembered in its store."""

import hashlib
import secrets

from crsyncer.core.pair.other_agents import NAME
from crsyncer.ports import MetaStore

_BOOT = "boot"
"""Under which name the store keeps the last boot id that could be read."""
_NUMBER = "number"
"""Under which name the store keeps a number that no other store has."""


def present_boot(store: MetaStore, boot_id: str) -> str:
    """This boot of the robot; where it cannot be read ("") there was none since, as far as we know."""
    if boot_id and boot_id != store.get_meta(_BOOT):
        store.put_meta(_BOOT, boot_id)
    return str(store.get_meta(_BOOT) or "")


def distinct_name(store: MetaStore, boot_id: str) -> str:
    """A name that no other agent has: another store has another number, a copy of it runs in another boot."""
    number = store.get_meta(_NUMBER)
    if number is None:
        number = secrets.token_hex(8)
        store.put_meta(_NUMBER, number)
    boot = boot_id or secrets.token_hex(8)
    return NAME + hashlib.blake2b(f"{boot} {number}".encode(), digest_size=4).hexdigest()
