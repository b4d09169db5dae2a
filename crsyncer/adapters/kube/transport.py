"""Sockets that notice a dead peer, and plain words for what goes wrong on them."""

import errno
import socket
import ssl
from dataclasses import dataclass
from typing import Any

import aiohttp

from crsyncer.core.reports.text import (
    EXPIRED,
    NOT_TAKEN,
    NOT_TRUSTED,
    NOT_YET_VALID,
    OTHER_ADDRESS,
    OTHER_CA,
    OTHER_HOST,
)
from crsyncer.errors import NotTrusted, Unsure

CONNECT_TIMEOUT = 20.0
"""Seconds for TCP and TLS together: sixteen handshakes at a time take 16 kbit/s for most of it."""
_OPTIONS = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 30),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 10),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 45_000),  # milliseconds that sent bytes may stay unacknowledged
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
)
"""With these a silent cut is noticed within 60 s (S9.3)."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """Some traffic with the API server, for counters.

    `code` is the HTTP status, 0 where no answer came, and None for bytes of a running watch, which are no request.
    The bytes are what went over this cluster's sockets (TLS included) since the previous exchange: their sum is
    exact, the attribution to one of several concurrent requests is not.
    """

    verb: str
    code: int | None
    bytes_up: int
    bytes_down: int


@dataclass(slots=True)
class Meter:
    """Bytes that the sockets of one cluster have moved."""

    up: int = 0
    down: int = 0

    def take(self) -> tuple[int, int]:
        """What was counted since the last time."""
        taken = self.up, self.down
        self.up = self.down = 0
        return taken


class MeteredSocket(socket.socket):
    """A TCP socket that counts. A subclass, because the event loop takes nothing but sockets."""

    __slots__ = ("meter",)
    meter: Meter

    def send(self, data: Any, flags: int = 0, /) -> int:
        sent = super().send(data, flags)
        self.meter.up += sent
        return sent

    def recv(self, size: int, flags: int = 0, /) -> bytes:
        data = super().recv(size, flags)
        self.meter.down += len(data)
        return data

    def recv_into(self, buffer: Any, size: int = 0, flags: int = 0, /) -> int:
        received = super().recv_into(buffer, size, flags)
        self.meter.down += received
        return received

    def sendmsg(self, buffers: Any, *rest: Any) -> int:
        sent = super().sendmsg(buffers, *rest)
        self.meter.up += sent
        return sent


def open_socket(address: tuple[Any, ...], *, meter: Meter) -> socket.socket:
    """An unconnected socket for an address of getaddrinfo() that will notice when its peer vanishes."""
    made = MeteredSocket(*address[:3])
    made.meter = meter
    for option in _OPTIONS:
        made.setsockopt(*option)
    return made


_CERTIFICATE = {
    9: (NOT_YET_VALID, "set this machine's clock"),
    10: (EXPIRED, "check this machine's clock, then the server's certificate"),
    62: (OTHER_HOST, "check server and tls-server-name in the kubeconfig"),
    64: (OTHER_ADDRESS, "check server and tls-server-name in the kubeconfig"),
}
"""By X509_V_ERR_*; everything else is a chain that ends at no CA of ours."""
_ABOUT_CERTIFICATES = ("certificate", "unknown ca", "access denied")
"""Alerts by which a server refuses a client certificate (RFC 8446, 6.2)."""

_OS_ERROR = {
    errno.ECONNREFUSED: ("connection refused", "is the API server running, and is the port right?"),
    errno.ECONNRESET: ("connection reset", "the server or something on the way closed it"),
    errno.EPIPE: ("connection reset", "the server or something on the way closed it"),
    errno.ENETUNREACH: ("network unreachable", "this machine has no route to the server"),
    errno.EHOSTUNREACH: ("host unreachable", "this machine has no route to the server"),
    errno.ETIMEDOUT: ("the connection went dead", "packets vanish on the way"),
    errno.EMFILE: ("too many open files", "raise the limit on open files (LimitNOFILE)"),
}


def unsure(error: BaseException, *, seconds: float) -> Unsure:
    """The failure of one exchange in plain words. `seconds` is how long an answer was waited for.

    The original is never chained by callers: aiohttp's errors carry request headers.
    """
    reason, hint = _explain(error, seconds=seconds)
    return NotTrusted(reason, hint=hint) if reason.endswith(NOT_TRUSTED) else Unsure(reason, hint=hint)


def _explain(error: BaseException, *, seconds: float) -> tuple[str, str]:
    reason, hint = _cause(error, seconds=seconds)
    if isinstance(error, aiohttp.ClientProxyConnectionError):
        return f"the proxy cannot be reached: {reason}", "check proxy-url and HTTPS_PROXY"
    return reason, hint


def _cause(error: BaseException, *, seconds: float) -> tuple[str, str]:
    cause: BaseException | None = error
    while cause is not None:
        # aiohttp's wrappers are SSL errors too, but only the cause inside them is specific.
        if isinstance(cause, ssl.SSLCertVerificationError) and hasattr(cause, "verify_code"):
            unknown = (OTHER_CA, "wrong server, or its CA was rotated: fetch certificate-authority-data anew")
            return _CERTIFICATE.get(cause.verify_code, unknown)
        if isinstance(cause, ssl.SSLError) and not isinstance(cause, aiohttp.ClientError):
            said = (cause.reason or "").lower().replace("_", " ")
            if said in ("wrong version number", "record layer failure", "packet length too long", "http request"):
                return "the server does not speak TLS on this port", "check the port in the kubeconfig"
            if "alert" in said and any(each in said for each in _ABOUT_CERTIFICATES):
                return NOT_TAKEN, f"renew the client certificate in the kubeconfig (it answers: {said})"
            return f"TLS failed: {said or 'connection closed'}", "client certificate, or a TLS version below 1.2?"
        if isinstance(cause, OSError) and cause.errno in _OS_ERROR:
            return _OS_ERROR[cause.errno]
        cause = cause.__cause__ or getattr(cause, "os_error", None)
    match error:
        case aiohttp.ClientConnectorDNSError() | UnicodeError():
            return "the server's name does not resolve", "check DNS, the network and the kubeconfig's server"
        case aiohttp.ConnectionTimeoutError():
            return (
                f"no connection within {min(seconds, CONNECT_TIMEOUT):g} s",
                "packets vanish on the way, or a firewall drops them",
            )
        case aiohttp.SocketTimeoutError():
            return f"nothing came for {seconds:g} s", "the server, or something on the way, hangs"
        case TimeoutError():
            return f"no answer within {seconds:g} s", "the server, or something on the way, hangs"
        case aiohttp.ServerDisconnectedError():
            return "the server closed the connection without an answer", "is it restarting?"
        case aiohttp.ContentTypeError() | aiohttp.ClientPayloadError():
            return "the answer was cut off or garbled", "the server or something on the way closed the connection"
        case aiohttp.ClientHttpProxyError():
            return f"the proxy refused with status {error.status}", "check proxy-url and HTTPS_PROXY"
        case aiohttp.ClientResponseError():
            return "the answer is not HTTP", "check the port in the kubeconfig"
        case OSError() if error.strerror:
            return error.strerror.lower(), ""
        case _:
            return f"no connection ({type(error).__name__})", ""
