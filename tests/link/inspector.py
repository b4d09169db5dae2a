"""Ends TLS with the plane's own certificate, sees each request, and answers some of them differently from the plane."""

import asyncio
import socket
import ssl
import time

from tests.link.faults import Fault, Injection, Request
from tests.link.http1 import Body, Head, parse_head
from tests.link.stream import PATIENCE, Stream, accept_tls

_KEPT_BODY = 64 * 1024
_KEPT_BODIES = 32 * 1024 * 1024


class Inspector:
    """Serves the client ends of a wire: TLS, requests one by one, each connection with one of its own to the plane."""

    def __init__(self, port: int, *, server_tls: ssl.SSLContext, client_tls: ssl.SSLContext) -> None:
        self.requests: list[Request] = []
        self.injections: list[Injection] = []
        self._port = port
        self._server_tls = server_tls
        self._client_tls = client_tls
        self._tasks: set[asyncio.Task[None]] = set()
        self._kept = 0

    async def dial(self) -> socket.socket:
        """A socket whose other end is served. OSError when the plane does not accept connections."""
        upstream = await asyncio.open_connection(
            "127.0.0.1", self._port, ssl=self._client_tls, ssl_handshake_timeout=PATIENCE
        )
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        theirs.setblocking(False)
        task = asyncio.ensure_future(self._serve(theirs, Stream(*upstream)))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return ours

    async def close(self) -> None:
        """End every connection."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, end: socket.socket, plane: Stream) -> None:
        client: Stream | None = None
        try:
            client = await accept_tls(end, self._server_tls)
            while await self._exchange(client, plane):
                pass
            await client.finish()
        except (OSError, ValueError):
            pass  # one side is gone or talks nonsense: so is the other, then
        finally:
            plane.abort()
            if client is not None:
                client.abort()
            end.close()

    async def _exchange(self, client: Stream, plane: Stream) -> bool:
        """One request and its answer; False when the connection is to be closed."""
        raw = await client.head(unless=plane)
        if not raw:
            return False
        head = parse_head(raw)
        request = self._note(head, raw)
        injection = next((each for each in self.injections if each.matches(request)), None)
        if injection is not None:
            injection.count += 1
        try:
            if injection is not None and injection.fault is Fault.STALL and not injection.after_request:
                return await _stall(injection, client)  # even its body is left unread
            reaches_plane = injection is None or injection.reaches_plane()
            if reaches_plane:
                await plane.write(raw)
            async for piece in client.body(Body(head.headers)):
                self._keep(request, piece)
                if reaches_plane:
                    await plane.write(piece)
            if injection is None:
                return await self._answer(request, client=client, plane=plane)
            return await self._misbehave(injection, request, client=client, plane=plane)
        finally:
            request.done = True

    async def _misbehave(self, injection: Injection, request: Request, *, client: Stream, plane: Stream) -> bool:
        if injection.fault is Fault.TRUNCATE:
            return await self._answer(request, client=client, plane=plane, limit=injection.after_bytes)
        if injection.after_request:
            await self._answer(request, client=None, plane=plane)
        match injection.fault:
            case Fault.STALL:
                return await _stall(injection, client)
            case Fault.HANG_UP:
                return False
            case _:
                request.status = injection.status
                request.bytes_out += len(injection.response)
                await client.write(injection.response)
                return True

    async def _answer(
        self, request: Request, *, client: Stream | None, plane: Stream, limit: int | None = None
    ) -> bool:
        """Pass the plane's answer on, chunk by chunk, or swallow it; at most `limit` bytes of its body."""
        raw = await plane.head(unless=client)
        head = parse_head(raw) if raw else None
        if head is None:
            return False
        status = int(head.words[1])
        if client is not None:
            request.status = status
            request.bytes_out += len(raw)
            await client.write(raw)
        if status < 200:  # 100 Continue: the real answer follows
            return await self._answer(request, client=client, plane=plane, limit=limit)
        body = Body(head.headers, absent=request.method == "HEAD" or status in (204, 304), until_close=True)
        sent = 0
        async for piece in plane.body(body, unless=client):
            if client is None:
                continue
            part = piece if limit is None else piece[: limit - sent]
            sent += len(part)
            request.bytes_out += len(part)
            await client.write(part)
            if limit is not None and sent >= limit:
                return False
        return body.done and head.headers.get("connection", "").lower() != "close"

    def _note(self, head: Head, raw: bytes) -> Request:
        method, target, _ = head.words
        path, _, query = target.partition("?")
        request = Request(time.monotonic(), method, path, query, head.headers, bytes_in=len(raw))
        self.requests.append(request)
        return request

    def _keep(self, request: Request, piece: bytes) -> None:
        request.bytes_in += len(piece)
        room = min(_KEPT_BODY - len(request.body), _KEPT_BODIES - self._kept)
        if room > 0:
            request.body += piece[:room]
            self._kept += min(room, len(piece))

    def clear(self) -> None:
        """Forget the requests."""
        self.requests.clear()
        self._kept = 0


async def _stall(injection: Injection, client: Stream) -> bool:
    """Say nothing until the client gives up or the injection is removed."""
    waiting = {asyncio.ensure_future(client.gone()), asyncio.ensure_future(injection.removed.wait())}
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waiting:
            task.cancel()
    return False
