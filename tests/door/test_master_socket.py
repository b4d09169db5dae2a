"""HAProxy itself, without any API server: its map, its processes, and the sockets that are not what they should be."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest

from crsyncer.adapters.retries import until_async
from crsyncer.door.domain.door_values import FrontDoor, Shard
from crsyncer.door.domain.lost_shards import Silence
from crsyncer.door.domain.robots_map import changes, map_text
from crsyncer.door.domain.signing_keys import keys_of
from crsyncer.door.door_files import MAP, put_files, put_map
from crsyncer.door.master_socket import MasterSocket
from crsyncer.door.upkeep import Upkeep
from crsyncer.errors import SyncError, Unsure
from crsyncer.sandbox.free_ports import free_ports
from crsyncer.sandbox.process import Process, spawn
from tests.adapters.kube_server import make_certificates
from tests.door.programs import haproxy
from tests.door.tokens import new_key, public_jwk

SHARDS = ("root", "b")


class Running:
    """A HAProxy whose shards are nowhere."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.directory = home / "door"
        self.directory.mkdir(parents=True)
        certificate = "".join(each.read_text() for each in make_certificates(home).issue("door"))
        keys = keys_of({"keys": [public_jwk(new_key(home / "key"), "kid")]})
        shards = tuple(Shard(name, "127.0.0.1", port, "x") for name, port in zip(SHARDS, free_ports(2), strict=True))
        put_files(FrontDoor(str(self.directory), ("127.0.0.1", free_ports(1)[0]), certificate, shards, keys))
        put_map(self.directory, "robot-r1 root\n")
        self.process: Process | None = None

    @property
    def socket(self) -> Path:
        return self.home / "master.sock"

    async def start(self) -> MasterSocket:
        """Start it, and return when it answers."""
        command = [str(haproxy()), "-W", "-S", str(self.socket), "-f", str(self.directory / "haproxy.cfg")]
        self.process = spawn(command, log=self.home / "haproxy.log", cwd=self.home)
        socket = MasterSocket(self.socket, self.directory / MAP)

        async def serves() -> bool:
            with suppress(Unsure):
                return bool(await socket.map_entries(await newest(socket)))
            return False

        assert await until_async(serves, seconds=60), self.process.tail()
        return socket


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[Running]:
    running = Running(tmp_path / "one")
    yield running
    if running.process is not None:
        running.process.stop()


async def newest(socket: MasterSocket) -> int:
    return (await socket.workers())[0].pid


async def wait_kept(upkeep: Upkeep, socket: MasterSocket, wanted: dict[str, str]) -> None:
    """Look after HAProxy, as `door run` does each second, until its map is as wanted: it may reset a connection."""

    async def is_kept() -> bool:
        await upkeep.once()
        with suppress(Unsure):
            return upkeep.seen.trouble is None and await socket.map_entries(await newest(socket)) == wanted
        return False

    assert await until_async(is_kept, seconds=60), upkeep.seen.trouble


async def test_G4_1_a_map_of_100_000_robots_is_kept(running: Running):
    routes = {f"robot-r{number}": SHARDS[number % 2] for number in range(100_000)}
    put_map(running.directory, map_text(routes))
    socket = await running.start()
    wanted = routes | {"robot-r7": "root", "robot-new": "b"}
    del wanted["robot-r8"]
    upkeep = Upkeep(socket, running.directory, wanted, silence=Silence(), wrote=lambda _: None, ended=lambda _: None)
    await wait_kept(upkeep, socket, wanted)
    assert (running.directory / MAP).read_text() == map_text(wanted)


async def test_G4_1_a_running_map_that_is_all_wrong_becomes_the_wanted_one(running: Running):
    put_map(running.directory, map_text({f"robot-x{number}": "b" for number in range(5_000)}))
    socket = await running.start()
    wanted = {f"robot-r{number}": SHARDS[number % 2] for number in range(5_000)}
    upkeep = Upkeep(socket, running.directory, wanted, silence=Silence(), wrote=lambda _: None, ended=lambda _: None)
    await wait_kept(upkeep, socket, wanted)


async def test_G4_1_where_no_file_is_left_the_map_of_haproxy_holds_until_the_robots_are_known(running: Running):
    socket, file, kept = await running.start(), running.directory / MAP, {"robot-r1": "root"}
    file.unlink()
    upkeep = Upkeep(socket, running.directory, {}, silence=Silence(), wrote=lambda _: None, ended=lambda _: None)
    await wait_kept(upkeep, socket, kept)
    await wait_kept(upkeep, socket, kept)
    assert (upkeep.wanted, upkeep.seen.map_is_written, file.read_text()) == (kept, True, "robot-r1 root\n")
    upkeep.want({})
    await wait_kept(upkeep, socket, {})
    assert file.read_text() == ""


async def test_G4_1_a_door_without_any_map_is_not_ready_until_the_robots_are_known(running: Running):
    (running.directory / MAP).unlink()
    socket = MasterSocket(running.socket, running.directory / MAP)
    upkeep = Upkeep(socket, running.directory, {}, silence=Silence(), wrote=lambda _: None, ended=lambda _: None)
    await upkeep.once()
    assert ((running.directory / MAP).read_text(), upkeep.seen.map_is_written) == ("", False)
    upkeep.want({})
    await upkeep.once()
    assert upkeep.seen.map_is_written


