"""A small TLS server that answers as badly as a test wants, the certificates for it, and kubeconfigs to reach it."""

import asyncio
import json
import ssl
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from crsyncer.adapters.kube import KubeCluster
from crsyncer.core.requests.calls import Call
from crsyncer.errors import ConfigError, NotAllowed, Unsure

GET = Call("get", "GET", "/apis/g.example.com/v1/goals/x")
TOKEN = "eyJhbGciOiJSUzI1NiJ9.the-secret-of-this-test.c2lnbmF0dXJl"


@dataclass(frozen=True, slots=True)
class Certificates:
    """A CA and what it signed, as PEM files."""

    directory: Path
    ca: Path

    def issue(self, name: str, *, san: str = "DNS:localhost,IP:127.0.0.1", days: int = 2) -> tuple[Path, Path]:
        """A certificate and its key for `san`; with negative `days` one that has expired."""
        key, request, made = (self.directory / f"{name}.{ending}" for ending in ("key", "csr", "crt"))
        extension = self.directory / f"{name}.ext"
        extension.write_text(f"subjectAltName={san}\n")
        _openssl("req", "-newkey", "ec", *_CURVE, "-nodes", "-keyout", key, "-subj", f"/CN={name}", "-out", request)
        _openssl(
            *("x509", "-req", "-in", request, "-CA", self.ca, "-CAkey", self.ca.with_suffix(".key"), "-CAcreateserial"),
            *("-days", days, "-extfile", extension, "-out", made),
        )
        return made, key

    def issue_for_2040(self, name: str) -> tuple[Path, Path]:
        """A certificate that is not valid yet, and its key."""
        return self.issue_between(name, "20400101000000Z", "20410101000000Z")

    def issue_between(self, name: str, begins: str, ends: str) -> tuple[Path, Path]:
        """A certificate for these times, which are like 20400101000000Z, and its key."""
        made, key = self.issue(name)
        index, settings = self.directory / f"{name}.index", self.directory / f"{name}.conf"
        index.touch()
        settings.write_text(
            f"[ca]\ndefault_ca=d\n[d]\ndatabase={index}\nnew_certs_dir={self.directory}\n"
            "rand_serial=yes\ndefault_md=sha256\npolicy=p\nunique_subject=no\n[p]\ncommonName=supplied\n"
        )
        _openssl(
            *("ca", "-batch", "-notext", "-config", settings, "-cert", self.ca),
            *("-keyfile", self.ca.with_suffix(".key"), "-in", made.with_suffix(".csr"), "-out", made),
            *("-startdate", begins, "-enddate", ends),
            *("-extfile", self.directory / f"{name}.ext"),
        )
        return made, key


_CURVE = ("-pkeyopt", "ec_paramgen_curve:prime256v1")


def _openssl(*words: object) -> None:
    subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)


def make_certificates(directory: Path) -> Certificates:
    """A new CA in a directory."""
    ca = directory / "ca.crt"
    _openssl(
        *("req", "-x509", "-newkey", "ec", *_CURVE, "-nodes", "-keyout", ca.with_suffix(".key"), "-out", ca),
        *("-subj", "/CN=test CA", "-days", 2),
    )
    return Certificates(directory, ca)


@dataclass(slots=True)
class Request:
    """What a client sent."""

    line: str
    headers: dict[str, str]
    body: bytes


Handler = Callable[[Request, asyncio.StreamWriter], Awaitable[None]]


@dataclass(slots=True)
class HostileServer:
    """Speaks just enough HTTP/1.1; `handler` writes whatever bytes it likes as the answer."""

    handler: Handler
    port: int = 0
    connections: int = 0
    requests: list[Request] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"https://localhost:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, until either end closes it."""
        self.connections += 1
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                line, *rest = head.rstrip().split("\r\n")
                headers = {name.lower(): value for name, value in (item.split(": ", 1) for item in rest)}
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                request = Request(line, headers, body)
                self.requests.append(request)
                await self.handler(request, writer)
                await writer.drain()
        except (EOFError, OSError, ssl.SSLError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def hostile(
    handler: Handler, *, pair: tuple[Path, Path], client_ca: Path | None = None, oldest: int | None = None
) -> AsyncIterator[HostileServer]:
    """Run a server with a certificate and key; with `client_ca` it asks for a client certificate."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*pair)
    if client_ca is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(client_ca)
    if oldest is not None:
        context.minimum_version = context.maximum_version = ssl.TLSVersion(oldest)
    made = HostileServer(handler)
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0, ssl=context)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()


def answer(
    body: bytes = b"{}", *, status: str = "200 OK", headers: tuple[str, ...] = ("Content-Type: application/json",)
) -> bytes:
    """A whole, well-formed answer."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


Reach = Callable[..., AbstractAsyncContextManager[tuple[KubeCluster, HostileServer]]]
"""Serve a handler and connect to it: see the fixture `reach`."""

STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunk(data: bytes) -> bytes:
    """One HTTP chunk; empty ends the stream."""
    return b"%x\r\n%s\r\n" % (len(data), data)


def write_config(path: Path, *, server: str, ca: Path | None, user: dict[str, Any], **cluster: Any) -> Path:
    """A kubeconfig with one context."""
    about: dict[str, Any] = {"server": server, **cluster}
    if ca is not None:
        about["certificate-authority"] = str(ca)
    path.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "c",
                "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
                "clusters": [{"name": "k", "cluster": about}],
                "users": [{"name": "u", "user": user}],
            }
        )
    )
    return path


def always(*data: bytes) -> Handler:
    """Answer every request with these bytes, each in a segment of its own."""

    async def handler(request: Request, writer: asyncio.StreamWriter) -> None:
        for piece in data:
            writer.write(piece)
            await writer.drain()

    return handler


def once(data: bytes) -> Handler:
    """Answer with these bytes and close."""

    async def handler(request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        await writer.drain()
        writer.close()

    return handler


async def failure(cluster: KubeCluster, call: Call = GET) -> Unsure:
    """How a request fails."""
    with pytest.raises(Unsure) as caught:
        await cluster.request(call)
    return caught.value


def only(*tokens: str) -> Handler:
    """A server that takes these tokens, and echoes the one that came."""

    async def handler(request: Request, writer: asyncio.StreamWriter) -> None:
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        good = token in tokens
        writer.write(answer(json.dumps({"token": token}).encode(), status="200 OK" if good else "401 Unauthorized"))

    return handler


@asynccontextmanager
async def connected(path: Path, *, context: str = "") -> AsyncIterator[KubeCluster]:
    """A cluster by its kubeconfig."""
    cluster = KubeCluster(path, context)
    try:
        yield cluster
    finally:
        await cluster.close()


async def refused(path: Path | None, *, context: str = "") -> ConfigError:
    """How a kubeconfig is refused: in one line, and without its secrets."""
    with pytest.raises(ConfigError) as caught:
        KubeCluster(path, context)
    assert "\n" not in str(caught.value)
    assert TOKEN not in f"{caught.value} {caught.value.hint}"
    return caught.value


async def without_credential(path: Path | None) -> NotAllowed:
    """How a request fails that has no credential to send: in one line, and without secrets."""
    cluster = KubeCluster(path)
    try:
        with pytest.raises(NotAllowed) as caught:
            await cluster.request(GET)
    finally:
        await cluster.close()
    assert caught.value.status == 401
    assert "\n" not in str(caught.value)
    assert TOKEN not in f"{caught.value} {caught.value.hint}"
    return caught.value
