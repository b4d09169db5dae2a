"""Health and metrics over HTTP, for probes and Prometheus."""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

from aiohttp import web

from crsyncer.errors import ConfigError

_PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


@contextlib.asynccontextmanager
async def serve(
    listen: tuple[str, int],
    *,
    live: Callable[[], str | None],
    ready: Callable[[], str | None],
    metrics: Callable[[], bytes],
) -> AsyncIterator[tuple[str, int]]:
    """Serve `/livez`, `/readyz` and `/metrics` while the context is open, and yield the address it is on.

    `live` and `ready` return None when all is well, else why not, which becomes a 503. Nothing here changes anything
    or says more than counts and names, for whoever reaches the port may read it. Raises ConfigError where the
    address cannot be listened on.
    """

    def health(check: Callable[[], str | None]) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def answer(_: web.Request) -> web.Response:
            trouble = check()
            return web.Response(text=f"{trouble or 'ok'}\n", status=503 if trouble else 200)

        return answer

    async def scrape(_: web.Request) -> web.Response:
        return web.Response(body=metrics(), headers={"Content-Type": _PROMETHEUS})

    app = web.Application()
    app.router.add_get("/livez", health(live))
    app.router.add_get("/readyz", health(ready))
    app.router.add_get("/metrics", scrape)
    runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=1.0, keepalive_timeout=30.0)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, *listen).start()
        except OSError as error:
            raise ConfigError(
                f"--listen {listen[0]}:{listen[1]} cannot be used ({error.strerror or error});"
                " allowed: a free HOST:PORT of this machine, or off"
            ) from None
        host, port = runner.addresses[0][:2]
        yield host, port
    finally:
        await runner.cleanup()
