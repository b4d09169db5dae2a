"""The upkeep of the front door, put together: builds the adapters and keeps HAProxy's files, map, keys and streams."""

import asyncio
import contextlib
import json
import logging
import os
import signal
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace

from crsyncer.adapters import reload, web
from crsyncer.adapters.config import DoorSettings
from crsyncer.adapters.ending import Ending
from crsyncer.adapters.kube import KubeCluster
from crsyncer.adapters.metrics.door_metrics import DoorMetrics
from crsyncer.adapters.systemd import ServiceManager
from crsyncer.core.content.annotations import ROOT
from crsyncer.core.reports.text import plain
from crsyncer.core.watching.progress import Progress, stuck
from crsyncer.door.asking_shards import ask_shards
from crsyncer.door.domain.door_health import Reason, reasons
from crsyncer.door.domain.haproxy_template import CERTIFICATE, CONFIGURATION
from crsyncer.door.domain.known_robots import held_routes
from crsyncer.door.domain.lost_shards import Silence
from crsyncer.door.domain.robots_map import read_map, routes
from crsyncer.door.domain.upkeep_plan import counted
from crsyncer.door.door_files import MAP, read_text
from crsyncer.door.gather_door import read_certificate, shard_clusters, shards_of
from crsyncer.door.haproxy_program import check_program
from crsyncer.door.keeping import Keeping
from crsyncer.door.master_socket import MasterSocket
from crsyncer.door.robots_watch import RobotsWatch
from crsyncer.door.upkeep import Upkeep
from crsyncer.errors import ConfigError, NotServed, SyncError, Unsure

log = logging.getLogger(__name__)

_PULSE_SECONDS = 1.0
_STUCK_SECONDS = 30.0
_SLOW_SECONDS = 120.0
"""For how long a round of the upkeep may take: with 10,000 streams to end it does."""
_STOP_SECONDS = 5.0


