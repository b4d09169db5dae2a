"""A fleet behind a door of which parts fail: nobody loses anything, and how soon all are back (G4, G5)."""

import asyncio
import os
import shutil
import signal
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import aiohttp
import pytest
from kubernetes.aio.client import ApiException

from crsyncer.door.domain.robots_map import changes
from crsyncer.door.door_files import MAP
from crsyncer.door.master_socket import MasterSocket
from crsyncer.sandbox.cluster import Cluster, connected
from crsyncer.sandbox.stories.fleet_cast import NAVIGATIONS, replica
from tests import planes
from tests.door.shard_bed import ShardBed, shard_bed
from tests.door.tokens import new_key

pytestmark = pytest.mark.nightly("everything fails, one after the other")
HOMES = {"amr-1": "a", "amr-2": "a", "amr-3": "b", "amr-4": "b"}


@dataclass(slots=True)
class Recovery:
    """The faults, and how long it took until an edit at each robot's shard was on the robot again."""

    bed: ShardBed
    rows: list[tuple[str, str, float]] = field(default_factory=list)
    _edits: int = 0

    async def back(self, fault: str, since: str, began: float) -> None:
        """All robots get an edit again; nobody's object was replaced or written meanwhile."""
        self._edits += 1
        await self.bed.probe(str(self._edits))
        await self.bed.until_release(str(self._edits), "probe")
        self.rows.append((fault, since, time.monotonic() - began))

    def table(self) -> str:
        """The rows, for people."""
        lines = [f"{fault:<34} {since:<34} {seconds:6.1f} s" for fault, since, seconds in self.rows]
        return "\n".join(("", f"{'fault':<34} {'until all are back, since':<34}     time", *lines))


@pytest.fixture
async def bed() -> AsyncIterator[ShardBed]:
    async with shard_bed(HOMES) as bed:
        yield bed


