"""One API server, through one pool of connections (ports.Cluster)."""

import asyncio
import hashlib
import io
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from email.utils import parsedate_to_datetime
from functools import lru_cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import aiohttp
from yarl import URL

from crsyncer import __version__
from crsyncer.adapters.kube.credentials import Credentials, Login
from crsyncer.adapters.kube.names import Resolver
from crsyncer.adapters.kube.stream import WatchStream
from crsyncer.adapters.kube.transport import CONNECT_TIMEOUT, Exchange, Meter, open_socket, unsure
from crsyncer.core.calls import Call
from crsyncer.core.model import Json
from crsyncer.errors import Never, TooLarge, Unsure
from crsyncer.ports import Reply

_POOL = 64
_IDLE = 60.0
"""Seconds that an idle connection is kept: less than the 90 s after which an API server closes it."""
_PIECE = 1024 * 1024
_TEXT = 500
_LISTS = {"list": ("items",), "discover": ("resources", "versions")}
"""Where an answer has many of something, by verb."""
_LEAST_PATIENCE = 1.0
"""A server that asks for patience and names no time, or one that is over, is not asked again at once."""
_STRANGE = "no API server sends that: what answers at this address?"
_TOO_LARGE = {"list": "a smaller page is asked for; where it has one object, see what made that so large"}
_FAILURES = (aiohttp.ClientError, OSError, TimeoutError)


def _refuse(constant: str) -> None:
    raise ValueError(constant)


_decode = json.JSONDecoder(parse_constant=_refuse).decode
_encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False, check_circular=False).encode


