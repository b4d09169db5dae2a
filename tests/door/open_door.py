"""A front door that stands in a directory: HAProxy with what `crsyncer door config` wrote, and whoever knocks at it."""

import json
import os
import socket
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from crsyncer.adapters.retries import until
from crsyncer.sandbox.free_ports import free_ports
from crsyncer.sandbox.process import Process, spawn
from tests.adapters.kube_server import Certificates, make_certificates
from tests.delivery.command_line import CLI, crsyncer, environment
from tests.door.programs import haproxy

_PATIENCE = 60.0
"""How long is waited for what must come: machines stand still now and then."""
_LINGER = 0.2
"""How long is looked whether the door closes a connection of which it said nothing."""


@dataclass(slots=True)
class Told:
    """What came back on a connection: the whole of it, and whether the door closed it."""

    text: str
    closed: bool

    @property
    def status(self) -> int:
        """Of the first answer; 0 where there was none."""
        words = self.text.split(maxsplit=2)
        return int(words[1]) if len(words) > 1 and words[1].isdigit() else 0


@dataclass(slots=True)
class OpenDoor:
    """The directory of a door, with what its commands are given."""

    home: Path
    kubeconfig: Path
    shards: Mapping[str, Path] = field(default_factory=dict)
    port: int = field(default_factory=lambda: free_ports(1)[0])
    haproxy: Process | None = None
    _certificates: Certificates | None = None

    def __post_init__(self) -> None:
        self.directory.mkdir(parents=True)
        self.renew_certificate()

    @property
    def directory(self) -> Path:
        """HAProxy's."""
        return self.home / "door"

    @property
    def socket(self) -> Path:
        """HAProxy's master socket."""
        return self.home / "master.sock"

    @property
    def certificate(self) -> Path:
        """The door's certificate with its key."""
        return self.home / "certificate.pem"

    @property
    def ca(self) -> Path:
        """Whom robots trust."""
        return self.home / "issuer/ca.crt"

    def renew_certificate(self, *, days: int = 2) -> None:
        """Issue another certificate; the first time also make the issuer."""
        issuer = self.home / "issuer"
        if not issuer.exists():
            issuer.mkdir()
            self._certificates = make_certificates(issuer)
        assert self._certificates is not None
        self._put_certificate(*self._certificates.issue("door", days=days))

    def renew_certificate_for(self, seconds: int) -> None:
        """Issue one that expires so soon."""
        assert self._certificates is not None
        ends = datetime.now(UTC) + timedelta(seconds=seconds)
        self._put_certificate(*self._certificates.issue_between("soon", "20200101000000Z", f"{ends:%Y%m%d%H%M%S}Z"))

    def _put_certificate(self, certificate: Path, key: Path) -> None:
        new = self.certificate.with_suffix(".new")
        new.write_text(certificate.read_text() + key.read_text())
        new.replace(self.certificate)

    @property
    def flags(self) -> list[str | Path]:
        """What every command of the door is given."""
        given: dict[str, str | Path] = {
            "--cloud-kubeconfig": self.kubeconfig,
            "--directory": self.directory,
            "--socket": self.socket,
        }
        shards = [word for name, file in self.shards.items() for word in ("--shard", f"{name}={file}")]
        return [*(word for pair in given.items() for word in pair), *shards]

    @property
    def making(self) -> list[str | Path]:
        """What those that make the configuration are given on top."""
        return [*self.flags, "--bind", f"127.0.0.1:{self.port}", "--certificate", self.certificate]

    def command(self, name: str, *arguments: str | Path):
        """Run a command of the door."""
        flags = self.making if name == "config" else self.flags
        return crsyncer("door", name, *flags, *arguments, PATH=f"{haproxy().parent}:{os.environ['PATH']}")

    def configure(self) -> str:
        """`door config`, which must succeed."""
        done = self.command("config")
        assert done.returncode == 0, done.stderr
        return str(done.stdout)

    def robot_kubeconfig(self, path: Path, *, token: str) -> Path:
        """A kubeconfig of a robot, which leads to the door."""
        cluster = {"server": f"https://localhost:{self.port}", "certificate-authority": str(self.ca)}
        content = {
            "current-context": "c",
            "clusters": [{"name": "c", "cluster": cluster}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "users": [{"name": "u", "user": {"token": token}}],
        }
        path.write_text(json.dumps(content))
        path.chmod(0o600)
        return path

    def start(self) -> None:
        """Start HAProxy as the documents say."""
        command = [str(haproxy()), "-W", "-S", str(self.socket), "-f", str(self.directory / "haproxy.cfg")]
        self.haproxy = spawn(command, log=self.home / "haproxy.log", cwd=self.home)

    def until_open(self, path: str, token: str) -> None:
        """Wait until the door answers this with 200."""

        def is_open() -> bool:
            try:
                return bool(self.ask(path, token).status == 200)
            except OSError:
                return False

        assert until(is_open, seconds=_PATIENCE), self.haproxy and self.haproxy.tail()

    def stop(self) -> None:
        """End HAProxy, master and workers."""
        if self.haproxy is not None:
            self.haproxy.stop()

    def connect(self) -> ssl.SSLSocket:
        """A connection with TLS."""
        context = ssl.create_default_context(cafile=str(self.ca))
        return context.wrap_socket(socket.create_connection(("127.0.0.1", self.port)), server_hostname="localhost")

    def shows_certificate(self) -> bool:
        """Whether new connections are shown the certificate that was issued last."""
        with self.connect() as channel:
            shown = channel.getpeercert(binary_form=True)
        return shown is not None and ssl.DER_cert_to_PEM_cert(shown) in self.certificate.read_text()

    def send(self, *pieces: bytes, ends: Sequence[str] = (), seconds: float = _PATIENCE) -> Told:
        """Send bytes and read what comes back, until the door closes or the answer ends.

        An answer ends with its Content-Length or last chunk, or instead with one of the texts in `ends`.
        """
        got, closed = b"", False
        with self.connect() as channel:
            channel.settimeout(seconds)
            with suppress(TimeoutError, ConnectionError, ssl.SSLError, BrokenPipeError):
                for piece in pieces:
                    channel.sendall(piece)
            with suppress(TimeoutError, ssl.SSLError):
                try:
                    while not any(each.encode() in got for each in ends) if ends else not _is_whole(got):
                        more = channel.recv(65536)
                        if not more:
                            closed = True
                            break
                        got += more
                    channel.settimeout(seconds if b"connection: close" in got.lower() else _LINGER)
                    closed = closed or not channel.recv(1)
                except ConnectionError:
                    closed = True
        return Told(got.decode(errors="replace"), closed)

    def ask(
        self,
        path: str,
        token: str | None,
        *,
        method: str = "GET",
        headers: Sequence[str] = (),
        body: bytes = b"",
        seconds: float = _PATIENCE,
    ) -> Told:
        """One request, byte by byte as given; waits out 429 of the API server, which has no Status of the door's."""
        lines = [f"{method} {path} HTTP/1.1", "Host: door"]
        lines += [f"Authorization: Bearer {token}"] if token is not None else []
        lines += [f"Content-Length: {len(body)}", "Content-Type: application/json"] if body else []
        data = "\r\n".join([*lines, *headers, "", ""]).encode() + body
        told = self.send(data, seconds=seconds)
        deadline = time.monotonic() + _PATIENCE
        while told.status == 429 and "requests in progress" not in told.text and time.monotonic() < deadline:
            told = self.send(data, seconds=seconds)
        return told


def _is_whole(got: bytes) -> bool:
    head, gap, body = got.partition(b"\r\n\r\n")
    if not gap:
        return False
    headers = {
        name.strip().lower(): value.strip()
        for name, _, value in (line.partition(b":") for line in head.split(b"\r\n")[1:])
    }
    if b"content-length" in headers:
        return len(body) >= int(headers[b"content-length"])
    return body.endswith(b"0\r\n\r\n") if headers.get(b"transfer-encoding") == b"chunked" else False


class Kept:
    """`crsyncer door run` beside an open door."""

    def __init__(self, door: OpenDoor, *arguments: str) -> None:
        self.port = free_ports(1)[0]
        self.log = door.home / "run.log"
        command = [*CLI, "door", "run", *map(str, door.making), "--listen", f"127.0.0.1:{self.port}", *arguments]
        variables = environment(PATH=f"{haproxy().parent}:{os.environ['PATH']}")
        self.process = spawn(command, log=self.log, cwd=door.home, env=variables)

    def page(self, path: str) -> tuple[int, str]:
        """What it says of itself: the status, 0 where it does not answer, and the text."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=10) as reply:
                return reply.status, reply.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def wait_ready(self) -> None:
        """Wait until the map is written and HAProxy answers."""
        assert until(lambda: self.page("/readyz")[0] == 200, seconds=60), (self.page("/readyz"), self.process.tail(30))

    def streams(self, shard: str) -> list[str] | None:
        """The robots with streams at a shard; None where it does not know."""
        status, text = self.page(f"/streams?shard={shard}")
        return json.loads(text)["robots"] if status == 200 else None

    def reasons(self) -> list[str] | None:
        """The codes of what is wrong; None where it does not answer."""
        status, text = self.page("/status")
        return [each["code"] for each in json.loads(text)["reasons"]] if status == 200 else None

    def stop(self) -> None:
        """End it."""
        self.process.stop()


class Watch:
    """A watch of a robot through the door."""

    def __init__(self, door: OpenDoor, path: str, token: str, *, seconds: int = 300) -> None:
        self._channel = door.connect()
        self._channel.settimeout(_PATIENCE)
        query = f"{'&' if '?' in path else '?'}watch=true&timeoutSeconds={seconds}"
        request = f"GET {path}{query} HTTP/1.1\r\nHost: door\r\nAuthorization: Bearer {token}\r\n\r\n"
        self._channel.sendall(request.encode())
        self.got = self._channel.recv(65536)
        assert b"200 OK" in self.got, self.got

    def sees(self, text: str, *, seconds: float = _PATIENCE) -> bool:
        """Whether an event with a text comes."""
        self._channel.settimeout(seconds)
        try:
            while text.encode() not in self.got:
                more = self._channel.recv(65536)
                if not more:
                    return False
                self.got += more
        except (TimeoutError, OSError):
            return False
        return True

    def ends(self, *, seconds: float = _PATIENCE) -> bool:
        """Whether the door ends it. Hangs up."""
        with self._channel:
            self._channel.settimeout(seconds)
            try:
                while more := self._channel.recv(65536):
                    self.got += more
            except TimeoutError:
                return False
            except OSError:
                return True
        return True

    def close(self) -> None:
        """Hang up."""
        self._channel.close()
