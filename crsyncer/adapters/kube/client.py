"""One API server, through one pool of connections (ports.Cluster)."""

import asyncio
import hashlib
import io
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from email.utils import parsedate_to_datetime
from functools import lru_cache, partial
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote, urlencode

import aiohttp
from yarl import URL

from crsyncer import __version__
from crsyncer.adapters.kube.credentials import Credentials
from crsyncer.adapters.kube.login import Login
from crsyncer.adapters.kube.stream import WatchStream
from crsyncer.adapters.kube.transport import CONNECT_TIMEOUT, Exchange, Meter, open_socket, unsure
from crsyncer.adapters.threads import DaemonThreads
from crsyncer.core.model import Json
from crsyncer.core.requests.calls import Call
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
_FAILURES = (aiohttp.ClientError, OSError, TimeoutError, UnicodeError)
"""The last is for a proxy's name that Python refuses to look up."""

T = TypeVar("T")
Read = Callable[[aiohttp.ClientResponse], Awaitable[T]]


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
        """Check the kubeconfig's form; nothing is sent yet. Raises ConfigError, in one line without secrets.

        `insecure`, and no kubeconfig: see `Credentials`. `name` is the client's, which API servers
        record in managedFields.
        """
        self.credentials = Credentials(kubeconfig, self._request_as, context=context, insecure=insecure)
        login = self.credentials.login
        self.server = login.config.server
        self.fallback_identity = hashlib.sha256(f"{login.identity.ca}\n{self.server}".encode()).hexdigest()
        self.clock_offset: float | None = None
        self._user_agent = f"{name}/{__version__}"
        self._observe = observe
        self._meter = Meter()
        self._slots = asyncio.Semaphore(_POOL)
        self._watches: set[aiohttp.ClientResponse] = set()
        asyncio.get_running_loop().set_default_executor(DaemonThreads())  # it looks names up
        self._session = aiohttp.ClientSession(
            # Without a limit of its own: each watch holds a connection; short requests are counted by _slots.
            connector=aiohttp.TCPConnector(
                limit=0,
                keepalive_timeout=_IDLE,
                socket_factory=partial(open_socket, meter=self._meter),
                resolver=aiohttp.ThreadedResolver(),
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
        async with self._slots:
            _, reply = await self._ask(call, gap=call.gap, read=partial(_reply, call=call, progress=progress))
        return reply

    @asynccontextmanager
    async def watch(self, call: Call, *, read_timeout: float) -> AsyncIterator[WatchStream]:
        """Open a watch. `call.timeout` bounds the opening, `read_timeout` each wait for more bytes, in seconds."""
        response, reply = await self._ask(call, gap=read_timeout, read=partial(_refusal, call=call))
        self._watches.add(response)
        try:
            count = partial(self._count, call.verb, None)
            yield WatchStream(response, reply=reply, read_timeout=read_timeout, count=count)
        finally:
            self._watches.discard(response)
            _hang_up(response)

    def refresh_credentials(self) -> bool:
        """Look at the kubeconfig and its files again; True when something changed or a plug-in will be asked again.

        A kubeconfig that now names another server is refused with a warning: that takes another connection.
        """
        changed = self.credentials.refresh()
        if self.credentials.will_verify and not self.verified:
            self._end_watches()  # it is not known with whom they are
        return changed

    async def close(self) -> None:
        """Close every connection; open streams end in Unsure."""
        self._end_watches()
        await self._session.close()

    def _end_watches(self) -> None:
        # One by one, since the session drops their connections without waking a reader that waits for a line.
        for response in list(self._watches):
            _hang_up(response)

    async def _ask(self, call: Call, *, gap: float | None, read: Read[T]) -> tuple[aiohttp.ClientResponse, T]:
        """The answer and what `read` makes of it; asked again where a 401 came and there are newer credentials."""
        login, generation = await self._login(call), self.credentials.generation
        response, result = await self._perform(call, gap, read, login=login)
        if response.status == 401 and await self.credentials.renew(generation):
            response.close()
            response, result = await self._perform(call, gap, read, login=await self._login(call))
        return response, result

    async def _login(self, call: Call) -> Login:
        login = await self.credentials.current()
        return self.credentials.token_maker or login if call.by_token_maker else login

    async def _request_as(self, call: Call, login: Login) -> Reply:
        _, reply = await self._perform(call, call.gap, partial(_reply, call=call), login=login)
        return reply

    async def _perform(
        self, call: Call, gap: float | None, read: Read[T], *, login: Login
    ) -> tuple[aiohttp.ClientResponse, T]:
        """The answer and what `read` makes of it. `gap` bounds each wait for more of the answer, in seconds."""
        data = _body(call)
        status = 0
        try:
            async with asyncio.timeout(call.timeout):
                response = await self._send(call, data, login=login, gap=gap)
                date = _date(response)
                self.clock_offset = None if date is None else date - time.time()
                try:
                    result = await read(response)
                except BaseException:
                    _hang_up(response)
                    raise
                status = response.status
        except _FAILURES as error:
            stalled = gap is not None and isinstance(error, aiohttp.SocketTimeoutError)
            raise unsure(error, seconds=gap if gap is not None and stalled else call.timeout) from None
        finally:
            self._count(call.verb, status)
        return response, result

    async def _send(self, call: Call, data: bytes | None, *, login: Login, gap: float | None) -> aiohttp.ClientResponse:
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
        return await self._session.request(
            call.method,
            URL(url, encoded=True),
            # aiohttp writes a file in pieces, and a large body in one, which would hold up the loop.
            data=io.BytesIO(data) if data is not None and len(data) > _PIECE else data,
            headers=headers,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT, sock_read=gap),
            ssl=login.tls,
            server_hostname=login.server_name,
            proxy=login.proxy.text if login.proxy is not None else None,
            allow_redirects=False,
            middlewares=_ONCE if call.method in ("PUT", "DELETE") else (),
        )

    def _count(self, verb: str, code: int | None) -> None:
        if self._observe is not None:
            self._observe(Exchange(verb, code, *self._meter.take()))


def _hang_up(response: aiohttp.ClientResponse) -> None:
    """Leave a running answer: HTTP/1.1 ends it only with its connection. After a clean end nothing is open.

    At once: OpenSSL gives up the TLS session when more of the answer arrives while a connection is closed politely.
    """
    if response.connection is not None and response.connection.transport is not None:
        response.connection.transport.abort()
    response.close()


async def _send_once(request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Keep aiohttp from repeating a PUT or DELETE whose connection broke: it may have been carried out."""
    try:
        return await send(request)
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise unsure(error, seconds=CONNECT_TIMEOUT) from None


_ONCE = (_send_once,)


def _body(call: Call) -> bytes | None:
    if call.body is None:
        return None
    try:
        return _encode(call.body).encode()
    except (TypeError, ValueError, RecursionError) as error:
        # Half a surrogate pair or a number beyond a double, say: the other server took it, but JSON cannot carry it.
        message = f"the object cannot be written as JSON ({type(error).__name__})"
        raise Never(message, hint="some string or number in it is malformed") from None


async def _reply(response: aiohttp.ClientResponse, *, call: Call, progress: Callable[[], None] | None = None) -> Reply:
    """Read a whole answer; raises aiohttp's errors, TooLarge, and Unsure for a 2xx without an object.

    The answer may be anything, and no other code checks the shape of an object.
    """
    is_good = 200 <= response.status < 300
    data = bytearray()
    while chunk := await response.content.readany():
        data += chunk
        if progress is not None and is_good:
            progress()
        if len(data) > call.most:
            raise TooLarge(f"the answer is larger than {call.most >> 20} MiB", hint=_TOO_LARGE.get(call.verb, _STRANGE))
    body: Json | None = None
    with suppress(ValueError, RecursionError):
        decoded = _decode(data.decode())
        body = decoded if isinstance(decoded, dict) else None
    if is_good and (body is None or not _is_shaped(body, call.verb)):
        message = "the answer is no Kubernetes object"
        raise Unsure(message, hint="does a login page, a proxy or another server answer at this address?")
    return Reply(
        response.status,
        body if body is not None else {},
        text="" if body is not None else data[: 4 * _TEXT].decode(errors="replace")[:_TEXT],
        retry_after=_retry_after(response),
        size=len(data),
        date=_date(response),
    )


async def _refusal(response: aiohttp.ClientResponse, *, call: Call) -> Reply | None:
    """The whole answer where it is not the beginning of a watch."""
    return None if response.status == 200 else await _reply(response, call=call)


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
    """The time of the answer by the server's clock, in Unix time."""
    return _seconds(response.headers.get("Date", ""))


@lru_cache(maxsize=8)
def _seconds(http_date: str) -> float | None:
    try:
        return parsedate_to_datetime(http_date).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None