async def test_G4_G5_no_copy_is_replaced_or_written_whatever_fails_and_all_come_back(
    bed: ShardBed, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recovery = Recovery(bed)
    socket = MasterSocket(bed.door.socket, bed.door.directory / MAP)
    await recovery.back("nothing", "the edit", time.monotonic())
    before = await bed.versions()
    snapshot = tmp_path / "snapshot"
    await asyncio.to_thread(planes.snapshot, bed.shard("a"), snapshot)
    try:
        for fault in (haproxy_killed, haproxy_reloaded, upkeep_killed, shard_killed, shard_frozen, root_away):
            await fault(recovery, socket)
            assert await bed.versions() == before, fault.__name__
            await bed.until_healthy()
            await bed.until_kept()
        for fault in (map_garbage, key_rotated):
            await fault(recovery, socket)
            assert await bed.versions() == before, fault.__name__
            await bed.until_healthy()
        await shard_restored(recovery, snapshot)
        assert await bed.versions() == before
        await bed.until_healthy(held={"amr-1": 1})
    finally:
        with capsys.disabled():
            print(recovery.table())


async def haproxy_killed(recovery: Recovery, socket: MasterSocket) -> None:
    """SIGKILL for the master and its workers, and a start."""
    door = recovery.bed.door
    workers = [each.pid for each in await socket.workers()]
    await door.haproxy.kill()
    for pid in workers:
        os.kill(pid, signal.SIGKILL)
    door.haproxy.start()
    await recovery.back("HAProxy killed", "its start", time.monotonic())


async def haproxy_reloaded(recovery: Recovery, socket: MasterSocket) -> None:
    """A reload, as `door run` asks for."""
    began = time.monotonic()
    await socket.reload()
    await recovery.back("HAProxy reloaded", "the reload", began)


async def upkeep_killed(recovery: Recovery, _: MasterSocket) -> None:
    """SIGKILL for `door run`."""
    began = time.monotonic()
    await recovery.bed.door.upkeep.kill()
    await recovery.back("door run killed", "its end", began)
    began = time.monotonic()
    recovery.bed.door.upkeep.start()
    await recovery.bed.until_kept()
    await recovery.back("door run started", "its start", began)


async def shard_killed(recovery: Recovery, _: MasterSocket) -> None:
    """SIGKILL for a shard's API server and etcd, and a start once the door has seen it."""
    bed = recovery.bed
    await asyncio.to_thread(bed.shard("a").stop, graceful=False)
    await bed.until_streams("a", set())
    await asyncio.to_thread(bed.shard("a").start)
    await recovery.back("shard killed", "it is ready again", time.monotonic())


async def shard_frozen(recovery: Recovery, _: MasterSocket) -> None:
    """SIGSTOP for a shard's API server, and SIGCONT once the door has seen it."""
    bed, began = recovery.bed, time.monotonic()
    planes.pause(bed.shard("a"))
    await bed.until_streams("a", set())
    recovery.rows.append(("shard frozen: streams end", "it stands still", time.monotonic() - began))
    planes.resume(bed.shard("a"))
    await recovery.back("shard frozen", "it goes on", time.monotonic())


async def root_away(recovery: Recovery, _: MasterSocket) -> None:
    """SIGKILL for the root: robots do not notice; a start."""
    bed, began = recovery.bed, time.monotonic()
    await asyncio.to_thread(bed.planes.cloud.stop, graceful=False)
    await recovery.back("root away", "its end", began)
    await asyncio.to_thread(bed.planes.cloud.start)
    began = time.monotonic()
    await bed.until_kept()
    await recovery.back("root back: the door finds it", "it is ready again", began)


async def map_garbage(recovery: Recovery, socket: MasterSocket) -> None:
    """The file is garbage, and HAProxy leads every robot to the other shard."""
    began = time.monotonic()
    (recovery.bed.door.directory / MAP).write_text("\0garbage\n")
    [pid, *_] = [each.pid for each in await socket.workers()]
    right = await socket.map_entries(pid)
    wrong = {name: "a" if shard == "b" else "b" for name, shard in right.items()}
    await socket.do(changes(right, wrong, str(recovery.bed.door.directory / MAP)), pid=pid)

    async def is_right() -> bool:
        return await socket.map_entries(pid) == right

    await recovery.bed.eventually(is_right)
    await recovery.back("map garbage", "it is garbage", began)


async def key_rotated(recovery: Recovery, _: MasterSocket) -> None:
    """Another key signs tokens from now on, and robots get new ones."""
    bed, plane = recovery.bed, recovery.bed.shard("a")
    other = new_key(bed.planes.directory / "other.key")
    plane.flags = (
        f"--service-account-key-file={plane.key_file}",
        f"--service-account-key-file={other}",
        f"--service-account-signing-key-file={other}",
    )
    await asyncio.to_thread(plane.restart, "apiserver")
    began = time.monotonic()
    names = [name for name, home in HOMES.items() if home == "a"]
    for name in names:
        await bed.door.renew_token(bed.clusters["a"], name)
    for name in names:
        async with connected(bed.door.robot_kubeconfig(name)) as robot:
            await bed.eventually(partial(is_let_in, robot, name))
    await recovery.back("key rotated", "robots have new tokens", began)


async def is_let_in(robot: Cluster, name: str) -> bool:
    """Whether the door and the shard take a robot's token: robots may list, and a GET is 403 and not 401."""
    try:
        return await robot.find(NAVIGATIONS, replica(name)) is not None
    except ApiException as error:
        return bool(error.status == 403)
    except (aiohttp.ClientError, TimeoutError):
        return False


async def shard_restored(recovery: Recovery, snapshot: Path) -> None:
    """A shard goes back to an older state, which knows one object fewer."""
    bed = recovery.bed
    await bed.write("amr-1", "a", "late", "1")

    async def has_it() -> bool:
        return await bed.copy("amr-1", "late") is not None

    await bed.eventually(has_it)
    late = await bed.copy("amr-1", "late")
    await asyncio.to_thread(planes.restore, bed.shard("a"), snapshot)
    await recovery.back("shard restored to an older state", "it is ready again", time.monotonic())
    assert await bed.copy("amr-1", "late") == late
    shutil.rmtree(snapshot)
