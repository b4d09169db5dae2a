"""A door before a shard that is no API server: HAProxy as it is configured, and what robots are answered is chosen."""

import asyncio
import re
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from urllib.request import urlopen

from crsyncer.adapters.retries import until_async
from crsyncer.door.domain.door_values import FrontDoor, Shard
from crsyncer.door.domain.signing_keys import keys_of
from crsyncer.door.door_files import MAP, put_files, put_map
from crsyncer.door.master_socket import MasterSocket
from crsyncer.errors import Unsure
from crsyncer.sandbox.free_ports import free_ports
from crsyncer.sandbox.process import spawn
from tests.adapters.kube_server import make_certificates, write_config
from tests.door.programs import haproxy
from tests.door.tokens import new_key, public_jwk, token_of

_READY = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
_WATCH = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n"


class Shop:
    """A shard that knows endless watches only, the door before it, and robots that watch."""

    def __init__(self, home: Path, robots: int) -> None:
        self.home = home
        self.answers: dict[str, bytes] = {}
        """What the shard answers at a path, whole; elsewhere a watch that never ends."""
        self.directory = home / "door"
        self.directory.mkdir()
        self.issuer = make_certificates(home)
        self.pair = self.issuer.issue("door")
        self.ca = home / "ca.crt"
        self.key = new_key(home / "key")
        self.shard_port, self.port, self.metrics_port = free_ports(3)
        shard = Shard("root", "127.0.0.1", self.shard_port, "localhost", is_verified=False)
        certificate, keys = (
            "".join(each.read_text() for each in self.pair),
            keys_of({"keys": [public_jwk(self.key, "kid")]}),
        )
        bind, exporter = ("127.0.0.1", self.port), ("127.0.0.1", self.metrics_port)
        put_files(FrontDoor(str(self.directory), bind, certificate, (shard,), keys, exporter))
        put_map(self.directory, "".join(f"robot-r{number} root\n" for number in range(robots)))
        self.socket = MasterSocket(home / "master.sock", self.directory / MAP)
        self.stop_haproxy: Callable[[], None] = lambda: None
        self.upstreams: list[asyncio.StreamWriter] = []
        """The connections that the door has made to the shard for robots."""
        self.ended: list[float] = []
        self.watching: set[asyncio.Task[None]] = set()

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """As an API server: it is ready, and its watches never end."""
        is_check = True
        with suppress(OSError, asyncio.IncompleteReadError):
            while head := await reader.readuntil(b"\r\n\r\n"):
                path = head.split()[1].decode().partition("?")[0]
                if is_check and path != "/readyz":
                    is_check = False
                    self.upstreams.append(writer)
                writer.write(self.answers.get(path, _READY if path == "/readyz" else _WATCH))
        writer.close()

    async def watch(self, number: int) -> None:
        """Be a robot until the watch has ended, and note when."""
        reader, writer = await self.connect()
        token = token_of(f"r{number}", self.key, "kid")
        writer.write(f"GET /w HTTP/1.1\r\nHost: door\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
        got = await reader.readuntil(b"{}\r\n")
        assert got.startswith(b"HTTP/1.1 200"), got
        task = asyncio.create_task(self._until_ended(reader, writer))
        self.watching.add(task)

    def kubeconfig(self, robot: str) -> Path:
        """A robot's, which leads to the door."""
        user = {"token": token_of(robot, self.key, "kid")}
        path = self.home / f"{robot}.kubeconfig"
        return write_config(path, server=f"https://localhost:{self.port}", ca=self.ca, user=user)

    async def connections(self) -> int:
        """How many connections robots have made so far."""
        page = await asyncio.to_thread(urlopen, f"http://127.0.0.1:{self.metrics_port}/metrics")
        with page:
            found = re.search(
                r'^haproxy_frontend_connections_total\{proxy="robots"\} (\d+)', page.read().decode(), re.M
            )
        assert found is not None
        return int(found[1])

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection to the door."""
        return await asyncio.open_connection(
            "127.0.0.1", self.port, ssl=ssl.create_default_context(cafile=str(self.ca)), server_hostname="localhost"
        )

    async def _until_ended(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            await reader.read()
        self.ended.append(asyncio.get_running_loop().time())
        writer.close()


@asynccontextmanager
async def open_shop(home: Path, *, robots: int, files: int = 1000) -> AsyncIterator[Shop]:
    """Open one for robots r0, r1 and so on; HAProxy may have so many files open."""
    shop = Shop(home, robots)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*shop.pair)
    server = await asyncio.start_server(shop.answer, "127.0.0.1", shop.shard_port, ssl=context)
    command = [str(haproxy()), "-W", "-S", str(home / "master.sock"), "-f", str(shop.directory / "haproxy.cfg")]
    limited = ["/bin/sh", "-c", f'ulimit -n {files}; exec "$@"', "sh", *command]
    process = spawn(limited, log=home / "haproxy.log", cwd=home)
    shop.stop_haproxy = process.stop

    async def is_open() -> bool:
        with suppress(OSError, Unsure):
            [worker] = await shop.socket.workers()
            return (await shop.socket.servers(worker.pid))["root"].is_up
        return False

    assert await until_async(is_open, seconds=30), process.tail()
    try:
        yield shop
    finally:
        await asyncio.to_thread(process.stop)
        server.close()
        for task in shop.watching:
            task.cancel()
