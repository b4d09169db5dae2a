"""The link between an agent and a plane, scriptable: it is cut, falls silent or slow, or answers for the plane."""

import asyncio
import re
import socket
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

from crsyncer.errors import SyncError
from crsyncer.sandbox.free_ports import free_ports, give_back
from crsyncer.sandbox.plane import Plane
from tests.link.faults import Fault, Injection, Request
from tests.link.http1 import answer
from tests.link.inspector import Inspector
from tests.link.thread import LoopThread
from tests.link.wire import Wire, connect


@dataclass(frozen=True, slots=True)
class Way:
    """Another way to a plane than straight to its port: what stands before it, and who is let in there."""

    port: int
    ca_file: Path
    token: str


class Link:
    """A relay to a plane's API server at an address of its own, the same for its lifetime. An async context manager.

    `http=True` ends TLS with the plane's certificate, so that requests can be seen and tampered with; `http=False` is
    a plain TCP relay, cheaper, for benchmarks. `impostor` is a plane whose certificate is shown instead: a wrong CA.
    With `way` it leads there, and who comes without a token of their own has that one.
    It runs in a thread of its own, so that a test that computes or blocks does not slow the agent's network. Methods
    may be called from any other thread, and have acted when they return.
    """

    def __init__(
        self, plane: Plane, *, http: bool = True, impostor: Plane | None = None, way: Way | None = None
    ) -> None:
        (self.port,) = free_ports(1)
        self.plane = plane
        self.server = f"https://127.0.0.1:{self.port}"
        self._way = way
        self._thread = LoopThread("link")
        self._inspector: Inspector | None = None
        if http:
            shown = impostor or plane
            server_tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            server_tls.load_cert_chain(shown.cert_file, shown.key_file)
            server_tls.set_alpn_protocols(["http/1.1"])
            client_tls = ssl.create_default_context(cafile=str(way.ca_file if way else plane.ca_file))
            client_tls.set_alpn_protocols(["http/1.1"])
            port = way.port if way else plane.port
            self._inspector = Inspector(port, server_tls=server_tls, client_tls=client_tls)
        self._late = 0.0
        self._dial = self._inspector.dial if self._inspector else lambda: connect(plane.port)
        self._wire = Wire(self.port, dial=self._dial_late)

    async def __aenter__(self) -> "Link":
        self._thread.start()
        self.restore()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.cut()
        if self._inspector is not None:
            self._thread.run(self._inspector.close())
        self._thread.stop()
        give_back(self.port)

    def kubeconfig(
        self, path: Path, *, token: str | None = None, token_file: Path | None = None, namespace: str | None = None
    ) -> Path:
        """Write a kubeconfig that leads through this link, for the administrator or the holder of another token.

        Skips a test that has a credential of its own where a door lets robots in alone.
        """
        if token or token_file:
            self.needs_any_credential()
        token = self._way.token if self._way else token
        return self.plane.kubeconfig(path, server=self.server, token=token, token_file=token_file, namespace=namespace)

    def needs_any_credential(self) -> None:
        """Skip a test that comes with another credential than the link's own, where a door lets robots in alone."""
        if self._way is not None:
            pytest.skip("the front door lets robots in alone, and this credential is no robot's")

    def cut(self) -> None:
        """Reset every connection and refuse new ones, until `restore`."""
        self._thread.run(self._wire.cut())

    def half_open(self) -> None:
        """Packets vanish, until `restore`: connections stay open and silent, new ones are not even refused.

        On Linux they vanish before TCP sees them, so the agent's kernel gets no acknowledgement either.
        """
        self._thread.run(self._wire.freeze())

    def restore(self) -> None:
        """Relay again. Connections that were half open end in a reset. Injections and delays stay."""
        self._thread.run(self._wire.open())

    def delay(self, seconds: float, *, loss: float = 0.0) -> None:
        """Every byte is late by so much, in each direction; 0 ends it for new connections.

        `loss` is the part of all pieces that has to be sent again, and holds up what follows for a round trip.
        """
        self._wire.latency, self._wire.loss = seconds, loss

    def delay_new(self, seconds: float) -> None:
        """A new connection reaches the plane so much later, as where it lacks CPU; those that are open go on."""
        self._late = seconds

    def throttle(self, bytes_per_second: float | None) -> None:
        """A slow line, in each direction, that all connections share; None ends it."""
        self._wire.rate = bytes_per_second

    def inject(
        self,
        path_regex: str,
        *,
        status: int,
        body: bytes | Mapping[str, Any] = b"",
        headers: Mapping[str, str] | None = None,
        method: str | None = None,
        when: Callable[[Request], bool] | None = None,
        times: int | None = None,
        after_request: bool = False,
    ) -> Injection:
        """Answer requests in the plane's place: all, or the next `times`.

        The pattern is searched in path and query. A `body` that is a mapping is sent as JSON. `after_request`: the
        plane carries the request out all the same. The latest injection that matches a request wins. `when` is called
        in the link's thread.
        """
        return self._add(
            Injection(
                Fault.ANSWER,
                re.compile(path_regex),
                self._thread,
                method=method,
                when=when,
                times=times,
                after_request=after_request,
                status=status,
                response=answer(status, body, headers or {}),
            )
        )

    def stall(
        self,
        path_regex: str,
        *,
        method: str | None = None,
        when: Callable[[Request], bool] | None = None,
        times: int | None = None,
        after_request: bool = False,
        hang_up: bool = False,
    ) -> Injection:
        """Never answer until the injection is removed; without `after_request` not even the body is read.

        `hang_up`: close the connection in place of an answer; with `after_request`, after a write that did happen.
        """
        return self._add(
            Injection(
                Fault.HANG_UP if hang_up else Fault.STALL,
                re.compile(path_regex),
                self._thread,
                method=method,
                when=when,
                times=times,
                after_request=after_request,
            )
        )

    def truncate(
        self, path_regex: str, after_bytes: int, *, method: str | None = None, times: int | None = 1
    ) -> Injection:
        """Cut the plane's answer after so many bytes of its body, as on the wire: sizes of chunks count as well."""
        pattern = re.compile(path_regex)
        return self._add(
            Injection(Fault.TRUNCATE, pattern, self._thread, method=method, times=times, after_bytes=after_bytes)
        )

    @property
    def requests(self) -> list[Request]:
        """What was asked through this link, in order; noted when a request's head is complete. Empty without `http`."""
        return self._inspector.requests if self._inspector is not None else []

    @property
    def bytes_up(self) -> int:
        """From the agent, on the wire: TLS included, TCP not."""
        return self._wire.bytes_up

    @property
    def bytes_down(self) -> int:
        """To the agent, on the wire."""
        return self._wire.bytes_down

    @property
    def connections(self) -> int:
        """Open now."""
        return self._wire.connections

    @property
    def connects(self) -> int:
        """Accepted so far."""
        return self._wire.connects

    def clear(self) -> None:
        """Forget the requests and start counting anew; injections stay."""
        self._thread.run(self._clear())

    def heal(self) -> None:
        """Remove every injection, delay and limit, and relay again."""
        self.delay(0)
        self.delay_new(0)
        self.throttle(None)
        if self._inspector is not None:
            for injection in self._inspector.injections:
                injection.remove()
            self._inspector.injections.clear()
        self.restore()

    async def _dial_late(self) -> socket.socket:
        await asyncio.sleep(self._late)
        return await self._dial()

    async def _clear(self) -> None:
        self._wire.bytes_up = self._wire.bytes_down = self._wire.connects = 0
        if self._inspector is not None:
            self._inspector.clear()

    def _add(self, injection: Injection) -> Injection:
        if self._inspector is None:
            raise SyncError("this link only relays bytes", hint="make it with http=True")
        self._inspector.injections.insert(0, injection)
        return injection
