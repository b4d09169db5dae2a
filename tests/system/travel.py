"""What tests of time travel do: snapshots, restored planes that have or have not passed what was known, new boots."""

import asyncio
import secrets
from pathlib import Path

from crsyncer.sandbox.resource import NAMESPACE
from tests import planes
from tests.link.link import Link
from tests.system.bed import SideBed

KUBE_SYSTEM_PATH = "^/api/v1/namespaces/kube-system$"
FORBIDDEN = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403, "reason": "Forbidden"}

SLOW = 90.0
"""A statement's bound after a restore (S8.3), in seconds."""


async def snapshot(side: SideBed, directory: Path) -> Path:
    """What a power cut at this moment would leave of a plane."""
    path = directory / f"snapshot-{secrets.token_hex(3)}"
    await asyncio.to_thread(planes.snapshot, side.plane, path)
    return path


async def restore(side: SideBed, path: Path, *, past: int = 0) -> None:
    """Bring a plane back to a snapshot, and let it grow beyond a revision by writes that concern nobody."""
    await asyncio.to_thread(planes.restore, side.plane, path)
    while await revision(side) <= past:
        change = {"metadata": {"annotations": {"example.com/n": secrets.token_hex(4)}}}
        await side.api.patch(NAMESPACE.object("default"), change)


async def revision(side: SideBed) -> int:
    """A cluster's present revision."""
    return int((await side.api.list(side.resource))["metadata"]["resourceVersion"])


def reconnect(link: Link) -> None:
    """Every connection breaks, and can be made again at once."""
    link.cut()
    link.restore()


class BootId:
    """A file that the agent takes for the kernel's."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "boot_id"
        self.flags = ("--boot-id-file", str(self.path))
        self.renew()

    def renew(self) -> None:
        """The machine boots."""
        self.path.write_text(f"{secrets.token_hex(16)}\n")