async def test_G4_1_a_map_that_somebody_else_has_changed_is_put_right(running: Running):
    socket = await running.start()
    wanted = {"robot-r1": "root", "robot-r2": "b"}
    upkeep = Upkeep(socket, running.directory, wanted, silence=Silence(), wrote=lambda _: None, ended=lambda _: None)
    await wait_kept(upkeep, socket, wanted)
    wrong = {"robot-r1": "b", "robot-r3": "root"}
    await socket.do(changes(wanted, wrong, str(running.directory / MAP)), pid=await newest(socket))
    await wait_kept(upkeep, socket, wanted)


async def test_G4_1_a_reload_begins_with_the_file_and_the_old_workers_map_is_kept_too(running: Running):
    socket = await running.start()
    before = await newest(socket)
    put_map(running.directory, "robot-r2 b\n")
    await socket.reload()
    now = await newest(socket)
    assert now != before
    assert await socket.map_entries(now) == {"robot-r2": "b"}
    await socket.do(
        changes({"robot-r2": "b"}, {"robot-r2": "root", "robot-r3": "b"}, str(running.directory / MAP)), pid=now
    )
    assert await socket.map_entries(now) == {"robot-r2": "root", "robot-r3": "b"}
    assert set(await socket.servers(now)) == set(SHARDS)
    assert await socket.streams(now) == ()
    assert await socket.refused_tokens(now) == 0


async def test_G4_1_where_the_maps_file_cannot_be_written_haproxy_has_the_map_and_its_robots_count_at_both_shards(
    running: Running,
):
    socket = await running.start()
    results: list[str] = []
    upkeep = Upkeep(
        socket, running.directory, {"robot-r1": "b"}, silence=Silence(), wrote=results.append, ended=lambda _: None
    )
    file = running.directory / MAP
    file.rename(running.home / "aside")
    file.mkdir()
    await wait_kept(upkeep, socket, {"robot-r1": "b"})
    assert "cannot be written" in str(upkeep.seen.unwritten)
    assert {"done", "failed"} <= set(results)
    file.rmdir()
    (running.home / "aside").rename(file)
    assert (await upkeep.at_shard("root"))["routed"] == ["r1"], "a restart of HAProxy would lead it there"
    await wait_kept(upkeep, socket, {"robot-r1": "b"})
    assert upkeep.seen.unwritten is None
    assert file.read_text() == "robot-r1 b\n"
    assert (await upkeep.at_shard("root"))["routed"] == []


async def test_a_configuration_that_haproxy_refuses_is_told_at_once_and_the_last_one_serves(running: Running):
    socket = await running.start()
    file, before = running.directory / "haproxy.cfg", await newest(socket)
    good = file.read_text()
    for _ in range(2):
        file.write_text("garbage\n")
        with pytest.raises(SyncError, match="HAProxy has not loaded its new configuration") as caught:
            await socket.reload()
        assert not isinstance(caught.value, Unsure)
        assert await newest(socket) == before
    file.write_text(good)
    await socket.reload()
    assert await newest(socket) != before


async def test_a_socket_of_another_haproxy_is_told_and_its_map_is_left_alone(running: Running, tmp_path: Path):
    theirs = await running.start()
    ours = tmp_path / "ours"
    ours.mkdir()
    socket = MasterSocket(running.socket, ours / MAP)
    upkeep = Upkeep(socket, ours, {"robot-x": "root"}, silence=Silence(), wrote=lambda _: None, ended=lambda _: None)
    await upkeep.once()
    assert "does not use" in str(upkeep.seen.trouble)
    assert await theirs.map_entries(await newest(theirs)) == {"robot-r1": "root"}


async def test_a_socket_that_is_not_there_or_no_haproxy_is_one_line(tmp_path: Path):
    with pytest.raises(Unsure, match=r"HAProxy does not answer at .* \(no such file or directory\)"):
        await MasterSocket(tmp_path / "none.sock", tmp_path / MAP).workers()

    async def hello(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 hello\n")
        await reader.read()
        writer.close()

    server = await asyncio.start_unix_server(hello, tmp_path / "smtp.sock")
    try:
        with pytest.raises(Unsure, match="no worker of HAProxy runs"):
            await MasterSocket(tmp_path / "smtp.sock", tmp_path / MAP).workers()
    finally:
        server.close()


async def test_of_a_worker_that_has_ended_nothing_is_known(running: Running):
    """HAProxy says so and closes the connection, which may be a reset that takes the words away."""
    socket = await running.start()
    with pytest.raises(Unsure, match=r"worker 1 of HAProxy has ended|HAProxy does not answer at"):
        await socket.map_entries(1)


async def test_a_worker_that_has_ended_is_told_in_haproxys_words(tmp_path: Path):
    async def gone(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.write(b"Can't find the target process of PID 1.\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_unix_server(gone, tmp_path / "gone.sock")
    try:
        with pytest.raises(Unsure, match="worker 1 of HAProxy has ended"):
            await MasterSocket(tmp_path / "gone.sock", tmp_path / MAP).map_entries(1)
    finally:
        server.close()