class KubeCluster:
    """One API server. Made in the event loop that uses it."""

    def __init__(
        self,
        kubeconfig: Path | None,
        context: str = "",
        *,
        insecure: bool = False,
        name: str = "crsyncer",
        observe: Callable[[Exchange], None] | None = None,
    ) -> None:
        """Check the kubeconfig's form; nobody is asked yet. Raises ConfigError, in one line without secrets.

        `insecure`, and no kubeconfig: see `Credentials`. `name` is the client's: API servers note on an object who
        wrote what of it.
        """
        self.credentials = Credentials(kubeconfig, context=context, insecure=insecure)
        login = self.credentials.login
        self.server = login.config.server
        self.fallback_identity = hashlib.sha256(f"{login.identity.ca}\n{self.server}".encode()).hexdigest()
        self.clock_offset: float | None = None
        self._user_agent = f"{name}/{__version__}"
        self._observe = observe
        self._meter = Meter()
        self._slots = asyncio.Semaphore(_POOL)
        self._watches: set[aiohttp.ClientResponse] = set()
        self._session = aiohttp.ClientSession(
            # Without a limit of its own: each watch holds a connection; short requests are counted by _slots.
            connector=aiohttp.TCPConnector(
                limit=0,
                keepalive_timeout=_IDLE,
                socket_factory=partial(open_socket, meter=self._meter),
                resolver=Resolver(),
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=("Content-Type",),
        )

    @property
    def verified(self) -> bool:
        """Whether the server's certificate is verified."""
        return self.credentials.login.identity.verify

    async def request(self, call: Call, *, progress: Callable[[], None] | None = None) -> Reply:
        """Send one request; redirects are answers like any other. Raises Unsure, or Never for a body that is no JSON.

        Raises NotAllowed as long as the kubeconfig's plug-in or token file has never given a credential.

        A GET is repeated once on a connection that turned out to be closed; nothing else is ever repeated, except
        after a 401 with credentials that have changed since.
        """
        data = _body(call)
        async with self._slots:
            reply, refused = await self._exchange(call, data, progress)
            if reply.status == 401 and await self.credentials.renew(refused):
                reply, _ = await self._exchange(call, data, progress)
        return reply

    def watch(self, call: Call, *, read_timeout: float) -> AbstractAsyncContextManager[WatchStream]:
        """Open a watch. `call.timeout` bounds the opening, `read_timeout` each wait for more bytes, in seconds."""
        return self._watch(call, read_timeout)

    def refresh_credentials(self) -> bool:
        """Look at the kubeconfig and its files again; True when something changed or a plug-in will be asked again.

        A kubeconfig that now names another server is refused with a warning: that takes another connection.
        """
        return self.credentials.refresh()

    async def close(self) -> None:
        """Close every connection; open streams end in Unsure."""
        # One by one, since the session drops their connections without waking whoever waits for a line.
        for response in list(self._watches):
            response.close()
        await self._session.close()

    async def _exchange(self, call: Call, data: bytes | None, progress: Callable[[], None] | None) -> tuple[Reply, int]:
        """The answer, and the generation of the credentials it was given to."""
        login = await self.credentials.current()
        generation = self.credentials.generation
        started = time.perf_counter()
        status = 0
        try:
            async with self._send(call, data, login=login, timeout=_timeout(call.timeout, call.gap)) as response:
                self._read_clock(response)
                reply = await _reply(response, call, progress)
                status = response.status
        except _FAILURES as error:
            stalled = call.gap is not None and isinstance(error, aiohttp.SocketTimeoutError)
            raise unsure(error, seconds=call.gap if stalled and call.gap else call.timeout) from None
        finally:
            self._count(call.verb, status, started)
        return reply, generation

    @asynccontextmanager
    async def _watch(self, call: Call, read_timeout: float) -> AsyncIterator[WatchStream]:
        response, refused = await self._open_watch(call, read_timeout)
        if response.status == 401 and await self.credentials.renew(refused):
            response.close()
            response, _ = await self._open_watch(call, read_timeout)
        self._watches.add(response)
        try:
            reply = None
            if response.status != 200:
                try:
                    async with asyncio.timeout(call.timeout):
                        reply = await _reply(response, call)
                except _FAILURES as error:
                    raise unsure(error, seconds=call.timeout) from None
            yield WatchStream(
                response, reply=reply, read_timeout=read_timeout, meter=self._meter, observe=self._observe
            )
        finally:
            # HTTP/1.1 cannot end a running answer: leaving closes the connection. After a clean end nothing is open.
            self._watches.discard(response)
            response.close()

    async def _open_watch(self, call: Call, read_timeout: float) -> tuple[aiohttp.ClientResponse, int]:
        login = await self.credentials.current()
        generation = self.credentials.generation
        started = time.perf_counter()
        status = 0
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT, sock_read=read_timeout)
        try:
            async with asyncio.timeout(call.timeout):
                response = await self._send(call, None, login=login, timeout=timeout)
            self._read_clock(response)
            status = response.status
        except _FAILURES as error:
            raise unsure(error, seconds=call.timeout) from None
        finally:
            self._count(call.verb, status, started)
        return response, generation

    def _send(
        self, call: Call, data: bytes | None, *, login: Login, timeout: aiohttp.ClientTimeout
    ) -> Any:  # aiohttp's private awaitable context manager of a ClientResponse
        path = quote(call.path, safe="/:")
        url = f"{self.server}{path}?{urlencode(call.query)}" if call.query else self.server + path
        headers = {
            "User-Agent": self._user_agent,
            "Accept": call.accept,
            # Lists shrink to a tenth; for anything small it costs more than it saves, and delays a watch's events.
            "Accept-Encoding": "gzip" if call.verb == "list" else "identity",
        }
        if login.authorization is not None:
            headers["Authorization"] = login.authorization.text
        if data is not None:
            headers["Content-Type"] = call.content_type
        return self._session.request(
            call.method,
            URL(url, encoded=True),
            # aiohttp writes a file in pieces, and a large body in one, which would hold up the loop.
            data=io.BytesIO(data) if data is not None and len(data) > _PIECE else data,
            headers=headers,
            timeout=timeout,
            ssl=login.tls,
            server_hostname=login.server_name,
            proxy=login.proxy.text if login.proxy is not None else None,
            allow_redirects=False,
            middlewares=_ONCE if call.method in ("PUT", "DELETE") else (),
        )

    def _read_clock(self, response: aiohttp.ClientResponse) -> None:
        date = _date(response)
        self.clock_offset = None if date is None else date - time.time()

    def _count(self, verb: str, code: int, started: float) -> None:
        if self._observe is not None:
            up, down = self._meter.take()
            self._observe(Exchange(verb, code, up, down, time.perf_counter() - started))


