"""Health, metrics and pages over HTTP, from a thread and an event loop of their own.

So `/livez` also answers, with a 503, when the event loop of the process is stuck.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

from aiohttp import web

from crsyncer.adapters.threads import in_daemon
from crsyncer.errors import ConfigError, NotServed, Unsure

_PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
_PATIENCE = 5.0
"""Seconds that the process's own event loop gets for an answer."""
_HTML = "text/html; charset=utf-8"
_JSON = "application/json"
_PAGE_HEADERS = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff"}


@dataclass(frozen=True, slots=True)
class Page:
    """What a path of its own answers: HTML under a Content-Security-Policy, or without a policy JSON."""

    text: str
    policy: str = ""


@contextlib.asynccontextmanager
async def serve(
    listen: tuple[str, int],
    *,
    live: Callable[[], str | None],
    ready: Callable[[], str | None],
    metrics: Callable[[], bytes],
    pages: Mapping[str, Callable[[Mapping[str, str]], Page | Awaitable[Page]]] = MappingProxyType({}),
) -> AsyncIterator[tuple[str, int]]:
    """Serve `/livez`, `/readyz` and `/metrics` while the context is open, and yield the address it is on.

    `live` and `ready` return None when all is well, else why not, which becomes a 503. `live` is called in another
    thread; `ready` and `metrics` in this event loop, with a 503 when the loop does not answer in time, and so are
    `pages`, by their paths, with the parameters of the query, where Unsure is a 503 and NotServed a 404. The port needs
    no login, so nothing here changes anything or shows more than counts and names. Raises ConfigError where the address
    cannot be listened on.
    """
    home = asyncio.get_running_loop()
    opened: Future[tuple[tuple[str, int], Callable[[], object]]] = Future()

    async def in_process(answer: Callable[[], web.Response | Awaitable[web.Response]]) -> web.Response:
        """An answer that the process's own event loop has to give."""

        async def give() -> web.Response:
            given = answer()
            return given if isinstance(given, web.Response) else await given

        asked = give()
        try:
            future = asyncio.run_coroutine_threadsafe(asked, home)
            async with asyncio.timeout(_PATIENCE):
                return await asyncio.wrap_future(future)
        except TimeoutError:
            return _health(f"the event loop has not answered within {_PATIENCE:g} s")
        except RuntimeError:
            asked.close()
            return _health("the process has ended")

    async def livez(_: web.Request) -> web.Response:
        return _health(live())

    async def readyz(_: web.Request) -> web.Response:
        return await in_process(lambda: _health(ready()))

    async def scrape(_: web.Request) -> web.Response:
        return await in_process(lambda: web.Response(body=metrics(), headers={"Content-Type": _PROMETHEUS}))

    async def show(request: web.Request) -> web.Response:
        async def answer() -> web.Response:
            try:
                given = pages[request.path](dict(request.query))
                return _page(given if isinstance(given, Page) else await given)
            except NotServed as error:
                return web.Response(text=f"{error}\n", status=404)
            except Unsure as error:
                return _health(str(error))

        return await in_process(answer)

    async def listening() -> None:
        app = web.Application()
        for path, handler in (
            ("/livez", livez),
            ("/readyz", readyz),
            ("/metrics", scrape),
            *((p, show) for p in pages),
        ):
            app.router.add_get(path, handler)
        runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=1.0, keepalive_timeout=30.0)
        await runner.setup()
        try:
            await web.TCPSite(runner, *listen).start()
            stopping = asyncio.Event()
            host, port = runner.addresses[0][:2]
            opened.set_result(((host, port), partial(asyncio.get_running_loop().call_soon_threadsafe, stopping.set)))
            await stopping.wait()
        except (OSError, ValueError) as error:  # the latter for a text that cannot be a host name
            opened.set_exception(error)
        finally:
            await runner.cleanup()

    ended = in_daemon(lambda: asyncio.run(listening()), name="crsyncer-web")
    try:
        address, stop = await asyncio.wrap_future(opened)
    except (OSError, ValueError) as error:
        raise _refused(listen, error) from None
    try:
        yield address
    finally:
        stop()
        await asyncio.wrap_future(ended)


async def check(listen: tuple[str, int]) -> None:
    """Raise ConfigError where the address cannot be listened on now. Listens for a moment."""
    try:
        server = await asyncio.get_running_loop().create_server(asyncio.Protocol, *listen)
    except (OSError, ValueError) as error:
        raise _refused(listen, error) from None
    server.close()


def _refused(listen: tuple[str, int], error: OSError | ValueError) -> ConfigError:
    why = getattr(error, "strerror", None) or error
    return ConfigError(
        f"--listen {listen[0]}:{listen[1]} cannot be used ({why}); allowed: a free HOST:PORT of this machine, or off"
    )


def _health(trouble: str | None) -> web.Response:
    return web.Response(text=f"{trouble or 'ok'}\n", status=503 if trouble else 200)


def _page(page: Page) -> web.Response:
    headers = dict(_PAGE_HEADERS)
    if page.policy:
        headers["Content-Security-Policy"] = page.policy
    return web.Response(body=page.text.encode(), headers={"Content-Type": _HTML if page.policy else _JSON, **headers})
