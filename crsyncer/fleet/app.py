"""The fleet controller, put together: builds the adapters and runs one controller, for as long as it leads."""

import asyncio
import contextlib
import gc
import logging
import os
import secrets
import socket
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from crsyncer.adapters import reload, web
from crsyncer.adapters.config.fleet_options import FleetSettings
from crsyncer.adapters.ending import Ending
from crsyncer.adapters.kube import Exchange, KubeCluster
from crsyncer.adapters.memory_meta import MemoryMeta
from crsyncer.adapters.metrics.fleet_metrics import FleetMetrics
from crsyncer.core.content.annotations import ROOT
from crsyncer.core.watching.progress import Progress, stuck
from crsyncer.errors import ConfigError, NotLeading, first_error
from crsyncer.fleet.controllers.controller import FleetController
from crsyncer.fleet.controllers.state import ControllerSettings
from crsyncer.fleet.domain.shown.status_document import fleet_status
from crsyncer.fleet.page import POLICY, page, standby_page

if TYPE_CHECKING:
    from crsyncer.adapters.expressions import Expressions

log = logging.getLogger(__name__)

_PULSE_SECONDS = 1.0
_GROWN = 1.1
_STUCK_SECONDS = 30.0
_STOP_SECONDS = 4.0


class FleetApp:
    """One process of the controller. Credentials are read again when their files change; other settings at a start."""

    def __init__(self, settings: FleetSettings, load: Callable[[], FleetSettings]) -> None:
        """`load` reads the settings again."""
        self._settings = settings
        self._load = load
        self._metrics = FleetMetrics(ROOT, *(name for name, _ in settings.shards))
        self._progress: tuple[Progress, ...] = ()

    async def run(self) -> int:
        """Run until SIGTERM or SIGINT; the exit code: 1 where the Lease was lost. Raises ConfigError."""
        ending = Ending()
        async with contextlib.AsyncExitStack() as stack:
            settings = self._settings
            clusters = {ROOT: self._connect(stack, ROOT, settings.cloud_kubeconfig, settings.cloud_context)}
            clusters |= {name: self._connect(stack, name, file) for name, file in settings.shards}
            controller = self._controller(clusters)
            await stack.enter_async_context(self._serve(controller))
            work = asyncio.create_task(self._work(controller, clusters))
            stopped = asyncio.create_task(ending.asked.wait())
            await asyncio.wait([work, stopped], return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                ending.failed()
                return _code(work)
            work.cancel()
            await asyncio.wait([work], timeout=_STOP_SECONDS)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_STOP_SECONDS):
                    await controller.release()
            log.info("stopped")
            return 0

    def _connect(
        self, stack: contextlib.AsyncExitStack, shard: str, kubeconfig: Path | None, context: str = ""
    ) -> KubeCluster:
        def observe(exchange: Exchange) -> None:
            self._metrics.exchange(shard, exchange.verb, exchange.code, exchange.bytes_up, exchange.bytes_down)

        try:
            cluster = KubeCluster(
                kubeconfig,
                context,
                insecure=self._settings.insecure_skip_tls_verify,
                name="crsyncer-fleet",
                observe=observe,
            )
        except ConfigError as error:
            place = "cloud.kubeconfig" if shard == ROOT else f"shard {shard}"
            raise ConfigError(f"{place}: {error}", hint=error.hint) from None
        stack.push_async_callback(cluster.close)
        return cluster

    def _controller(self, clusters: Mapping[str, KubeCluster]) -> FleetController:
        settings = self._settings
        return FleetController(
            clusters[ROOT],
            settings=ControllerSettings(
                namespace=settings.controller_namespace,
                robots=settings.robots,
                robots_namespace=settings.robots_namespace,
                watch_timeout=settings.watch_timeout,
                expressions=_expressions,
            ),
            store=MemoryMeta(),
            observer=self._metrics,
            clock=time.time,
            identity=f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}",
            shards={name: each for name, each in clusters.items() if name != ROOT},
        )

    @contextlib.asynccontextmanager
    async def _serve(self, controller: FleetController) -> AsyncIterator[None]:
        if self._settings.listen is None:
            yield
            return
        async with web.serve(
            self._settings.listen,
            live=lambda: stuck(self._progress, time.monotonic()),
            ready=controller.unready,
            metrics=lambda: self._scrape(controller),
            pages={"/": lambda query: _page(controller, query.get("robot", ""))},
        ):
            yield

    def _scrape(self, controller: FleetController) -> bytes:
        facts = controller.facts()
        if facts is None or controller.leading is None:
            return self._metrics.render(None)
        fleet, seats = controller.leading.state.fleet, controller.leading.replicas.seats
        replicas = Counter(key.resource for key in fleet.rows)
        return self._metrics.render(fleet_status(facts), replicas=replicas, due=len(seats.due))

    async def _work(self, controller: FleetController, clusters: Mapping[str, KubeCluster]) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(controller.run())
            tasks.create_task(self._beat(controller))
            tasks.create_task(self._refresh(controller, clusters))

    async def _beat(self, controller: FleetController) -> None:
        frozen = collected = 0
        while True:
            self._progress = (Progress("the event loop", time.monotonic(), _STUCK_SECONDS),)
            leading = controller.leading
            rows, settled = (0, 0) if leading is None else (len(leading.state.fleet.rows), leading.settled_rows())
            if settled > 2 * collected:
                # What is known of a fleet stays. Measured with 100,000 objects: a full collection, which looks at all
                # of them, is the longest stand-still, of 180 to 230 ms, and of 54 ms once they are frozen.
                gc.unfreeze()
                gc.collect()
                gc.freeze()
                frozen = collected = settled
            elif rows > _GROWN * frozen:  # a start that looks at them again and again has a tenth of its CPU from that
                gc.freeze()
                frozen = rows
            await asyncio.sleep(_PULSE_SECONDS)

    async def _refresh(self, controller: FleetController, clusters: Mapping[str, KubeCluster]) -> None:
        """Read credentials again when a file of theirs has changed."""
        async for outcome in reload.reloads(self._load, lambda: self._settings.files):
            if isinstance(outcome, ConfigError):
                log.error("the new configuration is not used: %s", outcome)
                continue
            for cluster in clusters.values():
                cluster.refresh_credentials()
            for connection in (controller.connection, *controller.shards.values()):
                connection.retry_now()


def _expressions() -> "Expressions":
    """The languages, imported on first use (C4.5)."""
    from crsyncer.adapters.expressions import Expressions

    return Expressions()


def _page(controller: FleetController, robot: str) -> web.Page:
    """The page for people; a standby's names the leader."""
    now, facts = time.time(), controller.facts()
    if facts is None:
        return web.Page(standby_page(controller.leader.holder, now=now), POLICY)
    return web.Page(page(fleet_status(facts, robot=robot), robot_query=robot, now=facts.now), POLICY)


def _code(work: asyncio.Task[None]) -> int:
    """The exit code of a controller that has ended by itself. Raises what else ended it."""
    ended = work.exception()
    error = None if ended is None else first_error(ended)
    if isinstance(error, NotLeading):
        log.error("%s: this process ends", error)
        return 1
    if error is not None:
        raise error
    return 0
