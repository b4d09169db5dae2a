"""A simulated API server on a real port: TLS and HTTP by aiohttp, answers by `tests.model`. Runs for hours."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from aiohttp import web

from crsyncer.core.requests.calls import JSON, Call
from tests.model.simulation.api_server import ApiServer
from tests.model.simulation.storage import Storage
from tests.model.simulation.watches import Watch, gone, open_watch, too_old

_KEPT_CHANGES = 2_000
"""How many changes a watch may be behind, as with a real server's ring."""
_BOOKMARK_SECONDS = 5.0
_POLL_SECONDS = 0.05


@dataclass(slots=True)
class Served:
    """One API server, its address, and its open watches."""

    server: ApiServer
    path: str = ""
    """Where it is below its address; what is asked for elsewhere is forbidden."""
    url: str = ""
    strays: list[str] = field(default_factory=list)
    """What was asked for elsewhere."""
    watches: list[Watch] = field(default_factory=list)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer one request."""
        if not request.path.startswith(f"{self.path}/"):
            self.strays.append(request.path)
            return web.json_response({"kind": "Status", "code": 403, "message": "it is forbidden"}, status=403)
        path = request.path.removeprefix(self.path)
        query = tuple(request.query.items())
        if request.query.get("watch"):
            return await self._watch(request, path)
        text = await request.text()
        call = Call(
            request.method.lower(),
            request.method,
            path,
            query,
            json.loads(text) if text else None,
            accept=request.headers.get("Accept", JSON),
        )
        reply = self.server.answer(call)
        if not reply.body:
            return web.Response(status=reply.status, text=reply.text)
        return web.json_response(reply.body, status=reply.status)

    async def _watch(self, request: web.Request, path: str) -> web.StreamResponse:
        address = self.server.address(path)
        if address is None:
            return web.Response(status=404, text="404 page not found")
        response = web.StreamResponse(headers={"Content-Type": JSON})
        response.enable_chunked_encoding()
        await response.prepare(request)
        watch = open_watch(self.server, address, request.query)
        if watch is None:
            await response.write(gone(too_old(self.server, address, request.query)) + b"\n")
            return response
        self.watches.append(watch)
        try:
            with suppress(ConnectionResetError):  # the client has gone
                await self._deliver(watch, response, seconds=float(request.query.get("timeoutSeconds", "300")))
        finally:
            self.watches.remove(watch)
        return response

    async def _deliver(self, watch: Watch, response: web.StreamResponse, *, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        end, bookmark = loop.time() + seconds, loop.time() + _BOOKMARK_SECONDS
        while loop.time() < end:
            lines = [line for _, line in watch.lines()]
            if loop.time() > bookmark:
                bookmark = loop.time() + _BOOKMARK_SECONDS
                lines.append(watch.bookmark())
            for line in lines:
                await response.write(line + b"\n")
            self._forget()
            await asyncio.sleep(_POLL_SECONDS)

    def _forget(self) -> None:
        """Drop old changes that every watch has delivered."""
        history = self.server.storage.history
        old = min([len(history) - _KEPT_CHANGES, *(watch.position for watch in self.watches)])
        if old > _KEPT_CHANGES:
            self.server.storage.oldest = history[old - 1].revision
            del history[:old]
            for watch in self.watches:
                watch.position -= old


@asynccontextmanager
async def served(name: str, *, pair: tuple[Path, Path], path: str = "") -> AsyncIterator[Served]:
    """An empty API server that listens on this machine with a certificate and key, until the block ends.

    `path` is where it is below its address.
    """
    made = Served(ApiServer(Storage(name, revision=1_000)), path)
    application = web.Application(client_max_size=1 << 26)
    application.router.add_route("*", "/{path:.*}", made.handle)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*pair)
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    made.url = f"https://localhost:{runner.addresses[0][1]}{path}"
    try:
        yield made
    finally:
        await runner.cleanup()