async def _send_once(request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Keep aiohttp from repeating a PUT or DELETE whose connection broke: it may have been carried out."""
    try:
        return await send(request)
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise unsure(error, seconds=CONNECT_TIMEOUT) from None


_ONCE = (_send_once,)


@lru_cache(maxsize=32)
def _timeout(total: float, gap: float | None) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=total, sock_connect=CONNECT_TIMEOUT, sock_read=gap)


def _body(call: Call) -> bytes | None:
    if call.body is None:
        return None
    try:
        return _encode(call.body).encode()
    except (TypeError, ValueError, RecursionError) as error:
        # Half a surrogate pair or a number beyond a double, say: the other side let it in, JSON cannot carry it.
        message = f"the object cannot be written as JSON ({type(error).__name__})"
        raise Never(message, hint="some string or number in it is malformed") from None


async def _reply(response: aiohttp.ClientResponse, call: Call, progress: Callable[[], None] | None = None) -> Reply:
    """Read a whole answer; raises aiohttp's errors, TooLarge, and Unsure for a 2xx without an object.

    What answers may be anything, and nobody else looks whether an object has the shape of one.
    """
    chunks: list[bytes] = []
    size = 0
    while chunk := await response.content.readany():
        size += len(chunk)
        if progress is not None and response.status < 300:
            progress()
        if size > call.most:
            response.close()
            raise TooLarge(f"the answer is larger than {call.most >> 20} MiB", hint=_TOO_LARGE.get(call.verb, _STRANGE))
        chunks.append(chunk)
    raw = b"".join(chunks)
    body: Json | None = None
    try:
        decoded = _decode(raw.decode())
    except (ValueError, RecursionError):
        decoded = None
    body = decoded if isinstance(decoded, dict) else None
    if 200 <= response.status < 300 and (body is None or not _is_shaped(body, call.verb)):
        message = "the answer is no Kubernetes object"
        raise Unsure(message, hint="does a login page, a proxy or another server answer at this address?")
    text = "" if body is not None else raw[: 4 * _TEXT].decode(errors="replace")[:_TEXT]
    return Reply(
        response.status,
        body if body is not None else {},
        text,
        _retry_after(response),
        size,
        _date(response),
    )


def _is_shaped(body: Json, verb: str) -> bool:
    """Whether metadata are an object, and what a list or discovery names are lists of objects. All may be left out."""
    parts = [body.get(name) or [] for name in _LISTS.get(verb, ())]
    listed = all(isinstance(part, list) and all(isinstance(each, dict) for each in part) for part in parts)
    return listed and isinstance(body.get("metadata") or {}, dict)


def _retry_after(response: aiohttp.ClientResponse) -> float | None:
    """Seconds, from seconds or an HTTP date, which is a time by the server's clock and not by this machine's."""
    value = response.headers.get("Retry-After", "")
    if value.isascii() and value.isdigit():
        return max(_LEAST_PATIENCE, float(value[:9]))
    until, now = _seconds(value), _date(response)
    return None if until is None else max(_LEAST_PATIENCE, until - (now if now is not None else time.time()))


def _date(response: aiohttp.ClientResponse) -> float | None:
    """When the server says that it answered, in Unix time."""
    return _seconds(response.headers.get("Date", ""))


def _seconds(http_date: str) -> float | None:
    try:
        return parsedate_to_datetime(http_date).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None
