"""What tests of the state directory, and of the disk that it is on, share."""

import contextlib
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from crsyncer.adapters.store.offline import OfflineState, read_offline
from crsyncer.errors import StoreError
from tests.system.bed import Bed, eventually, writes

T = TypeVar("T")


async def quiet(bed: Bed) -> None:
    """Wait until the agent has had nothing to write down for a while, and all it knows is on disk."""

    async def check() -> bool:
        newest = max(file.stat().st_mtime for file in bed.agent.state_dir.glob("state.db*"))
        written = _copy(bed, read_offline)
        if written is None or time.time() - newest <= 0.5:
            return False
        return _tells_all(written, await bed.agent.ask())

    await eventually(check, what="the store is at rest")


def _copy(bed: Bed, read: Callable[[Path], T]) -> T | None:
    """What is read of the store as it is on disk at this moment; None when a write tore the copy."""
    with TemporaryDirectory() as directory, contextlib.suppress(StoreError):
        for file in bed.agent.state_dir.glob("state.db*"):
            shutil.copy(file, directory)
        return read(Path(directory))
    return None


def _tells_all(written: OfflineState, status: dict[str, Any] | None) -> bool:
    """Whether what was read of a store is what the agent says."""
    waiting = sum(len(kind.pending) for kind in written.kinds.values())
    if status is None or waiting != status["outbox"]["depth"]:
        return False
    cursors = {(kind["resource"], *each) for kind in status["kinds"] for each in kind["cursor"].items() if each[1]}
    return cursors == {
        (resource, str(side), cursor.resource_version)
        for resource, kind in written.kinds.items()
        for (side, _), cursor in kind.cursors.items()
    }


def remove_database(state_dir: Path) -> None:
    """The store is gone; the agent must not run."""
    for file in state_dir.glob("state.db*"):
        file.unlink()


async def everything_travels(bed: Bed, mark: str) -> None:
    """A spec, a status, a new object and a deletion, each to the other side."""
    changed = await bed.cloud.patch("g00", {"spec": {"mark": mark}})
    await bed.robot.shows("g00", spec=changed["spec"])
    await bed.robot.set_status("g01", {"mark": mark})
    await bed.cloud.shows("g01", status={"mark": mark})
    await bed.cloud.create(mark, spec={"mark": mark})
    await bed.robot.shows(mark)
    await bed.cloud.delete(mark)
    await bed.robot.gone(mark)


def degraded(status: dict[str, Any], state_dir: Path) -> bool:
    """Whether the store is said to be in trouble, and where it is."""
    return any(reason["code"] == "StateDegraded" and str(state_dir) in reason["hint"] for reason in status["reasons"])


async def killed_it_resumes(bed: Bed) -> None:
    """What is on disk is all that was known: after a kill -9 both watches go on, and nothing is written again."""
    async with bed.stopped(kill=True):
        for side in (bed.cloud, bed.robot):
            side.link.clear()
    await bed.resumed("cloud", "robot")
    await bed.settled()
    for side in (bed.cloud, bed.robot):
        assert writes(side.link) == []


async def recovered(bed: Bed) -> None:
    """Wait until the disk has taken everything, see that all still travels, and that a kill -9 finds it there."""
    await bed.agent.until(lambda status: status["health"] == "healthy" and status["store"]["state"] == "ok")
    await everything_travels(bed, "three")
    await bed.settled()
    await quiet(bed)
    await killed_it_resumes(bed)