class DoorApp:
    """One process beside one HAProxy. Settings that change build everything anew; HAProxy goes on meanwhile."""

    def __init__(self, settings: DoorSettings, load: Callable[[], DoorSettings]) -> None:
        """`load` reads the settings again."""
        self._settings = self._wanted = settings
        self._load = load
        self._metrics = DoorMetrics(ROOT)
        self._systemd = ServiceManager(os.environ)
        self._progress: tuple[Progress, ...] = ()
        self._rebuild = asyncio.Event()
        self._bad_settings: ConfigError | None = None
        self._keeping: Keeping | None = None
        self._upkeep: Upkeep | None = None

    async def run(self) -> int:
        """Keep the door until SIGTERM or SIGINT; the exit code. Raises SyncError where it cannot start."""
        ending = Ending()
        await check_program()
        await self._try(self._settings)
        if self._settings.listen is not None:
            await web.check(self._settings.listen)
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, lambda: self._take(reload.attempt(self._load)))
        self._systemd.notify(READY="1")  # systemd must not wait for an API server
        work = asyncio.create_task(self._work())
        stopped = asyncio.create_task(ending.asked.wait())
        await asyncio.wait([work, stopped], return_when=asyncio.FIRST_COMPLETED)
        if not ending.asked.is_set():
            ending.failed()
        self._systemd.notify(STOPPING="1")
        work.cancel()
        await asyncio.wait([work], timeout=_STOP_SECONDS)
        if work.done() and not work.cancelled() and (error := work.exception()) is not None:
            raise error
        log.info("stopped; HAProxy goes on")
        return 0

    async def _work(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._watch_settings())
            while True:
                kept = tasks.create_task(self._keep(self._settings))
                await self._until_changed(tasks, kept)
                kept.cancel()
                await asyncio.wait([kept])
                self._settings = self._wanted

    async def _until_changed(self, tasks: asyncio.TaskGroup, kept: asyncio.Task[None]) -> None:
        """Return when there are other settings that can be used; those that cannot are told."""
        while True:
            changed = tasks.create_task(self._rebuild.wait())
            await asyncio.wait([kept, changed], return_when=asyncio.FIRST_COMPLETED)
            changed.cancel()
            if kept.done():
                kept.result()  # raises
            self._rebuild.clear()
            try:
                await self._try(self._wanted)
            except ConfigError as error:
                self._refuse(error)
            else:
                return

    async def _try(self, settings: DoorSettings) -> None:
        """Raise the ConfigError for which these settings cannot be used."""
        async with shard_clusters(settings) as clusters:
            shards_of(clusters)
        if settings.listen is not None and settings.listen != self._settings.listen:
            await web.check(settings.listen)
        if read_text(settings.directory / CERTIFICATE) is None and settings.certificate is not None:
            read_certificate(settings.certificate)  # else the last good one is used

    async def _keep(self, settings: DoorSettings) -> None:
        """Keep everything by these settings."""
        async with shard_clusters(settings, self._metrics.connections.exchange) as clusters:
            haproxy = MasterSocket(settings.socket, settings.directory / MAP)
            # The file is for the start alone: it may not be written, or somebody else's, by now.
            last = self._upkeep.wanted if self._upkeep else read_map(read_text(settings.directory / MAP) or "")
            silence = Silence()
            upkeep = self._upkeep = Upkeep(
                *(haproxy, settings.directory, last),
                silence=silence,
                wrote=self._metrics.wrote,
                ended=self._metrics.ended,
            )
            keeping = self._keeping = Keeping(settings, clusters, haproxy, upkeep)
            watch = RobotsWatch(
                clusters[ROOT],
                self._metrics.connections,
                changed=lambda labels: upkeep.want(
                    held_routes(routes(labels, clusters), upkeep.wanted, were_seen=watch.robots.were_seen)
                ),
            )
            async with self._serve(settings, clusters, upkeep, keeping, watch), asyncio.TaskGroup() as tasks:
                root = settings.root
                tasks.create_task(watch.run(root.robots, root.robots_namespace, watch_timeout=settings.watch_timeout))
                tasks.create_task(keeping.run())
                tasks.create_task(ask_shards(clusters, silence))
                tasks.create_task(upkeep.run())
                tasks.create_task(self._beat(upkeep, watch))

    @contextlib.asynccontextmanager
    async def _serve(
        self,
        settings: DoorSettings,
        clusters: Mapping[str, KubeCluster],
        upkeep: Upkeep,
        keeping: Keeping,
        watch: RobotsWatch,
    ) -> AsyncIterator[None]:
        if settings.listen is None:
            yield
            return

        def ready() -> str | None:
            trouble = upkeep.seen.trouble or upkeep.seen.unwritten
            if trouble is not None:
                return str(trouble)
            return None if upkeep.seen.workers and upkeep.seen.map_is_written else "the map is not written yet"

        def metrics() -> bytes:
            return self._metrics.render(counted(upkeep.wanted.values(), list(clusters)), upkeep.seen.shards_up)

        async def streams(query: Mapping[str, str]) -> web.Page:
            shard = query.get("shard", ROOT)
            if shard not in clusters:
                raise NotServed(f"this door has no shard {plain(shard[:80])}; allowed: {', '.join(clusters)}")
            return web.Page(json.dumps(await upkeep.at_shard(shard)))

        def configured(_query: Mapping[str, str]) -> web.Page:
            if read_text(settings.directory / CONFIGURATION) is None:
                raise Unsure("HAProxy's configuration is not written yet")
            return web.Page("{}")

        def status(_query: Mapping[str, str]) -> web.Page:
            found = self._reasons(clusters, upkeep, keeping, watch)
            return web.Page(json.dumps({"reasons": [each.document for each in found]}))

        async with web.serve(
            settings.listen,
            live=lambda: stuck(self._progress, time.monotonic()),
            ready=ready,
            metrics=metrics,
            pages={"/streams": streams, "/status": status, "/configured": configured},
        ):
            yield

    def _reasons(
        self, clusters: Mapping[str, KubeCluster], upkeep: Upkeep, keeping: Keeping, watch: RobotsWatch
    ) -> list[Reason]:
        bad: list[SyncError] = [error for error in (keeping.bad_file, self._bad_settings) if error is not None]
        if isinstance(keeping.trouble, ConfigError):
            bad.append(keeping.trouble)
        if keeping.refusal is not None:
            bad.append(keeping.refusal)
        labels, lost = watch.robots.labels, len(watch.robots.lost)
        if watch.is_listed and not labels:
            lost = len(upkeep.wanted)
        return reasons(
            labels=labels,
            lost=lost,
            shards=tuple(clusters),
            up=upkeep.seen.shards_up,
            silent=list(keeping.silent.values()),
            differing=list(keeping.differing.values()),
            haproxy=upkeep.seen.trouble,
            unwritten=upkeep.seen.unwritten,
            root=watch.trouble,
            bad=[str(each) for each in bad],
            stale=None if isinstance(keeping.trouble, ConfigError) else keeping.trouble,
        )

    async def _watch_settings(self) -> None:
        async for outcome in reload.reloads(self._load, lambda: self._settings.files):
            self._take(outcome)

    def _take(self, outcome: DoorSettings | ConfigError) -> None:
        """Go on with new settings, or with the old ones and say why."""
        if isinstance(outcome, ConfigError):
            self._refuse(outcome)
            return
        self._bad_settings = None
        if _essential(outcome) != _essential(self._settings):
            self._wanted = outcome
            self._rebuild.set()
        elif self._keeping is not None:  # the content of a file has changed, such as the certificate
            self._keeping.timer.at_once()

    def _refuse(self, error: ConfigError) -> None:
        self._bad_settings = error
        log.error("the new settings are not used: %s", error)

    async def _beat(self, upkeep: Upkeep, watch: RobotsWatch) -> None:
        began = asyncio.get_running_loop().time()
        while True:
            found = [
                Progress("the event loop", time.monotonic(), _STUCK_SECONDS),
                Progress("the upkeep of HAProxy", max(began, upkeep.seen.at), _SLOW_SECONDS),
            ]
            if watch.informer is not None and (stream := watch.informer.listwatch.open_watch) is not None:
                found.append(stream)
            self._progress = tuple(found)
            if stuck(found, time.monotonic()) is None:
                self._systemd.notify(WATCHDOG="1")
            await asyncio.sleep(_PULSE_SECONDS)


def _essential(settings: DoorSettings) -> DoorSettings:
    """The settings that everything is built for."""
    return replace(settings, log_format="", log_level="")
